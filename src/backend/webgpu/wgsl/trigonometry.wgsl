// Sine and cosine of any float32.

// 2 / pi: 32 zero bits, then the bits after the point.
fn two_over_pi(word: u32) -> u32 {
    switch word {
        case 0u: { return 0u; }
        case 1u: { return 0xa2f9836eu; }
        case 2u: { return 0x4e441529u; }
        case 3u: { return 0xfc2757d1u; }
        case 4u: { return 0xf534ddc0u; }
        case 5u: { return 0xdb629599u; }
        case 6u: { return 0x3c439041u; }
        default: { return 0xfe5163abu; }
    }
}

// 32 bits of it from a bit on.
fn bits_from(bit: u32) -> u32 {
    let word = bit / 32u;
    let shift = bit % 32u;
    let next = select(two_over_pi(word + 1u) >> (32u - shift), 0u, shift == 0u);
    return (two_over_pi(word) << shift) | next;
}

struct Angle {
    rest: f32,     // -pi / 4 to pi / 4
    quarters: u32, // of a turn, modulo 4
}

// x 2 / pi modulo 4: x is a 24-bit number times 2^e; the bits of 2 / pi that give multiples of 4
// are left out (Payne and Hanek, 1983), 96 others are enough. x > pi / 4 and finite.
fn reduced(x: f32) -> Angle {
    let m = (bitcast<u32>(x) & 0x007fffffu) | 0x00800000u;
    let bit = (bitcast<u32>(x) >> 23u) - 120u; // e + 30
    let low = product(m, bits_from(bit + 64u));
    let middle = product(m, bits_from(bit + 32u));
    let second = middle.x + low.y;
    let carry = select(0u, 1u, second < low.y);
    let first = m * bits_from(bit) + middle.y + carry;
    var high = (first << 2u) | (second >> 30u); // after the point
    var rest = (second << 2u) | (low.x >> 30u);
    let is_above = (high >> 31u) != 0u; // the half: below the next quarter
    if (is_above) {
        high = ~high;
        rest = ~rest;
    }
    let zeros = min(countLeadingZeros(high), 31u);
    let top = (high << zeros) | select(rest >> (32u - zeros), 0u, zeros == 0u);
    let r = f32(top) * bitcast<f32>((95u - zeros) << 23u) * 1.57079633;
    return Angle(select(r, -r, is_above), (first >> 30u) + select(0u, 1u, is_above));
}

// quarter: 0 for the sine, 1 for the cosine.
fn sine(x: f32, quarter: u32) -> f32 {
    if (magnitude(x) >= 0x7f800000u) { return of_bits(0x7fc00000u); }
    var angle = Angle(abs(x), 0u);
    if (angle.rest > 0.785398163) { angle = reduced(angle.rest); }
    let r = angle.rest;
    let z = r * r;
    let quarters = angle.quarters + quarter;
    var y: f32;
    if ((quarters & 1u) == 0u) {
        let p = fma(z, fma(z, 2.72477124e-6, -0.000198400721), 0.00833333186);
        y = fma(r * z, fma(z, p, -0.166666667), r);
    } else {
        let p = fma(z, fma(z, 2.4563195e-5, -0.00138884267), 0.0416666666);
        y = fma(z, fma(z, p, -0.5), 1.0);
    }
    let is_turned = (quarters & 2u) != 0u;
    return select(y, -y, is_turned != (is_negative(x) && quarter == 0u));
}
