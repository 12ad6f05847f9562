// A workgroup sorts the first n candidates of a tile, a power of 2, so that comes_before holds from
// each to the next: Batcher's bitonic network, 1968.
var<workgroup> tile: array<vec2<u32>, TILE>;

fn sort(local: u32, n: u32) {
    for (var size = 2u; size <= n; size *= 2u) {
        for (var step = size / 2u; step > 0u; step /= 2u) {
            workgroupBarrier();
            for (var pair = local; pair < n / 2u; pair += u32(THREADS)) {
                let i = 2u * pair - (pair & (step - 1u));
                let a = tile[i];
                let b = tile[i + step];
                if (comes_before(b, a) == ((i & size) == 0u)) {
                    tile[i] = b;
                    tile[i + step] = a;
                }
            }
        }
    }
    workgroupBarrier();
}
