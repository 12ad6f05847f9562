// A thread moves one element, of any type.
@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
    let i = thread_index(group, groups, local);
    let row = i / params.parts;
    if (row >= params.m) { return; }
    let id = find_id(row);
    if (id == params.n) { return; }
    let element = i % params.parts;
    let at = params.weight + id * params.weight_row + element * params.weight_element;
    store_y(params.y + row * params.y_row + element * params.y_element, load_weight(at));
}
