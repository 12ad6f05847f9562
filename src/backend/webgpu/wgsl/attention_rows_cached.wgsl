// Rows of attention over the paged cache, by the batch descriptor: as in attention_rows_dense.wgsl.
// Every number of it that leads to memory is checked: here, and the blocks where they are used.
fn word(i: u32) -> u32 { return load_batch(params.first_more.x + i); }

fn row_of(row: u32) -> vec4<u32> {
    let sequence = word(params.sequences + row);
    if (sequence == NONE) { return vec4<u32>(NONE, 0u, 0u, 0u); }
    if (sequence >= params.n_sequences) { return vec4<u32>(NONE - 1u, 0u, 0u, 0u); }
    let position = word(params.positions + row);
    let length = word(params.lengths + sequence);
    if (position >= length || length > params.n_keys) {
        return vec4<u32>(NONE - 1u, 0u, 0u, 0u);
    }
    var first = 0u;
    if (params.window > 0u && position >= params.window) { first = position - params.window + 1u; }
    var end = position + 1u;
    if (params.causal == 0u) {
        let behind = length - position;
        end = position + select(behind, min(behind, params.window), params.window > 0u);
    }
    return vec4<u32>(sequence, first, end, position);
}

fn block_of(sequence: u32, batch: u32, key: u32) -> u32 {
    return word(params.tables + sequence * params.table_blocks + key / params.block_size);
}

fn fail() { store_fault(params.first_more.y, params.fault); }
