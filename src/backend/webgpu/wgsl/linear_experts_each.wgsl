// Each row is a tile of its own; index: the ids [m, u]. FAULT is what goes to the fault slot for an
// id out of range.
fn find_tile(number: u32) -> vec3<u32> {
    let at = params.index + number / params.u * params.index_row +
        number % params.u * params.index_element;
    let id = load_index(at);
    if (id >= params.table_experts) {
        store_fault(params.fault, u32(FAULT));
        return vec3<u32>(number, number, 0u);
    }
    let own = id - params.first_expert; // wraps
    return vec3<u32>(number, number + u32(own < params.experts), own);
}

fn row_of(column: u32) -> u32 { return column; }
