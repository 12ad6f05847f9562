// binary_N(a, b): function N of wk_binary_fn of floats.
fn maximum(a: f32, b: f32) -> f32 {
    return or_nan(a, or_nan(b, select(b, a, order(a) > order(b))));
}

fn minimum(a: f32, b: f32) -> f32 {
    return or_nan(a, or_nan(b, select(a, b, order(a) > order(b))));
}

fn binary_0(a: f32, b: f32) -> f32 { return a + b; }
fn binary_1(a: f32, b: f32) -> f32 { return times(a, b); }
fn binary_2(a: f32, b: f32) -> f32 { return a - b; }
fn binary_3(a: f32, b: f32) -> f32 { return quotient(a, b); }
fn binary_5(a: f32, b: f32) -> f32 { return maximum(a, b); }
fn binary_6(a: f32, b: f32) -> f32 { return minimum(a, b); }
