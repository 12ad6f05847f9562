/* ops/attention.c: scaled dot-product attention over given keys and values. */
#include "ops/attention.h"

#include "core/shape.h"
#include "ops/operand.h"
#include "ops/view.h"

#include <math.h>

/* q [b, h, t, d], k [b, g, s, d], v [b, g, s, e]. */
typedef struct sizes {
    int64_t b, h, t, d, g, s, e;
} sizes;

static bool sizes_of(const wick_shape *q, const wick_shape *k, const wick_shape *v, sizes *out) {
    if (q->rank != 4 || k->rank != 4 || v->rank != 4) return false;
    *out = (sizes){.b = q->extent[0],
                   .h = q->extent[1],
                   .t = q->extent[2],
                   .d = q->extent[3],
                   .g = k->extent[1],
                   .s = k->extent[2],
                   .e = v->extent[3]};
    const wick_shape want_k = {.rank = 4, .extent = {out->b, out->g, out->s, out->d}};
    const wick_shape want_v = {.rank = 4, .extent = {out->b, out->g, out->s, out->e}};
    if (!wk_shape_equal(k, &want_k) || !wk_shape_equal(v, &want_v)) return false;
    return out->d > 0 && (out->g == 0 ? out->h == 0 : out->h % out->g == 0);
}

/* Of q, k and v as the call has them, heads before rows. */
static bool check_heads(const wk_call *call, sizes *out) {
    wick_tensor *const *const all = &call->operand[1];
    wick_tensor *const q = all[0];
    wick_shape shape[3];
    char text[3][WK_SHAPE_TEXT];
    for (size_t i = 0; i < WK_COUNT(shape); i++) {
        if (!wk_operand_is_float("attention", all[i])) return false;
        if (!wk_operand_is_strided("attention", all[i])) return false;
        if (!wk_operands_same_dtype("attention", q, all[i])) return false;
        const wk_view *const view = wk_src(&call->op, (int)i);
        shape[i] = wick_shape_of(view->rank, view->extent);
        wk_shape_text(&shape[i], text[i], sizeof text[i]);
    }
    if (sizes_of(&shape[0], &shape[1], &shape[2], out)) return true;
    wk_device_fail(q->device, WICK_ERR_SHAPE, "attention: q %s, k %s and v %s do not fit", text[0],
                   text[1], text[2]);
    return false;
}

static bool check_desc(wick_device *device, const wick_attention_desc *desc) {
    if (desc->window >= 0 && desc->softcap >= 0 && isfinite(desc->softcap) &&
        isfinite(desc->scale)) {
        return true;
    }
    wk_device_fail(device, WICK_ERR_VALUE, "attention: scale %g, softcap %g, window %d",
                   desc->scale, desc->softcap, (int)desc->window);
    return false;
}

/* Broadcasts an operand that may be absent; its view is then not used. */
static bool expand_optional(const char *name, const wick_tensor *x, const wick_shape *shape,
                            wk_view *out) {
    if (!x) return true;
    if (!wk_operand_is_strided("attention", x)) return false;
    if (wk_view_expand(&x->view, shape, out)) return true;
    const wick_shape from = wk_tensor_shape_of(x);
    char text[2][WK_SHAPE_TEXT];
    wk_device_fail(x->device, WICK_ERR_SHAPE, "attention: %s %s does not fit %s", name,
                   wk_shape_text(&from, text[0], sizeof text[0]),
                   wk_shape_text(shape, text[1], sizeof text[1]));
    return false;
}

/* Views of mask, bias, sinks and slopes. */
static bool expand_extras(const wick_attention_desc *desc, const sizes *n, wk_view view[4]) {
    const wick_shape scores = {.rank = 4, .extent = {n->b, n->h, n->t, n->s}};
    const wick_shape heads = {.rank = 1, .extent = {n->h}};
    const wick_tensor *const floats[] = {desc->bias, desc->sinks, desc->slopes};
    for (size_t i = 0; i < WK_COUNT(floats); i++) {
        if (floats[i] && !wk_operand_is_float("attention", floats[i])) return false;
    }
    const wick_tensor *const mask = desc->mask;
    if (mask && mask->view.dtype != WICK_U8 && mask->view.dtype != WICK_BOOL) {
        wk_device_fail(mask->device, WICK_ERR_DTYPE, "attention: mask is u8 or bool, not %s",
                       wick_dtype_name(mask->view.dtype));
        return false;
    }
    return expand_optional("mask", mask, &scores, &view[0]) &&
           expand_optional("bias", desc->bias, &scores, &view[1]) &&
           expand_optional("sinks", desc->sinks, &heads, &view[2]) &&
           expand_optional("slopes", desc->slopes, &heads, &view[3]);
}

/* Rows before heads as heads before rows, and back. */
static void swap_heads(wk_view *view) {
    if (view->rank == 4) wk_view_permute(view, (const int[]){0, 2, 1, 3}, view);
}

static wick_tensor *attend(wick_tensor *const qkv[3], const wick_attention_desc *desc,
                           bool has_rows_first) {
    const wick_attention_desc d = desc ? *desc : (wick_attention_desc){0};
    wick_tensor *const extras[] = {d.mask, d.bias, d.sinks, d.slopes};
    wick_tensor *operands[3 + WK_COUNT(extras)] = {qkv[0], qkv[1], qkv[2]};
    size_t n_operands = 3;
    for (size_t i = 0; i < WK_COUNT(extras); i++) {
        if (extras[i]) operands[n_operands++] = extras[i];
    }
    if (!wk_operands_present("attention", operands, n_operands)) return NULL;
    wick_device *const device = qkv[0]->device;
    sizes n;
    wk_call call;
    wk_call_begin(&call, WK_OP_ATTENTION, "attention");
    wk_call_add(&call, NULL, NULL); /* y, when its shape is known */
    for (size_t i = 0; i < 3; i++) wk_call_add(&call, qkv[i], NULL);
    for (size_t i = 0; i < WK_COUNT(extras); i++) wk_call_add(&call, extras[i], NULL);
    for (int i = 1; i <= 3 && has_rows_first; i++) swap_heads(&call.op.view[i]);
    if (!check_desc(device, &d) || !check_heads(&call, &n)) return NULL;
    if (!expand_extras(&d, &n, &call.op.view[4])) return NULL;
    wick_shape shape = WICK_SHAPE(n.b, n.h, n.t, n.e);
    if (has_rows_first) shape.extent[1] = n.t, shape.extent[2] = n.h;
    const wick_dtype dtype = qkv[0]->view.dtype;
    /* No keys, no values: kernels need not know about it. */
    if (n.s == 0) {
        const wick_scope scope = wk_operation_begin(device, "attention");
        return wick_scope_result(scope, wick_zeros(device, dtype, shape));
    }

    wick_tensor *const y = wk_tensor_new(device, dtype, &shape);
    if (!y) return NULL;
    call.operand[0] = y;
    call.op.view[0] = y->view;
    if (has_rows_first) swap_heads(&call.op.view[0]);
    call.op.p.attention.scale = d.scale != 0 ? d.scale : 1 / sqrt((double)n.d);
    call.op.p.attention.softcap = d.softcap;
    call.op.p.attention.window = d.window;
    call.op.p.attention.causal = d.causal;
    return wk_queue_result(&call, y);
}

wick_tensor *wick_attention(wick_tensor *q, wick_tensor *k, wick_tensor *v,
                            const wick_attention_desc *desc) {
    return attend((wick_tensor *[]){q, k, v}, desc, false);
}

wick_tensor *wk_attention_bthd(wick_tensor *q, wick_tensor *k, wick_tensor *v,
                               const wick_attention_desc *desc) {
    return attend((wick_tensor *[]){q, k, v}, desc, true);
}
