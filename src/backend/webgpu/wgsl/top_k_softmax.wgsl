// Element i of what top_k.wgsl keeps: the softmax of these.
fn kept(p: Place, i: u32) -> f32 { return load_element(p, tile[i].y); }

fn result(p: Place, i: u32) -> V_y {
    return softmax_of_kept(p, i, params.own.x, bitcast<f32>(params.own.w));
}
