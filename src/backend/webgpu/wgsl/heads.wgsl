// The heads of a batch's rows, a workgroup each: queries are turned by their position; keys, too, and
// go to their slots of the cache; values go there as they are. HAS_NORM: queries and keys are
// x / sqrt(mean(x^2) + eps) * weight first. How the cache is written: kv_append_elements.wgsl and
// kv_append_blocks.wgsl, which find a head in load_fresh().
struct Params {
    y: vec4<u32>,                  // strides of [row, head, element]
    q: vec4<u32>,
    k: vec4<u32>,
    v: vec4<u32>,
    k_cache: vec4<u32>,            // of [block, key head, slot in it, item]
    v_cache: vec4<u32>,
    turns: vec4<u32>,              // of cosines [row, pair], of sines
    fresh: vec4<u32>,
    first: vec4<u32>,              // y, q, k, v
    first_cache: vec4<u32>,        // k_cache, v_cache, batch, fault
    first_turns: vec4<u32>,        // cos, sin, weight of queries, of keys
    weights: vec4<u32>,            // their strides
    n_groups: u32,                 // workgroups
    n_q: u32, n_k: u32,            // heads of a row
    d: u32, e: u32,                // of a query and key, of a value
    half: u32,                     // pairs that are turned
    block_size: u32,
    n_blocks: u32,
    n_sequences: u32,
    sequences: u32,                // sections of the batch descriptor
    slots: u32,
    fault: u32,
    q_eps: f32, k_eps: f32,
}

struct Place { local: u32, lane: u32 }

const STEP = 1u;

var<workgroup> values: array<f32, ROOM>;
var<private> is_value: bool;

fn load_fresh(i: u32) -> f32 { return values[i]; }

fn store_cache(i: u32, value: V_k_cache) {
    if (is_value) {
        store_v_cache(i, value);
    } else {
        store_k_cache(i, value);
    }
}

fn load_values(local: u32, kind: u32, row: u32, head: u32, n: u32) {
    for (var i = local; i < n; i += u32(THREADS)) {
        let at = vec3<u32>(row, head, i);
        switch kind {
            case 0u: { values[i] = load_q(params.first.y + dot(at, params.q.xyz)); }
            case 1u: { values[i] = load_k(params.first.z + dot(at, params.k.xyz)); }
            default: { values[i] = load_v(params.first.w + dot(at, params.v.xyz)); }
        }
    }
    workgroupBarrier();
}

// The sum of squares in the order of norm.wgsl.
fn norm(local: u32, is_key: bool) {
    let p = Place(local, local % u32(LANES));
    let n = params.d;
    var squares = vec4<f32>(0.0);
    for (var i = p.lane; i < n; i += 4u * u32(LANES)) {
        for (var j = 0u; j < 4u; j++) {
            let k = i + j * u32(LANES);
            let x = select(0.0, values[min(k, n - 1u)], k < n);
            squares[j] += x * x;
        }
    }
    let sum = (squares.x + squares.y) + (squares.z + squares.w);
    let all = sum_lanes(p, vec2<f32>(0.0, sum)).y;
    let factor = 1.0 / sqrt(all / f32(n) + select(params.q_eps, params.k_eps, is_key));
    workgroupBarrier();
    for (var i = local; i < n; i += u32(THREADS)) {
        var y = values[i] * factor;
        if (is_key) {
            y *= load_k_norm(params.first_turns.w + i * params.weights.y);
        } else {
            y *= load_q_norm(params.first_turns.z + i * params.weights.x);
        }
        values[i] = y;
    }
    workgroupBarrier();
}

fn turn(local: u32, row: u32) {
    for (var u = local; u < params.half; u += u32(THREADS)) {
        let i = select(u, 2u * u, IS_INTERLEAVED == 1);
        let j = select(u + params.half, 2u * u + 1u, IS_INTERLEAVED == 1);
        let at = vec2<u32>(row, u);
        let cosine = load_cos(params.first_turns.x + dot(at, params.turns.xy));
        let sine = load_sin(params.first_turns.y + dot(at, params.turns.zw));
        let a = values[i];
        let b = values[j];
        values[i] = a * cosine - b * sine;
        values[j] = a * sine + b * cosine;
    }
    workgroupBarrier();
}

fn append(local: u32, row: u32, head: u32, n: u32) {
    let sequence = load_batch(params.first_cache.z + params.sequences + row);
    let slot = load_batch(params.first_cache.z + params.slots + row);
    if (sequence == 0xffffffffu) { return; }
    let block = slot / params.block_size;
    if (sequence >= params.n_sequences || block >= params.n_blocks) {
        store_fault(params.first_cache.w, params.fault);
        return;
    }
    let stride = select(params.k_cache, params.v_cache, is_value);
    let to = vec3<u32>(block, head, slot % params.block_size) * stride.xyz;
    let begin = select(params.first_cache.x, params.first_cache.y, is_value) + to.x + to.y + to.z;
    for (var i = local; i < n / u32(ITEM); i += u32(THREADS)) {
        put(begin + i * stride.w, i * u32(ITEM));
    }
}

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
    let number = group.y * groups.x + group.x;
    if (number >= params.n_groups) { return; }
    let row = number / (params.n_q + 2u * params.n_k);
    var head = number % (params.n_q + 2u * params.n_k);
    var kind = 0u; // query, key, value
    if (head >= params.n_q) {
        kind = 1u + (head - params.n_q) / params.n_k;
        head = (head - params.n_q) % params.n_k;
    }
    is_value = kind == 2u;
    let n = select(params.d, params.e, is_value);
    load_values(local, kind, row, head, n);
    if (kind < 2u) {
        if (HAS_NORM == 1) { norm(local, kind == 1u); }
        turn(local, row);
    }
    if (kind > 0u) {
        append(local, row, head, n);
        return;
    }
    for (var i = local; i < n; i += u32(THREADS)) {
        store_y(params.first.x + dot(vec3<u32>(row, head, i), params.y.xyz), values[i]);
    }
}
