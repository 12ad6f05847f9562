/* What operations move and compute (wk_op_cost). */
#include "backend/backend.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static wk_buffer any;

static wk_view dense(wick_dtype dtype, int rank, const int64_t *extent) {
    const wick_shape shape = wick_shape_of(rank, extent);
    wk_view view;
    uint64_t bytes;
    assert_true(wk_view_dense(dtype, &shape, &view, &bytes));
    view.buf = &any;
    return view;
}

static wk_view matrix(wick_dtype dtype, int64_t n, int64_t k) {
    return dense(dtype, 2, (const int64_t[]){n, k});
}

static void expect(const wk_op *op, double read, double written, double flops) {
    const wk_cost cost = wk_op_cost(op, NULL);
    assert_true(cost.bytes_read == read);
    assert_true(cost.bytes_written == written);
    assert_true(cost.flops == flops);
}

static void test_products(void **state) {
    (void)state;
    wk_op op = {.code = WK_OP_LINEAR, .n_dst = 1, .n_src = 3};
    op.view[0] = matrix(WICK_F32, 2, 64);
    op.view[1] = matrix(WICK_F32, 2, 32);
    op.view[2] = matrix(WICK_Q4_0, 64, 32); /* 18 bytes a row; no bias */
    expect(&op, 2 * 32 * 4 + 64 * 18, 2 * 64 * 4, 2.0 * 2 * 64 * 32);
}

/* Of 8 experts those of 3 rows are read, at most. */
static void test_experts(void **state) {
    (void)state;
    wk_op op = {.code = WK_OP_LINEAR_EXPERTS, .n_dst = 1, .n_src = 4};
    op.view[0] = dense(WICK_F32, 3, (const int64_t[]){1, 3, 64});
    op.view[1] = dense(WICK_F32, 3, (const int64_t[]){1, 3, 32});
    op.view[2] = dense(WICK_Q4_0, 3, (const int64_t[]){8, 64, 32});
    op.view[4] = dense(WICK_U32, 2, (const int64_t[]){1, 3});
    expect(&op, 3 * 32 * 4 + 3 * 64 * 18 + 3 * 4, 3 * 64 * 4, 2.0 * 3 * 64 * 32);
}

static void test_elements(void **state) {
    (void)state;
    wk_op op = {.code = WK_OP_BINARY, .n_dst = 1, .n_src = 2};
    for (int i = 0; i < 3; i++) op.view[i] = matrix(WICK_F16, 3, 5);
    expect(&op, 2 * 15 * 2, 15 * 2, 0);
    op.view[2].stride[0] = op.view[2].stride[1] = 0; /* one element for all */
    expect(&op, 15 * 2 + 2, 15 * 2, 0);
}

/* A table is read as far as rows of it are wanted. */
static void test_embedding(void **state) {
    (void)state;
    wk_op op = {.code = WK_OP_EMBEDDING, .n_dst = 1, .n_src = 2};
    op.view[0] = matrix(WICK_F32, 2, 8);
    op.view[1] = matrix(WICK_F16, 100, 8);
    op.view[2] = dense(WICK_U32, 1, (const int64_t[]){2});
    expect(&op, 2 * 8 * 2 + 2 * 4, 2 * 8 * 4, 0);
}

/* Of a cache of 10 blocks the sequence has 3: 2 rows see 11.5 of its 12 keys on the average. */
static void test_cache(void **state) {
    (void)state;
    const int64_t rows[3] = {2, 4, 8}, cache[4] = {10, 1, 4, 8};
    wk_op op = {.code = WK_OP_ATTENTION_CACHED, .n_dst = 1, .n_src = 4};
    op.p.cached.batch = (wk_batch_layout){
        .n_rows = 2, .n_sequences = 1, .n_blocks = 3, .block_size = 4, .n_words = 12};
    op.view[0] = dense(WICK_F32, 3, rows);
    op.view[1] = op.view[0];
    op.view[2] = dense(WICK_F16, 4, cache);
    op.view[3] = op.view[2];
    op.view[4] = dense(WICK_U32, 1, (const int64_t[]){12});
    expect(&op, 64 * 4 + 2 * (3 * 4 * 8 * 2) + 12 * 4, 64 * 4, 2.0 * (64 + 64) * 11.5);
    wk_op append = {.code = WK_OP_KV_APPEND, .n_dst = 2, .n_src = 3};
    append.p = op.p;
    append.view[0] = append.view[1] = op.view[2];
    append.view[2] = append.view[3] = dense(WICK_F32, 3, (const int64_t[]){2, 1, 8});
    append.view[4] = op.view[4];
    expect(&append, 2 * 16 * 4 + 12 * 4, 2 * 16 * 4, 0);
}

/* Of 5 slots of state the batch's sequence has one, which is read and written. */
static void test_recurrent(void **state) {
    (void)state;
    const int64_t rows[3] = {2, 4, 8}, numbers[4] = {5, 4, 16, 8}, bc[4] = {2, 2, 1, 16};
    wk_op scan = {.code = WK_OP_SCAN, .n_dst = 2, .n_src = 5};
    scan.p.scan.fn = WK_SCAN_DELTA;
    scan.p.scan.batch = (wk_batch_layout){.n_rows = 2, .n_sequences = 1, .n_words = 12};
    for (int i = 0; i < 5; i++) scan.view[i] = dense(WICK_F32, 3, rows);
    scan.view[1] = dense(WICK_F32, 4, numbers);
    scan.view[5] = dense(WICK_F32, 4, bc);
    scan.view[6] = dense(WICK_U32, 1, (const int64_t[]){12});
    const double slot = 4 * 16 * 8 * 4;
    expect(&scan, 3 * 64 * 4 + 64 * 4 + 12 * 4 + slot, 64 * 4 + slot, 7.0 * 64 * 16);
    wk_op conv = {.code = WK_OP_CAUSAL_CONV, .n_dst = 2, .n_src = 4};
    conv.p.conv.batch = scan.p.scan.batch;
    conv.view[0] = conv.view[2] = dense(WICK_F32, 2, (const int64_t[]){2, 8});
    conv.view[1] = dense(WICK_F32, 3, (const int64_t[]){5, 3, 8});
    conv.view[3] = dense(WICK_F32, 2, (const int64_t[]){8, 4});
    conv.view[5] = scan.view[6];
    expect(&conv, 16 * 4 + 32 * 4 + 12 * 4 + 24 * 4, 16 * 4 + 24 * 4, 2.0 * 16 * 4);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_products), cmocka_unit_test(test_experts),
        cmocka_unit_test(test_elements), cmocka_unit_test(test_embedding),
        cmocka_unit_test(test_cache),    cmocka_unit_test(test_recurrent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
