// Rows of x as integers, a workgroup each: y [block][row][word], see quantize.wgsl.
struct Params {
    m: u32,
    y: u32,
    x: u32, x_row: u32, x_element: u32,
    u: u32, x_step: u32,              // from one to the next of u rows that x_row leads to
}

var<private> row: u32;

fn quantized(i: u32) -> vec4<f32> {
    let at = params.x + row / params.u * params.x_row + row % params.u * params.x_step +
        4u * i * params.x_element;
    let step = params.x_element;
    return vec4<f32>(load_x(at), load_x(at + step), load_x(at + 2u * step), load_x(at + 3u * step));
}

fn word_at(block: u32, i: u32) -> u32 { return params.y + 20u * (block * params.m + row) + i; }
fn put_word(block: u32, i: u32, value: u32) { store_y(word_at(block, i), value); }
fn get_word(block: u32, i: u32) -> u32 { return load_y(word_at(block, i)); }

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
    row = group.y * groups.x + group.x;
    if (group.y * groups.x + group.x >= params.m) { return; }
    quantize_row(local);
}
