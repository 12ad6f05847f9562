// Rows of a product stand for themselves: see linear_gated.wgsl.
fn joined(gate: f32, up: f32) -> f32 { return gate; }

fn second_half(panel: u32) -> u32 { return panel; }
