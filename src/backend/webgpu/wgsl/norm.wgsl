// y = (x - mean) / sqrt(variance + eps) * weight + bias of rows: layer norm; without the mean
// (IS_RMS), the norm by the root of the mean square. An absent weight or bias is not loaded.
// own: bits of eps; strides of weight and bias.

// The sums of x - middle and of its square.
fn sums_from(p: Place, middle: f32) -> vec2<f32> {
    var sum = vec4<f32>(0.0);
    var squares = vec4<f32>(0.0);
    for (var i = p.begin + p.lane; i < p.end; i += 4u * u32(LANES)) {
        let k = four(i);
        let x = select(vec4<f32>(0.0), load_four(p, k) - middle, k < vec4<u32>(p.end));
        sum += x;
        squares += x * x;
    }
    return sum_lanes(p, vec2<f32>(sum_four(sum), sum_four(squares)));
}

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
    let number = group_index(group, groups);
    if (number >= params.n_groups) { return; }
    let p = place_of(number, local);
    let n = f32(params.n);
    var middle = 0.0;
    var rest = 0.0; // what it was rounded by
    if (IS_RMS == 0) {
        // From the first element on, so that equal ones differ from their mean by nothing.
        if (p.begin < p.end) { middle = load_element(p, p.begin); }
        middle += sums_from(p, middle).x / n;
    }
    let sums = sums_from(p, middle);
    var squares = sums.y;
    if (IS_RMS == 0) {
        rest = sums.x / n;
        let exact = sums.y - sums.x * rest;
        squares = select(exact, 0.0, exact < 0.0);
    }
    let factor = 1.0 / sqrt(squares / n + bitcast<f32>(params.own.x));
    for (var i = p.begin + p.lane; i < p.end; i += 4u * u32(LANES)) {
        let k = four(i);
        let x = ((load_four(p, k) - middle) - rest) * factor;
        for (var j = 0u; j < 4u && k[j] < p.end; j++) {
            var y = x[j];
            if (HAS_WEIGHT == 1) { y *= load_weight(params.first.z + k[j] * params.own.y); }
            if (HAS_BIAS == 1) { y += load_bias(params.first.w + k[j] * params.own.z); }
            store_y(p.y + offsets(k[j]).x, y);
        }
    }
}
