// What becomes of an element and of a source that meets it; FN is wk_scatter_fn, FLOATS 1 for f32.
fn is_nan(x: V_y) -> bool { return FLOATS == 1 && (bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u; }

fn meet(y: V_y, x: V_y) -> V_y {
    switch FN {
        case 1: { return y + x; }
        case 2: { return y * x; }
        case 3: { return select(x, y, is_nan(y) || y > x); }
        case 4: { return select(x, y, is_nan(y) || y < x); }
        default: { return x; }
    }
}
