// y [m, n] = x [m, k] weight^T + bias; GATED: the weight has 2 n rows, and y is a function of each
// of the first half and the one as far into the second. However many columns (rows of x) there are, the sum of an
// element is made in one order: k falls into 16 chunks of whole blocks, the sum of each is made
// from its first element on, and these are added up from the first chunk on.
struct Params {
    m: u32, n: u32, k: u32,
    blocks: u32,                      // of 32 elements
    row_tiles: u32, groups: u32,      // workgroups along n, and all
    x: u32, x_row: u32,               // in vec4, rows are filled up with zeros
    y: u32, y_row: u32, y_element: u32,
    bias: u32, bias_element: u32,
    weight: u32, panel_stride: u32,   // of panels, in vec4
    weight_row: u32, weight_element: u32,
    tables: u32,
    alpha: f32, limit: f32,           // of linear_gated.wgsl, and from a gate to its up in
    second_panel: u32, second_row: u32, // panels of the weight and elements of the bias
    // Of linear_experts alone.
    u: u32, x_step: u32, y_step: u32,
    expert_stride: u32, bias_row: u32,
    index: u32, index_row: u32, index_element: u32, order: u32,
    first_expert: u32, experts: u32, table_experts: u32, // [first, first + experts) of the table
    fault: u32,
}

const CHUNKS = 16u;

fn chunk_begin(chunk: u32) -> u32 { return chunk * params.blocks / CHUNKS; }

// Elements 4 i ... 4 i + 3 of a row of x.
fn x_vector(column: u32, i: u32) -> vec4<f32> {
    let row = params.x + x_place(column);
    let x = bitcast<vec4<f32>>(load_x(row + min(i, (params.k - 1u) / 4u)));
    return select(vec4<f32>(), x, i * 4u < params.k);
}

// A sum, and what eight elements add: of four rows, and of two vectors of x.
fn eight_more(sum: vec4<f32>, w: array<vec4<f32>, 8>, a: vec4<f32>, b: vec4<f32>) -> vec4<f32> {
    var s = fma(w[0], vec4<f32>(a.x), sum);
    s = fma(w[1], vec4<f32>(a.y), s);
    s = fma(w[2], vec4<f32>(a.z), s);
    s = fma(w[3], vec4<f32>(a.w), s);
    s = fma(w[4], vec4<f32>(b.x), s);
    s = fma(w[5], vec4<f32>(b.y), s);
    s = fma(w[6], vec4<f32>(b.z), s);
    return fma(w[7], vec4<f32>(b.w), s);
}

fn with_bias(row: u32, sum: f32) -> f32 {
    if (HAS_BIAS == 0) { return sum; }
    return sum + load_bias(bias_base() + row * params.bias_element);
}

fn store_sum(column: u32, row: u32, sum: f32) {
    if (column >= column_end() || row >= params.n) { return; }
    store_y(params.y + y_place(column) + row * params.y_element, with_bias(row, sum));
}

// Row `row` of the weight's first half, and the one as far into the second: see linear_gated.wgsl.
fn store_pair(column: u32, row: u32, gate: f32, up: f32) {
    if (column >= column_end() || row >= params.n) { return; }
    store_y(params.y + y_place(column) + row * params.y_element,
            joined(with_bias(row, gate), with_bias(row + params.second_row, up)));
}
