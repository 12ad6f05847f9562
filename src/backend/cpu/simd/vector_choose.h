/* simd/vector_choose.h: comparisons and what is chosen by them, over any strides. */
#ifndef WK_SIMD_VECTOR_CHOOSE_H
#define WK_SIMD_VECTOR_CHOOSE_H

#include "backend/cpu/simd/vector_walk.h"

#include <stdalign.h>

/* --- Compare --- */

/* X(FUNCTION, of p and q). */
#define COMPARE_FUNCTIONS(X)                                                                       \
    X(EQ, v16_equal(p, q))                                                                         \
    X(NE, m16_not(v16_equal(p, q)))                                                                \
    X(LT, v16_less(p, q))                                                                          \
    X(LE, v16_less_equal(p, q))                                                                    \
    X(GT, v16_less(q, p))                                                                          \
    X(GE, v16_less_equal(q, p))

/* Whole vectors are written to y. */
static void compare_row(wk_compare_fn fn, uint8_t *y, const float *a, const float *b, int64_t n) {
    switch (fn) {
#define CASE(function, value)                                                                      \
    case WK_COMPARE_##function:                                                                    \
        for (int64_t i = 0; i < n; i += 16) {                                                      \
            const v16 p = load_at(a, i, n), q = load_at(b, i, n);                                  \
            m16_store(y + i, value);                                                               \
        }                                                                                          \
        break;
        COMPARE_FUNCTIONS(CASE)
#undef CASE
    default: break;
    }
}

static void run_compare(const wk_cpu_run *run, int phase, int64_t begin, int64_t end) {
    (void)phase;
    walk w;
    walk_elements(&w, run->op);
    alignas(64) float a[WALK_CHUNK], b[WALK_CHUNK];
    alignas(64) uint8_t y[WALK_CHUNK];
    for (int64_t n; begin < end; begin += n) {
        n = walk_step(&w, begin, end);
        compare_row(run->op->p.compare, y, load_floats(&w, 1, begin, n, a),
                    load_floats(&w, 2, begin, n, b), n);
        store_bits(&w, 0, begin, n, y);
    }
}

/* Of types whose numbers are all floats. */
static bool accepts_compare(const wk_op *op) {
    const wk_view *const a = wk_src(op, 0), *const b = wk_src(op, 1);
    if (op->p.compare >= WK_COMPARE_COUNT_ || a->dtype != b->dtype) return false;
    switch (a->dtype) {
    case WICK_U8:
    case WICK_I8:
    case WICK_I16:
    case WICK_BOOL: return true;
    default: return is_narrow_float(a) && is_narrow_float(b);
    }
}

/* --- Where --- */

/* Bits move through vectors of floats as they are. Whole vectors of cond are read. */
static void choose_words(float *y, const uint8_t *cond, const float *a, const float *b, int64_t n) {
    for (int64_t i = 0; i < n; i += 16)
        store_at(y, i, n, v16_select(m16_load(cond + i), load_at(a, i, n), load_at(b, i, n)));
}

static void run_where(const wk_cpu_run *run, int phase, int64_t begin, int64_t end) {
    (void)phase;
    walk w;
    walk_elements(&w, run->op);
    alignas(64) uint8_t cond[WALK_CHUNK] = {0};
    alignas(64) float buf[3][WALK_CHUNK];
    for (int64_t n; begin < end; begin += n) {
        n = walk_step(&w, begin, end);
        const uint8_t *const chosen = load_bits(&w, 1, begin, n, cond);
        if (chosen != cond) memcpy(cond, chosen, (size_t)n);
        float *const y = elements_at(&w, 0, begin, n);
        choose_words(y != NULL ? y : buf[0], cond, load_bits(&w, 2, begin, n, buf[1]),
                     load_bits(&w, 3, begin, n, buf[2]), n);
        if (y == NULL) store_bits(&w, 0, begin, n, buf[0]);
    }
}

static bool accepts_where(const wk_op *op) {
    const wick_dtype dtype = wk_dst(op, 0)->dtype, cond = wk_src(op, 0)->dtype;
    return (cond == WICK_U8 || cond == WICK_BOOL) &&
           (dtype == WICK_F32 || dtype == WICK_I32 || dtype == WICK_U32);
}

#endif
