// The k largest elements of rows: a workgroup sorts a tile of them and keeps k. Of rows longer than
// a tile every part gives k candidates (TO_PARTS), which are the elements of the next dispatch
// (FROM_PARTS). y: values, or candidates; z: indices.
// A candidate is an element's place in the order of floats, NaN above all, and its index.
// The value for element i, result(), is in the text behind this one.
// own: k, and the strides of values and indices along the row.
fn comes_before(a: vec2<u32>, b: vec2<u32>) -> bool {
    return a.x > b.x || (a.x == b.x && a.y < b.y);
}

// Past the end: a candidate that comes after all elements.
fn candidate(p: Place, i: u32) -> vec2<u32> {
    if (i >= p.end) { return vec2<u32>(0u, 0xffffffffu); }
    if (FROM_PARTS == 1) {
        let at = params.first.w + 2u * (p.row * params.n + i);
        return vec2<u32>(bitcast<u32>(load_c(at)), bitcast<u32>(load_c(at + 1u)));
    }
    return vec2<u32>(order_of(bitcast<u32>(load_element(p, i))), i);
}

fn store_result(p: Place, i: u32) {
    if (TO_PARTS == 1) {
        let at = params.first.x + 2u * ((p.row * params.n_parts + p.part) * params.own.x + i);
        store_y(at, bitcast<V_y>(tile[i].x));
        store_y(at + 1u, bitcast<V_y>(tile[i].y));
    } else {
        store_y(p.y + i * params.own.y, result(p, i));
        store_z(p.z + i * params.own.z, bitcast<V_z>(tile[i].y));
    }
}

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
    let number = group_index(group, groups);
    if (number >= params.n_groups) { return; }
    let p = place_of(number, local);
    for (var i = local; i < u32(TILE); i += u32(THREADS)) { tile[i] = candidate(p, p.begin + i); }
    sort(local);
    for (var i = local; i < params.own.x; i += u32(THREADS)) { store_result(p, i); }
}
