// y = fn(x) of integers, modulo 2^32; FN is wk_unary_fn.
fn apply(x: V_x) -> V_y {
    let a = V_x(params.a);
    let b = V_x(params.b);
    let zero = V_x(0);
    switch FN {
        case 5: { return select(x, zero - x, x < zero); }
        case 6: { return zero - x; }
        case 8: { return x * x; }
        case 16: { return V_x(x > zero) - V_x(x < zero); }
        case 17: { return select(x, zero, x < zero); }
        case 28: { return a * x + b; }
        case 46: { return ~x; }
        default: {
            if (x < a) { return a; }
            return select(x, b, x > b);
        }
    }
}
