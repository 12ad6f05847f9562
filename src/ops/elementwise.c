/* ops/elementwise.c: add, mul, silu, swiglu. */
#include <wick/ops.h>

#include "core/shape.h"
#include "ops/operand.h"
#include "ops/view.h"

/* y = fn(a, b) after broadcasting both. */
static wick_tensor *binary(const char *op, wk_binary_fn fn, wick_tensor *a, wick_tensor *b) {
    if (!wk_operands_present(op, (wick_tensor *[]){a, b}, 2)) return NULL;
    if (!wk_operand_is_number(op, a) || !wk_operands_same_dtype(op, a, b)) return NULL;
    if (!wk_operand_is_strided(op, a) || !wk_operand_is_strided(op, b)) return NULL;
    const wick_shape shape_a = wk_tensor_shape_of(a), shape_b = wk_tensor_shape_of(b);
    wick_shape shape;
    if (!wk_shape_broadcast(&shape_a, &shape_b, &shape)) {
        char text[2][WK_SHAPE_TEXT];
        wk_device_fail(a->device, WICK_ERR_SHAPE, "%s: %s and %s do not broadcast", op,
                       wk_shape_text(&shape_a, text[0], sizeof text[0]),
                       wk_shape_text(&shape_b, text[1], sizeof text[1]));
        return NULL;
    }
    wk_view view_a, view_b;
    wk_view_expand(&a->view, &shape, &view_a);
    wk_view_expand(&b->view, &shape, &view_b);
    wick_tensor *y = wk_tensor_new(a->device, a->view.dtype, &shape);
    wk_call call;
    wk_call_begin(&call, WK_OP_BINARY);
    wk_call_add(&call, y, NULL);
    wk_call_add(&call, a, &view_a);
    wk_call_add(&call, b, &view_b);
    call.op.p.binary = fn;
    return wk_queue_result(&call, y);
}

wick_tensor *wick_add(wick_tensor *a, wick_tensor *b) { return binary("add", WK_BINARY_ADD, a, b); }

wick_tensor *wick_mul(wick_tensor *a, wick_tensor *b) { return binary("mul", WK_BINARY_MUL, a, b); }

wick_tensor *wick_silu(wick_tensor *x) {
    if (!x) return NULL;
    if (!wk_operand_is_float("silu", x) || !wk_operand_is_strided("silu", x)) return NULL;
    const wick_shape shape = wk_tensor_shape_of(x);
    wick_tensor *y = wk_tensor_new(x->device, x->view.dtype, &shape);
    wk_call call;
    wk_call_begin(&call, WK_OP_UNARY);
    wk_call_add(&call, y, NULL);
    wk_call_add(&call, x, NULL);
    call.op.p.unary.fn = WK_UNARY_SILU;
    return wk_queue_result(&call, y);
}

wick_tensor *wick_swiglu(wick_tensor *gate, wick_tensor *up) {
    if (!wk_operands_present("swiglu", (wick_tensor *[]){gate, up}, 2)) return NULL;
    if (!wk_operand_is_float("swiglu", gate)) return NULL;
    if (!wk_operands_same_dtype("swiglu", gate, up)) return NULL;
    if (!wk_operand_is_strided("swiglu", gate)) return NULL;
    if (!wk_operand_is_strided("swiglu", up)) return NULL;
    const wick_shape shape = wk_tensor_shape_of(gate), shape_up = wk_tensor_shape_of(up);
    if (!wk_shape_equal(&shape, &shape_up)) {
        char text[2][WK_SHAPE_TEXT];
        wk_device_fail(gate->device, WICK_ERR_SHAPE, "swiglu: gate is %s, but up is %s",
                       wk_shape_text(&shape, text[0], sizeof text[0]),
                       wk_shape_text(&shape_up, text[1], sizeof text[1]));
        return NULL;
    }
    wick_tensor *y = wk_tensor_new(gate->device, gate->view.dtype, &shape);
    wk_call call;
    wk_call_begin(&call, WK_OP_GATED);
    wk_call_add(&call, y, NULL);
    wk_call_add(&call, gate, NULL);
    wk_call_add(&call, up, NULL);
    call.op.p.gated.fn = WK_GATED_SWIGLU;
    return wk_queue_result(&call, y);
}
