// A weight in panels of quants (quant/panel.h): four rows, a quad, of a panel at a time. Constants:
// what wk_panel_get and wk_panel_get_grid say; LEVELS and GRID are where `tables` has them, or -1.
// The same functions over other layouts: panel_float.wgsl, raw.wgsl. weight_base() is where the
// weight begins.

const HEAD_STRIDE = HEAD_VECTORS + HEAD_BLOCKS * BLOCK_VECTORS;
const UPPER = BITS - LOWER;
const UPPER_GROUPS = 8 / max(UPPER, 1);
const LOWER_MASK = 0x01010101u * ((1u << u32(LOWER)) - 1u);
const UPPER_BITS_MASK = 0x01010101u * ((1u << u32(UPPER)) - 1u);

// Whether the halves of a block have scales of their own.
const HAS_HALVES = SCALE == 3 || SCALE == 5 || SCALE == 7 || SCALE == 9;

// Weight = step * quant + offset, of each row.
struct Scale { step: vec4<f32>, offset: vec4<f32> }

var<workgroup> levels: array<f32, 16>;

// Before all else, by the whole workgroup.
fn weight_begin(local: u32) {
    if (LEVELS >= 0) {
        if (local < 16u) {
            levels[local] = bitcast<f32>(load_tables(params.tables + u32(LEVELS) + local));
        }
        workgroupBarrier();
    }
}

fn bytes(word: u32) -> vec4<u32> {
    return (vec4<u32>(word) >> vec4<u32>(0u, 8u, 16u, 24u)) & vec4<u32>(255u);
}

fn signed_bytes(word: u32) -> vec4<f32> {
    let shifted = vec4<i32>(bitcast<i32>(word)) << vec4<u32>(24u, 16u, 8u, 0u);
    return vec4<f32>(shifted >> vec4<u32>(24u));
}

// A column of bytes.
fn row_bytes(at: u32, quad: u32) -> vec4<u32> { return bytes(word_of_weight(4u * at + quad)); }

// A column of 16-bit floats.
fn head(at: u32, quad: u32) -> vec4<f32> {
    let word = 4u * at + 2u * quad;
    let two = vec2<u32>(word_of_weight(word), word_of_weight(word + 1u));
    if (SCALE == 1) {
        let low = two << vec2<u32>(16u);
        let high = two & vec2<u32>(0xffff0000u);
        return bitcast<vec4<f32>>(vec4<u32>(low.x, high.x, low.y, high.y));
    }
    return vec4<f32>(unpack2x16float(two.x), unpack2x16float(two.y));
}

fn head_at(panel: u32, block: u32) -> u32 {
    return weight_base() + panel * params.panel_stride +
        block / u32(HEAD_BLOCKS) * u32(HEAD_STRIDE);
}

fn block_at(panel: u32, block: u32) -> u32 {
    return head_at(panel, block) + u32(HEAD_VECTORS) +
        block % u32(HEAD_BLOCKS) * u32(BLOCK_VECTORS);
}

fn odd_step(d: vec4<f32>, s: vec4<u32>) -> vec4<f32> {
    return d * vec4<f32>(2u * s + vec4<u32>(1u)) * (1.0 / f32(UNITS));
}

// Of one half of a block, of quants less their bias. SCALE is wk_panel_scale.
fn centred_scale(panel: u32, quad: u32, block: u32, half: u32) -> Scale {
    let heads = head_at(panel, block);
    let scales = block_at(panel, block);
    let d = head(heads, quad);
    var step = d;
    var offset = vec4<f32>();
    switch SCALE {
        case 2: { offset = head(heads + 2u, quad); }
        case 3: { step = head(heads + 2u * half, quad); }
        case 4: { step = d * signed_bytes(word_of_weight(4u * scales + quad)); }
        case 5: { step = d * signed_bytes(word_of_weight(4u * (scales + half) + quad)); }
        case 6: {
            step = d * vec4<f32>(row_bytes(scales, quad));
            offset = -(head(heads + 2u, quad) * vec4<f32>(row_bytes(scales + 1u, quad)));
        }
        case 7: {
            let both = row_bytes(scales + half, quad);
            step = d * vec4<f32>(both & vec4<u32>(15u));
            offset = -(head(heads + 2u, quad) * vec4<f32>(both >> vec4<u32>(4u)));
        }
        case 8: { step = odd_step(d, row_bytes(scales, quad)); }
        case 9: {
            let both = row_bytes(scales, quad);
            step = odd_step(d, (both >> vec4<u32>(4u * half)) & vec4<u32>(15u));
        }
        case 10: {
            let upper = row_bytes(scales + u32(ENTRIES) + 1u, quad);
            step = odd_step(d, (upper >> vec4<u32>(4u)) & vec4<u32>(7u));
        }
        default: {}
    }
    return Scale(step, offset);
}

fn weight_scale(panel: u32, quad: u32, block: u32, half: u32) -> Scale {
    var scale = centred_scale(panel, quad, block, half);
    // The products with quants of at most 8 bits are exact: nothing is rounded twice.
    if (BIAS != 0) { scale.offset -= f32(BIAS) * scale.step; }
    return scale;
}

fn bits_words(quants: u32, quad: u32, group: u32) -> vec4<u32> {
    let lower = load_weight(quants + group % u32(LOWER) * 4u + quad);
    let word = (lower >> vec4<u32>(group / u32(LOWER) * u32(LOWER))) & vec4<u32>(LOWER_MASK);
    if (UPPER == 0) { return word; }
    let upper = load_weight(quants + (u32(LOWER) + group / u32(UPPER_GROUPS)) * 4u + quad);
    let by = u32(LOWER) + u32(UPPER) * (group % u32(UPPER_GROUPS));
    let turned = (upper >> vec4<u32>(by)) | (upper << vec4<u32>(32u - by));
    return word | ((turned & vec4<u32>(UPPER_BITS_MASK)) << vec4<u32>(u32(LOWER)));
}

// Four elements of `bits` bits each, the first one lowest, to bytes.
fn spread(word: vec4<u32>, bits: u32) -> vec4<u32> {
    let pair = (1u << (2u * bits)) - 1u;
    let two = (word | (word << vec4<u32>(16u - 2u * bits))) & vec4<u32>(pair | (pair << 16u));
    return (two | (two << vec4<u32>(8u - bits))) &
        vec4<u32>(0x01010101u * ((1u << bits) - 1u));
}

// The leading digit in base 3 of each byte of two, times 3^group.
fn digits(two: vec4<u32>, group: u32) -> vec4<u32> {
    var power = 1u;
    for (var i = 0u; i < group; i++) { power *= 3u; }
    let rest = (two * power) & vec4<u32>(0x00ff00ffu);
    return ((rest * 3u) >> vec4<u32>(8u)) & vec4<u32>(0x00ff00ffu);
}

fn trits_words(quants: u32, quad: u32, group: u32) -> vec4<u32> {
    if (group >= 5u) { return spread(row_bytes(quants + group - 1u, quad), 2u); }
    let word = load_weight(quants + quad);
    let odd = digits((word >> vec4<u32>(8u)) & vec4<u32>(0x00ff00ffu), group);
    return digits(word & vec4<u32>(0x00ff00ffu), group) | (odd << vec4<u32>(8u));
}

fn grid_entry(i: u32) -> u32 {
    return (load_tables(params.tables + u32(GRID) + i / 2u) >> (16u * (i % 2u))) & 0xffffu;
}

fn upper_bits(quants: u32, quad: u32) -> vec4<u32> {
    var upper = vec4<u32>();
    if (UPPER_BYTES > 0) { upper = row_bytes(quants + u32(ENTRIES), quad); }
    if (UPPER_BYTES > 1) {
        upper |= row_bytes(quants + u32(ENTRIES) + 1u, quad) << vec4<u32>(8u);
    }
    return upper;
}

fn grid_entries(quants: u32, quad: u32, j: u32, upper: vec4<u32>) -> vec4<u32> {
    let high = (upper >> vec4<u32>(u32(UPPER_STEP) * j)) & vec4<u32>(u32(UPPER_MASK));
    let index = row_bytes(quants + j, quad) | (high << vec4<u32>(8u));
    return vec4<u32>(grid_entry(index.x), grid_entry(index.y), grid_entry(index.z),
                     grid_entry(index.w));
}

// Groups 2 part and 2 part + 1.
fn grid_words(quants: u32, quad: u32, part: u32) -> array<vec4<u32>, 2> {
    let upper = upper_bits(quants, quad);
    if (ENTRIES == 8) {
        let first = grid_entries(quants, quad, 2u * part, upper);
        let second = grid_entries(quants, quad, 2u * part + 1u, upper);
        return array<vec4<u32>, 2>(spread(first, 3u), spread(second, 3u));
    }
    let both = grid_entries(quants, quad, part, upper);
    var down = vec4<u32>();
    if (HAS_DOWN != 0) {
        let bit = select(u32(UPPER_STEP) * part + 3u, 15u, UPPER_STEP == 3);
        down = ((upper >> vec4<u32>(bit)) & vec4<u32>(1u)) * 0x08080808u;
    }
    return array<vec4<u32>, 2>(spread(both & vec4<u32>(255u), 2u) | down,
                               spread(both >> vec4<u32>(8u), 2u) | down);
}

// Four elements as the bytes of each row's word. CODE is wk_panel_code.
fn part_words(quants: u32, quad: u32, part: u32) -> array<vec4<u32>, 2> {
    if (CODE == 2) { return grid_words(quants, quad, part); }
    if (CODE == 1) {
        return array<vec4<u32>, 2>(trits_words(quants, quad, 2u * part),
                                   trits_words(quants, quad, 2u * part + 1u));
    }
    return array<vec4<u32>, 2>(bits_words(quants, quad, 2u * part),
                               bits_words(quants, quad, 2u * part + 1u));
}

// The four elements of each row that are negative, of a group.
fn sign_bits(quants: u32, quad: u32, group: u32) -> vec4<u32> {
    if (HAS_SIGNS == 0) { return vec4<u32>(); }
    let first = 4u * (quants + u32(ENTRIES + UPPER_BYTES)) + 2u * group;
    let four = word_of_weight(first + quad / 2u) >> (16u * (quad % 2u));
    return vec4<u32>(four) >> vec4<u32>(0u, 4u, 8u, 12u);
}

fn quants_of(words: vec4<u32>, e: u32) -> vec4<f32> {
    let q = (words >> vec4<u32>(8u * e)) & vec4<u32>(255u);
    if (LEVELS < 0) { return vec4<f32>(q); }
    return vec4<f32>(levels[q.x & 15u], levels[q.y & 15u], levels[q.z & 15u], levels[q.w & 15u]);
}

// Elements 8 part ... 8 part + 7 of a block; scale is that of their half.
fn weight_part(panel: u32, quad: u32, block: u32, part: u32, scale: Scale)
    -> array<vec4<f32>, 8> {
    let quants = block_at(panel, block) + u32(SCALE_VECTORS);
    var words = part_words(quants, quad, part);
    var w = array<vec4<f32>, 8>();
    for (var g = 0u; g < 2u; g++) {
        let signs = sign_bits(quants, quad, 2u * part + g);
        for (var e = 0u; e < 4u; e++) {
            var x = fma(quants_of(words[g], e), scale.step, scale.offset);
            if (HAS_SIGNS != 0) {
                let sign = (signs >> vec4<u32>(e)) << vec4<u32>(31u);
                x = bitcast<vec4<f32>>(bitcast<vec4<u32>>(x) ^ sign);
            }
            w[4u * g + e] = x;
        }
    }
    return w;
}
