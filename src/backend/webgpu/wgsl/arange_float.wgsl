// Neither has more bits than a float32 holds, or they do not cancel.
fn put(at: u32, i: u32) {
    store_y(at, fma(f32(i), bitcast<f32>(params.step.x), bitcast<f32>(params.start.x)));
}
