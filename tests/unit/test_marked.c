/* Tests of text/tokenize/marked: what is data never makes or unmakes a special token. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "text/tokenize/marked.h"
#include "unit/small_vocab.h"

#include <string.h>

typedef struct fixture {
    wk_heap heap;
    small_vocab vocab;
    wick_tokenizer *tokenizer;
} fixture;

static void make(fixture *f) {
    wick_error error = {.status = WICK_OK};
    wk_heap_init(&f->heap, NULL);
    const wick_status status = wk_tokenizer_make(&f->heap, &f->vocab.desc, &f->tokenizer, &error);
    if (status != WICK_OK) fail_msg("%s", error.message);
}

/* marks: a 'd' below each byte that is data. */
static size_t tokenize(const fixture *f, const char *text, const char *marks, uint32_t ids[32]) {
    uint8_t origin[32];
    assert_int_equal(strlen(text), strlen(marks));
    for (size_t i = 0; marks[i] != '\0'; i++) origin[i] = marks[i] == 'd';
    size_t n = 0;
    assert_int_equal(wk_tokenize_marked(f->tokenizer, wk_str_of(text), origin, ids, 32, &n),
                     WICK_OK);
    assert_true(n <= 32);
    return n;
}

static void data_changes_no_token(void **state) {
    (void)state;
    fixture f;
    small_vocab_bpe(&f.vocab, "gpt-2");
    const uint32_t tool = f.vocab.desc.n_tokens - 1; /* user-defined: text may be it */
    const uint32_t user = small_vocab_add(&f.vocab, "<u>", WK_TOKEN_CONTROL, 0);
    const uint32_t users = small_vocab_add(&f.vocab, "<u>s", WK_TOKEN_CONTROL, 0);
    make(&f);
    uint32_t ids[32];
    assert_int_equal(tokenize(&f, "<u>s", "....", ids), 1);
    assert_int_equal(ids[0], users);
    assert_int_equal(tokenize(&f, "<u>s", "...d", ids), 2);
    assert_int_equal(ids[0], user);
    assert_int_equal(tokenize(&f, "<u>s<u>", "...d...", ids), 3);
    assert_int_equal(ids[2], user);
    assert_int_equal(tokenize(&f, "<u>", "..d", ids), 3);
    assert_int_equal(tokenize(&f, "<u>", "d..", ids), 3);
    assert_int_equal(tokenize(&f, "<u><tool>", "...dddddd", ids), 2);
    assert_int_equal(ids[1], tool);
    assert_int_equal(tokenize(&f, "", "", ids), 0);
    wk_tokenizer_free(&f.heap, f.tokenizer);
}

/* The prefix is where wick_tokenize has it. */
static void prefixes(void **state) {
    (void)state;
    enum { SPACE = 259, HE = 264, TOOL = 272 };
    static const uint32_t expected[] = {1, SPACE, TOOL, HE, 2, SPACE, HE};
    fixture f;
    small_vocab_sentencepiece(&f.vocab);
    make(&f);
    uint32_t ids[32];
    assert_int_equal(tokenize(&f, "<tool>he</s>he", "..............", ids), 7);
    assert_memory_equal(ids, expected, sizeof expected);
    wk_tokenizer_free(&f.heap, f.tokenizer);

    /* Blanks that are removed elsewhere stay beside a piece, as in wick_tokenize. */
    static const char *const texts[][2] = {{"<tool>he", "........"},
                                           {"he <tool> he", "............"},
                                           {"he  he</s> <tool> ", ".................."}};
    f.vocab.desc.removes_extra_spaces = WK_YES;
    make(&f);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        uint32_t want[32];
        size_t n_want = 0;
        assert_int_equal(wick_tokenize(f.tokenizer, texts[i][0], strlen(texts[i][0]),
                                       WICK_TOKENIZE_ADD_BEGIN | WICK_TOKENIZE_PARSE_SPECIAL, want,
                                       32, &n_want),
                         WICK_OK);
        assert_int_equal(tokenize(&f, texts[i][0], texts[i][1], ids), n_want);
        assert_memory_equal(ids, want, n_want * sizeof *want);
    }
    assert_int_equal(tokenize(&f, "he <tool> he", "............", ids), 7);
    wk_tokenizer_free(&f.heap, f.tokenizer);
    f.vocab.desc.removes_extra_spaces = WK_UNSET;

    f.vocab.desc.prepend_scheme = wk_str_of("first");
    make(&f);
    assert_int_equal(tokenize(&f, "he</s>he", "........", ids), 5);
    assert_int_equal(ids[1], SPACE);
    assert_int_equal(ids[4], HE);
    wk_tokenizer_free(&f.heap, f.tokenizer);
}

/* BERT's begin token has a name of its own. */
static void begins_with_what_begins(void **state) {
    (void)state;
    fixture f;
    small_vocab_begin(&f.vocab, "bert", "");
    f.vocab.desc.unknown = small_vocab_add(&f.vocab, "[UNK]", WK_TOKEN_UNKNOWN, 0);
    f.vocab.desc.classify = small_vocab_add(&f.vocab, "[CLS]", WK_TOKEN_CONTROL, 0);
    const uint32_t piece = small_vocab_add(&f.vocab,
                                           "\xE2\x96\x81"
                                           "a",
                                           WK_TOKEN_NORMAL, 0);
    make(&f);
    uint32_t ids[32];
    assert_int_equal(tokenize(&f, "a", ".", ids), 2);
    assert_int_equal(ids[0], f.vocab.desc.classify);
    assert_int_equal(ids[1], piece);
    assert_int_equal(tokenize(&f, "[CLS]a", "......", ids), 2); /* not twice */
    wk_tokenizer_free(&f.heap, f.tokenizer);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(data_changes_no_token),
        cmocka_unit_test(prefixes),
        cmocka_unit_test(begins_with_what_begins),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
