/* What templates count towards their limit: the least work of one round of a loop around each use.
 * A count that drops out is a way around the limit. */
#include "text/jinja/jinja.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <inttypes.h>
#include <stdio.h>

/* Every count in src/text/jinja is part of one of them. In sixteenths of a step, as measured: what
 * counts less on purpose changes its line. */
static const struct {
    uint64_t work;
    const char *use;
} uses[] = {
    {193, "1"},
    {299, "x.upper"},
    {1699, "x.upper()"},
    {2211, "x.casefold()"},
    {352, "x[40]"},
    {407, "x[10:50]"},
    {497, "x.startswith(x)"},
    {1060, "x|replace(old=x, new='b')"},
    {557, "dict(a=x, b=x)"},
    {2666, "(l + [1]).insert(0, 1)"},
    {2094, "(l + [1]).pop(0)"},
    {1068, "{(1, 2, x): 1}[(1, 2, x)]"},
    {438, "{x: 1}[x]"},
    {289, "many[15]"},
    {3586, "dict(many).pop(3)"},
    {3390, "dict(many).clear()"},
    {1409, "x|tojson"},
    {471, "'%5s' % x"},
    {2689, "'%f' % 1.5"},
    {903, "'{:70}'.format(x)"},
    {663, "namespace(a=1, b=2, c=3)"},
    {770, "[{'a': 1}]|sort(attribute='a,a,a,a')"},
    {4166, "l|select|list"},
    {465, "'123456'|int"},
    {2833, "'12.25'|float"},
    {2641, "1.25|round"},
    {2625, "7.5 // 2"},
    {2625, "7.5 % 2"},
    {694, "{x: x}|xmlattr"},
    {1896, "words|wordwrap(8)"},
    {534, "words|wordcount"},
    {2663, "1000000|filesizeformat"},
    {839, "x|center(80)"},
    {560, "x.find('a', 30)"},
    {735, "x.rfind('b')"},
    {957, "x.rfind('a', 2, 60)"},
    {991, "x.count('a')"},
    {1709, "words.split()"},
    {925, "words.splitlines()"},
    {1611, "x.isalpha()"},
    {1611, "x.istitle()"},
    {1611, "x.isidentifier()"},
    {1611, "x.islower()"},
    {1955, "x.title()"},
    {1955, "x.swapcase()"},
    {1395, "blanks.lstrip()"},
    {1395, "blanks.rstrip()"},
    {311, "'b' in x"},
    {1767, "x|last"},
    {1525, "[words]|string"},
    {2660, "1.5|string"},
    {486, "x < x ~ 'b'"},
    {461, "x == x ~ ''"},
    {327, "x|length"},
    {468, "[3, 1, 2]|max"},
    {1880, "l|join"},
    {1302, "x in l"},
    {2020, "range(40)|list"},
};

static uint64_t steps_of(const char *use, int n_rounds) {
    wk_heap heap;
    wk_arena arena;
    wk_heap_init(&heap, NULL);
    wk_arena_init(&arena, &heap, 0);
    char text[600];
    snprintf(text, sizeof text,
             "{%% set x = 'a' * 64 %%}{%% set blanks = ' ' * 64 %%}{%% set l = x|list %%}"
             "{%% set words = 'ab, ' * 16 %%}{%% set many = dict(range(16)|batch(1)|map('list')"
             "|map('batch', 2, 0)|map('first')) %%}"
             "{%% for i in range(%d) %%}{%% set y = %s %%}{%% endfor %%}",
             n_rounds, use);
    wk_jinja_template *compiled;
    wk_jinja_result result;
    const wk_jinja_desc desc = {.n_variables = 0};
    wick_error error = {.status = WICK_OK};
    wick_status status = wk_jinja_parse(&arena, wk_str_of(text), &compiled, &error);
    if (status == WICK_OK) status = wk_jinja_render(&arena, compiled, &desc, &result, &error);
    if (status != WICK_OK) fail_msg("%s: %s", use, error.message);
    wk_arena_release(&arena);
    return result.n_steps;
}

static void test_counts(void **state) {
    (void)state;
    for (size_t i = 0; i < WK_COUNT(uses); i++) {
        /* Of 160 rounds: what comes before the loop is in both. */
        const uint64_t work = (steps_of(uses[i].use, 320) - steps_of(uses[i].use, 160)) / 10;
        if (work < uses[i].work)
            fail_msg("%s counts %" PRIu64 ", before %" PRIu64, uses[i].use, work, uses[i].work);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_counts)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
