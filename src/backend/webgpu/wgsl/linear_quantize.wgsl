// Rows of x as integers, a workgroup each: blocks of 32 elements, of 8 bits, or of 15 in blocks
// whose largest element stands out of its row, which are called fine (docs/numerics.md):
//   y [block][row]: high bytes (2 vec4), low bytes (2 vec4), then as floats the scale, the sums of
//   x in the first and the second half, and whether the block is fine
//   x = scale * (high + low / 128)
struct Params {
    m: u32, blocks: u32,
    y: u32,                           // in vec4
    x: u32, x_row: u32, x_element: u32,
    u: u32, x_step: u32,              // from one to the next of u rows that x_row leads to
    nan: u32,                         // bits
}

const THREADS = 64u;

var<workgroup> sums: array<f32, THREADS>;

// Bits of the largest magnitude, which are in the order of floats: NaN is above all.
fn largest_bits(row: u32, block: u32) -> u32 {
    var largest = 0u;
    for (var i = 32u * block; i < 32u * block + 32u; i++) {
        largest = max(largest, bitcast<u32>(load_x(row + i * params.x_element)) & 0x7fffffffu);
    }
    return largest;
}

// For each thread the sum of what they all have, in one order.
fn sum_threads(local: u32, value: f32) -> f32 {
    sums[local] = value;
    for (var half = THREADS / 2u; half > 0u; half /= 2u) {
        workgroupBarrier();
        if (local < half) { sums[local] += sums[local + half]; }
    }
    workgroupBarrier();
    return sums[0];
}

struct Word { high: u32, low: u32, sum: i32 }

// Four elements.
fn quantize(at: u32, inverse: f32, is_fine: bool) -> Word {
    let x = vec4<f32>(load_x(at), load_x(at + params.x_element),
                      load_x(at + 2u * params.x_element), load_x(at + 3u * params.x_element));
    var high = vec4<i32>(round(x * inverse));
    let sum = high.x + high.y + high.z + high.w;
    var low = vec4<i32>();
    if (is_fine) {
        let whole = high;
        high = (whole + vec4<i32>(64)) >> vec4<u32>(7u);
        low = whole - 128 * high;
    }
    return Word(pack4xI8(high), pack4xI8(low), sum);
}

fn store_block(row: u32, block: u32, x: u32, fine_above: f32) {
    let bits = largest_bits(x, block);
    let largest = bitcast<f32>(bits);
    // Blocks below 2^-80 are zeros, as on the CPU. 2^126 and more, or NaN: so is the scale.
    let is_finite = bits <= 0x7e800000u;
    let is_zero = !is_finite || bits < 0x17800000u;
    let is_fine = !is_zero && largest > fine_above;
    let most = select(127.0, 127.0 * 128.0, is_fine);
    let inverse = most / select(largest, 1.0, is_zero);
    var high = array<u32, 8>();
    var low = array<u32, 8>();
    var halves = vec2<i32>();
    for (var i = 0u; i < 8u && !is_zero; i++) {
        let word = quantize(x + (32u * block + 4u * i) * params.x_element, inverse, is_fine);
        high[i] = word.high;
        low[i] = word.low;
        halves[i / 4u] += word.sum;
    }
    let scale = select(largest / most, 0.0, is_zero);
    let at = params.y + 5u * (block * params.m + row);
    store_y(at, vec4<u32>(high[0], high[1], high[2], high[3]));
    store_y(at + 1u, vec4<u32>(high[4], high[5], high[6], high[7]));
    store_y(at + 2u, vec4<u32>(low[0], low[1], low[2], low[3]));
    store_y(at + 3u, vec4<u32>(low[4], low[5], low[6], low[7]));
    let sums_of_x = bitcast<vec2<u32>>(scale * vec2<f32>(halves));
    let unit = bitcast<u32>(select(scale, 128.0 * scale, is_fine));
    store_y(at + 4u, vec4<u32>(select(params.nan, unit, is_finite), sums_of_x, u32(is_fine)));
}

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
    let row = group.y * groups.x + group.x;
    if (row >= params.m) { return; }
    let x = params.x + row / params.u * params.x_row + row % params.u * params.x_step;
    var sum = 0.0;
    for (var block = local; block < params.blocks; block += THREADS) {
        sum += bitcast<f32>(largest_bits(x, block));
    }
    let fine_above = 1.5 * sum_threads(local, sum) / f32(params.blocks);
    for (var block = local; block < params.blocks; block += THREADS) {
        store_block(row, block, x, fine_above);
    }
}
