// y = fn(x) of floats; FN is wk_unary_fn, params.a and params.b its parameters.
fn clamped(x: f32, low: f32, high: f32) -> f32 {
    if (order(x) < order(low)) { return low; }
    return select(x, high, order(x) > order(high));
}

// x / 6 + 1/2, but x + 3 is exact where it nearly vanishes.
fn hard_sigmoid(x: f32) -> f32 { return clamped(x + 3.0, 0.0, 6.0) / 6.0; }

fn of_number(x: f32) -> f32 {
    let a = bitcast<f32>(params.a);
    let is_positive = !is_negative(x) && magnitude(x) != 0u;
    switch FN {
        case 0: { return silu(x); }
        case 1: { return exp_of(x); }
        case 2: { return log_of(x); }
        case 3: { return sine(x, 0u); }
        case 4: { return sine(x, 1u); }
        case 5: { return bitcast<f32>(magnitude(x)); }
        case 6: { return bitcast<f32>(bitcast<u32>(x) ^ 0x80000000u); }
        case 7: { return quotient(1.0, x); }
        case 8: { return x * x; }
        case 9: { return square_root(x); }
        case 10: { return erf_of(x); }
        case 11: { return tanh_of(x); }
        case 12: { return sigmoid(x); }
        case 13: {
            if (is_subnormal(x)) { return select(0.0, -1.0, is_negative(x)); }
            return floor(x);
        }
        case 14: {
            if (is_subnormal(x)) { return select(1.0, 0.0, is_negative(x)); }
            return ceil(x);
        }
        case 15: { return round(x); }
        case 16: {
            if (magnitude(x) == 0u) { return x; }
            return select(1.0, -1.0, is_negative(x));
        }
        case 17: { return relu(x); }
        case 18: { return gelu(x); }
        case 19: { return gelu_erf(x); }
        case 20: { return x * sigmoid(1.702 * x); }
        case 21: { return softplus(x); }
        case 22: { return x * tanh_of(softplus(x)); }
        case 23: { return hard_sigmoid(x); }
        case 24: { return x * hard_sigmoid(x); }
        case 25: {
            if (is_positive) { return x; }
            return a * exp_minus_one(x);
        }
        case 26: {
            if (is_positive) { return x; }
            return a * x;
        }
        case 28: { return fma(a, x, bitcast<f32>(params.b)); }
        default: { return clamped(x, a, bitcast<f32>(params.b)); }
    }
}

// NaN stays NaN, except for a power of 0.
fn apply(x: f32) -> f32 {
    if (FN == 27) { return power(x, bitcast<f32>(params.a)); }
    if (is_nan(x)) { return x; }
    return of_number(x);
}
