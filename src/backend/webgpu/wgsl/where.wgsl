// y = a where cond is not zero, else b, as bits. WIDE: elements of two words; WIDE_COND: a
// condition of two words.
@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
    let i = thread_index(group, groups, local);
    if (i >= params.count) { return; }
    let at = positions(i);
    var cond = vec4<u32>(load_cond(at.y));
    if (WIDE_COND == 1) { cond |= vec4<u32>(load_cond(at.y + 1u)); }
    let is_a = cond != vec4<u32>(0u);
    store_lanes_y(at.x, select(vec4<V_b>(load_b(at.w)), vec4<V_a>(load_a(at.z)), is_a));
    if (WIDE == 0) { return; }
    store_lanes_y(at.x + 1u,
                  select(vec4<V_b>(load_b(at.w + 1u)), vec4<V_a>(load_a(at.z + 1u)), is_a));
}
