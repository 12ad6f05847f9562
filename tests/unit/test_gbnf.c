/* grammar/gbnf, grammar/program and grammar/stacks: texts that a grammar accepts and does not, as
 * bytes; random grammars against a slow matcher over the tree; what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "checked_heap.h"
#include "core/compiler.h"
#include "core/hash.h"
#include "grammar_reading.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- What grammars mean --- */

typedef struct language {
    const char *grammar;
    const char *has[8], *has_not[8]; /* NULL at the end */
} language;

static const language languages[] = {
    {"root ::= \"yes\" | \"no\"", {"yes", "no"}, {"", "y", "yesno", "Yes", "n"}},
    {"root ::= [a-c]+ [^a-c\\n]* \"\\n\"?",
     {"a", "abcxyz", "cab\n", "a\xC3\xA9"},
     {"", "x", "a\n\n", "axa", "a\xC3", "a\xFF"}},
    {"# a comment\nroot ::= item (\n  \",\" # another\n  item)* \n\nitem ::= [0-9]{1,3} | name\n"
     "name ::=\n  [a-z] |\n  \"_\"\n  | \"-\"  # on the next line\n",
     {"1", "123,a,_", "-,-", "a,999"},
     {"", ",", "1234", "ab", "1,"}},
    {"root ::= \"a\"{2} \"b\"{2,} \"c\"{0,2}",
     {"aabb", "aabbbbbc", "aabbcc"},
     {"abb", "aaabb", "aab", "aabbccc"}},
    {"root ::= (\"ab\" | \"c\"){2,3}", {"abab", "cabc", "ccc"}, {"ab", "cccc", "aba"}},
    {"root ::= [\\u00e9\\U0001F600\\x41-\\x43] \"\\\"\\\\\\t\\xe9\"",
     {"\xC3\xA9\"\\\t\xC3\xA9", "B\"\\\t\xC3\xA9", "\xF0\x9F\x98\x80\"\\\t\xC3\xA9"},
     {"D\"\\\t\xC3\xA9", "\xC3\xA8\"\\\t\xC3\xA9"}},
    {"root ::= . .",
     {"ab", "\n\xE2\x82\xAC", "\xF4\x8F\xBF\xBF\x01"},
     {"a", "abc", "a\x80",
      "\xED\xA0\x80"
      "a",
      "\xF4\x90\x80\x80"
      "a",
      "\xC0\x80"
      "a"}},
    {"root ::= \"(\" root \")\" | \"\"", {"", "()", "((()))"}, {"(", "())", ")("}},
    {"root ::= e\ne ::= t (\"+\" e)? | t \"-\" e\nt ::= \"x\" | \"(\" e \")\"",
     {"x", "x+x-x", "((x)+(x-x))"},
     {"x+", "(x", "x)"}},
    {"root ::= a a a a a \"!\"\na ::= \"x\" | \"\"", {"!", "x!", "xxxxx!"}, {"xxxxxx!", "", "xx"}},
    {"root ::= (\"a\"*)* \"b\"", {"b", "aaab"}, {"", "aa", "ba"}},
    {"root ::= [a-] [\\]^] [-a]", {"a]a", "-^-"}, {"b]a", "a-a"}},
    {"root ::= | \"a\"", {"", "a"}, {"aa"}},
    {"root ::= \"a\nb\" [c\n-]", {"a\nbc", "a\nb\n", "a\nb-"}, {"a\nb", "abc"}},
    {"root-1 ::= \"a\"\r\nroot ::= root-1 root_2\r\nroot_2 ::= \"b\"", {"ab"}, {"a", "b"}},
    {"root ::= [\\x00-\\U0010FFFF]",
     {"a", "\x7F", "\xDF\xBF", "\xEF\xBF\xBF", "\xF0\x90\x80\x80"},
     {"", "\x80", "\xED\xBF\xBF"}},
};

static void open_gbnf(reading *r, const char *grammar) {
    wick_error error = {0};
    if (try_gbnf(r, wk_str_of(grammar), &error) != WICK_OK)
        fail_msg("%s: %s", grammar, error.message);
}

static void test_languages(void **state) {
    (void)state;
    for (size_t i = 0; i < WK_COUNT(languages); i++) {
        const language *const l = &languages[i];
        reading r;
        open_gbnf(&r, l->grammar);
        for (size_t k = 0; l->has[k]; k++)
            if (!reads(&r, wk_str_of(l->has[k]))) fail_msg("%s: not '%s'", l->grammar, l->has[k]);
        for (size_t k = 0; l->has_not[k]; k++)
            if (reads(&r, wk_str_of(l->has_not[k])))
                fail_msg("%s: has '%s'", l->grammar, l->has_not[k]);
        close_reading(&r);
    }
}

/* --- Random grammars --- */

static uint32_t seed;

static uint32_t random_below(uint32_t n) { return (uint32_t)(wk_hash_u64(++seed) % n); }

/* Over a, b and c. Where rules call one another first, the grammar is refused. */
static wk_expr *random_expr(wk_rules *rules, int depth) {
    const uint32_t kind = random_below(depth > 0 ? 8 : 3);
    if (kind == 0)
        return wk_expr_text(rules, (wk_str){&"abcabcc"[random_below(5)], random_below(3)});
    if (kind == 1)
        return wk_expr_class(rules, &(wk_code_range){'a', 'a' + random_below(2)}, 1, false);
    if (kind == 2) return wk_expr_rule(rules, random_below(3));
    if (kind == 3) {
        const uint32_t least = random_below(3);
        const uint32_t most = random_below(2) ? least + random_below(3) : WK_REPEAT_FOREVER;
        return wk_expr_repeat(rules, random_expr(rules, depth - 1), least, most);
    }
    wk_expr *const list = wk_expr_list(rules, kind < 6 ? WK_EXPR_SEQUENCE : WK_EXPR_CHOICE);
    for (uint32_t n = random_below(4); n > 0; n--) wk_expr_add(list, random_expr(rules, depth - 1));
    return list;
}

/* Bit i: a text of expr that begins at one of the places of begins ends before byte i. */
static uint32_t ends_of(const wk_rules *rules, const wk_expr *expr, wk_str text, uint32_t begins) {
    uint32_t ends = 0;
    if (begins == 0) return 0;
    switch (expr->kind) {
    case WK_EXPR_TEXT:
        for (size_t i = 0; i + expr->text.size <= text.size; i++)
            if (begins >> i & 1 && memcmp(text.text + i, expr->text.text, expr->text.size) == 0)
                ends |= 1U << (i + expr->text.size);
        return ends;
    case WK_EXPR_CLASS:
        for (size_t i = 0; i < text.size; i++)
            if (begins >> i & 1 && (uint8_t)text.text[i] >= expr->ranges[0].first &&
                (uint8_t)text.text[i] <= expr->ranges[0].last)
                ends |= 2U << i;
        return ends;
    case WK_EXPR_SEQUENCE:
        for (const wk_expr *part = expr->first; part; part = part->next)
            begins = ends_of(rules, part, text, begins);
        return begins;
    case WK_EXPR_CHOICE:
        for (const wk_expr *part = expr->first; part; part = part->next)
            ends |= ends_of(rules, part, text, begins);
        return ends;
    case WK_EXPR_REPEAT:
        ends = expr->least == 0 ? begins : 0;
        for (uint32_t n = 1; n <= expr->most && n <= expr->least + text.size + 1; n++) {
            begins = ends_of(rules, expr->first, text, begins);
            if (n >= expr->least) ends |= begins;
        }
        return ends;
    case WK_EXPR_RULE: return ends_of(rules, rules->items[expr->id].body, text, begins);
    case WK_EXPR_TOKEN: break;
    }
    return 0;
}

/* All texts of up to six letters. */
static void check_texts(reading *r) {
    for (size_t size = 0; size <= 6; size++) {
        uint32_t n = 1;
        for (size_t i = 0; i < size; i++) n *= 3;
        for (uint32_t k = 0; k < n; k++) {
            char text[8];
            uint32_t left = k;
            for (size_t i = 0; i < size; i++, left /= 3) text[i] = (char)('a' + left % 3);
            const wk_str whole = {text, size};
            const uint32_t ends = ends_of(&r->rules, r->rules.items[0].body, whole, 1);
            if (reads(r, whole) != (ends >> size & 1))
                fail_msg("grammar %u: '%.*s'", seed, (int)size, text);
        }
    }
}

static void test_random_grammars(void **state) {
    (void)state;
    int n_checked = 0;
    for (int i = 0; i < 300; i++) {
        reading r;
        wick_error error = {0};
        begin_reading(&r, NULL);
        for (int k = 0; k < 3; k++) (void)wk_rules_add(&r.rules, wk_str_of("r"));
        for (int k = 0; k < 3; k++) r.rules.items[k].body = random_expr(&r.rules, 3);
        if (start_reading(&r, WICK_OK, &error) != WICK_OK) {
            assert_non_null(strstr(error.message, "left-recursive"));
            continue;
        }
        check_texts(&r);
        n_checked++;
        close_reading(&r);
    }
    assert_true(n_checked > 60);
}

/* Three ways to go on at each bracket are 3^n stacks, unless they share what is below them. */
static void test_ambiguous_grammars_stay_small(void **state) {
    (void)state;
    static const char *const grammars[] = {
        "root ::= e\ne ::= \"(\" e \")+\" | \"(\" e \")-\" | \"(\" e \")\" | \"x\"",
        "root ::= \"(\" root root | \"(\" | \"(\" root",
        "root ::= (\"(\" | \"((\" | \"(((\")* [(]*",
    };
    for (size_t i = 0; i < WK_COUNT(grammars); i++) {
        reading r;
        open_gbnf(&r, grammars[i]);
        wk_stacks *at = r.store.start;
        for (int k = 0; k < 1500; k++) {
            at = read_byte(&r, at, '(');
            if (!at || at->n == 0) fail_msg("%s: ends at %d", grammars[i], k);
        }
        assert_true(wk_stacks_store_size(&r.store) < (size_t)64 << 20);
        close_reading(&r);
    }
}

/* A set is worked out in at most 2^18 steps. The program is a chain of splits, of which each takes
 * a step for what cannot match and one for the rest, and then of calls that take one each. */
static wick_status follow_steps(uint32_t n_splits, uint32_t n_calls, wick_error *error) {
    wk_heap heap;
    wk_stacks_store store;
    wk_heap_init(&heap, NULL);
    wk_program program = {.heap = &heap, .n = 3 + n_splits + n_calls, .start = 3, .n_classes = 1};
    program.code = calloc(program.n, sizeof *program.code);
    assert_non_null(program.code);
    program.code[0].op = WK_GRAMMAR_RETURN;
    program.code[1].op = WK_GRAMMAR_FAIL;
    program.code[2] = (wk_instruction){.op = WK_GRAMMAR_BYTE, .last = 255};
    for (uint32_t i = 3; i < program.n; i++) {
        const uint32_t next = i + 1 < program.n ? i + 1 : 2;
        program.code[i] = i < 3 + n_splits
                              ? (wk_instruction){.op = WK_GRAMMAR_SPLIT, .next = 1, .other = next}
                              : (wk_instruction){.op = WK_GRAMMAR_CALL, .next = 0, .other = next};
    }
    const wick_status status = wk_stacks_store_make(&heap, &program, &store, error);
    if (status == WICK_OK) {
        assert_int_equal(store.n_steps, 1 + 2 * n_splits + n_calls);
        wk_stacks_store_free(&store);
    }
    free(program.code);
    return status;
}

static void test_steps_are_bounded(void **state) {
    (void)state;
    enum { MOST = 1 << 18, SPLITS = MOST / 2 - 1 };
    wick_error error = {0};
    assert_int_equal(follow_steps(SPLITS, 0, &error), WICK_OK); /* MOST - 1 */
    assert_int_equal(follow_steps(SPLITS, 1, &error), WICK_OK);
    assert_int_equal(follow_steps(SPLITS, 2, &error), WICK_ERR_VALUE);
    assert_string_equal(error.message, "the grammar is too ambiguous");
}

/* --- Refusals --- */

static void test_refusals(void **state) {
    (void)state;
    static const struct {
        const char *grammar, *said;
        wick_status status;
    } bad[] = {
        {"", "'root' is not defined", WICK_ERR_FORMAT},
        {"a ::= \"x\"", "'root' is not defined", WICK_ERR_FORMAT},
        {"root ::= a", "'a' is not defined", WICK_ERR_FORMAT},
        {"root ::= \"a", "column 10: the literal does not end", WICK_ERR_FORMAT},
        {"root ::= [a", "the class does not end", WICK_ERR_FORMAT},
        {"root ::= [b-a]", "the range ends before it begins", WICK_ERR_FORMAT},
        {"root ::= (\"a\"", "the group does not end", WICK_ERR_FORMAT},
        {"root ::= \"a\")", "the rule should end here", WICK_ERR_FORMAT},
        {"root ::= \"\\q\"", "unknown escape", WICK_ERR_FORMAT},
        {"root ::= \"\\", "unknown escape", WICK_ERR_FORMAT},
        {"root ::= \"\\x4\"", "too few hexadecimal digits", WICK_ERR_FORMAT},
        {"root ::= \"\\uD800\"", "there is no such character", WICK_ERR_FORMAT},
        {"root ::= \"\\U00110000\"", "there is no such character", WICK_ERR_FORMAT},
        {"root ::= \"a\x80\"", "invalid UTF-8", WICK_ERR_FORMAT},
        {"root ::= \"a\"\n root ::= \"b\"", "line 2, column 2: this rule has been defined",
         WICK_ERR_FORMAT},
        {"root = \"a\"", "'::=' is expected", WICK_ERR_FORMAT},
        {"root ::= \"a\" ::= \"b\"", "the rule should end here", WICK_ERR_FORMAT},
        {"::= \"a\"", "the name of a rule is expected", WICK_ERR_FORMAT},
        {"root ::= \"a\"{2,1}", "fewer than the least", WICK_ERR_FORMAT},
        {"root ::= \"a\"{100001}", "at most 100000", WICK_ERR_FORMAT},
        {"root ::= \"a\"{,3}", "a number is expected", WICK_ERR_FORMAT},
        {"root ::= \"a\"{1", "'}' is expected", WICK_ERR_FORMAT},
        {"root ::= \"a\"?????????", "repetitions of repetitions", WICK_ERR_FORMAT},
        {"root ::= <[5]>", "no such token", WICK_ERR_FORMAT},
        {"root ::= <[5>", "']>' is expected", WICK_ERR_FORMAT},
        {"root ::= <think>", "not exactly one token", WICK_ERR_FORMAT},
        {"root ::= <think", "the token does not end", WICK_ERR_FORMAT},
        {"root ::= !\"a\"", "only tokens are negated", WICK_ERR_FORMAT},
        {"root ::= root \"a\" | \"a\"", "'root' is left-recursive", WICK_ERR_VALUE},
        {"root ::= a\na ::= b? c \"x\"\nb ::= \"b\"\nc ::= \"c\"* a", "left-recursive",
         WICK_ERR_VALUE},
        {"root ::= (root{0,3})* \"a\"", "left-recursive", WICK_ERR_VALUE},
        {"root ::= ([a-z\xC3\xA9] \"x\" \"y\"){100000} ([a-z] [0-9] \"z\"){100000} "
         "(\"abc\" \"def\"){0,100000} (\"abc\" \"deg\"){0,100000} (\"abc\" \"deg\"){0,100000} "
         "(\"abc\" \"deg\"){0,100000} (\"abc\" \"deg\"){0,100000} (\"abc\" \"deg\"){0,100000}",
         "too large", WICK_ERR_VALUE},
    };
    for (size_t i = 0; i < WK_COUNT(bad); i++) {
        reading r;
        wick_error error = {0};
        const wick_status status = try_gbnf(&r, wk_str_of(bad[i].grammar), &error);
        if (status != bad[i].status || !strstr(error.message, bad[i].said))
            fail_msg("%s: %d, %s", bad[i].grammar, status, error.message);
    }
}

static void test_nesting_is_bounded(void **state) {
    (void)state;
    enum { N = 5000 };
    static char text[32 * N];
    wick_error error = {0};
    reading r;
    /* Brackets. */
    size_t size = (size_t)snprintf(text, sizeof text, "root ::= ");
    for (int i = 0; i < N; i++) text[size++] = '(';
    assert_int_equal(try_gbnf(&r, (wk_str){text, size}, &error), WICK_ERR_FORMAT);
    assert_non_null(strstr(error.message, "nested deeper"));
    /* Rules that call the next one first. */
    size = (size_t)snprintf(text, sizeof text, "root ::= r0\n");
    for (int i = 0; i < N; i++)
        size += (size_t)snprintf(text + size, sizeof text - size, "r%d ::= r%d\n", i, i + 1);
    size += (size_t)snprintf(text + size, sizeof text - size, "r%d ::= \"a\"\n", N);
    error = (wick_error){0};
    assert_int_equal(try_gbnf(&r, (wk_str){text, size}, &error), WICK_ERR_VALUE);
    assert_non_null(strstr(error.message, "called too deeply"));
    /* Counts of counts add up. */
    error = (wick_error){0};
    open_gbnf(&r, "root ::= (((\"ab\"{1000}){1000}){1000}){1000}");
    assert_true(r.program.n < 10000);
    close_reading(&r);
}

static void test_memory_runs_out(void **state) {
    (void)state;
    static const char grammar[] = "root ::= (\"abcdef\" | [^a-z\xC3\xA9]{3,9} e)+\n"
                                  "e ::= \"(\" e \")\" | \"x\"";
    for (uint64_t n = 0;; n++) {
        checked_heap checked;
        checked_heap_init(&checked, n);
        wick_error error = {0};
        reading r = {.heap = &checked.heap};
        const wick_status status = open_reading(&r, wk_str_of(grammar), &error);
        if (status == WICK_OK) {
            const bool is_read = reads(&r, wk_str_of("abcdef123((x))"));
            assert_true(is_read || r.store.failed == WICK_ERR_OUT_OF_MEMORY);
            close_reading(&r);
            assert_true(checked_heap_is_clean(&checked));
            if (is_read) break;
        } else {
            assert_int_equal(status, WICK_ERR_OUT_OF_MEMORY);
            assert_int_equal(error.status, WICK_ERR_OUT_OF_MEMORY);
            assert_true(checked_heap_is_clean(&checked));
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_languages),
        cmocka_unit_test(test_random_grammars),
        cmocka_unit_test(test_ambiguous_grammars_stay_small),
        cmocka_unit_test(test_steps_are_bounded),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_nesting_is_bounded),
        cmocka_unit_test(test_memory_runs_out),
    };
    return cmocka_run_group_tests_name("gbnf", tests, NULL, NULL);
}
