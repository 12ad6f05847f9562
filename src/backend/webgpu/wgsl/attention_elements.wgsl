// Keys and values at any strides.
fn dot_keys(at: vec4<u32>, query: u32) -> array<vec4<f32>, 4> {
    var s0 = vec4<f32>(0.0);
    var s1 = s0;
    var s2 = s0;
    var s3 = s0;
    for (var l = 0u; l < params.d; l++) {
        let q = queries[query + l];
        let offset = l * params.k.w;
        s0 = fma(vec4<f32>(load_k(at.x + offset)), q, s0);
        s1 = fma(vec4<f32>(load_k(at.y + offset)), q, s1);
        s2 = fma(vec4<f32>(load_k(at.z + offset)), q, s2);
        s3 = fma(vec4<f32>(load_k(at.w + offset)), q, s3);
    }
    return array<vec4<f32>, 4>(s0, s1, s2, s3);
}

// Elements [i, i + 4) of a value; past the last element, the last one.
fn four_of_value(at: u32, i: u32) -> vec4<f32> {
    let l = min(vec4<u32>(i, i + 1u, i + 2u, i + 3u), vec4<u32>(params.e - 1u)) * params.v.w + at;
    return vec4<f32>(load_v(l.x), load_v(l.y), load_v(l.z), load_v(l.w));
}
