// Functions of unary_float.wgsl that no model needs: they take long texts.
fn unary_3(x: f32, a: f32, b: f32) -> f32 { return or_nan(x, sine(x, 0u)); }
fn unary_4(x: f32, a: f32, b: f32) -> f32 { return or_nan(x, sine(x, 1u)); }
fn unary_27(x: f32, a: f32, b: f32) -> f32 { return power(x, a); }
