// Rotary position embedding: pairs of each row of x [b, t, h, d] are turned by turn_of(). A thread
// turns one pair or copies one element.
struct Params {
    n: u32,                        // threads that have work
    n_units: u32,                  // of a row: pairs, then elements that are copied
    n_pairs: u32,
    first_pair: u32,
    half: u32,                     // all pairs of a row
    unused_0: u32,
    unused_1: u32,
    unused_2: u32,
    first: vec4<u32>,              // element 0 of the operands
    extent: vec4<u32>,
    y_stride: vec4<u32>,
    x_stride: vec4<u32>,
    turn: array<vec4<u32>, 25>,    // turn_of's own
}

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
    let index = (group.y * groups.x + group.x) * 64u + local;
    if (index >= params.n) { return; }
    let row = index / params.n_units;
    let unit = index - row * params.n_units;
    let place = row / params.extent.z;
    let at = vec3<u32>(place / params.extent.y, place % params.extent.y, row % params.extent.z);
    let y = params.first.x + dot(at, params.y_stride.xyz);
    let x = params.first.y + dot(at, params.x_stride.xyz);
    if (unit >= params.n_pairs) {
        let i = 2u * params.half + unit - params.n_pairs;
        store_y(y + i * params.y_stride.w, load_x(x + i * params.x_stride.w));
        return;
    }
    let pair = params.first_pair + unit;
    let i = select(pair, 2u * pair, IS_INTERLEAVED == 1);
    let j = select(pair + params.half, 2u * pair + 1u, IS_INTERLEAVED == 1);
    let turn = turn_of(at.xy, unit); // its cosine and sine
    let a = load_x(x + i * params.x_stride.w);
    let b = load_x(x + j * params.x_stride.w);
    store_y(y + i * params.y_stride.w, a * turn.x - b * turn.y);
    store_y(y + j * params.y_stride.w, a * turn.y + b * turn.x);
}
