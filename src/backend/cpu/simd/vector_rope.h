/* simd/vector_rope.h: rotary position embedding by tables, for rows of dense floats. */
#ifndef WK_SIMD_VECTOR_ROPE_H
#define WK_SIMD_VECTOR_ROPE_H

#include "backend/cpu/simd/vector_rows.h"

static bool accepts_rope_table(const wk_op *op) {
    for (int i = 0; i < op->n_dst + op->n_src; i++)
        if (!has_float_rows(&op->view[i])) return false;
    return true;
}

/* x [b, t, h, d] by cos and sin [b, t, half]. */
typedef struct rotation {
    const float *x, *cos, *sin;
    float *y;
    int64_t half, d;
} rotation;

/* Pairs (2i, 2i + 1). */
static void rotate_neighbours(const rotation *r) {
    static const float signs[16] = {-1, 1, -1, 1, -1, 1, -1, 1, -1, 1, -1, 1, -1, 1, -1, 1};
    int64_t i = 0;
    for (; i + 8 <= r->half; i += 8) {
        const v16 x = v16_load(r->x + 2 * i);
        const v16 sine = v16_mul(v16_load_twice(r->sin + i), v16_load(signs));
        const v16 turned = v16_mul(v16_swap_pairs(x), sine);
        v16_store(r->y + 2 * i, v16_fma(x, v16_load_twice(r->cos + i), turned));
    }
    for (; i < r->half; i++) {
        const float a = r->x[2 * i], b = r->x[2 * i + 1];
        r->y[2 * i] = a * r->cos[i] - b * r->sin[i];
        r->y[2 * i + 1] = b * r->cos[i] + a * r->sin[i];
    }
}

/* Pairs (i, i + half). */
static void rotate_halves(const rotation *r) {
    const int64_t half = r->half;
    for (int64_t i = 0; i < half; i += 16) {
        const v16 a = load_at(r->x, i, half), b = load_at(r->x + half, i, half);
        const v16 c = load_at(r->cos, i, half), s = load_at(r->sin, i, half);
        store_at(r->y, i, half, v16_sub(v16_mul(a, c), v16_mul(b, s)));
        store_at(r->y + half, i, half, v16_fma(b, c, v16_mul(a, s)));
    }
}

static void run_rope_table(const wk_cpu_run *run, int phase, int64_t begin, int64_t end) {
    (void)phase;
    const wk_op *const op = run->op;
    const int64_t n_heads = wk_dst(op, 0)->extent[2];
    for (int64_t row = begin; row < end; row++) {
        const rotation r = {
            .x = row_at(wk_src(op, 0), row),
            .cos = row_at(wk_src(op, 1), row / n_heads),
            .sin = row_at(wk_src(op, 2), row / n_heads),
            .y = row_at(wk_dst(op, 0), row),
            .half = row_length(wk_src(op, 1)),
            .d = row_length(wk_dst(op, 0)),
        };
        if (op->p.rope_table.interleaved) {
            rotate_neighbours(&r);
        } else {
            rotate_halves(&r);
        }
        const size_t rest = (size_t)(r.d - 2 * r.half) * sizeof(float);
        if (rest > 0 && r.y != r.x) memmove(r.y + 2 * r.half, r.x + 2 * r.half, rest);
    }
}

#endif
