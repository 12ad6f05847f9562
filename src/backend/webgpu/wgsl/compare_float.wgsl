// a < b: -1, a == b: 0, a > b: 1, NaN: 2.
fn relation(a: f32, b: f32) -> i32 {
    if (is_nan(a) || is_nan(b)) { return 2; }
    return i32(order(a) > order(b)) - i32(order(a) < order(b));
}
