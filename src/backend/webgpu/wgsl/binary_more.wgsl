// fn(a, b) of floats, the functions of wk_binary_fn after those of binary_float.wgsl.
fn hypotenuse(a: f32, b: f32) -> f32 {
    var p = bitcast<f32>(min(magnitude(a), magnitude(b)));
    var q = bitcast<f32>(max(magnitude(a), magnitude(b)));
    if (is_infinite(q) || magnitude(q) == 0u) { return q; }
    let is_small = magnitude(q) < 0x21800000u; // 2^-60: far from subnormals
    if (is_small) {
        p = times(p, 0x1p75f);
        q = times(q, 0x1p75f);
    }
    let r = quotient(p, q);
    return (q * sqrt(fma(r, r, 1.0))) * select(1.0, 0x1p-75f, is_small);
}

fn log_of_sum(a: f32, b: f32) -> f32 {
    let most = select(a, b, order(b) > order(a));
    if (is_infinite(most)) { return most; }
    return most + log_plus_one(exp_of(-abs(a - b)));
}

fn of_numbers(a: f32, b: f32) -> f32 {
    switch FN {
        case 7: { return floored_rest(a, b); }
        case 8: { return truncated_rest(a, b); }
        case 9: { return floored_quotient(a, b); }
        case 10: { return angle_of(a, b); }
        case 11: { return hypotenuse(a, b); }
        default: { return log_of_sum(a, b); }
    }
}

// NaN where either is, except for an infinite hypotenuse and a sign.
fn apply(a: f32, b: f32) -> f32 {
    if (FN == 12) { return bitcast<f32>(magnitude(a) | (bitcast<u32>(b) & 0x80000000u)); }
    if (FN == 11 && (is_infinite(a) || is_infinite(b))) { return of_bits(0x7f800000u); }
    if (is_nan(a)) { return a; }
    if (is_nan(b)) { return b; }
    return of_numbers(a, b);
}
