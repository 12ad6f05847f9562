fn put(at: u32, i: u32) { store_y(at, V_y(params.start.x + i * params.step.x)); }
