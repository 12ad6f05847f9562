// Which rows a tile of columns has, and by which weight they are multiplied: all by one. The same
// functions for linear_experts: linear_experts.wgsl.

// A tile begins at column first; its columns below end exist.
struct Tile { first: u32, end: u32 }

// By the whole workgroup.
fn tile_of(number: u32, columns: u32, local: u32) -> Tile {
    return Tile(number * columns, params.m);
}

fn column_end() -> u32 { return params.m; }

fn x_place(column: u32) -> u32 { return min(column, params.m - 1u) * params.x_row; }

fn y_place(column: u32) -> u32 { return column * params.y_row; }

fn weight_base() -> u32 { return params.weight; }

fn bias_base() -> u32 { return params.bias; }
