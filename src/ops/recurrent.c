/* ops/recurrent.c: ops that carry a state from token to token. */
#include "ops/recurrent.h"

#include "ops/operand.h"

static wick_tensor *result_like(wick_tensor *x) {
    const wick_shape shape = wick_shape_of(x->view.rank, x->view.extent);
    return wk_tensor_new(x->device, WICK_F32, &shape);
}

wick_tensor *wk_causal_conv(wick_tensor *x, wick_tensor *weight, wick_tensor *bias,
                            wick_tensor *state, wick_tensor *descriptor, const wk_params *params) {
    wick_tensor *const operands[] = {state, x, weight, bias, descriptor};
    wick_tensor *const needed[] = {state, x, weight, descriptor};
    if (!wk_operands_present("causal_conv", needed, WK_COUNT(needed))) return NULL;
    wick_tensor *const y = result_like(x);
    wk_call call;
    wk_call_begin(&call, WK_OP_CAUSAL_CONV, NULL);
    wk_call_add(&call, y, NULL);
    for (size_t i = 0; i < WK_COUNT(operands); i++) wk_call_add(&call, operands[i], NULL);
    call.op.p.conv = params->conv;
    return wk_queue_result(&call, y);
}

wick_tensor *wk_scan(const wk_scan_inputs *inputs, wick_tensor *state, wick_tensor *descriptor,
                     const wk_params *params) {
    wick_tensor *const operands[] = {state,        inputs->x,  inputs->step,
                                     inputs->gate, inputs->bc, descriptor};
    if (!wk_operands_present("scan", operands, WK_COUNT(operands))) return NULL;
    wick_tensor *const y = result_like(inputs->x);
    wk_call call;
    wk_call_begin(&call, WK_OP_SCAN, NULL);
    wk_call_add(&call, y, NULL);
    for (size_t i = 0; i < WK_COUNT(operands); i++) wk_call_add(&call, operands[i], NULL);
    call.op.p.scan = params->scan;
    return wk_queue_result(&call, y);
}
