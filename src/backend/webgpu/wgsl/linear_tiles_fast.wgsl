// 64 rows x 64 columns, four rows of four columns for each thread; blocks go through the
// workgroup's memory, which a quarter of the threads fill with the weight, the others with x.
var<workgroup> w_tile: array<vec4<u32>, 128>; // [group][quad]
var<workgroup> scales: array<Scale, 32>;      // [half][quad]
var<workgroup> x_tile: array<vec4<u32>, 320>; // [column][X_VECTORS]

const GATES = select(4u, 2u, GATED != 0); // panels

fn load_w_tile(i: u32, first_panel: u32, block: u32) {
    let number = i % 16u / 4u;
    var panel = min(first_panel + number % GATES, (params.n + 15u) / 16u - 1u);
    if (number >= GATES) { panel = second_half(panel); }
    let quad = i % 4u;
    let part = i / 16u;
    let words = signed_part(panel, quad, block, part);
    w_tile[2u * part * 16u + i % 16u] = words[0];
    w_tile[2u * part * 16u + 16u + i % 16u] = words[1];
    if (part < 2u) { scales[i] = centred_scale(panel, quad, block, part); }
}

fn load_x_tile(i: u32, first_column: u32, block: u32) {
    for (var j = i; j < 64u * X_VECTORS; j += 192u) {
        let row = block * params.m + x_place(first_column + j / X_VECTORS);
        x_tile[j] = load_x(params.x + row * X_VECTORS + j % X_VECTORS);
    }
}

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
    let index = group.y * groups.x + group.x;
    if (index >= params.groups) { return; }
    weight_begin(local);
    let first_panel = index % params.row_tiles * GATES;
    let tile = tile_of(index / params.row_tiles, 64u, local);
    if (tile.first == tile.end) { return; }
    let first_column = tile.first;
    let quad = local % 16u;
    let column = local / 16u; // and every 16th from there on
    var totals = array<vec4<f32>, 4>();
    for (var block = 0u; block < params.blocks; block++) {
        workgroupBarrier();
        if (local < 64u) {
            load_w_tile(local, first_panel, block);
        } else {
            load_x_tile(local - 64u, first_column, block);
        }
        workgroupBarrier();
        var w = array<vec4<u32>, 8>();
        for (var g = 0u; g < 8u; g++) { w[g] = w_tile[16u * g + quad]; }
        let first = scales[quad];
        let second = scales[16u + quad];
        for (var c = 0u; c < 4u; c++) {
            let at = (column + 16u * c) * X_VECTORS;
            let x = x_tile[at + 4u];
            var sums = Sums();
            for (var p = 0u; p < planes_of(x); p++) {
                sums = add_plane(sums, &w, x_tile[at + 2u * p], x_tile[at + 2u * p + 1u]);
            }
            totals[c] += sums_by_scale(sums, first, second, x);
        }
    }
    if (GATED != 0) {
        // The threads of gates get the sums of their ups from those eight further.
        for (var c = 0u; c < 4u; c++) {
            workgroupBarrier();
            x_tile[local] = bitcast<vec4<u32>>(totals[c]);
            workgroupBarrier();
            let up = bitcast<vec4<f32>>(x_tile[local + 8u]);
            for (var r = 0u; r < 4u && quad < 8u; r++) {
                store_pair(first_column + column + 16u * c, first_panel * 16u + quad * 4u + r,
                           totals[c][r], up[r]);
            }
        }
        return;
    }
    for (var c = 0u; c < 4u; c++) {
        for (var r = 0u; r < 4u; r++) {
            store_sum(first_column + column + 16u * c, first_panel * 16u + quad * 4u + r,
                      totals[c][r]);
        }
    }
}
