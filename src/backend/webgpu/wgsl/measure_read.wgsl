// Reads x, n vectors, as fast as it can: what it finds is written in a case that does not happen.
struct Params { n: u32, y: u32, x: u32 }

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
    let n = params.n / groups.x / 1024u * 1024u; // of a workgroup, side by side
    let begin = params.x + group.x * n + local;
    var sum = vec4<u32>(u32(SALT));
    for (var i = begin; i < begin + n; i += 1024u) {
        sum ^= load_x(i) ^ load_x(i + 256u) ^ load_x(i + 512u) ^ load_x(i + 768u);
    }
    if (all(sum == vec4<u32>(0x9e3779b9u, 0x7f4a7c15u, 0xf39cc060u, 0x5cedc834u))) {
        store_y(params.y, sum.x);
    }
}
