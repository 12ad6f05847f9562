// x, a row of floats, which every workgroup makes integers for itself: see quantize.wgsl.
const THREADS = 4 * SLICES;

var<workgroup> words: array<u32, 20 * BLOCKS>;

fn quantized(i: u32) -> vec4<f32> { return bitcast<vec4<f32>>(load_x(params.x + i)); }
fn put_word(block: u32, i: u32, value: u32) { words[20u * block + i] = value; }
fn get_word(block: u32, i: u32) -> u32 { return words[20u * block + i]; }

fn begin_x(local: u32) {
    quantize_row(local);
    workgroupBarrier();
}

fn x_vector(i: u32) -> vec4<u32> {
    return vec4<u32>(words[4u * i], words[4u * i + 1u], words[4u * i + 2u], words[4u * i + 3u]);
}
