// Element i of what top_k.wgsl keeps: the softmax of these up to 16 elements, summed in the order of
// softmax.wgsl. NaN or infinity among them, or -infinity alone: all are NaN.
fn kept(p: Place, i: u32) -> f32 { return load_element(p, tile[i].y); }

fn result(p: Place, i: u32) -> V_y {
    let order = tile[0].x;
    if (order <= 0x007fffffu || order >= 0xff800000u) { return bitcast<f32>(params.own.w); }
    let largest = kept(p, 0u);
    var sum = vec4<f32>(0.0);
    for (var j = 0u; j < params.own.x; j += 4u) {
        for (var e = 0u; e < 4u && j + e < params.own.x; e++) {
            sum[e] += exp_of(kept(p, j + e) - largest);
        }
    }
    return exp_of(kept(p, i) - largest) / sum_four(sum);
}
