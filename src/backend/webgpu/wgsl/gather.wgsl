// y[.., i] = x[.., index[.., i]], as bits: a thread takes one i. WIDE: elements of two words.
// a: elements of a row of x; own: the stride along it.
@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
    let i = thread_index(group, groups, local);
    if (i >= params.count) { return; }
    let at = positions(i);
    let id = find_id(at.y, params.a, at.w);
    if (id == params.a) { return; }
    let source = at.z + id * params.own.x;
    store_y(at.x, V_y(load_x(source)));
    if (WIDE == 1) { store_y(at.x + 1u, V_y(load_x(source + 1u))); }
}
