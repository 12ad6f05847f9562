/* How operations may be cut (wk_op_cuts): the dimension of each operand that a piece goes along. */
#include "backend/op.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/compiler.h"

#include <string.h>

/* "01- -2-t": along dimensions 0 and 1 of the first two operands, or along 2 of the second one,
 * which is a table (r: along the rows of the batch). */
static void write_cuts(const wk_op *op, char *text) {
    wk_cuts list;
    wk_op_cuts(op, &list);
    for (int i = 0; i < list.n; i++) {
        const wk_cut *const c = &list.of[i];
        if (i > 0) *text++ = ' ';
        for (int k = 0; k < op->n_dst + op->n_src; k++)
            *text++ = c->dim[k] == WK_UNCUT ? '-' : (char)('0' + c->dim[k]);
        if (c->is_of_table) *text++ = 't';
        if (c->has_rows) *text++ = 'r';
    }
    *text = '\0';
}

static void test_cuts(void **state) {
    static const struct {
        wk_opcode code;
        int rank, n_dst, n_src; /* rank of the first operand */
        wick_dtype dtype;
        const char *cuts;
    } cases[] = {
        {WK_OP_BINARY, 2, 1, 2, WICK_F32, "000 111"},
        {WK_OP_COPY, 2, 1, 1, WICK_F32, "00 11"},
        {WK_OP_COPY, 2, 1, 1, WICK_Q4_0, "00"}, /* blocks are whole */
        {WK_OP_ARANGE, 1, 1, 0, WICK_F32, ""},
        {WK_OP_REDUCE, 1, 1, 1, WICK_F32, "00"},
        {WK_OP_SOFTMAX, 3, 1, 2, WICK_F32, "00- 11-"},
        {WK_OP_ARGSORT, 1, 1, 1, WICK_F32, ""},
        {WK_OP_TOP_K, 2, 2, 1, WICK_F32, "000"},
        {WK_OP_DRAW, 1, 1, 2, WICK_F32, ""},
        {WK_OP_GATHER, 3, 1, 2, WICK_F32, "000 111 2-2"},
        {WK_OP_SCATTER, 3, 1, 2, WICK_F32, "000 111"},
        {WK_OP_ROPE, 4, 1, 3, WICK_F32, "0000 1111 22--"},
        {WK_OP_ROPE_TABLE, 4, 1, 2, WICK_F32, "000 111 22-"},
        {WK_OP_MATMUL, 2, 1, 2, WICK_F32, "00- 1-1"},
        {WK_OP_MATMUL, 4, 1, 2, WICK_F32, "000 111 22- 3-3"},
        {WK_OP_LINEAR, 2, 1, 3, WICK_F32, "1-00 00--"},
        {WK_OP_EMBEDDING, 2, 1, 2, WICK_F32, "0-0 -0-t"},
        {WK_OP_LINEAR_EXPERTS, 3, 1, 4, WICK_F32, "00--0 11--1 --00-t"},
        {WK_OP_ATTENTION, 4, 1, 5, WICK_F32, "000000"},
        {WK_OP_ATTENTION_CACHED, 3, 1, 3, WICK_F32, "00--r"},
        {WK_OP_KV_APPEND, 4, 2, 2, WICK_F32, "--00r"},
        {WK_OP_CAUSAL_CONV, 2, 2, 2, WICK_F32, "0-0-r"},
        {WK_OP_POOL, 4, 1, 1, WICK_F32, "00 11"},
        {WK_OP_CONVOLUTION, 4, 1, 3, WICK_F32, "00--"},
    };
    (void)state;
    for (size_t i = 0; i < WK_COUNT(cases); i++) {
        char text[WK_MAX_CUTS * (WK_MAX_OPERANDS + 2) + 1];
        wk_op op = {.code = cases[i].code,
                    .n_dst = (uint8_t)cases[i].n_dst,
                    .n_src = (uint8_t)cases[i].n_src};
        for (int k = 0; k < WK_MAX_OPERANDS; k++)
            op.view[k] = (wk_view){.dtype = cases[i].dtype, .rank = cases[i].rank};
        write_cuts(&op, text);
        if (strcmp(text, cases[i].cuts) != 0)
            fail_msg("%s: '%s', not '%s'", wk_op_get_info(op.code)->name, text, cases[i].cuts);
    }
}

/* The gate of a delta rule has rows, a state space has none. */
static void test_scans(void **state) {
    (void)state;
    char text[64];
    wk_op op = {.code = WK_OP_SCAN, .n_dst = 2, .n_src = 4};
    op.p.scan.fn = WK_SCAN_DELTA;
    write_cuts(&op, text);
    assert_string_equal(text, "0-0000r");
    op.p.scan.fn = WK_SCAN_SELECTIVE;
    write_cuts(&op, text);
    assert_string_equal(text, "0-00-0r");
}

/* Numbers of a piece are numbered in a row: along the first dimension of several elements. */
static void test_random(void **state) {
    static const int64_t extents[][3] = {{4, 3, 2}, {1, 3, 2}, {1, 1, 2}, {1, 1, 1}};
    static const char *const cuts[] = {"0", "1", "2", ""};
    (void)state;
    for (size_t i = 0; i < WK_COUNT(cuts); i++) {
        char text[64];
        wk_op op = {.code = WK_OP_RANDOM, .n_dst = 1};
        op.view[0].rank = 3;
        memcpy(op.view[0].extent, extents[i], sizeof extents[i]);
        write_cuts(&op, text);
        assert_string_equal(text, cuts[i]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cuts),
        cmocka_unit_test(test_scans),
        cmocka_unit_test(test_random),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
