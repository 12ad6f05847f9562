/* tensor/display.c: values for people: one number, and a tensor as text. */
#include "tensor/device.h"

#include "core/dtype.h"
#include "core/scalar.h"
#include "core/shape.h"
#include "tensor/numeral.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* NumPy's defaults: more elements than MOST_SHOWN are cut to EDGE at each end of a dimension. */
enum { EDGE = 3, MOST_SHOWN = 1000, LINE_WIDTH = 75 };

wick_status wick_read_scalar(wick_tensor *tensor, double *value) {
    if (!tensor) return WICK_ERR_ARGUMENT;
    if (!value)
        return wk_device_fail(tensor->device, WICK_ERR_ARGUMENT, "wick_read_scalar: value is NULL");
    const int64_t n = wick_tensor_size(tensor);
    if (n != 1)
        return wk_device_fail(tensor->device, WICK_ERR_SHAPE,
                              "a tensor of %" PRId64 " elements is not one number", n);
    unsigned char element[sizeof(double)];
    WK_TRY(wick_read(tensor, element, wick_tensor_bytes(tensor)));
    *value = wk_scalar_load(tensor->view.dtype, element, 0);
    return WICK_OK;
}

/* --- Lines --- */

/* What is being written. Spaces wait until something follows them: lines do not end in any. */
typedef struct picture {
    wick_shape shape, shown; /* the tensor's; of the elements that are written */
    bool is_cut[WICK_MAX_RANK];
    wk_numerals numerals;
    const void *data; /* dense, of shape shown */
    int64_t element;  /* written so far */
    char *text;       /* [capacity] */
    size_t capacity, length;
    size_t column; /* of the next character, waiting spaces counted */
    size_t n_spaces;
} picture;

static void put_char(picture *p, char c) {
    if (p->length + 1 < p->capacity) p->text[p->length] = c;
    p->length++;
}

static void put(picture *p, const char *text) {
    for (; *text != '\0'; text++) {
        p->column++;
        if (*text == ' ') {
            p->n_spaces++;
            continue;
        }
        for (; p->n_spaces > 0; p->n_spaces--) put_char(p, ' ');
        put_char(p, *text);
    }
}

/* n line ends and the indent of a dimension: as many spaces as it has brackets before it. */
static void put_lines(picture *p, int n, int dim) {
    for (int i = 0; i < n; i++) put_char(p, '\n');
    p->column = p->n_spaces = (size_t)dim + 1;
}

/* An element of a row, on a new line where it would leave no room for the brackets. */
static void put_word(picture *p, const char *word) {
    const int dim = p->shape.rank - 1;
    const size_t width = (size_t)(LINE_WIDTH - 1 - dim), indent = (size_t)dim + 1;
    if (p->column > indent && p->column + strlen(word) > width) put_lines(p, 1, dim);
    put(p, word);
}

static void put_number(picture *p) {
    char text[WK_NUMERAL_SIZE];
    wk_numeral_write(&p->numerals, p->data, p->element++, text);
    const char *word = text;
    if (p->shape.rank > 0) {
        put_word(p, word);
        return;
    }
    while (*word == ' ') word++; /* there is nothing to align with */
    put(p, word);
}

/* Between two neighbours of a dimension: rows have a line each, matrices an empty one as well. */
static void put_separator(picture *p, int dim) {
    const int n_inner = p->shape.rank - 1 - dim;
    if (n_inner == 0)
        put(p, " ");
    else
        put_lines(p, n_inner, dim);
}

static void put_dim(picture *p, int dim) {
    if (dim == p->shape.rank) {
        put_number(p);
        return;
    }
    put(p, "[");
    for (int64_t i = 0; i < p->shown.extent[dim]; i++) {
        if (i > 0) put_separator(p, dim);
        if (p->is_cut[dim] && i == EDGE) {
            put_word(p, "...");
            put_separator(p, dim);
        }
        put_dim(p, dim + 1);
    }
    put(p, "]");
}

static void put_tensor(picture *p, wick_dtype dtype, int64_t n_shown) {
    if (n_shown > 0)
        put_dim(p, 0);
    else
        put(p, "[]");
    char text[160];
    put(p, " ");
    put(p, wick_dtype_name(dtype));
    put(p, wk_shape_text(&p->shape, text, sizeof text));
    if (p->capacity > 0) p->text[p->length < p->capacity ? p->length : p->capacity - 1] = '\0';
}

/* --- Elements --- */

/* Returns whether elements are left out. */
static bool choose_shown(picture *p, int64_t n) {
    bool is_any_cut = false;
    p->shown = p->shape;
    for (int d = 0; d < p->shape.rank; d++) {
        p->is_cut[d] = n > MOST_SHOWN && p->shape.extent[d] > 2 * EDGE;
        if (p->is_cut[d]) p->shown.extent[d] = 2 * EDGE;
        is_any_cut |= p->is_cut[d];
    }
    return is_any_cut;
}

static void take_edge(wk_view *view, int dim, int64_t begin) {
    const int size = wk_dtype_get(view->dtype)->block_bytes;
    view->offset += (uint64_t)(begin * view->stride[dim]) * (uint64_t)size;
    view->extent[dim] = EDGE;
}

/* The elements of one corner. Bit d of corner: at the end of dim d instead of its beginning; false
 * where it names a dim that is not cut. */
static bool take_corner(const picture *p, unsigned corner, wk_view *from, wk_view *to) {
    for (int d = 0; d < p->shape.rank; d++) {
        const bool is_end = (corner >> d & 1U) != 0;
        if (p->is_cut[d]) {
            take_edge(from, d, is_end ? p->shape.extent[d] - EDGE : 0);
            take_edge(to, d, is_end ? EDGE : 0);
        } else if (is_end) {
            return false;
        }
    }
    return true;
}

/* The device gathers what is shown, so that little is read of a large tensor. NULL on failure. */
static wick_tensor *gather(wick_tensor *tensor, const picture *p) {
    wick_device *const device = tensor->device;
    wick_tensor *const shown = wk_tensor_new(device, tensor->view.dtype, &p->shown);
    for (unsigned corner = 0; shown && corner < 1U << p->shape.rank; corner++) {
        wk_view from = tensor->view, to = shown->view;
        if (!take_corner(p, corner, &from, &to)) continue;
        wk_call call;
        wk_call_begin(&call, WK_OP_COPY, NULL);
        wk_call_add(&call, shown, &to);
        wk_call_add(&call, tensor, &from);
        if (wk_call_queue(device, &call) != WICK_OK) return NULL; /* the scope has shown */
    }
    return shown;
}

static wick_status read_and_put(wick_tensor *tensor, picture *p) {
    wk_heap *const heap = &tensor->device->heap;
    const size_t size = wick_tensor_bytes(tensor);
    const int64_t n = wick_tensor_size(tensor);
    void *const data = wk_alloc(heap, size); /* NULL for an empty tensor, too */
    if (!data && size > 0) return wk_fail_memory(tensor->device->err, size, "the text of a tensor");
    const wick_status status = wick_read(tensor, data, size);
    if (status == WICK_OK) {
        p->data = data;
        p->numerals = wk_numerals_fit(tensor->view.dtype, data, n);
        put_tensor(p, tensor->view.dtype, n);
    }
    wk_free(heap, data, size);
    return status;
}

wick_status wick_read_text(wick_tensor *tensor, char *text, size_t capacity, size_t *length) {
    if (length) *length = 0;
    if (text && capacity > 0) text[0] = '\0';
    if (!tensor) return WICK_ERR_ARGUMENT;
    wick_device *const device = tensor->device;
    if (!text && capacity > 0)
        return wk_device_fail(device, WICK_ERR_ARGUMENT, "wick_read_text: text is NULL");
    if (device->recording)
        return wk_device_fail(device, WICK_ERR_STATE, "a recording has no values to show yet");
    if (wk_dtype_is_block(tensor->view.dtype) || tensor->view.layout != WK_LAYOUT_RAW)
        return wk_device_fail(device, WICK_ERR_DTYPE, "a weight of type %s has no text form",
                              wick_dtype_name(tensor->view.dtype));
    picture p = {.shape = wk_tensor_shape_of(tensor), .text = text, .capacity = capacity};
    const wick_scope scope = wick_scope_begin(device); /* frees what is gathered */
    wick_tensor *const shown =
        choose_shown(&p, wick_tensor_size(tensor)) ? gather(tensor, &p) : tensor;
    const wick_status status = shown ? read_and_put(shown, &p) : device->err->status;
    wick_scope_end(scope);
    if (status == WICK_OK && length) *length = p.length;
    return status;
}
