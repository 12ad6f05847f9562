// What all of attention shares: parameters, spans of keys, and softmax in parts (Milakov and
// Gimelshein, 2018). A part is what some keys give: their largest logit, the sum of the weights
// e^(logit - largest), the sums of the values by weight. Weights below 0 mark a part that met a
// block which is not in the cache.
struct Params {
    y: vec4<u32>,                  // strides of [batch, head, row, element]
    q: vec4<u32>,
    k: vec4<u32>,                  // [block or batch, key head, key, element]
    v: vec4<u32>,
    mask: vec4<u32>,               // [batch, head, row, key]
    bias: vec4<u32>,
    first: vec4<u32>,              // y q k v; combining: y, parts
    first_more: vec4<u32>,         // mask or batch, bias or fault, sinks, slopes
    n_groups: u32,                 // key heads
    heads: u32,                    // query heads of each
    n_rows: u32,
    n_keys: u32,                   // of a sequence: at most, in a cache
    d: u32,
    e: u32,
    block_size: u32,
    n_blocks: u32,                 // of the cache
    line: u32,                     // queries (row * heads + head) that share tiles
    n_tiles: u32,                  // of a line
    n_lines: u32,
    n_spans: u32,
    n_workgroups: u32,
    n_lanes: u32,                  // 32: a loop to it is not unrolled
    has: u32,                      // HAS_*
    sinks_stride: u32,
    slopes_stride: u32,
    window: u32,
    scale: f32,
    softcap: f32,
    low: f32,                      // -infinity, which WGSL cannot spell
    causal: u32,
    positions: u32,                // sections of the batch descriptor
    sequences: u32,
    lengths: u32,
    tables: u32,
    n_sequences: u32,
    table_blocks: u32,
    fault: u32,
}

const HAS_MASK = 1u;
const HAS_BIAS = 2u;
const HAS_SINKS = 4u;
const HAS_SLOPES = 8u;
const HAS_SOFTCAP = 16u;

const NONE = 0xffffffffu;
const SHORT_SPAN = 128u;
const SHORT_SPANS = 32u;
const LONG_SPAN = 512u;
const SHORT_KEYS = SHORT_SPAN * SHORT_SPANS;

// Spans count from key 0, so that a row's parts and their order are its own.
fn span_of(key: u32) -> u32 {
    if (key < SHORT_KEYS) { return key / SHORT_SPAN; }
    return SHORT_SPANS + (key - SHORT_KEYS) / LONG_SPAN;
}

fn span_begin(span: u32) -> u32 {
    if (span < SHORT_SPANS) { return span * SHORT_SPAN; }
    return SHORT_KEYS + (span - SHORT_SPANS) * LONG_SPAN;
}

// e^x of x <= 0; WGSL says nothing of what vanishes.
fn weight(x: vec4<f32>) -> vec4<f32> {
    let vanishes = x < vec4<f32>(-87.0);
    return select(exp(select(x, vec4<f32>(-87.0), vanishes)), vec4<f32>(0.0), vanishes);
}

// The same, exactly 1 of 0: a part that changes nothing must not.
fn factor(x: vec4<f32>) -> vec4<f32> {
    return select(weight(x), vec4<f32>(1.0), x >= vec4<f32>(0.0));
}

// What weights are relative to; any number will do where there is nothing yet.
fn base_of(largest: vec4<f32>) -> vec4<f32> {
    return select(largest, vec4<f32>(0.0), largest <= vec4<f32>(params.low));
}

fn merged_weight(a: vec4<f32>, b: vec4<f32>, fa: vec4<f32>, fb: vec4<f32>) -> vec4<f32> {
    let is_broken = (a < vec4<f32>(0.0)) | (b < vec4<f32>(0.0));
    return select(fma(b, fb, a * fa), vec4<f32>(-1.0), is_broken);
}

// What the sums are to be multiplied with and divided by.
struct Ending {
    times: vec4<f32>,
    by: vec4<f32>,
}

fn ending(largest: vec4<f32>, total: vec4<f32>, sink: vec4<f32>) -> Ending {
    let base = base_of(max(largest, sink));
    let times = factor(largest - base);
    let all = fma(total, times, weight(sink - base));
    return Ending(times, select(all, vec4<f32>(1.0), all == vec4<f32>(0.0)));
}
