// y = random numbers: element i by word i % 4 of Philox's block i / 4 (Salmon et al., 2011). state:
// seed and stream, their low words first. own.zw: the number of element 0 in the stream. numbers()
// makes those of a block of its words, placed() elements of these.
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

// Four from one on, of two blocks where they do not begin with one; if LANES is 1 the first counts.
fn numbers_from(number: vec2<u32>, state: u32) -> vec4<V_y> {
    let block = vec2<u32>((number.x >> 2u) | (number.y << 30u), number.y >> 2u);
    let at = number.x & 3u;
    let first = numbers(block, state);
    if (at == 0u) { return first; }
    if (LANES == 1) {
        let two = select(first.xy, first.zw, at > 1u);
        return vec4<V_y>(select(two.x, two.y, at % 2u == 1u));
    }
    let low = block.x + 1u;
    let next = numbers(vec2<u32>(low, block.y + select(0u, 1u, low == 0u)), state);
    if (at == 1u) { return vec4<V_y>(first.yzw, next.x); }
    if (at == 2u) { return vec4<V_y>(first.zw, next.xy); }
    return vec4<V_y>(first.w, next.xyz);
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
