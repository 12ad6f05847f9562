// Element i of what top_k.wgsl keeps: as it is.
fn result(p: Place, i: u32) -> V_y { return bitcast<V_y>(load_element(p, tile[i].y)); }
