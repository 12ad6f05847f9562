/* format/tensor_order.c: heapsort of tensor indices.
 *
 * Not qsort: C libraries allocate in it, or are quadratic on input that an attacker chooses. */
#include "format/tensor_order.h"

static bool is_after(const wick_file_tensor *a, const wick_file_tensor *b) {
    return a->offset != b->offset ? a->offset > b->offset : a->size > b->size;
}

/* Restores the heap (largest on top) below root, order[0, n). */
static void sift_down(const wick_file_tensor *tensors, uint32_t *order, size_t root, size_t n) {
    const uint32_t moved = order[root];
    for (size_t child = 2 * root + 1; child < n; child = 2 * root + 1) {
        if (child + 1 < n && is_after(&tensors[order[child + 1]], &tensors[order[child]])) child++;
        if (!is_after(&tensors[order[child]], &tensors[moved])) break;
        order[root] = order[child];
        root = child;
    }
    order[root] = moved;
}

void wk_tensor_order(const wick_file_tensor *tensors, uint32_t *order, size_t n) {
    for (size_t i = 0; i < n; i++) order[i] = (uint32_t)i;
    for (size_t i = n / 2; i-- > 0;) sift_down(tensors, order, i, n);
    for (size_t i = n; i-- > 1;) {
        const uint32_t largest = order[0];
        order[0] = order[i];
        order[i] = largest;
        sift_down(tensors, order, 0, i);
    }
}
