// Elements of 64 bits: two words, the low one first.
fn is_nan(a: vec2<u32>) -> bool {
    let high = a.y & 0x7fffffffu;
    return high > 0x7ff00000u || (high == 0x7ff00000u && a.x != 0u);
}

// Of a float64, not NaN: as an integer; -0 is 0.
fn order(a: vec2<u32>) -> vec2<u32> {
    if ((a.y >> 31u) == 0u) { return a; }
    return vec2<u32>(0u - a.x, 0x80000000u - a.y - select(0u, 1u, a.x != 0u));
}

fn relation_of_integers(a: vec2<u32>, b: vec2<u32>) -> i32 {
    let p = bitcast<i32>(a.y);
    let q = bitcast<i32>(b.y);
    if (p != q) { return select(-1, 1, p > q); }
    return i32(a.x > b.x) - i32(a.x < b.x);
}

// a < b: -1, a == b: 0, a > b: 1, NaN: 2.
fn relation(a: vec2<u32>, b: vec2<u32>) -> i32 {
    if (IS_FLOAT == 0) { return relation_of_integers(a, b); }
    if (is_nan(a) || is_nan(b)) { return 2; }
    return relation_of_integers(order(a), order(b));
}

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
    let i = thread_index(group, groups, local);
    if (i >= params.count) { return; }
    let at = positions(i);
    let a = vec2<u32>(load_a(at.y), load_a(at.y + 1u));
    let b = vec2<u32>(load_b(at.z), load_b(at.z + 1u));
    store_y(at.x, holds(relation(a, b)));
}
