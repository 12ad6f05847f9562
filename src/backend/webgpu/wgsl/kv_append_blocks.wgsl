// An item is 32 elements, to a block of UNITS numbers of 16 bits, q8_0 (17) or q4_0 (9): as
// quant/encode_small.c does it, the extreme element on the outermost level.
const PEAK = select(-8.0, 127.0, UNITS == 17);

// Of the nearest finite f16 that is not 0 unless d is.
fn scale_bits(d: f32) -> u32 {
    let magnitude = clamp(abs(d), 0x1p-24, 65504.0);
    return select(f16_bits(select(magnitude, -magnitude, d < 0.0)), 0u, d == 0.0);
}

fn element(first: u32, i: u32) -> f32 { return load_fresh(first + i * (params.fresh.z / 32u)); }

// Two signed bytes, or four halves of bytes with 8 added.
fn unit(first: u32, i: u32, inverse: f32) -> i32 {
    if (UNITS == 17) {
        let x = vec2<f32>(element(first, 2u * i), element(first, 2u * i + 1u));
        let q = vec2<i32>(clamp(round(x * inverse), vec2<f32>(-127.0), vec2<f32>(127.0)));
        return (q.x & 255) | (q.y << 8u);
    }
    let x = vec4<f32>(element(first, 2u * i), element(first, 2u * i + 16u),
                      element(first, 2u * i + 1u), element(first, 2u * i + 17u));
    let q = vec4<i32>(clamp(round(x * inverse), vec4<f32>(-8.0), vec4<f32>(7.0))) + 8;
    return q.x | (q.y << 4u) | (q.z << 8u) | (q.w << 12u);
}

fn put(to: u32, first: u32) {
    var low = 0.0;
    var high = 0.0;
    for (var i = 0u; i < 32u; i++) {
        let x = element(first, i);
        low = min(low, x);
        high = max(high, x);
    }
    let bits = scale_bits(select(high, low, -low > high) / PEAK);
    let d = unpack2x16float(bits).x;
    let inverse = select(1.0 / d, 0.0, d == 0.0);
    store_cache(to, bitcast<i32>(bits));
    for (var i = 0u; i < u32(UNITS) - 1u; i++) { store_cache(to + 1u + i, unit(first, i, inverse)); }
}
