/* tensor/call.c: where an operation enters: checked, shown to observers, queued or recorded. */
#include "tensor/record.h"

#include <assert.h>
#include <string.h>

void wk_call_begin(wk_call *call, wk_opcode code, const char *name) {
    call->op.code = code;
    call->op.name = name;
    call->op.n_dst = call->op.n_src = call->op.fault_slot = 0;
    memset(&call->op.p, 0, WK_PLAIN_PARAMS); /* the queue makes chains, no call does */
}

wk_view *wk_call_add(wk_call *call, wick_tensor *tensor, const wk_view *view) {
    static const wk_view absent;
    const wk_op_info *const info = wk_op_get_info(call->op.code);
    const int i = call->op.n_dst + call->op.n_src;
    assert(i < info->n_dst + info->n_src);
    call->operand[i] = tensor;
    call->op.view[i] = !tensor ? absent : view ? *view : tensor->view;
    if (i < info->n_dst)
        call->op.n_dst++;
    else
        call->op.n_src++;
    return &call->op.view[i];
}

wick_status wk_call_queue(wick_device *device, wk_call *call) {
    const wk_op *const op = &call->op;
    if (device->operation) call->op.name = device->operation;
    assert(op->code == WK_OP_CUSTOM || op->n_dst == wk_op_get_info(op->code)->n_dst);
    assert(op->code == WK_OP_CUSTOM || op->n_src == wk_op_get_info(op->code)->n_src);
    for (int i = 0; i < op->n_dst + op->n_src; i++) {
        if (!call->operand[i]) continue;
        if (call->operand[i]->device != device)
            return wk_device_fail(device, WICK_ERR_ARGUMENT,
                                  "%s: operand %s belongs to another device", wk_op_name(op),
                                  wk_op_get_info(op->code)->operands[i].name);
        if (op->view[i].buf->generation != device->generation)
            return wk_buffer_usable(device, op->view[i].buf);
    }
    WK_TRY(wk_device_usable(device));
    WK_TRY(wk_op_check(op, device->err));
    for (int i = 0; i < op->n_dst; i++) op->view[i].buf->version++;
    wk_observers_show(device, call, NULL, NULL);
    return device->recording ? wk_plan_record(device->recording, op) : wk_queue_push(device, op);
}
