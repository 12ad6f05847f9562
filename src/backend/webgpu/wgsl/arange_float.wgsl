// In float64: the terms of a series may cancel. Finite, and far from what float64 cannot hold.

// To the 53 bits of a float64, ties to even.
fn rounded(x: Number) -> Number {
    let rest = x.low & 0x7ffu;
    let low = x.low & ~0x7ffu;
    if (rest < 0x400u || (rest == 0x400u && (low & 0x800u) == 0u)) {
        return Number(x.kind, x.is_negative, x.exponent, low, x.high);
    }
    let up = low + 0x800u;
    let high = x.high + select(0u, 1u, up == 0u);
    if (high == 0u) { return Number(x.kind, x.is_negative, x.exponent + 1, 0u, 0x80000000u); }
    return Number(x.kind, x.is_negative, x.exponent, up, high);
}

// What a bit that is lost leaves: an odd last one.
fn sticky(is_lost: bool) -> u32 { return select(0u, 1u, is_lost); }

fn times(x: Number, i: u32) -> Number {
    if (x.kind == ZERO || i == 0u) { return Number(ZERO, false, 0, 0u, 0u); }
    let low = product(x.low, i);
    let high = product(x.high, i);
    let middle = low.y + high.x;
    let top = high.y + select(0u, 1u, middle < low.y);
    let zeros = countLeadingZeros(top);
    let m = shifted_left(middle, top, zeros);
    let spill = shifted_left(low.x, 0u, zeros);
    return Number(FINITE, x.is_negative, x.exponent + 32 - i32(zeros),
                  m.x | spill.y | sticky(spill.x != 0u), m.y);
}

fn sum(p: Number, q: Number) -> Number {
    if (p.kind == ZERO) { return q; }
    if (q.kind == ZERO) { return p; }
    let is_less = p.exponent < q.exponent || (p.exponent == q.exponent &&
                  (p.high < q.high || (p.high == q.high && p.low < q.low)));
    var a = p;
    var b = q;
    if (is_less) {
        a = q;
        b = p;
    }
    // One bit is left free for a carry: neither has more than 53.
    let n = u32(min(a.exponent - b.exponent, 64)) + 1u;
    var small = shifted_right(b.low, b.high, n);
    if (n >= 64u) {
        small = vec2<u32>(1u, 0u);
    } else {
        let lost = shifted_left(b.low, b.high, 64u - n);
        small.x |= sticky((lost.x | lost.y) != 0u);
    }
    let large = shifted_right(a.low, a.high, 1u);
    if (a.is_negative != b.is_negative) { small = negated(small); }
    let low = large.x + small.x;
    let high = large.y + small.y + select(0u, 1u, low < large.x);
    if ((low | high) == 0u) { return Number(ZERO, false, 0, 0u, 0u); } // 1 - 1 is 0, not -0
    return normal(a.is_negative, a.exponent + 1, low, high);
}

fn put(at: u32, i: u32) {
    let term = rounded(times(from_float(params.step), i));
    let y = to_float(rounded(sum(from_float(params.start), term)));
    store_y(at, V_y(y.x));
    if (Y_BITS == 64) { store_y(at + 1u, V_y(y.y)); }
}
