// y [m, n] = x [m, k] weight^T + bias by dot products of bytes, of rows of x as
// integers (quantize.wgsl), and of the weight's quants. Those of a block are whole numbers; blocks are added
// up as float32.
struct Params {
    m: u32, n: u32, blocks: u32,      // m: rows of x
    row_tiles: u32, groups: u32,      // workgroups along n, and all
    x: u32, x_row: u32,               // in vec4, and in rows
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

const X_VECTORS = 5u; // of a block

// Four quants of each row less their bias, as signed bytes.
fn signed_words(word: vec4<u32>) -> vec4<u32> {
    // No byte borrows from the next one: 128 is added to each, and its highest bit turned then.
    if (LEVELS < 0) {
        return (word + vec4<u32>(0x80808080u - 0x01010101u * u32(BIAS))) ^ vec4<u32>(0x80808080u);
    }
    var words = vec4<u32>();
    for (var e = 0u; e < 4u; e++) {
        let level = bitcast<vec4<u32>>(vec4<i32>(quants_of(word, e)));
        words |= (level & vec4<u32>(255u)) << vec4<u32>(8u * e);
    }
    return words;
}

// Groups 2 part and 2 part + 1 of a quad.
fn signed_part(panel: u32, quad: u32, block: u32, part: u32) -> array<vec4<u32>, 2> {
    let words = part_words(block_at(panel, block) + u32(SCALE_VECTORS), quad, part);
    return array<vec4<u32>, 2>(signed_words(words[0]), signed_words(words[1]));
}

fn dot_rows(w: vec4<u32>, x: u32) -> vec4<i32> {
    return vec4<i32>(dot4I8Packed(w.x, x), dot4I8Packed(w.y, x), dot4I8Packed(w.z, x),
                     dot4I8Packed(w.w, x));
}

// Of half a block: groups g ... g + 3.
fn dot_half(w: ptr<function, array<vec4<u32>, 8>>, g: u32, x: vec4<u32>) -> vec4<i32> {
    return (dot_rows((*w)[g], x.x) + dot_rows((*w)[g + 1u], x.y)) +
        (dot_rows((*w)[g + 2u], x.z) + dot_rows((*w)[g + 3u], x.w));
}

// The dot products of a block, by halves.
struct Sums { first: vec4<i32>, second: vec4<i32> }

// Whether x, the last vector of a block, says that the block has low bytes, too: 1 or 2 planes.
fn planes_of(x: vec4<u32>) -> u32 { return 1u + x.w; }

fn add_plane(sums: Sums, w: ptr<function, array<vec4<u32>, 8>>, a: vec4<u32>, b: vec4<u32>)
    -> Sums {
    return Sums(128 * sums.first + dot_half(w, 0u, a), 128 * sums.second + dot_half(w, 4u, b));
}

// What a block adds to four rows. scales: of the halves.
fn sums_by_scale(sums: Sums, first: Scale, second: Scale, x: vec4<u32>) -> vec4<f32> {
    let of_x = bitcast<vec3<f32>>(x.xyz);
    let scale = of_x.x * select(1.0, 1.0 / 128.0, x.w == 1u);
    if (HAS_HALVES) {
        let sum = fma(vec4<f32>(sums.second), second.step, vec4<f32>(sums.first) * first.step);
        return fma(sum, vec4<f32>(scale), first.offset * of_x.y + second.offset * of_x.z);
    }
    let sum = vec4<f32>(sums.first + sums.second) * first.step;
    return fma(sum, vec4<f32>(scale), first.offset * (of_x.y + of_x.z));
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
