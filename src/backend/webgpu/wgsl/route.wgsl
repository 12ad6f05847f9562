// After the norm of a row: its product with a router's weight of up to EXPERTS rows, summed in the
// order of linear.wgsl, the largest of its elements, and the softmax of these.
const QUADS = u32(EXPERTS) / 4u; // of rows of the weight, which lies in panels of 16
const CHUNKS = 16u;

var<workgroup> sums_of_chunks: array<vec4<f32>, CHUNKS * QUADS>;
var<workgroup> logits: array<f32, EXPERTS>;
var<workgroup> chosen: array<u32, 16>;

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

fn route(row: u32, p: Place) {
    storageBarrier();
    workgroupBarrier();
    multiply(params.first.y + row * params.row.y, p.local);
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
        store_gates(params.gates + row * params.gates_row + i,
                    softmax_of_kept(p, i, params.n_kept, params.nan));
    }
}
