/* tests/op_compare.h: a run over recorded cases: its inputs, and whether what comes back is what
 * was expected. */
#ifndef OP_COMPARE_H
#define OP_COMPARE_H

#include "op_bindings.h"

#include "core/half.h"
#include "core/shape.h"
#include "format/safetensors.h"
#include "sys/file.h"

#include <wick/grad.h>

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_OPS = 256 };

typedef struct options {
    const char *folder, *ops, *may_fall_back; /* comma lists or NULL */
    wick_device_desc device;
    bool wants_grad, is_json, is_present;
} options;

typedef struct op_count {
    char name[32];
    int passed, failed, absent;
    int n_fell_back; /* of those passed */
} op_count;

/* Cases with values that some hardware treats in its own way are counted apart as well. */
static const char *const special_tags[] = {"nan", "inf", "denormal"};

typedef struct runner {
    const options *options;
    wk_heap heap;
    wk_file *data_file;
    const unsigned char *data;
    wk_arena names;
    wk_safetensors tensors;
    wick_device *device; /* of the case */
    wick_device *strict, *lenient;
    FILE *report; /* failures */
    op_count counts[MAX_OPS];
    int n_counts;
    op_count special[WK_COUNT(special_tags)];
} runner;

/* --- Inputs --- */

static wick_tensor *apply_step(wick_tensor *x, const wk_json *step) {
    const wk_json *const permute = wk_json_get(step, "permute");
    const wk_json *const slice = wk_json_get(step, "slice");
    const wk_json *const expand = wk_json_get(step, "expand");
    if (permute != NULL) {
        int dims[WICK_MAX_RANK];
        const wick_shape list = shape_of(permute);
        for (int i = 0; i < list.rank; i++) dims[i] = (int)list.extent[i];
        return wick_permute(x, list.rank, dims);
    }
    if (slice != NULL) {
        const wick_shape part = shape_of(slice); /* start, stop, step */
        return wick_slice(x, (int)wk_json_get(step, "dim")->integer, part.extent[0], part.extent[1],
                          part.extent[2]);
    }
    if (expand != NULL) return wick_expand(x, shape_of(expand));
    return wick_unsqueeze(x, (int)wk_json_get(step, "unsqueeze")->integer);
}

/* The stored array as a tensor, seen through the input's view; NULL when it is not there. */
static wick_tensor *make_input(const runner *r, const wk_json *input) {
    const wk_json *const name = wk_json_get(input, "tensor");
    const wick_file_tensor *const stored = wk_safetensors_find(&r->tensors, name->string);
    if (stored == NULL) return NULL;
    wick_tensor *x = wick_tensor_from_data(r->device, stored->dtype, stored->shape,
                                           r->data + stored->offset, (size_t)stored->size);
    const wk_json *const view = wk_json_get(input, "view");
    for (const wk_json *step = view == NULL ? NULL : view->child; step != NULL; step = step->next) {
        x = apply_step(x, step);
    }
    return x;
}

static bool make_inputs(const runner *r, test_case *c) {
    const wk_json *const inputs = wk_json_get(c->json, "inputs");
    for (const wk_json *e = inputs->child; e != NULL; e = e->next) {
        if (c->n_inputs == MAX_INPUTS) return false;
        const wk_json *const role = wk_json_get(e, "role");
        if (role != NULL) c->role[c->n_inputs] = role->string;
        c->has_roles |= role != NULL;
        c->input[c->n_inputs] = make_input(r, e);
        if (c->input[c->n_inputs++] == NULL) return false;
    }
    return true;
}

/* --- Comparing --- */

typedef struct value {
    bool is_float;
    double real;
    int64_t whole;
} value;

static value value_at(wick_dtype dtype, const unsigned char *bytes, int64_t i) {
    uint64_t word = 0;
    size_t size = 8;
    switch (dtype) {
    case WICK_F32:
    case WICK_I32:
    case WICK_U32: size = 4; break;
    case WICK_F16:
    case WICK_BF16:
    case WICK_I16: size = 2; break;
    case WICK_I8:
    case WICK_U8:
    case WICK_BOOL: size = 1; break;
    default: break;
    }
    memcpy(&word, bytes + size * (size_t)i, size);
    double real;
    memcpy(&real, &word, sizeof real);
    switch (dtype) {
    case WICK_F64: return (value){.is_float = true, .real = real};
    case WICK_F32: return (value){.is_float = true, .real = wk_f32_from_bits((uint32_t)word)};
    case WICK_F16: return (value){.is_float = true, .real = wk_f16_to_f32((uint16_t)word)};
    case WICK_BF16: return (value){.is_float = true, .real = wk_bf16_to_f32((uint16_t)word)};
    case WICK_I32: return (value){.whole = (int32_t)word};
    case WICK_I16: return (value){.whole = (int16_t)word};
    case WICK_I8: return (value){.whole = (int8_t)word};
    default: return (value){.whole = (int64_t)word};
    }
}

typedef struct bounds {
    double abs, rel;
    bool signed_zero;
    bool may_flush; /* f32 and bf16 that are subnormal may be zeros: WebGPU allows it */
} bounds;

static bool agrees(const bounds *b, value got, value expected) {
    if (!expected.is_float) return got.whole == expected.whole;
    const double y = got.real, w = expected.real;
    if (isnan(w) || isnan(y)) return isnan(w) && isnan(y);
    if (isinf(w) || isinf(y)) return w == y;
    if (b->signed_zero && w == 0 && y == 0) return signbit(w) == signbit(y);
    if (b->may_flush && y == 0 && fabs(w) < FLT_MIN) return true;
    return fabs(y - w) <= b->abs + b->rel * fabs(w);
}

static void print_value(FILE *file, value v) {
    if (v.is_float) fprintf(file, "%.9g", v.real);
    if (!v.is_float) fprintf(file, "%" PRId64, v.whole);
}

static bool has_tag(const test_case *c, const char *tag) {
    const wk_json *const tags = wk_json_get(c->json, "tags");
    for (const wk_json *e = tags == NULL ? NULL : tags->child; e != NULL; e = e->next) {
        if (wk_str_is(e->string, tag)) return true;
    }
    return false;
}

static void report(const runner *r, const test_case *c, const char *what) {
    fprintf(r->report, "%.*s: %.*s: %s\n", (int)c->op.size, c->op.text, (int)c->id.size, c->id.text,
            what);
}

static bool same_contents(const runner *r, const test_case *c, const char *key,
                          const wick_file_tensor *expected, const unsigned char *got,
                          int64_t count) {
    const wk_json *const tolerance = wk_json_get(c->json, key);
    const bounds b = {.abs = number(wk_json_get(tolerance, "abs")),
                      .rel = number(wk_json_get(tolerance, "rel")),
                      .signed_zero = has_tag(c, "signed-zero"),
                      .may_flush = r->options->device.backend == WICK_BACKEND_WEBGPU &&
                                   expected->dtype != WICK_F64};
    for (int64_t i = 0; i < count; i++) {
        const value y = value_at(expected->dtype, got, i);
        const value w = value_at(expected->dtype, r->data + expected->offset, i);
        if (agrees(&b, y, w)) continue;
        fprintf(r->report, "%.*s: %.*s: element %" PRId64 " is ", (int)c->op.size, c->op.text,
                (int)c->id.size, c->id.text, i);
        print_value(r->report, y);
        fprintf(r->report, ", expected ");
        print_value(r->report, w);
        fprintf(r->report, "\n");
        return false;
    }
    return true;
}

/* bool and u8 are both one byte of 0 or 1 and stand for each other. */
static wick_dtype stored_dtype(wick_dtype dtype) { return dtype == WICK_BOOL ? WICK_U8 : dtype; }

/* name: of the expected array; key: of the tolerance. */
static bool check_output(runner *r, const test_case *c, const wk_json *name, const char *key,
                         wick_tensor *y) {
    const wick_file_tensor *const expected = wk_safetensors_find(&r->tensors, name->string);
    wick_error error = {0};
    if (y == NULL || expected == NULL) {
        wick_device_error(r->device, &error);
        report(r, c, expected == NULL ? "its output is not in the file" : error.message);
        return false;
    }
    const wick_shape got_shape = wick_tensor_shape(y);
    if (!wk_shape_equal(&got_shape, &expected->shape) ||
        stored_dtype(wick_tensor_dtype(y)) != stored_dtype(expected->dtype)) {
        char text[2][160];
        fprintf(r->report, "%.*s: %.*s: result is %s %s, expected %s %s\n", (int)c->op.size,
                c->op.text, (int)c->id.size, c->id.text, wick_dtype_name(wick_tensor_dtype(y)),
                wk_shape_text(&got_shape, text[0], sizeof text[0]),
                wick_dtype_name(expected->dtype),
                wk_shape_text(&expected->shape, text[1], sizeof text[1]));
        return false;
    }
    const size_t size = wick_tensor_bytes(y);
    unsigned char *const got = malloc(size + 1);
    bool is_same = got != NULL && wick_read(y, got, size) == WICK_OK;
    if (is_same) {
        is_same = same_contents(r, c, key, expected, got, wick_tensor_size(y));
    } else {
        wick_device_error(r->device, &error);
        report(r, c, error.message);
    }
    free(got);
    return is_same;
}

/* As many outputs as there are expected ones, each of them right. */
static bool check_outputs(runner *r, const test_case *c, wick_tensor *first) {
    const wk_json *name = wk_json_get(c->json, "outputs")->child;
    size_t n = 0;
    for (; name != NULL; name = name->next) {
        if (n == MAX_OUTPUTS ||
            !check_output(r, c, name, "tolerance", n == 0 ? first : c->more[n - 1])) {
            return false;
        }
        n++;
    }
    if (c->more[n - 1] == NULL) return true;
    report(r, c, "there are more outputs than expected");
    return false;
}

/* --- Gradients --- */

enum { NO_INPUT = -1 };

/* The number of the input that an entry of grads is for. */
static int input_of(const test_case *c, const wk_json *entry) {
    int n = 0;
    for (size_t i = 0; i < entry->key.size; i++) n = 10 * n + entry->key.text[i] - '0';
    return n >= 0 && (size_t)n < c->n_inputs ? n : NO_INPUT;
}

/* Watches the inputs whose gradients are recorded. One that shows elements more than once is copied
 * before: its gradient is wanted as it is seen. */
static bool watch_inputs(const test_case *c, const wk_json *grads, wick_tape *tape) {
    for (const wk_json *e = grads->child; e != NULL; e = e->next) {
        const int i = input_of(c, e);
        if (i == NO_INPUT) return false;
        wick_tensor **const x = (wick_tensor **)&c->input[i];
        if (!wk_view_is_writable(&(*x)->view)) *x = wick_contiguous(*x);
        if (wick_tape_watch(tape, *x) != WICK_OK) return false;
    }
    return true;
}

static bool check_gradients(runner *r, const test_case *c, wick_tape *tape, wick_tensor *y) {
    const wk_json *const grads = wk_json_get(c->json, "grads");
    const wk_json *const name = wk_json_get(c->json, "grad_output");
    wick_tensor *x[MAX_INPUTS], *got[MAX_INPUTS], *grad_y = NULL;
    size_t n = 0;
    if (name != NULL) {
        const wick_file_tensor *const given = wk_safetensors_find(&r->tensors, name->string);
        grad_y = given == NULL
                     ? NULL
                     : wick_tensor_from_data(r->device, given->dtype, given->shape,
                                             r->data + given->offset, (size_t)given->size);
        if (grad_y == NULL) return false;
    }
    for (const wk_json *e = grads->child; e != NULL; e = e->next) x[n++] = c->input[input_of(c, e)];
    if (wick_grad(tape, y, grad_y, x, n, got) != WICK_OK) {
        wick_error error = {0};
        wick_device_error(r->device, &error);
        report(r, c, error.message);
        return false;
    }
    n = 0;
    for (const wk_json *e = grads->child; e != NULL; e = e->next)
        if (!check_output(r, c, e, "grad_tolerance", got[n++])) return false;
    return true;
}

#endif
