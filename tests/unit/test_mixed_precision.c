/* Schedules; 16-bit parameters with float32 masters; scaled losses of 16-bit gradients. */
#include "nn_fixture.h"

#include <wick/array.h>
#include <wick/grad.h>
#include <wick/train.h>

/* --- Schedules --- */

static void schedules(void **state) {
    static const struct {
        wick_schedule schedule;
        double rates[9];
    } cases[] = {
        {{.kind = WICK_SCHEDULE_CONSTANT, .rate = 2, .steps = 8, .warmup = 4},
         {0.5, 1, 1.5, 2, 2, 2, 2, 2, 2}},
        {{.kind = WICK_SCHEDULE_LINEAR, .rate = 1, .steps = 6, .warmup = 2},
         {0.5, 1, 1, 0.75, 0.5, 0.25, 0, 0, 0}},
        {{.kind = WICK_SCHEDULE_LINEAR, .rate = 1, .least = 0.5, .steps = 4},
         {1, 0.875, 0.75, 0.625, 0.5, 0.5, 0.5, 0.5, 0.5}},
        {{.kind = WICK_SCHEDULE_COSINE, .rate = 1, .steps = 6},
         {1, 0.9330127018922193, 0.75, 0.5, 0.25, 0.0669872981077807, 0, 0, 0}},
        {{.kind = WICK_SCHEDULE_COSINE, .rate = 3, .least = 1, .steps = 4, .warmup = 9},
         {1.0 / 3, 2.0 / 3, 1, 4.0 / 3, 5.0 / 3, 2, 7.0 / 3, 8.0 / 3, 3}},
    };
    (void)state;
    for (size_t i = 0; i < WK_COUNT(cases); i++) {
        for (uint64_t step = 0; step < 9; step++) {
            const double rate = wick_schedule_rate(&cases[i].schedule, step);
            if (fabs(rate - cases[i].rates[step]) > 1e-12)
                fail_msg("case %u, step %u: %g, expected %g", (unsigned)i, (unsigned)step, rate,
                         cases[i].rates[step]);
        }
    }
    assert_true(wick_schedule_rate(NULL, 0) == 0);
}

/* --- A linear regression, whose best loss is that of its noise --- */

enum { N_ROWS = 64, N_WEIGHTS = 8, N_STEPS = 600 };

typedef struct problem {
    wick_tensor *x, *y; /* [N_ROWS, N_WEIGHTS], [N_ROWS, 1] f32 */
    double factor;      /* of the loss */
} problem;

static problem make_problem(wick_device *device, double factor) {
    wick_tensor *const x = random_tensor(device, WICK_F32, WICK_SHAPE(N_ROWS, N_WEIGHTS), 1);
    wick_tensor *const w =
        wick_affine(random_tensor(device, WICK_F32, WICK_SHAPE(1, N_WEIGHTS), 2), 0.25, 1.3);
    wick_tensor *const noise = random_tensor(device, WICK_F32, WICK_SHAPE(N_ROWS, 1), 3);
    return (problem){.x = x,
                     .y = wick_add(wick_linear(x, w, NULL), wick_affine(noise, 0.3, 0)),
                     .factor = factor};
}

static wick_tensor *loss_of(const problem *p, wick_tensor *w) {
    wick_tensor *const guess = wick_linear(p->x, wick_cast(w, WICK_F32), NULL);
    return wick_affine(wick_mse(guess, p->y, WICK_REDUCTION_MEAN), p->factor, 0);
}

/* Of weights that begin at 1. With a scale the gradients are 16-bit floats on their way. */
typedef struct training {
    wick_dtype dtype, gradients; /* of the weights; of their gradients */
    wick_optimizer_desc optimizer;
    double rate;
    wick_loss_scale *scale; /* NULL: the loss is not scaled */
} training;

static void make_step(const training *t, const problem *p, wick_optimizer *optimizer,
                      wick_tensor *w) {
    wick_device *const device = wick_tensor_device(w);
    wick_tape *tape;
    wick_tensor *g = NULL;
    double is_finite = 1;
    assert_int_equal(wick_tape_begin(device, &tape), WICK_OK);
    assert_int_equal(wick_tape_watch(tape, w), WICK_OK);
    wick_tensor *const loss = loss_of(p, w);
    wick_tensor *const share =
        wick_full(device, WICK_F32, WICK_SCALAR, t->scale ? t->scale->scale : 1);
    assert_int_equal(wick_grad(tape, loss, share, &w, 1, &g), WICK_OK);
    wick_tape_end(tape);
    g = wick_cast(wick_cast(g, t->gradients), WICK_F32);
    if (t->scale)
        assert_int_equal(
            wick_read_scalar(wick_unscale_gradients(&g, 1, t->scale->scale), &is_finite), WICK_OK);
    if (!t->scale || wick_loss_scale_update(t->scale, is_finite != 0))
        assert_int_equal(wick_optimizer_step(optimizer, &g, t->rate), WICK_OK);
}

/* The loss in the end, over its factor. */
static double train(wick_device *device, const training *t, const problem *p) {
    const wick_scope scope = wick_scope_begin(device);
    wick_tensor *w = wick_ones(device, t->dtype, WICK_SHAPE(1, N_WEIGHTS));
    wick_optimizer *optimizer;
    double loss;
    assert_int_equal(wick_optimizer_make(&t->optimizer, &w, NULL, 1, &optimizer), WICK_OK);
    for (int i = 0; i < N_STEPS; i++) {
        const wick_scope step = wick_scope_begin(device);
        make_step(t, p, optimizer, w);
        wick_scope_end(step);
    }
    assert_int_equal(wick_read_scalar(loss_of(p, w), &loss), WICK_OK);
    wick_optimizer_free(optimizer);
    wick_scope_end(scope);
    return loss / p->factor;
}

/* --- Masters --- */

/* A step of 1e-3 is less than half of what two 16-bit floats near 1 differ by. */
static void masters(void **state) {
    static const wick_dtype halves[] = {WICK_BF16, WICK_F16};
    static const wick_optimizer_kind kinds[] = {WICK_OPTIMIZER_ADAMW, WICK_OPTIMIZER_LION,
                                                WICK_OPTIMIZER_SGD};
    wick_device *const device = device_of(state);
    const wick_scope scope = wick_scope_begin(device);
    const problem p = make_problem(device, 1);
    for (size_t i = 0; i < WK_COUNT(halves) * WK_COUNT(kinds); i++) {
        const wick_optimizer_kind kind = kinds[i / WK_COUNT(halves)];
        const double finest = halves[i % WK_COUNT(halves)] == WICK_BF16 ? 1 : 0.125;
        training t = {.dtype = WICK_F32,
                      .gradients = WICK_F32,
                      .optimizer = {.kind = kind, .momentum = kind == WICK_OPTIMIZER_SGD ? 0.5 : 0},
                      .rate = kind == WICK_OPTIMIZER_SGD ? 4e-3 * finest : 1e-3 * finest};
        const double full = train(device, &t, &p);
        t.dtype = halves[i % WK_COUNT(halves)];
        const double without = train(device, &t, &p);
        t.optimizer.masters = true;
        const double with = train(device, &t, &p);
        print_message("%s, %d: f32 %.5f, with masters %.5f, without %.5f\n",
                      wick_dtype_name(t.dtype), (int)kind, full, with, without);
        assert_true(with < 1.02 * full);
        assert_true(without > 1.2 * full);
    }
    wick_scope_end(scope);
}

/* Without momentum the only state of a parameter is its master. */
static void master_of_plain_sgd(void **state) {
    wick_device *const device = device_of(state);
    const wick_scope scope = wick_scope_begin(device);
    wick_tensor *p = wick_full(device, WICK_BF16, WICK_SHAPE(1), 10);
    wick_tensor *g = wick_full(device, WICK_F32, WICK_SHAPE(1), 2);
    wick_optimizer *optimizer;
    const wick_optimizer_desc desc = {.kind = WICK_OPTIMIZER_SGD, .masters = true};
    assert_int_equal(wick_optimizer_make(&desc, &p, NULL, 1, &optimizer), WICK_OK);
    for (double want = 9; want > 6; want--) {
        assert_int_equal(wick_optimizer_step(optimizer, &g, 0.5), WICK_OK);
        assert_close(p, &want, 0);
    }
    wick_optimizer_free(optimizer);
    wick_scope_end(scope);
}

/* They are states, by name; a parameter of f32 has none. */
static void master_states(void **state) {
    wick_device *const device = device_of(state);
    const wick_scope scope = wick_scope_begin(device);
    static const char *const names[] = {"a", "b"};
    wick_tensor *const p[2] = {wick_full(device, WICK_F32, WICK_SHAPE(2), 3),
                               wick_full(device, WICK_BF16, WICK_SHAPE(2), 3)};
    wick_optimizer *optimizer;
    const wick_optimizer_desc desc = {.kind = WICK_OPTIMIZER_LION, .masters = true};
    assert_int_equal(wick_optimizer_make(&desc, p, names, 2, &optimizer), WICK_OK);
    assert_int_equal(wick_optimizer_n_states(optimizer), 3);
    assert_string_equal(wick_optimizer_state_name(optimizer, 0), "a.mean");
    assert_string_equal(wick_optimizer_state_name(optimizer, 1), "b.mean");
    assert_string_equal(wick_optimizer_state_name(optimizer, 2), "b.master");
    assert_null(wick_optimizer_state_name(optimizer, 3));
    assert_null(wick_optimizer_find_state(optimizer, "a.master"));
    wick_tensor *const master = wick_optimizer_find_state(optimizer, "b.master");
    assert_int_equal(wick_tensor_dtype(master), WICK_F32);
    assert_close(master, (const double[]){3, 3}, 0);
    wick_tensor *const g[2] = {NULL, wick_ones(device, WICK_F32, WICK_SHAPE(2))};
    assert_int_equal(wick_optimizer_step(optimizer, g, 1e-3), WICK_OK);
    assert_close(master, (const double[]){2.999, 2.999}, 1e-7);
    assert_close(p[1], (const double[]){3, 3}, 0);
    wick_optimizer_free(optimizer);
    wick_scope_end(scope);
}

/* --- Scaled losses --- */

/* Gradients of a small loss are 0 in f16, unless the loss is scaled. */
static void scaled_losses(void **state) {
    wick_device *const device = device_of(state);
    const wick_scope scope = wick_scope_begin(device);
    const problem p = make_problem(device, 1e-8);
    wick_loss_scale scale = {.scale = 1 << 24, .interval = 100};
    training t = {.dtype = WICK_F16,
                  .gradients = WICK_F32,
                  .optimizer = {.kind = WICK_OPTIMIZER_ADAMW, .eps = 1e-30, .masters = true},
                  .rate = 1e-3};
    const double full = train(device, &t, &p);
    t.gradients = WICK_F16;
    const double without = train(device, &t, &p);
    t.scale = &scale;
    const double with = train(device, &t, &p);
    print_message("%.5f, scaled %.5f, not scaled %.5f\n", full, with, without);
    assert_true(with < 1.02 * full);
    assert_true(without > 1.2 * full);
    /* One that is too large is halved until the gradients are finite. */
    const problem large = make_problem(device, 100);
    scale = (wick_loss_scale){.scale = 1 << 20, .interval = 10000};
    assert_true(train(device, &t, &large) < 1.2 * full); /* some steps are left out */
    assert_true(scale.scale >= 8 && scale.scale <= 1 << 12);
    assert_true(scale.n_steps > N_STEPS - 20);
    wick_scope_end(scope);
}

static void updates(void **state) {
    wick_device *const device = device_of(state);
    const wick_scope scope = wick_scope_begin(device);
    wick_loss_scale s = {.scale = 8, .interval = 2};
    assert_true(wick_loss_scale_update(&s, true));
    assert_true(s.scale == 8);
    assert_true(wick_loss_scale_update(&s, true));
    assert_true(s.scale == 16);
    assert_false(wick_loss_scale_update(&s, false));
    assert_true(s.scale == 8 && s.n_steps == 0);
    assert_true(wick_loss_scale_update(&s, true));
    assert_false(wick_loss_scale_update(&s, false));
    assert_true(wick_loss_scale_update(&s, true)); /* the first of two again */
    assert_true(s.scale == 4);
    s = (wick_loss_scale){.scale = 1 << 25, .interval = 1}; /* more than it grows to stays */
    assert_true(wick_loss_scale_update(&s, true));
    assert_true(s.scale == 1 << 25);
    s.scale = 1 << 23;
    for (int i = 0; i < 2; i++) assert_true(wick_loss_scale_update(&s, true));
    assert_true(s.scale == 1 << 24);
    const double numbers[] = {8, -4}, bad[] = {1, (double)INFINITY};
    wick_tensor *const g[] = {tensor_of(device, WICK_F32, WICK_SHAPE(2), numbers), NULL,
                              tensor_of(device, WICK_F16, WICK_SHAPE(2), bad)};
    assert_close(wick_unscale_gradients(g, 2, 8), (const double[]){1}, 0);
    assert_close(g[0], (const double[]){1, -0.5}, 0);
    assert_close(wick_unscale_gradients(g, 3, 1), (const double[]){0}, 0);
    wick_tensor *const wide = tensor_of(device, WICK_F64, WICK_SHAPE(2), numbers);
    assert_non_null(wick_unscale_gradients(&wide, 1, 10)); /* 0.1 of f32 is another one */
    assert_close(wide, (const double[]){0.8, -0.4}, 1e-15);
    assert_refused(device, wick_unscale_gradients(g, 3, 0), WICK_ERR_VALUE);
    assert_null(wick_unscale_gradients(NULL, 0, 1));
    wick_scope_end(scope);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(schedules),     TEST(masters),       TEST(master_of_plain_sgd),
        TEST(master_states), TEST(scaled_losses), TEST(updates),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
