// compare_N(r): whether relation N of wk_compare_fn holds.
fn compare_0(r: i32) -> u32 { return u32(r == 0); }
fn compare_1(r: i32) -> u32 { return u32(r != 0); }
fn compare_2(r: i32) -> u32 { return u32(r == -1); }
fn compare_3(r: i32) -> u32 { return u32(r <= 0); }
fn compare_4(r: i32) -> u32 { return u32(r == 1); }
fn compare_5(r: i32) -> u32 { return u32(r == 0 || r == 1); }
