// Rows as linear_sort.wgsl has sorted them; index: what it writes.
fn find_tile(number: u32) -> vec3<u32> {
    let at = params.index + 3u * number;
    return vec3<u32>(load_index(at), load_index(at + 1u), load_index(at + 2u));
}

fn row_of(column: u32) -> u32 { return load_index(params.order + column); }
