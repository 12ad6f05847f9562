// y = the bits params.a; WIDE: and params.b, its second word.
@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
    let i = thread_index(group, groups, local);
    if (i >= params.count) { return; }
    let at = positions(i);
    store_lanes_y(at.x, vec4<V_y>(V_y(params.a)));
    if (WIDE == 1) { store_lanes_y(at.x + 1u, vec4<V_y>(V_y(params.b))); }
}
