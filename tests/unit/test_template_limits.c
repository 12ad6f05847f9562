/* Hostile chat templates: whatever a template calls in a loop, on operands of 10 MB, ends at its
 * limit and in time. The calls are made from the interpreter's own tables, so that what is added to
 * them is tested as well. */
#include "text/jinja/jinja.h"
#include "text/jinja/state.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <wick/chat.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* What a call visits without counting it is 10 MB in each of 100,000 calls, and takes minutes; what
 * is counted ends after these steps in tenths of a second, under sanitizers in one. */
enum {
    STEPS = 100000,
    SIZE = 10 << 20,
    N_ITEMS = SIZE / 32,
    FEW_ITEMS = 20000,
    MOST_ARGUMENTS = 6,
    NAME_SIZE = 24
};
static const double at_most = 5; /* seconds of processor time */

static const char *const fillings[] = {" ", "a", "1", "a b,", "\xF0\xAF\xA0\x80", "<{%"};
enum { N_TEXTS = WK_COUNT(fillings), N_OPERANDS = N_TEXTS + 4 };

/* The operands, large and small; small ones show what can be called with them at all. */
typedef struct operands {
    wk_arena arena;
    wk_json values[N_OPERANDS]; /* texts; lists of strings, numbers, lists; a dict */
} operands;

static wk_heap heap;
static operands large, small;

static double processor_time(void) { return (double)clock() / CLOCKS_PER_SEC; }

static wk_str repeated(wk_arena *arena, const char *filling, size_t size) {
    const size_t n = strlen(filling);
    char *const text = wk_arena_alloc(arena, size);
    assert_non_null(text);
    for (size_t i = 0; i < size; i++) text[i] = filling[i % n];
    return (wk_str){text, size - size % n};
}

static void append(operands *to, size_t i, wk_json item) {
    wk_json *const copy = wk_arena_alloc(&to->arena, sizeof *copy);
    assert_non_null(copy);
    *copy = item;
    wk_json_append(&to->values[i], copy);
}

static void make_operands(operands *to, size_t size, size_t n_items, size_t n_few) {
    wk_arena_init(&to->arena, &heap, 0);
    for (size_t i = 0; i < N_OPERANDS; i++)
        to->values[i].kind = i + 1 < N_OPERANDS ? WK_JSON_ARRAY : WK_JSON_OBJECT;
    for (size_t i = 0; i < N_TEXTS; i++)
        to->values[i] =
            (wk_json){.kind = WK_JSON_STRING, .string = repeated(&to->arena, fillings[i], size)};
    for (size_t i = 0; i < n_items; i++) {
        char *const name = wk_arena_alloc(&to->arena, NAME_SIZE);
        assert_non_null(name);
        snprintf(name, NAME_SIZE, "k%zu", i * 7919 % n_items);
        append(to, N_TEXTS, (wk_json){.kind = WK_JSON_STRING, .string = wk_str_of(name)});
        if (i >= n_few) continue;
        append(to, N_TEXTS + 1, (wk_json){.kind = WK_JSON_NUMBER, .number = 1e-300 * (double)i});
        append(to, N_TEXTS + 2, (wk_json){.kind = WK_JSON_ARRAY});
        append(to, N_TEXTS + 3, (wk_json){.kind = WK_JSON_NULL, .key = wk_str_of(name)});
    }
}

static int set_up(void **state) {
    (void)state;
    wk_heap_init(&heap, NULL);
    make_operands(&large, SIZE, N_ITEMS, FEW_ITEMS);
    make_operands(&small, 24, 3, 3);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    wk_arena_release(&large.arena);
    wk_arena_release(&small.arena);
    return 0;
}

static double end_time;
static bool stops(void *context) {
    (void)context;
    return processor_time() > end_time;
}

static wick_status render(const char *text, const wk_json *x, wick_error *error) {
    wk_arena arena;
    wk_arena_init(&arena, &heap, 0);
    wk_jinja_template *compiled;
    wk_jinja_result result;
    *error = (wick_error){.status = WICK_OK};
    const wk_jinja_variable variable = {wk_str_of("x"), x, true};
    const wk_jinja_desc desc = {
        .variables = &variable, .n_variables = 1, .max_steps = STEPS, .stops = stops};
    end_time = processor_time() + at_most;
    wick_status status = wk_jinja_parse(&arena, wk_str_of(text), &compiled, error);
    if (status == WICK_OK) status = wk_jinja_render(&arena, compiled, &desc, &result, error);
    wk_arena_release(&arena);
    return status;
}

static bool works(const char *use, size_t i) {
    char text[300];
    wick_error error;
    snprintf(text, sizeof text, "{%% for i in [1] %%}{%% set y = %s %%}{%% endfor %%}", use);
    return render(text, &small.values[i], &error) == WICK_OK;
}

/* In a loop, where x is a large operand. */
static void ends_in_time(const char *use, size_t i) {
    char text[400];
    wick_error error;
    snprintf(text, sizeof text,
             "{%% for i in range(99) %%}{%% for i in range(99) %%}{%% for i in range(99) %%}"
             "{%% set y = %s %%}{%% endfor %%}{%% endfor %%}{%% endfor %%}",
             use);
    const double start = processor_time();
    const wick_status status = render(text, &large.values[i], &error);
    const double took = processor_time() - start;
    if (status != WICK_ERR_VALUE || took > at_most)
        fail_msg("%s, operand %zu: %s (%.2f s)", use, i, error.message, took);
}

/* before, after: what stands around the arguments. Returns how many calls were made. */
static size_t try_arguments(const char *before, const char *after, size_t i) {
    static const char *const arguments[] = {
        "x, x", "'b', x", "x, 'b'", "x",  "'a', 'eq', x", "'eq', x", "attribute=x", "false, x",
        "",     "'a'",    "3, 'a'", "*x", "0, 1000000",   "1000000", "2",           "'a', 'b'"};
    size_t n = 0;
    for (size_t k = 0; k < WK_COUNT(arguments) && n < MOST_ARGUMENTS; k++) {
        char use[200];
        snprintf(use, sizeof use, "%s%s%s", before, arguments[k], after);
        if (!works(use, i)) continue;
        ends_in_time(use, i);
        n++;
    }
    return n;
}

/* Whether a call of it always fails. */
static bool never_works(const char *name) {
    return strcmp(name, "urlize") == 0 || strcmp(name, "raise_exception") == 0;
}

/* Something that no operand and none of the arguments suit would go untested. */
static void try_table(const wk_jtable *table, const char *before) {
    for (size_t t = 0; t < table->n; t++) {
        const char *const name = table->items[t].name;
        char call[80], of_number[80];
        snprintf(call, sizeof call, "%s%s(", before, name);
        snprintf(of_number, sizeof of_number, "1e300|%s(", name);
        size_t n = strcmp(before, "x|") == 0 ? try_arguments(of_number, ")", 0) : 0;
        for (size_t i = 0; i < N_OPERANDS; i++) n += try_arguments(call, ")", i);
        if (n == 0 && !never_works(name)) fail_msg("%s: no operand and no argument suits it", name);
    }
}

static void test_filters(void **state) {
    (void)state;
    const wk_jtable *const tables[] = {&wk_jstring_filters, &wk_jlist_filters, &wk_jselect_filters,
                                       &wk_jnumber_filters};
    for (size_t i = 0; i < WK_COUNT(tables); i++) try_table(tables[i], "x|");
}

static void test_methods(void **state) {
    (void)state;
    const wk_jtable *const tables[] = {&wk_jstring_methods, &wk_jstring_predicates,
                                       &wk_jlist_methods, &wk_jdict_methods};
    for (size_t i = 0; i < WK_COUNT(tables); i++) try_table(tables[i], "x.");
    try_table(&wk_jtuple_methods, "(x, x).");
    try_table(&wk_jinteger_methods, "(9).");
    try_table(&wk_jfloat_methods, "(1e300).");
    try_table(&wk_jloop_methods, "loop.");
    try_table(&wk_jcycler_methods, "cycler(x, x).");
}

static void test_tests(void **state) {
    (void)state;
    for (size_t t = 0; t < wk_jtest_table.n; t++) {
        const char *const name = wk_jtest_table.items[t].name;
        char select[100];
        size_t n = 0;
        snprintf(select, sizeof select, "[x, x]|select('%s', ", name);
        for (size_t i = 0; i < N_OPERANDS; i++) n += try_arguments(select, ")|list", i);
        snprintf(select, sizeof select, "range(9999)|select('%s', ", name);
        n += try_arguments(select, ")|list", 0);
        if (n == 0) fail_msg("%s: no operand and no argument suits it", name);
    }
}

static void test_functions(void **state) {
    (void)state;
    try_table(&wk_jfunction_table, "");
}

/* Made with the names of the operators, of which there is no table. */
static void test_operators(void **state) {
    (void)state;
    static const char *const uses[] = {"x == x ~ ''",
                                       "x ~ 'a' == x ~ 'b'",
                                       "x < x",
                                       "x <= x ~ ''",
                                       "x in x",
                                       "'b' in x",
                                       "x ~ 'b' in x ~ x",
                                       "x + x",
                                       "x ~ x",
                                       "x * 2",
                                       "[x] * 99999",
                                       "x[0]",
                                       "x[-1]",
                                       "x[9999999]",
                                       "x[::-1]",
                                       "x[5:]",
                                       "x[-5:]",
                                       "x[x]",
                                       "{x: x}",
                                       "{x: x}[x]",
                                       "[x, x] == [x, x ~ '']",
                                       "x % 1",
                                       "x % x",
                                       "x and 1",
                                       "not x",
                                       "x if x else x",
                                       "x is string",
                                       "x.nothing",
                                       "x['nothing']",
                                       "[x, x, x]|sort",
                                       "[x ~ 'a', x ~ 'b', x]|unique|list",
                                       "'%s' % x",
                                       "'{}'.format(x)",
                                       "1e308 % 1e-300",
                                       "3 ** 39",
                                       "1.5 ** 99.5",
                                       "-1.5e-300 // 7e-310"};
    for (size_t k = 0; k < WK_COUNT(uses); k++) {
        for (size_t i = 0; i < N_OPERANDS; i++) {
            if (works(uses[k], i)) ends_in_time(uses[k], i);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_filters),   cmocka_unit_test(test_methods),
        cmocka_unit_test(test_tests),     cmocka_unit_test(test_functions),
        cmocka_unit_test(test_operators),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
