// Softmax of rows, and its logarithm (IS_LOG). own: bits of NaN.

fn powers(x: vec4<f32>) -> vec4<f32> {
    return vec4<f32>(exp_of(x.x), exp_of(x.y), exp_of(x.z), exp_of(x.w));
}

// The largest element as order_of gives it: NaN if there is one.
fn largest_order(p: Place) -> u32 {
    var largest = 0u;
    for (var i = p.begin + p.lane; i < p.end; i += 4u * u32(LANES)) {
        let bits = bitcast<vec4<u32>>(load_four(p, four(i)));
        largest = max(max(max(order_of(bits.x), order_of(bits.y)),
                          max(order_of(bits.z), order_of(bits.w))), largest);
    }
    return largest_of_lanes(p, largest);
}

fn sum_of_powers(p: Place, largest: f32) -> f32 {
    var sum = vec4<f32>(0.0);
    for (var i = p.begin + p.lane; i < p.end; i += 4u * u32(LANES)) {
        let k = four(i);
        let power = powers(load_four(p, k) - largest);
        sum += select(vec4<f32>(0.0), power, k < vec4<u32>(p.end));
    }
    return sum_lanes(p, vec2<f32>(sum_four(sum), 0.0)).x;
}

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
    let number = group_index(group, groups);
    if (number >= params.n_groups) { return; }
    let p = place_of(number, local);
    let order = largest_order(p);
    // NaN or infinity somewhere, or -infinity everywhere: the whole row is NaN.
    let has_result = order > 0x007fffffu && order < 0xff800000u;
    let largest = bitcast<f32>(select(0u, bits_of_order(order), has_result));
    let sum = sum_of_powers(p, largest);
    var log_sum = 0.0;
    if (IS_LOG == 1) { log_sum = log_of(max(sum, 1.0)); }
    for (var i = p.begin + p.lane; i < p.end; i += 4u * u32(LANES)) {
        let k = four(i);
        let x = load_four(p, k) - largest;
        var y = x - log_sum;
        if (IS_LOG == 0) { y = powers(x) / sum; }
        if (!has_result) { y = vec4<f32>(bitcast<f32>(params.own.x)); }
        for (var j = 0u; j < 4u && k[j] < p.end; j++) { store_y(p.y + offsets(k[j]).x, y[j]); }
    }
}
