// Up to four operands of one shape and any strides: the element that thread i takes of each, or
// the LANES elements beginning there. Kernels load vec4<V_NAME>(load_NAME(at)) and store_lanes_y()
// their results: where LANES is 1 only x counts.
struct Params {
    count: u32,                      // threads that have work
    rank: u32,
    a: u32,                          // the kernel's own
    b: u32,
    first: vec4<u32>,                // element 0 of each operand
    extent: array<vec4<u32>, 2>,
    stride: array<vec4<u32>, 6>,     // by dimension, of each operand
    own: vec4<u32>,                  // more of the kernel's own
    begin: u32,                      // elements before those of thread 0
}

fn positions(i: u32) -> vec4<u32> {
    var rest = i;
    var at = params.first;
    for (var d = params.rank; d > 1u; d--) {
        let extent = params.extent[(d - 1u) / 4u][(d - 1u) % 4u];
        let quotient = rest / extent;
        at += (rest - quotient * extent) * params.stride[d - 1u];
        rest = quotient;
    }
    return at + rest * params.stride[0];
}

fn thread_index(group: vec3<u32>, groups: vec3<u32>, local: u32) -> u32 {
    return (group.y * groups.x + group.x) * u32(THREADS) + local;
}
