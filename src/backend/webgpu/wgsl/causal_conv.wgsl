// Causal depthwise convolution with the inputs before the batch in a state. A thread takes one
// channel through the rows of one sequence; the threads of the sequence after the last one take the
// padding rows and the faulty ones. What becomes of a sum, finished(), is written after this text.
struct Params {
    y: vec4<u32>,      // strides of [row, channel]; first
    x: vec4<u32>,
    state: vec4<u32>,  // strides of [slot, input, channel]; first
    weight: vec4<u32>, // strides of [channel, tap]; first
    bias: vec4<u32>,   // stride; first
    batch: vec4<u32>,  // first; sections: positions, sequences, states
    n_groups: u32,
    n_blocks: u32,     // of channels, 64 each
    n_channels: u32,
    n_rows: u32,
    n_sequences: u32,
    n_slots: u32,
    fault_at: u32,
    fault: u32,
}

const NONE = 0xffffffffu;

fn slot_of(sequence: u32) -> u32 {
    return load_batch(params.batch.x + params.batch.w + sequence);
}

fn y_at(row: u32, channel: u32) -> u32 {
    return params.y.z + row * params.y.x + channel * params.y.y;
}

fn convolve(sequence: u32, slot: u32, channel: u32) {
    let begin = params.state.w + slot * params.state.x + channel * params.state.z;
    let taps = params.weight.z + channel * params.weight.x;
    var before: array<f32, BEFORE>;
    for (var j = 0; j < BEFORE; j++) { before[j] = load_state(begin + u32(j) * params.state.y); }
    for (var row = 0u; row < params.n_rows; row++) {
        if (load_batch(params.batch.x + params.batch.z + row) != sequence) { continue; }
        if (load_batch(params.batch.x + params.batch.y + row) == 0u) {
            for (var j = 0; j < BEFORE; j++) { before[j] = 0.0; }
        }
        let x = load_x(params.x.z + row * params.x.x + channel * params.x.y);
        var sum = 0.0;
        if (HAS_BIAS == 1) { sum = load_bias(params.bias.y + channel * params.bias.x); }
        for (var j = 0; j < BEFORE; j++) {
            sum = fma(before[j], load_weight(taps + u32(j) * params.weight.y), sum);
        }
        sum = fma(x, load_weight(taps + u32(BEFORE) * params.weight.y), sum);
        store_y(y_at(row, channel), finished(sum));
        for (var j = 0; j + 1 < BEFORE; j++) { before[j] = before[j + 1]; }
        before[BEFORE - 1] = x;
    }
    for (var j = 0; j < BEFORE; j++) { store_state(begin + u32(j) * params.state.y, before[j]); }
}

fn clear(channel: u32) {
    for (var row = 0u; row < params.n_rows; row++) {
        let sequence = load_batch(params.batch.x + params.batch.z + row);
        if (sequence == NONE) {
            store_y(y_at(row, channel), 0.0);
        } else if (sequence >= params.n_sequences || slot_of(sequence) >= params.n_slots) {
            store_fault(params.fault_at, params.fault);
        }
    }
}

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
    let number = group.y * groups.x + group.x;
    let channel = number % params.n_blocks * 64u + local;
    let sequence = number / params.n_blocks;
    if (number >= params.n_groups || channel >= params.n_channels) { return; }
    if (sequence == params.n_sequences) {
        clear(channel);
        return;
    }
    let slot = slot_of(sequence);
    if (slot < params.n_slots) { convolve(sequence, slot, channel); }
}
