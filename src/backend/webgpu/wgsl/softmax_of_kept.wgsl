// Of up to 16 elements, kept(), the largest first, the softmax of one: summed in the order of
// softmax.wgsl. NaN or infinity among them, or -infinity alone: nan.
fn softmax_of_kept(p: Place, i: u32, n: u32, nan: f32) -> f32 {
    let largest = kept(p, 0u);
    if (magnitude(largest) >= 0x7f800000u) { return nan; }
    var sum = vec4<f32>(0.0);
    for (var j = 0u; j < n; j += 4u) {
        for (var e = 0u; e < 4u && j + e < n; e++) { sum[e] += exp_of(kept(p, j + e) - largest); }
    }
    return exp_of(kept(p, i) - largest) / sum_four(sum);
}
