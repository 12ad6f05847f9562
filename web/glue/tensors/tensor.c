/* web/glue/tensors/tensor.c: doors to tensors: one for all operations, which it knows by number. */
#include "../door.h"

#include <stdlib.h>

/* What an operation is given: its tensors, those that are left out NULL, and its numbers. Results
 * take the places of the tensors. */
typedef struct operands {
    wick_device *device;
    wick_tensor **tensors; /* [n_tensors, or more where there are more results] */
    size_t n_tensors, n_results;
    const double *numbers;
    size_t n_numbers;
    /* What is given by a pointer: the numbers as integers, and PADDING zeros. */
    int64_t *longs;
    int *ints;
    union {
        wick_rope_desc rope;
        wick_attention_desc attention;
    } desc;
} operands;

enum { PADDING = 16 };

/* --- Numbers --- */

static int64_t whole(double x) {
    if (!(x >= -0x1p62)) return INT64_MIN;
    return x <= 0x1p62 ? (int64_t)x : INT64_MAX;
}

static int narrow(double x) {
    if (!(x >= INT32_MIN)) return INT32_MIN;
    return x <= INT32_MAX ? (int)x : INT32_MAX;
}

static double number(const operands *in, size_t i) {
    return i < in->n_numbers ? in->numbers[i] : 0;
}

/* The rest of the numbers. A rank that is too large is refused by the operation. */
static wick_shape shape(const operands *in, size_t first) {
    wick_shape shape = {.rank = (int)(in->n_numbers - first)};
    for (int i = 0; i < shape.rank && i < WICK_MAX_RANK; i++)
        shape.extent[i] = whole(in->numbers[first + (size_t)i]);
    return shape;
}

static bool integers_make(operands *in) {
    const size_t n = in->n_numbers + PADDING;
    in->longs = calloc(n, sizeof *in->longs + sizeof *in->ints);
    if (in->longs == NULL) return false;
    in->ints = (int *)(in->longs + n);
    for (size_t i = 0; i < in->n_numbers; i++) {
        in->longs[i] = whole(in->numbers[i]);
        in->ints[i] = narrow(in->numbers[i]);
    }
    return true;
}

/* --- Operations --- */

#define T(i) in->tensors[i]
#define N(i) number(in, i)
#define F(i) ((float)number(in, i))
#define I(i) narrow(number(in, i))
#define L(i) whole(number(in, i))
#define B(i) (number(in, i) != 0)
#define DTYPE(i) ((wick_dtype)narrow(number(in, i)))
/* Lists that begin with number i, and how many numbers there are from it on. */
#define INTS(i) (in->ints + (i))
#define LONGS(i) (in->longs + (i))
#define REST(i) (in->n_numbers > (i) ? (int)(in->n_numbers - (i)) : 0)
/* The dims behind number i, which is 0 where all are meant. */
#define DIMS(i) REST((i) + 1), B(i) ? INTS((i) + 1) : NULL
/* Number 0 as that of a list's entries, or of results: what is none is refused. */
#define COUNT count_of(in)
#define RANK wick_tensor_shape(T(0)).rank

static size_t count_of(const operands *in) {
    const int64_t given = L(0);
    return given > 0 && given <= UINT16_MAX ? (size_t)given : 0;
}

/* Tensor 0, where from number first on there are two lists with an entry for each of its dims. */
static wick_tensor *each_dim(const operands *in, int first, const char *name) {
    const int rank = RANK;
    if (REST((size_t)first) == 2 * rank) return T(0);
    (void)door_refuse(WICK_ERR_SHAPE, "%s: two lists of %d numbers are wanted, one for each dim",
                      name, rank);
    return NULL;
}

static const wick_rope_desc *rope_desc(operands *in) {
    in->desc.rope = (wick_rope_desc){.rotary_dim = I(0),
                                     .theta = N(1),
                                     .scale_factor = N(2),
                                     .offset = L(3),
                                     .interleaved = B(4),
                                     .layout = (wick_rope_layout)I(5)};
    return &in->desc.rope;
}

static const wick_attention_desc *attention_desc(operands *in) {
    in->desc.attention = (wick_attention_desc){.scale = F(0),
                                               .softcap = F(1),
                                               .window = I(2),
                                               .causal = B(3),
                                               .mask = T(3),
                                               .bias = T(4),
                                               .sinks = T(5),
                                               .slopes = T(6)};
    return &in->desc.attention;
}

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
