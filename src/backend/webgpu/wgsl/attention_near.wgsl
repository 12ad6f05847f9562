// WIDTH neighbours in a subgroup read shared memory for each other: each holds one of WIDTH vectors
// that all need one after the other, and hands it on. Neighbouring threads are taken to be
// neighbours in their subgroup. attention_far.wgsl has the same functions.
var<private> near_lane: u32;
var<private> first_near: u32;

fn held_query(at: u32) -> vec4<f32> { return queries[at + near_lane]; }

fn query_of(held: vec4<f32>, at: u32, i: u32) -> vec4<f32> {
    return subgroupShuffle(held, first_near + i);
}

struct Held { weight: vec4<f32>, place: u32 }

// Of every N_SHARES-th key from one on.
fn held_weight(quad: u32, key: u32) -> Held {
    let here = min(key + near_lane * N_SHARES, STEP - 1u);
    return Held(weights[quad * STEP + here], value_at[here]);
}

fn weight_of(held: Held, quad: u32, key: u32, i: u32) -> Held {
    return Held(subgroupShuffle(held.weight, first_near + i),
                subgroupShuffle(held.place, first_near + i));
}

@compute @workgroup_size(QUADS * 32)
fn main(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(num_workgroups) n: vec3<u32>,
        @builtin(local_invocation_index) local: u32,
        @builtin(subgroup_invocation_id) invocation: u32) {
    near_lane = invocation % u32(WIDTH);
    first_near = invocation - near_lane;
    attend(workgroup.y * n.x + workgroup.x, local);
}
