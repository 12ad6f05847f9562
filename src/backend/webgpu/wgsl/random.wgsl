// y = random numbers: element i by word i % 4 of Philox's block i / 4 (Salmon et al., 2011); FN is
// wk_random_fn. state: seed and stream, their low words first. a, b: bits of shift and scale; own:
// bits of the ends of a uniform range, and the number of element 0 in the stream.
fn philox(block: vec2<u32>, state: u32) -> vec4<u32> {
    var key = vec2<u32>(load_state(state), load_state(state + 1u));
    var c = vec4<u32>(block, load_state(state + 2u), load_state(state + 3u));
    for (var round = 0; round < 10; round++) {
        let a = product(0xd2511f53u, c.x);
        let b = product(0xcd9e8d57u, c.z);
        c = vec4<u32>(b.y ^ c.y ^ key.x, b.x, a.y ^ c.w ^ key.y, a.x);
        key += vec2<u32>(0x9e3779b9u, 0xbb67ae85u);
    }
    return c;
}

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

// Four from one on, of two blocks where they do not begin with one; if LANES is 1 the first counts.
fn numbers_from(number: vec2<u32>, state: u32) -> vec4<f32> {
    let block = vec2<u32>((number.x >> 2u) | (number.y << 30u), number.y >> 2u);
    let at = number.x & 3u;
    let first = numbers(block, state);
    if (at == 0u) { return first; }
    if (LANES == 1) { return vec4<f32>(first[at]); }
    let low = block.x + 1u;
    let next = numbers(vec2<u32>(low, block.y + select(0u, 1u, low == 0u)), state);
    if (at == 1u) { return vec4<f32>(first.yzw, next.x); }
    if (at == 2u) { return vec4<f32>(first.zw, next.xy); }
    return vec4<f32>(first.w, next.xyz);
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

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
    let i = thread_index(group, groups, local);
    if (i >= params.count) { return; }
    let at = positions(i);
    let low = params.own.z + params.begin + i * u32(LANES);
    let number = vec2<u32>(low, params.own.w + select(0u, 1u, low < params.own.z));
    store_lanes_y(at.x, placed(numbers_from(number, at.y)));
}
