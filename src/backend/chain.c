/* backend/chain.c: chains of elementwise ops: how a step is made of an op and an op of a step, and
 * what must hold. */
#include "backend/op.h"

#include "core/dtype.h"

#include <assert.h>
#include <string.h>

/* Registers that a step may name: those of 5 bits, where they are packed. */
_Static_assert(WK_CHAIN_OPERANDS - 1 + WK_CHAIN_STEPS <= 32, "registers");

/* --- Steps --- */

bool wk_chain_takes(wk_opcode code) {
    switch (code) {
    case WK_OP_UNARY:
    case WK_OP_BINARY:
    case WK_OP_COMPARE:
    case WK_OP_WHERE:
    case WK_OP_GATED:
    case WK_OP_COPY: return true;
    default: return false;
    }
}

bool wk_chain_is_reduced(const wk_op *op) {
    const int n = op->p.chain.n_steps; /* of an op that was not checked, any */
    return n > 0 && n <= WK_CHAIN_STEPS && op->p.chain.step[n - 1].code == WK_OP_REDUCE;
}

static int count_scalars(wk_opcode code, unsigned fn) {
    if (code == WK_OP_REDUCE) return fn == WK_REDUCE_VAR ? 1 : 0;
    if (code == WK_OP_GATED) return fn == WK_GATED_SWIGLU_CLAMPED ? 2 : 0;
    if (code != WK_OP_UNARY) return 0;
    switch (fn) {
    case WK_UNARY_ELU:
    case WK_UNARY_LEAKY_RELU:
    case WK_UNARY_POW: return 1;
    case WK_UNARY_AFFINE:
    case WK_UNARY_CLAMP: return 2;
    default: return 0;
    }
}

int wk_chain_scalars(const wk_chain *chain, int step, int *first) {
    *first = 0;
    for (int k = 0; k < step; k++)
        *first += count_scalars((wk_opcode)chain->step[k].code, chain->step[k].fn);
    return count_scalars((wk_opcode)chain->step[step].code, chain->step[step].fn);
}

static unsigned function_of(const wk_op *op) {
    switch (op->code) {
    case WK_OP_UNARY: return op->p.unary.fn;
    case WK_OP_BINARY: return op->p.binary;
    case WK_OP_COMPARE: return op->p.compare;
    case WK_OP_GATED: return op->p.gated.fn;
    case WK_OP_REDUCE: return op->p.reduce.fn;
    default: return 0;
    }
}

static void scalars_of(const wk_op *op, double scalars[2]) {
    scalars[0] = scalars[1] = 0;
    if (op->code == WK_OP_UNARY) {
        scalars[0] = op->p.unary.a;
        scalars[1] = op->p.unary.b;
    } else if (op->code == WK_OP_GATED) {
        scalars[0] = op->p.gated.alpha;
        scalars[1] = op->p.gated.limit;
    } else if (op->code == WK_OP_REDUCE) {
        scalars[0] = op->p.reduce.correction;
    }
}

bool wk_chain_append(wk_chain *chain, const wk_op *op, const uint8_t *in) {
    const bool is_last = op->code == WK_OP_REDUCE && chain->n_steps > 0;
    if ((!wk_chain_takes(op->code) && !is_last) || chain->n_steps == WK_CHAIN_STEPS) return false;
    for (int i = 0; i < op->n_dst + op->n_src; i++)
        if (!wk_dtype_is_scalar(op->view[i].dtype)) return false;
    if (op->code == WK_OP_UNARY && !wk_unary_is_of_f32(op)) return false;
    const unsigned fn = function_of(op);
    const int n = count_scalars(op->code, fn);
    if (chain->n_scalars + n > WK_CHAIN_SCALARS) return false;
    double scalars[2];
    scalars_of(op, scalars);
    memcpy(chain->scalar + chain->n_scalars, scalars, (size_t)n * sizeof *scalars);
    chain->n_scalars = (uint8_t)(chain->n_scalars + n);
    wk_chain_step *const step = &chain->step[chain->n_steps++];
    *step = (wk_chain_step){
        .code = (uint8_t)op->code, .fn = (uint8_t)fn, .dtype = (uint8_t)op->view[0].dtype};
    memcpy(step->in, in, op->n_src);
    return true;
}

static void set_function(wk_params *p, const wk_chain_step *step, const double *scalars) {
    switch (step->code) {
    case WK_OP_UNARY:
        p->unary.fn = (wk_unary_fn)step->fn;
        p->unary.a = scalars[0];
        p->unary.b = scalars[1];
        break;
    case WK_OP_BINARY: p->binary = (wk_binary_fn)step->fn; break;
    case WK_OP_COMPARE: p->compare = (wk_compare_fn)step->fn; break;
    case WK_OP_GATED:
        p->gated.fn = (wk_gated_fn)step->fn;
        p->gated.alpha = scalars[0];
        p->gated.limit = scalars[1];
        break;
    case WK_OP_REDUCE:
        p->reduce.fn = (wk_reduce_fn)step->fn;
        p->reduce.correction = scalars[0];
        break;
    default: break;
    }
}

void wk_chain_op(const wk_op *op, int step, const wk_view *views, wk_op *out) {
    out->name = op->name;
    const wk_chain *const chain = &op->p.chain;
    const wk_chain_step *const s = &chain->step[step];
    double scalars[2] = {0};
    int first;
    const int n = wk_chain_scalars(chain, step, &first);
    assert(n <= 2 && first + n <= WK_CHAIN_SCALARS);
    memcpy(scalars, chain->scalar + first, (size_t)n * sizeof *scalars);
    out->code = (wk_opcode)s->code;
    out->n_dst = 1;
    out->n_src = wk_op_get_info(out->code)->n_src;
    out->view[0] = views[op->n_src + step];
    for (int i = 0; i < out->n_src; i++) out->view[1 + i] = views[s->in[i]];
    set_function(&out->p, s, scalars);
}

int wk_chain_destination(const wk_op *op, int step) {
    for (int d = 0; d < op->n_dst; d++)
        if (op->p.chain.result[d] == step) return d;
    return -1;
}

uint32_t wk_chain_sources(const wk_op *op, int step) {
    uint32_t of[WK_CHAIN_STEPS] = {0};
    for (int k = 0; k <= step; k++) {
        const wk_chain_step *const s = &op->p.chain.step[k];
        for (int i = 0; i < wk_op_get_info((wk_opcode)s->code)->n_src; i++)
            of[k] |= s->in[i] < op->n_src ? 1U << s->in[i] : of[s->in[i] - op->n_src];
    }
    return of[step];
}

/* --- What must hold --- */

static wick_status wrong(wick_error *err, wick_status status, const char *rule) {
    return wk_fail(err, status, "chain: %s", rule);
}

static bool reads(const wk_chain_step *step, int source) {
    for (int i = 0; i < wk_op_get_info((wk_opcode)step->code)->n_src; i++)
        if (step->in[i] == source) return true;
    return false;
}

static wick_status check_steps(const wk_op *op, wick_error *err) {
    const wk_chain *const chain = &op->p.chain;
    int n_scalars = 0;
    if (chain->n_steps < 1 || chain->n_steps > WK_CHAIN_STEPS)
        return wrong(err, WICK_ERR_VALUE, "it must have 1 to 16 steps");
    for (int k = 0; k < chain->n_steps; k++) {
        const wk_chain_step *const step = &chain->step[k];
        const bool is_end = step->code == WK_OP_REDUCE && k > 0 && k + 1 == chain->n_steps;
        if ((!wk_chain_takes((wk_opcode)step->code) && !is_end) ||
            step->dtype >= WICK_DTYPE_COUNT_ || !wk_dtype_is_scalar((wick_dtype)step->dtype))
            return wrong(err, WICK_ERR_VALUE, "a step must be elementwise, of a scalar dtype");
        for (int i = 0; i < wk_op_get_info((wk_opcode)step->code)->n_src; i++)
            if (step->in[i] >= op->n_src + k)
                return wrong(err, WICK_ERR_VALUE, "a step reads what comes later");
        n_scalars += count_scalars((wk_opcode)step->code, step->fn);
    }
    if (n_scalars == chain->n_scalars && n_scalars <= WK_CHAIN_SCALARS) return WICK_OK;
    return wrong(err, WICK_ERR_VALUE, "it must have the parameters of its steps, at most 12");
}

static wick_status check_destinations(const wk_op *op, wick_error *err) {
    const wk_chain *const chain = &op->p.chain;
    for (int d = 0; d < op->n_dst; d++) {
        const int step = chain->result[d];
        if (step >= chain->n_steps || (d > 0 && step <= chain->result[d - 1]))
            return wrong(err, WICK_ERR_VALUE, "destinations must have steps in rising order");
        if (wk_dst(op, d)->dtype != (wick_dtype)chain->step[step].dtype)
            return wrong(err, WICK_ERR_DTYPE, "a destination must have its step's dtype");
        for (int s = 0; s < op->n_src; s++)
            for (int k = step + 1; k < chain->n_steps; k++)
                if (wk_view_overlaps(wk_dst(op, d), wk_src(op, s)) && reads(&chain->step[k], s))
                    return wrong(err, WICK_ERR_VALUE, "a step reads what one before it overwrote");
    }
    return WICK_OK;
}

static wick_status check_operands(const wk_op *op, wick_error *err) {
    const bool is_reduced = wk_chain_is_reduced(op);
    if (op->n_dst < 1 || op->n_dst > WK_CHAIN_RESULTS || op->n_src < 1 ||
        op->n_dst + op->n_src > WK_CHAIN_OPERANDS)
        return wrong(err, WICK_ERR_INTERNAL, "it must have 1 to 4 destinations, 8 operands in all");
    if (is_reduced && (op->n_dst > 1 || op->p.chain.result[0] + 1 != op->p.chain.n_steps))
        return wrong(err, WICK_ERR_VALUE, "of a reduction there is one destination");
    const wk_view *const x = wk_src(op, 0);
    for (int i = 0; i < op->n_dst + op->n_src; i++) {
        const wk_view *const view = &op->view[i];
        if (!wk_dtype_is_scalar(view->dtype))
            return wrong(err, WICK_ERR_DTYPE, "operands must be of scalar dtypes");
        if (is_reduced && i == 0) continue; /* by the rule of its step */
        if (!wk_view_same_shape(view, x))
            return wrong(err, WICK_ERR_SHAPE, "operands must have one shape");
    }
    return WICK_OK;
}

wick_status wk_chain_check(const wk_op *op, wick_error *err) {
    wk_view views[WK_CHAIN_OPERANDS + WK_CHAIN_STEPS];
    wk_op step = {0};
    WK_TRY(check_operands(op, err));
    WK_TRY(check_steps(op, err));
    WK_TRY(check_destinations(op, err));
    for (int s = 0; s < op->n_src; s++) views[s] = *wk_src(op, s);
    for (int k = 0; k < op->p.chain.n_steps; k++) {
        wk_view *const result = &views[op->n_src + k];
        const bool is_end = op->p.chain.step[k].code == WK_OP_REDUCE;
        *result = is_end ? op->view[0] : *wk_src(op, 0);
        result->dtype = (wick_dtype)op->p.chain.step[k].dtype;
        wk_chain_op(op, k, views, &step);
        WK_TRY(wk_op_check_rule(&step, err));
    }
    return WICK_OK;
}

/* --- Step by step --- */

wick_status wk_decompose_chain(const wk_op *op, const wk_decomposition *to) {
    const wk_view *const x = wk_src(op, 0);
    wk_view views[WK_CHAIN_OPERANDS + WK_CHAIN_STEPS];
    wk_op step = {0};
    for (int s = 0; s < op->n_src; s++) views[s] = *wk_src(op, s);
    for (int k = 0; k < op->p.chain.n_steps; k++) {
        const wick_dtype dtype = (wick_dtype)op->p.chain.step[k].dtype;
        const int d = wk_chain_destination(op, k);
        wk_view *const result = &views[op->n_src + k];
        if (d >= 0)
            *result = *wk_dst(op, d);
        else
            WK_TRY(to->temp(to->user, dtype, x->rank, x->extent, result));
        wk_chain_op(op, k, views, &step);
        WK_TRY(to->emit(to->user, &step));
    }
    return WICK_OK;
}
