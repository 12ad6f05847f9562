// Rows of keys or of values to their slots of the cache, an item for each thread: what put() moves,
// see kv_append_elements.wgsl and kv_append_blocks.wgsl.
struct Params {
    cache: vec4<u32>,  // strides of [block, key head, slot in it, item]
    fresh: vec4<u32>,  // of [row, key head, item]
    first: vec4<u32>,  // cache, fresh, batch, fault
    count: u32,        // items of fresh
    n_groups: u32,
    n_items: u32,      // of a row of a key head
    block_size: u32,
    n_blocks: u32,
    n_sequences: u32,
    sequences: u32,    // sections of the batch descriptor
    slots: u32,
    fault: u32,
}

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
    let i = (group.y * groups.x + group.x) * 64u + local;
    if (i >= params.count) { return; }
    let head = i / params.n_items % params.n_groups;
    let row = i / params.n_items / params.n_groups;
    let sequence = load_batch(params.first.z + params.sequences + row);
    let slot = load_batch(params.first.z + params.slots + row);
    if (sequence == 0xffffffffu) { return; }
    if (sequence >= params.n_sequences || slot / params.block_size >= params.n_blocks) {
        store_fault(params.first.w, params.fault);
        return;
    }
    let from_at = vec3<u32>(row, head, i % params.n_items) * params.fresh.xyz;
    let block = slot / params.block_size;
    let to_at = vec4<u32>(block, head, slot % params.block_size, i % params.n_items) * params.cache;
    put(params.first.x + to_at.x + to_at.y + to_at.z + to_at.w,
        params.first.y + from_at.x + from_at.y + from_at.z);
}
