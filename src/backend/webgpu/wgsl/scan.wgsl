// A linear recurrence: n numbers for each channel of each head, carried from token to token. LANES
// threads share a channel, each with PER of its numbers in registers, and a workgroup takes its
// channels through the rows of one sequence; those of the sequence after the last one take the
// padding rows and the faulty ones. Sums over the lanes are in one order. What becomes of a sum,
// finished(), is written after this text.
struct Params {
    y: vec4<u32>,     // strides of [row, head, channel]; first
    x: vec4<u32>,
    step: vec4<u32>,
    gate: vec4<u32>,  // the same, or strides of [head, channel, number]; first
    state: vec4<u32>, // strides of [slot, head, number, channel]
    bc: vec4<u32>,    // strides of [row, which, group, number]
    batch: vec4<u32>, // first; sections: positions, sequences, states
    first: vec4<u32>, // of state, bc, fault
    n_groups: u32,
    n_blocks: u32,    // of a head's channels
    n_heads: u32,
    n_channels: u32,
    n_numbers: u32,
    n_shared: u32,    // groups of b and c
    is_tiled: u32,
    n_rows: u32,
    n_sequences: u32,
    n_slots: u32,
    scale: f32,
    fault: u32,
    // Of finished alone.
    d: vec4<u32>,     // strides of [row, head, channel]; first
    z: vec4<u32>,
    alpha: f32,
    limit: f32,
}

const NONE = 0xffffffffu;
const COLUMNS = 64u / u32(LANES); // channels of a workgroup

struct Place {
    sequence: u32,
    slot: u32,
    head: u32,
    channel: u32,
    shared_by: u32, // group of b and c
    lane: u32,
    column: u32,
    local: u32,
    is_there: bool,
}

var<workgroup> next: u32;
var<workgroup> parts: array<f32, 64>;
var<private> numbers: array<f32, PER>;
var<private> rates: array<f32, PER>;

fn word(section: u32, i: u32) -> u32 { return load_batch(params.batch.x + section + i); }
fn slot_of(sequence: u32) -> u32 { return word(params.batch.w, sequence); }

// The first row of the sequence from row `begin` on; n_rows: there is none. The same for all threads
// in WebGPU's eyes, too.
fn next_row(p: Place, begin: u32) -> u32 {
    if (p.local == 0u) {
        var row = begin;
        while (row < params.n_rows && word(params.batch.z, row) != p.sequence) { row++; }
        next = select(params.n_rows, row, p.slot < params.n_slots);
    }
    return workgroupUniformLoad(&next);
}

fn sum_lanes(p: Place, value: f32) -> f32 {
    if (LANES == 1) { return value; }
    parts[p.local] = value;
    workgroupBarrier();
    var total = 0.0;
    for (var i = 0u; i < u32(LANES); i++) { total += parts[i * COLUMNS + p.column]; }
    workgroupBarrier();
    return total;
}

fn number_at(p: Place, k: i32) -> u32 { return u32(k * LANES) + p.lane; }
fn has_number(p: Place, k: i32) -> bool { return p.is_there && number_at(p, k) < params.n_numbers; }

fn state_at(p: Place, k: i32) -> u32 {
    let at = vec4<u32>(p.slot, p.head, number_at(p, k), p.channel) * params.state;
    return params.first.x + at.x + at.y + at.z + at.w;
}

fn offset(strides: vec4<u32>, a: u32, b: u32, c: u32) -> u32 {
    return strides.w + a * strides.x + b * strides.y + c * strides.z;
}

fn load_pair(p: Place, row: u32, which: i32, k: i32) -> f32 {
    let at = vec4<u32>(row, u32(which), p.shared_by, number_at(p, k)) * params.bc;
    return load_bc(params.first.y + at.x + at.y + at.z + at.w);
}
fn load_b(p: Place, row: u32, k: i32) -> f32 { return load_pair(p, row, IS_DELTA, k); }
fn load_c(p: Place, row: u32, k: i32) -> f32 { return load_pair(p, row, 1 - IS_DELTA, k); }

fn load_numbers(p: Place) {
    for (var k = 0; k < PER; k++) {
        numbers[k] = 0.0;
        rates[k] = 1.0;
        if (!has_number(p, k)) { continue; }
        numbers[k] = load_state(state_at(p, k));
        if (IS_DELTA == 0) {
            rates[k] = load_gate(offset(params.gate, p.head, p.channel, number_at(p, k)));
        }
    }
}

fn store_numbers(p: Place) {
    for (var k = 0; k < PER; k++) {
        if (has_number(p, k)) { store_state(state_at(p, k), numbers[k]); }
    }
}

fn fade(step: f32) {
    var decay = exp_of(step * rates[0]);
    for (var k = 0; k < PER; k++) {
        if (IS_PLAIN == 0) { decay = exp_of(step * rates[k]); }
        numbers[k] *= decay;
    }
}

// What is added to the numbers, times b.
fn input_of(p: Place, row: u32, x: f32, step: f32) -> f32 {
    if (IS_DELTA == 0) { return step * x; }
    var known = 0.0;
    for (var k = 0; k < PER; k++) {
        if (has_number(p, k)) { known = fma(numbers[k], load_b(p, row, k), known); }
    }
    known = sum_lanes(p, known);
    if (!p.is_there) { return 0.0; }
    return load_gate(offset(params.gate, row, p.head, p.channel)) * (x - known);
}

fn advance(p: Place, row: u32) {
    var x = 0.0;
    var step = 0.0;
    if (p.is_there) {
        x = load_x(offset(params.x, row, p.head, p.channel));
        step = load_step(offset(params.step, row, p.head, p.channel));
    }
    if (word(params.batch.y, row) == 0u) {
        for (var k = 0; k < PER; k++) { numbers[k] = 0.0; }
    }
    fade(step);
    let input = input_of(p, row, x, step);
    var sum = 0.0;
    for (var k = 0; k < PER; k++) {
        if (!has_number(p, k)) { continue; }
        numbers[k] = fma(input, load_b(p, row, k), numbers[k]);
        sum = fma(numbers[k], load_c(p, row, k), sum);
    }
    sum = sum_lanes(p, sum);
    if (p.is_there && p.lane == 0u) {
        store_y(offset(params.y, row, p.head, p.channel), finished(p, row, x, params.scale * sum));
    }
}

fn clear(p: Place) {
    if (!p.is_there || p.lane != 0u) { return; }
    for (var row = 0u; row < params.n_rows; row++) {
        let sequence = word(params.batch.z, row);
        if (sequence == NONE) {
            store_y(offset(params.y, row, p.head, p.channel), 0.0);
        } else if (sequence >= params.n_sequences || slot_of(sequence) >= params.n_slots) {
            store_fault(params.first.z, params.fault);
        }
    }
}

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
    let number = group.y * groups.x + group.x;
    if (number >= params.n_groups) { return; }
    let sequence = number / params.n_blocks / params.n_heads; // not of p: is the same for all
    var p: Place;
    p.sequence = sequence;
    p.local = local;
    p.lane = local / COLUMNS;
    p.column = local % COLUMNS;
    p.channel = number % params.n_blocks * COLUMNS + p.column;
    p.is_there = p.channel < params.n_channels;
    p.head = number / params.n_blocks % params.n_heads;
    p.shared_by = select(p.head / (params.n_heads / params.n_shared), p.head % params.n_shared,
                         params.is_tiled == 1u);
    if (sequence == params.n_sequences) {
        clear(p);
        return;
    }
    p.slot = slot_of(sequence);
    var row = next_row(p, 0u);
    if (row == params.n_rows) { return; }
    load_numbers(p);
    while (row < params.n_rows) {
        advance(p, row);
        row = next_row(p, row + 1u);
    }
    store_numbers(p);
}
