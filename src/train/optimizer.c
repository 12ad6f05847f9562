/* train/optimizer.c: sgd, adamw and lion as functions of tensors, and the state they keep. */
#include <wick/nn.h>
#include <wick/train.h>

#include "core/shape.h"
#include "ops/compose.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MOST_STATES = 3, NAME_BYTES = 256 };

typedef struct entry {
    wick_tensor *param;
    wick_tensor *master; /* one of the states: the parameter in f32; NULL: the parameter itself */
    uint64_t steps;
    int n_states;
    wick_tensor *state[MOST_STATES]; /* those of the rule, then the master */
    char *name[MOST_STATES];         /* of the states */
} entry;

struct wick_optimizer {
    wick_device *device;
    wick_optimizer_desc desc; /* without zeros that mean something else */
    size_t n, n_states;       /* parameters; states of all of them */
    entry *entries;
};

static const char name[] = "optimizer";

/* --- Making --- */

static bool is_share(double value) { return value >= 0 && value < 1; }

static bool resolve(wick_device *device, wick_optimizer_desc *d) {
    if ((unsigned)d->kind > WICK_OPTIMIZER_LION) {
        wk_device_fail(device, WICK_ERR_VALUE, "%s: there is no kind %d", name, (int)d->kind);
        return false;
    }
    if (d->beta1 == 0) d->beta1 = 0.9;
    if (d->beta2 == 0) d->beta2 = d->kind == WICK_OPTIMIZER_LION ? 0.99 : 0.999;
    if (d->eps == 0) d->eps = 1e-8;
    if (!is_share(d->momentum) || !is_share(d->beta1) || !is_share(d->beta2)) {
        wk_device_fail(device, WICK_ERR_VALUE,
                       "%s: momentum %g, beta1 %g and beta2 %g must be from 0 to below 1", name,
                       d->momentum, d->beta1, d->beta2);
        return false;
    }
    if (!(d->weight_decay >= 0) || !(d->eps >= 0)) {
        wk_device_fail(device, WICK_ERR_VALUE,
                       "%s: weight_decay %g and eps %g must not be negative", name, d->weight_decay,
                       d->eps);
        return false;
    }
    if (!d->nesterov || d->momentum > 0) return true;
    wk_device_fail(device, WICK_ERR_VALUE, "%s: nesterov needs momentum", name);
    return false;
}

/* No scope owns what an optimizer keeps. NULL, also of NULL: it could not be made. */
static wick_tensor *keep(const wick_scope scope, wick_tensor *x) {
    wick_tensor *const kept = wick_retain(x);
    wick_scope_end(scope);
    return kept;
}

static wick_tensor *zeros_like(const wick_tensor *x) {
    const wick_scope scope = wick_scope_begin(x->device);
    return keep(scope, wick_zeros(x->device, wk_wide_dtype(x->view.dtype), wk_tensor_shape_of(x)));
}

static wick_tensor *wide_copy(wick_tensor *x) {
    const wick_scope scope = wick_scope_begin(x->device);
    return keep(scope, wk_dense_copy(x, wk_wide_dtype(x->view.dtype)));
}

/* False: there is no value, or no memory for its name. The entry has both, or a part, to be freed.
 */
static bool add_state(const wick_optimizer *o, size_t i, const char *given, const char *suffix,
                      wick_tensor *value) {
    entry *const e = &o->entries[i];
    const int k = e->n_states++;
    e->state[k] = value;
    char text[NAME_BYTES];
    const int length = given ? snprintf(text, sizeof text, "%s.%s", given, suffix)
                             : snprintf(text, sizeof text, "%zu.%s", i, suffix);
    if (length < 0 || (size_t)length >= sizeof text) {
        wk_device_fail(o->device, WICK_ERR_VALUE, "%s: the name of parameter %zu is too long", name,
                       i);
        return false;
    }
    e->name[k] = wk_alloc(wk_device_heap(o->device), (size_t)length + 1);
    if (!e->name[k]) {
        wk_device_fail(o->device, WICK_ERR_OUT_OF_MEMORY, "%s: no memory for a name", name);
        return false;
    }
    memcpy(e->name[k], text, (size_t)length + 1);
    return value != NULL;
}

static bool make_entry(wick_optimizer *o, size_t i, wick_tensor *param, const char *given) {
    static const char *const suffixes[][2] = {
        [WICK_OPTIMIZER_SGD] = {"momentum"},
        [WICK_OPTIMIZER_ADAMW] = {"mean", "square"},
        [WICK_OPTIMIZER_LION] = {"mean"},
    };
    const bool is_plain = o->desc.kind == WICK_OPTIMIZER_SGD && o->desc.momentum == 0;
    entry *const e = &o->entries[i];
    e->param = wick_retain(param);
    for (int k = 0; k < 2 && !is_plain && suffixes[o->desc.kind][k]; k++)
        if (!add_state(o, i, given, suffixes[o->desc.kind][k], zeros_like(param))) return false;
    if (o->desc.masters && wk_wide_dtype(param->view.dtype) != param->view.dtype) {
        if (!add_state(o, i, given, "master", wide_copy(param))) return false;
        e->master = e->state[e->n_states - 1];
    }
    o->n_states += (size_t)e->n_states;
    return true;
}

static wick_status check_params(wick_tensor *const *params, size_t n) {
    if (!params || n == 0 || !params[0]) return WICK_ERR_ARGUMENT;
    wick_device *const device = params[0]->device;
    for (size_t i = 0; i < n; i++) {
        if (!params[i] || params[i]->device != device)
            return wk_device_fail(device, WICK_ERR_ARGUMENT,
                                  "%s: parameter %zu is not there, or on another device", name, i);
        if (!wk_operand_is_float(name, params[i]) || !wk_operand_is_writable(name, params[i]))
            return wk_device_err(device)->status;
        for (size_t k = 0; k < i; k++)
            if (wk_view_overlaps(&params[k]->view, &params[i]->view))
                return wk_device_fail(device, WICK_ERR_ARGUMENT,
                                      "%s: parameters %zu and %zu share memory", name, k, i);
    }
    return WICK_OK;
}

wick_status wick_optimizer_make(const wick_optimizer_desc *desc, wick_tensor *const *params,
                                const char *const *names, size_t n, wick_optimizer **out) {
    if (!out) return WICK_ERR_ARGUMENT;
    *out = NULL;
    WK_TRY(check_params(params, n));
    wick_device *const device = params[0]->device;
    wick_optimizer_desc resolved = {0};
    if (desc) resolved = *desc;
    if (!resolve(device, &resolved)) return WICK_ERR_VALUE;
    wk_heap *const heap = wk_device_heap(device);
    wick_optimizer *const o = wk_alloc_zeroed(heap, sizeof *o);
    entry *const entries = wk_alloc_array(heap, n, sizeof *entries);
    if (!o || !entries) {
        wk_free(heap, entries, n * sizeof *entries);
        wk_free(heap, o, sizeof *o);
        return wk_device_fail(device, WICK_ERR_OUT_OF_MEMORY, "%s: no memory", name);
    }
    *o = (wick_optimizer){.device = device, .desc = resolved, .n = n, .entries = entries};
    for (size_t i = 0; i < n; i++) {
        if (make_entry(o, i, params[i], names ? names[i] : NULL)) continue;
        wick_optimizer_free(o);
        return wk_device_err(device)->status;
    }
    *out = o;
    return WICK_OK;
}

void wick_optimizer_free(wick_optimizer *optimizer) {
    if (!optimizer) return;
    wk_heap *const heap = wk_device_heap(optimizer->device);
    for (size_t i = 0; i < optimizer->n; i++) {
        entry *const e = &optimizer->entries[i];
        for (int k = 0; k < MOST_STATES; k++) {
            wick_release(e->state[k]);
            if (e->name[k]) wk_free(heap, e->name[k], strlen(e->name[k]) + 1);
        }
        wick_release(e->param);
    }
    wk_free(heap, optimizer->entries, optimizer->n * sizeof *optimizer->entries);
    wk_free(heap, optimizer, sizeof *optimizer);
}

/* --- Steps --- */

/* a x + (1 - a) y */
static wick_tensor *mix(wick_tensor *x, double a, wick_tensor *y) {
    return x && y ? wick_add(x, wick_affine(wick_sub(y, x), 1 - a, 0)) : NULL;
}

/* a x + b y */
static wick_tensor *blend(wick_tensor *x, double a, wick_tensor *y, double b) {
    return x && y ? wick_add(wick_affine(x, a, 0), wick_affine(y, b, 0)) : NULL;
}

static bool set(wick_tensor *x, wick_tensor *value) { return wick_copy(x, value) != NULL; }

/* The parameter becomes p - rate * direction. */
static bool go(const entry *e, wick_tensor *p, wick_tensor *direction, double rate) {
    wick_tensor *const value = direction ? wick_sub(p, wick_affine(direction, rate, 0)) : NULL;
    return (!e->master || set(e->master, value)) && set(e->param, value);
}

static bool step_sgd(const wick_optimizer_desc *d, const entry *e, wick_tensor *p, wick_tensor *g,
                     double rate) {
    if (d->weight_decay > 0) g = blend(g, 1, p, d->weight_decay);
    wick_tensor *const v = d->momentum > 0 ? e->state[0] : NULL; /* else a master, or none */
    if (!v) return go(e, p, g, rate);
    if (!set(v, e->steps == 0 ? g : wick_add(wick_affine(v, d->momentum, 0), g))) return false;
    return go(e, p, d->nesterov ? blend(g, 1, v, d->momentum) : v, rate);
}

/* 16 operations with 12 numbers: one chain. */
static bool step_adamw(const wick_optimizer_desc *d, const entry *e, wick_tensor *p, wick_tensor *g,
                       double rate) {
    wick_tensor *const mean = e->state[0], *const square = e->state[1];
    if (!set(mean, mix(mean, d->beta1, g)) ||
        !set(square, blend(square, d->beta2, wick_sqr(g), 1 - d->beta2)))
        return false;
    /* Both begin at 0 and are biased towards it. */
    const double n = (double)(e->steps + 1);
    const double of_mean = 1 - pow(d->beta1, n), of_square = 1 - pow(d->beta2, n);
    wick_tensor *const root = wick_sqrt(square);
    wick_tensor *const divisor = root ? wick_affine(root, 1 / sqrt(of_square), d->eps) : NULL;
    wick_tensor *const decayed = wick_affine(p, 1 - rate * d->weight_decay, 0);
    return go(e, decayed, wick_div(mean, divisor), rate / of_mean);
}

static bool step_lion(const wick_optimizer_desc *d, const entry *e, wick_tensor *p, wick_tensor *g,
                      double rate) {
    wick_tensor *const mean = e->state[0];
    wick_tensor *const direction = wick_sign(blend(mean, d->beta1, g, 1 - d->beta1));
    wick_tensor *const decayed = wick_affine(p, 1 - rate * d->weight_decay, 0);
    return go(e, decayed, direction, rate) && set(mean, blend(mean, d->beta2, g, 1 - d->beta2));
}

/* The gradient of a parameter, which may be of a wider type. */
static bool check_gradient(const entry *e, wick_tensor *g) {
    if (!wk_operands_present(name, (wick_tensor *[]){e->param, g}, 2) ||
        !wk_operand_is_strided(name, g))
        return false;
    if (g->view.dtype != wk_wide_dtype(e->param->view.dtype) &&
        !wk_operands_same_dtype(name, e->param, g))
        return false;
    return wk_operands_same_shape(name, e->param, g);
}

wick_status wick_optimizer_step(wick_optimizer *optimizer, wick_tensor *const *gradients,
                                double rate) {
    static bool (*const steps[])(const wick_optimizer_desc *d, const entry *e, wick_tensor *p,
                                 wick_tensor *g, double rate) = {
        [WICK_OPTIMIZER_SGD] = step_sgd,
        [WICK_OPTIMIZER_ADAMW] = step_adamw,
        [WICK_OPTIMIZER_LION] = step_lion,
    };
    if (!optimizer) return WICK_ERR_ARGUMENT;
    wick_device *const device = optimizer->device;
    if (!gradients)
        return wk_device_fail(device, WICK_ERR_ARGUMENT, "%s: there are no gradients", name);
    if (!(rate >= 0) || isinf(rate))
        return wk_device_fail(device, WICK_ERR_VALUE, "%s: the rate is %g", name, rate);
    for (size_t i = 0; i < optimizer->n; i++)
        if (gradients[i] && !check_gradient(&optimizer->entries[i], gradients[i]))
            return wk_device_err(device)->status;
    for (size_t i = 0; i < optimizer->n; i++) {
        entry *const e = &optimizer->entries[i];
        if (!gradients[i]) continue;
        const wick_scope scope = wick_scope_begin(device);
        wick_tensor *const p = e->master ? e->master : wk_widened(e->param);
        const bool is_done =
            steps[optimizer->desc.kind](&optimizer->desc, e, p, wk_widened(gradients[i]), rate);
        wick_scope_end(scope);
        if (!is_done) return wk_device_err(device)->status;
        e->steps++;
    }
    return WICK_OK;
}

/* --- State --- */

size_t wick_optimizer_n_states(const wick_optimizer *optimizer) {
    return optimizer ? optimizer->n_states : 0;
}

/* The entry that has state number i, *k of its own; NULL: there are fewer. */
static const entry *find_entry(const wick_optimizer *o, size_t i, size_t *k) {
    *k = i;
    for (size_t at = 0; o && at < o->n; at++) {
        if (*k < (size_t)o->entries[at].n_states) return &o->entries[at];
        *k -= (size_t)o->entries[at].n_states;
    }
    return NULL;
}

const char *wick_optimizer_state_name(const wick_optimizer *optimizer, size_t i) {
    size_t k;
    const entry *const e = find_entry(optimizer, i, &k);
    return e ? e->name[k] : NULL;
}

wick_tensor *wick_optimizer_state(const wick_optimizer *optimizer, size_t i) {
    size_t k;
    const entry *const e = find_entry(optimizer, i, &k);
    return e ? e->state[k] : NULL;
}

wick_tensor *wick_optimizer_find_state(const wick_optimizer *optimizer, const char *state) {
    for (size_t i = 0; state && optimizer && i < optimizer->n; i++) {
        const entry *const e = &optimizer->entries[i];
        for (int k = 0; k < e->n_states; k++)
            if (strcmp(e->name[k], state) == 0) return e->state[k];
    }
    return NULL;
}

uint64_t wick_optimizer_steps(const wick_optimizer *optimizer, size_t param) {
    return optimizer && param < optimizer->n ? optimizer->entries[param].steps : 0;
}

void wick_optimizer_set_steps(wick_optimizer *optimizer, size_t param, uint64_t steps) {
    if (optimizer && param < optimizer->n) optimizer->entries[param].steps = steps;
}
