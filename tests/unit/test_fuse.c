/* Chains (tensor/fuse.c): what becomes one, what does not, and that results are the same bits as
 * without: every case is run on two devices, of which one fuses nothing. */
#include "backend/op.h"
#include "core/compiler.h"
#include "ops/operand.h"
#include "tensor/device.h"

#include <wick/ops.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

enum { N = 5 * 700, MOST_RESULTS = 8 };

typedef struct place {
    wick_device *device;
    wick_device_stats before;
} place;

typedef struct both {
    place fused, apart;
} both;

static void open_place(place *p, wick_device_desc desc) {
    wick_error error = {0};
    *p = (place){0};
    if (wick_device_open(&desc, &p->device, &error) != WICK_OK) fail_msg("%s", error.message);
}

static int setup(void **state) {
    both *const b = calloc(1, sizeof *b);
    assert_non_null(b);
    open_place(&b->fused,
               (wick_device_desc){.backend = WICK_BACKEND_CPU, .fusion = WICK_FUSION_ALWAYS});
    open_place(&b->apart,
               (wick_device_desc){.backend = WICK_BACKEND_CPU, .fusion = WICK_FUSION_OFF});
    *state = b;
    return 0;
}

static int teardown(void **state) {
    both *const b = *state;
    wick_device_close(b->fused.device);
    wick_device_close(b->apart.device);
    free(b);
    return 0;
}

/* --- Programs --- */

/* What a program is to compute with, and what it leaves: results in a list that ends with NULL. */
typedef struct program {
    wick_device *device;
    wick_tensor *a, *b, *row; /* [5, 700], [5, 700], [700] */
    wick_tensor *results[MOST_RESULTS + 1];
    int number; /* of the variant */
} program;

typedef void (*program_fn)(program *p);

/* Counts since the last call. */
static wick_device_stats counts(place *p) {
    wick_device_stats now, since;
    wick_device_get_stats(p->device, &now);
    since = now;
    since.n_ops -= p->before.n_ops;
    since.n_fused -= p->before.n_fused;
    since.n_unread -= p->before.n_unread;
    since.n_decomposed -= p->before.n_decomposed;
    p->before = now;
    return since;
}

/* Runs it, with its own temporaries released before anything is read. */
static wick_device_stats run(place *p, program_fn fn, int number, float *out) {
    program of = {.device = p->device, .number = number};
    const wick_scope outer = wick_scope_begin(p->device);
    of.a = wick_rand(p->device, WICK_F32, WICK_SHAPE(5, 700), -1, 1);
    of.b = wick_rand(p->device, WICK_F32, WICK_SHAPE(5, 700), -1, 1);
    of.row = wick_rand(p->device, WICK_F32, WICK_SHAPE(700), -1, 1);
    assert_int_equal(wick_synchronize(p->device), WICK_OK);
    (void)counts(p);
    const wick_scope inner = wick_scope_begin(p->device);
    fn(&of);
    for (int i = 0; of.results[i]; i++) wick_retain(of.results[i]);
    wick_scope_end(inner);
    memset(out, 0, MOST_RESULTS * N * sizeof *out);
    for (int i = 0; of.results[i]; i++) {
        assert_true(wick_tensor_size(of.results[i]) <= N);
        assert_int_equal(wick_read(of.results[i], out + i * N, wick_tensor_bytes(of.results[i])),
                         WICK_OK);
        wick_release(of.results[i]);
    }
    wick_scope_end(outer);
    wick_device_set_seed(p->device, 0);
    return counts(p);
}

/* The counts of the device that fuses; the other one's results are the same. */
static wick_device_stats compare(void **state, program_fn fn, int number) {
    static float results[2][MOST_RESULTS * N];
    both *const b = *state;
    const wick_device_stats apart = run(&b->apart, fn, number, results[1]);
    const wick_device_stats fused = run(&b->fused, fn, number, results[0]);
    assert_memory_equal(results[0], results[1], sizeof results[0]);
    assert_int_equal(apart.n_fused + apart.n_unread, 0);
    return fused;
}

static void expect(const wick_device_stats *got, uint64_t n_fused, uint64_t n_ops,
                   uint64_t n_unread) {
    assert_int_equal(got->n_fused, n_fused);
    assert_int_equal(got->n_ops, n_ops);
    assert_int_equal(got->n_unread, n_unread);
}

/* --- What becomes a chain --- */

static void one_after_another(program *p) {
    wick_tensor *const t = wick_tanh(wick_add(wick_mul(p->a, p->b), p->row));
    wick_tensor *const u = wick_where(wick_gt(p->a, p->b), t, wick_affine(t, 0.5, 1));
    p->results[0] = wick_swiglu(u, p->a);
}

static void test_whole(void **state) {
    const wick_device_stats got = compare(state, one_after_another, 0);
    expect(&got, 7, 1, 0);
}

static void some_alive(program *p) {
    wick_tensor *const t = wick_mul(p->a, p->b), *const u = wick_exp(t), *const v = wick_neg(u);
    p->results[0] = wick_add(v, p->row);
    p->results[1] = t;
    p->results[2] = v;
}

static void test_several_results(void **state) {
    const wick_device_stats got = compare(state, some_alive, 0);
    expect(&got, 4, 1, 0);
}

static void unread(program *p) {
    (void)wick_sum(wick_exp(p->a), 0, NULL, false);
    p->results[0] = wick_neg(p->b);
    wick_tensor *const x = wick_affine(p->b, 2, 0);
    (void)wick_neg_in_place(x);
}

static void test_unread(void **state) {
    const wick_device_stats got = compare(state, unread, 0);
    expect(&got, 0, 1, 4);
}

/* What is in the caller's memory can be seen without a tensor. */
static void test_foreign_memory(void **state) {
    both *const b = *state;
    static _Alignas(64) float memory[64];
    for (int i = 0; i < 64; i++) memory[i] = (float)i;
    wick_tensor *const x = wick_tensor_from_memory(b->fused.device, WICK_F32, WICK_SHAPE(64),
                                                   memory, sizeof memory, NULL, NULL);
    assert_ptr_equal(wick_neg_in_place(x), x);
    wick_release(x);
    assert_int_equal(wick_synchronize(b->fused.device), WICK_OK);
    assert_true(memory[63] == -63);
}

/* A product, which nothing of the chain depends on, lies between; then one that does. */
static void others_between(program *p) {
    wick_tensor *const t = wick_exp(p->a);
    p->results[1] = wick_matmul(p->b, wick_transpose(p->b, 0, 1));
    wick_tensor *const u = wick_mul(t, p->b);
    p->results[2] = wick_matmul(u, wick_transpose(p->b, 0, 1));
    p->results[0] = wick_add(u, p->a);
}

static void test_others_between(void **state) {
    const wick_device_stats got = compare(state, others_between, 0);
    expect(&got, 2, 4, 0); /* a chain, two products, the sum */
}

static void in_place(program *p) {
    wick_tensor *const x = wick_affine(p->a, 2, 1);
    wick_tensor *const y = wick_neg(x);
    (void)wick_add_in_place(x, p->b);
    (void)wick_mul_in_place(x, y);
    p->results[0] = x;
    p->results[1] = wick_sub(x, y);
}

static void test_in_place(void **state) {
    const wick_device_stats got = compare(state, in_place, 0);
    expect(&got, 5, 1, 0);
}

/* Parts that overlap, but are not the same elements: the sum copies one of them first, and that
 * alone may go with what comes before. */
static void shifted(program *p) {
    wick_tensor *const x = wick_reshape(wick_affine(p->a, 2, 1), WICK_SHAPE(N));
    wick_tensor *const low = wick_narrow(x, 0, 0, N - 1), *const high = wick_narrow(x, 0, 1, N - 1);
    (void)wick_neg_in_place(low);
    (void)wick_add_in_place(high, low);
    (void)wick_exp_in_place(low);
    p->results[0] = x;
    p->results[1] = wick_mul(low, high);
}

static void test_overlap(void **state) {
    const wick_device_stats got = compare(state, shifted, 0);
    assert_int_equal(got.n_fused, 2);
}

/* Copies to rows of which some are the same, which neither reads: those of the second one stay. */
static void copies(program *p) {
    wick_tensor *const x = wick_affine(p->a, 2, 1), *const t = wick_narrow(p->b, 0, 0, 4);
    for (int first = 0; first < 2; first++) {
        wick_tensor *const rows = wick_narrow(x, 0, first, 4);
        assert_int_equal(wk_queue_copy(rows, &rows->view, t, &t->view), WICK_OK);
    }
    p->results[0] = wick_neg(x);
}

static void test_copies(void **state) {
    const wick_device_stats got = compare(state, copies, 0);
    expect(&got, 0, 4, 0);
}

/* Any strides: a transposed source, rows and columns repeated, every other element. */
static void strides(program *p) {
    wick_tensor *const x = wick_reshape(p->a, WICK_SHAPE(7, 5, 100));
    wick_tensor *const turned = wick_permute(x, 3, (const int[]){2, 0, 1});
    wick_tensor *const some = wick_slice(p->b, 1, 0, 700, 2);
    wick_tensor *const column = wick_narrow(p->row, 0, 3, 5);
    p->results[0] = wick_exp(wick_neg(wick_mul(turned, wick_narrow(p->row, 0, 0, 5))));
    p->results[1] = wick_relu(wick_add(some, wick_unsqueeze(column, 1)));
}

static void test_strides(void **state) {
    const wick_device_stats got = compare(state, strides, 0);
    expect(&got, 5, 2, 0);
}

static void dtypes(program *p) {
    wick_tensor *const half = wick_cast(p->a, WICK_F16);
    wick_tensor *const t = wick_exp(wick_mul(half, half));
    wick_tensor *const whole = wick_cast(wick_affine(p->b, 100, 0), WICK_I32);
    p->results[0] = wick_cast(wick_cast(t, WICK_BF16), WICK_F32);
    p->results[1] = wick_cast(wick_abs(wick_mul(whole, whole)), WICK_F32);
    p->results[2] = wick_cast(wick_sin(wick_cast(p->a, WICK_F64)), WICK_F32);
}

static void test_dtypes(void **state) {
    const wick_device_stats got = compare(state, dtypes, 0);
    assert_int_equal(got.n_fused, 13);
}

/* A reduction ends a chain, where nothing else reads its operand. */
static void reductions(program *p) {
    const int last = 1;
    p->results[0] = wick_sum(wick_sqr(wick_sub(p->a, p->b)), 1, &last, false);
    p->results[1] = wick_max(wick_exp(wick_mul(p->a, p->row)), 1, &last, true);
    p->results[2] = wick_argmax(wick_abs(p->b), 1, false);
    p->results[3] = wick_mean(wick_mul(p->a, p->b), 0, NULL, false);
    wick_tensor *const t = wick_neg(p->a);
    p->results[4] = wick_sum(t, 1, &last, false);
    p->results[5] = wick_exp(t);
}

static void test_reductions(void **state) {
    const wick_device_stats got = compare(state, reductions, 0);
    expect(&got, 3 + 3 + 2 + 2, 4 + 3, 0); /* the last sum lies between what it and exp read */
}

/* --- Limits: what is beyond them begins another chain --- */

static void many_steps(program *p) {
    wick_tensor *x = p->a;
    for (int i = 0; i < p->number; i++) x = wick_neg(x);
    p->results[0] = x;
}

static void many_scalars(program *p) {
    wick_tensor *x = p->a;
    for (int i = 0; i < p->number; i++) x = wick_affine(x, 0.5, i);
    p->results[0] = x;
}

static void many_sources(program *p) {
    wick_tensor *x = p->a, *sources[10];
    for (int i = 0; i < p->number; i++)
        sources[i] = wick_rand(p->device, WICK_F32, WICK_SHAPE(5, 700), 0, 1);
    (void)wick_synchronize(p->device);
    for (int i = 0; i < p->number; i++) x = wick_add(x, sources[i]);
    p->results[0] = x;
}

static void many_results(program *p) {
    wick_tensor *x = p->a;
    for (int i = 0; i < p->number; i++) p->results[i] = x = wick_exp(wick_neg(x));
}

static void test_limits(void **state) {
    for (int n = WK_CHAIN_STEPS - 1; n <= WK_CHAIN_STEPS + 2; n++) {
        const wick_device_stats got = compare(state, many_steps, n);
        /* One that is left over is alone. */
        expect(&got, (uint64_t)(n == WK_CHAIN_STEPS + 1 ? n - 1 : n), n > WK_CHAIN_STEPS ? 2 : 1,
               0);
    }
    for (int n = WK_CHAIN_SCALARS / 2 - 1; n <= WK_CHAIN_SCALARS / 2 + 1; n++) {
        const wick_device_stats got = compare(state, many_scalars, n);
        const bool is_over = n > WK_CHAIN_SCALARS / 2;
        expect(&got, (uint64_t)(is_over ? n - 1 : n), is_over ? 2 : 1, 0);
    }
    for (int n = WK_CHAIN_OPERANDS - 3; n <= WK_CHAIN_OPERANDS - 1; n++) {
        const wick_device_stats got = compare(state, many_sources, n);
        const bool is_over = n + 2 > WK_CHAIN_OPERANDS; /* a and the result */
        assert_int_equal(got.n_fused, is_over ? n - 1 : n);
    }
    for (int n = WK_CHAIN_RESULTS - 1; n <= WK_CHAIN_RESULTS + 1; n++) {
        const wick_device_stats got = compare(state, many_results, n);
        const bool is_over = n > WK_CHAIN_RESULTS;
        assert_int_equal(got.n_fused, 2 * n);
        assert_int_equal(got.n_ops, is_over ? 2 : 1);
    }
}

/* --- Who hears of a failure --- */

/* Of two results of one chain, one depends on an index out of range. */
static void test_faults(void **state) {
    both *const b = *state;
    static float out[700];
    for (int is_known = 0; is_known < 2; is_known++) {
        wick_device *const device = b->fused.device;
        const uint32_t index[] = {7};
        const wick_scope scope = wick_scope_begin(device);
        wick_tensor *const table = wick_rand(device, WICK_F32, WICK_SHAPE(5, 700), -1, 1);
        wick_tensor *const good = wick_rand(device, WICK_F32, WICK_SHAPE(1, 700), -1, 1);
        wick_tensor *const ids =
            wick_tensor_from_data(device, WICK_U32, WICK_SHAPE(1), index, sizeof index);
        wick_tensor *const bad = wick_index_select(table, 0, ids);
        assert_non_null(bad);
        if (is_known) (void)wick_synchronize(device);
        (void)counts(&b->fused);
        wick_tensor *const first = wick_exp(good), *const second = wick_mul(first, bad);
        assert_int_equal(wick_read(second, out, sizeof out), WICK_ERR_INDEX);
        (void)wick_device_error(device, NULL);
        assert_int_equal(wick_read(first, out, sizeof out), WICK_OK);
        const wick_device_stats got = counts(&b->fused);
        assert_int_equal(got.n_fused, 2);
        assert_int_equal(got.n_decomposed, is_known);
        wick_scope_end(scope);
    }
}

/* --- Memory that runs out --- */

typedef struct poor_heap {
    uint64_t n_allowed, n_live;
} poor_heap;

static void *allocate(void *user, size_t size) {
    poor_heap *const heap = user;
    if (heap->n_allowed == 0) return NULL;
    heap->n_allowed--;
    heap->n_live++;
    return malloc(size);
}

static void give_back(void *user, void *memory, size_t size) {
    (void)size;
    ((poor_heap *)user)->n_live--;
    free(memory);
}

/* The n-th allocation fails, and all after it; then there is memory again. True: none was refused.
 */
static bool run_out(wick_device_desc desc, uint64_t n, float expected[N]) {
    poor_heap heap = {.n_allowed = UINT64_MAX};
    static float out[N];
    wick_device *device = NULL;
    desc.allocator = (wick_allocator){allocate, give_back, &heap};
    assert_int_equal(wick_device_open(&desc, &device, NULL), WICK_OK);
    const wick_scope scope = wick_scope_begin(device);
    program p = {.device = device,
                 .a = wick_rand(device, WICK_F32, WICK_SHAPE(5, 700), -1, 1),
                 .b = wick_rand(device, WICK_F32, WICK_SHAPE(5, 700), -1, 1),
                 .row = wick_rand(device, WICK_F32, WICK_SHAPE(700), -1, 1)};
    assert_int_equal(wick_synchronize(device), WICK_OK);
    heap.n_allowed = n;
    const wick_scope inner = wick_scope_begin(device);
    one_after_another(&p);
    wick_retain(p.results[0]);
    wick_scope_end(inner);
    const wick_status status = wick_read(p.results[0], out, sizeof out);
    const bool is_whole = heap.n_allowed > 0;
    heap.n_allowed = UINT64_MAX;
    (void)wick_device_error(device, NULL);
    if (status != WICK_OK) {
        assert_true(p.results[0] ? status == WICK_ERR_OUT_OF_MEMORY : status == WICK_ERR_ARGUMENT);
    } else if (n == UINT64_MAX - 1) {
        memcpy(expected, out, sizeof out);
    } else {
        assert_memory_equal(out, expected, sizeof out);
    }
    wick_release(p.results[0]);
    wick_scope_end(scope);
    wick_device_close(device);
    assert_int_equal(heap.n_live, 0);
    return is_whole && status == WICK_OK;
}

static void test_no_memory(void **state) {
    (void)state;
    const wick_device_desc descs[] = {
        {.backend = WICK_BACKEND_CPU, .n_threads = 1, .fusion = WICK_FUSION_ALWAYS},
        {.backend = WICK_BACKEND_NULL,
         .n_threads = 1,
         .fusion = WICK_FUSION_ALWAYS,
         .null_flags = WICK_NULL_LATE}};
    static float expected[N];
    for (size_t i = 0; i < WK_COUNT(descs); i++) {
        uint64_t n = 0;
        assert_true(run_out(descs[i], UINT64_MAX - 1, expected));
        while (!run_out(descs[i], n, expected)) n++;
        assert_true(n > 8); /* each result has memory of its own at first */
    }
}

/* --- Where nothing is fused --- */

static void test_off(void **state) {
    (void)state;
    static float out[MOST_RESULTS * N];
    place p;
    open_place(&p, (wick_device_desc){.backend = WICK_BACKEND_CPU, .verify = true});
    const wick_device_stats got = run(&p, one_after_another, 0, out);
    assert_int_equal(got.n_fused, 0);
    wick_device_close(p.device);
    wick_device *device = NULL;
    const wick_device_desc desc = {.backend = WICK_BACKEND_CPU, .fusion = (wick_fusion)3};
    assert_int_equal(wick_device_open(&desc, &device, NULL), WICK_ERR_VALUE);
}

/* By itself a device makes chains where that pays. */
static void test_few_elements(void **state) {
    (void)state;
    enum { LEAST = 4096 };
    place p;
    open_place(&p, (wick_device_desc){.backend = WICK_BACKEND_CPU});
    for (int64_t n = LEAST - 1; n <= LEAST + 1; n++) {
        const wick_scope scope = wick_scope_begin(p.device);
        wick_tensor *const x = wick_zeros(p.device, WICK_F32, WICK_SHAPE(n));
        (void)counts(&p);
        wick_tensor *const y = wick_exp(x), *const z = wick_neg(y);
        double value;
        assert_int_equal(wick_read_scalar(wick_max(z, 0, NULL, false), &value), WICK_OK);
        assert_true(value == -1);
        assert_int_equal(counts(&p).n_fused, n < LEAST ? 0 : 2);
        wick_scope_end(scope);
    }
    wick_device_close(p.device);
}

/* --- The op --- */

static void test_check(void **state) {
    (void)state;
    static wk_buffer buffers[3] = {{.size = 40}, {.size = 40}, {.size = 40}};
    wk_op add = {.code = WK_OP_BINARY, .n_dst = 1, .n_src = 2}, op = {.code = WK_OP_CHAIN};
    const int64_t n = 10;
    const wick_shape shape = wick_shape_of(1, &n);
    for (int i = 0; i < 3; i++) {
        uint64_t bytes;
        assert_true(wk_view_dense(WICK_F32, &shape, &op.view[i], &bytes));
        add.view[i] = op.view[i];
        op.view[i].buf = &buffers[i];
    }
    op.n_dst = 1;
    op.n_src = 2;
    assert_true(wk_chain_append(&op.p.chain, &add, (const uint8_t[]){0, 1}));
    assert_true(wk_chain_append(&op.p.chain, &add, (const uint8_t[]){2, 0}));
    op.p.chain.result[0] = 1;
    assert_int_equal(wk_op_check(&op, NULL), WICK_OK);
    assert_int_equal(wk_chain_sources(&op, 0), 3);
    wk_op wrong = op;
    wrong.p.chain.step[0].in[1] = 2; /* its own result */
    assert_int_equal(wk_op_check(&wrong, NULL), WICK_ERR_VALUE);
    wrong = op;
    wrong.p.chain.result[0] = 2; /* there is no such step */
    assert_int_equal(wk_op_check(&wrong, NULL), WICK_ERR_VALUE);
    wrong = op;
    wrong.p.chain.step[0].code = WK_OP_SOFTMAX;
    assert_int_equal(wk_op_check(&wrong, NULL), WICK_ERR_VALUE);
    wrong = op;
    wrong.p.chain.step[1].dtype = WICK_F16;
    assert_int_equal(wk_op_check(&wrong, NULL), WICK_ERR_DTYPE);
    wrong = op;
    wrong.p.chain.n_scalars = 1;
    assert_int_equal(wk_op_check(&wrong, NULL), WICK_ERR_VALUE);
    wrong = op;
    wrong.view[0] = wrong.view[1]; /* in place: step 1 reads it, and writes it */
    assert_int_equal(wk_op_check(&wrong, NULL), WICK_OK);
    wrong.p.chain.result[0] = 0; /* step 1 would read what step 0 has written */
    assert_int_equal(wk_op_check(&wrong, NULL), WICK_ERR_VALUE);
    wrong = op;
    for (int k = 0; k < WK_CHAIN_STEPS - 2; k++)
        assert_true(wk_chain_append(&wrong.p.chain, &add, (const uint8_t[]){0, 1}));
    assert_int_equal(wk_op_check(&wrong, NULL), WICK_OK);
    assert_false(wk_chain_append(&wrong.p.chain, &add, (const uint8_t[]){0, 1}));
    wrong.p.chain.n_steps++;
    assert_int_equal(wk_op_check(&wrong, NULL), WICK_ERR_VALUE);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_whole, setup, teardown),
        cmocka_unit_test_setup_teardown(test_several_results, setup, teardown),
        cmocka_unit_test_setup_teardown(test_unread, setup, teardown),
        cmocka_unit_test_setup_teardown(test_foreign_memory, setup, teardown),
        cmocka_unit_test_setup_teardown(test_others_between, setup, teardown),
        cmocka_unit_test_setup_teardown(test_in_place, setup, teardown),
        cmocka_unit_test_setup_teardown(test_overlap, setup, teardown),
        cmocka_unit_test_setup_teardown(test_copies, setup, teardown),
        cmocka_unit_test_setup_teardown(test_strides, setup, teardown),
        cmocka_unit_test_setup_teardown(test_dtypes, setup, teardown),
        cmocka_unit_test_setup_teardown(test_reductions, setup, teardown),
        cmocka_unit_test_setup_teardown(test_limits, setup, teardown),
        cmocka_unit_test_setup_teardown(test_faults, setup, teardown),
        cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_off),
        cmocka_unit_test(test_few_elements),
        cmocka_unit_test(test_check),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
