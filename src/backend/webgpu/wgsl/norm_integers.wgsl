// The rows of y go to q as integers, too, for the products of them: see norm_sum.wgsl, quantize.wgsl.
var<private> row_of_y: u32;

fn quantized(i: u32) -> vec4<f32> {
    let at = params.first.y + row_of_y * params.row.y + 4u * i;
    return vec4<f32>(load_y(at), load_y(at + 1u), load_y(at + 2u), load_y(at + 3u));
}

fn word_at(block: u32, i: u32) -> u32 {
    return params.q + 20u * (block * params.n_rows + row_of_y) + i;
}
fn put_word(block: u32, i: u32, value: u32) { store_q(word_at(block, i), value); }
fn get_word(block: u32, i: u32) -> u32 { return load_q(word_at(block, i)); }

fn finish(row: u32, local: u32) {
    row_of_y = row;
    storageBarrier();
    workgroupBarrier();
    quantize_row(local);
}
