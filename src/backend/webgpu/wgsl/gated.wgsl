// gated_N(gate, up, alpha, limit): function N of wk_gated_fn.
fn at_most(x: f32, limit: f32) -> f32 {
    return select(x, limit, !is_nan(x) && order(x) > order(limit));
}

fn clamped_unit(gate: f32, up: f32, alpha: f32, limit: f32) -> f32 {
    let g = at_most(gate, limit);
    let u = -at_most(-at_most(up, limit), limit);
    return g * sigmoid(alpha * g) * (u + 1.0);
}

fn gated_0(gate: f32, up: f32, alpha: f32, limit: f32) -> f32 {
    return silu(gate) * up;
}
fn gated_1(gate: f32, up: f32, alpha: f32, limit: f32) -> f32 {
    return gelu(gate) * up;
}
fn gated_2(gate: f32, up: f32, alpha: f32, limit: f32) -> f32 {
    return gelu_erf(gate) * up;
}
fn gated_3(gate: f32, up: f32, alpha: f32, limit: f32) -> f32 {
    return relu(gate) * up;
}
fn gated_4(gate: f32, up: f32, alpha: f32, limit: f32) -> f32 {
    return clamped_unit(gate, up, alpha, limit);
}
