// n rounds of 8 chains of multiplications and additions: 64 operations a round, in float32.
struct Params { n: u32, y: u32, x: u32 }

@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let a = vec4<f32>(0.999, 0.998, 0.997, 0.996);
    let b = vec4<f32>(0.001 * f32(id.x % 7u));
    var v = array<vec4<f32>, 8>();
    for (var c = 0u; c < 8u; c++) { v[c] = vec4<f32>(f32(id.x % 64u + c)); }
    for (var i = 0u; i < params.n; i++) {
        v[0] = fma(v[0], a, b);
        v[1] = fma(v[1], a, b);
        v[2] = fma(v[2], a, b);
        v[3] = fma(v[3], a, b);
        v[4] = fma(v[4], a, b);
        v[5] = fma(v[5], a, b);
        v[6] = fma(v[6], a, b);
        v[7] = fma(v[7], a, b);
    }
    let sum = v[0] + v[1] + v[2] + v[3] + v[4] + v[5] + v[6] + v[7];
    if (sum.x + sum.y + sum.z + sum.w == -1.0) { store_y(params.y, 1u); }
}
