// binary_N(a, b), the functions of wk_binary_fn after those of binary_float.wgsl. NaN where either
// is, except for an infinite hypotenuse and a sign.
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

fn or_nans(a: f32, b: f32, y: f32) -> f32 { return or_nan(a, or_nan(b, y)); }

fn hypotenuse_of_any(a: f32, b: f32) -> f32 {
    if (is_infinite(a) || is_infinite(b)) { return of_bits(0x7f800000u); }
    return or_nans(a, b, hypotenuse(a, b));
}

fn sign_copied(a: f32, b: f32) -> f32 {
    return bitcast<f32>(magnitude(a) | (bitcast<u32>(b) & 0x80000000u));
}

fn binary_7(a: f32, b: f32) -> f32 { return or_nans(a, b, floored_rest(a, b)); }
fn binary_8(a: f32, b: f32) -> f32 { return or_nans(a, b, truncated_rest(a, b)); }
fn binary_9(a: f32, b: f32) -> f32 { return or_nans(a, b, floored_quotient(a, b)); }
fn binary_10(a: f32, b: f32) -> f32 { return angle_of(a, b); }
fn binary_11(a: f32, b: f32) -> f32 { return hypotenuse_of_any(a, b); }
fn binary_12(a: f32, b: f32) -> f32 { return sign_copied(a, b); }
fn binary_14(a: f32, b: f32) -> f32 { return or_nans(a, b, log_of_sum(a, b)); }
