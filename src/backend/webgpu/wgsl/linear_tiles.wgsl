// 64 rows x COLUMNS columns, 32 or more, eight rows of four columns for each thread; blocks go through the
// workgroup's memory. GATED: the low rows are gates, the high ones their ups.
const X_STRIDE = 9u; // vec4 of a column, one more than there are

var<workgroup> w_tile: array<vec4<f32>, 512>; // [element][quad]
var<workgroup> x_tile: array<vec4<f32>, COLUMNS * 9>; // [column][X_STRIDE]

const THREADS = 2 * COLUMNS;
const GATES = select(4u, 2u, GATED != 0); // panels
const STEP = u32(COLUMNS / 4); // from one column of a thread to the next

fn load_w_tile(local: u32, first_panel: u32, block: u32) {
    if (local >= 64u) { return; }
    let number = local % 16u / 4u;
    var panel = min(first_panel + number % GATES, (params.n + 15u) / 16u - 1u);
    if (number >= GATES) { panel = second_half(panel); }
    let quad = local % 4u;
    let part = local / 16u;
    let scale = weight_scale(panel, quad, block, part / 2u);
    var w = weight_part(panel, quad, block, part, scale);
    for (var e = 0u; e < 8u; e++) { w_tile[(part * 8u + e) * 16u + local % 16u] = w[e]; }
}

fn load_x_tile(local: u32, first_column: u32, block: u32) {
    for (var i = local; i < u32(COLUMNS * 8); i += u32(THREADS)) {
        x_tile[i / 8u * X_STRIDE + i % 8u] = x_vector(first_column + i / 8u, block * 8u + i % 8u);
    }
}

fn add_element(sums: ptr<function, array<vec4<f32>, 8>>, at: u32, x: vec4<f32>) {
    let low = w_tile[at];
    let high = w_tile[at + 8u];
    for (var c = 0u; c < 4u; c++) {
        (*sums)[2u * c] = fma(low, vec4<f32>(x[c]), (*sums)[2u * c]);
        (*sums)[2u * c + 1u] = fma(high, vec4<f32>(x[c]), (*sums)[2u * c + 1u]);
    }
}

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
    let index = group.y * groups.x + group.x;
    if (index >= params.groups) { return; }
    weight_begin(local);
    let first_panel = index % params.row_tiles * GATES;
    let tile = tile_of(index / params.row_tiles, u32(COLUMNS), local);
    if (tile.first == tile.end) { return; }
    let first_column = tile.first;
    let quad = local % 8u; // and the one 8 further
    let x_at = local / 8u * X_STRIDE;
    var totals = array<vec4<f32>, 8>(); // [column / STEP][low or high rows]
    for (var chunk = 0u; chunk < CHUNKS; chunk++) {
        var sums = array<vec4<f32>, 8>();
        let end = chunk_begin(chunk + 1u);
        for (var block = chunk_begin(chunk); block < end; block++) {
            workgroupBarrier();
            load_w_tile(local, first_panel, block);
            load_x_tile(local, first_column, block);
            workgroupBarrier();
            for (var i = 0u; i < 8u; i++) {
                let x = transpose(mat4x4<f32>(x_tile[x_at + i], x_tile[x_at + STEP * X_STRIDE + i],
                                              x_tile[x_at + 2u * STEP * X_STRIDE + i],
                                              x_tile[x_at + 3u * STEP * X_STRIDE + i]));
                let at = i * 64u + quad;
                add_element(&sums, at, x[0]);
                add_element(&sums, at + 16u, x[1]);
                add_element(&sums, at + 32u, x[2]);
                add_element(&sums, at + 48u, x[3]);
            }
        }
        for (var i = 0u; i < 8u; i++) { totals[i] += sums[i]; }
    }
    for (var c = 0u; c < 4u; c++) {
        let column = first_column + local / 8u + STEP * c;
        let row = first_panel * 16u + quad * 4u;
        for (var r = 0u; r < 4u; r++) {
            if (GATED != 0) {
                store_pair(column, row + r, totals[2u * c][r], totals[2u * c + 1u][r]);
                continue;
            }
            store_sum(column, row + r, totals[2u * c][r]);
            store_sum(column, row + 32u + r, totals[2u * c + 1u][r]);
        }
    }
}
