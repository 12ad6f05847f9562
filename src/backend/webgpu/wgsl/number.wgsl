// Numbers of all dtypes as integers: a float's bits are taken apart and put together. Of X and Y:
// BITS, EXPONENT and FRACTION (bits of a float's); IS_FINITE: there are no infinities, and NaN is
// the one number of all bits set.

// Of magnitude high.low / 2^63 2^exponent, the highest bit set.
struct Number {
    kind: u32,
    is_negative: bool,
    exponent: i32,
    low: u32,
    high: u32,
}
const ZERO = 0u;
const FINITE = 1u;
const INFINITE = 2u;
const NAN = 3u;

const X_FIELD = u32(X_EXPONENT);
const Y_FIELD = u32(Y_EXPONENT);

fn shifted_left(low: u32, high: u32, n: u32) -> vec2<u32> {
    if (n == 0u) { return vec2<u32>(low, high); }
    if (n >= 32u) { return vec2<u32>(0u, low << (n - 32u)); }
    return vec2<u32>(low << n, (high << n) | (low >> (32u - n)));
}

fn shifted_right(low: u32, high: u32, n: u32) -> vec2<u32> {
    if (n == 0u) { return vec2<u32>(low, high); }
    if (n >= 64u) { return vec2<u32>(0u, 0u); }
    if (n >= 32u) { return vec2<u32>(high >> (n - 32u), 0u); }
    return vec2<u32>((low >> n) | (high << (32u - n)), high >> n);
}

fn negated(x: vec2<u32>) -> vec2<u32> {
    return vec2<u32>(0u - x.x, ~x.y + select(0u, 1u, x.x == 0u));
}

// Of magnitude high.low / 2^63 2^exponent.
fn normal(is_negative: bool, exponent: i32, low: u32, high: u32) -> Number {
    if ((low | high) == 0u) { return Number(ZERO, is_negative, 0, 0u, 0u); }
    let zeros = select(countLeadingZeros(high), 32u + countLeadingZeros(low), high == 0u);
    let m = shifted_left(low, high, zeros);
    return Number(FINITE, is_negative, exponent - i32(zeros), m.x, m.y);
}

// Of the bits except the sign, of a float of X_BITS at the upper end.
fn is_all_ones(x: u32) -> bool {
    return (x << 1u) >> (u32(33 - X_BITS) % 32u) == (1u << (u32(X_BITS - 1) % 32u)) - 1u;
}

// x: the bits, those of a float at the upper end.
fn from_float(x: vec2<u32>) -> Number {
    let is_negative = (x.y >> 31u) != 0u;
    let field = (x.y << 1u) >> (32u - X_FIELD);
    let bias = i32(1u << (X_FIELD - 1u)) - 1;
    let m = shifted_left(x.x, x.y, X_FIELD); // a bit of the exponent, the fraction
    let fraction = m.y & 0x7fffffffu;
    if (X_IS_FINITE == 1 && is_all_ones(x.y)) {
        return Number(NAN, is_negative, 0, 0u, 0u);
    }
    if (X_IS_FINITE == 0 && field == (1u << X_FIELD) - 1u) {
        let is_nan = (m.x | fraction) != 0u;
        return Number(select(INFINITE, NAN, is_nan), is_negative, 0, 0u, 0u);
    }
    if (field == 0u) { return normal(is_negative, 1 - bias, m.x, fraction); }
    return Number(FINITE, is_negative, i32(field) - bias, m.x, fraction | 0x80000000u);
}

// To the nearest, ties to even; bits at the lower end. Of fractions below 32 bits the low word is
// all there is.
fn to_float(x: Number) -> vec2<u32> {
    let top = i32(1u << Y_FIELD) - 1; // of the field of the exponent
    let all = (1u << (u32(Y_BITS - 1) % 32u)) - 1u; // NaN, where it stands for infinity, too
    let infinity = select(u32(top) << (u32(Y_FRACTION) % 32u), all, Y_IS_FINITE == 1);
    let is_wide = Y_BITS == 64;
    var r = vec2<u32>(0u, 0u);
    if (x.kind == INFINITE) { r.x = infinity; }
    if (x.kind == NAN) { r.x = infinity | (infinity >> 1u); }
    if (x.kind == FINITE) {
        let e = x.exponent + i32(1u << (Y_FIELD - 1u)) - 1;
        let drop = u32(63 - Y_FRACTION) + u32(max(1 - e, 0));
        if (e >= top + Y_IS_FINITE) {
            r.x = infinity;
        } else if (drop <= 64u) {
            let kept = shifted_right(x.low, x.high, drop);
            let lost = shifted_left(x.low, x.high, 64u - drop);
            let is_above = lost.y > 0x80000000u || (lost.y == 0x80000000u && lost.x != 0u);
            let is_tie = lost.y == 0x80000000u && lost.x == 0u;
            r = kept;
            if (is_above || (is_tie && (kept.x & 1u) != 0u)) {
                r.x += 1u;
                r.y += select(0u, 1u, r.x == 0u);
            }
            // The leading one counts in the exponent, and so does a carry.
            let exponent = u32(max(e - 1, 0)) << (u32(Y_FRACTION) % 32u);
            if (is_wide) { r.y += exponent; } else { r.x += exponent; }
            if (Y_IS_FINITE == 1) { r.x = min(r.x, all); }
        }
    }
    if (is_wide && x.kind >= INFINITE) { r = r.yx; }
    let sign = select(0u, 1u << (u32(Y_BITS - 1) % 32u), x.is_negative);
    if (is_wide) { return vec2<u32>(r.x, r.y | sign); }
    return vec2<u32>(r.x | sign, 0u);
}
