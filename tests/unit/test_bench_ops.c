/* Operations as models have them, which kernels are timed on (verify/bench_ops.c). */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "backend/backend.h"
#include "core/compiler.h"
#include "verify/case.h"

#include <math.h>

static const wk_bench_sizes sizes = {.m = 2, .n = 8, .k = 64, .heads = 6, .key_heads = 3};

static wk_case describe(wk_opcode code) {
    wk_case c;
    wk_bench_describe(&c, code, &sizes);
    return c;
}

static void test_shapes(void **state) {
    static const struct {
        wk_opcode code;
        const char *text;
    } cases[] = {
        {WK_OP_UNARY, "unary y f32[2, 8] x f32[2, 8]"},
        {WK_OP_BINARY, "binary y f32[2, 8] a f32[2, 8] b f32[2, 8]"},
        {WK_OP_COMPARE, "compare y u8[2, 8] a f32[2, 8] b f32[2, 8]"},
        {WK_OP_WHERE, "where y f32[2, 8] cond u8[2, 8] a f32[2, 8] b f32[2, 8]"},
        {WK_OP_GATED, "gated y f32[2, 8] gate f32[2, 8] up f32[2, 8]"},
        {WK_OP_REDUCE, "reduce y u32[2] x f32[2, 8]"},
        {WK_OP_COPY, "copy y f32[2, 8] x f32[2, 8]"},
        {WK_OP_SOFTMAX, "softmax y f32[2, 8] x f32[2, 8]"},
        {WK_OP_RMS_NORM, "rms_norm y f32[2, 8] x f32[2, 8] weight f32[8]"},
        {WK_OP_LAYER_NORM, "layer_norm y f32[2, 8] x f32[2, 8] weight f32[8] bias f32[8]"},
        {WK_OP_ROPE, "rope y f32[1, 2, 6, 8] x f32[1, 2, 6, 8] positions u32[1, 2]"},
        {WK_OP_ROPE_TABLE,
         "rope_table y f32[1, 2, 6, 8] x f32[1, 2, 6, 8] cos f32[1, 2, 4] sin f32[1, 2, 4]"},
        {WK_OP_MATMUL, "matmul c f32[2, 8] a f32[2, 64] b f32[64, 8]"},
        {WK_OP_LINEAR, "linear y f32[2, 8] x f32[2, 64]"},
        {WK_OP_CUMULATE, "cumulate y f32[2, 8] x f32[2, 8]"},
        {WK_OP_ARGSORT, "argsort indices u32[2, 8] x f32[2, 8]"},
        {WK_OP_ATTENTION, "attention y f32[1, 6, 2, 8] q f32[1, 6, 2, 8] k f32[1, 3, 64, 8] "
                          "v f32[1, 3, 64, 8]"},
        {WK_OP_ATTENTION_CACHED,
         "attention_cached y f32[2, 6, 8] q f32[2, 6, 8] k_cache f16[2, 3, 32, 8] "
         "v_cache f16[2, 3, 32, 8] batch u32[12]"},
        {WK_OP_KV_APPEND, "kv_append k_cache f16[2, 3, 32, 8] v_cache f16[2, 3, 32, 8] "
                          "k f32[2, 3, 8] v f32[2, 3, 8] batch u32[12]"},
        {WK_OP_CAUSAL_CONV,
         "causal_conv y f32[2, 8] state f32[1, 3, 8] x f32[2, 8] weight f32[8, 4] batch u32[12]"},
        {WK_OP_SCAN, "scan y f32[2, 6, 8] state f32[1, 6, 8, 8] x f32[2, 6, 8] step f32[2, 6, 8] "
                     "gate f32[2, 6, 8] bc f32[2, 2, 3, 8] batch u32[12]"},
        {WK_OP_POOL, "pool y f32[2, 6, 1, 8, 8] x f32[2, 6, 1, 8, 8]"},
        {WK_OP_CONVOLUTION,
         "convolution y f32[2, 6, 1, 8, 8] x f32[2, 6, 1, 8, 8] weight f32[6, 6, 1, 3, 3]"},
        {WK_OP_CHAIN, "chain result f32[2, 8] tensor f32[2, 8] tensor f32[2, 8]"},
    };
    bool is_seen[WK_OP_CUSTOM] = {false};
    (void)state;
    for (size_t i = 0; i < WK_COUNT(cases); i++) {
        const wk_case c = describe(cases[i].code);
        char text[256];
        assert_string_equal(wk_op_text(&c.op, text, sizeof text), cases[i].text);
        is_seen[cases[i].code] = true;
    }
    for (int code = 0; code < WK_OP_CUSTOM; code++)
        if (wk_bench_kind_of((wk_opcode)code)->width != WK_WIDTH_NONE) assert_true(is_seen[code]);
}

/* Rows are the last ones of all keys. */
static void test_parameters(void **state) {
    (void)state;
    wk_case c = describe(WK_OP_ATTENTION);
    assert_true(c.op.p.attention.causal);
    assert_true(fabs((double)c.op.p.attention.scale - 0.35355339) < 1e-7);
    c = describe(WK_OP_ATTENTION_CACHED);
    const wk_batch_layout *const b = &c.op.p.cached.batch;
    assert_true(fabs((double)c.op.p.cached.scale - 0.35355339) < 1e-7);
    assert_int_equal(b->n_rows, 2);
    assert_int_equal(b->n_blocks, 2);
    assert_int_equal(b->tables, 10);
    assert_int_equal(b->n_words, 12);
    assert_int_equal(c.op.view[2].stride[3], 32); /* keys lie transposed */
    assert_int_equal(c.op.view[2].stride[2], 1);
    assert_int_equal(c.op.view[3].stride[3], 1);
    c = describe(WK_OP_SCAN);
    assert_int_equal(c.op.p.scan.fn, WK_SCAN_DELTA);
    c = describe(WK_OP_ROPE);
    assert_int_equal(c.op.p.rope.rotary_dim, 8);
    assert_true(c.op.p.rope.theta == 10000 && c.op.p.rope.scale_factor == 1);
    c = describe(WK_OP_LAYER_NORM);
    assert_true(fabs((double)c.op.p.norm.eps - 1e-5) < 1e-9);
    c = describe(WK_OP_CHAIN);
    assert_int_equal(c.op.p.chain.n_steps, 8);
    assert_int_equal(c.op.p.chain.result[0], 7);
    assert_int_equal(wk_chain_check(&c.op, NULL), WICK_OK);
    c = describe(WK_OP_CONVOLUTION);
    for (int d = 0; d < 3; d++) {
        assert_int_equal(c.op.p.windows.kernel[d], d == 0 ? 1 : 3);
        assert_int_equal(c.op.p.windows.before[d], d == 0 ? 0 : 1);
        assert_int_equal(c.op.p.windows.after[d], d == 0 ? 0 : 1);
        assert_int_equal(c.op.p.windows.stride[d], 1);
    }
}

static void test_sizes_of_a_model(void **state) {
    static const wick_kernel_sizes model = {
        .n_embd = 10, .n_ff = 20, .n_heads = 6, .n_heads_kv = 3, .head_dim = 8, .n_keys = 100};
    static const struct {
        wk_opcode code;
        int64_t n_rows, n, k;
    } cases[] = {
        {WK_OP_COMPARE, 5, 10, 100}, {WK_OP_UNARY, 5, 20, 100},      {WK_OP_ROPE, 5, 8, 100},
        {WK_OP_MATMUL, 5, 10, 10},   {WK_OP_ATTENTION, 99, 8, 100},  {WK_OP_ATTENTION, 100, 8, 100},
        {WK_OP_MATMUL, 101, 10, 10}, {WK_OP_ATTENTION, 101, 8, 101},
    };
    (void)state;
    for (size_t i = 0; i < WK_COUNT(cases); i++) {
        const wk_bench_sizes s = wk_bench_of_model(cases[i].code, &model, cases[i].n_rows);
        assert_int_equal(s.m, cases[i].n_rows);
        assert_int_equal(s.n, cases[i].n);
        assert_int_equal(s.k, cases[i].k);
        assert_int_equal(s.heads, 6);
        assert_int_equal(s.key_heads, 3);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shapes),
        cmocka_unit_test(test_parameters),
        cmocka_unit_test(test_sizes_of_a_model),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
