// y [m, k] = rows ids [m] of weight [n, k]; what stands before goes for all kinds of weights.
// ID_WORDS: 1, or 2 for 64 bits. FAULT is what goes to the fault slot for an id out of range.
struct Params {
    m: u32, n: u32, k: u32,
    parts: u32,                       // of a row, one thread each
    y: u32, y_row: u32, y_element: u32,
    ids: u32, ids_element: u32,
    weight: u32, panel_stride: u32,   // of panels, in vec4
    weight_row: u32, weight_element: u32,
    tables: u32,
    fault: u32,
    first_row: u32, table_rows: u32,  // the weight is rows [first_row, first_row + n) of a table
}

// n for a row that is not of this weight, and for one that is of no weight.
fn find_id(row: u32) -> u32 {
    let at = params.ids + row * params.ids_element * u32(ID_WORDS);
    var id = load_ids(at);
    if (ID_WORDS == 2 && load_ids(at + 1u) != 0u) { id = params.table_rows; }
    if (id < params.table_rows) { return min(id - params.first_row, params.n); } // wraps
    store_fault(params.fault, u32(FAULT));
    return params.n;
}

fn weight_base() -> u32 { return params.weight; }

fn thread_index(group: vec3<u32>, groups: vec3<u32>, local: u32) -> u32 {
    return (group.y * groups.x + group.x) * 64u + local;
}
