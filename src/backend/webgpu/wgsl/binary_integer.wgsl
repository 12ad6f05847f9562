// fn(a, b) of integers, modulo 2^32; FN is wk_binary_fn. The quotient truncates and is a where
// there is none, as WGSL has it, and so the rest is 0.
fn apply(a: V_a, b: V_b) -> V_y {
    let zero = V_a(0);
    let distance = u32(b);
    let rest = a % b;
    let is_below = rest != zero && (rest < zero) != (b < zero); // of a quotient rounded down
    switch FN {
        case 0: { return a + b; }
        case 1: { return a * b; }
        case 2: { return a - b; }
        case 3: { return a / b; }
        case 5: { return max(a, b); }
        case 6: { return min(a, b); }
        case 7: { return rest + select(zero, b, is_below); }
        case 8: { return rest; }
        case 9: { return a / b - select(zero, V_a(1), is_below); }
        case 15: { return a & b; }
        case 16: { return a | b; }
        case 17: { return a ^ b; }
        case 18: { return select(a << (distance & 31u), zero, distance > 31u); }
        default: { return (a >> min(distance, 31u)) >> select(0u, 1u, distance > 31u); }
    }
}
