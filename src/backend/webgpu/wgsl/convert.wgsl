// y = x of another dtype, from bits to bits, so that every number comes out as core/half.h and C
// have it. IS_FLOAT, IS_SIGNED of X and Y; Y_IS_BOOL. Elements of 64 bits are two words.
const X_SPARE = u32((96 - X_BITS) % 32); // of a word

// Sign-extended to 64 bits.
fn extended(x: vec2<u32>) -> vec2<u32> {
    if (X_IS_SIGNED == 0 || X_BITS == 64) { return x; }
    let value = bitcast<i32>(x.x << X_SPARE) >> X_SPARE;
    return vec2<u32>(bitcast<u32>(value), bitcast<u32>(value >> 31u));
}

fn from_integer(x: vec2<u32>) -> Number {
    let wide = extended(x);
    let is_negative = X_IS_SIGNED == 1 && (wide.y >> 31u) != 0u;
    let m = select(wide, negated(wide), is_negative);
    return normal(is_negative, 63, m.x, m.y);
}

// Truncates and saturates; NaN is 0.
fn to_integer(x: Number) -> vec2<u32> {
    if (Y_IS_BOOL == 1) { return vec2<u32>(u32(x.kind != ZERO), 0u); }
    let is_beneath = Y_IS_SIGNED == 0 && x.is_negative;
    if (x.kind == ZERO || x.kind == NAN || is_beneath) { return vec2<u32>(0u, 0u); }
    let bits = Y_BITS - Y_IS_SIGNED; // of a magnitude
    if (x.kind == INFINITE || x.exponent >= bits) {
        let all = shifted_right(0xffffffffu, 0xffffffffu, u32(64 - bits));
        return select(all, ~all, x.is_negative);
    }
    let m = shifted_right(x.low, x.high, u32(min(63 - x.exponent, 64)));
    return select(m, negated(m), x.is_negative);
}

fn converted(x: vec2<u32>) -> vec2<u32> {
    if (X_IS_FLOAT == 0 && Y_IS_FLOAT == 0) {
        if (Y_IS_BOOL == 1) { return vec2<u32>(u32((x.x | x.y) != 0u), 0u); }
        return extended(x);
    }
    var number: Number;
    if (X_IS_FLOAT == 1) {
        number = from_float(shifted_left(x.x, x.y, u32(64 - X_BITS)));
    } else {
        number = from_integer(x);
    }
    if (Y_IS_FLOAT == 1) { return to_float(number); }
    return to_integer(number);
}

fn of_narrow(x: V_x) -> V_y {
    return V_y(converted(vec2<u32>(u32(x) & (0xffffffffu >> X_SPARE), 0u)).x);
}

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
    let i = thread_index(group, groups, local);
    if (i >= params.count) { return; }
    let at = positions(i);
    if (X_BITS == 64 || Y_BITS == 64) {
        var x = vec2<u32>(u32(vec4<V_x>(load_x(at.y)).x), 0u);
        if (X_BITS == 64) { x.y = u32(vec4<V_x>(load_x(at.y + 1u)).x); }
        x.x &= 0xffffffffu >> X_SPARE;
        let y = converted(x);
        store_lanes_y(at.x, vec4<V_y>(V_y(y.x)));
        if (Y_BITS == 64) { store_lanes_y(at.x + 1u, vec4<V_y>(V_y(y.y))); }
        return;
    }
    let x = vec4<V_x>(load_x(at.y));
    var y: vec4<V_y>;
    y.x = of_narrow(x.x);
    if (LANES == 4) {
        y.y = of_narrow(x.y);
        y.z = of_narrow(x.z);
        y.w = of_narrow(x.w);
    }
    store_lanes_y(at.x, y);
}
