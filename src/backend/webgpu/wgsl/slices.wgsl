// The sums over the slices of a workgroup, of each of its four quads.
var<workgroup> partial: array<vec4<f32>, 4 * SLICES>; // [slice][quad]

// The first four threads get them.
fn sum_slices(local: u32, value: vec4<f32>) -> vec4<f32> {
    workgroupBarrier();
    partial[local] = value;
    for (var half = 2u * u32(SLICES); half > 2u; half /= 2u) {
        workgroupBarrier();
        if (local < half) { partial[local] += partial[local + half]; }
    }
    return partial[local];
}
