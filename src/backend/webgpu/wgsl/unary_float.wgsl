// unary_N(x, a, b): function N of wk_unary_fn of floats, a and b its parameters. NaN stays NaN,
// except for a power of 0.
fn is_above_zero(x: f32) -> bool { return !is_negative(x) && magnitude(x) != 0u; }

fn clamped(x: f32, low: f32, high: f32) -> f32 {
    if (order(x) < order(low)) { return low; }
    return select(x, high, order(x) > order(high));
}

// x / 6 + 1/2, but x + 3 is exact where it nearly vanishes.
fn hard_sigmoid(x: f32) -> f32 { return clamped(x + 3.0, 0.0, 6.0) / 6.0; }

fn floor_of(x: f32) -> f32 {
    if (is_subnormal(x)) { return select(0.0, -1.0, is_negative(x)); }
    return floor(x);
}

fn ceil_of(x: f32) -> f32 {
    if (is_subnormal(x)) { return select(1.0, 0.0, is_negative(x)); }
    return ceil(x);
}

fn sign_of(x: f32) -> f32 {
    if (magnitude(x) == 0u) { return x; }
    return select(1.0, -1.0, is_negative(x));
}

fn elu(x: f32, a: f32) -> f32 {
    if (is_above_zero(x)) { return x; }
    return a * exp_minus_one(x);
}

fn leaky_relu(x: f32, a: f32) -> f32 {
    if (is_above_zero(x)) { return x; }
    return a * x;
}

fn unary_0(x: f32, a: f32, b: f32) -> f32 { return or_nan(x, silu(x)); }
fn unary_1(x: f32, a: f32, b: f32) -> f32 { return or_nan(x, exp_of(x)); }
fn unary_2(x: f32, a: f32, b: f32) -> f32 { return or_nan(x, log_of(x)); }
fn unary_5(x: f32, a: f32, b: f32) -> f32 { return or_nan(x, bitcast<f32>(magnitude(x))); }
fn unary_6(x: f32, a: f32, b: f32) -> f32 {
    return or_nan(x, bitcast<f32>(bitcast<u32>(x) ^ 0x80000000u));
}
fn unary_7(x: f32, a: f32, b: f32) -> f32 { return or_nan(x, quotient(1.0, x)); }
fn unary_8(x: f32, a: f32, b: f32) -> f32 { return or_nan(x, x * x); }
fn unary_9(x: f32, a: f32, b: f32) -> f32 { return or_nan(x, square_root(x)); }
fn unary_10(x: f32, a: f32, b: f32) -> f32 { return or_nan(x, erf_of(x)); }
fn unary_11(x: f32, a: f32, b: f32) -> f32 { return or_nan(x, tanh_of(x)); }
fn unary_12(x: f32, a: f32, b: f32) -> f32 { return or_nan(x, sigmoid(x)); }
fn unary_13(x: f32, a: f32, b: f32) -> f32 { return or_nan(x, floor_of(x)); }
fn unary_14(x: f32, a: f32, b: f32) -> f32 { return or_nan(x, ceil_of(x)); }
fn unary_15(x: f32, a: f32, b: f32) -> f32 { return or_nan(x, round(x)); }
fn unary_16(x: f32, a: f32, b: f32) -> f32 { return or_nan(x, sign_of(x)); }
fn unary_17(x: f32, a: f32, b: f32) -> f32 { return or_nan(x, relu(x)); }
fn unary_18(x: f32, a: f32, b: f32) -> f32 { return or_nan(x, gelu(x)); }
fn unary_19(x: f32, a: f32, b: f32) -> f32 { return or_nan(x, gelu_erf(x)); }
fn unary_20(x: f32, a: f32, b: f32) -> f32 { return or_nan(x, x * sigmoid(1.702 * x)); }
fn unary_21(x: f32, a: f32, b: f32) -> f32 { return or_nan(x, softplus(x)); }
fn unary_22(x: f32, a: f32, b: f32) -> f32 { return or_nan(x, x * tanh_of(softplus(x))); }
fn unary_23(x: f32, a: f32, b: f32) -> f32 { return or_nan(x, hard_sigmoid(x)); }
fn unary_24(x: f32, a: f32, b: f32) -> f32 { return or_nan(x, x * hard_sigmoid(x)); }
fn unary_25(x: f32, a: f32, b: f32) -> f32 { return or_nan(x, elu(x, a)); }
fn unary_26(x: f32, a: f32, b: f32) -> f32 { return or_nan(x, leaky_relu(x, a)); }
fn unary_28(x: f32, a: f32, b: f32) -> f32 { return or_nan(x, fma(a, x, b)); }
fn unary_29(x: f32, a: f32, b: f32) -> f32 { return or_nan(x, clamped(x, a, b)); }
