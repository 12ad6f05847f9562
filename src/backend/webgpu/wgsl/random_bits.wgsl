// random, bits: the words themselves.
fn numbers(block: vec2<u32>, state: u32) -> vec4<u32> { return philox(block, state); }

fn placed(words: vec4<u32>) -> vec4<u32> { return words; }
