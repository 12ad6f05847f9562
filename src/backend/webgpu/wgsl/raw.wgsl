// A weight of floats at any strides: see panel.wgsl. Rows past the last one are the last one.

const HAS_HALVES = false;
struct Scale { unused: u32 }

fn weight_begin(local: u32) {}

fn weight_scale(panel: u32, quad: u32, block: u32, half: u32) -> Scale { return Scale(0u); }

fn weight_part(panel: u32, quad: u32, block: u32, part: u32, scale: Scale)
    -> array<vec4<f32>, 8> {
    let row = vec4<u32>(panel * 16u + quad * 4u) + vec4<u32>(0u, 1u, 2u, 3u);
    let at = vec4<u32>(weight_base()) + min(row, vec4<u32>(params.n - 1u)) * params.weight_row;
    let first = block * 32u + part * 8u;
    var w = array<vec4<f32>, 8>();
    for (var e = 0u; e < 8u; e++) {
        let here = at + vec4<u32>(min(first + e, params.k - 1u) * params.weight_element);
        let x = vec4<f32>(load_weight(here.x), load_weight(here.y), load_weight(here.z),
                          load_weight(here.w));
        w[e] = select(vec4<f32>(), x, first + e < params.k);
    }
    return w;
}
