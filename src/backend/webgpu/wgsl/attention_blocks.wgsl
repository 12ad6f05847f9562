// Keys and values in blocks of 32 elements, q8_0 or q4_0: UNITS (17 or 9) numbers of 16 bits, the
// first an f16 scale. Strides and places count these; keys and values are bound as words.
fn signed_bytes(w: u32) -> vec4<f32> {
    return vec4<f32>((vec4<i32>(bitcast<i32>(w)) << vec4<u32>(24u, 16u, 8u, 0u)) >> vec4<u32>(24u));
}

// The lower halves of four bytes, less 8.
fn lower_halves(w: u32) -> vec4<f32> {
    return vec4<f32>((vec4<u32>(w) >> vec4<u32>(0u, 8u, 16u, 24u)) & vec4<u32>(15u)) - 8.0;
}

fn scale_of(w: u32, unit: u32) -> f32 { return unpack2x16float(w >> (16u * (unit & 1u))).x; }

fn words_of_keys(i: vec4<u32>) -> vec4<u32> {
    return vec4<u32>(load_k(i.x), load_k(i.y), load_k(i.z), load_k(i.w));
}

fn dot_four(k: vec4<f32>, query: u32, sum: vec4<f32>) -> vec4<f32> {
    var s = fma(k.xxxx, queries[query], sum);
    s = fma(k.yyyy, queries[query + 1u], s);
    s = fma(k.zzzz, queries[query + 2u], s);
    return fma(k.wwww, queries[query + 3u], s);
}

// A block's words are read once, in order: where it begins in the middle of one, its quants are
// halves of two.
fn dot_keys(at: vec4<u32>, query: u32) -> array<vec4<f32>, 4> {
    var s = array<vec4<f32>, 4>();
    for (var b = 0u; b < params.d / 32u; b++) {
        let unit = at + b * u32(UNITS);
        let word = unit / 2u;
        let is_odd = (unit & vec4<u32>(1u)) == vec4<u32>(1u);
        var before = words_of_keys(word);
        let d = vec4<f32>(scale_of(before.x, unit.x), scale_of(before.y, unit.y),
                          scale_of(before.z, unit.z), scale_of(before.w, unit.w));
        for (var j = 0u; j < u32(UNITS) / 2u; j++) {
            let next = words_of_keys(word + 1u + j);
            let quants = select((before >> vec4<u32>(16u)) | (next << vec4<u32>(16u)), next, is_odd);
            before = next;
            let to = query + 32u * b + 4u * j;
            for (var i = 0u; i < 4u && i < params.n_lanes / 8u; i++) {
                if (UNITS == 17) {
                    s[i] = dot_four(signed_bytes(quants[i]) * d[i], to, s[i]);
                } else {
                    s[i] = dot_four(lower_halves(quants[i]) * d[i], to, s[i]);
                    s[i] = dot_four(lower_halves(quants[i] >> 4u) * d[i], to + 16u, s[i]);
                }
            }
        }
    }
    return s;
}

fn four_of_value(at: u32, i: u32) -> vec4<f32> {
    let block = at + i / 32u * u32(UNITS);
    let d = scale_of(load_v(block / 2u), block);
    let quants = block + 1u + i % (2u * u32(UNITS) - 2u) / 2u;
    var w = load_v(quants / 2u);
    if ((quants & 1u) == 1u) { w = (w >> 16u) | (load_v(quants / 2u + 1u) << 16u); }
    if (UNITS == 17) { return signed_bytes(w) * d; }
    return lower_halves(w >> (4u * (i / 16u % 2u))) * d;
}
