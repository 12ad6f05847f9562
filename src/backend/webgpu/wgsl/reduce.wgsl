// Sums, extremes and their indices over the elements of rows. All dtypes go as bits: KIND says what
// they are (0 floats, 1 signed, 2 unsigned, 3 bools), FN is wk_reduce_fn.
// A state is a sum, a product (of floats a number of 1 to 2, in magnitude, and a power of two), or
// an extreme as a number of which the largest is wanted, and its index. Those
// of parts of rows (TO_PARTS) are elements of another dispatch (FROM_PARTS).
// own: bits of what a mean is divided by, and of NaN.
const IS_PRODUCT = FN == 7;
const IS_EXTREME = FN != 2 && FN != 3 && !IS_PRODUCT;
const IS_INDEX = FN < 2;
const IS_LEAST = FN == 1 || FN == 5;

// A float 2^exponent as a state; zeros, infinities and NaN as they are.
fn factor(x: u32, exponent: i32) -> vec2<u32> {
    var bits = x;
    var e = exponent - 127;
    if (((bits << 1u) - 1u) < 0x00ffffffu) { // subnormal: a whole number of 2^-149
        bits = bitcast<u32>(f32(bits & 0x007fffffu)) | (bits & 0x80000000u);
        e -= 149;
    }
    let field = (bits >> 23u) & 0xffu;
    if (field == 0u || field == 0xffu) { return vec2<u32>(bits, 0u); }
    return vec2<u32>((bits & 0x807fffffu) | 0x3f800000u, bitcast<u32>(e + i32(field)));
}

fn power_of_two(n: i32) -> f32 { return bitcast<f32>(u32(n + 127) << 23u); }

fn product_bits(state: vec2<u32>) -> u32 {
    let e = clamp(bitcast<i32>(state.y), -252, 254);
    let half = e >> 1u;
    return bitcast<u32>((bitcast<f32>(state.x) * power_of_two(half)) * power_of_two(e - half));
}

fn nothing() -> vec2<u32> {
    if (IS_PRODUCT) { return vec2<u32>(select(1u, 0x3f800000u, KIND == 0), 0u); }
    return vec2<u32>(0u, select(0u, 0xffffffffu, IS_EXTREME));
}

fn join(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {
    if (IS_EXTREME) { return select(a, b, b.x > a.x || (b.x == a.x && b.y < a.y)); }
    if (IS_PRODUCT && KIND == 0) {
        return factor(bitcast<u32>(bitcast<f32>(a.x) * bitcast<f32>(b.x)), bitcast<i32>(a.y + b.y));
    }
    if (IS_PRODUCT) { return vec2<u32>(a.x * b.x, 0u); }
    if (KIND == 0) {
        return vec2<u32>(bitcast<u32>(bitcast<f32>(a.x) + bitcast<f32>(b.x)), 0u);
    }
    return vec2<u32>(a.x + b.x, 0u);
}

// NaN is an extreme, but an index passes over it unless it comes first.
fn rank_of(bits: u32, i: u32) -> u32 {
    var order = bits;
    if (KIND == 0) {
        order = order_of(bits);
        if (order == 0xffffffffu) { return select(order, 0u, IS_INDEX && i > 0u); }
    }
    if (KIND == 1) { order = bits ^ 0x80000000u; }
    if (KIND == 3) { order = min(bits, 1u); }
    return select(order, ~order, IS_LEAST);
}

fn bits_of_rank(rank: u32) -> u32 {
    if (KIND == 0 && rank == 0xffffffffu) { return params.own.y; }
    let order = select(rank, ~rank, IS_LEAST);
    if (KIND == 0) { return bits_of_order(order); }
    if (KIND == 1) { return order ^ 0x80000000u; }
    return order;
}

fn element(p: Place, i: u32) -> vec2<u32> {
    if (i >= p.end) { return nothing(); }
    if (FROM_PARTS == 1) {
        let at = params.first.y + 2u * (p.row * params.n + i);
        return vec2<u32>(bitcast<u32>(load_x(at)), bitcast<u32>(load_x(at + 1u)));
    }
    let bits = bitcast<u32>(load_element(p, i));
    if (IS_EXTREME) { return vec2<u32>(rank_of(bits, i), i); }
    if (IS_PRODUCT && KIND == 0) { return factor(bits, 0); }
    return vec2<u32>(bits, 0u);
}

fn result(state: vec2<u32>) -> u32 {
    if (IS_INDEX) { return state.y; }
    if (IS_EXTREME) { return bits_of_rank(state.x); }
    if (IS_PRODUCT && KIND == 0) { return product_bits(state); }
    if (FN == 2 || IS_PRODUCT) { return state.x; }
    if (params.own.x == 0u) { return params.own.y; }
    return bitcast<u32>(bitcast<f32>(state.x) / bitcast<f32>(params.own.x));
}

var<workgroup> lane_states: array<vec2<u32>, THREADS>;

fn join_lanes(p: Place, state: vec2<u32>) -> vec2<u32> {
    if (LANES == 1) { return state; }
    lane_states[p.local] = state;
    for (var half = u32(LANES) / 2u; half > 0u; half /= 2u) {
        workgroupBarrier();
        if (p.lane < half) {
            lane_states[p.local] = join(lane_states[p.local], lane_states[p.local + half * STEP]);
        }
    }
    return lane_states[p.local]; // lane 0 has it
}

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
    let number = group_index(group, groups);
    if (number >= params.n_groups) { return; }
    let p = place_of(number, local);
    var s0 = nothing();
    var s1 = s0;
    var s2 = s0;
    var s3 = s0;
    for (var i = p.begin + p.lane; i < p.end; i += 4u * u32(LANES)) {
        let k = four(i);
        s0 = join(s0, element(p, k.x));
        s1 = join(s1, element(p, k.y));
        s2 = join(s2, element(p, k.z));
        s3 = join(s3, element(p, k.w));
    }
    let state = join_lanes(p, join(join(s0, s1), join(s2, s3)));
    if (p.lane > 0u || p.row >= params.n_rows) { return; }
    if (TO_PARTS == 1) {
        let at = params.first.x + 2u * (p.row * params.n_parts + p.part);
        store_y(at, bitcast<V_y>(state.x));
        store_y(at + 1u, bitcast<V_y>(state.y));
    } else {
        store_y(p.y, bitcast<V_y>(result(state)));
    }
}
