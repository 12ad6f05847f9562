/* Tests of text/tokenize/wordpiece, text/tokenize/unigram, text/tokenize/normalize, and of
 * SentencePiece with merges, on vocabularies small enough to see why. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "checked_heap.h"
#include "text/tokenize/merge.h"
#include "text/unicode/unicode.h"
#include "unit/small_vocab.h"

#include <math.h>
#include <string.h>

enum { ADD = WICK_TOKENIZE_ADD_SPECIAL, PARSE = WICK_TOKENIZE_PARSE_SPECIAL };

static wick_tokenizer *make(wk_heap *heap, const wk_vocab_desc *desc) {
    wick_error error = {.status = WICK_OK};
    wick_tokenizer *tokenizer = NULL;
    wk_heap_init(heap, NULL);
    if (wk_tokenizer_make(heap, desc, &tokenizer, &error) != WICK_OK) fail_msg("%s", error.message);
    return tokenizer;
}

static void free_tokenizer(wk_heap *heap, wick_tokenizer *t) {
    wk_tokenizer_free(heap, t);
    assert_int_equal(heap->live_bytes, 0);
}

static void assert_ids(const wick_tokenizer *t, const char *text, uint32_t flags,
                       const uint32_t *expected, size_t n_expected) {
    uint32_t ids[256];
    size_t count = 0;
    assert_int_equal(wick_tokenize(t, text, strlen(text), flags, ids, WK_COUNT(ids), &count),
                     WICK_OK);
    assert_int_equal(count, n_expected);
    for (size_t i = 0; i < count; i++) assert_int_equal(ids[i], expected[i]);
}

#define ASSERT_IDS(t, text, flags, ...)                                                            \
    assert_ids(t, text, flags, (const uint32_t[]){__VA_ARGS__},                                    \
               sizeof((const uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t))

static void assert_refused(const wk_vocab_desc *desc, const char *part) {
    wk_heap heap;
    wk_heap_init(&heap, NULL);
    wick_error error = {.status = WICK_OK};
    wick_tokenizer *t = NULL;
    assert_int_equal(wk_tokenizer_make(&heap, desc, &t, &error), WICK_ERR_FORMAT);
    if (!strstr(error.message, part)) fail_msg("'%s' lacks '%s'", error.message, part);
    assert_int_equal(heap.live_bytes, 0);
}

static void add_all(small_vocab *v, const char *const *texts, size_t n) {
    for (size_t i = 0; i < n; i++) small_vocab_add(v, texts[i], WK_TOKEN_NORMAL, -(float)i);
}

static void assert_text(const wick_tokenizer *t, const uint32_t *ids, size_t n, const char *text) {
    char out[256];
    size_t total = 0, size;
    wick_detokenizer state = {.tokenizer = t};
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(wick_detokenize(&state, ids[i], out + total, sizeof out - total, &size),
                         WICK_OK);
        total += size;
    }
    out[total] = '\0';
    assert_string_equal(out, text);
}

/* --- WordPiece --- */

enum { UNK, CLS, SEP, UN, AFF, ABLE, HI, COMMA, HAN, HAS_A, E, UNABLE };

static void make_wordpiece(small_vocab *v) {
    static const char *const texts[] = {"\xE2\x96\x81un",
                                        "aff",
                                        "able",
                                        "\xE2\x96\x81hi",
                                        "\xE2\x96\x81,",
                                        "\xE2\x96\x81\xE6\xBC\xA2",
                                        "\xE2\x96\x81\x61", /* a */
                                        "e"};
    small_vocab_begin(v, "bert", "");
    v->desc.unknown = small_vocab_add(v, "[UNK]", WK_TOKEN_CONTROL, 0);
    v->desc.classify = small_vocab_add(v, "[CLS]", WK_TOKEN_CONTROL, 0);
    v->desc.separator = small_vocab_add(v, "[SEP]", WK_TOKEN_CONTROL, 0);
    add_all(v, texts, WK_COUNT(texts));
}

static void wordpiece(void **state) {
    (void)state;
    wk_heap heap;
    small_vocab v;
    make_wordpiece(&v);
    wick_tokenizer *t = make(&heap, &v.desc);
    ASSERT_IDS(t, "unaffable", 0, UN, AFF, ABLE);
    ASSERT_IDS(t, "unaffable", ADD, CLS, UN, AFF, ABLE, SEP);
    ASSERT_IDS(t, "  HI,\thi\n", 0, HI, COMMA, HI);
    ASSERT_IDS(t, "unafford hi", 0, UNK,
               HI);               /* a part of the word is missing from the vocabulary */
    ASSERT_IDS(t, "aff", 0, UNK); /* a piece that begins no word */
    ASSERT_IDS(t, "hi\xE6\xBC\xA2hi", 0, HI, HAN, HI);
    ASSERT_IDS(t, "\xC3\x80\xC3\xA9 ae\xCC\x81", 0, HAS_A, E, HAS_A, E); /* accents go */
    ASSERT_IDS(t, "h\x01i\xE2\x80\x8B \xFF", 0, HI); /* so do control characters and bad bytes */
    ASSERT_IDS(t, "[CLS]", 0, UNK, UNK, UNK);
    ASSERT_IDS(t, "[CLS]hi", PARSE, CLS, HI);
    assert_ids(t, " \n ", 0, NULL, 0);
    assert_text(t, (const uint32_t[]){CLS, UN, AFF, ABLE, COMMA, HI, SEP}, 7, "unaffable , hi");
    assert_int_equal(wick_token_begin(t), CLS);
    assert_int_equal(wick_token_end(t), SEP);
    free_tokenizer(&heap, t);

    v.desc.add_separator = WK_NO;
    t = make(&heap, &v.desc);
    ASSERT_IDS(t, "hi", ADD, CLS, HI);
    free_tokenizer(&heap, t);
}

/* The first and last of each block are words of their own, those before and after are not. */
static void wordpiece_ideographs(void **state) {
    (void)state;
    static const struct {
        uint32_t before, first, last, after; /* 0: the next block begins there */
    } blocks[] = {{0x4DFF, 0x4E00, 0x9FFF, 0xA000},
                  {0x33FF, 0x3400, 0x4DBF, 0x4DC0},
                  {0x1FFFD, 0x20000, 0x2A6DF, 0x2A6E0},
                  {0x2A6FF, 0x2A700, 0x2B73F, 0},
                  {0, 0x2B740, 0x2B81F, 0},
                  {0, 0x2B820, 0x2CEAF, 0x2CEB0},
                  {0, 0xF900, 0xFAFF, 0xFB00},
                  {0x2F7FF, 0x2F800, 0x2FA1F, 0x2FA20}};
    wk_heap heap;
    small_vocab v;
    make_wordpiece(&v);
    wick_tokenizer *const t = make(&heap, &v.desc);
    for (size_t i = 0; i < WK_COUNT(blocks); i++) {
        const uint32_t codes[] = {blocks[i].before, blocks[i].first, blocks[i].last,
                                  blocks[i].after};
        for (size_t k = 0; k < WK_COUNT(codes); k++) {
            char text[9] = "hi";
            if (codes[k] == 0) continue;
            const size_t size = wk_utf8_encode(codes[k], text + 2);
            memcpy(text + 2 + size, "hi", 3);
            if (k == 1 || k == 2)
                ASSERT_IDS(t, text, 0, HI, UNK, HI);
            else
                ASSERT_IDS(t, text, 0, UNK);
        }
    }
    free_tokenizer(&heap, t);
}

static void long_words_are_unknown(void **state) {
    (void)state;
    wk_heap heap;
    small_vocab v;
    make_wordpiece(&v);
    wick_tokenizer *const t = make(&heap, &v.desc);
    char text[128] = "a";
    memset(text + 1, 'e', 100);
    ASSERT_IDS(t, text, 0, UNK);
    text[100] = '\0'; /* 100 characters are not too many */
    uint32_t ids[128];
    size_t n = 0;
    assert_int_equal(wick_tokenize(t, text, 100, 0, ids, WK_COUNT(ids), &n), WICK_OK);
    assert_int_equal(n, 100);
    free_tokenizer(&heap, t);
}

static void capitals_count_where_there_are_some(void **state) {
    (void)state;
    wk_heap heap;
    small_vocab v;
    make_wordpiece(&v);
    const uint32_t capital = small_vocab_add(&v,
                                             "\xE2\x96\x81"
                                             "A",
                                             WK_TOKEN_NORMAL, 0);
    wick_tokenizer *const t = make(&heap, &v.desc);
    ASSERT_IDS(t, "A a HI \xC3\x80", 0, capital, HAS_A, UNK, UNK);
    free_tokenizer(&heap, t);
}

/* --- The unigram model --- */

static void make_unigram(small_vocab *v) {
    static const char *const texts[] = {"\xE2\x96\x81", "a", "b",   "ab",
                                        "abc",          "c", "bcd", "cccccc"};
    static const float scores[] = {-2, -3, -3, -4, -9, -3, -4, -5};
    small_vocab_begin(v, "t5", "");
    v->desc.unknown = small_vocab_add(v, "<unk>", WK_TOKEN_UNKNOWN, 0);
    v->desc.end = small_vocab_add(v, "</s>", WK_TOKEN_CONTROL, 0);
    for (size_t i = 0; i < WK_COUNT(texts); i++) {
        small_vocab_add(v, texts[i], WK_TOKEN_NORMAL, scores[i]);
    }
}

static void unigram(void **state) {
    (void)state;
    enum { UNKNOWN, END, SPACE, A, B, AB, ABC, C, BCD, SIX };
    wk_heap heap;
    small_vocab v;
    make_unigram(&v);
    wick_tokenizer *t = make(&heap, &v.desc);
    ASSERT_IDS(t, "abcd", 0, SPACE, A, BCD); /* the longest first would end in nothing */
    ASSERT_IDS(t, "abc", 0, SPACE, AB, C);   /* the whole is worse */
    ASSERT_IDS(t, "cccccc", 0, SPACE, SIX);  /* as long as any token */
    ASSERT_IDS(t, "ab", ADD, SPACE, AB, END);
    ASSERT_IDS(t, "axyzb", 0, SPACE, A, UNKNOWN, B); /* one for all in a row */
    ASSERT_IDS(t, "  a   b ", 0, SPACE, A, SPACE, B);
    ASSERT_IDS(t, "a</s>", 0, SPACE, A, UNKNOWN);
    ASSERT_IDS(t, "a</s>b", PARSE, SPACE, A, END, SPACE, B);
    ASSERT_IDS(t, "\xFF", 0, SPACE, UNKNOWN);
    assert_ids(t, "   ", 0, NULL, 0);
    assert_text(t, (const uint32_t[]){SPACE, A, SPACE, BCD, END}, 5, "a bcd");
    free_tokenizer(&heap, t);

    v.desc.removes_extra_spaces = v.desc.add_space_prefix = WK_NO;
    t = make(&heap, &v.desc);
    ASSERT_IDS(t, " a  b ", 0, SPACE, A, SPACE, SPACE, B, SPACE);
    free_tokenizer(&heap, t);
}

/* Less probable by 10 than the least probable piece, of which two unknown ones are better here. */
static void unigram_unknown(void **state) {
    (void)state;
    enum { UNKNOWN, END, SPACE, XY = 10 };
    static const float scores[] = {-19, -20, -21, -30};
    for (size_t i = 0; i < WK_COUNT(scores); i++) {
        wk_heap heap;
        small_vocab v;
        make_unigram(&v);
        v.scores[SPACE] = -20; /* the least except for xy */
        assert_int_equal(small_vocab_add(&v, "xy", WK_TOKEN_NORMAL, scores[i]), XY);
        wick_tokenizer *const t = make(&heap, &v.desc);
        ASSERT_IDS(t, "xy", 0, SPACE, XY);
        free_tokenizer(&heap, t);
    }
}

/* Scores that are NaN give some ids, and they end. */
static void unigram_with_any_scores(void **state) {
    (void)state;
    static const float odd[] = {NAN, INFINITY, -INFINITY};
    for (size_t i = 0; i < WK_COUNT(odd); i++) {
        wk_heap heap;
        small_vocab v;
        make_unigram(&v);
        for (uint32_t id = 2; id < v.desc.n_tokens; id++) v.scores[id] = odd[i];
        wick_tokenizer *const t = make(&heap, &v.desc);
        uint32_t ids[8];
        size_t n = 0;
        assert_int_equal(wick_tokenize(t, "abxcd", 5, 0, ids, WK_COUNT(ids), &n), WICK_OK);
        assert_in_range(n, 1, 8);
        free_tokenizer(&heap, t);
    }
}

/* A double array by hand: A becomes "ab". The root's children are at offset 1; 'A' is at 1 ^ 0x41,
 * its leaf at that place ^ 2. */
enum { UNITS = 128, AT = 1 ^ 'A', LEAF = AT ^ 2 };

static wk_str make_map(void) {
    static unsigned char map[4 + 4 * UNITS + 5];
    const uint32_t units[][2] = {{0, 1U << 10}, {AT, 'A' | 1U << 8 | 2U << 10}, {LEAF, 1}};
    map[0] = (4 * UNITS) & 255;
    map[1] = (4 * UNITS) >> 8;
    for (size_t i = 0; i < WK_COUNT(units); i++) {
        unsigned char *const at = map + 4 + 4 * units[i][0];
        for (int k = 0; k < 4; k++) at[k] = (unsigned char)(units[i][1] >> (8 * k));
    }
    memcpy(map + 4 + 4 * UNITS, "?ab\0c", 5);
    return (wk_str){(const char *)map, sizeof map};
}

static void replacements(void **state) {
    (void)state;
    wk_heap heap;
    small_vocab v;
    make_unigram(&v);
    v.desc.charsmap = make_map();
    wick_tokenizer *t = make(&heap, &v.desc);
    ASSERT_IDS(t, "AcA", 0, 2, 5, 7, 5);
    free_tokenizer(&heap, t);

    v.desc.charsmap.size -= 2; /* the replacement's end is missing */
    t = make(&heap, &v.desc);
    ASSERT_IDS(t, "A", 0, 2, 5);
    free_tokenizer(&heap, t);
    v.desc.charsmap.size = 4 + 4 * UNITS; /* all of it: then there is none */
    t = make(&heap, &v.desc);
    ASSERT_IDS(t, "A", 0, 2, 0);
    free_tokenizer(&heap, t);
    v.desc.charsmap.size--;
    assert_refused(&v.desc, "precompiled_charsmap");
    v.desc.charsmap.size = 3;
    assert_refused(&v.desc, "precompiled_charsmap");
}

/* --- SentencePiece with scores --- */

enum { SPACE_ = 259, HE_ = 264, TWO_SPACES = 271, TOOL_ = 272 };

/* A user-defined piece is text: the prefix stands before it, not after it. */
static void prefix_beside_user_pieces(void **state) {
    (void)state;
    wk_heap heap;
    small_vocab v;
    small_vocab_sentencepiece(&v);
    wick_tokenizer *t = make(&heap, &v.desc);
    ASSERT_IDS(t, "<tool>he", 0, SPACE_, TOOL_, HE_);
    ASSERT_IDS(t, "he<tool> he", 0, SPACE_, HE_, TOOL_, SPACE_, HE_);
    ASSERT_IDS(t, "</s><tool>he", PARSE, 2, SPACE_, TOOL_, HE_);
    ASSERT_IDS(t, "<tool>he", WICK_TOKENIZE_CONTINUE, TOOL_, HE_);
    free_tokenizer(&heap, t);

    v.scores[TOOL_] = -1000; /* not a piece: added to them */
    t = make(&heap, &v.desc);
    ASSERT_IDS(t, "<tool>he", 0, TOOL_, SPACE_, HE_);
    free_tokenizer(&heap, t);
}

static void prefix_of_metaspace(void **state) {
    (void)state;
    wk_heap heap;
    small_vocab v;
    small_vocab_sentencepiece(&v);
    v.desc.prepend_scheme = wk_str_of("always");
    wick_tokenizer *t = make(&heap, &v.desc);
    ASSERT_IDS(t, " he", 0, SPACE_, HE_);
    ASSERT_IDS(t, "he</s> he</s>he", PARSE, SPACE_, HE_, 2, SPACE_, HE_, 2, SPACE_, HE_);
    ASSERT_IDS(t, "<tool>he", 0, TOOL_, SPACE_, HE_);
    free_tokenizer(&heap, t);

    v.desc.prepend_scheme = wk_str_of("first");
    t = make(&heap, &v.desc);
    ASSERT_IDS(t, "he</s>he", PARSE, SPACE_, HE_, 2, HE_);
    ASSERT_IDS(t, "</s>he", PARSE, 2, HE_);
    ASSERT_IDS(t, "  he", 0, TWO_SPACES, HE_);
    ASSERT_IDS(t, "<tool>he", 0, TOOL_, HE_);
    free_tokenizer(&heap, t);

    wick_error error = {.status = WICK_OK};
    v.desc.prepend_scheme = wk_str_of("last");
    assert_int_equal(wk_tokenizer_make(&heap, &v.desc, &t, &error), WICK_ERR_UNSUPPORTED);
    assert_non_null(strstr(error.message, "'last'"));
}

static void scores_after_normalization(void **state) {
    (void)state;
    wk_heap heap;
    small_vocab v;
    small_vocab_sentencepiece(&v);
    v.desc.removes_extra_spaces = WK_YES;
    wick_tokenizer *t = make(&heap, &v.desc);
    ASSERT_IDS(t, "  he   he ", 0, SPACE_, HE_, SPACE_, HE_);
    ASSERT_IDS(t, "he  <tool> he", 0, SPACE_, HE_, SPACE_, TOOL_, SPACE_, HE_);
    ASSERT_IDS(t, " <tool>", 0, SPACE_, TOOL_);
    free_tokenizer(&heap, t);

    v.desc.removes_extra_spaces = WK_NO;
    v.desc.charsmap = make_map();
    t = make(&heap, &v.desc);
    ASSERT_IDS(t, "A ", 0, SPACE_, 3 + 'a', 3 + 'b', SPACE_);
    free_tokenizer(&heap, t);
}

/* --- Byte-level BPE --- */

static void whole_pieces(void **state) {
    (void)state;
    wk_heap heap;
    small_vocab v;
    small_vocab_bpe(&v, "gpt-2");
    const uint32_t whole = small_vocab_add(&v, "ab", WK_TOKEN_NORMAL, 0);
    wick_tokenizer *t = make(&heap, &v.desc);
    ASSERT_IDS(t, "ab", 0, 'a', 'b');
    free_tokenizer(&heap, t);
    v.desc.takes_whole = WK_YES;
    t = make(&heap, &v.desc);
    ASSERT_IDS(t, "ab", 0, whole);
    free_tokenizer(&heap, t);
    v.desc.pre = wk_str_of("llama-bpe");
    v.desc.takes_whole = WK_NO;
    t = make(&heap, &v.desc);
    ASSERT_IDS(t, "ab", 0, 'a', 'b');
    free_tokenizer(&heap, t);
}

/* --- SentencePiece with merges --- */

static void make_merges(small_vocab *v) {
    small_vocab_sentencepiece(v);
    v->desc.model = wk_str_of("gemma4");
    v->desc.scores = NULL;
    small_vocab_merge(v, "\xE2\x96\x81 h");
    small_vocab_merge(v, "h e");
    small_vocab_merge(v, "l l");
    small_vocab_merge(v, "he ll");
}

static void merges_of_characters(void **state) {
    (void)state;
    enum { SPACE = 259, H, E_, L, O, HE, LL, HELL, HELLO, S_HELLO, S_H };
    wk_heap heap;
    small_vocab v;
    make_merges(&v);
    wick_tokenizer *const t = make(&heap, &v.desc);
    ASSERT_IDS(t, "hello", 0, HELL, O);
    ASSERT_IDS(t, "hello", ADD, 1, HELL, O);
    ASSERT_IDS(t, " hello", 0, S_H, E_, LL, O); /* the list decides, not the scores */
    ASSERT_IDS(t, "z\xC3", 0, 3 + 'z', 3 + 0xC3);
    ASSERT_IDS(t, "</s>", 0, 3 + '<', 3 + '/', 3 + 's', 3 + '>');
    free_tokenizer(&heap, t);
    v.desc.n_merges = 0;
    assert_refused(&v.desc, "tokenizer.ggml.merges is missing");
}

/* --- Windows of merges --- */

static size_t n_begun; /* symbols, of all windows */

static size_t begin_letter(const void *context, wk_str text, uint32_t *id) {
    (void)context;
    (void)text;
    n_begun++;
    *id = 1;
    return 1;
}

/* A word is 'A' and the 'b's after it; its id is its size. */
static bool join_word(const void *context, const wk_symbol *left, const wk_symbol *right,
                      uint32_t *rank, uint32_t *id) {
    (void)context;
    *rank = 0;
    *id = left->size + right->size;
    return left->text[0] == 'A' && right->text[0] == 'b';
}

static wick_status spell_nothing(const void *context, wk_str text, wk_id_sink *out) {
    (void)context;
    (void)text;
    (void)out;
    return WICK_ERR_INTERNAL;
}

/* The first window has 128 symbols, and the next one begins with the first token in its last
 * eighth. Words of 16 letters end just where the window does, so that every window advances by 112
 * letters. Of words of 10, the one that begins at 120 is cut off: a window of twice the width has
 * room for the one at 230. */
static void windows_overlap_by_an_eighth(void **state) {
    enum { WORDS = 200, LONGEST = 16 };
    static const struct {
        size_t letters, capacity, n_begun;
    } cases[] = {{16, 128, 28 * 128 + 64}, {10, 256, 0}, {9, 128, 0}, {1, 128, 128 + 88}};
    static char text[WORDS * LONGEST];
    (void)state;
    for (size_t c = 0; c < WK_COUNT(cases); c++) {
        const size_t n = cases[c].letters;
        const wk_merge_rule rule = {
            .begin = begin_letter, .join = join_word, .spell = spell_nothing};
        uint32_t ids[WORDS];
        wk_id_sink out = {.ids = ids, .capacity = WORDS, .last = WICK_NO_TOKEN};
        wk_heap heap;
        wk_merger merger;
        wk_heap_init(&heap, NULL);
        for (size_t i = 0; i < WORDS * n; i++) text[i] = i % n == 0 ? 'A' : 'b';
        n_begun = 0;
        assert_int_equal(wk_merger_init(&merger, &heap, WORDS * n), WICK_OK);
        assert_int_equal(wk_merge(&merger, &rule, (wk_str){text, WORDS * n}, &out), WICK_OK);
        assert_int_equal(out.count, WORDS);
        for (size_t i = 0; i < WORDS; i++) assert_int_equal(ids[i], n);
        assert_int_equal(merger.capacity, cases[c].capacity);
        if (cases[c].n_begun > 0) assert_int_equal(n_begun, cases[c].n_begun);
        wk_merger_release(&merger);
        assert_int_equal(heap.live_bytes, 0);
    }
}

static void refusals(void **state) {
    (void)state;
    small_vocab v;
    make_wordpiece(&v);
    v.desc.unknown = WICK_NO_TOKEN;
    assert_refused(&v.desc, "tokenizer.ggml.unknown_token_id");
    make_wordpiece(&v);
    v.desc.classify = v.desc.n_tokens;
    assert_refused(&v.desc, "tokenizer.ggml.cls_token_id");
    make_wordpiece(&v);
    v.desc.separator = v.desc.n_tokens;
    assert_refused(&v.desc, "tokenizer.ggml.seperator_token_id");
    make_unigram(&v);
    v.desc.scores = NULL;
    assert_refused(&v.desc, "tokenizer.ggml.scores is missing");
}

/* Every allocation fails once: a status, nothing lost, nothing left. */
static void survives_short_memory(void **state) {
    (void)state;
    static const char text[] = "hello, hello \xE2\x96\x81 abcd";
    static void (*const makers[])(small_vocab *) = {make_wordpiece, make_unigram, make_merges};
    for (size_t kind = 0; kind < WK_COUNT(makers); kind++) {
        small_vocab v;
        makers[kind](&v);
        bool passed = false;
        for (uint64_t allowed = 0; !passed; allowed++) {
            checked_heap checked;
            checked_heap_init(&checked, allowed);
            wick_error error = {.status = WICK_OK};
            wick_tokenizer *t = NULL;
            uint32_t ids[64];
            size_t count;
            wick_status status = wk_tokenizer_make(&checked.heap, &v.desc, &t, &error);
            if (status == WICK_OK) {
                status = wick_tokenize(t, text, sizeof text - 1, 0, ids, 64, &count);
            }
            passed = status == WICK_OK;
            if (!passed) assert_int_equal(status, WICK_ERR_OUT_OF_MEMORY);
            wk_tokenizer_free(&checked.heap, t);
            assert_true(checked_heap_is_clean(&checked));
            assert_true(allowed < 100);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wordpiece),
        cmocka_unit_test(wordpiece_ideographs),
        cmocka_unit_test(long_words_are_unknown),
        cmocka_unit_test(capitals_count_where_there_are_some),
        cmocka_unit_test(unigram),
        cmocka_unit_test(unigram_unknown),
        cmocka_unit_test(unigram_with_any_scores),
        cmocka_unit_test(replacements),
        cmocka_unit_test(prefix_beside_user_pieces),
        cmocka_unit_test(prefix_of_metaspace),
        cmocka_unit_test(scores_after_normalization),
        cmocka_unit_test(whole_pieces),
        cmocka_unit_test(merges_of_characters),
        cmocka_unit_test(windows_overlap_by_an_eighth),
        cmocka_unit_test(refusals),
        cmocka_unit_test(survives_short_memory),
    };
    return cmocka_run_group_tests_name("tokenizer_kinds", tests, NULL, NULL);
}
