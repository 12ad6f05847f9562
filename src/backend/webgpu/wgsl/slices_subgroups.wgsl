// The same sums as slices.wgsl, to the bit: where both summands are in one subgroup, of at least
// SUBGROUP threads, they go from thread to thread. Neighbouring threads are taken to be neighbours
// in their subgroup.
var<workgroup> partial: array<vec4<f32>, 4 * SLICES>; // [slice][quad]

fn sum_slices(local: u32, value: vec4<f32>) -> vec4<f32> {
    var half = 2u * u32(SLICES);
    var sum = value;
    if (half >= u32(SUBGROUP)) {
        workgroupBarrier();
        partial[local] = value;
        for (; half >= u32(SUBGROUP) && half > 2u; half /= 2u) {
            workgroupBarrier();
            if (local < half) { partial[local] += partial[local + half]; }
        }
        sum = partial[local];
    }
    for (; half > 2u; half /= 2u) { sum += subgroupShuffleXor(sum, half); }
    return sum;
}
