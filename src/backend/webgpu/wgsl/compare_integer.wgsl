// a < b: -1, a == b: 0, a > b: 1.
fn relation(a: V_a, b: V_b) -> i32 { return i32(a > b) - i32(a < b); }
