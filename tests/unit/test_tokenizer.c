/* Tests of text/tokenize/tokenizer: byte-level BPE and SentencePiece, special tokens, refusals,
 * prompts. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "checked_heap.h"
#include "core/json.h"
#include "core/rng.h"
#include "fixture_file.h"
#include "text/tokenize/marked.h"
#include "unit/small_vocab.h"
#include "unit/vocab_fixture.h"

#include <string.h>

enum { ADD = WICK_TOKENIZE_ADD_SPECIAL, PARSE = WICK_TOKENIZE_PARSE_SPECIAL };

static wick_tokenizer *make(wk_heap *heap, const wk_vocab_desc *desc) {
    wick_error error = {.status = WICK_OK};
    wick_tokenizer *tokenizer = NULL;
    const wick_status status = wk_tokenizer_make(heap, desc, &tokenizer, &error);
    if (status != WICK_OK) fail_msg("%s", error.message);
    return tokenizer;
}

static void assert_ids(const wick_tokenizer *t, wk_str text, uint32_t flags,
                       const uint32_t *expected, size_t n_expected) {
    uint32_t *const ids = malloc((text.size + 4) * sizeof *ids);
    size_t count = 0;
    assert_non_null(ids);
    assert_int_equal(wick_tokenize(t, text.text, text.size, flags, ids, text.size + 4, &count),
                     WICK_OK);
    assert_int_equal(count, n_expected);
    for (size_t i = 0; i < count; i++) assert_int_equal(ids[i], expected[i]);
    free(ids);
}

#define ASSERT_IDS(t, text, flags, ...)                                                            \
    assert_ids(t, wk_str_of(text), flags, (const uint32_t[]){__VA_ARGS__},                         \
               sizeof((const uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t))

static void byte_level_merges_by_rank(void **state) {
    (void)state;
    wk_heap heap;
    wk_heap_init(&heap, NULL);
    small_vocab v;
    small_vocab_bpe(&v, "gpt-2");
    wick_tokenizer *const t = make(&heap, &v.desc);
    assert_int_equal(wick_tokenizer_size(t), 264);
    ASSERT_IDS(t, "hello hello", 0, 259, 261);
    ASSERT_IDS(t, "hell hel", 0, 258, ' ', 256, 'l'); /* h e is better than the space and h */
    ASSERT_IDS(t, "lllll", 0, 257, 257, 'l');
    ASSERT_IDS(t, "\xFF\xC3", 0, 0xFF, 0xC3);
    assert_ids(t, wk_str_of(""), ADD, NULL, 0);
    wk_tokenizer_free(&heap, t);
    assert_int_equal(heap.live_bytes, 0);
}

static void llama3_takes_whole_pieces(void **state) {
    (void)state;
    wk_heap heap;
    wk_heap_init(&heap, NULL);
    small_vocab v;
    small_vocab_bpe(&v, "llama-bpe");
    const uint32_t whole = small_vocab_add(&v, "world", WK_TOKEN_NORMAL, 0); /* no merge makes it */
    v.desc.begin = small_vocab_add(&v, "<|begin|>", WK_TOKEN_CONTROL, 0);
    wick_tokenizer *t = make(&heap, &v.desc);
    ASSERT_IDS(t, "world", 0, whole);
    ASSERT_IDS(t, "world", ADD, v.desc.begin, whole); /* begins by default */
    wk_tokenizer_free(&heap, t);

    v.desc.pre = wk_str_of("gpt-2");
    t = make(&heap, &v.desc);
    ASSERT_IDS(t, "world", ADD, 'w', 'o', 'r', 'l', 'd');
    wk_tokenizer_free(&heap, t);
    v.desc.add_begin = v.desc.add_end = WK_YES;
    t = make(&heap, &v.desc);
    ASSERT_IDS(t, "hello", ADD, v.desc.begin, 259, v.desc.end);
    ASSERT_IDS(t, "hello", 0, 259);
    wk_tokenizer_free(&heap, t);
}

static void bytes_that_are_no_token(void **state) {
    (void)state;
    wk_heap heap;
    wk_heap_init(&heap, NULL);
    small_vocab v;
    small_vocab_bpe(&v, "gpt-2");
    v.tokens['x'] = wk_str_of("a name that is no byte");
    v.desc.unknown = v.desc.end; /* text must not end itself */
    wick_tokenizer *t = make(&heap, &v.desc);
    ASSERT_IDS(t, "axb", 0, 'a', 0xEF, 0xBF, 0xBD, 'b');
    wk_tokenizer_free(&heap, t);

    v.tokens[0xBF] = wk_str_of("another name");
    t = make(&heap, &v.desc);
    uint32_t ids[4];
    size_t count = 7;
    assert_int_equal(wick_tokenize(t, "axb", 3, 0, ids, 4, &count), WICK_ERR_VALUE);
    assert_int_equal(count, 0);
    wk_tokenizer_free(&heap, t);

    small_vocab_add(&v, "\xC3\xAF\xC2\xBF\xC2\xBD", WK_TOKEN_NORMAL, 0);
    t = make(&heap, &v.desc);
    ASSERT_IDS(t, "axb", 0, 'a', v.desc.n_tokens - 1, 'b');
    wk_tokenizer_free(&heap, t);

    v.desc.unknown = small_vocab_add(&v, "<unk>", WK_TOKEN_UNKNOWN, 0);
    t = make(&heap, &v.desc);
    ASSERT_IDS(t, "axb", 0, 'a', v.desc.unknown, 'b');
    wk_tokenizer_free(&heap, t);

    /* Bytes that UTF-8 does not have may be user-defined, by their characters in the alphabet. */
    v.kinds[0xFF] = WK_TOKEN_USER_DEFINED;
    t = make(&heap, &v.desc);
    ASSERT_IDS(t, "a\xFF", 0, 'a', 0xFF);
    ASSERT_IDS(t, "a\xC3\xBF", 0, 'a', 0xFF);
    wk_tokenizer_free(&heap, t);
}

/* Regardless of the merges, text must not turn into a special token. */
static void merges_make_no_special_token(void **state) {
    (void)state;
    wk_heap heap;
    wk_heap_init(&heap, NULL);
    small_vocab v;
    small_vocab_bpe(&v, "gpt-2");
    v.kinds[259] = WK_TOKEN_CONTROL; /* hello */
    wick_tokenizer *const t = make(&heap, &v.desc);
    ASSERT_IDS(t, "hello", 0, 258, 'o');
    ASSERT_IDS(t, "hello", PARSE, 259);
    wk_tokenizer_free(&heap, t);
}

static void special_tokens_in_text(void **state) {
    (void)state;
    wk_heap heap;
    wk_heap_init(&heap, NULL);
    small_vocab v;
    small_vocab_bpe(&v, "gpt-2");
    const uint32_t longer = small_vocab_add(&v, "<|end|>>", WK_TOKEN_CONTROL, 0);
    wick_tokenizer *const t = make(&heap, &v.desc);
    ASSERT_IDS(t, "a<|end|>b", PARSE, 'a', 262, 'b');
    ASSERT_IDS(t, "<|end|>>", PARSE, longer); /* the longest */
    ASSERT_IDS(t, "<|end|", PARSE, '<', '|', 'e', 'n', 'd', '|');
    ASSERT_IDS(t, "<|end|>", 0, '<', '|', 'e', 'n', 'd', '|', '>');
    static const uint32_t cut[] = {'a', '<', '|', 'e', 'n', 'd', '|'}; /* nothing after the text */
    assert_ids(t, (wk_str){"a<|end|>", 7}, PARSE, cut, WK_COUNT(cut));
    ASSERT_IDS(t, "a<tool>b", 0, 'a', 263, 'b'); /* user-defined: always */
    ASSERT_IDS(t, "<<tool><tool", PARSE, '<', 263, '<', 't', 'o', 'o', 'l');
    assert_true(wick_token_is_special(t, 262));
    assert_true(wick_token_ends_generation(t, 262));
    assert_false(wick_token_is_special(t, 263));
    assert_false(wick_token_ends_generation(t, 263));
    assert_false(wick_token_ends_generation(t, 1000000));
    assert_int_equal(wick_token_end(t), 262);
    assert_int_equal(wick_token_begin(t), WICK_NO_TOKEN);
    size_t size;
    assert_string_equal(wick_token_bytes(t, 262, false, &size), "");
    assert_int_equal(size, 0);
    assert_memory_equal(wick_token_bytes(t, 262, true, &size), "<|end|>", 7);
    assert_int_equal(size, 7);
    assert_memory_equal(wick_token_bytes(t, 261, false, &size), " hello", 6);
    assert_null(wick_token_bytes(t, v.desc.n_tokens, false, &size));
    wk_tokenizer_free(&heap, t);
}

/* What ends a text, by an id of the metadata or by its name, whatever type the file gives it. */
static void tokens_that_end(void **state) {
    (void)state;
    static const struct {
        const char *name;
        wk_token_kind kind;
        bool ends, is_control;
    } cases[] = {
        {"<|im_end|>", WK_TOKEN_CONTROL, true, true},
        {"<|im_end|>", WK_TOKEN_NORMAL, true, true},
        {"<end_of_turn>", WK_TOKEN_USER_DEFINED, true, true},
        {"<|file_sep|>", WK_TOKEN_CONTROL, true, true},
        {"<|tool_response>", WK_TOKEN_USER_DEFINED, true, false},
        {"</s>", WK_TOKEN_CONTROL, true, true},
        {"</s>", WK_TOKEN_USER_DEFINED, false, false},
        {"</s>", WK_TOKEN_NORMAL, false, false},
        {"<|im_start|>", WK_TOKEN_USER_DEFINED, false, false},
        {"<|im_end|>s", WK_TOKEN_USER_DEFINED, false, false},
    };
    wk_heap heap;
    wk_heap_init(&heap, NULL);
    for (size_t i = 0; i < WK_COUNT(cases); i++) {
        small_vocab v;
        size_t size;
        small_vocab_bpe(&v, "gpt-2");
        const uint32_t id = small_vocab_add(&v, cases[i].name, cases[i].kind, 0);
        const uint32_t given = small_vocab_add(&v, "over", WK_TOKEN_NORMAL, 0);
        const uint32_t others[] = {WICK_NO_TOKEN, 'x'};
        v.desc.end_of_message = given;
        v.desc.other_ends = others;
        v.desc.n_other_ends = WK_COUNT(others);
        wick_tokenizer *const t = make(&heap, &v.desc);
        assert_int_equal(wick_token_ends_generation(t, id), cases[i].ends);
        assert_true(wick_token_ends_generation(t, given));
        assert_true(wick_token_ends_generation(t, 'x'));
        assert_false(wick_token_ends_generation(t, 'y'));
        (void)wick_token_bytes(t, id, false, &size);
        assert_int_equal(size == 0, cases[i].is_control);
        wk_tokenizer_free(&heap, t);
    }
    small_vocab v;
    wick_error error = {.status = WICK_OK};
    wick_tokenizer *t = NULL;
    small_vocab_bpe(&v, "gpt-2");
    v.desc.end_of_message = v.desc.n_tokens;
    assert_int_equal(wk_tokenizer_make(&heap, &v.desc, &t, &error), WICK_ERR_FORMAT);
    assert_non_null(strstr(error.message, "eom_token_id"));
}

/* Phi-3's take what follows them, masks what is before them. */
static void tokens_take_white_space(void **state) {
    (void)state;
    wk_heap heap;
    wk_heap_init(&heap, NULL);
    static const char *const names[] = {"Phi 3", "Phi-3.5 mini", "microsoft_PHI3", "3fd1a2"};
    for (size_t i = 0; i < WK_COUNT(names); i++) {
        small_vocab v;
        small_vocab_bpe(&v, "gpt-2");
        v.desc.name = wk_str_of(names[i]);
        if (i == 3) v.desc.architecture = wk_str_of("phi3");
        const uint32_t begin = small_vocab_add(&v, "<s>", WK_TOKEN_CONTROL, 0);
        wick_tokenizer *const t = make(&heap, &v.desc);
        if (i == 0 || i == 3) { /* Phi-4 mini's architecture is phi3, too, its vocabulary another */
            const uint32_t line = '\n';
            ASSERT_IDS(t, "<|end|>\n<s> a", PARSE, 262, line, begin, ' ', 'a');
        } else {
            ASSERT_IDS(t, " <|end|> \n\ta<s> a<|end|>\n ", PARSE, ' ', 262, 'a', begin, ' ', 'a',
                       262);
            static const char text[] = "<|end|>\n b<|end|> <|end|>\r\n";
            uint8_t origin[sizeof text] = {0};
            uint32_t ids[8];
            size_t n;
            memset(origin + 8, 1, 2);
            assert_int_equal(wk_tokenize_marked(t, wk_str_of(text), origin, ids, 8, &n), WICK_OK);
            assert_int_equal(n, 4);
            assert_memory_equal(ids, ((uint32_t[]){262, 'b', 262, 262}), sizeof(uint32_t[4]));
        }
        wk_tokenizer_free(&heap, t);
    }
    small_vocab pieces;
    small_vocab_sentencepiece(&pieces);
    pieces.desc.architecture = wk_str_of("phi3");
    wick_tokenizer *const phi = make(&heap, &pieces.desc);
    ASSERT_IDS(phi, "</s>\nz", PARSE, 2, 259, 3 + 'z');
    wk_tokenizer_free(&heap, phi);
    static const char *const masks[][2] = {{"jina-v2-de", "<mask>"}, {"modern-bert", "[MASK]"}};
    for (size_t i = 0; i < WK_COUNT(masks); i++) {
        small_vocab v;
        small_vocab_bpe(&v, masks[i][0]);
        const uint32_t mask = small_vocab_add(&v, masks[i][1], WK_TOKEN_CONTROL, 0);
        wick_tokenizer *const t = make(&heap, &v.desc);
        char text[32];
        snprintf(text, sizeof text, "a \n%s b", masks[i][1]);
        ASSERT_IDS(t, text, PARSE, 'a', mask, ' ', 'b');
        wk_tokenizer_free(&heap, t);
    }
}

static void sentencepiece_merges_by_score(void **state) {
    (void)state;
    wk_heap heap;
    wk_heap_init(&heap, NULL);
    small_vocab v;
    small_vocab_sentencepiece(&v);
    enum { SPACE = 259, H, E, L, O, HE, LL, HELL, HELLO, S_HELLO, S_H, E_ACUTE, SPACES, TOOL };
    wick_tokenizer *t = make(&heap, &v.desc);
    ASSERT_IDS(t, "hello", 0, S_HELLO);
    ASSERT_IDS(t, "hello", ADD, 1, S_HELLO);
    ASSERT_IDS(t, "hello hello", 0, S_HELLO, S_HELLO);
    ASSERT_IDS(t, "  he", 0, SPACES, SPACE, HE); /* the leftmost of equals */
    ASSERT_IDS(t, "z", 0, SPACE, 3 + 'z');
    ASSERT_IDS(t, "\xC3\xA9", 0, SPACE, E_ACUTE);
    ASSERT_IDS(t, "\xC3\xAA\xC3", 0, SPACE, 3 + 0xC3, 3 + 0xAA, 3 + 0xC3);
    ASSERT_IDS(t, "</s>", 0, SPACE, 3 + '<', 3 + '/', 3 + 's', 3 + '>');
    ASSERT_IDS(t, "<0x41>", 0, SPACE, 3 + '<', 3 + '0', 3 + 'x', 3 + '4', 3 + '1', 3 + '>');
    /* Text after a special token begins with a space again. */
    ASSERT_IDS(t, "he</s>he", PARSE, SPACE, HE, 2, SPACE, HE);
    ASSERT_IDS(t, "<tool>he", 0, SPACE, TOOL, HE); /* which a user-defined piece is not */
    /* Text that goes on does not. */
    ASSERT_IDS(t, "he</s>he", PARSE | WICK_TOKENIZE_CONTINUE, HE, 2, SPACE, HE);
    assert_ids(t, wk_str_of(""), 0, NULL, 0);
    wk_tokenizer_free(&heap, t);

    v.desc.add_space_prefix = WK_NO;
    t = make(&heap, &v.desc);
    ASSERT_IDS(t, "he he", 0, HE, SPACE, HE);
    wk_tokenizer_free(&heap, t);

    v.kinds[3 + 'z'] = WK_TOKEN_UNUSED; /* no longer a byte */
    t = make(&heap, &v.desc);
    ASSERT_IDS(t, "z", 0, 0);
    ASSERT_IDS(t, "zzhez", 0, 0, HE, 0); /* one for all in a row */
    wk_tokenizer_free(&heap, t);

    v.desc.unknown = WICK_NO_TOKEN;
    t = make(&heap, &v.desc);
    uint32_t ids[4];
    size_t count = 7;
    assert_int_equal(wick_tokenize(t, "z", 1, 0, ids, 4, &count), WICK_ERR_VALUE);
    wk_tokenizer_free(&heap, t);
}

static void counts_beyond_the_room(void **state) {
    (void)state;
    wk_heap heap;
    wk_heap_init(&heap, NULL);
    small_vocab v;
    small_vocab_bpe(&v, "gpt-2");
    wick_tokenizer *const t = make(&heap, &v.desc);
    uint32_t ids[3] = {7, 7, 7};
    size_t count = 0;
    assert_int_equal(wick_tokenize(t, "abcd", 4, 0, ids, 2, &count), WICK_OK);
    assert_int_equal(count, 4);
    assert_int_equal(ids[1], 'b');
    assert_int_equal(ids[2], 7);
    assert_int_equal(wick_tokenize(t, "abcd", 4, 0, NULL, 0, &count), WICK_OK);
    assert_int_equal(count, 4);
    assert_int_equal(wick_tokenize(t, NULL, 1, 0, ids, 2, &count), WICK_ERR_ARGUMENT);
    assert_int_equal(wick_tokenize(t, "a", 1, 16, ids, 2, &count), WICK_ERR_ARGUMENT);
    assert_int_equal(wick_tokenize(t, "a", 1, 0, NULL, 2, &count), WICK_ERR_ARGUMENT);
    assert_int_equal(wick_tokenize(t, "a", WICK_TOKENIZE_MAX_SIZE + 1, 0, ids, 2, &count),
                     WICK_ERR_ARGUMENT);
    wk_tokenizer_free(&heap, t);
}

static void assert_refused(const wk_vocab_desc *desc, wick_status expected, const char *part) {
    wk_heap heap;
    wk_heap_init(&heap, NULL);
    wick_error error = {.status = WICK_OK};
    wick_tokenizer *t = NULL;
    assert_int_equal(wk_tokenizer_make(&heap, desc, &t, &error), expected);
    assert_null(t);
    if (!strstr(error.message, part)) fail_msg("'%s' lacks '%s'", error.message, part);
    assert_int_equal(heap.live_bytes, 0);
}

static void refuses_by_name(void **state) {
    (void)state;
    small_vocab v;
    small_vocab_bpe(&v, "gpt-9");
    assert_refused(&v.desc, WICK_ERR_UNSUPPORTED,
                   "pre-tokenizer 'gpt-9' (tokenizer.ggml.pre) is not known");
    v.desc.model = wk_str_of("none");
    assert_refused(&v.desc, WICK_ERR_UNSUPPORTED, "tokenizer model 'none' is not known");
    small_vocab_bpe(&v, "gpt-2");
    v.merges[2] = wk_str_of("hello");
    assert_refused(&v.desc, WICK_ERR_FORMAT, "merge 2, 'hello', is not two tokens");
    v.merges[2] = wk_str_of("h q");
    assert_refused(&v.desc, WICK_ERR_FORMAT, "merge 2, 'h q', names a token");
    v.desc.n_merges = 0;
    assert_refused(&v.desc, WICK_ERR_FORMAT, "tokenizer.ggml.merges is missing");
    small_vocab_sentencepiece(&v);
    v.desc.scores = NULL;
    assert_refused(&v.desc, WICK_ERR_FORMAT, "tokenizer.ggml.scores is missing");
}

static void refuses_bad_ids_and_types(void **state) {
    (void)state;
    small_vocab v;
    small_vocab_sentencepiece(&v);
    v.desc.begin = v.desc.n_tokens;
    assert_refused(&v.desc, WICK_ERR_FORMAT, "tokenizer.ggml.bos_token_id is 273");
    v.desc.begin = WICK_NO_TOKEN;
    v.desc.add_begin = WK_YES;
    assert_refused(&v.desc, WICK_ERR_FORMAT, "without tokenizer.ggml.bos_token_id");
    v.desc.add_begin = WK_UNSET;
    v.kinds[5] = 9;
    assert_refused(&v.desc, WICK_ERR_FORMAT, "token 5 has the unknown type 9");
    v.kinds[5] = WK_TOKEN_BYTE;
    v.kinds[260] = WK_TOKEN_BYTE;
    assert_refused(&v.desc, WICK_ERR_FORMAT, "byte token 260 is not of the form");
    v.desc.n_tokens = 0;
    assert_refused(&v.desc, WICK_ERR_FORMAT, "a vocabulary of 0 tokens");
}

/* Gemma 4 ends turns by <turn|> and stops for the answer of a tool; a token of text that only looks
 * like an end is none. */
static void names_that_end(void **state) {
    (void)state;
    wk_heap heap;
    wk_heap_init(&heap, NULL);
    small_vocab v;
    small_vocab_sentencepiece(&v);
    const uint32_t turn = small_vocab_add(&v, "<turn|>", WK_TOKEN_CONTROL, 0);
    const uint32_t tool = small_vocab_add(&v, "<|tool_response>", WK_TOKEN_USER_DEFINED, 0);
    const uint32_t text = small_vocab_add(&v, "<eos>", WK_TOKEN_USER_DEFINED, 0);
    wick_tokenizer *const t = make(&heap, &v.desc);
    assert_true(wick_token_ends_generation(t, turn));
    assert_true(wick_token_ends_generation(t, tool));
    assert_false(wick_token_ends_generation(t, text));
    wk_tokenizer_free(&heap, t);
}

/* A message of Harmony ends by <|end|>, the turn goes on. */
static void messages_end_no_turn(void **state) {
    (void)state;
    wk_heap heap;
    wk_heap_init(&heap, NULL);
    small_vocab v;
    small_vocab_bpe(&v, "gpt-4o");
    const uint32_t message = v.desc.end;
    v.desc.end = WICK_NO_TOKEN;
    wick_tokenizer *t = make(&heap, &v.desc);
    assert_true(wick_token_ends_generation(t, message));
    wk_tokenizer_free(&heap, t);
    v.desc.end = small_vocab_add(&v, "<|return|>", WK_TOKEN_CONTROL, 0);
    t = make(&heap, &v.desc);
    assert_true(wick_token_ends_generation(t, v.desc.end));
    assert_false(wick_token_ends_generation(t, message));
    wk_tokenizer_free(&heap, t);
}

static void kinds_may_be_missing(void **state) {
    (void)state;
    wk_heap heap;
    wk_heap_init(&heap, NULL);
    small_vocab v;
    small_vocab_sentencepiece(&v);
    v.desc.kinds = NULL;
    wick_tokenizer *const t = make(&heap, &v.desc);
    assert_true(wick_token_is_special(t, 0));
    assert_true(wick_token_is_special(t, 1));
    assert_true(wick_token_ends_generation(t, 2));
    ASSERT_IDS(t, "z", ADD, 1, 259, 3 + 'z');
    wk_tokenizer_free(&heap, t);
}

/* Every allocation fails once: a status, nothing lost, nothing left. */
static void survives_short_memory(void **state) {
    (void)state;
    static const char text[] = "hello, hello";
    small_vocab v[2];
    small_vocab_bpe(&v[0], "llama-bpe");
    small_vocab_sentencepiece(&v[1]);
    for (int kind = 0; kind < 2; kind++) {
        bool passed = false;
        for (uint64_t allowed = 0; !passed; allowed++) {
            checked_heap checked;
            checked_heap_init(&checked, allowed);
            wick_error error = {.status = WICK_OK};
            wick_tokenizer *t = NULL;
            uint32_t ids[16];
            size_t count;
            wick_status status = wk_tokenizer_make(&checked.heap, &v[kind].desc, &t, &error);
            if (status == WICK_OK) {
                status = wick_tokenize(t, text, sizeof text - 1, 0, ids, 16, &count);
            }
            passed = status == WICK_OK;
            if (!passed) assert_int_equal(status, WICK_ERR_OUT_OF_MEMORY);
            wk_tokenizer_free(&checked.heap, t);
            assert_true(checked_heap_is_clean(&checked));
            assert_true(allowed < 100);
        }
    }
}

/* Merging must not be quadratic: a million letters without a break take well under a second. */
static void long_words(void **state) {
    (void)state;
    wk_heap heap;
    wk_heap_init(&heap, NULL);
    enum { SIZE = 1000000 };
    char *const text = malloc(SIZE);
    assert_non_null(text);
    for (int i = 0; i < SIZE; i++) text[i] = "hello"[i % 5];
    small_vocab v[2];
    small_vocab_bpe(&v[0], "gpt-2");
    small_vocab_sentencepiece(&v[1]);
    for (int kind = 0; kind < 2; kind++) {
        wick_tokenizer *const t = make(&heap, &v[kind].desc);
        size_t count = 0;
        assert_int_equal(wick_tokenize(t, text, SIZE, 0, NULL, 0, &count), WICK_OK);
        assert_int_equal(count, SIZE / 5);
        wk_tokenizer_free(&heap, t);
    }
    free(text);
}

enum { MOST_TOKENS = 320 };

/* By two ids: the token that they make, from first on; the number of tokens: none. */
typedef uint32_t pair_ids[MOST_TOKENS][MOST_TOKENS];

static void find_pairs(const small_vocab *v, uint32_t first, pair_ids pairs) {
    const uint32_t n = v->desc.n_tokens;
    assert_true(n <= MOST_TOKENS);
    for (uint32_t a = 0; a < n; a++) {
        for (uint32_t b = 0; b < n; b++) {
            char joined[64];
            const wk_str left = v->tokens[a], right = v->tokens[b];
            const wk_str both = {joined, left.size + right.size};
            memcpy(joined, left.text, left.size);
            memcpy(joined + left.size, right.text, right.size);
            uint32_t id = first;
            while (id < n && !wk_str_equal(v->tokens[id], both)) id++;
            pairs[a][b] = id;
        }
    }
}

/* Reference for merging: the best pair of all, again and again. Scores are minus the position. */
static size_t merge_slowly(const small_vocab *v, pair_ids pairs, uint32_t *ids, size_t n) {
    for (;;) {
        uint32_t best = v->desc.n_tokens;
        size_t best_at = 0;
        for (size_t i = 0; i + 1 < n; i++) {
            const uint32_t id = pairs[ids[i]][ids[i + 1]];
            if (id >= best) continue;
            best = id;
            best_at = i;
        }
        if (best == v->desc.n_tokens) return n;
        ids[best_at] = best;
        memmove(ids + best_at + 1, ids + best_at + 2, (n - best_at - 2) * sizeof *ids);
        n--;
    }
}

static void sentencepiece_equals_the_slow_way(void **state) {
    (void)state;
    wk_heap heap;
    wk_heap_init(&heap, NULL);
    small_vocab v;
    small_vocab_sentencepiece(&v);
    v.desc.add_space_prefix = WK_NO;
    wick_tokenizer *const t = make(&heap, &v.desc);
    static pair_ids pairs;
    find_pairs(&v, 259, pairs);
    wk_rng rng = {.seed = 3};
    for (int round = 0; round < 20000; round++) {
        char text[20];
        uint32_t expected[20];
        const size_t size = 1 + wk_rng_u32(&rng) % sizeof text;
        for (size_t i = 0; i < size; i++) {
            const uint32_t letter = wk_rng_u32(&rng) % 5;
            text[i] = " helo"[letter];
            expected[i] = 259 + letter;
        }
        const size_t n = merge_slowly(&v, pairs, expected, size);
        assert_ids(t, (wk_str){text, size}, 0, expected, n);
    }
    wk_tokenizer_free(&heap, t);
}

/* --- Windows (text/tokenize/merge.h) --- */

enum { N_LINKS = 150, N_CYCLES = 14, N_PIECES = 2 * N_LINKS };

/* Ids are ranks here, as in merge_slowly: characters, then pairs of neighbours in a ring, those
 * further on first. What becomes of a character depends on the end of the ring, far to the right of
 * it, so that windows that end before show something else. */
static void make_ring(small_vocab *v, char names[N_PIECES][8]) {
    small_vocab_begin(v, "llama", "");
    v->desc.add_space_prefix = WK_NO;
    for (uint32_t i = 0; i < N_LINKS; i++) {
        names[i][wk_utf8_encode(0x4E00 + i, names[i])] = '\0';
        small_vocab_add(v, names[i], WK_TOKEN_NORMAL, 0);
    }
    for (uint32_t i = 0; i < N_LINKS; i++) {
        const uint32_t left = N_LINKS - 2 - i + (i == N_LINKS - 1 ? N_LINKS : 0);
        char pair[sizeof names[0]];
        snprintf(pair, sizeof pair, "%s%s", names[left], names[(left + 1) % N_LINKS]);
        memcpy(names[N_LINKS + i], pair, sizeof pair);
        small_vocab_add(v, names[N_LINKS + i], WK_TOKEN_NORMAL, -(float)i);
    }
}

static void windows_are_as_wide_as_they_must_be(void **state) {
    (void)state;
    static char names[N_PIECES][8], text[3 * N_LINKS * N_CYCLES + 1];
    static uint32_t expected[N_LINKS * N_CYCLES];
    wk_heap heap;
    wk_heap_init(&heap, NULL);
    small_vocab v;
    make_ring(&v, names);
    static pair_ids pairs;
    find_pairs(&v, N_LINKS, pairs);
    wick_tokenizer *const t = make(&heap, &v.desc);
    for (size_t first = 0; first < 40; first++) {
        size_t n = 0;
        for (size_t i = first; i < N_LINKS * N_CYCLES; i++, n++) {
            expected[n] = (uint32_t)(i % N_LINKS);
            memcpy(text + 3 * n, names[i % N_LINKS], 3);
        }
        const wk_str whole = {text, 3 * n};
        n = merge_slowly(&v, pairs, expected, n);
        assert_ids(t, whole, 0, expected, n);
    }
    wk_tokenizer_free(&heap, t);
}

/* The prompt of a file of tests/data or of the fixtures, and its ids. */
static void check_prompt(const wick_tokenizer *t, const wk_json *entry, uint32_t flags) {
    const wk_json *const prompt = wk_json_get(entry, "prompt");
    const wk_json *const tokens = wk_json_get(entry, "prompt_tokens");
    uint32_t expected[256];
    size_t n = 0;
    assert_true(prompt && tokens && tokens->count <= WK_COUNT(expected));
    for (const wk_json *i = tokens->child; i; i = i->next) expected[n++] = (uint32_t)i->integer;
    assert_ids(t, prompt->string, flags, expected, n);
}

/* The sign of a space is one, also at the end. */
static void check_signs(const wick_tokenizer *t) {
    uint32_t signs[8], blanks[8];
    size_t n_signs, n_blanks;
    static const char text[] = "a\xe2\x96\x81"
                               "b\xe2\x96\x81";
    assert_int_equal(wick_tokenize(t, text, sizeof text - 1, 0, signs, 8, &n_signs), WICK_OK);
    assert_int_equal(wick_tokenize(t, "a b ", 4, 0, blanks, 8, &n_blanks), WICK_OK);
    assert_int_equal(n_signs, n_blanks);
    assert_memory_equal(signs, blanks, n_signs * sizeof *signs);
}

static void stories_prompt(void **state) {
    (void)state;
    char path[1024];
    fixture_file file;
    vocab_fixture f;
    if (!fixture_path("WICK_TEST_DATA", "stories260K.gguf", path, sizeof path)) skip();
    assert_int_equal(vocab_fixture_open(&f, path), WICK_OK);
    assert_true(fixture_read("WICK_TEST_DATA", "stories260K.greedy.json", &file));
    wk_arena arena;
    wk_arena_init(&arena, &f.heap, 0);
    wk_json *root = NULL;
    assert_int_equal(wk_json_parse(&arena, (const char *)file.data, file.size, &root, NULL),
                     WICK_OK);
    check_prompt(f.tokenizer, root, ADD);
    check_signs(f.tokenizer);
    wk_arena_release(&arena);
    free(file.data);
    vocab_fixture_close(&f);
}

static void smollm2_prompts(void **state) {
    (void)state;
    const char *const path = getenv("WICK_REAL_MODEL");
    fixture_file file;
    vocab_fixture f;
    const wick_status status = path ? vocab_fixture_open(&f, path) : WICK_ERR_NOT_FOUND;
    if (status == WICK_ERR_NOT_FOUND) {
        printf("the real model (WICK_REAL_MODEL) is not there\n");
        skip();
    }
    assert_int_equal(status, WICK_OK);
    if (!fixture_read("WICK_SHARED_DATA", "real/smollm2-135m-instruct-q4_1.json", &file)) {
        vocab_fixture_close(&f);
        skip();
    }
    wk_arena arena;
    wk_arena_init(&arena, &f.heap, 0);
    wk_json *root = NULL;
    assert_int_equal(wk_json_parse(&arena, (const char *)file.data, file.size, &root, NULL),
                     WICK_OK);
    const wk_json *const greedy = wk_json_get(root, "greedy");
    assert_true(greedy && greedy->count >= 6);
    for (const wk_json *entry = greedy->child; entry; entry = entry->next) {
        check_prompt(f.tokenizer, entry, PARSE | ADD); /* this model adds none */
    }
    assert_true(wick_token_ends_generation(f.tokenizer, 2)); /* <|im_end|> */
    assert_true(wick_token_ends_generation(f.tokenizer, 0)); /* <|endoftext|> */
    assert_false(wick_token_ends_generation(f.tokenizer, 1));
    wk_arena_release(&arena);
    free(file.data);
    vocab_fixture_close(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(byte_level_merges_by_rank),
        cmocka_unit_test(llama3_takes_whole_pieces),
        cmocka_unit_test(bytes_that_are_no_token),
        cmocka_unit_test(merges_make_no_special_token),
        cmocka_unit_test(special_tokens_in_text),
        cmocka_unit_test(tokens_that_end),
        cmocka_unit_test(tokens_take_white_space),
        cmocka_unit_test(sentencepiece_merges_by_score),
        cmocka_unit_test(counts_beyond_the_room),
        cmocka_unit_test(refuses_by_name),
        cmocka_unit_test(refuses_bad_ids_and_types),
        cmocka_unit_test(names_that_end),
        cmocka_unit_test(messages_end_no_turn),
        cmocka_unit_test(kinds_may_be_missing),
        cmocka_unit_test(survives_short_memory),
        cmocka_unit_test(long_words),
        cmocka_unit_test(sentencepiece_equals_the_slow_way),
        cmocka_unit_test(windows_are_as_wide_as_they_must_be),
        cmocka_unit_test(stories_prompt),
        cmocka_unit_test(smollm2_prompts),
    };
    return cmocka_run_group_tests_name("tokenizer", tests, NULL, NULL);
}
