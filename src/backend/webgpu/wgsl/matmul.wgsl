// c [.., m, n] = a [.., m, k] b [.., k, n]: SIZE x SIZE of c for a workgroup, 4 x 4 for a thread;
// sums are made of 64 elements in order, and these added up in order. A_ALONG_K, B_ALONG_K: which
// dimension lies closer together, so that neighbouring threads read neighbours.
struct Params {
    m: u32, n: u32, k: u32,
    row_tiles: u32, column_tiles: u32, groups: u32,
    rank: u32,                        // of the leading dimensions
    unused: u32,
    first: vec4<u32>,                 // of c, a and b, as all that follows
    row: vec4<u32>, column: vec4<u32>, // strides of the last two dimensions
    extent: array<vec4<u32>, 2>,      // of the leading dimensions
    stride: array<vec4<u32>, 6>,
}

const TILE = u32(SIZE);
const DEPTH = 16u;
const THREADS = SIZE * SIZE / 16;

var<workgroup> a_tile: array<f32, 16 * SIZE>; // [DEPTH][TILE]
var<workgroup> b_tile: array<f32, 16 * SIZE>;

fn positions(batch: u32) -> vec4<u32> {
    var rest = batch;
    var at = params.first;
    for (var d = params.rank; d > 0u; d--) {
        let extent = params.extent[(d - 1u) / 4u][(d - 1u) % 4u];
        at += (rest % extent) * params.stride[d - 1u];
        rest = rest / extent;
    }
    return at;
}

fn a_element(at: u32, row: u32, i: u32) -> f32 {
    if (row >= params.m || i >= params.k) { return 0.0; }
    return load_a(at + row * params.row.y + i * params.column.y);
}

fn b_element(at: u32, i: u32, column: u32) -> f32 {
    if (column >= params.n || i >= params.k) { return 0.0; }
    return load_b(at + i * params.row.z + column * params.column.z);
}

// The place of element j of a tile [DEPTH][TILE] in it: depth, and the other one.
fn place_in_tile(j: u32, along_k: bool) -> vec2<u32> {
    if (along_k) { return vec2<u32>(j % DEPTH, j / DEPTH); }
    return vec2<u32>(j / TILE, j % TILE);
}

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
    let index = group.y * groups.x + group.x;
    if (index >= params.groups) { return; }
    let tile = index / params.column_tiles;
    let column0 = index % params.column_tiles * TILE;
    let row0 = tile % params.row_tiles * TILE;
    let at = positions(tile / params.row_tiles);
    let row = local / (TILE / 4u);
    let column = local % (TILE / 4u);
    var totals = array<vec4<f32>, 4>();
    var sums = array<vec4<f32>, 4>();
    for (var i0 = 0u; i0 < params.k; i0 += DEPTH) {
        workgroupBarrier();
        for (var j = local; j < DEPTH * TILE; j += u32(THREADS)) {
            let a = place_in_tile(j, A_ALONG_K != 0);
            a_tile[a.x * TILE + a.y] = a_element(at.y, row0 + a.y, i0 + a.x);
            let b = place_in_tile(j, B_ALONG_K != 0);
            b_tile[b.x * TILE + b.y] = b_element(at.z, i0 + b.x, column0 + b.y);
        }
        workgroupBarrier();
        for (var i = 0u; i < DEPTH; i++) {
            let a = i * TILE + row * 4u;
            let b0 = i * TILE + column * 4u;
            let b = vec4<f32>(b_tile[b0], b_tile[b0 + 1u], b_tile[b0 + 2u], b_tile[b0 + 3u]);
            sums[0] = fma(vec4<f32>(a_tile[a]), b, sums[0]);
            sums[1] = fma(vec4<f32>(a_tile[a + 1u]), b, sums[1]);
            sums[2] = fma(vec4<f32>(a_tile[a + 2u]), b, sums[2]);
            sums[3] = fma(vec4<f32>(a_tile[a + 3u]), b, sums[3]);
        }
        // Short sums, whose rounding errors stay small.
        if (i0 % 64u == 48u || i0 + DEPTH >= params.k) {
            for (var r = 0u; r < 4u; r++) {
                totals[r] += sums[r];
                sums[r] = vec4<f32>();
            }
        }
    }
    for (var r = 0u; r < 4u; r++) {
        for (var e = 0u; e < 4u; e++) {
            let y = row0 + row * 4u + r;
            let x = column0 + column * 4u + e;
            if (y >= params.m || x >= params.n) { continue; }
            store_c(at.x + y * params.row.x + x * params.column.x, totals[r][e]);
        }
    }
}
