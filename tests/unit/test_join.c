/* Ops of a plan that become one (tensor/join.c): each rule on a small plan made by hand, where it
 * applies, and where it must not. The device is the CPU's, with a backend that says it has a kernel
 * for every row of ops. */
#include "ops/cached.h"
#include "ops/recurrent.h"
#include "ops_fixture.h"
#include "quant/layout.h"
#include "tensor/record.h"

enum { M = 2, N = 32, EXPERTS = 4, USED = 2, HEADS = 2, DIM = 8, MOST_OPS = 7 };

/* Codes of the ops in the rows of a code, in their order. */
typedef struct row_of_ops {
    wk_opcode code;
    size_t n;
    wk_opcode ops[MOST_OPS];
} row_of_ops;

static const row_of_ops rows[] = {
    {WK_OPS_GATED, 2, {WK_OP_LINEAR, WK_OP_GATED}},
    {WK_OPS_ADD_NORM, 2, {WK_OP_BINARY, WK_OP_RMS_NORM}},
    {WK_OPS_NORM_ADD_NORM, 3, {WK_OP_RMS_NORM, WK_OP_BINARY, WK_OP_RMS_NORM}},
    {WK_OPS_MIX_ADD_NORM, 3, {WK_OP_MATMUL, WK_OP_BINARY, WK_OP_RMS_NORM}},
    {WK_OPS_ROUTE, 5, {WK_OP_BINARY, WK_OP_RMS_NORM, WK_OP_LINEAR, WK_OP_TOP_K, WK_OP_SOFTMAX}},
    {WK_OPS_ROUTE_ALL, 5, {WK_OP_BINARY, WK_OP_RMS_NORM, WK_OP_LINEAR, WK_OP_SOFTMAX, WK_OP_TOP_K}},
    {WK_OPS_ROUTE_SHARES,
     7,
     {WK_OP_BINARY, WK_OP_RMS_NORM, WK_OP_LINEAR, WK_OP_SOFTMAX, WK_OP_TOP_K, WK_OP_REDUCE,
      WK_OP_BINARY}},
    {WK_OPS_HEADS, 3, {WK_OP_ROPE_TABLE, WK_OP_ROPE_TABLE, WK_OP_KV_APPEND}},
    {WK_OPS_NORMED_HEADS,
     5,
     {WK_OP_RMS_NORM, WK_OP_RMS_NORM, WK_OP_ROPE_TABLE, WK_OP_ROPE_TABLE, WK_OP_KV_APPEND}},
    {WK_OPS_CONV_SILU, 2, {WK_OP_CAUSAL_CONV, WK_OP_UNARY}},
    {WK_OPS_SCAN_GATED, 4, {WK_OP_SCAN, WK_OP_BINARY, WK_OP_BINARY, WK_OP_GATED}},
    {WK_OPS_TOP_K_SOFTMAX, 2, {WK_OP_TOP_K, WK_OP_SOFTMAX}},
    {WK_OPS_EXPERTS_GATED, 3, {WK_OP_LINEAR_EXPERTS, WK_OP_LINEAR_EXPERTS, WK_OP_GATED}},
};
enum { N_CODES = sizeof rows / sizeof *rows };

static wk_kernel joint[N_CODES];

static const wk_kernel *find_joint(const wk_backend_device *dev, wk_opcode code, const wk_op *ops) {
    (void)dev;
    size_t r = 0;
    while (rows[r].code != code) r++;
    assert_int_equal(wk_opcode_ops(code), rows[r].n);
    for (size_t i = 0; i < rows[r].n; i++) assert_int_equal(ops[i].code, rows[r].ops[i]);
    joint[r] = (wk_kernel){.name = "joint", .code = code};
    return &joint[r];
}

static wk_layout as_panels(const wk_backend_device *dev, wick_dtype dtype, int64_t n, int64_t k,
                           uint32_t uses) {
    (void)dev;
    (void)n;
    (void)k;
    (void)uses;
    return dtype == WICK_Q8_0 ? WK_LAYOUT_PANEL_Q8_0 : WK_LAYOUT_RAW;
}

/* --- A recording --- */

typedef struct recording {
    const wk_backend *backend;
    wk_backend joins;
    wk_plan_pool *pool;
    wick_scope scope;
} recording;

static void begin(fixture *f, recording *r) {
    wick_device *const device = f->device;
    r->backend = device->backend;
    r->joins = *device->backend;
    r->joins.joins_products = true;
    r->joins.find_joint = find_joint;
    r->joins.prepare_weight = as_panels;
    r->joins.plan_prepare = NULL;
    device->backend = &r->joins;
    assert_int_equal(wk_plan_pool_make(device, &r->pool), WICK_OK);
    assert_int_equal(wk_plan_begin(device, r->pool), WICK_OK);
    r->scope = wick_scope_begin(device);
}

/* Whether ops that make no row `of` may still make a row of that code. */
static bool is_part(wk_opcode of, wk_opcode code) {
    const bool is_route = of == WK_OPS_ROUTE || of == WK_OPS_ROUTE_ALL || of == WK_OPS_ROUTE_SHARES;
    return is_route && (code == WK_OPS_ADD_NORM || code == WK_OPS_TOP_K_SOFTMAX);
}

/* How many of its ops became a row of that code, and *n_ops. Those of no other did. */
static size_t end(fixture *f, recording *r, wick_tensor *const *outputs, size_t n_outputs,
                  wk_opcode code, size_t *n_ops) {
    wk_plan *plan;
    size_t n = 0;
    assert_int_equal(wk_plan_end(f->device, outputs, n_outputs, &plan), WICK_OK);
    for (size_t i = 0; i < plan->n_ops; i++) {
        const wk_kernel *const kernel = plan->kernels[i];
        if (kernel && kernel->code >= WK_OPS_GATED)
            assert_true(kernel->code == code || is_part(code, kernel->code));
        if (kernel && kernel->code < WK_OPS_GATED)
            assert_int_equal(kernel->code, plan->ops[i].code); /* it moved with its op */
        n += kernel && kernel->code == code;
    }
    *n_ops = plan->n_ops;
    wick_scope_end(r->scope);
    wk_plan_free(plan);
    wk_plan_pool_free(r->pool);
    f->device->backend = r->backend;
    return n;
}

static bool applies(fixture *f, recording *r, wick_tensor *const *outputs, size_t n_outputs,
                    wk_opcode code) {
    size_t n_ops;
    return end(f, r, outputs, n_outputs, code, &n_ops) == 1;
}

static wick_tensor *floats(fixture *f, wick_shape shape) {
    return wick_empty(f->device, WICK_F32, shape);
}

/* What is different from the case where a rule applies. */
typedef enum change { NOTHING, OUTPUT, READ_TWICE, OTHER_SHAPE, CHANGES } change;

/* y and, where it is to be, what a rule would leave unwritten. */
static bool applies_to(fixture *f, recording *r, wick_tensor *y, wick_tensor *inner, change how,
                       wk_opcode code) {
    wick_tensor *const second = how == OUTPUT ? inner : how == READ_TWICE ? wick_exp(inner) : NULL;
    assert_non_null(y);
    return applies(f, r, (wick_tensor *[]){y, second}, second ? 2 : 1, code);
}

/* --- Rules --- */

static bool find_gated(fixture *f, change how) {
    recording r;
    wick_tensor *const w = floats(f, WICK_SHAPE(2 * N, N)), *const x = floats(f, WICK_SHAPE(M, N));
    begin(f, &r);
    wick_tensor *const both = wick_linear(x, w, NULL);
    wick_tensor *const y = wick_swiglu(wick_narrow(both, 1, 0, N), wick_narrow(both, 1, N, N));
    const bool found = applies_to(f, &r, y, both, how, WK_OPS_GATED);
    wick_release(w);
    wick_release(x);
    return found;
}

static bool find_add_norm(fixture *f, change how) {
    recording r;
    const wick_shape shape = WICK_SHAPE(M, N);
    wick_tensor *const a = floats(f, shape), *const b = floats(f, shape);
    wick_tensor *const w = floats(f, WICK_SHAPE(N));
    begin(f, &r);
    wick_tensor *const sum = how == OTHER_SHAPE ? wick_sub(a, b) : wick_add(a, b);
    wick_tensor *const y = wick_rms_norm(sum, w, 1e-5);
    wick_tensor *const z = wick_add(sum, y); /* of the residual: the sum is written */
    wick_tensor *const rest[] = {z, sum};
    const bool found = applies(f, &r, rest, how == OUTPUT ? 2 : 1, WK_OPS_ADD_NORM);
    wick_release(a);
    wick_release(b);
    wick_release(w);
    return found;
}

/* x + norm(y), and the norm of that. */
static bool find_norm_add_norm(fixture *f, change how) {
    recording r;
    const wick_shape shape = WICK_SHAPE(M, N);
    wick_tensor *const x = floats(f, shape), *const y = floats(f, shape);
    wick_tensor *const w = floats(f, WICK_SHAPE(N));
    begin(f, &r);
    wick_tensor *const post = wick_rms_norm(y, w, 1e-5);
    wick_tensor *const z = wick_rms_norm(wick_add(x, post), w, 1e-5);
    /* Else the sum and its norm are a row of another code. */
    const wk_opcode code = how == NOTHING ? WK_OPS_NORM_ADD_NORM : WK_OPS_ADD_NORM;
    const bool found = applies_to(f, &r, z, post, how, code);
    wick_release(x);
    wick_release(y);
    wick_release(w);
    return found && how == NOTHING;
}

/* Keys and values of a batch go to a cache of one block. OTHER_SHAPE: queries turn by other angles;
 * CHANGES: what keys are made of changes after they were. */
static bool find_heads(fixture *f, change how, bool has_norms) {
    recording r;
    wick_device *const device = f->device;
    const wick_shape heads = WICK_SHAPE(M, HEADS, DIM), cache = WICK_SHAPE(1, HEADS, 16, DIM);
    const wick_shape turns = WICK_SHAPE(M, DIM / 2);
    wick_tensor *const w = floats(f, WICK_SHAPE(DIM));
    wick_tensor *const inputs[] = {floats(f, heads), floats(f, heads), floats(f, heads),
                                   floats(f, turns), floats(f, turns), floats(f, turns)};
    wick_tensor *const caches[] = {floats(f, cache), floats(f, cache)};
    wick_tensor *const batch = wick_zeros(device, WICK_U32, WICK_SHAPE(16));
    const wk_params params = {.cached.batch = {.n_rows = M,
                                               .n_sequences = 1,
                                               .n_blocks = 1,
                                               .block_size = 16,
                                               .positions = 2,
                                               .sequences = 4,
                                               .slots = 6,
                                               .lengths = 8,
                                               .states = 9,
                                               .tables = 10,
                                               .outputs = 11,
                                               .n_words = 16}};
    begin(f, &r);
    wick_tensor *q = inputs[0], *k = inputs[1];
    if (has_norms) q = wick_rms_norm(q, w, 1e-5);
    if (has_norms) k = wick_rms_norm(k, w, 1e-5);
    wick_tensor *const angles = inputs[how == OTHER_SHAPE ? 5 : 3];
    q = wick_rope_table(q, angles, inputs[4], false, WICK_ROPE_BTHD);
    k = wick_rope_table(k, inputs[3], inputs[4], false, WICK_ROPE_BTHD);
    if (how == CHANGES) assert_non_null(wick_fill(inputs[1], 1));
    assert_int_equal(
        wk_kv_append_cached(caches[0], caches[1], (wk_kv_rows){k, inputs[2]}, batch, &params),
        WICK_OK);
    /* Norms that cannot be moved leave the rest of the row. */
    const wk_opcode code = has_norms && how != CHANGES ? WK_OPS_NORMED_HEADS : WK_OPS_HEADS;
    const bool found = applies_to(f, &r, q, k, how, code);
    for (size_t i = 0; i < sizeof inputs / sizeof *inputs; i++) wick_release(inputs[i]);
    wick_release(caches[0]);
    wick_release(caches[1]);
    wick_release(batch);
    wick_release(w);
    return found;
}

static bool find_plain_heads(fixture *f, change how) { return find_heads(f, how, false); }
static bool find_normed_heads(fixture *f, change how) { return find_heads(f, how, true); }

/* Of ops that carry a state. */
static const wk_batch_layout of_states = {
    .n_rows = M, .n_sequences = 1, .positions = 2, .sequences = 4, .states = 6, .n_words = 16};

static bool find_conv_silu(fixture *f, change how) {
    recording r;
    wick_tensor *const x = floats(f, WICK_SHAPE(M, N)), *const w = floats(f, WICK_SHAPE(N, 4));
    wick_tensor *const state = floats(f, WICK_SHAPE(1, 3, N));
    wick_tensor *const batch = wick_zeros(f->device, WICK_U32, WICK_SHAPE(16));
    const wk_params params = {.conv.batch = of_states};
    begin(f, &r);
    wick_tensor *const y = wk_causal_conv(x, w, NULL, state, batch, &params);
    const bool found = applies_to(f, &r, wick_silu(y), y, how, WK_OPS_CONV_SILU);
    wick_release(x);
    wick_release(w);
    wick_release(state);
    wick_release(batch);
    return found;
}

static bool find_top_k_softmax(fixture *f, change how) {
    recording r;
    wick_tensor *const x = floats(f, WICK_SHAPE(M, N));
    wick_tensor *ids;
    begin(f, &r);
    wick_tensor *const values = wick_top_k(x, USED, 1, &ids);
    wick_tensor *const y = wick_softmax(values, 1);
    const bool found = applies_to(f, &r, y, values, how, WK_OPS_TOP_K_SOFTMAX);
    wick_release(x);
    return found;
}

/* OTHER_SHAPE: the scan's input is added to the sum without a weight. */
static bool find_scan(fixture *f, change how) {
    recording r;
    const wick_shape shape = WICK_SHAPE(M, HEADS, DIM);
    wick_tensor *const x = floats(f, shape), *const step = floats(f, shape);
    wick_tensor *const z = floats(f, shape), *const d = floats(f, WICK_SHAPE(HEADS, 1));
    wick_tensor *const gate = floats(f, WICK_SHAPE(HEADS, DIM, 4));
    wick_tensor *const bc = floats(f, WICK_SHAPE(M, 2, 1, 4));
    wick_tensor *const state = floats(f, WICK_SHAPE(1, HEADS, 4, DIM));
    wick_tensor *const batch = wick_zeros(f->device, WICK_U32, WICK_SHAPE(16));
    const wk_params params = {.scan.batch = of_states};
    begin(f, &r);
    wick_tensor *const y = wk_scan(&(wk_scan_inputs){x, step, gate, bc}, state, batch, &params);
    wick_tensor *const sum = wick_add(y, how == OTHER_SHAPE ? x : wick_mul(x, d));
    const bool found = applies_to(f, &r, wick_swiglu(z, sum), sum, how, WK_OPS_SCAN_GATED);
    wick_tensor *const all[] = {x, step, z, d, gate, bc, state, batch};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) wick_release(all[i]);
    return found;
}

/* OTHER_SHAPE: the sum over the experts is the first operand of the sum with the residual. */
static bool find_mix(fixture *f, change how) {
    recording r;
    wick_tensor *const x = floats(f, WICK_SHAPE(M, N)), *const w = floats(f, WICK_SHAPE(N));
    wick_tensor *const gates = floats(f, WICK_SHAPE(M, 1, USED));
    wick_tensor *const rows_of_x = floats(f, WICK_SHAPE(M, USED, N));
    begin(f, &r);
    wick_tensor *const mix = wick_squeeze(wick_matmul(gates, rows_of_x), 1);
    wick_tensor *const sum = how == OTHER_SHAPE ? wick_add(mix, x) : wick_add(x, mix);
    /* Else the sum and its norm are a row of another code. */
    const wk_opcode code = how == NOTHING ? WK_OPS_MIX_ADD_NORM : WK_OPS_ADD_NORM;
    const bool found = applies_to(f, &r, wick_rms_norm(sum, w, 1e-5), mix, how, code);
    wick_tensor *const all[] = {x, w, gates, rows_of_x};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) wick_release(all[i]);
    return found && how == NOTHING;
}

/* OTHER_SHAPE: what is chosen from is a function of the router's product. */
static bool find_routing(fixture *f, change how, wk_opcode code) {
    recording r;
    wick_tensor *const a = floats(f, WICK_SHAPE(M, N)), *const b = floats(f, WICK_SHAPE(M, N));
    wick_tensor *const w = floats(f, WICK_SHAPE(N)), *ids;
    wick_tensor *const router = floats(f, WICK_SHAPE(EXPERTS, N));
    begin(f, &r);
    wick_tensor *logits = wick_linear(wick_rms_norm(wick_add(a, b), w, 1e-5), router, NULL);
    wick_tensor *const inner = logits;
    if (how == OTHER_SHAPE) logits = wick_sigmoid(logits);
    if (code != WK_OPS_ROUTE) logits = wick_softmax(logits, 1);
    wick_tensor *y = wick_top_k(logits, USED, 1, &ids);
    if (code == WK_OPS_ROUTE) y = wick_softmax(y, 1);
    if (code == WK_OPS_ROUTE_SHARES) y = wick_div(y, wick_sum(y, 1, (const int[]){1}, true));
    const bool found = applies_to(f, &r, y, inner, how, code);
    wick_tensor *const all[] = {a, b, w, router};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) wick_release(all[i]);
    return found;
}

static bool find_route(fixture *f, change how) { return find_routing(f, how, WK_OPS_ROUTE); }
static bool find_route_all(fixture *f, change how) {
    return find_routing(f, how, WK_OPS_ROUTE_ALL);
}
static bool find_route_shares(fixture *f, change how) {
    return find_routing(f, how, WK_OPS_ROUTE_SHARES);
}

/* The chosen are read by more than their sum and the quotient. */
static void test_chosen_are_read(void **state) {
    fixture *const f = *state;
    recording r;
    wick_tensor *const a = floats(f, WICK_SHAPE(M, N)), *const w = floats(f, WICK_SHAPE(N));
    wick_tensor *const router = floats(f, WICK_SHAPE(EXPERTS, N)), *ids;
    begin(f, &r);
    wick_tensor *const logits = wick_linear(wick_rms_norm(wick_add(a, a), w, 1e-5), router, NULL);
    wick_tensor *const chosen = wick_top_k(wick_softmax(logits, 1), USED, 1, &ids);
    wick_tensor *const shares = wick_div(chosen, wick_sum(chosen, 1, (const int[]){1}, true));
    assert_true(applies(f, &r, (wick_tensor *[]){shares, chosen}, 2, WK_OPS_ROUTE_ALL));
    wick_release(a);
    wick_release(w);
    wick_release(router);
}

static bool find_experts(fixture *f, change how) {
    recording r;
    const wick_shape shape = WICK_SHAPE(EXPERTS, N, N);
    wick_tensor *const x = floats(f, WICK_SHAPE(M, N));
    wick_tensor *const w[] = {floats(f, shape), floats(f, shape)};
    wick_tensor *const ids = wick_zeros(f->device, WICK_U32, WICK_SHAPE(M, USED));
    begin(f, &r);
    wick_tensor *const gate = wick_linear_experts(x, w[0], NULL, ids);
    wick_tensor *const up = wick_linear_experts(x, w[1], NULL, ids);
    const bool found = applies_to(f, &r, wick_swiglu(gate, up), up, how, WK_OPS_EXPERTS_GATED);
    wick_release(x);
    wick_release(w[0]);
    wick_release(w[1]);
    wick_release(ids);
    return found;
}

/* How many products of x are left of three, whose weights lie side by side. OTHER_SHAPE: the last
 * one's does not. */
static size_t count_products(fixture *f, change how) {
    recording r;
    enum { OF_WEIGHT = N * N / 32 * 34 };
    wick_tensor *w[3] = {NULL}, *const x = floats(f, WICK_SHAPE(M, N)), *y[3];
    wk_weight_store store = {.device = f->device};
    size_t n_ops;
    bool in_place;
    begin(f, &r);
    wick_device *const device = f->device;
    wk_plan *const plan = device->recording;
    device->recording = NULL; /* weights are there before */
    for (int i = 0; i < 3; i++) {
        const bool is_apart = how == OTHER_SHAPE && i == 2;
        const wk_weight_desc desc = {.dtype = WICK_Q8_0,
                                     .shape = WICK_SHAPE(N, N),
                                     .uses = WK_USE_LINEAR,
                                     .neighbour = w[0],
                                     .room = is_apart ? 0 : 3 * OF_WEIGHT,
                                     .begin = (uint64_t)i * OF_WEIGHT};
        w[i] = wk_weight_new(device, &desc, &store, &in_place);
        assert_non_null(w[i]);
    }
    device->recording = plan;
    for (int i = 0; i < 3; i++) y[i] = wick_linear(x, w[i], NULL);
    wick_tensor *const z = wick_mul(wick_add(y[0], y[1]), y[2]);
    wick_tensor *const second = how == OUTPUT ? y[2] : NULL;
    (void)end(f, &r, (wick_tensor *[]){z, second}, second ? 2 : 1, WK_OPS_GATED, &n_ops);
    for (int i = 0; i < 3; i++) wick_release(w[i]);
    wick_release(x);
    return n_ops - 2;
}

/* --- Tests --- */

static void check_rule(void **state, bool (*find)(fixture *f, change how), bool has_shapes) {
    fixture *const f = *state;
    assert_true(find(f, NOTHING));
    assert_false(find(f, OUTPUT));
    assert_false(find(f, READ_TWICE));
    if (has_shapes) assert_false(find(f, OTHER_SHAPE));
}

static void test_gated(void **state) { check_rule(state, find_gated, false); }
static void test_norm_add_norm(void **state) { check_rule(state, find_norm_add_norm, false); }
static void test_heads(void **state) {
    check_rule(state, find_plain_heads, true);
    assert_false(find_plain_heads(*state, CHANGES));
}

static void test_normed_heads(void **state) {
    check_rule(state, find_normed_heads, true);
    assert_true(find_normed_heads(*state, CHANGES));
}

static void test_conv_silu(void **state) { check_rule(state, find_conv_silu, false); }
static void test_scan_gated(void **state) { check_rule(state, find_scan, true); }
static void test_mix_add_norm(void **state) { check_rule(state, find_mix, true); }
static void test_route(void **state) { check_rule(state, find_route, true); }
static void test_route_all(void **state) { check_rule(state, find_route_all, true); }
static void test_route_shares(void **state) { check_rule(state, find_route_shares, true); }
static void test_top_k_softmax(void **state) { check_rule(state, find_top_k_softmax, false); }
static void test_experts(void **state) { check_rule(state, find_experts, false); }

/* The sum is written in any case: it may be an output. */
static void test_add_norm(void **state) {
    assert_true(find_add_norm(*state, NOTHING));
    assert_true(find_add_norm(*state, OUTPUT));
    assert_false(find_add_norm(*state, OTHER_SHAPE)); /* a difference */
}

static void test_products(void **state) {
    assert_int_equal(count_products(*state, NOTHING), 1);
    assert_int_equal(count_products(*state, OUTPUT), 2);
    assert_int_equal(count_products(*state, OTHER_SHAPE), 2);
}

int main(void) {
    static const struct CMUnitTest tests[] = {
        TEST(test_products),      TEST(test_gated),         TEST(test_add_norm),
        TEST(test_norm_add_norm), TEST(test_heads),         TEST(test_normed_heads),
        TEST(test_conv_silu),     TEST(test_top_k_softmax), TEST(test_experts),
        TEST(test_scan_gated),    TEST(test_mix_add_norm),  TEST(test_route),
        TEST(test_route_all),     TEST(test_route_shares),  TEST(test_chosen_are_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
