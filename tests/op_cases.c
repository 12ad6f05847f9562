/* op_cases: runs recorded cases of tensor operations (inputs and expected outputs, or the kind of
 * refusal) through the public functions and compares what comes back.
 *
 *   op_cases DIR [--ops a,b] [--present] [--backend NAME] [--null WORDS] [--isa NAME] [--threads N]
 *            [--strict [--may-fall-back i64,f64]] [--grad] [--json] [options of webgpu_options.h]
 *
 * DIR holds cases.jsonl, one case a line, and data.safetensors. A case is absent when Wick has no
 * such operation, which --present passes over, and under --grad when it asks for gradients.
 * --may-fall-back names types that the backend need not have: cases with arrays of these run
 * without --strict, and it is said how many of them the backend did not compute alone. Exit status:
 * 0 all selected cases passed, 1 one failed or was absent, 2 wrong use. */
#include "op_bindings.h"
#include "webgpu_options.h"

#include "core/half.h"
#include "core/shape.h"
#include "format/safetensors.h"
#include "sys/file.h"
#include "tensor/device.h"

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

static bool same_contents(const runner *r, const test_case *c, const wick_file_tensor *expected,
                          const unsigned char *got, int64_t count) {
    const wk_json *const tolerance = wk_json_get(c->json, "tolerance");
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

/* name: of the expected array. */
static bool check_output(runner *r, const test_case *c, const wk_json *name, wick_tensor *y) {
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
        is_same = same_contents(r, c, expected, got, wick_tensor_size(y));
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
        if (n == MAX_OUTPUTS || !check_output(r, c, name, n == 0 ? first : c->more[n - 1])) {
            return false;
        }
        n++;
    }
    if (c->more[n - 1] == NULL) return true;
    report(r, c, "there are more outputs than expected");
    return false;
}

static const char *kind_of(wick_status status) {
    switch (status) {
    case WICK_ERR_SHAPE: return "shape";
    case WICK_ERR_DIM: return "dim";
    case WICK_ERR_INDEX: return "index";
    case WICK_ERR_DTYPE: return "dtype";
    case WICK_ERR_VALUE: return "value";
    default: return wick_status_text(status);
    }
}

/* An index out of range may come to light only when the result is read. */
static bool check_refusal(runner *r, const test_case *c, wk_str kind, wick_tensor *y) {
    unsigned char unread[4096];
    wick_error error = {0};
    if (y != NULL && wick_tensor_bytes(y) <= sizeof unread) {
        (void)wick_read(y, unread, wick_tensor_bytes(y));
        if (!wk_str_is(kind, "index")) {
            report(r, c, "was not refused");
            return false;
        }
    }
    wick_device_error(r->device, &error);
    /* Without operands there is no device to keep the error: NULL is all there can be. */
    const char *const got =
        c->n_inputs == 0 && y == NULL && error.status == WICK_OK ? "value" : kind_of(error.status);
    if (wk_str_is(kind, got)) return true;
    fprintf(r->report, "%.*s: %.*s: refused as %s (%s), expected %.*s\n", (int)c->op.size,
            c->op.text, (int)c->id.size, c->id.text, got, error.message, (int)kind.size, kind.text);
    return false;
}

/* --- Running --- */

static op_count *count_of(runner *r, wk_str op) {
    for (int i = 0; i < r->n_counts; i++) {
        if (wk_str_is(op, r->counts[i].name)) return &r->counts[i];
    }
    if (r->n_counts == MAX_OPS || op.size >= sizeof r->counts[0].name) return NULL;
    op_count *const count = &r->counts[r->n_counts++];
    memcpy(count->name, op.text, op.size);
    return count;
}

static bool is_listed(const char *words, wk_str name) {
    for (const char *word = words; word != NULL; word = strchr(word, ',')) {
        word += *word == ',';
        if (wk_str_equal(name, (wk_str){word, strcspn(word, ",")})) return true;
    }
    return false;
}

static bool is_selected(const options *o, wk_str op) {
    return o->ops == NULL || is_listed(o->ops, op);
}

static bool has_listed_dtype(const runner *r, const wk_json *name) {
    const wick_file_tensor *const array = wk_safetensors_find(&r->tensors, name->string);
    if (array == NULL) return false;
    const char *const dtype = wick_dtype_name(array->dtype);
    return is_listed(r->options->may_fall_back, (wk_str){dtype, strlen(dtype)});
}

/* Whether one of its arrays, or the type it asks for, is of those that need not be computed. */
static bool may_fall_back(const runner *r, const wk_json *json) {
    const wk_json *const inputs = wk_json_get(json, "inputs");
    const wk_json *const outputs = wk_json_get(json, "outputs");
    const wk_json *e;
    for (e = inputs == NULL ? NULL : inputs->child; e != NULL; e = e->next)
        if (has_listed_dtype(r, wk_json_get(e, "tensor"))) return true;
    for (e = outputs == NULL ? NULL : outputs->child; e != NULL; e = e->next)
        if (has_listed_dtype(r, e)) return true;
    return false;
}

static bool run_bound(runner *r, test_case *c, const binding *op) {
    const wk_json *const error = wk_json_get(c->json, "error");
    const wick_scope scope = wick_scope_begin(r->device);
    wick_tensor *more[MAX_OUTPUTS] = {NULL};
    c->more = more;
    bool is_right = make_inputs(r, c);
    if (is_right) {
        wick_tensor *const y = op->run(c);
        is_right = error != NULL ? check_refusal(r, c, error->string, y) : check_outputs(r, c, y);
    } else {
        wick_error reason = {0};
        wick_device_error(r->device, &reason);
        report(r, c, reason.status == WICK_OK ? "its inputs are not in the file" : reason.message);
    }
    wick_scope_end(scope);
    wick_device_error(r->device, NULL);
    return is_right;
}

static uint64_t n_fallbacks(const wick_device *device) {
    wick_device_stats stats;
    wick_device_get_stats(device, &stats);
    return stats.n_fallbacks;
}

static void count_special(runner *r, const test_case *c, bool is_right) {
    for (size_t i = 0; i < WK_COUNT(special_tags); i++) {
        if (!has_tag(c, special_tags[i])) continue;
        if (is_right) r->special[i].passed++;
        if (!is_right) r->special[i].failed++;
    }
}

/* False: it failed. */
static bool run_counted(runner *r, test_case *c, const binding *op, op_count *count) {
    const uint64_t before = n_fallbacks(r->device);
    const bool is_right = run_bound(r, c, op);
    count_special(r, c, is_right);
    count->n_fell_back += is_right && n_fallbacks(r->device) > before;
    return is_right;
}

static bool run_case(runner *r, const wk_json *json) {
    const wk_json *const op = wk_json_get(json, "op"), *const id = wk_json_get(json, "id");
    if (op == NULL || id == NULL) return false;
    const binding *const found = find_binding(op->string);
    if (!is_selected(r->options, op->string) || (!found && r->options->is_present)) return true;
    op_count *const count = count_of(r, op->string);
    if (count == NULL) return false;
    r->device = r->lenient != NULL && may_fall_back(r, json) ? r->lenient : r->strict;
    test_case c = {.id = id->string,
                   .op = op->string,
                   .json = json,
                   .attrs = wk_json_get(json, "attrs"),
                   .device = r->device};
    if (found == NULL) {
        count->absent++;
    } else if (!run_counted(r, &c, found, count)) {
        count->failed++;
    } else if (r->options->wants_grad && wk_json_get(json, "grads") != NULL) {
        count->absent++; /* its outputs are right, but nothing computes gradients */
    } else {
        count->passed++;
    }
    return true;
}

static wick_status run_lines(runner *r, const char *text, size_t size, wick_error *err) {
    const char *const end = text + size;
    while (text < end) {
        const char *const newline = memchr(text, '\n', (size_t)(end - text));
        const char *const stop = newline == NULL ? end : newline;
        wk_arena arena;
        wk_arena_init(&arena, &r->heap, 0);
        wk_json *json = NULL;
        wick_status status = wk_json_parse(&arena, text, (size_t)(stop - text), &json, err);
        if (status == WICK_OK && !run_case(r, json)) {
            status = wk_fail(err, WICK_ERR_FORMAT, "a case without op or id, or too many ops");
        }
        wk_arena_release(&arena);
        if (status != WICK_OK) return status;
        text = stop + 1;
    }
    return WICK_OK;
}

/* --- Files and results --- */

static wick_status map_file(runner *r, const char *name, wk_file **file, const void **data,
                            wick_error *err) {
    char path[1024];
    snprintf(path, sizeof path, "%s/%s", r->options->folder, name);
    WK_TRY(wk_file_open(&r->heap, path, file, err));
    return wk_file_map(*file, data, err);
}

static wick_status run_cases(runner *r, wick_error *err) {
    const void *data, *lines;
    WK_TRY(map_file(r, "data.safetensors", &r->data_file, &data, err));
    r->data = data;
    WK_TRY(wk_safetensors_parse(&r->heap, &r->names, data, wk_file_size(r->data_file), &r->tensors,
                                err));
    WK_TRY(wick_device_open(&r->options->device, &r->strict, err));
    if (r->options->may_fall_back != NULL) {
        wick_device_desc desc = r->options->device;
        desc.strict = false;
        WK_TRY(wick_device_open(&desc, &r->lenient, err));
    }
    wk_file *cases = NULL;
    wick_status status = map_file(r, "cases.jsonl", &cases, &lines, err);
    if (status == WICK_OK) status = run_lines(r, lines, (size_t)wk_file_size(cases), err);
    wk_file_close(&r->heap, cases);
    return status;
}

static void print_fallbacks(const runner *r, const op_count *total) {
    if (r->options->may_fall_back == NULL) return;
    printf("fallbacks, only with %s: %d cases", r->options->may_fall_back, total->n_fell_back);
    const char *separator = " (";
    for (int i = 0; i < r->n_counts; i++) {
        if (r->counts[i].n_fell_back == 0) continue;
        printf("%s%s %d", separator, r->counts[i].name, r->counts[i].n_fell_back);
        separator = ", ";
    }
    printf("%s\n", total->n_fell_back > 0 ? ")" : "");
}

static void print_special(const runner *r) {
    for (size_t i = 0; i < WK_COUNT(special_tags); i++) {
        const op_count *const n = &r->special[i];
        if (r->options->is_json) {
            printf(", \"%s\": {\"passed\": %d, \"failed\": %d}", special_tags[i], n->passed,
                   n->failed);
        } else {
            printf("with %s: %d passed, %d failed\n", special_tags[i], n->passed, n->failed);
        }
    }
}

static void print_programs(const runner *r) {
    if (r->options->device.backend != WICK_BACKEND_WEBGPU) return;
    wick_device_stats stats;
    wick_device_get_stats(r->strict, &stats);
    if (r->options->is_json)
        printf(", \"programs\": %" PRIu64, stats.n_pipelines);
    else
        printf("%" PRIu64 " programs compiled\n", stats.n_pipelines);
}

static void print_results(const runner *r, const op_count *total) {
    const bool is_json = r->options->is_json;
    if (is_json) printf("{\"ops\": [");
    for (int i = 0; i < r->n_counts; i++) {
        const op_count *const n = &r->counts[i];
        if (is_json) {
            printf("%s\n  {\"op\": \"%s\", \"passed\": %d, \"failed\": %d, \"absent\": %d, "
                   "\"fell_back\": %d}",
                   i > 0 ? "," : "", n->name, n->passed, n->failed, n->absent, n->n_fell_back);
        } else {
            printf("%-20s %4d passed %4d failed %4d absent\n", n->name, n->passed, n->failed,
                   n->absent);
        }
    }
    if (is_json) {
        printf("\n]");
        print_special(r);
        print_programs(r);
        printf(", \"passed\": %d, \"failed\": %d, \"absent\": %d, \"fell_back\": %d}\n",
               total->passed, total->failed, total->absent, total->n_fell_back);
    } else {
        print_fallbacks(r, total);
        print_special(r);
        print_programs(r);
        printf("%d passed, %d failed, %d absent\n", total->passed, total->failed, total->absent);
    }
}

static int run(const options *o) {
    runner r = {.options = o, .report = o->is_json ? stderr : stdout};
    wk_heap_init(&r.heap, NULL);
    wk_arena_init(&r.names, &r.heap, 0);
    wick_error error = {0};
    wick_status status = run_cases(&r, &error);
    op_count total = {0};
    for (int i = 0; i < r.n_counts; i++) {
        total.passed += r.counts[i].passed;
        total.failed += r.counts[i].failed;
        total.absent += r.counts[i].absent;
        total.n_fell_back += r.counts[i].n_fell_back;
    }
    if (status == WICK_OK && r.n_counts == 0) {
        status = wk_fail(&error, WICK_ERR_ARGUMENT, "there are no such cases");
    }
    if (status == WICK_OK) print_results(&r, &total);
    if (status != WICK_OK) fprintf(stderr, "op_cases: %s\n", error.message);
    wick_device_close(r.lenient);
    wick_device_close(r.strict);
    wk_map_release(&r.tensors.index);
    wk_arena_release(&r.names);
    wk_file_close(&r.heap, r.data_file);
    if (status != WICK_OK) return 2;
    return total.failed + total.absent > 0 ? 1 : 0;
}

/* --- Command line --- */

/* "late,no-fused": the flags of the null backend. */
static bool parse_null(const char *words, uint32_t *flags) {
    static const flag_word known[] = {
        {"late", WICK_NULL_LATE},
        {"out-of-order", WICK_NULL_OUT_OF_ORDER},
        {"no-fused", WICK_NULL_NO_FUSED},
        {"no-kernels", WICK_NULL_NO_KERNELS},
    };
    return parse_flags(words, known, WK_COUNT(known), flags);
}

static bool parse_isa(const char *word, wick_isa *isa) {
    static const char *const names[] = {
        [WICK_ISA_AUTO] = "auto",     [WICK_ISA_REF] = "ref",   [WICK_ISA_AVX2] = "avx2",
        [WICK_ISA_AVX512] = "avx512", [WICK_ISA_NEON] = "neon", [WICK_ISA_DOTPROD] = "dotprod",
        [WICK_ISA_I8MM] = "i8mm",
    };
    for (size_t i = 0; i < WK_COUNT(names); i++) {
        if (strcmp(word, names[i]) != 0) continue;
        *isa = (wick_isa)i;
        return true;
    }
    return false;
}

/* An option with a value. */
static bool parse_pair(options *o, const char *name, const char *text) {
    if (strcmp(name, "--ops") == 0) {
        o->ops = text;
        return true;
    }
    if (strcmp(name, "--may-fall-back") == 0) {
        o->may_fall_back = text;
        return true;
    }
    if (strcmp(name, "--backend") == 0) return wick_backend_from_name(text, &o->device.backend);
    if (strcmp(name, "--null") == 0) return parse_null(text, &o->device.null_flags);
    if (strcmp(name, "--isa") == 0) return parse_isa(text, &o->device.isa);
    if (strcmp(name, "--threads") != 0) return false;
    char *end;
    const long n = strtol(text, &end, 10);
    o->device.n_threads = n > 0 && n <= 1024 ? (int)n : 0;
    return *end == '\0' && o->device.n_threads > 0;
}

static bool parse(int argc, char **argv, options *o) {
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--grad") == 0) {
            o->wants_grad = true;
        } else if (strcmp(argv[i], "--strict") == 0) {
            o->device.strict = true;
        } else if (strcmp(argv[i], "--present") == 0) {
            o->is_present = true;
        } else if (strcmp(argv[i], "--json") == 0) {
            o->is_json = true;
        } else if (argv[i][0] != '-' && o->folder == NULL) {
            o->folder = argv[i];
        } else if (parse_webgpu(argc, argv, &i, &o->device.webgpu)) {
            continue;
        } else if (i + 1 == argc || !parse_pair(o, argv[i], argv[i + 1])) {
            return false;
        } else {
            i++;
        }
    }
    return o->folder != NULL;
}

int main(int argc, char **argv) {
    options o = {.device = {.backend = WICK_BACKEND_CPU}};
    setvbuf(stdout, NULL, _IOLBF, 0); /* a run that is ended from outside shows how far it came */
    if (parse(argc, argv, &o)) return run(&o);
    fprintf(
        stderr,
        "usage: op_cases DIR [--ops a,b] [--present] [--backend NAME] [--null WORDS] [--isa NAME]\n"
        "                [--threads N] [--strict [--may-fall-back i64,f64]] [--grad] "
        "[--json]\n                " WEBGPU_USAGE "\n");
    return 2;
}
