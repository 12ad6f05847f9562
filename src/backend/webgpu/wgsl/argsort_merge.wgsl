// Merges sorted runs of rows of candidates (argsort.wgsl) in pairs. A thread takes a candidate: its
// place is its own in its run and, by bisection, how many of the other run come before it. LAST 1:
// what goes to y is the indices. own: elements of a run, the stride of y along the row.
fn candidate(row: u32, i: u32) -> vec2<u32> {
    let at = params.first.y + 2u * (row * params.n + i);
    return vec2<u32>(bitcast<u32>(load_x(at)), bitcast<u32>(load_x(at + 1u)));
}

fn comes_before(a: vec2<u32>, b: vec2<u32>) -> bool {
    return a.x < b.x || (a.x == b.x && a.y < b.y);
}

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
    let number = group_index(group, groups);
    if (number >= params.n_groups) { return; }
    let p = place_of(number, local);
    let i = p.begin + p.lane;
    if (i >= p.end) { return; }
    let run = params.own.x;
    let mine = candidate(p.row, i);
    let begin = i / (2u * run) * 2u * run;
    let middle = min(begin + run, params.n);
    let is_left = i < middle;
    let other = select(begin, middle, is_left);
    var low = other;
    var high = select(middle, min(middle + run, params.n), is_left);
    while (low < high) {
        let half = low + (high - low) / 2u;
        if (comes_before(candidate(p.row, half), mine)) { low = half + 1u; } else { high = half; }
    }
    let place = i - select(middle - begin, 0u, is_left) + low - other;
    if (LAST == 1) {
        store_y(p.y + place * params.own.y, bitcast<V_y>(mine.y));
    } else {
        let at = params.first.x + 2u * (p.row * params.n + place);
        store_y(at, bitcast<V_y>(mine.x));
        store_y(at + 1u, bitcast<V_y>(mine.y));
    }
}
