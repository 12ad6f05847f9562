/* web/glue/tensors/tensor.c: doors to tensors: one for all operations, which it knows by number. */
#include "operands.h"

/* --- Operations --- */

typedef enum op_code {
#define OP(name, ...) OP_##name,
#define PARTS OP
#include "ops.def"
#undef PARTS
#undef OP
} op_code;

/* parts: results of an operation of PARTS, *n of them. */
static wick_tensor *run(op_code code, operands *in, wick_tensor **parts, size_t *n) {
    switch (code) {
#define OP(name, ...)                                                                              \
    case OP_##name: return wick_##name(__VA_ARGS__);
#define PARTS(name, ...)                                                                           \
    case OP_##name: *n = wick_##name(__VA_ARGS__, parts); break;
#include "ops.def"
#undef PARTS
#undef OP
    }
    return *n > 0 ? parts[0] : NULL;
}

static bool has_parts(op_code code) {
    switch (code) {
#define OP(name, ...)
#define PARTS(name, ...) case OP_##name:
#include "ops.def"
#undef PARTS
#undef OP
        return true;
    default: return false;
    }
}

/* Puts the results in the places of the tensors, no more than are wanted; NULL: it failed. */
static wick_tensor *run_all(op_code code, operands *in) {
    size_t n = 0;
    const size_t room = has_parts(code) ? in->n_results + in->n_tensors + COUNT + 1 : 1;
    wick_tensor **const parts = calloc(room, sizeof(wick_tensor *));
    wick_tensor *const y = parts != NULL && integers_make(in) ? run(code, in, parts, &n) : NULL;
    for (size_t i = 0; i < n; i++) {
        if (i < in->n_results)
            T(i) = parts[i];
        else
            wick_release(parts[i]);
    }
    free(in->longs);
    free(parts);
    return y;
}

/* tensors: operands, with room for the results. A status. */
DOOR(int, op, wick_device *device, uint32_t code, wick_tensor **tensors, size_t n_tensors,
     size_t n_results, const double *numbers, size_t n_numbers) {
    operands in = {.device = device,
                   .tensors = tensors,
                   .n_tensors = n_tensors,
                   .n_results = n_results,
                   .numbers = numbers,
                   .n_numbers = n_numbers};
    door_error = (wick_error){0};
    wick_tensor *const y = run_all((op_code)code, &in);
    if (y == NULL && door_error.status != WICK_OK) return door_error.status;
    if (y == NULL) return door_fail(WICK_ERR_OUT_OF_MEMORY, device);
    tensors[0] = y;
    return WICK_OK;
}

/* The names of operations and dtypes, in the order of their numbers. */
DOOR(const char *, names, void) {
    record_begin();
    record_open("ops", '[');
#define OP(name, ...) record_text(NULL, #name);
#define PARTS OP
#include "ops.def"
#undef PARTS
#undef OP
    record_close(']');
    record_open("dtypes", '[');
    for (int i = 0; i < WICK_DTYPE_COUNT_; i++) record_text(NULL, wick_dtype_name((wick_dtype)i));
    record_close(']');
    return record_end();
}

static uint64_t joined(uint32_t low, uint32_t high) { return (uint64_t)high << 32 | low; }

DOOR(void, device_set_seed, wick_device *device, uint32_t seed_low, uint32_t seed_high,
     uint32_t stream_low, uint32_t stream_high) {
    wick_device_set_seed(device, joined(seed_low, seed_high));
    wick_device_set_stream(device, joined(stream_low, stream_high));
}

/* --- Tensors --- */

/* bytes, of alloc, become the tensor's; extents: the shape. */
DOOR(wick_tensor *, tensor_make, wick_device *device, int dtype, const double *extents, size_t rank,
     void *bytes, size_t size) {
    const operands in = {.numbers = extents, .n_numbers = rank};
    wick_tensor *const made =
        wick_tensor_from_memory(device, (wick_dtype)dtype, shape(&in, 0), bytes, size, free, bytes);
    if (made == NULL) (void)door_fail(WICK_ERR_OUT_OF_MEMORY, device);
    return made;
}

DOOR(int, tensor_write, wick_tensor *tensor, const void *bytes, size_t size) {
    return door_fail(wick_write(tensor, bytes, size), wick_tensor_device(tensor));
}

DOOR(void, tensor_release, wick_tensor *tensor) { wick_release(tensor); }

/* out: dtype, rank and extents. Returns the bytes of its contents. */
DOOR(size_t, tensor_describe, const wick_tensor *tensor, double out[2 + WICK_MAX_RANK]) {
    const wick_shape shape = wick_tensor_shape(tensor);
    out[0] = wick_tensor_dtype(tensor);
    out[1] = shape.rank;
    for (int i = 0; i < shape.rank; i++) out[2 + i] = (double)shape.extent[i];
    return wick_tensor_bytes(tensor);
}

/* WICK_PENDING: what is given now would have to wait. */
DOOR(int, device_flush, wick_device *device) { return door_fail(wick_flush(device), device); }

/* WICK_PENDING: call again. */
DOOR(int, device_recover, wick_device *device) {
    return door_fail(wick_device_recover(device), device);
}

DOOR(wick_reading *, read_start, wick_tensor *tensor) {
    wick_reading *reading = NULL;
    (void)door_fail(wick_read_start(tensor, &reading), wick_tensor_device(tensor));
    return reading;
}

DOOR(int, read_poll, wick_reading *reading, wick_device *device) {
    return door_fail(wick_read_poll(reading), device);
}

/* bytes NULL: it is not wanted any more. */
DOOR(int, read_finish, wick_reading *reading, wick_device *device, void *bytes, size_t size) {
    const wick_status status = wick_read_finish(reading, bytes, size);
    return bytes != NULL ? door_fail(status, device) : WICK_OK;
}
