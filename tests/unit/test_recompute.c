/* Segments that a tape runs again: the same gradients to the last bit, less memory, what is
 * refused; memory that runs out anywhere while gradients are computed. */
#include "ops_fixture.h"

#include <wick/grad.h>
#include <wick/nn.h>

enum { N_LAYERS = 12, ROWS_OF_X = 32, WIDTH = 32, COUNT = WIDTH * WIDTH };

/* --- A network of layers with a weight each --- */

typedef struct layer {
    wick_tape *tape; /* of a segment inside; NULL: there is none */
    wick_tensor *weight;
    double dropout;
} layer;

static wick_tensor *activate(void *user, wick_tensor *const *x) {
    (void)user;
    return wick_mul(wick_tanh(x[0]), wick_sigmoid(x[0]));
}

/* x + f(x W), of which several steps on the way have the size of x. */
static wick_tensor *run_layer(void *user, wick_tensor *const *x) {
    const layer *const l = user;
    wick_tensor *y = wick_dropout(wick_linear(x[0], l->weight, NULL), l->dropout, true);
    y = l->tape ? wick_recompute(l->tape, activate, NULL, &y, 1) : activate(NULL, &y);
    y = wick_add(x[0], wick_affine(y, 0.5, 0));
    (void)wick_synchronize(wick_tensor_device(y)); /* what is queued keeps its memory */
    return y;
}

static wick_tensor *total(wick_tensor *x) { return wick_sum(x, 0, NULL, false); }

typedef enum form { PLAIN, SEGMENTS, NESTED } form;

typedef struct outcome {
    float grads[N_LAYERS + 1][COUNT]; /* of the weights, then of x */
    uint64_t peak;                    /* bytes of buffers */
} outcome;

/* On a device of its own, whose random numbers begin at their beginning. */
static void compute(form kind, double dropout, outcome *out) {
    void *state = NULL;
    assert_int_equal(setup(&state), 0);
    wick_device *const device = device_of(&state);
    const wick_scope scope = wick_scope_begin(device);
    wick_tensor *watched[N_LAYERS + 1], *grads[N_LAYERS + 1];
    layer layers[N_LAYERS];
    wick_tape *tape;
    assert_int_equal(wick_tape_begin(device, &tape), WICK_OK);
    for (int i = 0; i <= N_LAYERS; i++) {
        watched[i] = wick_randn(device, WICK_F32, WICK_SHAPE(WIDTH, WIDTH), 0, 0.2);
        assert_int_equal(wick_tape_watch(tape, watched[i]), WICK_OK);
    }
    wick_tensor *x = watched[N_LAYERS];
    for (int i = 0; i < N_LAYERS; i++) {
        const wick_scope inner = wick_scope_begin(device);
        layers[i] =
            (layer){.tape = kind == NESTED ? tape : NULL, .weight = watched[i], .dropout = dropout};
        x = kind == PLAIN ? run_layer(&layers[i], &x)
                          : wick_recompute(tape, run_layer, &layers[i], &x, 1);
        x = wick_scope_result(inner, x);
    }
    wick_tensor *const loss = wick_sum(wick_sqr(x), 0, NULL, false);
    assert_int_equal(wick_grad(tape, loss, NULL, watched, N_LAYERS + 1, grads), WICK_OK);
    for (int i = 0; i <= N_LAYERS; i++)
        assert_int_equal(wick_read(grads[i], out->grads[i], sizeof out->grads[i]), WICK_OK);
    wick_tape_end(tape);
    wick_scope_end(scope);
    wick_device_stats stats;
    wick_device_get_stats(device, &stats);
    out->peak = stats.buffer_peak_bytes;
    assert_int_equal(teardown(&state), 0);
}

static void test_same_gradients(void **state) {
    static outcome plain, other;
    (void)state;
    for (int i = 0; i < 4; i++) {
        const double dropout = i % 2 == 0 ? 0 : 0.25;
        compute(PLAIN, dropout, &plain);
        compute(i < 2 ? SEGMENTS : NESTED, dropout, &other);
        assert_memory_equal(other.grads, plain.grads, sizeof plain.grads);
        print_message("%u bytes, with segments %u\n", (unsigned)plain.peak, (unsigned)other.peak);
        assert_true(other.peak < 2 * plain.peak / 3);
    }
}

/* --- Higher orders, no tape, no tensors --- */

static wick_tensor *cube(void *user, wick_tensor *const *x) {
    (void)user;
    return wick_mul(wick_sqr(x[0]), x[0]);
}

static void test_second_order(void **state) {
    wick_device *const device = device_of(state);
    const wick_scope scope = wick_scope_begin(device);
    wick_tensor *x = wick_affine(count_up(device, WICK_SHAPE(3)), 1, 1), *slope, *curve;
    wick_tape *outer, *inner;
    assert_int_equal(wick_tape_begin(device, &outer), WICK_OK);
    assert_int_equal(wick_tape_begin(device, &inner), WICK_OK);
    assert_int_equal(wick_tape_watch(outer, x), WICK_OK);
    assert_int_equal(wick_tape_watch(inner, x), WICK_OK);
    wick_tensor *const y = wick_recompute(inner, cube, NULL, &x, 1);
    assert_int_equal(wick_grad(inner, y, NULL, &x, 1, &slope), WICK_OK);
    assert_int_equal(wick_grad(outer, slope, NULL, &x, 1, &curve), WICK_OK);
    ASSERT_FLOATS(wick_retain(curve), 6, 12, 18);
    wick_tape_end(inner);
    wick_tape_end(outer);
    ASSERT_FLOATS(wick_retain(wick_recompute(NULL, cube, NULL, &x, 1)), 1, 8, 27);
    assert_null(wick_recompute(NULL, cube, NULL, (wick_tensor *[]){NULL}, 1));
    wick_scope_end(scope);
}

/* The watched tensor is known to the function alone. */
static wick_tensor *give_square(void *user, wick_tensor *const *x) {
    (void)x;
    return wick_sqr(user);
}

static wick_tensor *give_itself(void *user, wick_tensor *const *x) {
    (void)user;
    return x[0];
}

static void test_inputs(void **state) {
    wick_device *const device = device_of(state);
    const wick_scope scope = wick_scope_begin(device);
    wick_tensor *x = count_up(device, WICK_SHAPE(3)), *g;
    wick_tape *tape;
    assert_int_equal(wick_tape_begin(device, &tape), WICK_OK);
    assert_int_equal(wick_tape_watch(tape, x), WICK_OK);
    wick_tensor *y = wick_recompute(tape, give_square, x, NULL, 0);
    assert_int_equal(wick_grad(tape, y, NULL, &x, 1, &g), WICK_OK);
    ASSERT_FLOATS(wick_retain(g), 0, 2, 4);
    y = wick_sqr(wick_recompute(tape, give_itself, NULL, &x, 1));
    assert_int_equal(wick_grad(tape, y, NULL, &x, 1, &g), WICK_OK);
    ASSERT_FLOATS(wick_retain(g), 0, 2, 4);
    wick_tape_end(tape);
    wick_scope_end(scope);
}

static wick_tensor *reshape_it(void *user, wick_tensor *const *x) {
    (void)user;
    return wick_reshape(x[0], WICK_SHAPE(3, 1));
}

static wick_tensor *drop_nothing(void *user, wick_tensor *const *x) {
    (void)user;
    return wick_dropout(x[0], 0.5, false);
}

/* A segment that gives its tensor, or a view of it, beside another use of that. */
static void test_given_back(void **state) {
    static wick_segment_fn *const segments[] = {give_itself, reshape_it, drop_nothing};
    wick_device *const device = device_of(state);
    const wick_scope scope = wick_scope_begin(device);
    for (size_t i = 0; i < WK_COUNT(segments); i++) {
        wick_tensor *x = count_up(device, WICK_SHAPE(3)), *g;
        wick_tape *tape;
        assert_int_equal(wick_tape_begin(device, &tape), WICK_OK);
        assert_int_equal(wick_tape_watch(tape, x), WICK_OK);
        wick_tensor *const z = wick_affine(x, 2, 0);
        wick_tensor *const y = wick_recompute(tape, segments[i], NULL, &x, 1);
        wick_tensor *const loss = wick_add(total(z), total(y));
        assert_int_equal(wick_grad(tape, loss, NULL, &x, 1, &g), WICK_OK);
        ASSERT_FLOATS(wick_retain(g), 3, 3, 3);
        wick_tape_end(tape);
    }
    wick_scope_end(scope);
}

static wick_tensor *drop_half(void *user, wick_tensor *const *x) {
    (void)user;
    return wick_dropout(x[0], 0.5, true);
}

/* Random numbers are the same the second time, regardless of what the device's seed is by then. */
static void test_other_seed(void **state) {
    enum { N = 64 };
    wick_device *const device = device_of(state);
    const wick_scope scope = wick_scope_begin(device);
    wick_tensor *x = wick_ones(device, WICK_F32, WICK_SHAPE(N)), *g;
    wick_tape *tape;
    float want[N], got[N];
    wick_device_set_seed(device, 7);
    assert_int_equal(wick_tape_begin(device, &tape), WICK_OK);
    assert_int_equal(wick_tape_watch(tape, x), WICK_OK);
    wick_tensor *const y = wick_recompute(tape, drop_half, NULL, &x, 1);
    assert_int_equal(wick_read(y, want, sizeof want), WICK_OK);
    wick_device_set_seed(device, 8);
    wick_device_set_stream(device, 3);
    assert_int_equal(wick_grad(tape, y, NULL, &x, 1, &g), WICK_OK);
    assert_int_equal(wick_read(g, got, sizeof got), WICK_OK);
    assert_memory_equal(got, want, sizeof got);
    assert_int_equal(wick_device_seed(device), 8);
    assert_int_equal(*wk_device_streams(device), 3);
    wick_tape_end(tape);
    wick_scope_end(scope);
}

static wick_tensor *scale_by_end(void *user, wick_tensor *const *x) {
    return wick_mul(x[0], total(wick_narrow(user, 0, 2, 3)));
}

static wick_tensor *scale_by_all(void *user, wick_tensor *const *x) {
    return wick_mul(x[0], total(user));
}

/* Of a tensor of which a part is watched, a segment reads elements after that part. */
static void test_watched_part(void **state) {
    static wick_segment_fn *const segments[] = {scale_by_end, scale_by_all};
    wick_device *const device = device_of(state);
    const wick_scope scope = wick_scope_begin(device);
    for (int i = 0; i < 2; i++) {
        wick_tensor *const w = count_up(device, WICK_SHAPE(5)), *g;
        wick_tensor *part = wick_narrow(w, 0, 0, 3), *x = wick_ones(device, WICK_F32, WICK_SCALAR);
        wick_tape *tape;
        assert_int_equal(wick_tape_begin(device, &tape), WICK_OK);
        assert_int_equal(wick_tape_watch(tape, part), WICK_OK);
        wick_tensor *const y = wick_recompute(tape, segments[i], w, &x, 1);
        wick_tensor *const loss = wick_add(y, total(wick_sqr(part)));
        assert_int_equal(wick_grad(tape, loss, NULL, &part, 1, &g), WICK_OK);
        ASSERT_FLOATS(wick_retain(g), i == 0 ? 0 : 1, i == 0 ? 2 : 3, 5);
        wick_tape_end(tape);
    }
    wick_scope_end(scope);
}

/* --- What is refused --- */

static wick_tensor *narrow(void *user, wick_tensor *const *x) {
    int *const n_runs = user;
    return (*n_runs)++ == 0 ? wick_sqr(x[0]) : wick_narrow(x[0], 0, 0, 2);
}

static wick_tensor *give_nothing(void *user, wick_tensor *const *x) {
    int *const n_runs = user;
    return (*n_runs)++ == 0 ? wick_sqr(x[0]) : NULL;
}

static void test_refusals(void **state) {
    wick_device *const device = device_of(state);
    const wick_scope scope = wick_scope_begin(device);
    wick_tensor *x = count_up(device, WICK_SHAPE(3)), *g;
    wick_tape *tape;
    assert_int_equal(wick_tape_begin(device, &tape), WICK_OK);
    assert_int_equal(wick_tape_watch(tape, x), WICK_OK);
    assert_refused(device, wick_recompute(tape, NULL, NULL, &x, 1), WICK_ERR_ARGUMENT);
    assert_refused(device, wick_recompute(tape, cube, NULL, NULL, 1), WICK_ERR_ARGUMENT);
    wick_tensor *many[WICK_MAX_SEGMENT_INPUTS + 1];
    for (int i = 0; i <= WICK_MAX_SEGMENT_INPUTS; i++) many[i] = x;
    assert_refused(device, wick_recompute(tape, cube, NULL, many, WICK_MAX_SEGMENT_INPUTS + 1),
                   WICK_ERR_ARGUMENT);
    static wick_segment_fn *const changing[] = {narrow, give_nothing};
    for (int i = 0; i < 2; i++) {
        int n_runs = 0;
        wick_tensor *const y = wick_recompute(tape, changing[i], &n_runs, &x, 1);
        assert_int_equal(wick_grad(tape, y, NULL, &x, 1, &g), WICK_ERR_STATE);
        assert_refused(device, g, WICK_ERR_STATE);
    }
    wick_tensor *const y = wick_recompute(tape, cube, NULL, &x, 1);
    assert_non_null(wick_fill(x, 1));
    assert_int_equal(wick_grad(tape, y, NULL, &x, 1, &g), WICK_ERR_STATE);
    assert_refused(device, g, WICK_ERR_STATE);
    wick_tape_end(tape);
    wick_scope_end(scope);
}

/* --- Memory that runs out, at every allocation --- */

static wick_tensor *attend(void *user, wick_tensor *const *x) {
    (void)user;
    return wick_attention(x[0], x[0], wick_sqr(x[0]), &(wick_attention_desc){.causal = true});
}

/* Through a segment, and an operation whose gradient is that of others. */
static wick_status one_step(wick_device *device, wick_tensor *x, wick_tensor **g) {
    wick_tape *tape;
    WK_TRY(wick_tape_begin(device, &tape));
    wick_status status = wick_tape_watch(tape, x);
    wick_tensor *const y = status == WICK_OK ? wick_recompute(tape, attend, NULL, &x, 1) : NULL;
    wick_tensor *const loss = wick_sum(wick_sqr(wick_softmax(y, -1)), 0, NULL, false);
    if (loss) status = wick_grad(tape, loss, NULL, &x, 1, g);
    if (!loss && status == WICK_OK) status = wick_device_error(device, NULL);
    wick_tape_end(tape);
    return status;
}

/* Where it says that it succeeds the gradients are right. */
static void test_no_memory(void **state) {
    enum { N = 12 };
    fixture *const f = *state;
    wick_device *const device = device_of(state);
    wick_tensor *const flat = count_up(device, WICK_SHAPE(1, 1, 3, 4));
    wick_tensor *const x = wick_sin(flat);
    float want[N], got[N];
    uint64_t n_failed = 0;
    for (uint64_t n = UINT64_MAX;; n++) { /* the first time nothing fails */
        const wick_scope scope = wick_scope_begin(device);
        wick_tensor *g = NULL;
        assert_int_equal(wick_synchronize(device), WICK_OK);
        assert_int_equal(wick_device_trim(device, NULL, NULL), WICK_OK);
        f->allowed = n;
        const wick_status status = one_step(device, x, &g);
        f->allowed = UINT64_MAX;
        if (status != WICK_OK && status != WICK_ERR_OUT_OF_MEMORY)
            fail_msg("allocation %u: %s", (unsigned)n, wick_status_text(status));
        assert_true((status == WICK_OK) == (g != NULL));
        if (g) assert_int_equal(wick_read(g, n == UINT64_MAX ? want : got, sizeof got), WICK_OK);
        if (g && n != UINT64_MAX) assert_memory_equal(got, want, sizeof got);
        n_failed += status != WICK_OK;
        (void)wick_device_error(device, NULL);
        wick_scope_end(scope);
        (void)wick_synchronize(device);
        if (n != UINT64_MAX && status == WICK_OK) break;
    }
    print_message("%u allocations\n", (unsigned)n_failed);
    assert_true(n_failed > 100);
    wick_release(x);
    wick_release(flat);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_gradients),
        TEST(test_second_order),
        TEST(test_inputs),
        TEST(test_given_back),
        TEST(test_other_seed),
        TEST(test_watched_part),
        TEST(test_refusals),
        TEST(test_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
