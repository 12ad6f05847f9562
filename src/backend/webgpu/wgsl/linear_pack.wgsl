// y: rows of x as f32, dense, filled up with zeros to a multiple of four elements.
struct Params {
    count: u32, k: u32,
    stride: u32,                      // of y: elements of a row
    y: u32,
    x: u32, x_row: u32, x_element: u32,
    u: u32, x_step: u32,              // from one to the next of u rows that x_row leads to
}

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
    let i = (group.y * groups.x + group.x) * 64u + local;
    if (i >= params.count) { return; }
    let row = i / params.stride;
    let element = i % params.stride;
    var value = 0.0;
    if (element < params.k) {
        let at = params.x + row / params.u * params.x_row + row % params.u * params.x_step;
        value = load_x(at + element * params.x_element);
    }
    store_y(params.y + i, value);
}
