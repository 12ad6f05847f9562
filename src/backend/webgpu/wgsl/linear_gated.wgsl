// What two rows of a product, gate and up, come to; where the panel of an up lies, from its gate's.
fn joined(gate: f32, up: f32) -> f32 {
    switch GATED {
        case 1: { return gated_0(gate, up, params.alpha, params.limit); }
        case 2: { return gated_1(gate, up, params.alpha, params.limit); }
        case 3: { return gated_2(gate, up, params.alpha, params.limit); }
        case 4: { return gated_3(gate, up, params.alpha, params.limit); }
        default: { return gated_4(gate, up, params.alpha, params.limit); }
    }
}

fn second_half(panel: u32) -> u32 { return panel + params.second_panel; }
