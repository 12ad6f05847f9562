/* ops/random.c: tensors of random numbers, each one a stream of its device's seed. */
#include <wick/ops.h>

#include "core/dtype.h"
#include "ops/operand.h"

/* Seed and stream as kernels read them. They are an operand, so that a recorded plan does not
 * repeat its numbers: whoever records one writes them before each run. */
static wick_tensor *make_state(wick_device *device) {
    const uint64_t seed = wick_device_seed(device), stream = *wk_device_streams(device);
    const uint32_t words[] = {(uint32_t)seed, (uint32_t)(seed >> 32), (uint32_t)stream,
                              (uint32_t)(stream >> 32)};
    return wick_tensor_from_data(device, WICK_U32, WICK_SHAPE(4), words, sizeof words);
}

static wick_tensor *queue_random(wk_call *call, wick_tensor *y) {
    if (!y || wk_tensor_is_empty(y)) return y;
    wick_tensor *const state = make_state(y->device);
    if (!state) {
        wick_release(y);
        return NULL;
    }
    wk_call_add(call, y, NULL);
    wk_call_add(call, state, NULL);
    y = wk_queue_result(call, y);
    if (y) ++*wk_device_streams(y->device);
    wick_release(state);
    return y;
}

static bool is_possible(const char *op, wick_device *device, wick_dtype dtype,
                        const wk_params *params) {
    if (!wk_dtype_is_writable(op, device, dtype)) return false;
    if (!wk_dtype_is_float(dtype)) {
        wk_device_fail(device, WICK_ERR_DTYPE, "%s: makes floats, not %s", op,
                       wick_dtype_name(dtype));
        return false;
    }
    wk_random_scaling scaling;
    if (wk_random_scale(dtype, params, &scaling)) return true;
    wk_device_fail(device, WICK_ERR_VALUE,
                   params->random.fn == WK_RANDOM_UNIFORM
                       ? "%s: %s has no numbers from %g up to %g"
                       : "%s: %s has no normal numbers of mean %g and deviation %g",
                   op, wick_dtype_name(dtype), params->random.a, params->random.b);
    return false;
}

static wick_tensor *make_random(const char *op, wick_device *device, wick_dtype dtype,
                                const wick_shape *shape, const wk_params *params) {
    if (!device || !is_possible(op, device, dtype, params)) return NULL;
    wk_call call;
    wk_call_begin(&call, WK_OP_RANDOM, op);
    call.op.p = *params;
    return queue_random(&call, wk_tensor_new(device, dtype, shape));
}

wick_tensor *wick_rand(wick_device *device, wick_dtype dtype, wick_shape shape, double low,
                       double high) {
    const wk_params params = {.random = {.fn = WK_RANDOM_UNIFORM, .a = low, .b = high}};
    return make_random("rand", device, dtype, &shape, &params);
}

wick_tensor *wick_randn(wick_device *device, wick_dtype dtype, wick_shape shape, double mean,
                        double deviation) {
    const wk_params params = {.random = {.fn = WK_RANDOM_NORMAL, .a = mean, .b = deviation}};
    return make_random("randn", device, dtype, &shape, &params);
}

wick_tensor *wick_rand_bits(wick_device *device, wick_shape shape) {
    if (!device) return NULL;
    wk_call call;
    wk_call_begin(&call, WK_OP_RANDOM, "rand_bits");
    call.op.p.random.fn = WK_RANDOM_BITS;
    return queue_random(&call, wk_tensor_new(device, WICK_U32, &shape));
}
