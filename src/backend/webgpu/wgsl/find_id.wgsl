// The index at a place, below n; n where it is out of range, which the fault slot then says.
// WIDE_INDEX: indices of two words.
fn find_id(at: u32, n: u32, fault: u32) -> u32 {
    let id = bitcast<u32>(load_index(at));
    let is_beyond = WIDE_INDEX == 1 && load_index(at + u32(WIDE_INDEX)) != V_index(0);
    if (id < n && !is_beyond) { return id; }
    store_fault(fault, u32(FAULT));
    return n;
}
