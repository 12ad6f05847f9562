// The function of binary_float.wgsl that no model needs.
fn binary_4(a: f32, b: f32) -> f32 { return power(a, b); }
