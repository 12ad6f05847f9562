// The same as lanes.wgsl, to the bit: where both summands are in one subgroup, of at least SUBGROUP
// threads, they go from thread to thread. Neighbouring threads are taken to be neighbours in their
// subgroup.
var<workgroup> lane_sums: array<vec2<f32>, THREADS>;
var<workgroup> lane_numbers: array<u32, THREADS>;

// Lanes of a row in one subgroup, if any share it.
const NEAR = max(u32(SUBGROUP) / STEP, 1u);

// Which of the first 2 half lanes, that have all there is, this one stands for.
fn partner(p: Place, half: u32) -> u32 {
    return p.local - (p.lane - p.lane % max(2u * half, 1u)) * STEP;
}

fn sum_lanes(p: Place, value: vec2<f32>) -> vec2<f32> {
    var half = u32(LANES) / 2u;
    var sum = value;
    if (half >= NEAR) {
        lane_sums[p.local] = value;
        for (; half >= NEAR; half /= 2u) {
            workgroupBarrier();
            if (p.lane < half) { lane_sums[p.local] += lane_sums[p.local + half * STEP]; }
        }
        workgroupBarrier();
        sum = lane_sums[partner(p, half)];
        workgroupBarrier();
    }
    for (; half > 0u; half /= 2u) { sum += subgroupShuffleXor(sum, half * STEP); }
    return sum;
}

fn largest_of_lanes(p: Place, value: u32) -> u32 {
    var half = u32(LANES) / 2u;
    var largest = value;
    if (half >= NEAR) {
        lane_numbers[p.local] = value;
        for (; half >= NEAR; half /= 2u) {
            workgroupBarrier();
            if (p.lane < half) {
                lane_numbers[p.local] = max(lane_numbers[p.local],
                                            lane_numbers[p.local + half * STEP]);
            }
        }
        workgroupBarrier();
        largest = lane_numbers[partner(p, half)];
        workgroupBarrier();
    }
    for (; half > 0u; half /= 2u) {
        largest = max(largest, subgroupShuffleXor(largest, half * STEP));
    }
    return largest;
}
