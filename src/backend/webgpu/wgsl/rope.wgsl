// Turns by the position. All angles are fractions of a whole turn in fixed point, where products
// wrap as angles do: exact for positions of any size. What one position turns pair u by is
//     low(u % 16) * high(u / 16), with 64 bits after the point,
// and params.turn has the strides of positions, 16 numbers low, 32 high, two to a vector as
// (upper, lower word). high(0) is 1 less the last bit.

// The upper word of a product.
fn upper(a: u32, b: u32) -> u32 { return product(a, b).y; }

// The upper two words, two of the last bit too small at most.
fn upper_two(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
    let first = upper(a.x, b.y);
    let second = upper(a.y, b.x);
    let one = a.x * b.x + first;
    let both = one + second;
    return vec2<u32>(upper(a.x, b.x) + select(0u, 1u, one < first) + select(0u, 1u, both < second),
                     both);
}

fn fixed_at(begin: u32, i: u32) -> vec2<u32> {
    let both = params.turn[begin + i / 2u];
    return select(both.xy, both.zw, i % 2u == 1u);
}

// Cosine and sine: from the nearest quarter on, by Taylor polynomials, which leave out 3e-9.
fn cosine_and_sine(turn: u32) -> vec2<f32> {
    let quarter = (turn + 0x20000000u) >> 30u;
    let r = f32(bitcast<i32>(turn - (quarter << 30u))) * 1.46291808e-9; // 2 pi / 2^32
    let z = r * r;
    let sine = r + r * z * (-1.0 / 6.0 + z * (1.0 / 120.0 + z * (-1.0 / 5040.0 + z / 362880.0)));
    let cosine = 1.0 + z * (-0.5 + z * (1.0 / 24.0 + z * (-1.0 / 720.0 + z * (1.0 / 40320.0 -
                 z / 3628800.0))));
    let turned = select(vec2<f32>(cosine, sine), vec2<f32>(-sine, cosine), quarter % 2u == 1u);
    return select(turned, -turned, quarter >= 2u);
}

fn turn_of(at: vec2<u32>, unit: u32) -> vec2<f32> {
    let of_one = upper_two(fixed_at(1u, unit % 16u), fixed_at(9u, unit / 16u));
    let i = params.first.z + dot(at, params.turn[0].xy);
    let position = load_positions(i);
    var turn = position * of_one.x + upper(position, of_one.y);
    if (IS_WIDE == 1) { turn += load_positions(i + 1u) * of_one.y; }
    return cosine_and_sine(turn);
}
