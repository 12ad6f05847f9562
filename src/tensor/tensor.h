/* tensor/tensor.h: devices, tensors and the one road from an operation to a kernel.
 *
 * ops/ builds a wk_call and hands it to wk_call_queue; device.c opens backends; run.c drains the
 * queue; plan.c records and replays. */
#ifndef WK_TENSOR_TENSOR_H
#define WK_TENSOR_TENSOR_H

#include "backend/backend.h"
#include "core/compiler.h"

#include <wick/tensor.h>

/* A view over a reference-counted buffer. Belongs to one device. */
struct wick_tensor {
    wick_device *device;
    wk_view view; /* holds one reference to view.buf */
    uint32_t refs;
    uint32_t scope;             /* depth of the scope that owns one reference; 0: none */
    wick_tensor *next;          /* in the list of its scope */
    wick_tensor *older, *newer; /* all of the device */
};

/* --- Errors ---
 *
 * A call that fails leaves its sentence in one place: the sticky error of the device, or the error
 * of the object that has borrowed the device for its call (a session, a model that loads). */

/* What fails from now on goes to err, which must be clear. Returns what wk_device_give_back wants
 * when the call ends. */
wick_error *wk_device_borrow(wick_device *device, wick_error *err);
void wk_device_give_back(wick_device *device, wick_error *before);
/* Where failures go now. */
wick_error *wk_device_err(wick_device *device);
/* Writes the sentence there unless one is there already; logs in debug. Returns status. */
wick_status wk_device_fail(wick_device *device, wick_status status, const char *format, ...)
    WK_PRINTF(3, 4);
wk_heap *wk_device_heap(wick_device *device);

/* How many streams of the device's seed were taken: the number of the next one. */
uint64_t *wk_device_streams(wick_device *device);

/* One line for the log of the device, where it has one. */
void wk_device_log(const wick_device *device, wick_log_level level, const char *format, ...)
    WK_PRINTF(3, 4);

/* Begins to open a CPU device beside this one, with its threads, math, allocator, log and checks:
 * for what the other device has no room for. */
wick_status wk_device_open_host(const wick_device *device, wick_device_opening **out,
                                wick_error *err);

/* --- Loss: a device that is lost is replaced, the wick_device stays --- */

bool wk_device_can_be_lost(const wick_device *device);
/* As far as the calls so far have shown. */
bool wk_device_is_lost(const wick_device *device);
/* Looks. WICK_ERR_DEVICE_LOST with its sentence, or WICK_OK. */
wick_status wk_device_check(wick_device *device);
/* Counts replacements: what was made under another number is lost and can only be released. */
uint32_t wk_device_generation(const wick_device *device);
/* Opens a lost device again, after a delay and at most three times in a row; drops what was queued.
 * WICK_PENDING: call again. WICK_OK: there is a device, and the error message of the loss is
 * cleared. WICK_ERR_DEVICE_LOST: no further attempt. */
wick_status wk_device_recover(wick_device *device);
/* It has been of use: attempts are counted from zero again. */
void wk_device_settle(wick_device *device);

/* --- Compiling --- */

/* Kernels are compiled before their first use, and wk_plan_rehearse does so ahead of it. */
bool wk_device_compiles(const wick_device *device);
/* Each op is computed again, and compared (wick_device_desc.verify). */
bool wk_device_verifies(const wick_device *device);
/* Its memory is not the host's: results come back by reads alone. */
bool wk_device_is_apart(const wick_device *device);
/* WICK_PENDING while some are. Never blocks. */
wick_status wk_device_compiled(wick_device *device);
/* How many kernels its compiler has refused so far; each was logged, and is not used any more. */
uint32_t wk_device_refusals(const wick_device *device);

/* --- Tensors --- */

/* A dense tensor, contents undefined; while a plan is being recorded its memory exists only later.
 * NULL on failure. The innermost scope owns it, or else the caller. */
wick_tensor *wk_tensor_new(wick_device *device, wick_dtype dtype, const wick_shape *shape);
/* How a view comes from the tensor x that it was asked of. */
typedef enum wk_view_kind {
    WK_VIEW_PERMUTE, /* dimension i is dimension dims[i] of x */
    WK_VIEW_RESHAPE, /* all elements of x in row-major order, in another shape or the same */
    WK_VIEW_SLICE,   /* of dimension slice.dim: elements start, start + step, ... */
    WK_VIEW_EXPAND,  /* x broadcast to the view's shape */
    WK_VIEW_WINDOWS, /* of dimension windows.dim: pieces of windows.size elements, windows.dilation
                      * apart, that begin windows.step apart; the new last dimension counts within a
                      * piece */
    /* Of dimensions diagonal.dim, which go; a new last one: y[.., i] = x[i, i]. */
    WK_VIEW_DIAGONAL,
} wk_view_kind;
typedef struct wk_view_step {
    wk_view_kind kind;
    union {
        int dims[WICK_MAX_RANK];
        struct {
            int dim;
            int64_t start, step;
        } slice;
        struct {
            int dim;
            int64_t size, step, dilation;
        } windows;
        struct {
            int dim[2];
        } diagonal;
    };
} wk_view_step;

/* A view of the storage of tensor; takes its own reference to the buffer. view->buf and view->dtype
 * must be the tensor's; step is for the observers. Same ownership. */
wick_tensor *wk_tensor_view(wick_tensor *tensor, const wk_view *view, const wk_view_step *step);
/* A scope of an operation that is made of others: what they queue has its name (a constant), unless
 * another operation is already under way, of which this one is a part. */
wick_scope wk_operation_begin(wick_device *device, const char *name);
/* y (may be NULL), which was made in the scope, belongs to the scope around from now on, or else to
 * the caller. Returns y. */
wick_tensor *wk_scope_keep(wick_scope scope, wick_tensor *y);

/* Memory that the weights of a model share: systems give large pages to large pieces only. Zeros:
 * there is none. */
typedef struct wk_weight_store {
    wick_device *device;
    wk_buffer *buf;
    uint64_t used; /* bytes */
} wk_weight_store;

typedef struct wk_weight_desc {
    wick_dtype dtype;
    wick_shape shape; /* [n, k], or a vector's */
    uint32_t uses;    /* wk_weight_use bits */
    const void *data; /* raw blocks that stay there for the tensor's whole life; or NULL */
    /* Of weights side by side: its place in their memory, which is that of one that was made before
     * or, NULL, is new. room 0: it has memory of its own. */
    const wick_tensor *neighbour;
    uint64_t room, begin; /* bytes of all; where it begins, from the neighbour on (modulo 2^64) */
} wk_weight_desc;

/* On failure the device holds the sentence. */
wick_status wk_weight_store_make(wick_device *device, uint64_t bytes, wk_weight_store *out);
/* The weights keep what they have of it. */
void wk_weight_store_release(wk_weight_store *store);
/* Bytes of the store that a weight takes. is_mapped: desc.data will be given. */
uint64_t wk_weight_room(const wick_device *device, const wk_weight_desc *desc, bool is_mapped);

/* A weight in the layout its device wants, in the store where that has room left; rows are sent
 * with wk_weight_upload. Owned by the caller, never by a scope. desc->data is used in place where
 * the layout is RAW (*in_place: whether it is). In a recording, without data: a place. */
wick_tensor *wk_weight_new(wick_device *device, const wk_weight_desc *desc, wk_weight_store *store,
                           bool *in_place);
/* Bytes that such a weight takes on the device; 0 where its size overflows. */
uint64_t wk_weight_bytes(const wick_device *device, wick_dtype dtype, const wick_shape *shape,
                         uint32_t uses);
/* Whether the device wants the weights of products of the same x side by side. */
bool wk_device_joins_products(const wick_device *device);
/* Whether the device keeps such a weight as the rows of its file: of a product, it has no layout
 * for this type, and so no fast kernel, or the rows are to stay where they are (uses). */
bool wk_weight_is_raw(const wick_device *device, wick_dtype dtype, const wick_shape *shape,
                      uint32_t uses);
/* Bytes of the device's memory that it then occupies, as far as the backend knows. */
uint64_t wk_weight_footprint(const wick_device *device, wick_dtype dtype, const wick_shape *shape,
                             uint32_t uses);
/* Raw blocks of whole rows, see wk_backend.upload_rows. */
wick_status wk_weight_upload(wick_tensor *weight, int64_t first_row, int64_t n_rows,
                             const void *blocks);
static inline wick_shape wk_tensor_shape_of(const wick_tensor *tensor) {
    wick_shape shape = {.rank = tensor->view.rank};
    for (int i = 0; i < shape.rank; i++) shape.extent[i] = tensor->view.extent[i];
    return shape;
}

/* --- Calls: an op with the tensors it was asked for --- */

typedef struct wk_call {
    wk_op op;
    wick_tensor *operand[WK_MAX_OPERANDS]; /* same order as op.view; NULL: absent */
} wk_call;

/* Begins a call: it has no operands, and its parameters are zero. name: what failures call it,
 * which is there for as long as the op; NULL: that of its opcode. Inside an operation it is its
 * name. */
void wk_call_begin(wk_call *call, wk_opcode code, const char *name);
/* Adds the next operand (destinations first); tensor NULL: absent. view NULL: the tensor's own.
 * Returns its place in the call. */
wk_view *wk_call_add(wk_call *call, wick_tensor *tensor, const wk_view *view);
/* Checks it (wk_op_check), shows it to the observers (observe.h), and queues or records it. On
 * failure the device's sticky error is set. */
wick_status wk_call_queue(wick_device *device, wk_call *call);

/* Whether the device itself has a kernel for such an op, of these dtypes; else the operation may be
 * made of others. */
bool wk_device_computes(const wick_device *device, const wk_op *op);

/* --- Memory that others keep --- */

/* References to a buffer; NULL is allowed. */
void wk_buffer_retain(wk_buffer *buf);
void wk_buffer_release(wick_device *device, wk_buffer *buf);
/* To all that an op names. */
void wk_op_retain(const wk_op *op);
void wk_op_release(wick_device *device, const wk_op *op);
/* A tensor that shows a view; takes its own reference to the buffer. Observers do not see it. Owned
 * as wk_tensor_new's. */
wick_tensor *wk_tensor_of_view(wick_device *device, const wk_view *view);

/* --- Contents --- */

/* The contents, in *out, memory of wick_tensor_bytes from the device's heap: the caller's, NULL on
 * failure. Failures go to err and not to the device. Blocks, as wick_read. */
wick_status wk_tensor_copy_out(wick_tensor *tensor, void **out, wick_error *err);

/* --- Faults --- */

/* What it holds does not matter any more, so that it is not spoiled, either. */
void wk_tensor_forget_fault(wick_tensor *tensor);

#endif
