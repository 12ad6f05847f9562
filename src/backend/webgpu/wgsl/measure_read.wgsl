// Reads x, n vectors, as fast as it can: what it finds is written in a case that does not happen.
struct Params { n: u32, y: u32, x: u32 }

@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3<u32>,
        @builtin(num_workgroups) groups: vec3<u32>) {
    let step = groups.x * 256u;
    var sum = vec4<u32>(u32(SALT));
    for (var i = id.x; i + 3u * step < params.n; i += 4u * step) {
        sum ^= load_x(params.x + i) ^ load_x(params.x + i + step)
            ^ load_x(params.x + i + 2u * step) ^ load_x(params.x + i + 3u * step);
    }
    if (all(sum == vec4<u32>(0x9e3779b9u, 0x7f4a7c15u, 0xf39cc060u, 0x5cedc834u))) {
        store_y(params.y, sum.x);
    }
}
