// fn(a, b) of floats; FN is wk_binary_fn.
fn apply(a: f32, b: f32) -> f32 {
    switch FN {
        case 0: { return a + b; }
        case 1: { return times(a, b); }
        case 2: { return a - b; }
        case 3: { return quotient(a, b); }
        case 4: { return power(a, b); }
        default: {
            if (is_nan(a)) { return a; }
            if (is_nan(b)) { return b; }
            return select(b, a, (FN == 5) == (order(a) > order(b)));
        }
    }
}
