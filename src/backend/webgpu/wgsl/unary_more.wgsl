// unary_N(x, a, b), the functions of wk_unary_fn after those of unary_float.wgsl.
fn log_of_one_plus(x: f32) -> f32 {
    if (x >= -0.3 && x <= 1.0) { return log_plus_one(x); }
    return log_of(1.0 + x);
}

// For a >= 4096 it is log(2 a); below, log(1 + ..), which does not cancel.
fn arsinh(a: f32) -> f32 {
    if (a >= 4096.0) { return log_of(a) + 0.693147181; }
    return log_of_one_plus(a + a * a / (1.0 + sqrt(fma(a, a, 1.0))));
}

fn arcosh(x: f32) -> f32 {
    if (is_negative(x) || magnitude(x) < 0x3f800000u) { return of_bits(0x7fc00000u); }
    if (x >= 4096.0) { return log_of(x) + 0.693147181; }
    let t = x - 1.0;
    return log_of_one_plus(t + sqrt(t * (t + 2.0)));
}

fn artanh(a: f32) -> f32 {
    if (magnitude(a) > 0x3f800000u) { return of_bits(0x7fc00000u); }
    if (magnitude(a) == 0x3f800000u) { return of_bits(0x7f800000u); }
    return 0.5 * log_of_one_plus(2.0 * a / (1.0 - a));
}

fn sinh_of(a: f32) -> f32 {
    if (a < 1.0) {
        let e = exp_minus_one(a);
        return 0.5 * (e + e / (e + 1.0));
    }
    let root = exp_of(0.5 * a); // e^a may be too large
    return (0.5 * root) * root - 0.5 * exp_of(-a);
}

fn with_sign(x: f32, sign: f32) -> f32 {
    return bitcast<f32>(magnitude(x) | (bitcast<u32>(sign) & 0x80000000u));
}

// sqrt(1 - x^2)
fn other_leg(x: f32) -> f32 { return square_root((1.0 - x) * (1.0 + x)); }

fn cosh_of(a: f32) -> f32 {
    let root = exp_of(0.5 * a);
    return fma(0.5 * root, root, 0.5 * exp_of(-a));
}

fn exp2_any(x: f32) -> f32 {
    let bounded = clamp(x, -151.0, 129.0);
    return exp2_near(i32(round(bounded)), bounded - round(bounded));
}

fn trunc_of(x: f32) -> f32 {
    if (is_subnormal(x)) { return with_sign(0.0, x); }
    return trunc(x);
}

fn unary_30(x: f32, a: f32, b: f32) -> f32 { return or_nan(x, sine(x, 0u) / sine(x, 1u)); }
fn unary_31(x: f32, a: f32, b: f32) -> f32 { return or_nan(x, angle_of(x, other_leg(x))); }
fn unary_32(x: f32, a: f32, b: f32) -> f32 { return or_nan(x, angle_of(other_leg(x), x)); }
fn unary_33(x: f32, a: f32, b: f32) -> f32 { return or_nan(x, angle_of(x, 1.0)); }
fn unary_34(x: f32, a: f32, b: f32) -> f32 { return or_nan(x, with_sign(sinh_of(abs(x)), x)); }
fn unary_35(x: f32, a: f32, b: f32) -> f32 { return or_nan(x, cosh_of(abs(x))); }
fn unary_36(x: f32, a: f32, b: f32) -> f32 { return or_nan(x, with_sign(arsinh(abs(x)), x)); }
fn unary_37(x: f32, a: f32, b: f32) -> f32 { return or_nan(x, arcosh(x)); }
fn unary_38(x: f32, a: f32, b: f32) -> f32 { return or_nan(x, with_sign(artanh(abs(x)), x)); }
fn unary_39(x: f32, a: f32, b: f32) -> f32 { return or_nan(x, exp_minus_one(x)); }
fn unary_40(x: f32, a: f32, b: f32) -> f32 { return or_nan(x, exp2_any(x)); }
fn unary_41(x: f32, a: f32, b: f32) -> f32 { return or_nan(x, log_of_one_plus(x)); }
fn unary_42(x: f32, a: f32, b: f32) -> f32 {
    return or_nan(x, logarithm(x, 1.44269504, 1.0, 0.0));
}
fn unary_43(x: f32, a: f32, b: f32) -> f32 {
    return or_nan(x, logarithm(x, 0.434294482, 0.301025391, 4.60503907e-6));
}
fn unary_44(x: f32, a: f32, b: f32) -> f32 { return or_nan(x, quotient(1.0, square_root(x))); }
fn unary_45(x: f32, a: f32, b: f32) -> f32 { return or_nan(x, trunc_of(x)); }
