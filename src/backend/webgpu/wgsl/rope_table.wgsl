// Turns from tables: params.turn has the strides of the tables of cosines and sines.
fn turn_of(at: vec2<u32>, unit: u32) -> vec2<f32> {
    let place = vec3<u32>(at, params.first_pair + unit);
    return vec2<f32>(load_cos(params.first.z + dot(place, params.turn[0].xyz)),
                     load_sin(params.first.w + dot(place, params.turn[1].xyz)));
}
