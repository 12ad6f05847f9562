// A query's parts, merged in the order of its spans, and its result: what attention.wgsl does
// without SPLIT.
@compute @workgroup_size(32)
fn main(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(num_workgroups) n: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
    let id = workgroup.y * n.x + workgroup.x;
    if (id >= params.n_workgroups) { return; }
    let query = id % (params.n_rows * params.heads);
    let batch = id / (params.n_rows * params.heads) / params.n_groups;
    let group = id / (params.n_rows * params.heads) % params.n_groups;
    let head = group * params.heads + query % params.heads;
    let row = row_of(query / params.heads);
    if (row.x == NONE - 1u) {
        if (local == 0u) { fail(); }
        return;
    }
    var sink = params.low;
    if ((params.has & HAS_SINKS) != 0u) {
        sink = f32(load_sinks(params.first_more.z + head * params.sinks_stride));
    }
    let to = params.first.x + dot(vec3<u32>(batch, head, query / params.heads), params.y.xyz);
    for (var element = 4u * local; element < params.e; element += 128u) {
        var largest = vec4<f32>(params.low);
        var total = vec4<f32>(0.0);
        var sums = vec4<f32>(0.0);
        var span = span_of(row.y);
        while (row.y < row.z && span_begin(span) < row.z) {
            let at = params.first.y + (id * params.n_spans + span) * (params.e + 2u);
            let here = vec4<f32>(load_parts(at));
            let most = max(largest, here);
            let base = base_of(most);
            let times = factor(largest - base);
            let times_here = factor(here - base);
            total = merged_weight(total, vec4<f32>(load_parts(at + 1u)), times, times_here);
            largest = most;
            var part: vec4<f32>;
            for (var l = 0u; l < 4u; l++) {
                part[l] = load_parts(at + 2u + min(element + l, params.e - 1u));
            }
            sums = fma(part, times_here, sums * times);
            span++;
        }
        if (total.x < 0.0) {
            fail();
            return;
        }
        var end = ending(largest, total, vec4<f32>(sink));
        if (row.x == NONE) { end = Ending(vec4<f32>(0.0), vec4<f32>(1.0)); }
        for (var l = 0u; l < 4u; l++) {
            if (element + l >= params.e) { break; }
            store_y(to + (element + l) * params.y.w, sums[l] * end.times[l] / end.by[l]);
        }
    }
}
