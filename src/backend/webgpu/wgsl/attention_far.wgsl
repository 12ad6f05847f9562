// Each thread reads what it needs of shared memory: see attention_near.wgsl.
fn held_query(at: u32) -> vec4<f32> { return vec4<f32>(); }

fn query_of(held: vec4<f32>, at: u32, i: u32) -> vec4<f32> { return queries[at]; }

struct Held { weight: vec4<f32>, place: u32 }

fn held_weight(quad: u32, key: u32) -> Held { return Held(vec4<f32>(), 0u); }

fn weight_of(held: Held, quad: u32, key: u32, i: u32) -> Held {
    return Held(weights[quad * STEP + key], value_at[key]);
}

@compute @workgroup_size(QUADS * 32)
fn main(@builtin(workgroup_id) workgroup: vec3<u32>, @builtin(num_workgroups) n: vec3<u32>,
        @builtin(local_invocation_index) local: u32) {
    attend(workgroup.y * n.x + workgroup.x, local);
}
