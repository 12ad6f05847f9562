/* matmul, linear and embedding of cpu/ref. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "ref_case.h"

#include "quant/block.h"

#include <math.h>

static void matmul_of_batches_and_strides(void **state) {
    (void)state;
    float a[12], b[12], c_dense[8], c_swapped[8];
    for (int i = 0; i < 12; i++) a[i] = (float)(i + 1), b[i] = (float)(i * i % 7);
    ref_case c;
    ref_begin(&c, WK_OP_MATMUL);
    REF_ADD(&c, c_dense, WICK_F32, 2, 2, 2);
    REF_ADD(&c, a, WICK_F32, 2, 2, 3);
    REF_ADD(&c, b, WICK_F32, 2, 3, 2);
    assert_false(ref_run(&c));
    for (int l = 0; l < 8; l++) {
        const int batch = l / 4, i = l / 2 % 2, j = l % 2;
        float sum = 0;
        for (int k = 0; k < 3; k++) sum += a[batch * 6 + i * 3 + k] * b[batch * 6 + k * 2 + j];
        assert_true(c_dense[l] == sum);
    }
    /* All three transposed: (b^T a^T)^T, with the same numbers in other places. */
    wk_view *y = &c.op.view[0];
    c.buffers[0].data = c_swapped;
    y->stride[1] = 1;
    y->stride[2] = 2;
    wk_view bt = c.op.view[2], at = c.op.view[1];
    bt.extent[1] = 2, bt.extent[2] = 3, bt.stride[1] = 1, bt.stride[2] = 2;
    at.extent[1] = 3, at.extent[2] = 2, at.stride[1] = 1, at.stride[2] = 3;
    c.op.view[1] = bt;
    c.op.view[2] = at;
    ref_run(&c);
    ASSERT_BYTES(c_swapped, c_dense);
}

static void matmul_of_nothing_is_zero(void **state) {
    (void)state;
    double y[4] = {9, 9, 9, 9}, nothing[1];
    ref_case c;
    ref_begin(&c, WK_OP_MATMUL);
    REF_ADD(&c, y, WICK_F64, 2, 2);
    REF_ADD(&c, nothing, WICK_F64, 2, 0);
    REF_ADD(&c, nothing, WICK_F64, 0, 2);
    ref_run(&c);
    ASSERT_BYTES(y, ((double[]){0, 0, 0, 0}));
}

static void sums_are_of_float64(void **state) {
    (void)state;
    float a[] = {1e8f, 1, -1e8f}, ones[] = {1, 1, 1}, y[1];
    ref_case c;
    ref_begin(&c, WK_OP_MATMUL);
    REF_ADD(&c, y, WICK_F32, 1, 1);
    REF_ADD(&c, a, WICK_F32, 1, 3);
    REF_ADD(&c, ones, WICK_F32, 3, 1);
    ref_run(&c);
    assert_true(y[0] == 1);
    ref_begin(&c, WK_OP_LINEAR);
    REF_ADD(&c, y, WICK_F32, 1, 1);
    REF_ADD(&c, a, WICK_F32, 1, 3);
    REF_ADD(&c, ones, WICK_F32, 1, 3);
    ref_skip(&c);
    ref_run(&c);
    assert_true(y[0] == 1);
}

static void linear_of_floats(void **state) {
    (void)state;
    double x[] = {1, 2, 3, 4}, weight[] = {1, 10, 100, 1000, 0.5, 0.25},
           bias[] = {0.125, 1e-17, -1}, y[6];
    ref_case c;
    ref_begin(&c, WK_OP_LINEAR);
    REF_ADD(&c, y, WICK_F64, 2, 3);
    REF_ADD(&c, x, WICK_F64, 2, 2);
    REF_ADD(&c, weight, WICK_F64, 3, 2);
    REF_ADD(&c, bias, WICK_F64, 3);
    ref_run(&c);
    ASSERT_BYTES(y, ((double[]){21.125, 2100, 0, 43.125, 4300, 1.5}));
    wk_view *w = &c.op.view[2]; /* the transpose of [2, 3] */
    w->stride[0] = 1;
    w->stride[1] = 3;
    ref_run(&c);
    ASSERT_BYTES(y, ((double[]){2001.125, 11, 99.5, 4003.125, 32, 300}));
}

/* Every type that can be decoded, against its own rows. */
static void linear_and_embedding_of_blocks(void **state) {
    (void)state;
    enum { M = 3, N = 5, K = 512 };
    static uint8_t weight[N * K * 4];
    static float x[M * K], y[M * N], rows[N][K], taken[2 * K];
    for (int i = 0; i < M * K; i++) x[i] = (float)((i * 29) % 64 - 32) / 16;
    for (int dtype = WICK_Q4_0; dtype <= WICK_Q2_0; dtype++) {
        const wk_decode_fn decode = wk_decoder((wick_dtype)dtype);
        if (decode == NULL) continue;
        uint64_t row_bytes;
        assert_true(wk_dtype_bytes((wick_dtype)dtype, K, &row_bytes));
        for (size_t i = 0; i < sizeof weight; i++) weight[i] = (uint8_t)(i * 73 % 59);
        for (size_t i = 0; i < N; i++) decode(weight + i * row_bytes, rows[i], K);
        ref_case c;
        ref_begin(&c, WK_OP_LINEAR);
        REF_ADD(&c, y, WICK_F32, M, N);
        REF_ADD(&c, x, WICK_F32, M, K);
        REF_ADD(&c, weight, (wick_dtype)dtype, N, K);
        ref_skip(&c);
        assert_false(ref_run(&c));
        for (int i = 0; i < M * N; i++) {
            double sum = 0, size = 0;
            for (int k = 0; k < K; k++) {
                const double product = (double)x[i / N * K + k] * (double)rows[i % N][k];
                sum += product;
                size += fabs(product);
            }
            assert_true(fabs((double)y[i] - sum) <= 1e-7 * size);
        }
        uint32_t ids[] = {4, 0};
        ref_begin(&c, WK_OP_EMBEDDING);
        REF_ADD(&c, taken, WICK_F32, 2, K);
        REF_ADD(&c, weight, (wick_dtype)dtype, N, K);
        REF_ADD(&c, ids, WICK_U32, 2);
        assert_false(ref_run(&c));
        assert_memory_equal(taken, rows[4], sizeof rows[4]);
        assert_memory_equal(taken + K, rows[0], sizeof rows[0]);
    }
}

static void linear_of_a_compute_layout(void **state) {
    (void)state;
    enum { N = 20, K = 32 };
    static float weight[N * K], panels[32 * K], x[K], y[N], expected[N];
    for (int i = 0; i < N * K; i++) weight[i] = (float)(i % 13) - 6;
    for (int i = 0; i < K; i++) x[i] = (float)(i % 5);
    wk_layout_store(WK_LAYOUT_PANEL_F32, WICK_F32, N, K, 0, N, weight, panels);
    ref_case c;
    ref_begin(&c, WK_OP_LINEAR);
    REF_ADD(&c, expected, WICK_F32, 1, N);
    REF_ADD(&c, x, WICK_F32, 1, K);
    REF_ADD(&c, weight, WICK_F32, N, K);
    ref_skip(&c);
    ref_run(&c);
    c.buffers[0].data = y;
    c.buffers[2] = (wk_buffer){.size = sizeof panels, .data = panels};
    c.op.view[2].layout = WK_LAYOUT_PANEL_F32;
    ref_run(&c);
    ASSERT_BYTES(y, expected);
}

static void embedding_of_every_index_type(void **state) {
    (void)state;
    float weight[] = {0, 1, 10, 11, 20, 21}, y[4];
    int64_t i64[] = {2, 77, 0};
    uint8_t u8[] = {1, 2};
    ref_case c;
    ref_begin(&c, WK_OP_EMBEDDING);
    REF_ADD(&c, y, WICK_F32, 2, 2);
    REF_ADD(&c, weight, WICK_F32, 3, 2);
    wk_view *ids = REF_ADD(&c, i64, WICK_I64, 2);
    ids->stride[0] = 2;
    assert_false(ref_run(&c));
    ASSERT_BYTES(y, ((float[]){20, 21, 0, 1}));
    c.op.view[2] = c.op.view[0];
    c.n = 2;
    REF_ADD(&c, u8, WICK_U8, 2);
    assert_false(ref_run(&c));
    ASSERT_BYTES(y, ((float[]){10, 11, 20, 21}));
}

static void embedding_refuses_bad_indices(void **state) {
    (void)state;
    float weight[] = {0, 1, 2}, y[3] = {7, 7, 7};
    int64_t ids[] = {-1, 1, 3};
    ref_case c;
    ref_begin(&c, WK_OP_EMBEDDING);
    REF_ADD(&c, y, WICK_F32, 3, 1);
    REF_ADD(&c, weight, WICK_F32, 3, 1);
    REF_ADD(&c, ids, WICK_I64, 3);
    assert_true(ref_run(&c));
    ASSERT_BYTES(y, ((float[]){7, 1, 7}));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(matmul_of_batches_and_strides),
        cmocka_unit_test(matmul_of_nothing_is_zero),
        cmocka_unit_test(sums_are_of_float64),
        cmocka_unit_test(linear_of_floats),
        cmocka_unit_test(linear_and_embedding_of_blocks),
        cmocka_unit_test(linear_of_a_compute_layout),
        cmocka_unit_test(embedding_of_every_index_type),
        cmocka_unit_test(embedding_refuses_bad_indices),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
