// fn(gate) * up; FN is wk_gated_fn, params.a and params.b are alpha and limit.
fn at_most(x: f32, limit: f32) -> f32 {
    return select(x, limit, !is_nan(x) && order(x) > order(limit));
}

fn apply(gate: f32, up: f32) -> f32 {
    switch FN {
        case 0: { return silu(gate) * up; }
        case 1: { return gelu(gate) * up; }
        case 2: { return gelu_erf(gate) * up; }
        case 3: { return relu(gate) * up; }
        default: {
            let alpha = bitcast<f32>(params.a);
            let limit = bitcast<f32>(params.b);
            let g = at_most(gate, limit);
            let u = -at_most(-at_most(up, limit), limit);
            return g * sigmoid(alpha * g) * (u + 1.0);
        }
    }
}
