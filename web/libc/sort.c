/* sort.c: heapsort: n log n regardless of the input, in place, no recursion. */
#include <stdlib.h>

typedef int comparison(const void *, const void *);

static void swap(char *a, char *b, size_t size) {
    for (size_t i = 0; i < size; i++) {
        const char kept = a[i];
        a[i] = b[i];
        b[i] = kept;
    }
}

/* Lets items[root] sink until no child of it, among the first n, is larger. */
static void sink(char *items, size_t root, size_t n, size_t size, comparison *compare) {
    for (;;) {
        size_t child = 2 * root + 1;
        if (child >= n) return;
        if (child + 1 < n && compare(items + child * size, items + (child + 1) * size) < 0) child++;
        if (compare(items + root * size, items + child * size) >= 0) return;
        swap(items + root * size, items + child * size, size);
        root = child;
    }
}

void qsort(void *items, size_t n, size_t size, comparison *compare) {
    for (size_t root = n / 2; root-- > 0;) sink(items, root, n, size, compare);
    for (size_t end = n; end-- > 1;) {
        swap(items, (char *)items + end * size, size);
        sink(items, 0, end, size, compare);
    }
}
