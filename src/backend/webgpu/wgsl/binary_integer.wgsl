// fn(a, b) of integers, modulo 2^32; FN is wk_binary_fn. The quotient truncates and is a where
// there is none, as WGSL has it.
fn apply(a: V_a, b: V_b) -> V_y {
    switch FN {
        case 0: { return a + b; }
        case 1: { return a * b; }
        case 2: { return a - b; }
        case 3: { return a / b; }
        case 5: { return max(a, b); }
        default: { return min(a, b); }
    }
}
