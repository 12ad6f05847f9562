// COLUMNS columns of PANELS panels of 16 rows: four threads share a chunk, with four rows each.
// GATED: half of the panels are gates, the others their ups.
var<workgroup> partial: array<vec4<f32>, THREADS * COLUMNS>; // [column][panel][chunk][quad]

const THREADS = 64 * PANELS;
const GATES = select(PANELS, PANELS / 2, GATED != 0);
const ROWS = u32(16 * GATES);

// Of all chunks.
fn total_at(at: u32, row: u32) -> f32 {
    var total = 0.0;
    for (var i = 0u; i < CHUNKS; i++) { total += partial[at + i * 4u][row]; }
    return total;
}

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
    let index = group.y * groups.x + group.x;
    if (index >= params.groups) { return; }
    weight_begin(local);
    let first_panel = index % params.row_tiles * u32(GATES);
    var panel = min(first_panel + local / 64u % u32(GATES), (params.n + 15u) / 16u - 1u);
    if (local / 64u >= u32(GATES)) { panel = second_half(panel); }
    let tile = tile_of(index / params.row_tiles, u32(COLUMNS), local);
    if (tile.first == tile.end) { return; }
    let column = tile.first;
    let quad = local % 4u;
    let chunk = local / 4u % CHUNKS;
    var sums = array<vec4<f32>, COLUMNS>();
    var scale: Scale;
    // One loop over all parts: compilers would unroll inner ones, and take seconds for it.
    let end = 4u * chunk_begin(chunk + 1u);
    for (var i = 4u * chunk_begin(chunk); i < end; i++) {
        let block = i / 4u;
        if (i % 2u == 0u) { scale = weight_scale(panel, quad, block, i % 4u / 2u); }
        let w = weight_part(panel, quad, block, i % 4u, scale);
        for (var c = 0u; c < u32(COLUMNS); c++) {
            sums[c] = eight_more(sums[c], w, x_vector(column + c, 2u * i),
                                 x_vector(column + c, 2u * i + 1u));
        }
    }
    for (var c = 0u; c < u32(COLUMNS); c++) { partial[c * u32(THREADS) + local] = sums[c]; }
    workgroupBarrier();
    for (var o = local; o < ROWS * u32(COLUMNS); o += u32(THREADS)) {
        let row = o % ROWS;
        let at = o / ROWS * u32(THREADS) + row / 16u * 64u + row % 16u / 4u;
        let total = total_at(at, row % 4u);
        if (GATED == 0) {
            store_sum(column + o / ROWS, first_panel * 16u + row, total);
        } else {
            let up = total_at(at + u32(GATES) * 64u, row % 4u);
            store_pair(column + o / ROWS, first_panel * 16u + row, total, up);
        }
    }
}
