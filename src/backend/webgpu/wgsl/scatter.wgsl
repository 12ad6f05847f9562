// y[.., index[.., i]] = fn of itself and src[.., i]: a thread takes a row, one i after another. FN
// is wk_scatter_fn; what is set goes as bits. WIDE: elements of two words.
// a: elements of a row of y; b: of index and src; own: strides of y, src and index along it.
@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
    let row = thread_index(group, groups, local);
    if (row >= params.count) { return; }
    let at = positions(row);
    for (var i = 0u; i < params.b; i++) {
        let id = find_id(at.z + i * params.own.z, params.a, at.w);
        if (id == params.a) { continue; }
        let to = at.x + id * params.own.x;
        let source = at.y + i * params.own.y;
        let x = V_y(load_src(source));
        if (FN == 0) { store_y(to, x); } else { store_y(to, meet(V_y(load_y(to)), x)); }
        if (WIDE == 1) { store_y(to + 1u, V_y(load_src(source + 1u))); }
    }
}
