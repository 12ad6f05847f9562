// random, floats: FN is wk_random_fn, uniform or normal. a, b: bits of shift and scale; own.xy: bits of
// the ends of a uniform range.
// The sine of m 2^-24 turns and some quarters more: what is left of the last quarter is exact, and
// beyond its half the other function is taken from the other side.
fn sine_of_turn(m: u32, quarters: u32) -> f32 {
    let quarter = (m >> 22u) + quarters;
    let rest = m & 0x3fffffu;
    let is_past = rest > 0x200000u;
    let angle = f32(select(rest, 0x400000u - rest, is_past)) * 3.74507028e-7; // pi / 2 2^-22
    let y = sine(angle, select(quarter & 1u, 1u - (quarter & 1u), is_past));
    return select(y, -y, (quarter & 2u) != 0u);
}

// Box and Muller, 1958; the first number from 2^-24 to 1.
fn normal_pair(words: vec2<u32>) -> vec2<f32> {
    let m = words >> vec2<u32>(8u);
    let radius = square_root(-2.0 * log_of(f32(m.x + 1u) * 0x1p-24f));
    return radius * vec2<f32>(sine_of_turn(m.y, 1u), sine_of_turn(m.y, 0u));
}

fn numbers(block: vec2<u32>, state: u32) -> vec4<f32> {
    let words = philox(block, state);
    if (FN == 0) { return vec4<f32>(words >> vec4<u32>(8u)) * 0x1p-24f; }
    return vec4<f32>(normal_pair(words.xy), normal_pair(words.zw));
}

// Uniform: a bound that changes nothing keeps compilers from fusing the product with the sum, which
// would round to other bits.
fn placed(u: vec4<f32>) -> vec4<f32> {
    let shift = vec4<f32>(bitcast<f32>(params.a));
    let scale = vec4<f32>(bitcast<f32>(params.b));
    if (FN != 0) { return fma(scale, u, shift); }
    let least = vec4<f32>(bitcast<f32>(params.own.x));
    let most = vec4<f32>(bitcast<f32>(params.own.y));
    return clamp(shift + clamp(scale * u, vec4<f32>(0.0), scale), least, most);
}
