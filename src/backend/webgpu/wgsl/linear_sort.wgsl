// Sorts rows [m, u] by their ids, into tiles of at most params.columns columns with one expert.
//   y [tiles][first column, end, expert], empty ones after the last; then the rows in order
// The order of an expert's rows depends on the threads, but no sum does. EXPERTS: the number of
// counters. FAULT: the code that goes to the fault slot for an id out of range.
struct Params {
    rows: u32, u: u32,
    ids: u32, ids_row: u32, ids_element: u32,
    first_expert: u32, experts: u32, table_experts: u32, // [first, first + experts) of the table
    columns: u32, tiles: u32,
    y: u32,
    fault: u32,
}

const THREADS = 256u;

var<workgroup> counts: array<atomic<u32>, EXPERTS>;

// One of this weight's, or params.experts.
fn expert_of(row: u32) -> u32 {
    let at = params.ids + row / params.u * params.ids_row + row % params.u * params.ids_element;
    let id = load_ids(at);
    if (id < params.table_experts) { return min(id - params.first_expert, params.experts); }
    store_fault(params.fault, u32(FAULT));
    return params.experts;
}

// Counts become the places where an expert's rows begin.
fn store_tiles() {
    var tile = 0u;
    var begin = 0u;
    for (var e = 0u; e < params.experts; e++) {
        let end = begin + atomicLoad(&counts[e]);
        atomicStore(&counts[e], begin);
        for (; begin < end; begin += params.columns) {
            store_y(params.y + 3u * tile, begin);
            store_y(params.y + 3u * tile + 1u, min(begin + params.columns, end));
            store_y(params.y + 3u * tile + 2u, e);
            tile++;
        }
        begin = end;
    }
    for (; tile < params.tiles; tile++) {
        store_y(params.y + 3u * tile, 0u);
        store_y(params.y + 3u * tile + 1u, 0u);
    }
}

@compute @workgroup_size(THREADS)
fn main(@builtin(local_invocation_index) local: u32) {
    for (var e = local; e < u32(EXPERTS); e += THREADS) { atomicStore(&counts[e], 0u); }
    workgroupBarrier();
    for (var row = local; row < params.rows; row += THREADS) {
        let e = expert_of(row);
        if (e < params.experts) { atomicAdd(&counts[e], 1u); }
    }
    workgroupBarrier();
    if (local == 0u) { store_tiles(); }
    workgroupBarrier();
    for (var row = local; row < params.rows; row += THREADS) {
        let e = expert_of(row);
        if (e < params.experts) {
            store_y(params.y + 3u * params.tiles + atomicAdd(&counts[e], 1u), row);
        }
    }
}
