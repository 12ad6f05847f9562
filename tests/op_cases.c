/* op_cases: runs recorded cases of tensor operations (inputs and expected outputs, or the kind of
 * refusal) through the public functions and compares what comes back.
 *
 *   op_cases DIR [--ops a,b] [--present] [--backend NAME] [--null WORDS] [--isa NAME] [--threads N]
 *            [--strict [--may-fall-back i64,f64]] [--grad] [--json] [options of webgpu_options.h]
 *
 * DIR holds cases.jsonl, one case a line, and data.safetensors. A case is absent when Wick has no
 * such operation, which --present passes over. --grad checks recorded gradients, too.
 * --may-fall-back names types that the backend need not have: cases with arrays of these run
 * without --strict, and it is said how many of them the backend did not compute alone. Exit status:
 * 0 all selected cases passed, 1 one failed or was absent, 2 wrong use. */
#include "op_compare.h"
#include "device_options.h"

#include "tensor/device.h"

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

static bool run_with_gradients(runner *r, test_case *c, const binding *op) {
    wick_tape *tape;
    if (wick_tape_begin(r->device, &tape) != WICK_OK) return false;
    bool is_right = watch_inputs(c, wk_json_get(c->json, "grads"), tape);
    wick_tensor *const y = is_right ? op->run(c) : NULL;
    is_right = is_right && check_outputs(r, c, y) && check_gradients(r, c, tape, y);
    wick_tape_end(tape);
    return is_right;
}

static bool run_bound(runner *r, test_case *c, const binding *op) {
    const wk_json *const error = wk_json_get(c->json, "error");
    const wick_scope scope = wick_scope_begin(r->device);
    wick_tensor *more[MAX_OUTPUTS] = {NULL};
    c->more = more;
    bool is_right = make_inputs(r, c);
    if (is_right && r->options->wants_grad && wk_json_get(c->json, "grads") != NULL) {
        is_right = run_with_gradients(r, c, op);
    } else if (is_right) {
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
    return parse_device_pair(&o->device, name, text);
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
