// Rows of dense attention: sequence (NONE: writes zeros, NONE - 1: faulty), first key that the row
// sees, key after the last, position of the row. The last row is at the position of the last key.
fn row_of(row: u32) -> vec4<u32> {
    let position = i32(row) + i32(params.n_keys) - i32(params.n_rows);
    var first = 0;
    if (params.window > 0u) { first = max(position - i32(params.window) + 1, 0); }
    var end = i32(params.n_keys);
    if (params.causal != 0u) { end = clamp(position + 1, 0, end); }
    return vec4<u32>(0u, u32(first), u32(end), bitcast<u32>(position));
}

// A batch is a block of all its keys.
fn block_of(sequence: u32, batch: u32, key: u32) -> u32 { return batch; }

fn fail() {}
