// A row of x as integers, by the THREADS of a workgroup, which take four elements at a time: blocks
// of 32 elements, of 8 bits, or of 15 in blocks whose largest element stands out of its row, which
// are called fine (docs/numerics.md). Words of a block: 8 of high bytes, 8 of low bytes, then as
// floats the scale, the sums of x in the first and the second half, and whether the block is fine.
//   x = scale * (high + low / 128)
// Another text defines
//   fn quantized(i: u32) -> vec4<f32>                 elements 4 i ... 4 i + 3 of the row
//   fn put_word(block: u32, i: u32, value: u32)       word i of one of its BLOCKS blocks
//   fn get_word(block: u32, i: u32) -> u32
const SHARES = 32u; // of the sum of all largest magnitudes, which is made in one order

// Bits of magnitudes, which are in the order of floats: NaN is above all.
var<workgroup> largest: array<atomic<u32>, BLOCKS>;
var<workgroup> shares: array<f32, SHARES>;

struct Unit { inverse: f32, scale: f32, is_zero: bool, is_fine: bool }

fn unit_of(bits: u32, fine_above: f32) -> Unit {
    let size = bitcast<f32>(bits);
    // Blocks below 2^-80 are zeros, as on the CPU. 2^126 and more, or NaN: so is the scale.
    let is_zero = bits > 0x7e800000u || bits < 0x17800000u;
    let is_fine = !is_zero && size > fine_above;
    let most = select(127.0, 127.0 * 128.0, is_fine);
    return Unit(most / select(size, 1.0, is_zero), select(size / most, 0.0, is_zero), is_zero,
                is_fine);
}

fn put_four(i: u32, unit: Unit) {
    var high = vec4<i32>();
    var low = vec4<i32>();
    if (!unit.is_zero) { high = vec4<i32>(round(quantized(i) * unit.inverse)); }
    if (unit.is_fine) {
        let whole = high;
        high = (whole + vec4<i32>(64)) >> vec4<u32>(7u);
        low = whole - 128 * high;
    }
    put_word(i / 8u, i % 8u, pack4xI8(high));
    put_word(i / 8u, 8u + i % 8u, pack4xI8(low));
}

// The sum of a half's integers.
fn half_sum(block: u32, half: u32, is_fine: bool) -> f32 {
    var sum = vec2<i32>();
    for (var i = 4u * half; i < 4u * half + 4u; i++) {
        sum += vec2<i32>(dot4I8Packed(get_word(block, i), 0x01010101u),
                         dot4I8Packed(get_word(block, 8u + i), 0x01010101u));
    }
    return f32(select(sum.x, 128 * sum.x + sum.y, is_fine));
}

fn quantize_row(local: u32) {
    let blocks = u32(BLOCKS);
    // Not every implementation clears the memory of workgroups.
    for (var b = local; b < blocks; b += u32(THREADS)) { atomicStore(&largest[b], 0u); }
    workgroupBarrier();
    for (var i = local; i < 8u * blocks; i += u32(THREADS)) {
        let bits = bitcast<vec4<u32>>(quantized(i)) & vec4<u32>(0x7fffffffu);
        atomicMax(&largest[i / 8u], max(max(bits.x, bits.y), max(bits.z, bits.w)));
    }
    workgroupBarrier();
    for (var i = local; i < SHARES; i += u32(THREADS)) {
        var sum = 0.0;
        for (var b = i; b < blocks; b += SHARES) { sum += bitcast<f32>(atomicLoad(&largest[b])); }
        shares[i] = sum;
    }
    workgroupBarrier();
    var sum = 0.0;
    for (var i = 0u; i < SHARES; i++) { sum += shares[i]; }
    let fine_above = 1.5 * sum / f32(blocks);
    for (var i = local; i < 8u * blocks; i += u32(THREADS)) {
        put_four(i, unit_of(atomicLoad(&largest[i / 8u]), fine_above));
    }
    storageBarrier();
    workgroupBarrier();
    for (var b = local; b < blocks; b += u32(THREADS)) {
        let bits = atomicLoad(&largest[b]);
        let unit = unit_of(bits, fine_above);
        let scale = bitcast<u32>(select(unit.scale, 128.0 * unit.scale, unit.is_fine));
        put_word(b, 16u, select(scale, 0x7fc00000u, bits > 0x7e800000u));
        put_word(b, 17u, bitcast<u32>(unit.scale * half_sum(b, 0u, unit.is_fine)));
        put_word(b, 18u, bitcast<u32>(unit.scale * half_sum(b, 1u, unit.is_fine)));
        put_word(b, 19u, u32(unit.is_fine));
    }
}
