// y = one of the ids by their weights: those of the first k elements of x, which falls, that top_p
// and min_p leave. Of u in [0, 1) the first share is that of the last one that is left.
struct Params {
    first: vec4<u32>,  // y, x, ids
    stride: vec2<u32>, // of x and ids
    k: u32,
    scale: f32,        // 1 / temperature; 0: the first one
    top_p: f32,
    least: f32,        // what min_p leaves is no further from the first element
    u: f32,
}

fn above(i: u32) -> f32 {
    return load_x(params.first.y + i * params.stride.x) - load_x(params.first.y);
}

@compute @workgroup_size(1)
fn main() {
    var all = 0.0;
    for (var i = 0u; i < params.k; i++) { all += exp(above(i)); }
    let most = select(2.0, params.top_p, params.top_p < 1.0) * all;
    var n = 0u;
    var sum = 0.0;
    var total = 0.0;
    while (n < params.k && (n == 0u || (sum < most && above(n) >= params.least))) {
        sum += exp(above(n));
        total += exp(above(n) * params.scale);
        n++;
    }
    var left = params.u * total;
    loop {
        n--;
        left -= exp(above(n) * params.scale);
        if (n == 0u || !(left >= 0.0)) { break; } // it may be no number
    }
    if (params.scale == 0.0) { n = 0u; }
    store_y(params.first.x, load_ids(params.first.z + n * params.stride.y));
}
