// The functions of linear_rows.wgsl where each row r of y [m, u, n] has an expert. The text after
// this one defines which expert the columns of a tile have, and which row a column is:
//   fn find_tile(number: u32) -> vec3<u32>   first column, end, expert; as many columns as there are
//   fn row_of(column: u32) -> u32
struct Tile { first: u32, end: u32 }

var<workgroup> found: vec3<u32>;
var<private> tile_end: u32;
var<private> weight_first: u32;
var<private> bias_first: u32;

// Uniform in the workgroup, regardless of how the buffer is bound.
fn tile_of(number: u32, columns: u32, local: u32) -> Tile {
    if (local == 0u) { found = find_tile(number); }
    let tile = workgroupUniformLoad(&found);
    tile_end = tile.y;
    weight_first = params.weight + tile.z * params.expert_stride;
    bias_first = params.bias + tile.z * params.bias_row;
    return Tile(tile.x, tile.y);
}

fn column_end() -> u32 { return tile_end; }

fn x_place(column: u32) -> u32 {
    let row = row_of(min(column, tile_end - 1u));
    return row / params.u * params.x_row + row % params.u * params.x_step;
}

fn y_place(column: u32) -> u32 {
    let row = row_of(column);
    return row / params.u * params.y_row + row % params.u * params.y_step;
}

fn weight_base() -> u32 { return weight_first; }

fn bias_base() -> u32 { return bias_first; }
