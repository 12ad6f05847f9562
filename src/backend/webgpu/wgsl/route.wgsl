// After the norm of a row: its product with a router's weight of up to EXPERTS rows, summed in the
// order of linear.wgsl, the largest of these logits, and their gates. GATING 1: the softmax of the
// chosen logits; 2: the softmax of all, of which these are the chosen; 3: as 2, divided by their sum.
const QUADS = u32(EXPERTS) / 4u; // of rows of the weight, which lies in panels of 16
const CHUNKS = 16u;

var<workgroup> sums_of_chunks: array<vec4<f32>, CHUNKS * QUADS>;
var<workgroup> logits: array<f32, EXPERTS>;
var<workgroup> chosen: array<u32, 16>;
var<workgroup> powers: array<f32, 16>; // sums of exponentials, by lane

fn kept(p: Place, i: u32) -> f32 { return logits[chosen[i]]; }

fn place_of(x: f32) -> i32 { return select(order(x), 0x7fffffff, is_nan(x)); }

fn chunk_begin(chunk: u32) -> u32 { return min(chunk * params.blocks / CHUNKS * 32u, params.n); }

fn multiply(x: u32, local: u32) {
    for (var item = local; item < CHUNKS * QUADS; item += u32(THREADS)) {
        let quad = item % QUADS;
        let chunk = item / QUADS;
        let at = params.router + quad / 4u * params.panel_stride + quad % 4u;
        var sum = vec4<f32>();
        for (var i = chunk_begin(chunk); i < chunk_begin(chunk + 1u); i++) {
            let w = bitcast<vec4<f32>>(load_router(at + 4u * i));
            sum = fma(w, vec4<f32>(load_y(x + i)), sum);
        }
        sums_of_chunks[item] = sum;
    }
    workgroupBarrier();
    for (var e = local; e < params.n_experts; e += u32(THREADS)) {
        var total = 0.0;
        for (var chunk = 0u; chunk < CHUNKS; chunk++) {
            total += sums_of_chunks[chunk * QUADS + e / 4u][e % 4u];
        }
        if (HAS_BIAS == 1) { total += load_bias(params.bias + e * params.bias_element); }
        logits[e] = total;
    }
    workgroupBarrier();
}

// The softmax of all logits in their place, by as many lanes as softmax.wgsl takes and in its order.
fn soften(local: u32) {
    let lanes = select(16u, 1u, params.n_experts <= 16u);
    var most = logits[0];
    for (var i = 1u; i < params.n_experts; i++) {
        if (place_of(logits[i]) > place_of(most)) { most = logits[i]; }
    }
    for (var lane = local; lane < lanes; lane += u32(THREADS)) {
        var sum = vec4<f32>(0.0);
        for (var i = lane; i < params.n_experts; i += 4u * lanes) {
            for (var e = 0u; e < 4u && i + e * lanes < params.n_experts; e++) {
                sum[e] += exp_of(logits[i + e * lanes] - most);
            }
        }
        powers[lane] = sum_four(sum);
    }
    workgroupBarrier();
    if (local == 0u) {
        for (var half = lanes / 2u; half > 0u; half /= 2u) {
            for (var i = 0u; i < half; i++) { powers[i] += powers[i + half]; }
        }
    }
    workgroupBarrier();
    for (var e = local; e < params.n_experts; e += u32(THREADS)) {
        let share = exp_of(logits[e] - most) / powers[0];
        logits[e] = select(share, params.nan, magnitude(most) >= 0x7f800000u);
    }
    workgroupBarrier();
}

fn gate_of(p: Place, i: u32) -> f32 {
    if (GATING == 1) { return softmax_of_kept(p, i, params.n_kept, params.nan); }
    if (GATING == 2) { return kept(p, i); }
    var sum = vec4<f32>(0.0);
    for (var j = 0u; j < params.n_kept; j += 4u) {
        for (var l = 0u; l < 4u && j + l < params.n_kept; l++) { sum[l] += kept(p, j + l); }
    }
    return quotient(kept(p, i), sum_four(sum));
}

fn route(row: u32, p: Place) {
    storageBarrier();
    workgroupBarrier();
    multiply(params.first.y + row * params.row.y, p.local);
    if (GATING != 1) { soften(p.local); }
    for (var e = p.local; e < params.n_experts; e += u32(THREADS)) {
        let own = place_of(logits[e]);
        var rank = 0u;
        for (var i = 0u; i < params.n_experts; i++) {
            let other = place_of(logits[i]);
            if (other > own || (other == own && i < e)) { rank++; }
        }
        if (rank < params.n_kept) { chosen[rank] = e; }
    }
    workgroupBarrier();
    for (var i = p.local; i < params.n_kept; i += u32(THREADS)) {
        store_ids(params.ids + row * params.ids_row + i, chosen[i]);
        store_gates(params.gates + row * params.gates_row + i, gate_of(p, i));
    }
}
