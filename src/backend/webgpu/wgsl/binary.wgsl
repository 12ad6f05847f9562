// y = apply(a, b)
@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
    let i = thread_index(group, groups, local);
    if (i >= params.count) { return; }
    let at = positions(i);
    let a = vec4<V_a>(load_a(at.y));
    let b = vec4<V_b>(load_b(at.z));
    var y: vec4<V_y>;
    y.x = apply(a.x, b.x);
    if (LANES == 4) {
        y.y = apply(a.y, b.y);
        y.z = apply(a.z, b.z);
        y.w = apply(a.w, b.w);
    }
    store_lanes_y(at.x, y);
}
