// Rows of x, see rows.h: LANES of the THREADS of a workgroup share a row, or a part of one.
struct Params {
    n_rows: u32,
    n: u32,                        // elements of a row
    part: u32,                     // elements of a part
    n_parts: u32,
    n_groups: u32,
    n_kept: u32,
    n_reduced: u32,
    n_all: u32,                    // of the rows whose parts' results these are
    own: vec4<u32>,                // the kernel's
    first: vec4<u32>,              // element 0 of the operands
    kept: array<vec4<u32>, 6>,     // extent, strides in y, x and z
    reduced: array<vec4<u32>, 6>,
    more: array<vec4<u32>, 5>,     // of chains: element 0 of up to 8 sources, then parameters
}

const ROWS = u32(THREADS / LANES);
const STEP = select(1u, ROWS, COLUMNS == 1); // from one lane to the next

// What a thread works on: elements [begin, end) of a row, none of a row that is not there.
struct Place {
    local: u32,
    row: u32,
    part: u32,
    lane: u32,
    begin: u32,
    end: u32,
    y: u32,      // the row in y, x and a second destination
    x: u32,
    z: u32,
}

fn group_index(group: vec3<u32>, groups: vec3<u32>) -> u32 { return group.y * groups.x + group.x; }

fn place_of(group: u32, local: u32) -> Place {
    var p: Place;
    p.local = local;
    p.lane = select(local % u32(LANES), local / ROWS, COLUMNS == 1);
    p.row = group / params.n_parts * ROWS + select(local / u32(LANES), local % ROWS, COLUMNS == 1);
    p.part = group % params.n_parts;
    p.begin = p.part * params.part;
    p.end = select(p.begin, min(p.begin + params.part, params.n), p.row < params.n_rows);
    p.y = params.first.x;
    p.x = params.first.y;
    p.z = params.first.z;
    var rest = p.row;
    for (var d = params.n_kept; d > 0u; d--) {
        let dim = params.kept[d - 1u];
        let quotient = rest / dim.x;
        let at = rest - quotient * dim.x;
        p.y += at * dim.y;
        p.x += at * dim.z;
        p.z += at * dim.w;
        rest = quotient;
    }
    return p;
}

// Of element i of a row, in y and x.
fn offsets(i: u32) -> vec2<u32> {
    if (params.n_reduced == 1u) { return i * params.reduced[0].yz; }
    var rest = i;
    var at = vec2<u32>(0u);
    for (var d = params.n_reduced; d > 0u; d--) {
        let dim = params.reduced[d - 1u];
        let quotient = rest / dim.x;
        at += (rest - quotient * dim.x) * dim.yz;
        rest = quotient;
    }
    return at;
}

// A thread takes four elements at a time: these, from i on. Beyond the end they count for nothing.
fn four(i: u32) -> vec4<u32> {
    return i + vec4<u32>(0u, u32(LANES), 2u * u32(LANES), 3u * u32(LANES));
}

fn load_element(p: Place, i: u32) -> V_x { return load_x(p.x + offsets(i).y); }

// Instead of those beyond the end the last one.
fn load_four(p: Place, i: vec4<u32>) -> vec4<V_x> {
    let k = min(i, vec4<u32>(p.end - 1u));
    return vec4<V_x>(load_element(p, k.x), load_element(p, k.y), load_element(p, k.z),
                     load_element(p, k.w));
}

// Sums of four, in pairs.
fn sum_four(v: vec4<f32>) -> f32 { return (v.x + v.y) + (v.z + v.w); }

// Unsigned numbers in the order of floats; -0 is 0. NaN is above all.
fn order_of(bits: u32) -> u32 {
    let size = bits & 0x7fffffffu;
    if (size > 0x7f800000u) { return 0xffffffffu; }
    if (size == 0u) { return 0x80000000u; }
    return select(bits | 0x80000000u, ~bits, bits != size);
}

fn bits_of_order(order: u32) -> u32 {
    return select(~order, order & 0x7fffffffu, order >= 0x80000000u);
}
