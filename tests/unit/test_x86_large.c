/* tests/unit/test_x86_large.c: results so large that kernels store them past the caches have the
 * bits that the same rows have in small results. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "x86_case.h"

enum {
    ROWS = 8212,
    COLUMNS =
        1031, /* of rows that begin at multiples of 64 bytes or, with the odd stride, do not */
    ALIGNED = 1040,
    SOME = 37, /* rows of a small result */
};

typedef struct large {
    wk_op op; /* destination first; all operands of ROWS rows */
    wk_buffer buffers[4];
} large;

static wk_view *add(large *l, wick_dtype dtype, int64_t columns, int64_t stride) {
    const int i = l->op.n_dst + l->op.n_src;
    const size_t size = (size_t)(ROWS + ALIGNED) * ALIGNED * sizeof(float);
    uint32_t *const memory = aligned_alloc(64, size);
    assert_non_null(memory);
    for (uint32_t j = 0; j < size / sizeof *memory; j++) {
        const float value = (float)(j * UINT32_C(2654435761) >> 8) * 0x1p-22F - 2;
        memcpy(&memory[j], &value, sizeof value);
        if (dtype == WICK_U32) memory[j] = j * UINT32_C(2654435761) % ROWS;
    }
    l->buffers[i] = (wk_buffer){.size = size, .data = memory};
    l->op.view[i] = (wk_view){.buf = &l->buffers[i],
                              .dtype = dtype,
                              .rank = 2,
                              .extent = {ROWS, columns},
                              .stride = {stride, 1}};
    if (l->op.n_dst == 0) {
        l->op.n_dst = 1;
    } else {
        l->op.n_src++;
    }
    return &l->op.view[i];
}

/* Rows [first, first + n) of every operand that has ROWS of them. */
static wk_op rows_of(const wk_op *op, int64_t first, int64_t n) {
    wk_op part = *op;
    for (int i = 0; i < op->n_dst + op->n_src; i++) {
        wk_view *const view = &part.view[i];
        if (view->rank != 2) continue;
        view->offset += (uint64_t)(first * view->stride[0]) * sizeof(float);
        view->extent[0] = n;
    }
    return part;
}

static void check_kernel(const wk_cpu_kernel *k, const large *l, wk_op *whole) {
    const wk_view *const y = wk_dst(whole, 0);
    float *const got = wk_view_data(y);
    memset(got, 0xFF, y->buf->size);
    x86_run(k, whole, 64);
    wk_buffer other = l->buffers[0];
    other.data = malloc((size_t)other.size);
    assert_non_null(other.data);
    memset(other.data, 0xFF, (size_t)other.size);
    for (int64_t i = 0; i < ROWS; i += SOME) {
        wk_op part = rows_of(whole, i, ROWS - i < SOME ? ROWS - i : SOME);
        part.view[0].buf = &other;
        assert_true(k->base.accepts(&part));
        x86_run(k, &part, 1);
    }
    /* What is between the rows and after them was not written in either. */
    assert_memory_equal(l->buffers[0].data, other.data, (size_t)other.size);
    free(other.data);
}

static void check(large *l) {
    int n_run = 0;
    for (size_t at = 0; wk_cpu_kernel_at(at) != NULL; at++) {
        const wk_cpu_kernel *const k = wk_cpu_kernel_at(at);
        if (k->base.code != l->op.code || k->base.needs == 0 || !x86_can_run(k) ||
            !k->base.accepts(&l->op))
            continue;
        check_kernel(k, l, &l->op);
        n_run++;
    }
    if (wk_cpu_features() != 0) assert_true(n_run > 0);
    for (int i = 0; i < l->op.n_dst + l->op.n_src; i++) free(l->buffers[i].data);
}

static void check_rows(wk_opcode code, int n_src, int64_t stride, bool is_log) {
    large l = {.op.code = code};
    if (code == WK_OP_RMS_NORM || code == WK_OP_LAYER_NORM) l.op.p.norm.eps = 1e-5F;
    if (code == WK_OP_SOFTMAX) l.op.p.softmax.is_log = is_log;
    if (code == WK_OP_UNARY) l.op.p.unary.fn = WK_UNARY_EXP;
    for (int i = 0; i <= n_src; i++) add(&l, WICK_F32, COLUMNS, stride);
    for (int i = 2; i <= n_src && code != WK_OP_BINARY; i++) { /* weights and biases */
        wk_view *const row = &l.op.view[i];
        row->rank = 1;
        row->extent[0] = COLUMNS;
        row->stride[0] = 1;
    }
    check(&l);
}

static void test_rows(void **state) {
    (void)state;
    static const int64_t strides[] = {COLUMNS, ALIGNED};
    for (int i = 0; i < 2; i++) {
        check_rows(WK_OP_UNARY, 1, strides[i], false);
        check_rows(WK_OP_BINARY, 2, strides[i], false);
        check_rows(WK_OP_COPY, 1, strides[i], false);
        check_rows(WK_OP_SOFTMAX, 1, strides[i], false);
        check_rows(WK_OP_SOFTMAX, 1, strides[i], true);
        check_rows(WK_OP_RMS_NORM, 2, strides[i], false);
        check_rows(WK_OP_LAYER_NORM, 3, strides[i], false);
        check_rows(WK_OP_CUMULATE, 1, strides[i], false);
    }
}

static void test_transposition(void **state) {
    (void)state;
    for (int i = 0; i < 2; i++) {
        large l = {.op.code = WK_OP_COPY};
        add(&l, WICK_F32, COLUMNS, i == 0 ? ALIGNED : COLUMNS);
        wk_view *const x = add(&l, WICK_F32, COLUMNS, 1);
        x->stride[1] = ROWS;
        check(&l);
    }
}

/* Columns of the op are rows in memory. */
static void test_columns(void **state) {
    (void)state;
    for (int gathers = 0; gathers < 2; gathers++) {
        large l = {.op.code = gathers ? WK_OP_GATHER : WK_OP_CUMULATE};
        for (int i = 0; i < 2 + gathers; i++) {
            wk_view *const view = add(&l, i == 2 ? WICK_U32 : WICK_F32, COLUMNS, 1);
            view->stride[1] = i == 2 ? 1 : ROWS;
            if (i == 2) view->stride[0] = 0;
        }
        uint32_t *const ids = gathers ? l.buffers[2].data : NULL;
        for (uint32_t i = 0; gathers && i < COLUMNS; i++) ids[i] %= COLUMNS;
        check(&l);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_transposition),
        cmocka_unit_test(test_columns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
