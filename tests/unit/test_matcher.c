/* grammar/matcher and grammar/token_trie: masks against every token read by itself, on random ways
 * through grammars with a real vocabulary; tokens that are named; ends; memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "checked_heap.h"
#include "core/compiler.h"
#include "core/hash.h"
#include "fixture_file.h"
#include "grammar_reading.h"
#include "grammar/json_schema.h"
#include "grammar/matcher.h"
#include "small_vocab.h"
#include "vocab_fixture.h"

#include <math.h>
#include <string.h>

/* --- A matcher and the same grammar without a vocabulary --- */

typedef struct match {
    wk_heap *heap;
    const wick_tokenizer *tokenizer;
    wk_token_trie trie;
    wk_matcher *matcher;
    uint32_t n_vocab;
    float *logits;
} match;

static wick_status try_match(match *m, const wk_rules *rules, wick_error *error) {
    wick_status status = wk_token_trie_make(m->heap, m->tokenizer, &m->trie);
    if (status != WICK_OK) return wk_fail_memory(error, 0, "a test");
    const wk_matcher_desc desc = {m->tokenizer, &m->trie, m->n_vocab};
    status = wk_matcher_make(m->heap, &desc, rules, &m->matcher, error);
    if (status != WICK_OK) wk_token_trie_free(&m->trie);
    return status;
}

static void close_match(match *m) {
    wk_matcher_free(m->matcher);
    wk_token_trie_free(&m->trie);
}

static wk_rules read_grammar(wk_arena *arena, const wick_tokenizer *tokenizer, const char *text) {
    wk_rules rules = {.arena = arena};
    wick_error error = {0};
    const wk_str source = wk_str_of(text);
    const wick_status status = text[0] == '{' ? wk_json_schema_parse(&rules, source, &error)
                                              : wk_gbnf_parse(&rules, tokenizer, source, &error);
    if (status != WICK_OK) fail_msg("%s: %s", text, error.message);
    return rules;
}

static void apply(match *m) {
    wick_error error = {0};
    for (uint32_t i = 0; i < m->n_vocab; i++) m->logits[i] = (float)i;
    if (wk_matcher_apply(m->matcher, m->logits, &error) != WICK_OK) fail_msg("%s", error.message);
}

static bool is_allowed(const match *m, uint32_t id) { return m->logits[id] > -INFINITY; }

/* --- Against every token by itself --- */

/* After a token, read byte for byte. */
static wk_stacks *read_token(reading *r, wk_stacks *at, const wick_tokenizer *t, uint32_t id) {
    size_t size;
    const char *const bytes = wick_token_bytes(t, id, false, &size);
    if (size == 0 || wick_token_ends_generation(t, id)) return NULL;
    for (size_t i = 0; i < size; i++) {
        at = read_byte(r, at, (uint8_t)bytes[i]);
        if (!at) fail_msg("the store has failed: %s", wick_status_text(r->store.failed));
        if (at->n == 0) return NULL;
    }
    return at;
}

/* Returns a token to go on with: any, but seldom one that ends the text. */
static uint32_t check_mask(const match *m, reading *r, wk_stacks *at, uint32_t random) {
    uint32_t n = 0, chosen = WICK_NO_TOKEN;
    for (uint32_t id = 0; id < m->n_vocab; id++) {
        const bool is_known = id < wick_tokenizer_size(m->tokenizer);
        const bool is_end = is_known && wick_token_ends_generation(m->tokenizer, id);
        const bool expected = is_end ? wk_stacks_may_end(at)
                                     : is_known && read_token(r, at, m->tokenizer, id) != NULL;
        if (is_allowed(m, id) != expected)
            fail_msg("token %u: allowed %d, expected %d", id, !expected, expected);
        if (expected && !is_end && wk_hash_u64(random + id) % ++n == 0) chosen = id;
    }
    return chosen;
}

static const char *const grammars[] = {
    "root ::= [a-z ]* (\"<\" [^>]{1,30} \">\")? | .{3} root",
    "root ::= ws \"{\" (str \":\" ws root (\",\" str \":\" root)*)? \"}\" ws | str | [0-9]+ | "
    "\"[\" root (\",\" ws root)* \"]\"\n"
    "str ::= \"\\\"\" char* \"\\\"\" ws\nchar ::= [^\"\\\\\\x00-\\x1f] | \"\\\\\" [nt\"\\\\]\n"
    "ws ::= | \" \" ws\n",
    "root ::= (\"a\" root \"a\" | \"b\" root \"b\" | \"ab\" root | \"c\")+",
    "{}",
    "{\"type\":\"array\",\"items\":{\"properties\":{\"name\":{\"type\":\"string\",\"maxLength\":40}"
    ","
    "\"n\":{\"type\":\"number\",\"minimum\":-2.5,\"maximum\":1000},\"list\":{\"$ref\":\"#\"}},"
    "\"additionalProperties\":true}}",
};

static void walk_grammar(match *m, const char *text, uint32_t n_steps) {
    wk_arena arena;
    wk_arena_init(&arena, m->heap, 0);
    const wk_rules rules = read_grammar(&arena, NULL, text);
    wick_error error = {0};
    reading r;
    begin_reading(&r, m->heap);
    assert_int_equal(text[0] == '{' ? wk_json_schema_parse(&r.rules, wk_str_of(text), &error)
                                    : wk_gbnf_parse(&r.rules, NULL, wk_str_of(text), &error),
                     WICK_OK);
    assert_int_equal(start_reading(&r, WICK_OK, &error), WICK_OK);
    assert_int_equal(try_match(m, &rules, &error), WICK_OK);
    wk_arena_release(&arena);
    wk_stacks *at = r.store.start;
    for (uint32_t i = 0; i < n_steps; i++) {
        if (i % 3 == 0) assert_int_equal(wk_matcher_prepare(m->matcher, &error), WICK_OK);
        apply(m);
        const uint32_t id = check_mask(m, &r, at, i * 7919);
        if (id == WICK_NO_TOKEN) {
            wk_matcher_reset(m->matcher);
            at = r.store.start;
            continue;
        }
        assert_int_equal(wk_matcher_accept(m->matcher, id, &error), WICK_OK);
        at = read_token(&r, at, m->tokenizer, id);
    }
    close_match(m);
    close_reading(&r);
}

static void test_masks_are_exact(void **state) {
    (void)state;
    char path[1024];
    vocab_fixture vocab;
    if (!fixture_path("WICK_SHARED_DATA", "vocab/gpt-2.gguf", path, sizeof path)) skip();
    assert_int_equal(vocab_fixture_open(&vocab, path), WICK_OK);
    match m = {.heap = &vocab.heap,
               .tokenizer = vocab.tokenizer,
               .n_vocab = wick_tokenizer_size(vocab.tokenizer) + 70};
    m.logits = malloc(m.n_vocab * sizeof *m.logits);
    for (size_t i = 0; i < WK_COUNT(grammars); i++) walk_grammar(&m, grammars[i], 25);
    free(m.logits);
    vocab_fixture_close(&vocab);
}

/* --- Named tokens, ends --- */

enum { END = 262, TOOL = 263 };

static void open_small(match *m, wk_heap *heap, small_vocab *vocab, float *logits) {
    wick_tokenizer *tokenizer;
    small_vocab_bpe(vocab, "gpt-2");
    assert_int_equal(wk_tokenizer_make(heap, &vocab->desc, &tokenizer, NULL), WICK_OK);
    *m = (match){.heap = heap,
                 .tokenizer = tokenizer,
                 .n_vocab = wick_tokenizer_size(tokenizer),
                 .logits = logits};
}

static void open_grammar(match *m, const char *text) {
    wk_arena arena;
    wk_arena_init(&arena, m->heap, 0);
    const wk_rules rules = read_grammar(&arena, m->tokenizer, text);
    wick_error error = {0};
    if (try_match(m, &rules, &error) != WICK_OK) fail_msg("%s", error.message);
    wk_arena_release(&arena);
    apply(m);
}

static uint32_t count_allowed(const match *m) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < m->n_vocab; i++) n += is_allowed(m, i);
    return n;
}

static void accept(match *m, uint32_t id) {
    wick_error error = {0};
    if (wk_matcher_accept(m->matcher, id, &error) != WICK_OK) fail_msg("%s", error.message);
    apply(m);
}

static void test_named_tokens(void **state) {
    (void)state;
    static small_vocab vocab;
    float logits[SMALL_VOCAB_TOKENS];
    wk_heap heap;
    wk_heap_init(&heap, NULL);
    match m;
    open_small(&m, &heap, &vocab, logits);

    open_grammar(&m, "root ::= (<tool> | \"h\") \"hello\" <[262]>");
    assert_int_equal(count_allowed(&m), 2 + 0); /* <tool>, h: he is not in it */
    assert_true(is_allowed(&m, TOOL) && is_allowed(&m, 'h'));
    wick_error error = {0};
    assert_int_equal(wk_matcher_accept(m.matcher, 'x', &error), WICK_ERR_VALUE);
    accept(&m, TOOL);
    assert_int_equal(count_allowed(&m), 4); /* h, he, hell, hello */
    accept(&m, 259);
    assert_int_equal(count_allowed(&m), 1);
    assert_true(is_allowed(&m, END)); /* by its name */
    close_match(&m);

    open_grammar(&m, "root ::= !<tool>{2} \"a\"");
    assert_int_equal(count_allowed(&m), m.n_vocab - 2); /* nor the end */
    assert_false(is_allowed(&m, TOOL) || is_allowed(&m, END));
    accept(&m, 'q');
    accept(&m, 'q');
    assert_int_equal(count_allowed(&m), 1);
    accept(&m, 'a');
    assert_int_equal(count_allowed(&m), 1);
    assert_true(is_allowed(&m, END) && wk_matcher_may_end(m.matcher));
    accept(&m, END);
    accept(&m, END); /* for those who ignore it */
    assert_int_equal(count_allowed(&m), 1);
    assert_int_equal(wk_matcher_accept(m.matcher, 'a', &error), WICK_ERR_VALUE);
    wk_matcher_reset(m.matcher);
    assert_false(wk_matcher_may_end(m.matcher));
    close_match(&m);

    /* A token both as text and by its name. */
    open_grammar(&m, "root ::= <tool> \"x\" | \"<tool>\" \"y\"");
    assert_int_equal(count_allowed(&m), 2);
    accept(&m, TOOL);
    assert_true(is_allowed(&m, 'x') && is_allowed(&m, 'y'));
    close_match(&m);
    wk_tokenizer_free(&heap, (wick_tokenizer *)(uintptr_t)m.tokenizer);
    assert_int_equal(heap.live_bytes, 0);
}

/* The same masks again and again, in ever other places: what is kept of one must not be taken for
 * another's. */
static void test_long_ways(void **state) {
    (void)state;
    static small_vocab vocab;
    float logits[SMALL_VOCAB_TOKENS];
    wk_heap heap;
    wk_heap_init(&heap, NULL);
    match m;
    open_small(&m, &heap, &vocab, logits);
    for (size_t i = 0; i < WK_COUNT(grammars); i++) walk_grammar(&m, grammars[i], 600);
    wk_tokenizer_free(&heap, (wick_tokenizer *)(uintptr_t)m.tokenizer);
    assert_int_equal(heap.live_bytes, 0);
}

/* Every way to open DEPTH brackets of two kinds is another place in the grammar, and places are
 * large, because every letter is a class of bytes. What cannot be kept is forgotten between tokens,
 * and the text goes on as before. */
static void test_forgetting(void **state) {
    (void)state;
    enum { DEPTH = 1000, ROUNDS = 60 };
    static small_vocab vocab;
    static bool is_square[DEPTH];
    float logits[SMALL_VOCAB_TOKENS];
    wk_heap heap;
    wk_heap_init(&heap, NULL);
    match m;
    open_small(&m, &heap, &vocab, logits);
    open_grammar(&m,
                 "root ::= (\"(\" root \")\" | \"[\" root \"]\" | \"x\" | letters)\n"
                 "letters ::= \"abcdefghijklmnopqrstuvwyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789\"");
    wick_error error = {0};
    uint64_t before = heap.live_bytes;
    uint32_t random = 5, n_forgotten = 0;
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < DEPTH; i++) {
            random = random * 1664525 + 1013904223;
            is_square[i] = random >> 31 != 0;
            assert_int_equal(wk_matcher_accept(m.matcher, is_square[i] ? '[' : '(', &error),
                             WICK_OK);
            n_forgotten += heap.live_bytes < before;
            before = heap.live_bytes;
            assert_true(before < (uint64_t)80 << 20);
        }
        accept(&m, 'x');
        for (int i = DEPTH - 1; i >= 0; i--) {
            const uint32_t right = is_square[i] ? ']' : ')', wrong = is_square[i] ? ')' : ']';
            assert_int_equal(wk_matcher_accept(m.matcher, wrong, &error), WICK_ERR_VALUE);
            assert_int_equal(wk_matcher_accept(m.matcher, right, &error), WICK_OK);
            n_forgotten += heap.live_bytes < before;
            before = heap.live_bytes;
        }
        assert_true(wk_matcher_may_end(m.matcher));
        wk_matcher_reset(m.matcher);
    }
    assert_true(n_forgotten > 0);
    close_match(&m);
    wk_tokenizer_free(&heap, (wick_tokenizer *)(uintptr_t)m.tokenizer);
    assert_int_equal(heap.live_bytes, 0);
}

/* With this many tokens every mask is an allocation of its own. */
static void test_memory_runs_out(void **state) {
    (void)state;
    enum { N_VOCAB = 200000 };
    static small_vocab vocab;
    static float logits[N_VOCAB];
    wk_heap heap;
    wk_heap_init(&heap, NULL);
    match m;
    open_small(&m, &heap, &vocab, logits);
    m.n_vocab = N_VOCAB;
    wk_arena arena;
    wk_arena_init(&arena, &heap, 0);
    const wk_rules rules =
        read_grammar(&arena, m.tokenizer, "root ::= \"h\" ([a-z]{2,9} | <tool> root)+");
    for (uint64_t n = 0, is_done = 0; !is_done; n++) {
        checked_heap checked;
        checked_heap_init(&checked, n);
        wick_error error = {0};
        m.heap = &checked.heap;
        wick_status status = try_match(&m, &rules, &error);
        if (status == WICK_OK) {
            status = wk_matcher_apply(m.matcher, logits, &error);
            if (status == WICK_OK) status = wk_matcher_accept(m.matcher, 'h', &error);
            if (status == WICK_OK) status = wk_matcher_prepare(m.matcher, &error);
            if (status == WICK_OK) status = wk_matcher_accept(m.matcher, TOOL, &error);
            is_done = status == WICK_OK;
            close_match(&m);
        }
        assert_true(is_done || status == WICK_ERR_OUT_OF_MEMORY);
        assert_true(is_done || error.status == WICK_ERR_OUT_OF_MEMORY);
        assert_true(checked_heap_is_clean(&checked));
    }
    wk_arena_release(&arena);
    wk_tokenizer_free(&heap, (wick_tokenizer *)(uintptr_t)m.tokenizer);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_masks_are_exact), cmocka_unit_test(test_named_tokens),
        cmocka_unit_test(test_long_ways),       cmocka_unit_test(test_forgetting),
        cmocka_unit_test(test_memory_runs_out),
    };
    return cmocka_run_group_tests_name("matcher", tests, NULL, NULL);
}
