// What the lanes of a row have together, for each of them: see rows.wgsl.
var<workgroup> lane_sums: array<vec2<f32>, THREADS>;

fn sum_lanes(p: Place, value: vec2<f32>) -> vec2<f32> {
    if (LANES == 1) { return value; }
    lane_sums[p.local] = value;
    for (var half = u32(LANES) / 2u; half > 0u; half /= 2u) {
        workgroupBarrier();
        if (p.lane < half) { lane_sums[p.local] += lane_sums[p.local + half * STEP]; }
    }
    workgroupBarrier();
    let total = lane_sums[p.local - p.lane * STEP];
    workgroupBarrier();
    return total;
}

var<workgroup> lane_numbers: array<u32, THREADS>;

fn largest_of_lanes(p: Place, value: u32) -> u32 {
    if (LANES == 1) { return value; }
    lane_numbers[p.local] = value;
    for (var half = u32(LANES) / 2u; half > 0u; half /= 2u) {
        workgroupBarrier();
        if (p.lane < half) {
            lane_numbers[p.local] = max(lane_numbers[p.local],
                                        lane_numbers[p.local + half * STEP]);
        }
    }
    workgroupBarrier();
    return lane_numbers[p.local - p.lane * STEP];
}
