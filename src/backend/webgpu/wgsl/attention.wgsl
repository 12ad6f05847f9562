// Attention of 4 QUADS queries of one key head. 32 threads are a quad: they go through the keys in
// steps of 128, each with four keys for four queries, then with four elements of the values.
// The order of a query's sums is the same for any number of queries in its workgroup and any SPLIT:
//
//   SPLIT 1  a workgroup has one span of keys and writes its part, attention_combine.wgsl the rest
//   SPLIT 0  it has all of them and writes the result
const STEP = 128u;
const N_THREADS = u32(QUADS) * 32u;
const N_QUERIES = u32(QUADS) * 4u;
const N_SHARES = 32u / u32(E_LANES); // of a step's keys: threads that have the same elements

var<workgroup> queries: array<vec4<f32>, QUADS * D_ROOM>; // element by element, of a quad's four
var<workgroup> weights: array<vec4<f32>, QUADS * 128>;
var<workgroup> lanes: array<vec4<f32>, QUADS * 32>;
var<workgroup> value_at: array<u32, 128>;
var<workgroup> rows: array<vec4<u32>, QUADS * 4>;
var<workgroup> targets: array<u32, QUADS * 4>; // where the queries' results begin; NONE: nowhere
var<workgroup> run: vec4<u32>;

// Of the thread's four queries:
var<private> first_key: vec4<u32>;
var<private> end_key: vec4<u32>;
var<private> position: vec4<u32>;
var<private> slope: vec4<f32>;
var<private> largest: vec4<f32>;
var<private> total: vec4<f32>; // within a span: the thread's share of it
var<private> is_broken: vec4<bool>;
var<private> sums: array<vec4<f32>, 4 * E_CHUNKS>;
var<private> all_largest: vec4<f32>;
var<private> all_total: vec4<f32>;
var<private> all_sums: array<vec4<f32>, 4 * E_CHUNKS>;

struct Tile {
    batch: u32,
    group: u32,
    begin: u32,  // queries of the key head: row * heads + head
    end: u32,
    local: u32,
    quad: u32,
    lane: u32,
}

fn soft_capped(x: vec4<f32>) -> vec4<f32> {
    if ((params.has & HAS_SOFTCAP) == 0u) { return x; }
    let y = x / params.softcap;
    let t = exp(-2.0 * min(abs(y), vec4<f32>(40.0)));
    let far = sign(y) * (1.0 - t) / (1.0 + t);
    let s = y * y;
    let near = y * (1.0 - s * (1.0 / 3.0 - s * (2.0 / 15.0)));
    return params.softcap * select(far, near, s < vec4<f32>(0.01));
}

fn logit_of(t: Tile, dot: vec4<f32>, key: u32, is_missing: bool) -> vec4<f32> {
    let seen = (vec4<u32>(key) >= first_key) & (vec4<u32>(key) < end_key);
    if (is_missing) { is_broken = is_broken | seen; }
    var x = soft_capped(dot * params.scale);
    if ((params.has & HAS_SLOPES) != 0u) {
        x = fma(slope, vec4<f32>(bitcast<vec4<i32>>(vec4<u32>(key) - position)), x);
    }
    return select(vec4<f32>(params.low), changed(t, x, key, seen), seen);
}

// Block of a key that is seen by some; NONE: it is not in the cache.
fn find_block(t: Tile, here: vec4<u32>, key: u32) -> u32 {
    if (key < here.z || key >= here.w) { return 0u; }
    let block = block_of(here.y, t.batch, key);
    return select(NONE, block, block < params.n_blocks);
}

fn place(block: u32, group: u32, key: u32, stride: vec4<u32>) -> u32 {
    let valid = select(block, 0u, block == NONE);
    return valid * stride.x + group * stride.y + key % params.block_size * stride.z;
}

fn weigh_step(t: Tile, here: vec4<u32>, step: u32) {
    for (var i = t.local; i < 4u * params.n_lanes; i += N_THREADS) {
        let block = find_block(t, here, step + i);
        value_at[i] = params.first.w + place(block, t.group, step + i, params.v);
    }
    let key = step + 4u * t.lane;
    var at: vec4<u32>;
    var blocks: vec4<u32>;
    for (var i = 0u; i < 4u && i < params.n_lanes / 8u; i++) {
        blocks[i] = find_block(t, here, key + i);
        at[i] = params.first.z + place(blocks[i], t.group, key + i, params.k);
    }
    if (ALONG_KEYS != 0) { // the keys outside were given block 0
        let block = max(max(blocks.x, blocks.y), max(blocks.z, blocks.w));
        at.x = params.first.z + place(block, t.group, key, params.k);
    }
    let dots = dot_keys(at, t.quad * u32(D_ROOM));
    let to = t.quad * STEP + 4u * t.lane;
    weights[to] = dots[0];
    weights[to + 1u] = dots[1];
    weights[to + 2u] = dots[2];
    weights[to + 3u] = dots[3];
    var most_here = vec4<f32>(params.low);
    for (var i = 0u; i < 4u && i < params.n_lanes / 8u; i++) {
        let logit = logit_of(t, weights[to + i], key + i, blocks[i] == NONE);
        weights[to + i] = logit;
        most_here = max(most_here, logit);
    }
    lanes[t.local] = most_here;
    workgroupBarrier();
    var most = largest;
    for (var i = t.quad * 32u; i < t.quad * 32u + params.n_lanes; i += 4u) {
        most = max(most, max(max(lanes[i], lanes[i + 1u]), max(lanes[i + 2u], lanes[i + 3u])));
    }
    let base = base_of(most);
    let times = factor(largest - base);
    largest = most;
    for (var i = 0; i < 4 * E_CHUNKS; i++) { sums[i] *= times; }
    total *= times;
    for (var i = to; i < to + params.n_lanes / 8u; i++) {
        let w = weight(weights[i] - base);
        weights[i] = w;
        total += w;
    }
}

// Values of keys that no query sees are not read: their blocks may hold anything.
fn add_values(t: Tile, here: vec4<u32>, step: u32) {
    let end = min(here.w - step, STEP);
    let first = max(here.z, step) - step;
    let share = t.lane / u32(E_LANES);
    for (var c = 0; c < E_CHUNKS; c++) {
        let element = (u32(c * E_LANES) + t.lane % u32(E_LANES)) * 4u;
        var s0 = sums[4 * c];
        var s1 = sums[4 * c + 1];
        var s2 = sums[4 * c + 2];
        var s3 = sums[4 * c + 3];
        for (var j = first / N_SHARES * N_SHARES; j < end; j += u32(WIDTH) * N_SHARES) {
            let held = held_weight(t.quad, j + share);
            for (var i = 0u; i < u32(WIDTH) && j + i * N_SHARES < end; i++) {
                let key = j + i * N_SHARES + share;
                let w = weight_of(held, t.quad, key, i);
                if (key >= first && key < end && element < params.e) {
                    let v = four_of_value(w.place, element);
                    s0 = fma(v.xxxx, w.weight, s0);
                    s1 = fma(v.yyyy, w.weight, s1);
                    s2 = fma(v.zzzz, w.weight, s2);
                    s3 = fma(v.wwww, w.weight, s3);
                }
            }
        }
        sums[4 * c] = s0;
        sums[4 * c + 1] = s1;
        sums[4 * c + 2] = s2;
        sums[4 * c + 3] = s3;
    }
}

// The part of the keys in [begin, end) that are within here.
fn attend_span(t: Tile, here: vec4<u32>, begin: u32, end: u32) {
    largest = vec4<f32>(params.low);
    total = vec4<f32>(0.0);
    is_broken = vec4<bool>(false);
    for (var i = 0; i < 4 * E_CHUNKS; i++) { sums[i] = vec4<f32>(0.0); }
    let from_key = max(here.z, begin) / STEP * STEP;
    for (var step = from_key; step < min(here.w, end); step += STEP) {
        workgroupBarrier();
        weigh_step(t, here, step);
        workgroupBarrier();
        add_values(t, here, step);
    }
    workgroupBarrier();
    lanes[t.local] = select(total, vec4<f32>(-1.0), is_broken);
    if (N_SHARES > 1u) {
        for (var i = 0u; i < 4u; i++) { weights[t.quad * STEP + t.lane * 4u + i] = sums[i]; }
    }
    workgroupBarrier();
    total = vec4<f32>(0.0);
    for (var i = t.quad * 32u; i < t.quad * 32u + params.n_lanes; i++) {
        is_broken = is_broken | (lanes[i] < vec4<f32>(0.0));
        total += lanes[i];
    }
    total = select(total, vec4<f32>(-1.0), is_broken);
    if (N_SHARES > 1u) {
        let at = t.quad * STEP + t.lane % u32(E_LANES) * 4u;
        for (var i = 0u; i < 4u; i++) {
            var sum = weights[at + i];
            for (var s = 1u; s < N_SHARES; s++) { sum += weights[at + s * 4u * u32(E_LANES) + i]; }
            sums[i] = sum;
        }
    }
}

fn merge_span() {
    let most = max(all_largest, largest);
    let base = base_of(most);
    let times = factor(all_largest - base);
    let times_here = factor(largest - base);
    all_total = merged_weight(all_total, total, times, times_here);
    all_largest = most;
    for (var i = 0; i < 4 * E_CHUNKS; i++) {
        all_sums[i] = fma(sums[i], times_here, all_sums[i] * times);
    }
}

// The sums to the targets, through shared memory, so that neighbours are written together.
fn store_sums(t: Tile, stride: u32) {
    for (var c = 0; c < E_CHUNKS; c++) {
        workgroupBarrier();
        if (t.lane < u32(E_LANES)) {
            let to = t.quad * STEP + t.lane * 4u;
            weights[to] = sums[4 * c];
            weights[to + 1u] = sums[4 * c + 1];
            weights[to + 2u] = sums[4 * c + 2];
            weights[to + 3u] = sums[4 * c + 3];
        }
        workgroupBarrier();
        let begin = u32(c * E_LANES) * 4u;
        let n = min(params.e - min(begin, params.e), u32(E_LANES) * 4u);
        for (var k = t.lane; k < 4u * n; k += 32u) {
            let to = targets[t.quad * 4u + k / n];
            let l = k % n;
            if (to == NONE) { continue; }
            store_y(to + (begin + l) * stride, weights[t.quad * STEP + l][k / n]);
        }
    }
}

fn own_lane(t: Tile) -> vec4<bool> { return vec4<u32>(0u, 1u, 2u, 3u) == vec4<u32>(t.lane); }

fn store_parts(t: Tile, is_mine: vec4<bool>, span: u32) {
    if (t.lane < 4u) {
        let query = (t.batch * params.n_groups + t.group) * params.n_rows * params.heads + t.begin
            + t.quad * 4u + t.lane;
        let at = params.first.x + (query * params.n_spans + span) * (params.e + 2u);
        let is_own = any(is_mine & own_lane(t));
        if (is_own) {
            let low = select(vec4<f32>(largest.xy, total.xy), vec4<f32>(largest.zw, total.zw),
                             t.lane > 1u);
            let both = select(low.xz, low.yw, t.lane % 2u == 1u);
            store_y(at, both.x);
            store_y(at + 1u, both.y);
        }
        targets[t.quad * 4u + t.lane] = select(NONE, at + 2u, is_own);
    }
    store_sums(t, 1u);
}

// The sums of merge_span; zeros for padding rows, which do not belong to a sequence.
fn store_results(t: Tile, is_mine: vec4<bool>, sequence: u32) {
    let end = ending(all_largest, all_total, sinks_of(t));
    for (var i = 0; i < 4 * E_CHUNKS; i++) {
        sums[i] = select(all_sums[i] * end.times / end.by, vec4<f32>(0.0), sequence == NONE);
    }
    let failed = is_mine & ((all_total < vec4<f32>(0.0)) | vec4<bool>(sequence == NONE - 1u));
    if (any(failed)) { fail(); }
    if (t.lane < 4u) {
        let query = t.begin + t.quad * 4u + t.lane;
        let head = t.group * params.heads + query % params.heads;
        let at = params.first.x
            + dot(vec3<u32>(t.batch, head, query / params.heads), params.y.xyz);
        let is_wanted = any(is_mine & !failed & own_lane(t));
        targets[t.quad * 4u + t.lane] = select(NONE, at, is_wanted);
    }
    store_sums(t, params.y.w);
}

fn sinks_of(t: Tile) -> vec4<f32> {
    var sink = vec4<f32>(params.low);
    if ((params.has & HAS_SINKS) == 0u) { return sink; }
    for (var i = 0u; i < 4u && i < params.n_lanes / 8u; i++) {
        let head = t.group * params.heads + (t.begin + t.quad * 4u + i) % params.heads;
        sink[i] = f32(load_sinks(params.first_more.z + head * params.sinks_stride));
    }
    return sink;
}

// The tile's queries, element by element; zeros where there is none.
fn load_queries(t: Tile) {
    for (var l = t.lane; l < params.d; l += 32u) {
        var q = vec4<f32>(0.0);
        for (var i = 0u; i < 4u && i < params.n_lanes / 8u; i++) {
            let query = t.begin + t.quad * 4u + i;
            if (query >= t.end) { continue; }
            let head = t.group * params.heads + query % params.heads;
            let at = vec4<u32>(t.batch, head, query / params.heads, l) * params.q;
            q[i] = f32(load_q(params.first.y + at.x + at.y + at.z + at.w));
        }
        queries[t.quad * u32(D_ROOM) + l] = q;
    }
}

// The run of rows from begin on that are of one sequence: the row after the run, the sequence, the
// first key that one of the rows sees, the key after the last.
fn find_run(begin: u32, n: u32) -> vec4<u32> {
    var out = vec4<u32>(begin, rows[begin].x, NONE, 0u);
    while (out.x < n) {
        let row = rows[out.x];
        if (row.x != out.y) { break; }
        if (row.y < row.z) {
            out.z = min(out.z, row.y);
            out.w = max(out.w, row.z);
        }
        out.x++;
    }
    out.z = min(out.z, out.w);
    return out;
}

// Which of the thread's queries are of rows [begin, end) of the tile.
fn take_queries(t: Tile, begin: u32, end: u32) -> vec4<bool> {
    var is_mine = vec4<bool>(false);
    var firsts = vec4<u32>(0u);
    var ends = vec4<u32>(0u);
    var positions = vec4<u32>(0u);
    var slopes = vec4<f32>(0.0);
    for (var i = 0u; i < 4u && i < params.n_lanes / 8u; i++) {
        let query = t.begin + t.quad * 4u + i;
        let row = query / params.heads - t.begin / params.heads;
        if (query >= t.end || row < begin || row >= end) { continue; }
        is_mine[i] = true;
        firsts[i] = rows[row].y;
        ends[i] = rows[row].z;
        positions[i] = rows[row].w;
        let head = t.group * params.heads + query % params.heads;
        if ((params.has & HAS_SLOPES) != 0u) {
            slopes[i] = f32(load_slopes(params.first_more.w + head * params.slopes_stride));
        }
    }
    first_key = firsts;
    end_key = ends;
    position = positions;
    slope = slopes;
    return is_mine;
}

fn attend_all(t: Tile, here: vec4<u32>, is_mine: vec4<bool>) {
    all_largest = vec4<f32>(params.low);
    all_total = vec4<f32>(0.0);
    for (var i = 0; i < 4 * E_CHUNKS; i++) { all_sums[i] = vec4<f32>(0.0); }
    if (here.y < NONE - 1u && here.z < here.w) {
        for (var span = span_of(here.z); span_begin(span) < here.w; span++) {
            attend_span(t, here, span_begin(span), span_begin(span + 1u));
            merge_span();
        }
    }
    store_results(t, is_mine, here.y);
}

fn attend_one(t: Tile, here: vec4<u32>, is_mine: vec4<bool>, span: u32) {
    let begin = span_begin(span);
    let end = span_begin(span + 1u);
    if (here.y >= NONE - 1u || begin >= here.w || end <= here.z) { return; }
    attend_span(t, here, begin, end);
    store_parts(t, is_mine, span);
}

fn attend(number: u32, local: u32) {
    var id = number;
    if (id >= params.n_workgroups) { return; }
    var span = 0u;
    if (SPLIT != 0) {
        span = id % params.n_spans;
        id /= params.n_spans;
    }
    let tile = id % params.n_tiles;
    id /= params.n_tiles;
    let line = id % params.n_lines * params.line;
    id /= params.n_lines;
    let begin = line + tile * N_QUERIES;
    let end = min(begin + N_QUERIES, line + params.line);
    let t = Tile(id / params.n_groups, id % params.n_groups, begin, end, local, local / 32u,
                 local % 32u);
    let first_row = begin / params.heads;
    let n_rows = (end - 1u) / params.heads - first_row + 1u;
    if (local < n_rows) { rows[local] = row_of(first_row + local); }
    load_queries(t);
    workgroupBarrier();
    var row = 0u;
    while (row < n_rows) {
        if (local == 0u) { run = find_run(row, n_rows); }
        let here = workgroupUniformLoad(&run);
        let is_mine = take_queries(t, row, here.x);
        if (SPLIT != 0) {
            attend_one(t, here, is_mine, span);
        } else {
            attend_all(t, here, is_mine);
        }
        row = here.x;
    }
}
