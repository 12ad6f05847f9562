// Division of floats whose quotient is a whole number.

// The rest of a / b, of magnitudes as bits: 0 < b <= a, finite. Exact: a division of integers, 8
// bits at a time.
fn rest_of(a: u32, b: u32) -> u32 {
    let least = max(b >> 23u, 1u);
    let d = (b & 0x007fffffu) | select(0u, 0x00800000u, b >= 0x00800000u);
    var m = ((a & 0x007fffffu) | select(0u, 0x00800000u, a >= 0x00800000u)) % d;
    for (var n = max(a >> 23u, 1u) - least; n > 0u; n -= min(n, 8u)) {
        m = (m << min(n, 8u)) % d;
    }
    if (m == 0u) { return 0u; }
    // In units of the last place of b.
    let zeros = countLeadingZeros(m) - 8u;
    if (zeros < least) { return ((m << zeros) & 0x007fffffu) | ((least - zeros) << 23u); }
    return m << (least - 1u);
}

fn truncated_rest(a: f32, b: f32) -> f32 {
    if (magnitude(a) >= 0x7f800000u || magnitude(b) == 0u) { return of_bits(0x7fc00000u); }
    if (magnitude(b) > magnitude(a)) { return a; }
    let rest = rest_of(magnitude(a), magnitude(b));
    return bitcast<f32>(rest | (bitcast<u32>(a) & 0x80000000u));
}

fn is_of_other_sign(rest: f32, b: f32) -> bool {
    return magnitude(rest) != 0u && !is_nan(rest) && is_negative(rest) != is_negative(b);
}

fn floored_rest(a: f32, b: f32) -> f32 {
    let rest = truncated_rest(a, b);
    if (is_of_other_sign(rest, b)) { return rest + b; }
    if (magnitude(rest) == 0u) { return bitcast<f32>(bitcast<u32>(b) & 0x80000000u); }
    return rest;
}

fn floored_quotient(a: f32, b: f32) -> f32 {
    if (magnitude(b) == 0u) { return quotient(a, b); }
    var p = a;
    var q = b;
    if (magnitude(b) < 0x21800000u && magnitude(a) < 0x5f800000u) { // 2^-60, 2^64
        p = times(a, 0x1p60f);
        q = times(b, 0x1p60f);
    }
    let rest = truncated_rest(p, q);
    if (is_nan(rest)) { return rest; }
    return round(quotient(p - rest, q)) - select(0.0, 1.0, is_of_other_sign(rest, q));
}
