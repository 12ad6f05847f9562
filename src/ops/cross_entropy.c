/* ops/cross_entropy.c: losses of classes: cross_entropy, nll. */
#include "core/shape.h"
#include "ops/compose.h"
#include "ops/indices.h"
#include "ops/reduced.h"

typedef struct problem {
    const char *name;
    wick_tensor *x, *target; /* [n, c, ..] or [c]; [n, ..], a scalar, or shaped as x */
    wick_cross_entropy_desc desc;
    int dim; /* of the classes */
    int64_t n_classes;
} problem;

/* --- Checks --- */

static bool check_indices(const problem *p) {
    const wick_shape shape = wk_tensor_shape_of(p->x), got = wk_tensor_shape_of(p->target);
    if (!wk_operand_is_index(p->name, p->target)) return false;
    wick_shape wanted = {.rank = shape.rank - 1};
    for (int i = 0, k = 0; i < shape.rank; i++)
        if (i != p->dim) wanted.extent[k++] = shape.extent[i];
    if (wk_shape_equal(&wanted, &got)) return true;
    char text[2][WK_SHAPE_TEXT];
    wk_device_fail(p->x->device, WICK_ERR_SHAPE, "%s: target is %s, not %s", p->name,
                   wk_shape_text(&got, text[0], sizeof text[0]),
                   wk_shape_text(&wanted, text[1], sizeof text[1]));
    return false;
}

static bool has_probabilities(const problem *p) {
    const wick_dtype dtype = p->target->view.dtype;
    return dtype == p->x->view.dtype;
}

static bool check(problem *p, const wick_cross_entropy_desc *desc) {
    if (desc) p->desc = *desc;
    wick_tensor *const operands[] = {p->x, p->desc.weight};
    if (!p->target || !wk_operands_are_floats(p->name, operands, 1, 2) ||
        !wk_operands_present(p->name, (wick_tensor *[]){p->x, p->target}, 2) ||
        !wk_operand_is_strided(p->name, p->target) ||
        !wk_operand_rank(p->name, "x", p->x, 1, WICK_MAX_RANK) ||
        !wk_reduction_is_known(p->name, p->x, p->desc.reduction))
        return false;
    p->dim = p->x->view.rank > 1 ? 1 : 0;
    p->n_classes = p->x->view.extent[p->dim];
    const double smoothing = p->desc.label_smoothing;
    if (!(smoothing >= 0 && smoothing <= 1)) {
        wk_device_fail(p->x->device, WICK_ERR_VALUE, "%s: label_smoothing %g is not from 0 to 1",
                       p->name, smoothing);
        return false;
    }
    if (p->n_classes == 0) {
        wk_device_fail(p->x->device, WICK_ERR_SHAPE, "%s: there are no classes", p->name);
        return false;
    }
    return wk_operand_is_vector(p->name, "weight", p->desc.weight, p->n_classes);
}

/* --- Indices --- */

/* What of the target is ignored, u8; NULL: nothing. */
static wick_tensor *find_ignored(const problem *p, bool *is_some) {
    const wick_dtype dtype = p->target->view.dtype;
    const double value = (double)p->desc.ignored_index;
    *is_some = p->desc.ignores && (double)wk_integer_of(dtype, value) == value;
    if (!*is_some) return NULL;
    return wick_eq(p->target, wick_full(p->x->device, dtype, WICK_SCALAR, value));
}

/* x [n, c, ..] with 0 for what is ignored. */
static wick_tensor *without(wick_tensor *x, wick_tensor *ignored) {
    return x && ignored ? wick_where(ignored, wick_zeros(x->device, x->view.dtype, WICK_SCALAR), x)
                        : NULL;
}

/* The elements of x that the targets name, index [n, 1, ..]. */
static wick_tensor *named(const problem *p, wick_tensor *x, wick_tensor *index) {
    return wick_squeeze(wick_gather(x, p->dim, index), p->dim);
}

/* The weights of the classes, [c, 1, ..]. */
static wick_tensor *class_weights(const problem *p) {
    return wk_along(wk_widened(p->desc.weight), p->x->view.rank - 1 - p->dim);
}

/* -log p of the target, or of all classes evenly, times their weights. */
static wick_tensor *losses_of(const problem *p, wick_tensor *log_p, wick_tensor *index,
                              wick_tensor *weights) {
    wick_tensor *loss = wick_neg(named(p, log_p, index));
    if (p->desc.weight) loss = wick_mul(loss, weights);
    const double smoothing = p->desc.label_smoothing;
    if (smoothing == 0) return loss;
    wick_tensor *const all = p->desc.weight ? wick_mul(log_p, class_weights(p)) : log_p;
    wick_tensor *const even = wick_sum(all, 1, &p->dim, false);
    if (!loss || !even) return NULL;
    return wick_add(wick_affine(loss, 1 - smoothing, 0),
                    wick_affine(even, -smoothing / (double)p->n_classes, 0));
}

static wick_tensor *of_indices(const problem *p, wick_tensor *log_p) {
    bool ignores;
    wick_tensor *const ignored = find_ignored(p, &ignores);
    wick_tensor *const target = ignores ? without(p->target, ignored) : p->target;
    wick_tensor *const index = wick_unsqueeze(target, p->dim);
    wick_tensor *weights = NULL; /* of the targets */
    if (p->desc.weight)
        weights = named(p, wick_expand(class_weights(p), wk_tensor_shape_of(p->x)), index);
    wick_tensor *loss = losses_of(p, log_p, index, weights);
    if (ignores) loss = without(loss, ignored);
    if (p->desc.reduction != WICK_REDUCTION_MEAN || (!ignores && !p->desc.weight))
        return wk_reduced(loss, p->desc.reduction);
    if (!weights)
        weights = wick_ones(p->x->device, log_p ? log_p->view.dtype : WICK_F32,
                            wk_tensor_shape_of(p->target));
    if (ignores) weights = without(weights, ignored);
    return wick_div(wick_sum(loss, 0, NULL, false), wick_sum(weights, 0, NULL, false));
}

/* --- Probabilities --- */

static wick_tensor *of_probabilities(const problem *p, wick_tensor *log_p) {
    const double smoothing = p->desc.label_smoothing;
    wick_tensor *target = wk_widened(p->target);
    if (smoothing > 0 && target)
        target = wick_affine(target, 1 - smoothing, smoothing / (double)p->n_classes);
    wick_tensor *all = wick_mul(log_p, target);
    if (p->desc.weight) all = wick_mul(all, class_weights(p));
    return wk_reduced(wick_neg(wick_sum(all, 1, &p->dim, false)), p->desc.reduction);
}

static bool check_probabilities(const problem *p) {
    if (!wk_operands_same_shape(p->name, p->x, p->target)) return false;
    if (!p->desc.ignores) return true;
    wk_device_fail(p->x->device, WICK_ERR_VALUE, "%s: of probabilities no index is ignored",
                   p->name);
    return false;
}

wick_tensor *wick_cross_entropy(wick_tensor *logits, wick_tensor *target,
                                const wick_cross_entropy_desc *desc) {
    problem p = {.name = "cross_entropy", .x = logits, .target = target};
    if (!check(&p, desc)) return NULL;
    const bool is_soft = has_probabilities(&p);
    if (is_soft ? !check_probabilities(&p) : !check_indices(&p)) return NULL;
    const wick_scope scope = wk_operation_begin(logits->device, p.name);
    wick_tensor *const log_p = wick_log_softmax(wk_widened(logits), p.dim);
    wick_tensor *const loss = is_soft ? of_probabilities(&p, log_p) : of_indices(&p, log_p);
    return wick_scope_result(scope, wk_promoted(loss, logits->view.dtype));
}

wick_tensor *wick_nll(wick_tensor *log_probs, wick_tensor *target,
                      const wick_cross_entropy_desc *desc) {
    problem p = {.name = "nll", .x = log_probs, .target = target};
    if (!check(&p, desc) || !check_indices(&p)) return NULL;
    if (p.desc.label_smoothing != 0) {
        wk_device_fail(log_probs->device, WICK_ERR_VALUE, "nll: has no label_smoothing");
        return NULL;
    }
    const wick_scope scope = wk_operation_begin(log_probs->device, p.name);
    wick_tensor *const loss = of_indices(&p, wk_widened(log_probs));
    return wick_scope_result(scope, wk_promoted(loss, log_probs->view.dtype));
}
