// COLUMNS columns of 16 rows. Four threads share a block, with four rows each; neighbours have
// neighbouring blocks, every SLICES-th one. So a short weight fills a device, too. GATED: 16 gates,
// then their ups.

// What a slice adds to the sums of four rows.
fn add_slice(panel: u32, quad: u32, first_block: u32, column: u32) -> array<vec4<f32>, COLUMNS> {
    var totals = array<vec4<f32>, COLUMNS>();
    for (var block = first_block; block < params.blocks; block += u32(SLICES)) {
        var w = array<vec4<u32>, 8>();
        for (var part = 0u; part < 4u; part++) {
            let words = signed_part(panel, quad, block, part);
            w[2u * part] = words[0];
            w[2u * part + 1u] = words[1];
        }
        let first = centred_scale(panel, quad, block, 0u);
        var second = first;
        if (HAS_HALVES) { second = centred_scale(panel, quad, block, 1u); }
        for (var c = 0u; c < u32(COLUMNS); c++) {
            let at = (block * params.m + x_place(column + c)) * X_VECTORS;
            let x = x_vector(at + 4u);
            var sums = Sums();
            for (var p = 0u; p < planes_of(x); p++) {
                sums = add_plane(sums, &w, x_vector(at + 2u * p), x_vector(at + 2u * p + 1u));
            }
            totals[c] += sums_by_scale(sums, first, second, x);
        }
    }
    return totals;
}

@compute @workgroup_size(4 * SLICES)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
    let index = group.y * groups.x + group.x;
    if (index >= params.groups) { return; }
    weight_begin(local);
    begin_x(local);
    let panel = index % params.row_tiles;
    let tile = tile_of(index / params.row_tiles, u32(COLUMNS), local);
    if (tile.first == tile.end) { return; }
    let column = tile.first;
    let quad = local % 4u;
    var totals = add_slice(panel, quad, local / 4u, column);
    if (GATED != 0) {
        var ups = add_slice(second_half(panel), quad, local / 4u, column);
        for (var c = 0u; c < u32(COLUMNS); c++) {
            let gate = sum_slices(local, totals[c]);
            let up = sum_slices(local, ups[c]);
            if (local < 4u) {
                for (var r = 0u; r < 4u; r++) {
                    store_pair(column + c, panel * 16u + quad * 4u + r, gate[r], up[r]);
                }
            }
        }
        return;
    }
    for (var c = 0u; c < u32(COLUMNS); c++) {
        let total = sum_slices(local, totals[c]);
        if (local < 4u) {
            for (var r = 0u; r < 4u; r++) {
                store_sum(column + c, panel * 16u + quad * 4u + r, total[r]);
            }
        }
    }
}
