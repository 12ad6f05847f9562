// A thread decodes 8 elements.
@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
    weight_begin(local);
    let i = thread_index(group, groups, local);
    let row = i / params.parts;
    if (row >= params.m) { return; }
    let id = find_id(row);
    if (id == params.n) { return; }
    let panel = id / 16u;
    let quad = id % 16u / 4u;
    let first = i % params.parts * 8u;
    let block = first / 32u;
    let scale = weight_scale(panel, quad, block, first % 32u / 16u);
    var w = weight_part(panel, quad, block, first % 32u / 8u, scale);
    for (var e = 0u; e < 8u; e++) {
        if (first + e >= params.k) { return; }
        let two = select(w[e].xy, w[e].zw, id % 4u > 1u);
        store_y(params.y + row * params.y_row + (first + e) * params.y_element,
                select(two.x, two.y, id % 2u == 1u));
    }
}
