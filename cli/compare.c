/* compare.c: `wick compare`: how the tensors of two files differ. */
#include "cli.h"
#include "interrupt.h"
#include "json_out.h"
#include "progress.h"
#include "text_out.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct compare_options {
    const char *a, *b;
    float tolerance;
    bool json;
} compare_options;

static const cli_option options[] = {
    {.argument = "A",
     .help = "a GGUF, safetensors, npy, npz or PyTorch file; for a split model, any "
             "of its parts",
     .kind = &cli_model,
     .offset = offsetof(compare_options, a),
     .is_required = true},
    {.argument = "B",
     .help = "the other file; an npy file can only be compared with an npy file",
     .kind = &cli_model,
     .offset = offsetof(compare_options, b),
     .is_required = true},
    {.name = "tolerance",
     .argument = "X",
     .help = "largest difference at which two elements count as equal",
     .kind = &cli_f32,
     .offset = offsetof(compare_options, tolerance),
     .most = 1e30},
    {.name = "json",
     .help = "print JSON",
     .kind = &cli_flag,
     .offset = offsetof(compare_options, json)},
};
static const cli_group group = {"Arguments and options", options, sizeof options / sizeof *options};
static const cli_group *const groups[] = {&group, NULL};

static bool is_same(const wick_compared *c) { return c->is_compared && c->n_different == 0; }

/* ---- Text: a summary, and a line for each tensor ---- */

typedef struct shape_text {
    char text[160];
} shape_text;

/* "f32[2,3]" */
static shape_text describe(wick_dtype dtype, const wick_shape *shape) {
    shape_text out;
    int size = snprintf(out.text, sizeof out.text, "%s[", wick_dtype_name(dtype));
    for (int i = 0; i < shape->rank; i++)
        size += snprintf(out.text + size, sizeof out.text - (size_t)size, "%s%" PRId64,
                         i > 0 ? "," : "", shape->extent[i]);
    snprintf(out.text + size, sizeof out.text - (size_t)size, "]");
    return out;
}

static void print_tensor(const wick_compared *c) {
    const shape_text a = describe(c->dtype_a, &c->shape_a), b = describe(c->dtype_b, &c->shape_b);
    cli_put_padded(stdout, c->name, 32);
    putchar(' ');
    if (!c->is_compared) {
        if (c->is_in_a && c->is_in_b)
            printf("shapes differ: %s %s\n", a.text, b.text);
        else
            printf("only in %s: %s\n", c->is_in_a ? "A" : "B", c->is_in_a ? a.text : b.text);
        return;
    }
    printf("%s", a.text);
    if (c->dtype_a != c->dtype_b) printf(" %s", wick_dtype_name(c->dtype_b));
    printf("  max %.4g  rms %.4g  cosine %.9f", c->largest, c->rms, c->cosine);
    if (c->n_different > 0)
        printf("  %" PRIu64 " differ, the first at %" PRIu64 ": %.9g %.9g", c->n_different,
               c->first, c->first_a, c->first_b);
    putchar('\n');
}

static size_t count_different(const wick_compared *rows, size_t n) {
    size_t count = 0;
    for (size_t i = 0; i < n; i++) count += !is_same(&rows[i]);
    return count;
}

/* "largest difference 0.0123 in blk.0.attn_q.weight"; name: "" of .npy files. */
static void print_extreme(const char *what, double value, const char *name) {
    printf("%s %.6g%s", what, value, name[0] != '\0' ? " in " : "");
    cli_put_escaped(stdout, name, strlen(name));
    putchar('\n');
}

static void print_summary(const compare_options *o, const wick_compared *rows, size_t n,
                          size_t n_all) {
    static const double equal = 1 - 5e-10; /* is printed as 1 below */
    size_t n_only[2] = {0}, n_reshaped = 0, furthest = n, least_alike = n;
    for (size_t i = 0; i < n; i++) {
        const wick_compared *const c = &rows[i];
        if (c->is_in_a && c->is_in_b && !c->is_compared) n_reshaped++;
        if (!c->is_in_b) n_only[0]++;
        if (!c->is_in_a) n_only[1]++;
        if (!c->is_compared) continue;
        if (c->largest > (furthest < n ? rows[furthest].largest : 0)) furthest = i;
        if (c->cosine < (least_alike < n ? rows[least_alike].cosine : equal)) least_alike = i;
    }
    if (n < n_all) printf("stopped after %zu of %zu tensors\n", n, n_all);
    printf("%zu of %zu tensors differ", count_different(rows, n), n);
    if (o->tolerance > 0) printf(" by more than %g", (double)o->tolerance);
    putchar('\n');
    if (n_only[0] > 0) printf("%zu only in A\n", n_only[0]);
    if (n_only[1] > 0) printf("%zu only in B\n", n_only[1]);
    if (n_reshaped > 0) printf("%zu of different shapes\n", n_reshaped);
    if (furthest < n)
        print_extreme("largest difference", rows[furthest].largest, rows[furthest].name);
    if (least_alike < n)
        print_extreme("lowest cosine", rows[least_alike].cosine, rows[least_alike].name);
}

static void print_text(const compare_options *o, const wick_compared *rows, size_t n,
                       size_t n_all) {
    print_summary(o, rows, n, n_all);
    putchar('\n');
    for (size_t i = 0; i < n; i++) print_tensor(&rows[i]);
}

/* ---- JSON ---- */

/* null: it is not in this file. */
static void put_kind(cli_json *json, const char *key, bool is_there, wick_dtype dtype,
                     const wick_shape *shape) {
    cli_json_key(json, key);
    if (!is_there) {
        cli_json_null(json);
        return;
    }
    cli_json_open(json, '{');
    cli_json_put_string(json, "type", wick_dtype_name(dtype));
    cli_json_key(json, "shape");
    cli_json_open(json, '[');
    for (int i = 0; i < shape->rank; i++) cli_json_signed(json, shape->extent[i]);
    cli_json_close(json, ']');
    cli_json_close(json, '}');
}

static void put_tensor(cli_json *json, const wick_compared *c) {
    cli_json_open(json, '{');
    cli_json_put_string(json, "name", c->name);
    put_kind(json, "a", c->is_in_a, c->dtype_a, &c->shape_a);
    put_kind(json, "b", c->is_in_b, c->dtype_b, &c->shape_b);
    cli_json_key(json, "same");
    cli_json_bool(json, is_same(c));
    if (c->is_compared) {
        cli_json_put_number(json, "max", c->largest);
        cli_json_put_number(json, "rms", c->rms);
        cli_json_put_number(json, "cosine", c->cosine);
        cli_json_put_unsigned(json, "different", c->n_different);
    }
    if (c->n_different > 0) {
        cli_json_put_unsigned(json, "first", c->first);
        cli_json_put_number(json, "first_a", c->first_a);
        cli_json_put_number(json, "first_b", c->first_b);
    }
    cli_json_close(json, '}');
}

/* n of n_all: fewer where it was stopped. */
static void print_json(const wick_compared *rows, size_t n, size_t n_all) {
    cli_json json = {.out = stdout};
    cli_json_open(&json, '{');
    cli_json_key(&json, "tensors");
    cli_json_open(&json, '[');
    for (size_t i = 0; i < n; i++) put_tensor(&json, &rows[i]);
    cli_json_close(&json, ']');
    cli_json_put_unsigned(&json, "different", count_different(rows, n));
    cli_json_put_unsigned(&json, "count", n_all);
    cli_json_close(&json, '}');
}

/* ---- Comparing ---- */

/* rows: room for all of them; *n of them are filled. */
static int compare_all(const compare_options *o, wick_comparison *comparison, wick_compared *rows,
                       size_t *n) {
    const size_t n_all = wick_compare_count(comparison);
    cli_progress line = cli_progress_begin("comparing", "tensors");
    wick_status status = WICK_OK;
    wick_error error = {0};
    for (; *n < n_all && status == WICK_OK && !cli_interrupted(); *n += status == WICK_OK) {
        cli_progress_show(&line, *n, n_all);
        status = wick_compare_tensor(comparison, *n, (double)o->tolerance, &rows[*n], &error);
    }
    cli_progress_clear(&line);
    if (status != WICK_OK) return cli_report(&error, NULL);
    return *n == n_all ? CLI_OK : CLI_INTERRUPTED;
}

static int print_all(const compare_options *o, wick_comparison *comparison) {
    const size_t n_all = wick_compare_count(comparison);
    size_t n = 0;
    wick_compared *const rows = calloc(n_all > 0 ? n_all : 1, sizeof *rows);
    if (rows == NULL) return cli_error("out of memory for %zu tensors", n_all);
    int code = compare_all(o, comparison, rows, &n);
    if (code != CLI_FAILURE && o->json) print_json(rows, n, n_all);
    if (code != CLI_FAILURE && !o->json) print_text(o, rows, n, n_all);
    if (code == CLI_OK && count_different(rows, n) > 0) code = CLI_FAILURE;
    free(rows);
    return code;
}

static int run(void *given) {
    const compare_options *const o = given;
    cli_watch_interrupt();
    cli_keep_closed_pipe();
    wick_comparison *comparison = NULL;
    wick_error error = {0};
    if (wick_compare_open(o->a, o->b, &comparison, &error) != WICK_OK)
        return cli_report(&error, error.status == WICK_ERR_VALUE ? "" : NULL);
    const int code = print_all(o, comparison);
    wick_compare_close(comparison);
    return code;
}

const cli_command cli_compare = {
    .name = "compare",
    .summary = "compare the tensors of two files",
    .details = "  wick compare MODEL-F16.gguf MODEL-Q8_0.gguf --tolerance 0.01\n"
               "  wick compare a.npy b.npy\n\n"
               "Tensors of one name and shape are compared element by element, as numbers:\n"
               "types may differ, block types are decoded. Elements are counted row by row\n"
               "from 0. Exit status 1: a name is only in one file, shapes differ, or an element\n"
               "differs by more than --tolerance.\n",
    .groups = groups,
    .options_size = sizeof(compare_options),
    .run = run,
};
