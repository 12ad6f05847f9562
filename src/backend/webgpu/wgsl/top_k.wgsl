// The k largest elements of rows: a workgroup sorts a part of them, or what it sieved from it
// (SIEVE), and keeps k. Of longer rows every part gives k candidates (TO_PARTS), which are the
// elements of the next dispatch (FROM_PARTS). y: values, or candidates; z: indices.
// A candidate is an element's place in the order of floats, NaN above all, and its index.
// The value for element i, result(), is in the text after this one.
// own: k, and the strides of values and indices along the row.
fn comes_before(a: vec2<u32>, b: vec2<u32>) -> bool {
    return a.x > b.x || (a.x == b.x && a.y < b.y);
}

const LAST = vec2<u32>(0u, 0xffffffffu); // comes after all elements

fn candidate(p: Place, i: u32) -> vec2<u32> {
    if (i >= p.end) { return LAST; }
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

// Tile by tile; the k best so far stay at the front of the tile.
fn sort_all(p: Place, local: u32) {
    var kept = 0u;
    for (var done = 0u; done < min(params.part, params.n); done += u32(TILE) - kept) {
        if (done > 0u) { kept = params.own.x; }
        for (var i = kept + local; i < u32(TILE); i += u32(THREADS)) {
            tile[i] = candidate(p, p.begin + done + i - kept);
        }
        sort(local, u32(TILE));
    }
}

var<workgroup> n_found: atomic<u32>;
var<workgroup> n_sieved: u32;

// At least k elements are no smaller than the k-th largest of the threads' maxima. Only elements
// down to that bound are sorted, if a tile holds them. Their number.
fn sort_sieved(p: Place, local: u32) -> u32 {
    var best = LAST;
    for (var i = p.begin + local; i < p.end; i += u32(THREADS)) {
        let c = candidate(p, i);
        if (comes_before(c, best)) { best = c; }
    }
    tile[local] = best;
    if (local == 0u) { atomicStore(&n_found, 0u); }
    sort(local, u32(THREADS));
    let bound = tile[params.own.x - 1u];
    workgroupBarrier();
    for (var i = p.begin + local; i < p.end; i += u32(THREADS)) {
        let c = candidate(p, i);
        if (!comes_before(bound, c)) {
            let at = atomicAdd(&n_found, 1u);
            if (at < u32(TILE)) { tile[at] = c; }
        }
    }
    workgroupBarrier();
    if (local == 0u) { n_sieved = atomicLoad(&n_found); }
    let n = workgroupUniformLoad(&n_sieved);
    if (n <= u32(TILE)) {
        let size = 1u << firstLeadingBit(2u * max(n, params.own.x) - 1u); // a power of 2, not less
        for (var i = n + local; i < size; i += u32(THREADS)) { tile[i] = LAST; }
        sort(local, size);
    }
    return n;
}

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
    let number = group_index(group, groups);
    if (number >= params.n_groups) { return; }
    let p = place_of(number, local);
    if (SIEVE == 0 || sort_sieved(p, local) > u32(TILE)) { sort_all(p, local); }
    for (var i = local; i < params.own.x; i += u32(THREADS)) { store_result(p, i); }
}
