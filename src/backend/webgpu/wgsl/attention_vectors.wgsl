// Values that lie side by side in fours, and keys of which either four elements or one element of
// four keys do (ALONG_KEYS).
fn halves(w: vec2<u32>) -> vec4<f32> {
    return vec4<f32>(unpack2x16float(w.x), unpack2x16float(w.y));
}

fn four_of_key(at: u32) -> vec4<f32> {
    if (IS_HALF != 0) {
        return halves(vec2<u32>(word_of_k(at / 2u), word_of_k(at / 2u + 1u)));
    }
    return bitcast<vec4<f32>>(load_k(at / 4u));
}

fn four_of_value(begin: u32, i: u32) -> vec4<f32> {
    let at = begin + i;
    if (IS_HALF != 0) {
        return halves(vec2<u32>(word_of_v(at / 2u), word_of_v(at / 2u + 1u)));
    }
    return bitcast<vec4<f32>>(load_v(at / 4u));
}

fn dot_along_keys(begin: u32, query: u32) -> array<vec4<f32>, 4> {
    var s0 = vec4<f32>(0.0);
    var s1 = s0;
    var s2 = s0;
    var s3 = s0;
    var at = begin;
    for (var l = 0u; l < params.d; l += u32(WIDTH)) {
        let held = held_query(query + l);
        for (var i = 0u; i < u32(WIDTH) && l + i < params.d; i++) {
            let q = query_of(held, query + l + i, i);
            let k = four_of_key(at);
            s0 = fma(k.xxxx, q, s0);
            s1 = fma(k.yyyy, q, s1);
            s2 = fma(k.zzzz, q, s2);
            s3 = fma(k.wwww, q, s3);
            at += params.k.w;
        }
    }
    return array<vec4<f32>, 4>(s0, s1, s2, s3);
}

fn dot_four(k: vec4<f32>, query: u32, sum: vec4<f32>) -> vec4<f32> {
    var s = fma(k.xxxx, queries[query], sum);
    s = fma(k.yyyy, queries[query + 1u], s);
    s = fma(k.zzzz, queries[query + 2u], s);
    return fma(k.wwww, queries[query + 3u], s);
}

fn dot_keys(at: vec4<u32>, query: u32) -> array<vec4<f32>, 4> {
    if (ALONG_KEYS != 0) { return dot_along_keys(at.x, query); }
    var s0 = vec4<f32>(0.0);
    var s1 = s0;
    var s2 = s0;
    var s3 = s0;
    for (var l = 0u; l < params.d; l += 4u) {
        s0 = dot_four(four_of_key(at.x + l), query + l, s0);
        s1 = dot_four(four_of_key(at.y + l), query + l, s1);
        s2 = dot_four(four_of_key(at.z + l), query + l, s2);
        s3 = dot_four(four_of_key(at.w + l), query + l, s3);
    }
    return array<vec4<f32>, 4>(s0, s1, s2, s3);
}
