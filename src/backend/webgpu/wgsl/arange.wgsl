// y[i] = start + i step.
struct Params {
    count: u32,
    first: u32,
    stride: u32,
    unused: u32,
    start: vec2<u32>,
    step: vec2<u32>,
}

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
    let i = (group.y * groups.x + group.x) * 64u + local;
    if (i >= params.count) { return; }
    put(params.first + i * params.stride, i);
}
