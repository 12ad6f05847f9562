// The indices of a scatter as words: y = index, or params.a, which sorts last, where it is out of
// range.
@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
    let i = thread_index(group, groups, local);
    if (i >= params.count) { return; }
    let at = positions(i);
    store_y(at.x, V_y(find_id(at.y, params.a, at.z)));
}
