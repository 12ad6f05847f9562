// Variances of the elements of rows: their mean first, then the squares of what they differ by.
// Parts (see reduce.wgsl) hand on their mean and that sum (Chan et al., 1979).
// own: bits of what the sum is divided by, of NaN and of infinity; the elements of a part.

// A number, the elements it stands for, their sum of squared differences from it.
fn element(p: Place, i: u32) -> vec3<f32> {
    if (i >= p.end) { return vec3<f32>(0.0); }
    if (FROM_PARTS == 1) {
        let at = params.first.y + 2u * (p.row * params.n + i);
        let weight = f32(min(params.own.w, params.n_all - i * params.own.w));
        return vec3<f32>(bitcast<f32>(load_x(at)), weight, bitcast<f32>(load_x(at + 1u)));
    }
    return vec3<f32>(bitcast<f32>(load_element(p, i)), 1.0, 0.0);
}

fn elements_of(p: Place) -> f32 {
    return f32(select(p.end - p.begin, params.n_all, FROM_PARTS == 1));
}

// The sum of (x - middle).
fn sum_from(p: Place, middle: f32) -> f32 {
    var sum = vec4<f32>(0.0);
    for (var i = p.begin + p.lane; i < p.end; i += 4u * u32(LANES)) {
        let k = four(i);
        for (var j = 0u; j < 4u; j++) {
            let x = element(p, k[j]);
            sum[j] += (x.x - middle) * x.y;
        }
    }
    return sum_lanes(p, vec2<f32>(sum_four(sum), 0.0)).x;
}

// The same, and the sum of (x - middle)^2.
fn squares_from(p: Place, middle: f32) -> vec2<f32> {
    var sum = vec4<f32>(0.0);
    var squares = vec4<f32>(0.0);
    for (var i = p.begin + p.lane; i < p.end; i += 4u * u32(LANES)) {
        let k = four(i);
        for (var j = 0u; j < 4u; j++) {
            let x = element(p, k[j]);
            let rest = x.x - middle;
            sum[j] += rest * x.y;
            squares[j] += rest * (rest * x.y) + x.z; // 0 past the end, however large the rest
        }
    }
    return sum_lanes(p, vec2<f32>(sum_four(sum), sum_four(squares)));
}

fn variance(squares: f32) -> u32 {
    if (params.own.x != 0u) { return bitcast<u32>(squares / bitcast<f32>(params.own.x)); }
    let bits = bitcast<u32>(squares);
    return select(params.own.z, params.own.y, bits == 0u || bits > 0x7f800000u);
}

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
    let number = group_index(group, groups);
    if (number >= params.n_groups) { return; }
    let p = place_of(number, local);
    // The first element is taken away from all, so that equal ones have no variance at all.
    let n = max(elements_of(p), 1.0);
    let first = element(p, p.begin).x;
    let mean = first + sum_from(p, first) / n;
    let sums = squares_from(p, mean);
    // The mean was rounded: what it is off by counts once for each element.
    let rest = sums.x / n;
    let exact = sums.y - sums.x * rest;
    let squares = select(exact, 0.0, exact < 0.0);
    if (p.lane > 0u || p.row >= params.n_rows) { return; }
    if (TO_PARTS == 1) {
        let at = params.first.x + 2u * (p.row * params.n_parts + p.part);
        store_y(at, bitcast<V_y>(mean + rest));
        store_y(at + 1u, bitcast<V_y>(squares));
    } else {
        store_y(p.y, bitcast<V_y>(variance(squares)));
    }
}
