// x as integers that another dispatch has made: see quantize.wgsl.
fn begin_x(local: u32) {}
fn x_vector(i: u32) -> vec4<u32> { return load_x(params.x + i); }
