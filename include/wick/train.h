/* wick/train.h: training: optimizers, which change parameters in place by their gradients;
 * schedules of their rate; clipping; scaled losses. */
#ifndef WICK_TRAIN_H
#define WICK_TRAIN_H

#include <wick/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum wick_optimizer_kind {
    WICK_OPTIMIZER_SGD,   /* g += weight_decay p; v = g, then momentum v + g; p -= rate v, with
                             nesterov rate (g + momentum v) */
    WICK_OPTIMIZER_ADAMW, /* Loshchilov, Hutter, 2019 */
    WICK_OPTIMIZER_LION,  /* Chen et al., 2023 */
} wick_optimizer_kind;

/* Zero: default. Of adamw and lion the decay is decoupled: p (1 - rate weight_decay) first. */
typedef struct wick_optimizer_desc {
    wick_optimizer_kind kind;
    double weight_decay;
    double momentum;     /* sgd; below 1 */
    bool nesterov;       /* sgd; needs momentum */
    double beta1, beta2; /* 0: adamw 0.9 and 0.999, lion 0.9 and 0.99; below 1; DBL_MIN: none */
    double eps;          /* adamw, outside of the root; 0: 1e-8 */
    /* A 16-bit parameter is the rounded copy of a float32 one, which the optimizer keeps and
     * changes: steps too small for the parameter's precision add up there (Micikevicius et al.,
     * 2018). */
    bool masters;
} wick_optimizer_desc;

/* Keeps a reference to n parameters of one device, and a state of f32 (f64 for f64) tensors for
 * each. Used on the thread of its device, freed before that is closed. */
typedef struct wick_optimizer wick_optimizer;

/* params [n] float tensors that may be written, no two of the same memory; names [n], copied, or
 * NULL: "0", "1", ... desc may be NULL. The reason of a failure is with the device: WICK_ERR_VALUE
 * a number of desc, WICK_ERR_ARGUMENT n is 0, the devices differ or two share memory,
 * WICK_ERR_DTYPE. */
WICK_API wick_status wick_optimizer_make(const wick_optimizer_desc *desc,
                                         wick_tensor *const *params, const char *const *names,
                                         size_t n, wick_optimizer **out);
/* NULL is allowed. */
WICK_API void wick_optimizer_free(wick_optimizer *optimizer);

/* One step: gradients [n] of the parameters' shapes and dtypes (f32 instead of a 16-bit one is
 * allowed); one that is NULL leaves its parameter as it is. All are checked before anything
 * changes. WICK_ERR_SHAPE, WICK_ERR_DTYPE; WICK_ERR_VALUE: rate is negative or not finite. */
WICK_API wick_status wick_optimizer_step(wick_optimizer *optimizer, wick_tensor *const *gradients,
                                         double rate);

/* Its state, to be stored and set again: for each parameter a tensor "NAME.momentum" (sgd), or
 * "NAME.mean" and (adamw) "NAME.square"; with masters, of 16-bit ones "NAME.master"; and the
 * steps that the parameter has made. */
WICK_API size_t wick_optimizer_n_states(const wick_optimizer *optimizer);
/* NULL where there is no such number. Belongs to the optimizer. */
WICK_API const char *wick_optimizer_state_name(const wick_optimizer *optimizer, size_t i);
/* NULL where there is none. Belongs to the optimizer; writing to it sets the state. */
WICK_API wick_tensor *wick_optimizer_state(const wick_optimizer *optimizer, size_t i);
WICK_API wick_tensor *wick_optimizer_find_state(const wick_optimizer *optimizer, const char *name);
/* 0 where there is no such parameter. */
WICK_API uint64_t wick_optimizer_steps(const wick_optimizer *optimizer, size_t param);
WICK_API void wick_optimizer_set_steps(wick_optimizer *optimizer, size_t param, uint64_t steps);

/* Multiplies gradients [n] (NULL ones are passed over), in place, by max_norm / norm where their
 * norm, that of all elements together, is larger (Pascanu et al., 2013). Returns the norm, a scalar
 * f32 (f64 where a gradient is), owned as results of ops.h; NULL on failure. WICK_ERR_VALUE:
 * max_norm is not positive; WICK_ERR_ARGUMENT: no gradient. */
WICK_API wick_tensor *wick_clip_grad_norm(wick_tensor *const *gradients, size_t n, double max_norm);

/* ---- Schedules ---- */

typedef enum wick_schedule_kind {
    WICK_SCHEDULE_CONSTANT,
    WICK_SCHEDULE_LINEAR,
    WICK_SCHEDULE_COSINE, /* half a wave (Loshchilov, Hutter, 2017) */
} wick_schedule_kind;

/* The rate of steps 0, 1, ...: it rises by rate / warmup a step to rate, which it has in step
 * warmup - 1, and then falls to least, which it would have in step `steps` and keeps after that.
 *
 *   warmup 2, steps 6, linear   0.5 1 1 0.75 0.5 0.25 | 0 0 ..    of rate, least 0 */
typedef struct wick_schedule {
    wick_schedule_kind kind;
    double rate, least;
    uint64_t warmup, steps;
} wick_schedule;
WICK_API double wick_schedule_rate(const wick_schedule *schedule, uint64_t step);

/* ---- Scaled losses ---- */

/* Gradients that are 16-bit floats on their way (of operations and kernels of your own) become 0
 * where they are small. A loss times a large number keeps them, and the gradients are divided by it
 * before the step; the number is halved where that made one infinite, and that step left out.
 *
 *   wick_grad(tape, loss, wick_full(device, WICK_F32, WICK_SCALAR, s.scale), params, n, grads);
 *   wick_read_scalar(wick_unscale_gradients(grads, n, s.scale), &are_finite);
 *   if (wick_loss_scale_update(&s, are_finite != 0)) wick_optimizer_step(optimizer, grads, rate);
 */
typedef struct wick_loss_scale {
    double scale;      /* begin with a power of two, as 65536 */
    uint32_t interval; /* steps in a row after which it doubles, up to 2^24; 0: 2000 */
    uint32_t n_steps;  /* in a row so far */
} wick_loss_scale;

/* Divides gradients [n] (NULL ones are passed over) by scale, in place. Returns 1 where all of them
 * are finite, else 0: a scalar f32, owned as results of ops.h; NULL on failure. WICK_ERR_VALUE:
 * scale is not positive; WICK_ERR_ARGUMENT: no gradient. */
WICK_API wick_tensor *wick_unscale_gradients(wick_tensor *const *gradients, size_t n, double scale);
/* Whether the step is to be made. */
WICK_API bool wick_loss_scale_update(wick_loss_scale *scale, bool is_finite);

#ifdef __cplusplus
}
#endif

#endif
