/* ops/cached.c: attention over the paged cache of a model. */
#include "ops/cached.h"

#include "ops/operand.h"

wick_tensor *wk_attention_cached(wick_tensor *q, const wk_kv_seen *seen, wick_tensor *descriptor,
                                 const wk_params *params) {
    wick_tensor *const operands[] = {q, seen->k_cache, seen->v_cache, descriptor};
    const wick_tensor *const v_cache = seen->v_cache;
    if (!wk_operands_present("attention_cached", operands, WK_COUNT(operands))) return NULL;
    if (q->view.rank != 3 || v_cache->view.rank != 4) {
        wk_device_fail(q->device, WICK_ERR_SHAPE,
                       "attention_cached: q has rank %d and the cache rank %d, not 3 and 4",
                       q->view.rank, v_cache->view.rank);
        return NULL;
    }
    const int64_t *const extent = q->view.extent;
    const wick_shape shape = {.rank = 3, .extent = {extent[0], extent[1], v_cache->view.extent[3]}};
    wick_tensor *const y = wk_tensor_new(q->device, q->view.dtype, &shape);
    wk_call call;
    wk_call_begin(&call, WK_OP_ATTENTION_CACHED, NULL);
    wk_call_add(&call, y, NULL);
    for (size_t i = 0; i < WK_COUNT(operands); i++) wk_call_add(&call, operands[i], NULL);
    wk_call_add(&call, seen->sinks, NULL);
    wk_call_add(&call, seen->slopes, NULL);
    call.op.p.cached = params->cached;
    return wk_queue_result(&call, y);
}

wick_status wk_kv_append_cached(wick_tensor *k_cache, wick_tensor *v_cache, wk_kv_rows fresh,
                                wick_tensor *descriptor, const wk_params *params) {
    wick_tensor *const operands[] = {k_cache, v_cache, fresh.k, fresh.v, descriptor};
    if (!wk_operands_present("kv_append", operands, WK_COUNT(operands))) return WICK_ERR_ARGUMENT;
    wk_call call;
    wk_call_begin(&call, WK_OP_KV_APPEND, NULL);
    for (size_t i = 0; i < WK_COUNT(operands); i++) wk_call_add(&call, operands[i], NULL);
    call.op.p.cached = params->cached;
    return wk_call_queue(k_cache->device, &call);
}
