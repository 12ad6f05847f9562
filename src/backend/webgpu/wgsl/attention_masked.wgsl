// Mask and bias [batch, head, row, key] of four queries. A key that the mask hides does not count,
// regardless of its logit.
fn changed(t: Tile, logit: vec4<f32>, key: u32, seen: vec4<bool>) -> vec4<f32> {
    if ((params.has & (HAS_MASK | HAS_BIAS)) == 0u) { return logit; }
    var out = logit;
    for (var i = 0u; i < 4u && i < params.n_lanes / 8u; i++) {
        if (!seen[i]) { continue; }
        let query = t.begin + t.quad * 4u + i;
        let head = t.group * params.heads + query % params.heads;
        let at = vec4<u32>(t.batch, head, query / params.heads, key);
        if ((params.has & HAS_BIAS) != 0u) {
            let b = at * params.bias;
            out[i] += f32(load_bias(params.first_more.y + b.x + b.y + b.z + b.w));
        }
        if ((params.has & HAS_MASK) != 0u) {
            let m = at * params.mask;
            if (load_mask(params.first_more.x + m.x + m.y + m.z + m.w) == V_mask(0)) {
                out[i] = params.low;
            }
        }
    }
    return out;
}
