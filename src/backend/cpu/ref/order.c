/* backend/cpu/ref/order.c: what goes along a row in its order: running sums, and sorting. */
#include "backend/cpu/ref/ref.h"

#include "core/dtype.h"

#include <math.h>
#include <string.h>

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

/* --- Cumulate --- */

static void cumulate_reals(wk_cumulate_fn fn, const wk_row *y, const wk_row *x) {
    double values[WK_REF_CHUNK], running = fn == WK_CUMULATE_SUM ? 0 : 1;
    for (int64_t i = 0; i < x->n; i += WK_REF_CHUNK) {
        const int64_t n = least(WK_REF_CHUNK, x->n - i);
        wk_row_load(x, i, n, values);
        for (int64_t j = 0; j < n; j++)
            values[j] = running = fn == WK_CUMULATE_SUM ? running + values[j] : running * values[j];
        wk_row_store(y, i, n, values);
    }
}

static void cumulate_integers(wk_cumulate_fn fn, const wk_row *y, const wk_row *x) {
    int64_t values[WK_REF_CHUNK];
    uint64_t running = fn == WK_CUMULATE_SUM ? 0 : 1;
    for (int64_t i = 0; i < x->n; i += WK_REF_CHUNK) {
        const int64_t n = least(WK_REF_CHUNK, x->n - i);
        wk_row_load_integer(x, i, n, values);
        for (int64_t j = 0; j < n; j++) {
            const uint64_t value = (uint64_t)values[j];
            running = fn == WK_CUMULATE_SUM ? running + value : running * value;
            values[j] = (int64_t)running;
        }
        wk_row_store_integer(y, i, n, values);
    }
}

static void run_cumulate(const wk_cpu_run *run, int phase, int64_t begin, int64_t end) {
    (void)phase;
    for (int64_t r = begin; r < end; r++) {
        const wk_row y = wk_row_at(wk_dst(run->op, 0), r), x = wk_row_at(wk_src(run->op, 0), r);
        (wk_dtype_is_float(x.dtype) ? cumulate_reals : cumulate_integers)(run->op->p.cumulate, &y,
                                                                          &x);
    }
}

const wk_cpu_kernel wk_cumulate_ref = {
    .base.name = "cumulate_ref",
    .base.code = WK_OP_CUMULATE,
    .base.is_reference = true,
    .n_phases = 1,
    .items = wk_ref_dst_rows,
    .run = run_cumulate,
};

/* --- Argsort: by the digits of keys, the lowest first, each pass stable --- */

enum { DIGIT_BITS = 8, N_DIGITS = 1 << DIGIT_BITS };

typedef struct entry {
    uint64_t key;
    int64_t index;
} entry;

/* Unsigned numbers in the order of floats. */
static uint64_t key_of_real(double value) {
    uint64_t bits;
    if (isnan(value)) return UINT64_MAX;
    value += 0; /* -0 is 0 */
    memcpy(&bits, &value, sizeof bits);
    return bits >> 63 ? ~bits : bits | UINT64_C(1) << 63;
}

static void load_keys(const wk_row *x, bool is_descending, entry *entries) {
    const bool is_float = wk_dtype_is_float(x->dtype);
    for (int64_t i = 0; i < x->n; i++) {
        double real;
        int64_t integer;
        uint64_t key;
        if (is_float) {
            wk_row_load(x, i, 1, &real);
            key = key_of_real(real);
        } else {
            wk_row_load_integer(x, i, 1, &integer);
            key = (uint64_t)integer ^ UINT64_C(1) << 63;
        }
        entries[i] = (entry){.key = is_descending ? ~key : key, .index = i};
    }
}

/* By one digit into `to`; false: all have the same one, and nothing was moved. */
static bool sort_by_digit(const entry *from, entry *to, int64_t n, int shift) {
    int64_t begin[N_DIGITS + 1] = {0};
    for (int64_t i = 0; i < n; i++) begin[(from[i].key >> shift & (N_DIGITS - 1)) + 1]++;
    if (n == 0 || begin[(from[0].key >> shift & (N_DIGITS - 1)) + 1] == n) return false;
    for (int d = 0; d < N_DIGITS; d++) begin[d + 1] += begin[d];
    for (int64_t i = 0; i < n; i++) to[begin[from[i].key >> shift & (N_DIGITS - 1)]++] = from[i];
    return true;
}

static void run_argsort(const wk_cpu_run *run, int phase, int64_t begin, int64_t end) {
    (void)phase;
    for (int64_t r = begin; r < end; r++) {
        const wk_row y = wk_row_at(wk_dst(run->op, 0), r), x = wk_row_at(wk_src(run->op, 0), r);
        entry *from = run->worker_scratch, *to = from + x.n;
        load_keys(&x, run->op->p.argsort.is_descending, from);
        for (int shift = 0; shift < 64; shift += DIGIT_BITS) {
            if (!sort_by_digit(from, to, x.n, shift)) continue;
            entry *const sorted = to;
            to = from;
            from = sorted;
        }
        for (int64_t i = 0; i < x.n; i++) wk_row_store_integer(&y, i, 1, &from[i].index);
    }
}

static uint64_t argsort_bytes(const wk_op *op) {
    const wk_view *const x = wk_src(op, 0);
    return 2 * (uint64_t)x->extent[x->rank - 1] * sizeof(entry);
}

const wk_cpu_kernel wk_argsort_ref = {
    .base.name = "argsort_ref",
    .base.code = WK_OP_ARGSORT,
    .base.is_reference = true,
    .n_phases = 1,
    .items = wk_ref_dst_rows,
    .worker_bytes = argsort_bytes,
    .run = run_argsort,
};
