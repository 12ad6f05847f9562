// A weight in panels of floats, [panel][k][16 rows]: see panel.wgsl. LAYOUT is wk_layout: f32, f16
// or bf16.

const HAS_HALVES = false;
struct Scale { unused: u32 }

fn weight_begin(local: u32) {}

fn weight_scale(panel: u32, quad: u32, block: u32, half: u32) -> Scale { return Scale(0u); }

// Element i of four rows.
fn element_of_rows(at: u32, i: u32, quad: u32) -> vec4<f32> {
    if (LAYOUT == 1) { return bitcast<vec4<f32>>(load_weight(at + i * 4u + quad)); }
    let both = load_weight(at + i * 2u + quad / 2u);
    let two = select(both.xy, both.zw, quad % 2u == 1u);
    if (LAYOUT == 2) { return vec4<f32>(unpack2x16float(two.x), unpack2x16float(two.y)); }
    let low = two << vec2<u32>(16u);
    let high = two & vec2<u32>(0xffff0000u);
    return bitcast<vec4<f32>>(vec4<u32>(low.x, high.x, low.y, high.y));
}

fn weight_part(panel: u32, quad: u32, block: u32, part: u32, scale: Scale)
    -> array<vec4<f32>, 8> {
    let at = weight_base() + panel * params.panel_stride;
    let first = block * 32u + part * 8u;
    var w = array<vec4<f32>, 8>();
    for (var e = 0u; e < 8u; e++) {
        let x = element_of_rows(at, min(first + e, params.k - 1u), quad);
        w[e] = select(vec4<f32>(), x, first + e < params.k);
    }
    return w;
}
