// The rest of a scatter whose sources are sorted: pairs of a row are (id, source) in the order of
// both, so that what meets one element lies side by side. A thread takes CHUNK pairs and joins
// those of one id. The first and the last of its runs may go on in other chunks: they become two
// pairs (id, joined value) of the next level; those between are complete and meet y.
//
//   CHUNK 4, ids   1 1 2 2 | 2 3 4 4 | 4 5      the runs of 3 are written at once; next level:
//                  1a 2b   | 2c 4d   | 4e 5f    2 chunks of these; then 1, all of whose runs are
//                                               written
//
// FN is wk_scatter_fn; what is set goes as bits (WIDE: of two words), and its pairs keep the number
// of the source. LEVEL 0: values are those of sources.
// a: elements of a row of y, from which on ids are none; b: pairs of a row; own: chunks of a row,
// strides of y and src along it.
struct Run {
    id: u32,
    value: u32, // bits, or the number of a source
}

// Where the rows of y and src begin, the chunk's pairs, and those it makes.
fn run_at(at: vec4<u32>, j: u32) -> Run {
    let place = at.z + 2u * j;
    let value = bitcast<u32>(load_pairs(place + 1u));
    if (LEVEL > 0 || FN == 0) { return Run(bitcast<u32>(load_pairs(place)), value); }
    let x = V_y(load_src(at.y + value * params.own.z));
    return Run(bitcast<u32>(load_pairs(place)), bitcast<u32>(x));
}

fn join(a: u32, b: u32) -> u32 {
    if (FN == 0) { return b; }
    return bitcast<u32>(meet(bitcast<V_y>(a), bitcast<V_y>(b)));
}

fn write(at: vec4<u32>, run: Run) {
    let to = at.x + run.id * params.own.y;
    if (FN > 0) {
        store_y(to, meet(V_y(load_y(to)), bitcast<V_y>(run.value)));
        return;
    }
    let source = at.y + run.value * params.own.z;
    store_y(to, V_y(load_src(source)));
    if (WIDE == 1) { store_y(to + 1u, V_y(load_src(source + 1u))); }
}

fn keep(at: vec4<u32>, side: u32, run: Run) {
    store_next(at.w + 2u * side, V_next(run.id));
    store_next(at.w + 2u * side + 1u, V_next(run.value));
}

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
    let i = thread_index(group, groups, local);
    if (i >= params.count) { return; }
    let at = positions(i);
    let n_chunks = params.own.x;
    let n = min(u32(CHUNK), params.b - i % n_chunks * u32(CHUNK));
    let none = Run(params.a, 0u);
    var run = none;
    var is_first = true;
    for (var j = 0u; j < n; j++) {
        let next = run_at(at, j);
        if (next.id >= params.a) { continue; }
        if (next.id == run.id) {
            run.value = join(run.value, next.value);
            continue;
        }
        if (run.id < params.a) {
            if (is_first && n_chunks > 1u) { keep(at, 0u, run); } else { write(at, run); }
            is_first = false;
        }
        run = next;
    }
    if (n_chunks == 1u) {
        if (run.id < params.a) { write(at, run); }
        return;
    }
    if (is_first) { keep(at, 0u, none); }
    keep(at, 1u, run);
}
