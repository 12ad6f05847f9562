// Functions of float32 that WGSL defines too loosely, or not for all numbers. NaN gives NaN.
// Numbers are classified by their bits, since compilers may assume that NaN and infinities do not
// occur. Polynomials are fits of least relative error.

fn magnitude(x: f32) -> u32 { return bitcast<u32>(x) & 0x7fffffffu; }
fn is_nan(x: f32) -> bool { return magnitude(x) > 0x7f800000u; }
fn is_infinite(x: f32) -> bool { return magnitude(x) == 0x7f800000u; }
fn is_negative(x: f32) -> bool { return (bitcast<u32>(x) >> 31u) != 0u; }
fn or_nan(x: f32, y: f32) -> f32 { return select(y, x, is_nan(x)); }

// Bits that no constant expression may have.
fn of_bits(bits: u32) -> f32 {
    var hidden = bits;
    return bitcast<f32>(hidden);
}

// -0 and 0 are equal; subnormals are distinct. Not for NaN.
fn order(x: f32) -> i32 {
    let m = bitcast<i32>(magnitude(x));
    return select(m, -m, is_negative(x));
}

// x 2^n, -252 <= n <= 254.
fn scaled(x: f32, n: i32) -> f32 {
    let half = n >> 1u;
    let first = bitcast<f32>(u32(half + 127) << 23u);
    return (x * first) * bitcast<f32>(u32(n - half + 127) << 23u);
}

// e^r of |r| <= ln 2 / 2, less 1.
fn exp_minus_one_near_zero(r: f32) -> f32 {
    var p = fma(r, 0.00139421611, 0.00836377614);
    p = fma(r, p, 0.0416663635);
    p = fma(r, p, 0.166665734);
    return fma(r * r, fma(r, p, 0.5), r);
}

// 2^n e^r, ln 2 in two parts (Cody and Waite, 1980), between which a bound that changes nothing
// keeps compilers from adding them up.
fn exp_of(x: f32) -> f32 {
    if (is_nan(x)) { return x; }
    let bounded = clamp(x, -104.0, 89.0);
    let n = round(bounded * 1.44269504);
    let r = fma(n, 2.12194440e-4, clamp(fma(n, -0.693359375, bounded), -1.0, 1.0));
    return scaled(1.0 + exp_minus_one_near_zero(r), i32(n));
}

fn exp_minus_one(x: f32) -> f32 {
    if (magnitude(x) < 0x3eb17218u) { return exp_minus_one_near_zero(x); }
    return exp_of(x) - 1.0;
}

// log(1 + f) of -0.3 <= f <= 1, by 2 artanh(f / (2 + f)).
fn log_plus_one(f: f32) -> f32 {
    let s = f / fma(f, 0.5, 1.0); // twice that: not subnormal where f is not
    let z = 0.25 * s * s;
    var p = fma(z, 0.23253454, 0.217001235);
    p = fma(z, p, 0.285928039);
    p = fma(z, p, 0.399996965);
    return fma(0.5 * s * z, fma(z, p, 0.666666674), s);
}

// scale log x, with scale log 2 = high + low, high times an exponent exact.
fn logarithm(x: f32, scale: f32, high: f32, low: f32) -> f32 {
    var bits = bitcast<u32>(x);
    if (magnitude(x) == 0u) { return of_bits(0xff800000u); }
    if (bits == 0x7f800000u || is_nan(x)) { return x; }
    if (is_negative(x)) { return of_bits(0x7fc00000u); }
    var n = 0;
    if (bits < 0x00800000u) { // subnormal: a whole number of 2^-149
        bits = bitcast<u32>(f32(bits));
        n = -149;
    }
    let shifted = bits - 0x3f3504f3u; // of sqrt 1/2
    n += bitcast<i32>(shifted) >> 23u;
    let m = bitcast<f32>((shifted & 0x007fffffu) + 0x3f3504f3u);
    let tail = fma(f32(n), low, scale * log_plus_one(m - 1.0));
    return fma(f32(n), high, tail);
}

fn log_of(x: f32) -> f32 { return logarithm(x, 1.0, 0.693359375, -2.12194440e-4); }

fn tanh_of(x: f32) -> f32 {
    if (is_nan(x)) { return x; }
    if (magnitude(x) < 0x3f200000u) { // 0.625
        let z = x * x;
        var p = fma(z, -0.00611318802, 0.0210100787);
        p = fma(z, p, -0.0538540691);
        p = fma(z, p, 0.133327945);
        return fma(x * z, fma(z, p, -0.333333292), x);
    }
    let y = 1.0 - 2.0 / (exp_of(2.0 * min(abs(x), 20.0)) + 1.0);
    return select(y, -y, is_negative(x));
}

fn sigmoid(x: f32) -> f32 {
    let e = exp_of(-abs(x)); // never too large
    return select(1.0, e, is_negative(x)) / (1.0 + e);
}

// erfc of x >= 0: e^(-x^2) t G(t), t = 1 / (1 + x / 2).
fn erfc_of_positive(x: f32) -> f32 {
    let bounded = min(x, 10.5);
    let t = 1.0 / fma(bounded, 0.5, 1.0);
    var p = fma(t, -0.0593162877, 0.285782411);
    p = fma(t, p, -0.489701326);
    p = fma(t, p, 0.280929893);
    p = fma(t, p, -0.0285979529);
    p = fma(t, p, 0.203521145);
    p = fma(t, p, 0.242893075);
    p = fma(t, p, 0.282404225);
    return exp_of(-bounded * bounded) * t * fma(t, p, 0.282084773);
}

fn erf_of(x: f32) -> f32 {
    if (is_nan(x)) { return x; }
    if (magnitude(x) < 0x3f800000u) {
        let z = x * x;
        var p = fma(z, -0.000566015301, 0.00492478896);
        p = fma(z, p, -0.0267177069);
        p = fma(z, p, 0.112804116);
        p = fma(z, p, -0.376123557);
        return x * fma(z, p, 1.12837913);
    }
    let y = 1.0 - erfc_of_positive(abs(x));
    return select(y, -y, is_negative(x));
}

fn relu(x: f32) -> f32 { return select(x, 0.0, is_negative(x) && !is_nan(x)); }

fn silu(x: f32) -> f32 { return x * sigmoid(x); }

// 1 + tanh u = 2 sigmoid(2 u), which does not cancel.
fn gelu(x: f32) -> f32 {
    let u = x * fma(x * x, 0.044715, 1.0);
    return x * sigmoid(1.59576912 * u);
}

fn gelu_erf(x: f32) -> f32 {
    if (is_nan(x)) { return x; }
    let e = erfc_of_positive(abs(x) * 0.707106781);
    return 0.5 * x * select(2.0 - e, e, is_negative(x));
}

fn softplus(x: f32) -> f32 { return relu(x) + log_plus_one(exp_of(-abs(x))); }

// Devices may take subnormals for 0; they are whole numbers of 2^-149.
fn is_subnormal(x: f32) -> bool { return magnitude(x) - 1u < 0x007fffffu; }
fn whole(x: f32) -> f32 {
    let m = f32(magnitude(x));
    return select(m, -m, is_negative(x));
}

fn times(a: f32, b: f32) -> f32 {
    if (is_subnormal(a)) { return (whole(a) * (b * 0x1p-75f)) * 0x1p-74f; }
    if (is_subnormal(b)) { return (whole(b) * (a * 0x1p-75f)) * 0x1p-74f; }
    return a * b;
}

// Of divisors above 2^126 or subnormal WGSL says nothing.
fn quotient(a: f32, b: f32) -> f32 {
    let m = magnitude(b);
    if (is_subnormal(b)) {
        if (is_subnormal(a)) { return whole(a) / whole(b); }
        return ((a * 0x1p75f) / whole(b)) * 0x1p74f;
    }
    if (is_subnormal(a)) { return ((whole(a) * 0x1p-75f) / b) * 0x1p-74f; }
    if (m >= 0x7e800000u && m < 0x7f800000u) { return (0.25 * a) / (0.25 * b); }
    return a / b;
}

fn square_root(x: f32) -> f32 {
    let bits = bitcast<u32>(x);
    if (magnitude(x) == 0u || bits == 0x7f800000u || is_nan(x)) { return x; }
    if (is_negative(x)) { return of_bits(0x7fc00000u); }
    if (bits < 0x00800000u) { return sqrt(f32(2u * bits)) * 0x1p-75f; }
    return sqrt(x);
}
