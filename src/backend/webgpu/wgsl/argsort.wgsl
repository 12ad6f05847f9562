// Sorting rows, stable: candidates are an element's place in the order and its index, so that no
// two are equal. Here a workgroup sorts a tile, which is the whole row or, WHOLE 0, one of several
// that argsort_merge.wgsl merges. KIND: 0 floats, 1 signed, 2 unsigned, 3 bools.
// own: bits that turn the order round, the stride of y along the row.
fn comes_before(a: vec2<u32>, b: vec2<u32>) -> bool {
    return a.x < b.x || (a.x == b.x && a.y < b.y);
}

fn order(bits: u32) -> u32 {
    if (KIND == 0) { return order_of(bits); }
    if (KIND == 1) { return bits ^ 0x80000000u; }
    if (KIND == 3) { return min(bits, 1u); }
    return bits;
}

// Past the end: one that comes after all elements.
fn candidate(p: Place, i: u32) -> vec2<u32> {
    if (i >= p.end) { return vec2<u32>(0xffffffffu, 0xffffffffu); }
    return vec2<u32>(order(bitcast<u32>(load_element(p, i))) ^ params.own.x, i);
}

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
    let number = group_index(group, groups);
    if (number >= params.n_groups) { return; }
    let p = place_of(number, local);
    for (var i = local; i < u32(TILE); i += u32(THREADS)) { tile[i] = candidate(p, p.begin + i); }
    sort(local, u32(TILE));
    for (var i = local; p.begin + i < p.end; i += u32(THREADS)) {
        if (WHOLE == 1) {
            store_y(p.y + i * params.own.y, bitcast<V_y>(tile[i].y));
        } else {
            let at = params.first.x + 2u * (p.row * params.n + p.begin + i);
            store_y(at, bitcast<V_y>(tile[i].x));
            store_y(at + 1u, bitcast<V_y>(tile[i].y));
        }
    }
}
