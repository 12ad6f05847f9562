/* Optimizers against their formulas, their state stored and set again, clipping, bad input. */
#include "nn_fixture.h"

#include <wick/train.h>

#include <float.h>

enum { N = 5, STEPS = 4 };

typedef struct numbers {
    double p, first, second;
} numbers;

static void expect(const wick_optimizer_desc *d, numbers *s, double g, int t, double rate) {
    const double b1 = d->beta1, b2 = d->beta2, decay = d->weight_decay;
    switch (d->kind) {
    case WICK_OPTIMIZER_SGD:
        g += decay * s->p;
        s->first = t == 0 ? g : d->momentum * s->first + g;
        s->p -= rate * (d->momentum == 0 ? g : d->nesterov ? g + d->momentum * s->first : s->first);
        break;
    case WICK_OPTIMIZER_ADAMW:
        s->first = b1 * s->first + (1 - b1) * g;
        s->second = b2 * s->second + (1 - b2) * g * g;
        s->p -= rate * decay * s->p;
        s->p -= rate * (s->first / (1 - pow(b1, t + 1))) /
                (sqrt(s->second / (1 - pow(b2, t + 1))) + d->eps);
        break;
    default: {
        const double c = b1 * s->first + (1 - b1) * g;
        s->p -= rate * (decay * s->p + (c > 0) - (c < 0));
        s->first = b2 * s->first + (1 - b2) * g;
        break;
    }
    }
}

static const wick_optimizer_desc descs[] = {
    {.kind = WICK_OPTIMIZER_SGD},
    {.kind = WICK_OPTIMIZER_SGD, .weight_decay = 0.1, .momentum = 0.9},
    {.kind = WICK_OPTIMIZER_SGD, .momentum = 0.5, .nesterov = true},
    {.kind = WICK_OPTIMIZER_ADAMW, .weight_decay = 0.1, .beta1 = 0.8, .beta2 = 0.95, .eps = 1e-6},
    {.kind = WICK_OPTIMIZER_LION, .weight_decay = 0.01, .beta1 = 0.9, .beta2 = 0.99},
    {.kind = WICK_OPTIMIZER_ADAMW, .beta1 = DBL_MIN, .beta2 = 0.9, .eps = 1e-6},
};

static void formulas(void **state) {
    static const wick_dtype dtypes[] = {WICK_F32, WICK_F64};
    wick_device *const device = device_of(state);
    for (size_t i = 0; i < 2 * WK_COUNT(descs); i++) {
        const wick_optimizer_desc *const desc = &descs[i / 2];
        const wick_dtype dtype = dtypes[i % 2];
        const wick_scope scope = wick_scope_begin(device);
        wick_tensor *const p = random_tensor(device, dtype, WICK_SHAPE(N), 1);
        double *const begin = contents(p), wanted[N];
        numbers s[N] = {{0}};
        for (int k = 0; k < N; k++) s[k].p = begin[k];
        wick_optimizer *optimizer;
        assert_int_equal(wick_optimizer_make(desc, &p, NULL, 1, &optimizer), WICK_OK);
        for (int t = 0; t < STEPS; t++) {
            const wick_scope step = wick_scope_begin(device);
            wick_tensor *const g = random_tensor(device, dtype, WICK_SHAPE(N), 2 + (uint64_t)t);
            double *const gradient = contents(g);
            for (int k = 0; k < N; k++) {
                expect(desc, &s[k], gradient[k], t, 0.05);
                wanted[k] = s[k].p;
            }
            assert_int_equal(wick_optimizer_step(optimizer, &g, 0.05), WICK_OK);
            assert_close(p, wanted, 1e-5);
            free(gradient);
            wick_scope_end(step);
        }
        assert_int_equal(wick_optimizer_steps(optimizer, 0), STEPS);
        wick_optimizer_free(optimizer);
        free(begin);
        wick_scope_end(scope);
    }
}

/* An optimizer that begins with the state of another goes on as that does. */
static void state_moves(void **state) {
    static const char *const names[] = {"w", "b"};
    wick_device *const device = device_of(state);
    const wick_scope scope = wick_scope_begin(device);
    wick_tensor *const p[2] = {random_tensor(device, WICK_F32, WICK_SHAPE(2, 3), 1),
                               random_tensor(device, WICK_F16, WICK_SHAPE(4), 2)};
    wick_tensor *const g[2] = {random_tensor(device, WICK_F32, WICK_SHAPE(2, 3), 3),
                               random_tensor(device, WICK_F32, WICK_SHAPE(4), 4)};
    wick_tensor *const only[2] = {g[0], NULL};
    wick_optimizer *a, *b;
    const wick_optimizer_desc desc = {.kind = WICK_OPTIMIZER_ADAMW};
    assert_int_equal(wick_optimizer_make(&desc, p, names, 2, &a), WICK_OK);
    assert_int_equal(wick_optimizer_step(a, g, 0.01), WICK_OK);
    double *const before = contents(p[1]);
    assert_int_equal(wick_optimizer_step(a, only, 0.01), WICK_OK);
    assert_close(p[1], before, 0);
    free(before);
    assert_int_equal(wick_optimizer_n_states(a), 4);
    assert_string_equal(wick_optimizer_state_name(a, 0), "w.mean");
    assert_string_equal(wick_optimizer_state_name(a, 3), "b.square");
    assert_int_equal(wick_tensor_dtype(wick_optimizer_state(a, 3)), WICK_F32);
    assert_null(wick_optimizer_state(a, 4));
    assert_null(wick_optimizer_find_state(a, "w.momentum"));

    wick_tensor *const q[2] = {wick_cast(p[0], WICK_F32), wick_cast(p[1], WICK_F16)};
    assert_int_equal(wick_optimizer_make(&desc, q, names, 2, &b), WICK_OK);
    for (size_t i = 0; i < wick_optimizer_n_states(a); i++)
        assert_non_null(wick_copy(wick_optimizer_find_state(b, wick_optimizer_state_name(a, i)),
                                  wick_optimizer_state(a, i)));
    for (size_t i = 0; i < 2; i++) wick_optimizer_set_steps(b, i, wick_optimizer_steps(a, i));
    assert_int_equal(wick_optimizer_steps(b, 0), 2);
    assert_int_equal(wick_optimizer_steps(b, 1), 1);
    assert_int_equal(wick_optimizer_step(a, g, 0.01), WICK_OK);
    assert_int_equal(wick_optimizer_step(b, g, 0.01), WICK_OK);
    for (int i = 0; i < 2; i++) {
        double *const wanted = contents(p[i]);
        assert_close(q[i], wanted, 0);
        free(wanted);
    }
    wick_optimizer_free(b);
    wick_optimizer_free(a);
    wick_scope_end(scope);
}

/* What is 0 stands for the numbers of the documentation. */
static void defaults(void **state) {
    static const wick_optimizer_desc both[][2] = {
        {{.kind = WICK_OPTIMIZER_ADAMW},
         {.kind = WICK_OPTIMIZER_ADAMW, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8}},
        {{.kind = WICK_OPTIMIZER_LION}, {.kind = WICK_OPTIMIZER_LION, .beta1 = 0.9, .beta2 = 0.99}},
    };
    wick_device *const device = device_of(state);
    for (size_t i = 0; i < WK_COUNT(both); i++) {
        const wick_scope scope = wick_scope_begin(device);
        wick_tensor *p[2];
        wick_optimizer *optimizers[2];
        for (int k = 0; k < 2; k++) {
            p[k] = random_tensor(device, WICK_F32, WICK_SHAPE(N), 1);
            assert_int_equal(wick_optimizer_make(&both[i][k], &p[k], NULL, 1, &optimizers[k]),
                             WICK_OK);
            for (uint64_t t = 0; t < STEPS; t++) {
                wick_tensor *const g = random_tensor(device, WICK_F32, WICK_SHAPE(N), 2 + t);
                assert_int_equal(wick_optimizer_step(optimizers[k], &g, 0.05), WICK_OK);
            }
        }
        double *wanted = contents(p[1]);
        assert_close(p[0], wanted, 0);
        free(wanted);
        for (size_t k = 0; k < wick_optimizer_n_states(optimizers[0]); k++) {
            wanted = contents(wick_optimizer_state(optimizers[1], k));
            assert_close(wick_optimizer_state(optimizers[0], k), wanted, 0);
            free(wanted);
        }
        for (int k = 0; k < 2; k++) wick_optimizer_free(optimizers[k]);
        wick_scope_end(scope);
    }
}

/* Without a scope nothing is left, either. */
static void without_scope(void **state) {
    wick_device *const device = device_of(state);
    wick_tensor *const p = wick_ones(device, WICK_F32, WICK_SHAPE(3));
    wick_tensor *const g = wick_ones(device, WICK_F32, WICK_SHAPE(3));
    wick_optimizer *optimizer;
    const wick_optimizer_desc desc = {.momentum = 0.9};
    assert_int_equal(wick_optimizer_make(&desc, &p, NULL, 1, &optimizer), WICK_OK);
    assert_string_equal(wick_optimizer_state_name(optimizer, 0), "0.momentum");
    assert_int_equal(wick_optimizer_step(optimizer, &g, 1), WICK_OK);
    assert_close(p, (const double[]){0, 0, 0}, 0);
    wick_optimizer_free(optimizer);
    wick_optimizer_free(NULL);
    wick_release(g);
    wick_release(p);
}

static void clipping(void **state) {
    wick_device *const device = device_of(state);
    const wick_scope scope = wick_scope_begin(device);
    const double three[] = {3, 0}, four[] = {4};
    wick_tensor *const g[] = {tensor_of(device, WICK_F32, WICK_SHAPE(2), three), NULL,
                              tensor_of(device, WICK_F16, WICK_SHAPE(1), four)};
    assert_close(wick_clip_grad_norm(g, 3, 10), (const double[]){5}, 1e-6);
    assert_close(g[0], three, 0);
    assert_close(wick_clip_grad_norm(g, 3, 1), (const double[]){5}, 1e-6);
    assert_close(g[0], (const double[]){0.6, 0}, 1e-6);
    assert_close(g[2], (const double[]){0.8}, 1e-3);
    wick_tensor *const zero = wick_zeros(device, WICK_F64, WICK_SHAPE(2));
    assert_close(wick_clip_grad_norm(&zero, 1, 1), (const double[]){0}, 0);
    assert_close(zero, (const double[]){0, 0}, 0);
    assert_refused(device, wick_clip_grad_norm(g, 3, 0), WICK_ERR_VALUE);
    assert_null(wick_clip_grad_norm(NULL, 0, 1));
    wick_scope_end(scope);
}

static void bad_input(void **state) {
    static const wick_optimizer_desc bad[] = {
        {.kind = (wick_optimizer_kind)9},
        {.momentum = 1},
        {.momentum = -1},
        {.nesterov = true},
        {.weight_decay = -1},
        {.beta1 = 1},
        {.beta2 = (double)NAN},
        {.eps = -1},
    };
    wick_device *const device = device_of(state);
    const wick_scope scope = wick_scope_begin(device);
    wick_tensor *const p = wick_ones(device, WICK_F32, WICK_SHAPE(3));
    wick_optimizer *optimizer;
    for (size_t i = 0; i < WK_COUNT(bad); i++) {
        assert_int_equal(wick_optimizer_make(&bad[i], &p, NULL, 1, &optimizer), WICK_ERR_VALUE);
        assert_refused(device, NULL, WICK_ERR_VALUE);
        assert_null(optimizer);
    }
    wick_tensor *const twice[] = {p, wick_zeros(device, WICK_F32, WICK_SHAPE(3)), p};
    assert_int_equal(wick_optimizer_make(NULL, twice, NULL, 3, &optimizer), WICK_ERR_ARGUMENT);
    assert_refused(device, NULL, WICK_ERR_ARGUMENT);
    wick_tensor *const whole = wick_ones(device, WICK_I32, WICK_SHAPE(3));
    assert_int_equal(wick_optimizer_make(NULL, &whole, NULL, 1, &optimizer), WICK_ERR_DTYPE);
    assert_int_equal(wick_optimizer_make(NULL, NULL, NULL, 0, &optimizer), WICK_ERR_ARGUMENT);
    (void)wick_device_error(device, NULL);
    assert_int_equal(wick_optimizer_make(NULL, &p, NULL, 1, &optimizer), WICK_OK);
    wick_tensor *const other = wick_ones(device, WICK_F32, WICK_SHAPE(4));
    wick_tensor *const wide = wick_ones(device, WICK_F64, WICK_SHAPE(3));
    assert_int_equal(wick_optimizer_step(optimizer, &other, 1), WICK_ERR_SHAPE);
    (void)wick_device_error(device, NULL);
    assert_int_equal(wick_optimizer_step(optimizer, &wide, 1), WICK_ERR_DTYPE);
    (void)wick_device_error(device, NULL);
    assert_int_equal(wick_optimizer_step(optimizer, &p, -1), WICK_ERR_VALUE);
    (void)wick_device_error(device, NULL);
    assert_int_equal(wick_optimizer_step(NULL, &p, 1), WICK_ERR_ARGUMENT);
    assert_int_equal(wick_optimizer_step(optimizer, NULL, 1), WICK_ERR_ARGUMENT);
    assert_refused(device, NULL, WICK_ERR_ARGUMENT);
    wick_optimizer_free(optimizer);
    wick_scope_end(scope);
}

static void out_of_memory(void **state) {
    fixture *const f = *state;
    wick_tensor *const p = wick_ones(f->device, WICK_F32, WICK_SHAPE(3));
    const wick_optimizer_desc desc = {.kind = WICK_OPTIMIZER_ADAMW};
    for (uint64_t allowed = 0;; allowed++) {
        wick_optimizer *optimizer;
        f->allowed = allowed;
        const wick_status status = wick_optimizer_make(&desc, &p, NULL, 1, &optimizer);
        f->allowed = UINT64_MAX;
        (void)wick_device_error(f->device, NULL);
        wick_optimizer_free(optimizer);
        if (status == WICK_OK) break;
        assert_int_equal(status, WICK_ERR_OUT_OF_MEMORY);
    }
    wick_release(p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(formulas), TEST(defaults),  TEST(state_moves),   TEST(without_scope),
        TEST(clipping), TEST(bad_input), TEST(out_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
