/* simd/vector_sort.h: the indices that sort rows, by the digits of keys of 32 bits, the lowest
 * first, each pass stable (Knuth, The Art of Computer Programming, 5.2.5). */
#ifndef WK_SIMD_VECTOR_SORT_H
#define WK_SIMD_VECTOR_SORT_H

#include "backend/cpu/simd/vector_rows.h"

enum {
    MANY_KEYS = 8192, /* from here on digits of 11 bits in 3 passes are faster than of 8 in 4 */
    MOST_DIGITS = 1 << 11,
};

typedef struct sort_entry {
    uint32_t key, index;
} sort_entry;

/* NaN last, -0 as 0. */
static uint32_t key_of_float(float value) {
    uint32_t bits;
    value += 0;
    memcpy(&bits, &value, sizeof bits);
    if (value != value) return UINT32_MAX;
    return bits >> 31 ? ~bits : bits | UINT32_C(1) << 31;
}

static void load_keys(const wk_view *x, const unsigned char *row, bool is_descending,
                      sort_entry *to) {
    const int64_t n = row_length(x), stride = x->stride[x->rank - 1];
    const uint32_t turned = is_descending ? UINT32_MAX : 0;
    if (x->dtype == WICK_I32 || x->dtype == WICK_U32) {
        const uint32_t sign = x->dtype == WICK_I32 ? UINT32_C(1) << 31 : 0;
        const uint32_t *const from = (const uint32_t *)(const void *)row;
        for (int64_t i = 0; i < n; i++)
            to[i] = (sort_entry){(from[i * stride] ^ sign) ^ turned, (uint32_t)i};
        return;
    }
    const int64_t size = wk_dtype_get(x->dtype)->block_bytes;
    float values[256];
    for (int64_t i = 0; i < n; i += 256) {
        const int64_t some = n - i < 256 ? n - i : 256;
        load_run(values, row + i * stride * size, stride, x->dtype, some);
        for (int64_t j = 0; j < some; j++)
            to[i + j] = (sort_entry){key_of_float(values[j]) ^ turned, (uint32_t)(i + j)};
    }
}

/* Sorts n entries, with room for as many; returns where they are then. */
static sort_entry *sort_entries(sort_entry *from, sort_entry *to, int64_t n) {
    const int bits = n < MANY_KEYS ? 8 : 11;
    const uint32_t mask = (UINT32_C(1) << bits) - 1;
    uint32_t begin[MOST_DIGITS];
    for (int shift = 0; shift < 32; shift += bits) {
        memset(begin, 0, ((size_t)mask + 1) * sizeof *begin);
        for (int64_t i = 0; i < n; i++) begin[from[i].key >> shift & mask]++;
        if (n > 0 && begin[from[0].key >> shift & mask] == n) continue; /* all alike */
        uint32_t sum = 0;
        for (uint32_t d = 0; d <= mask; d++) {
            const uint32_t count = begin[d];
            begin[d] = sum;
            sum += count;
        }
        for (int64_t i = 0; i < n; i++) to[begin[from[i].key >> shift & mask]++] = from[i];
        sort_entry *const sorted = to;
        to = from;
        from = sorted;
    }
    return from;
}

static void run_argsort(const wk_cpu_run *run, int phase, int64_t begin, int64_t end) {
    (void)phase;
    const wk_view *const y = wk_dst(run->op, 0), *const x = wk_src(run->op, 0);
    const int64_t n = row_length(x), stride = y->stride[y->rank - 1];
    sort_entry *const room = run->worker_scratch;
    for (int64_t row = begin; row < end; row++) {
        load_keys(x, row_at(x, row), run->op->p.argsort.is_descending, room);
        const sort_entry *const sorted = sort_entries(room, room + n, n);
        uint32_t *const to = row_at(y, row);
        for (int64_t i = 0; i < n; i++) to[i * stride] = sorted[i].index;
    }
}

static uint64_t argsort_bytes(const wk_op *op) {
    return 2 * (uint64_t)row_length(wk_src(op, 0)) * sizeof(sort_entry);
}

/* Numbers that 32 bits hold. */
static bool accepts_argsort(const wk_op *op) {
    const wk_view *const x = wk_src(op, 0);
    switch (x->dtype) {
    case WICK_I32:
    case WICK_U32:
    case WICK_I16:
    case WICK_I8:
    case WICK_U8:
    case WICK_BOOL: return x->rank > 0;
    default: return x->rank > 0 && is_narrow_float(x);
    }
}

#endif
