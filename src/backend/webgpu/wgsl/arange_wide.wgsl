fn put(at: u32, i: u32) {
    let low = product(i, params.step.x);
    let sum = low.x + params.start.x;
    store_y(at, sum);
    store_y(at + 1u, low.y + i * params.step.y + params.start.y + select(0u, 1u, sum < low.x));
}
