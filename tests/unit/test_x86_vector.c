/* tests/unit/test_x86_vector.c: elementwise functions, norm, softmax, rotation, copies and
 * products against cpu/ref, on odd sizes, strides and alignments. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "amount.h"
#include "x86_fixture.h"

#include <math.h>

static void test_elementwise(void **state) {
    (void)state;
    static const wk_opcode codes[] = {WK_OP_UNARY, WK_OP_BINARY, WK_OP_BINARY, WK_OP_GATED,
                                      WK_OP_COPY};
    wk_rng rng = {.seed = 1};
    for (size_t c = 0; c < sizeof codes / sizeof *codes; c++) {
        for (int64_t n = 1; n < 100; n += 1 + n / 3) {
            const int n_src = codes[c] == WK_OP_BINARY || codes[c] == WK_OP_GATED ? 2 : 1;
            fixture f = {.op = {.code = codes[c], .n_dst = 1, .n_src = (uint8_t)n_src}};
            if (codes[c] == WK_OP_BINARY) f.op.p.binary = c == 1 ? WK_BINARY_ADD : WK_BINARY_MUL;
            fixture_add(&f, &rng, WICK_F32, 3, (const int64_t[]){3, 5, n});
            fixture_spread_rows(fixture_add(&f, &rng, WICK_F32, 3, (const int64_t[]){6, 5, n}));
            if (n_src == 2) {
                wk_view *const row = fixture_add(&f, &rng, WICK_F32, 1, (const int64_t[]){n});
                *row = (wk_view){.buf = row->buf,
                                 .offset = row->offset,
                                 .rank = 3,
                                 .extent = {3, 5, n},
                                 .stride = {0, 0, 1}};
            }
            fixture_check(&f, 4e-7);
            fixture_free(&f);
        }
    }
}

/* From far below to far above where e^x fits in a float. */
static void test_silu_range(void **state) {
    (void)state;
    enum { N = 4000 };
    wk_rng rng = {.seed = 2};
    fixture f = {.op = {.code = WK_OP_UNARY, .n_dst = 1, .n_src = 1}};
    fixture_add(&f, &rng, WICK_F32, 1, (const int64_t[]){N});
    fixture_add(&f, &rng, WICK_F32, 1, (const int64_t[]){N});
    float *const x = x86_contents(&f.memory[1]);
    for (int i = 0; i < N; i++) x[i] = (float)(i - N / 2) * 0.06F;
    x[0] = NAN, x[1] = INFINITY, x[2] = -1e30F, x[3] = 1e30F, x[4] = 0, x[5] = 1e-40F;
    fixture_check(&f, 3e-7);
    for (int i = 6; i < N; i++) { /* and relative to each result */
        const double want = (double)x[i] / (1 + exp(-(double)x[i]));
        const double got = (double)((float *)x86_contents(&f.memory[0]))[i];
        if (x[i] > -80) assert_true(fabs(got - want) <= 3e-7 * fabs(want));
    }
    fixture_free(&f);
}

static void test_norm_and_softmax(void **state) {
    (void)state;
    wk_rng rng = {.seed = 3};
    for (int64_t n = 1; n < 700; n += n < 70 ? 1 : n / 4) { /* around 16 and 64 */
        for (int has_weight = 0; has_weight < 2; has_weight++) {
            fixture f = {.op = {.code = WK_OP_RMS_NORM, .n_dst = 1, .n_src = 2}};
            f.op.p.norm.eps = 1e-5F;
            fixture_add(&f, &rng, WICK_F32, 2, (const int64_t[]){3, n});
            fixture_spread_rows(fixture_add(&f, &rng, WICK_F32, 2, (const int64_t[]){6, n}));
            if (has_weight) fixture_add(&f, &rng, WICK_F32, 1, &n);
            fixture_check(&f, 4e-7);
            fixture_free(&f);
        }
        fixture f = {.op = {.code = WK_OP_SOFTMAX, .n_dst = 1, .n_src = 1}};
        f.op.p.softmax.is_log = n % 4 < 2;
        fixture_add(&f, &rng, WICK_F32, 2, (const int64_t[]){3, n});
        fixture_add(&f, &rng, WICK_F32, 2, (const int64_t[]){3, n});
        float *const x = x86_contents(&f.memory[1]);
        for (int64_t i = 0; i < n; i++) {
            x[i] *= 30;
            if (i % 3 == 1) x[i] = -INFINITY;
            if (n % 2 == 0) x[2 * n + i] = -INFINITY; /* a row of nothing is NaN */
        }
        fixture_check(&f, 4e-7);
        fixture_free(&f);
    }
}

/* Two rows of n elements a stride of `step` apart: element `at` of each and the last one are the
 * extreme, and one half a row after `at` may be NaN. */
static void check_long(int64_t n, wk_reduce_fn fn, int64_t step, int64_t at, bool has_nan) {
    const bool is_index = fn == WK_REDUCE_ARGMAX || fn == WK_REDUCE_ARGMIN;
    wk_rng rng = {.seed = (uint64_t)n};
    fixture f = {.op = {.code = WK_OP_REDUCE, .n_dst = 1, .n_src = 1}};
    f.op.p.reduce.fn = fn;
    fixture_add(&f, &rng, is_index ? WICK_U32 : WICK_F32, 1, (const int64_t[]){2});
    wk_view *const x = fixture_add(&f, &rng, WICK_F32, 2, (const int64_t[]){2, n * step});
    x->extent[1] = n;
    x->stride[1] = step;
    float *const data = x86_contents(&f.memory[1]);
    const float extreme = fn == WK_REDUCE_MIN || fn == WK_REDUCE_ARGMIN ? -9 : 9;
    for (int row = 0; row < 2; row++) {
        float *const of_row = data + row * n * step;
        of_row[at * step] = of_row[(n - 1) * step] = extreme;
        if (has_nan) of_row[(at + n / 2) % n * step] = NAN;
    }
    fixture_check(&f, 1e-6);
    const uint32_t *const index = x86_contents(&f.memory[0]);
    const int64_t nan_at = (at + n / 2) % n; /* counts as the first element alone */
    for (int row = 0; is_index && row < 2; row++)
        assert_int_equal(index[row], has_nan && nan_at == 0 ? 0 : at);
    fixture_free(&f);
}

/* Rows that are taken in parts of 16,384. */
static void test_long_reductions(void **state) {
    (void)state;
    enum { PART = 16384 };
    static const int64_t lengths[] = {2 * PART - 1,  2 * PART,      2 * PART + 1,
                                      2 * PART + 15, 2 * PART + 16, 2 * PART + 17,
                                      3 * PART - 1,  3 * PART,      3 * PART + 1};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        const int64_t n = lengths[i], places[] = {0, PART - 1, PART, n / 2, n - 1};
        for (int fn = 0; fn < WK_REDUCE_VAR; fn++) {
            const int64_t at = places[(i + (size_t)fn) % 5];
            check_long(n, (wk_reduce_fn)fn, 1, at, false);
            check_long(n, (wk_reduce_fn)fn, 1, n - n / 2, true); /* NaN first */
            check_long(n, (wk_reduce_fn)fn, 3, at, i % 2 == 1);
        }
    }
}

/* Products of every 16th element are beyond what float64 holds, those of all in their order are
 * not; and a factor that is 0, infinite or NaN. */
static void test_far_products(void **state) {
    (void)state;
    enum { N = 300 };
    static const float factors[] = {1, 0, -INFINITY, NAN};
    wk_rng rng = {.seed = 8};
    for (size_t i = 0; i < WK_COUNT(factors); i++) {
        fixture f = {.op = {.code = WK_OP_REDUCE, .n_dst = 1, .n_src = 1}};
        f.op.p.reduce.fn = WK_REDUCE_PROD;
        fixture_add(&f, &rng, WICK_F32, 1, (const int64_t[]){1});
        fixture_add(&f, &rng, WICK_F32, 2, (const int64_t[]){1, N});
        float *const x = x86_contents(&f.memory[1]);
        for (int k = 0; k < N; k++) x[k] = k % 2 ? 0x1p-100F : 0x1p100F;
        x[N - 1] = 0x1.8p-100F;
        x[N / 2] *= factors[i];
        fixture_check(&f, 0);
        const float got = *(const float *)x86_contents(&f.memory[0]);
        assert_true(isnan(factors[i]) ? isnan(got) : got == 1.5F * factors[i]);
        fixture_free(&f);
    }
}

/* Column i has its extreme twice, and NaN above the first of these where i % 5 is 1, or below it
 * where i % 5 is 2. */
static void set_extremes(float *x, int64_t width, int64_t length, float extreme) {
    for (int64_t i = 0; i < width; i++) {
        const int64_t at = (i * 37 + 1) % length, last = length - 1;
        x[at * width + i] = x[last * width + i] = extreme;
        if (i % 5 == 1 && at > 0) x[(at - 1) * width + i] = NAN;
        if (i % 5 == 2 && at < last) x[(at + 1) * width + i] = NAN;
    }
}

static void check_columns(int64_t width, int64_t length, wk_reduce_fn fn, bool has_extremes) {
    const bool is_index = fn == WK_REDUCE_ARGMAX || fn == WK_REDUCE_ARGMIN;
    wk_rng rng = {.seed = 6};
    fixture f = {.op = {.code = WK_OP_REDUCE, .n_dst = 1, .n_src = 1}};
    f.op.p.reduce.fn = fn;
    fixture_add(&f, &rng, is_index ? WICK_U32 : WICK_F32, 1, &width);
    wk_view *const x = fixture_add(&f, &rng, WICK_F32, 2, (const int64_t[]){width, length});
    x->stride[0] = 1;
    x->stride[1] = width;
    const float extreme = fn == WK_REDUCE_MIN || fn == WK_REDUCE_ARGMIN ? -9 : 9;
    if (has_extremes) set_extremes(x86_contents(&f.memory[1]), width, length, extreme);
    fixture_check(&f, 1e-6);
    fixture_free(&f);
}

/* Columns side by side, some of them in a range of their own. */
static void test_columns(void **state) {
    (void)state;
    static const int64_t widths[] = {15, 16, 17, 127, 128, 129, 1023, 1024, 1025, 2100};
    for (size_t i = 0; i < sizeof widths / sizeof *widths; i++)
        for (int fn = 0; fn < WK_REDUCE_COUNT_; fn++)
            check_columns(widths[i], 40, (wk_reduce_fn)fn, false);
}

/* Columns of which 64 elements or more are a part, at most 16, read in tiles of 64 rows. */
static void test_long_columns(void **state) {
    (void)state;
    static const int64_t shapes[][2] = {
        {256, 127},  {255, 128},   {256, 128}, {257, 129}, {257, 145}, {300, 191},  {300, 192},
        {1023, 193}, {1025, 1024}, {16, 2047}, {16, 2048}, {17, 3001}, {2100, 200}, {32768, 128}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        for (int fn = 0; fn < WK_REDUCE_VAR; fn++) {
            check_columns(shapes[i][0], shapes[i][1], (wk_reduce_fn)fn, false);
            check_columns(shapes[i][0], shapes[i][1], (wk_reduce_fn)fn, true);
        }
    }
}

static void test_rope_table(void **state) {
    (void)state;
    wk_rng rng = {.seed = 4};
    for (int64_t half = 1; half < 50; half += 1 + half / 5) {
        for (int i = 0; i < 4; i++) {
            const int64_t d = 2 * half + (i & 1) * 6;
            fixture f = {.op = {.code = WK_OP_ROPE_TABLE, .n_dst = 1, .n_src = 3}};
            f.op.p.rope_table.interleaved = i >= 2;
            fixture_add(&f, &rng, WICK_F32, 4, (const int64_t[]){2, 3, 5, d});
            fixture_add(&f, &rng, WICK_F32, 4, (const int64_t[]){2, 3, 5, d});
            fixture_add(&f, &rng, WICK_F32, 3, (const int64_t[]){2, 3, half});
            fixture_add(&f, &rng, WICK_F32, 3, (const int64_t[]){2, 3, half});
            fixture_check(&f, 6e-7);
            f.op.view[1] = f.op.view[0]; /* in place */
            fixture_check(&f, 6e-7);
            fixture_free(&f);
        }
    }
}

static void test_matmul(void **state) {
    (void)state;
    static const int64_t cases[][3] = {{1, 1, 1},
                                       {3, 5, 7},
                                       {13, 40, 31},
                                       {12, 32, 64},
                                       {25, 65, 100},
                                       {4, 0, 9},
                                       {70, 17, 48},
                                       {7, 129, 1},
                                       /* Several blocks, of rows, of columns and of k. */
                                       {400, 700, 70},
                                       {70, 600, 1100},
                                       {5, 300, 1100},
                                       {600, 100, 5}};
    wk_rng rng = {.seed = 5};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const int64_t m = cases[i][0], k = cases[i][1], n = cases[i][2];
        const int step = k >= 100 ? (int)case_step(3, 3) : 1; /* neither is turned, or both are */
        for (int turned = 0; turned < 4; turned += step) {
            fixture f = {.op = {.code = WK_OP_MATMUL, .n_dst = 1, .n_src = 2}};
            fixture_add(&f, &rng, WICK_F32, 3, (const int64_t[]){2, m, n});
            for (int o = 0; o < 2; o++) {
                const int64_t rows = o == 0 ? m : k, columns = o == 0 ? k : n;
                const bool is_turned = (turned >> o & 1) != 0;
                wk_view *const v = fixture_add(
                    &f, &rng, WICK_F32, 3,
                    (const int64_t[]){2, is_turned ? columns : rows, is_turned ? rows : columns});
                if (!is_turned) continue;
                v->extent[1] = rows, v->extent[2] = columns;
                v->stride[1] = 1, v->stride[2] = rows;
            }
            fixture_check(&f, 3e-6 * (1 + (double)k / 64));
            fixture_free(&f);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_elementwise),      cmocka_unit_test(test_silu_range),
        cmocka_unit_test(test_norm_and_softmax), cmocka_unit_test(test_long_reductions),
        cmocka_unit_test(test_far_products),     cmocka_unit_test(test_columns),
        cmocka_unit_test(test_long_columns),     cmocka_unit_test(test_rope_table),
        cmocka_unit_test(test_matmul),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
