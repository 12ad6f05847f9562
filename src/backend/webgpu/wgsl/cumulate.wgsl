// Running sums and products along rows. Threads of a row take four elements each, then the next
// ones. KIND: 0 floats, 1 integers; FN is wk_cumulate_fn.
fn join(a: u32, b: u32) -> u32 {
    if (KIND == 1) { return select(a + b, a * b, FN == 1); }
    let x = bitcast<f32>(a);
    let y = bitcast<f32>(b);
    return bitcast<u32>(select(x + y, x * y, FN == 1));
}

var<workgroup> lane_states: array<u32, THREADS>;

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
    let number = group_index(group, groups);
    if (number >= params.n_groups) { return; }
    let p = place_of(number, local);
    var before = params.own.x; // nothing: 0 or 1
    for (var begin = 0u; begin < params.n; begin += 4u * u32(LANES)) {
        let first = begin + 4u * p.lane;
        var values: array<u32, 4>;
        var state = params.own.x;
        for (var k = 0u; k < 4u; k++) {
            if (first + k < p.end) { state = join(state, bitcast<u32>(load_element(p, first + k))); }
            values[k] = state;
        }
        lane_states[local] = state;
        for (var step = 1u; step < u32(LANES); step *= 2u) {
            workgroupBarrier();
            var sum = lane_states[local];
            if (p.lane >= step) { sum = join(lane_states[local - step * STEP], sum); }
            workgroupBarrier();
            lane_states[local] = sum;
        }
        workgroupBarrier();
        var mine = before;
        if (p.lane > 0u) { mine = join(before, lane_states[local - STEP]); }
        for (var k = 0u; k < 4u; k++) {
            if (first + k < p.end) {
                store_y(p.y + offsets(first + k).x, bitcast<V_y>(join(mine, values[k])));
            }
        }
        before = join(before, lane_states[local + (u32(LANES) - 1u - p.lane) * STEP]);
        workgroupBarrier();
    }
}
