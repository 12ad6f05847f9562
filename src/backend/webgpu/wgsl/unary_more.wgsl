// y = fn(x) of floats, the functions of wk_unary_fn after those of unary_float.wgsl.
fn log_of_one_plus(x: f32) -> f32 {
    if (x >= -0.3 && x <= 1.0) { return log_plus_one(x); }
    return log_of(1.0 + x);
}

// Of what is at least 4096 as log(2 a); the others by log(1 + ..), which does not cancel.
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

fn of_number(x: f32) -> f32 {
    let a = abs(x);
    switch FN {
        case 30: { return sine(x, 0u) / sine(x, 1u); }
        case 31: { return angle_of(x, other_leg(x)); }
        case 32: { return angle_of(other_leg(x), x); }
        case 33: { return angle_of(x, 1.0); }
        case 34: { return with_sign(sinh_of(a), x); }
        case 35: {
            let root = exp_of(0.5 * a);
            return fma(0.5 * root, root, 0.5 * exp_of(-a));
        }
        case 36: { return with_sign(arsinh(a), x); }
        case 37: { return arcosh(x); }
        case 38: { return with_sign(artanh(a), x); }
        case 39: { return exp_minus_one(x); }
        case 40: {
            let bounded = clamp(x, -151.0, 129.0);
            return exp2_near(i32(round(bounded)), bounded - round(bounded));
        }
        case 41: { return log_of_one_plus(x); }
        case 42: { return logarithm(x, 1.44269504, 1.0, 0.0); }
        case 43: { return logarithm(x, 0.434294482, 0.301025391, 4.60503907e-6); }
        case 44: { return quotient(1.0, square_root(x)); }
        default: {
            if (is_subnormal(x)) { return with_sign(0.0, x); }
            return trunc(x);
        }
    }
}

fn apply(x: f32) -> f32 {
    if (is_nan(x)) { return x; }
    return of_number(x);
}
