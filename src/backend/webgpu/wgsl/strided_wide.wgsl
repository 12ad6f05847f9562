// strided.wgsl for up to eight operands: of each vec4 there are two, and of own there are three.
struct Params {
    count: u32,
    rank: u32,
    a: u32,
    b: u32,
    first: array<vec4<u32>, 2>,
    extent: array<vec4<u32>, 2>,
    stride: array<vec4<u32>, 12>,
    own: array<vec4<u32>, 3>,
    begin: u32,
}

struct Positions {
    low: vec4<u32>,
    high: vec4<u32>,
}

fn positions(i: u32) -> Positions {
    var rest = i;
    var low = params.first[0];
    var high = params.first[1];
    for (var d = params.rank; d > 1u; d--) {
        let extent = params.extent[(d - 1u) / 4u][(d - 1u) % 4u];
        let quotient = rest / extent;
        let index = rest - quotient * extent;
        low += index * params.stride[2u * d - 2u];
        high += index * params.stride[2u * d - 1u];
        rest = quotient;
    }
    return Positions(low + rest * params.stride[0], high + rest * params.stride[1]);
}

fn own_bits(i: u32) -> u32 { return params.own[i / 4u][i % 4u]; }
