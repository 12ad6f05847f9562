// y = apply(x)
@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
    let i = thread_index(group, groups, local);
    if (i >= params.count) { return; }
    let at = positions(i);
    let x = vec4<V_x>(load_x(at.y));
    var y: vec4<V_y>;
    y.x = apply(x.x);
    if (LANES == 4) {
        y.y = apply(x.y);
        y.z = apply(x.z);
        y.w = apply(x.w);
    }
    store_lanes_y(at.x, y);
}
