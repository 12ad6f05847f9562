/* Tests of text/tokenize/tokenizer with the vocabularies of real models: the published vectors, and
 * that text comes back. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "core/rng.h"
#include "fixture_file.h"
#include "text/unicode/unicode.h"
#include "unit/vocab_fixture.h"

#include <string.h>

/* unigram lies with the tests, the others with the shared data. */
static const char *const names[] = {"llama-spm", "gpt-2",  "llama-bpe", "phi-3",
                                    "starcoder", "qwen2",  "bert-bge",  "deepseek-coder",
                                    "gemma-4",   "unigram"};

static const char *folder_of(const char *name) {
    return strcmp(name, "unigram") == 0 ? "WICK_TEST_DATA" : "WICK_SHARED_DATA";
}

/* False, and a line that says so, when it is not there. */
static bool open_vocab(vocab_fixture *f, const char *name) {
    char path[1024], file[64];
    snprintf(file, sizeof file, "vocab/%s.gguf", name);
    if (!fixture_path(folder_of(name), file, path, sizeof path)) return false;
    if (vocab_fixture_open(f, path) != WICK_OK) fail_msg("%s: %s", name, f->error.message);
    return true;
}

static void assert_ids(const wick_tokenizer *t, const char *text, size_t size,
                       const uint32_t *expected, size_t n_expected) {
    uint32_t *const ids = malloc((size + 4) * sizeof *ids);
    size_t count = 0;
    assert_non_null(ids);
    assert_int_equal(wick_tokenize(t, text, size, 0, ids, size + 4, &count), WICK_OK);
    assert_int_equal(count, n_expected);
    for (size_t i = 0; i < count; i++) assert_int_equal(ids[i], expected[i]);
    free(ids);
}

/* The ids of one line: as many as there are, until the line's end. */
static const char *read_ids(const char *at, const char *end, uint32_t *ids, size_t *n) {
    *n = 0;
    while (at < end && *at != '\n') {
        if (*at >= '0' && *at <= '9') {
            uint32_t id = 0;
            for (; at < end && *at >= '0' && *at <= '9'; at++) id = 10 * id + (uint32_t)(*at - '0');
            ids[(*n)++] = id;
        } else {
            at++;
        }
    }
    return at < end ? at + 1 : at;
}

static size_t find(const char *text, size_t size, const char *what) {
    const size_t length = strlen(what);
    for (size_t at = 0; at + length <= size; at++) {
        if (memcmp(text + at, what, length) == 0) return at;
    }
    return size;
}

static void check_vectors(const wick_tokenizer *t, const fixture_file *in,
                          const fixture_file *out) {
    static const char separator[] = "\n__ggml_vocab_test__\n";
    const char *text = (const char *)in->data, *line = (const char *)out->data;
    const char *const text_end = text + in->size, *const line_end = line + out->size;
    uint32_t *const expected = malloc((out->size + 1) * sizeof *expected);
    assert_non_null(expected);
    for (;;) {
        const size_t size = find(text, (size_t)(text_end - text), separator);
        size_t n;
        line = read_ids(line, line_end, expected, &n);
        assert_ids(t, text, size, expected, n);
        if (text + size == text_end) break;
        text += size + sizeof separator - 1;
    }
    free(expected);
}

static void read_fixture(const char *name, const char *ending, fixture_file *out) {
    char file[64];
    snprintf(file, sizeof file, "vocab/%s.%s", name, ending);
    assert_true(fixture_read(folder_of(name), file, out));
}

static void published_vectors(void **state) {
    (void)state;
    for (size_t i = 0; i < WK_COUNT(names); i++) {
        vocab_fixture f;
        fixture_file in, out;
        if (!open_vocab(&f, names[i])) continue;
        read_fixture(names[i], "inp", &in);
        read_fixture(names[i], "out", &out);
        check_vectors(f.tokenizer, &in, &out);
        free(in.data);
        free(out.data);
        vocab_fixture_close(&f);
    }
}

/* --- There and back --- */

enum { MOST_CHARS = 400 };

/* Characters of all planes, many of them of the scripts that vocabularies know. U+2581 is a space
 * in some of them; planes 4 to 15 have no characters (starcoder lacks bytes of theirs). */
static size_t random_text(wk_rng *rng, char *out) {
    static const uint32_t ranges[][2] = {{0x20, 0x7E},     {0x20, 0x7E},     {0xA0, 0x24F},
                                         {0x370, 0x6FF},   {0x900, 0xDFF},   {0x2000, 0x2BFF},
                                         {0x3000, 0x30FF}, {0x4E00, 0x9FFF}, {0x1F300, 0x1FAFF},
                                         {0, 0xD7FF},      {0xE000, 0x3FFFF}};
    size_t size = 0;
    for (uint32_t n = 1 + wk_rng_u32(rng) % MOST_CHARS; n > 0; n--) {
        const uint32_t *const range = ranges[wk_rng_u32(rng) % WK_COUNT(ranges)];
        const uint32_t code = range[0] + wk_rng_u32(rng) % (range[1] - range[0] + 1);
        size += wk_utf8_encode(code == 0x2581 ? ' ' : code, out + size);
    }
    return size;
}

static size_t detokenize(const wick_tokenizer *t, const uint32_t *ids, size_t n, char *out) {
    wick_detokenizer state = {.tokenizer = t};
    size_t total = 0, size;
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(
            wick_detokenize(&state, ids[i], out + total, wick_detokenize_bound(t), &size), WICK_OK);
        total += size;
    }
    wick_detokenize_flush(&state, out + total, &size);
    return total + size;
}

/* WordPiece and the unigram model normalise. A user-defined token begins SentencePiece's text
 * again, so that it comes back with one space more: phi-3 has one, and random text does not. */
static void random_text_comes_back(void **state) {
    (void)state;
    static char text[4 * MOST_CHARS], back[1 << 20];
    static uint32_t ids[4 * MOST_CHARS + 4];
    wk_rng rng = {.seed = 11};
    for (size_t i = 0; i < WK_COUNT(names); i++) {
        vocab_fixture f;
        const bool normalises =
            strcmp(names[i], "bert-bge") == 0 || strcmp(names[i], "unigram") == 0;
        if (normalises || !open_vocab(&f, names[i])) continue;
        for (int round = 0; round < 300; round++) {
            size_t n = 0;
            const size_t size = random_text(&rng, text);
            assert_int_equal(wick_tokenize(f.tokenizer, text, size, 0, ids, WK_COUNT(ids), &n),
                             WICK_OK);
            assert_in_range(n, 1, WK_COUNT(ids));
            assert_int_equal(detokenize(f.tokenizer, ids, n, back), size);
            assert_memory_equal(back, text, size);
        }
        vocab_fixture_close(&f);
    }
}

/* Names of special tokens in text stay text, whatever they are. */
static void text_forges_no_special_token(void **state) {
    (void)state;
    static uint32_t ids[1024];
    for (size_t i = 0; i < WK_COUNT(names); i++) {
        vocab_fixture f;
        if (!open_vocab(&f, names[i])) continue;
        for (uint32_t id = 0; id < f.desc.n_tokens; id++) {
            size_t n = 0;
            const wk_str name = f.desc.tokens[id];
            if (f.desc.kinds[id] != WK_TOKEN_CONTROL) continue;
            assert_int_equal(
                wick_tokenize(f.tokenizer, name.text, name.size, 0, ids, WK_COUNT(ids), &n),
                WICK_OK);
            for (size_t k = 0; k < n; k++) {
                assert_int_not_equal(f.desc.kinds[ids[k]], WK_TOKEN_CONTROL);
            }
        }
        vocab_fixture_close(&f);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(published_vectors),
        cmocka_unit_test(random_text_comes_back),
        cmocka_unit_test(text_forges_no_special_token),
    };
    return cmocka_run_group_tests_name("vocabularies", tests, NULL, NULL);
}
