// A workgroup for each row: sum = residual + x, and y = sum / sqrt(mean(sum^2) + eps) * weight; with
// HAS_POST x is x / sqrt(mean(x^2) + post_eps) * post first; without HAS_SUM sum is x. Sums are
// made in the order of norm.wgsl. What becomes of y then: norm_floats.wgsl, norm_integers.wgsl.
// Written after this text: what x is, x_of(), and what is made of y at last, route().
struct Params {
    first: vec4<u32>,                 // sum, y, x, residual
    row: vec4<u32>,                   // from one row to the next
    weight: u32, weight_element: u32,
    post: u32, post_element: u32,
    n: u32, n_rows: u32,
    eps: f32, post_eps: f32,
    q: u32,
    // Of x_of: weights of rows of x, which are x_step apart.
    mix: u32, mix_row: u32, mix_element: u32, x_step: u32,
    // Of route.wgsl: the router in vec4; blocks of 32 elements; first elements and rows.
    router: u32, panel_stride: u32, blocks: u32,
    bias: u32, bias_element: u32,
    n_experts: u32, n_kept: u32,
    ids: u32, ids_row: u32, gates: u32, gates_row: u32,
    nan: f32,
}

struct Place { local: u32, lane: u32 }

const STEP = 1u;

// A thread takes four elements at a time: these, from i on.
fn four(i: u32) -> vec4<u32> {
    return i + vec4<u32>(0u, u32(LANES), 2u * u32(LANES), 3u * u32(LANES));
}

fn x_four(row: u32, i: vec4<u32>) -> vec4<f32> {
    let k = min(i, vec4<u32>(params.n - 1u)) + params.first.z + row * params.row.z;
    return vec4<f32>(x_of(row, k.x), x_of(row, k.y), x_of(row, k.z), x_of(row, k.w));
}

fn sum_four(v: vec4<f32>) -> f32 { return (v.x + v.y) + (v.z + v.w); }

fn factor_of(p: Place, squares: vec4<f32>, eps: f32) -> f32 {
    let all = sum_lanes(p, vec2<f32>(0.0, sum_four(squares))).y;
    return 1.0 / sqrt(all / f32(params.n) + eps);
}

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
    let row = group.y * groups.x + group.x;
    if (row >= params.n_rows) { return; }
    let p = Place(local, local);
    let at = params.first + row * params.row;
    var squares = vec4<f32>(0.0);
    var factor = 1.0;
    if (HAS_POST == 1) {
        for (var i = local; i < params.n; i += 4u * u32(LANES)) {
            let x = select(vec4<f32>(0.0), x_four(row, four(i)), four(i) < vec4<u32>(params.n));
            squares += x * x;
        }
        factor = factor_of(p, squares, params.post_eps);
        squares = vec4<f32>(0.0);
    }
    for (var i = local; i < params.n; i += 4u * u32(LANES)) {
        let k = four(i);
        let x = x_four(row, k);
        var sums = vec4<f32>(0.0);
        for (var j = 0u; j < 4u && k[j] < params.n; j++) {
            var term = x[j];
            if (HAS_POST == 1) {
                term *= factor;
                term *= load_post(params.post + k[j] * params.post_element);
            }
            if (HAS_SUM == 1) {
                term = load_residual(at.w + k[j]) + term;
                store_sum(at.x + k[j], term);
            }
            sums[j] = term;
        }
        squares += sums * sums;
    }
    factor = factor_of(p, squares, params.eps);
    for (var i = local; i < params.n; i += 4u * u32(LANES)) {
        let k = four(i);
        for (var j = 0u; j < 4u && k[j] < params.n; j++) {
            var y = 0.0;
            if (HAS_SUM == 1) {
                y = load_sum(at.x + k[j]); // the thread's own
            } else {
                y = load_x(at.z + k[j]);
            }
            y *= factor;
            y *= load_weight(params.weight + k[j] * params.weight_element);
            store_y(at.y + k[j], y);
        }
    }
    finish(row, local);
    route(row, p);
}
