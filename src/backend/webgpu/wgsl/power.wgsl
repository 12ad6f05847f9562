// x^y in 32-bit integers where floats would lose what counts: an error of log2 x counts y times.

// a b / 2^32, rounded down.
fn high_product(a: i32, b: i32) -> i32 {
    let high = bitcast<i32>(product(bitcast<u32>(a), bitcast<u32>(b)).y);
    return high - select(0, b, a < 0) - select(0, a, b < 0);
}

// log2(1 + f) / f in units of 2^-30; f in units of 2^-32, sqrt 1/2 <= 1 + f < sqrt 2.
fn log2_ratio(f: i32) -> i32 {
    var p = -153372183 + high_product(83075080, f);
    p = 155422663 + high_product(p, f);
    p = -153713192 + high_product(p, f);
    p = 170477757 + high_product(p, f);
    p = -193596284 + high_product(p, f);
    p = 221379107 + high_product(p, f);
    p = -258184621 + high_product(p, f);
    p = 309814560 + high_product(p, f);
    p = -387270409 + high_product(p, f);
    p = 516360684 + high_product(p, f);
    p = -774541003 + high_product(p, f);
    return 1549082005 + high_product(p, f);
}

// Whole part and fraction (units of 2^-32) of y log2 x; x and y finite, above 0 and positive or
// negative. Beyond 2^12 only the sign counts.
struct Exponent {
    whole: i32,
    fraction: u32,
}

fn exponent_of(x: f32, y: f32) -> Exponent {
    var bits = bitcast<u32>(x);
    var e = -127;
    if (bits < 0x00800000u) { // subnormal: a whole number of 2^-149
        bits = bitcast<u32>(f32(bits));
        e = -276;
    }
    e += bitcast<i32>(bits >> 23u);
    var m = ((bits & 0x007fffffu) | 0x00800000u) << 8u; // units of 2^-31
    if (m >= 0xb504f334u) { // sqrt 2
        m = m >> 1u;
        e += 1;
    }
    // log2 x = e + f ratio, in units of 2^-54: a sign and 64 bits.
    let f = bitcast<i32>(m - 0x80000000u);
    var l = product(u32(abs(f)) >> 7u, bitcast<u32>(log2_ratio(2 * f)));
    var is_negative = f < 0;
    let whole = u32(abs(e)) << 22u;
    if (e != 0 && (e < 0) == is_negative) {
        l.y += whole;
    } else if (e != 0) { // the larger one has e, for |f ratio| <= 1/2
        l.y = whole - l.y - select(0u, 1u, l.x != 0u);
        l.x = 0u - l.x;
        is_negative = e < 0;
    }
    if ((l.x | l.y) == 0u) { return Exponent(0, 0u); }
    // 32 bits of it: log2 |..| = top 2^(32 - zeros - 54).
    var zeros = countLeadingZeros(l.y);
    if (l.y == 0u) {
        zeros = 32u + countLeadingZeros(l.x);
        l = vec2<u32>(0u, l.x << (zeros - 32u));
    } else if (zeros > 0u) {
        l = vec2<u32>(l.x << zeros, (l.y << zeros) | (l.x >> (32u - zeros)));
    }
    let y_bits = bitcast<u32>(y);
    var y_exponent = bitcast<i32>((y_bits >> 23u) & 0xffu);
    var y_m = (y_bits & 0x007fffffu) | 0x00800000u;
    if (y_exponent == 0) {
        y_m = y_bits & 0x007fffffu;
        y_exponent = 1;
    }
    if ((y_bits >> 31u) != 0u) { is_negative = !is_negative; }
    // The product of 32 and 24 bits, whose units are 2^(y_exponent - 150 + 32 - zeros - 54).
    let t = product(l.y, y_m);
    let unit = y_exponent - 172 - bitcast<i32>(zeros);
    var r = Exponent(0, 0u);
    // To units of 2^-32.
    let right = -32 - unit; // where it is not above 0, t is far too large
    if (right <= 0 || (right < 32 && (t.y >> u32(right)) >= 0x1000u)) {
        r.whole = 0x1000;
    } else if (right < 32) {
        r = Exponent(bitcast<i32>(t.y >> u32(right)),
                     (t.y << u32(32 - right)) | (t.x >> u32(right)));
    } else if (right < 64) {
        r.fraction = t.y >> u32(right - 32);
    }
    if (is_negative) {
        let borrow = select(0, 1, r.fraction != 0u);
        r = Exponent(-r.whole - borrow, 0u - r.fraction);
    }
    return r;
}

// 2^(n + r), |r| <= 1/2.
fn exp2_near(n: i32, r: f32) -> f32 {
    var p = fma(r, 0.000154571306, 0.00133593617);
    p = fma(r, p, 0.00961807813);
    p = fma(r, p, 0.0555044201);
    p = fma(r, p, 0.240226507);
    return scaled(fma(r, fma(r, p, 0.693147154), 1.0), n);
}

// 2^(whole + fraction).
fn exp2_of(t: Exponent) -> f32 {
    if (t.whole > 128) { return of_bits(0x7f800000u); }
    if (t.whole < -151) { return 0.0; }
    var n = t.whole;
    var f = bitcast<i32>(t.fraction >> 1u); // units of 2^-31
    if (t.fraction >= 0x80000000u) {
        n += 1;
        f = bitcast<i32>(t.fraction) >> 1u;
    }
    return exp2_near(n, f32(f) * 4.65661287e-10);
}

// Of a float: 0 not whole, 1 even, 2 odd; finite ones.
fn parity(y: f32) -> u32 {
    let exponent = magnitude(y) >> 23u;
    if (magnitude(y) == 0u || exponent > 150u) { return 1u; }
    if (exponent < 127u) { return 0u; }
    let m = (bitcast<u32>(y) & 0x007fffffu) | 0x00800000u;
    let shift = 150u - exponent;
    if ((m & ((1u << shift) - 1u)) != 0u) { return 0u; }
    return 1u + ((m >> shift) & 1u);
}

// As C's pow (ISO C11, F.10.4.4).
fn power(x: f32, y: f32) -> f32 {
    if (magnitude(y) == 0u || bitcast<u32>(x) == 0x3f800000u) { return 1.0; }
    if (is_nan(x) || is_nan(y)) { return of_bits(0x7fc00000u); }
    let m = magnitude(x);
    if (is_infinite(y)) {
        if (m == 0x3f800000u) { return 1.0; }
        return select(0.0, of_bits(0x7f800000u), (m > 0x3f800000u) != is_negative(y));
    }
    let kind = parity(y);
    if (is_negative(x) && kind == 0u && m != 0u && m != 0x7f800000u) {
        return of_bits(0x7fc00000u);
    }
    var result: f32;
    if (m == 0u || m == 0x7f800000u) {
        result = select(0.0, of_bits(0x7f800000u), (m == 0u) == is_negative(y));
    } else {
        result = exp2_of(exponent_of(abs(x), y));
    }
    return select(result, -result, is_negative(x) && kind == 2u);
}
