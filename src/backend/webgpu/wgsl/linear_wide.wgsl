// COLUMNS columns of PANELS panels of 16 rows. A thread has four rows and all of k. The threads of a
// subgroup read eight elements of x together, each of WIDTH one or two, and hand them on. GATED: a
// thread has gates, then their ups.
const THREADS = 4 * PANELS;

var<private> panel: u32;
var<private> quad: u32;
var<private> lane: u32;
var<private> sums: array<vec4<f32>, COLUMNS>;

// One, or one of the first four and one of the others.
fn x_eight(column: u32, part: u32) -> vec2<f32> {
    let e = vec2<u32>(8u * part + lane) + vec2<u32>(0u, u32(8 - WIDTH));
    let at = 4u * (params.x + x_place(column)) + min(e, vec2<u32>(params.k - 1u));
    let x = bitcast<vec2<f32>>(vec2<u32>(word_of_x(at.x), word_of_x(at.y)));
    return select(vec2<f32>(), x, e < vec2<u32>(params.k));
}

fn add_block(block: u32, column: u32) {
    var scale: Scale;
    for (var part = 0u; part < 4u; part++) {
        if (part == 0u || (HAS_HALVES && part == 2u)) {
            scale = weight_scale(panel, quad, block, part / 2u);
        }
        let w = weight_part(panel, quad, block, part, scale);
        for (var c = 0u; c < u32(COLUMNS); c++) {
            let x = x_eight(column + c, 4u * block + part);
            let a = vec4<f32>(subgroupBroadcast(x.x, 0u), subgroupBroadcast(x.x, 1u),
                              subgroupBroadcast(x.x, 2u), subgroupBroadcast(x.x, 3u));
            let b = vec4<f32>(subgroupBroadcast(x.y, 4u % u32(WIDTH)),
                              subgroupBroadcast(x.y, 5u % u32(WIDTH)),
                              subgroupBroadcast(x.y, 6u % u32(WIDTH)),
                              subgroupBroadcast(x.y, 7u % u32(WIDTH)));
            sums[c] = eight_more(sums[c], w, a, b);
        }
    }
}

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32,
        @builtin(subgroup_invocation_id) invocation: u32) {
    let index = group.y * groups.x + group.x;
    if (index >= params.groups) { return; }
    weight_begin(local);
    if (THREADS == 8) { weight_begin(local + 8u); } // it wants 16
    let tile = tile_of(index / params.row_tiles, u32(COLUMNS), local);
    if (tile.first == tile.end) { return; }
    let first_panel = index % params.row_tiles * u32(PANELS);
    panel = min(first_panel + local / 4u, (params.n + 15u) / 16u - 1u);
    quad = local % 4u;
    lane = invocation % u32(WIDTH);
    let row = first_panel * 16u + local * 4u;
    var gates = array<vec4<f32>, COLUMNS>();
    for (var half = 0; half < select(1, 2, GATED != 0); half++) {
        var totals = array<vec4<f32>, COLUMNS>();
        for (var chunk = 0u; chunk < CHUNKS; chunk++) {
            sums = array<vec4<f32>, COLUMNS>();
            let end = chunk_begin(chunk + 1u);
            for (var block = chunk_begin(chunk); block < end; block++) {
                add_block(block, tile.first);
            }
            for (var c = 0u; c < u32(COLUMNS); c++) { totals[c] += sums[c]; }
        }
        if (GATED != 0 && half == 0) {
            gates = totals;
            panel = second_half(panel);
            continue;
        }
        for (var c = 0u; c < u32(COLUMNS); c++) {
            for (var r = 0u; r < 4u; r++) {
                if (GATED == 0) {
                    store_sum(tile.first + c, row + r, totals[c][r]);
                } else {
                    store_pair(tile.first + c, row + r, gates[c][r], totals[c][r]);
                }
            }
        }
    }
}
