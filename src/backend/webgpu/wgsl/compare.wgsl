// y = whether a relation holds; FN is wk_compare_fn.
fn holds(r: i32) -> u32 {
    switch FN {
        case 0: { return u32(r == 0); }
        case 1: { return u32(r != 0); }
        case 2: { return u32(r == -1); }
        case 3: { return u32(r <= 0); }
        case 4: { return u32(r == 1); }
        default: { return u32(r == 0 || r == 1); }
    }
}
