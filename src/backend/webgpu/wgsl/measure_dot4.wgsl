// n rounds of 8 chains of dot products of four bytes: 64 operations a round.
struct Params { n: u32, y: u32, x: u32 }

@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let a = 0x01ff02feu + id.x;
    var v = array<u32, 8>();
    for (var c = 0u; c < 8u; c++) { v[c] = id.x + c; }
    for (var i = 0u; i < params.n; i++) {
        v[0] += bitcast<u32>(dot4I8Packed(v[0], a));
        v[1] += bitcast<u32>(dot4I8Packed(v[1], a));
        v[2] += bitcast<u32>(dot4I8Packed(v[2], a));
        v[3] += bitcast<u32>(dot4I8Packed(v[3], a));
        v[4] += bitcast<u32>(dot4I8Packed(v[4], a));
        v[5] += bitcast<u32>(dot4I8Packed(v[5], a));
        v[6] += bitcast<u32>(dot4I8Packed(v[6], a));
        v[7] += bitcast<u32>(dot4I8Packed(v[7], a));
    }
    let sum = v[0] ^ v[1] ^ v[2] ^ v[3] ^ v[4] ^ v[5] ^ v[6] ^ v[7];
    if (sum == 0x9e3779b9u) { store_y(params.y, 1u); }
}
