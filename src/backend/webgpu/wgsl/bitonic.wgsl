// A workgroup sorts a tile of candidates, so that comes_before holds from each to the next: Batcher's
// bitonic network, 1968.
const PAIRS = u32(TILE) / 2u;

var<workgroup> tile: array<vec2<u32>, TILE>;

fn sort(local: u32) {
    for (var size = 2u; size <= u32(TILE); size *= 2u) {
        for (var step = size / 2u; step > 0u; step /= 2u) {
            workgroupBarrier();
            for (var pair = local; pair < PAIRS; pair += u32(THREADS)) {
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
