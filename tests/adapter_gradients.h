/* tests/adapter_gradients.h: the gradients of an adapter that is being trained, by differences. */
#ifndef ADAPTER_GRADIENTS_H
#define ADAPTER_GRADIENTS_H

#include "finetune/finetune.h"

#include <wick/ops.h>

#include <math.h>
#include <stdlib.h>

static inline double loss_of(const wick_model *model, const wk_example *example, uint32_t context) {
    double loss = 0;
    wk_loss_batch batch;
    const wick_scope scope = wick_scope_begin(model->device);
    assert_true(wk_loss_batch_make(model, example, 1, context, &batch));
    assert_int_equal(wick_read_scalar(wk_loss_batch_sum(&batch), &loss), WICK_OK);
    wick_scope_end(scope);
    return loss;
}

static inline void move(const wick_finetune *f, wick_tensor *const *along, double by) {
    for (size_t i = 0; i < 2 * f->n_factors; i++)
        assert_non_null(
            wick_copy(f->params[i], wick_add(f->params[i], wick_affine(along[i], by, 0))));
}

/* gradients: of length 1e-12, by which the factors are moved to either side of where they are. */
static inline double slope_along(const wick_finetune *f, wick_tensor *const *gradients,
                                 const wk_example *example, double step) {
    const uint32_t context = f->examples->context_length;
    const double by = step * 1e12;
    move(f, gradients, by);
    const double above = loss_of(f->model, example, context);
    move(f, gradients, -2 * by);
    const double below = loss_of(f->model, example, context);
    move(f, gradients, by);
    return (above - below) / (2 * step);
}

/* Along the gradient, of length n, the loss rises by n for each unit. */
static inline void check_gradients(wick_finetune *f, const char *name) {
    wick_device *const device = f->device;
    const size_t n = 2 * f->n_factors;
    const uint32_t context = f->examples->context_length;
    const wk_example example = wk_example_at(f->examples, 0);
    wick_tensor **const gradients = calloc(n, sizeof(wick_tensor *));
    wick_tape *tape;
    wk_loss_batch batch;
    const wick_scope scope = wick_scope_begin(device);
    assert_int_equal(wick_tape_begin(device, &tape), WICK_OK);
    for (size_t i = 0; i < n; i++) assert_int_equal(wick_tape_watch(tape, f->params[i]), WICK_OK);
    assert_true(wk_loss_batch_make(f->model, &example, 1, context, &batch));
    wick_tensor *const loss = wk_loss_batch_sum(&batch);
    assert_int_equal(wick_grad(tape, loss, NULL, f->params, n, gradients), WICK_OK);
    wick_tape_end(tape);
    double norm, value;
    assert_int_equal(wick_read_scalar(loss, &value), WICK_OK);
    assert_int_equal(wick_read_scalar(wick_clip_grad_norm(gradients, n, 1e-12), &norm), WICK_OK);
    assert_true(norm > 0);
    /* Far enough for float32 to see the difference of the losses, which are `value`; where routers
     * chose other experts on the way, the loss jumped, and a shorter way may do. */
    double step = fmin(2e-2, 2e-3 * value / norm), slope = NAN;
    for (int i = 0; i < 4 && !(fabs(slope - norm) < 0.005 * norm); i++, step /= 4) {
        slope = slope_along(f, gradients, &example, step);
        print_message("%s: loss %.3f, slope %.5g, by differences %.5g\n", name, value, norm, slope);
    }
    if (!(fabs(slope - norm) < 0.005 * norm)) fail_msg("%s: %g, not %g", name, slope, norm);
    wick_scope_end(scope);
    free(gradients);
}

#endif
