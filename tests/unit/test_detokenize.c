/* Tests of text/tokenize/detokenize: only whole characters come out, wherever tokens end. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "core/rng.h"
#include "unit/small_vocab.h"

#include <stdlib.h>
#include <string.h>

typedef struct fixture {
    wk_heap heap;
    small_vocab vocab;
    wick_tokenizer *tokenizer;
} fixture;

static void open_fixture(fixture *f, bool sentencepiece) {
    wk_heap_init(&f->heap, NULL);
    if (sentencepiece) {
        small_vocab_sentencepiece(&f->vocab);
    } else {
        small_vocab_bpe(&f->vocab, "gpt-2");
    }
    assert_int_equal(wk_tokenizer_make(&f->heap, &f->vocab.desc, &f->tokenizer, NULL), WICK_OK);
}

static void close_fixture(fixture *f) {
    wk_tokenizer_free(&f->heap, f->tokenizer);
    assert_int_equal(f->heap.live_bytes, 0);
}

/* All text of the tokens, the end included. */
static size_t decode(wick_detokenizer *state, const uint32_t *ids, size_t n, char *out) {
    size_t total = 0, size;
    for (size_t i = 0; i < n; i++) {
        const size_t bound = wick_detokenize_bound(state->tokenizer);
        assert_int_equal(wick_detokenize(state, ids[i], out + total, bound, &size), WICK_OK);
        assert_in_range(size, 0, bound);
        total += size;
    }
    wick_detokenize_flush(state, out + total, &size);
    return total + size;
}

/* Bytes, fed as byte tokens, and the text they must give. */
static void maximal_subparts(void **state) {
    (void)state;
    static const struct {
        const char *bytes, *text;
    } cases[] = {
        {"a\xC3\xA9z", "a\xC3\xA9z"},
        {"\xF0\x9F\x98\x81", "\xF0\x9F\x98\x81"},
        {"\xC3", "\xEF\xBF\xBD"},
        {"\xE2\x96", "\xEF\xBF\xBD"},
        {"\xF0\x9F\x98", "\xEF\xBF\xBD"},
        {"\xE2\x96"
         "a",
         "\xEF\xBF\xBD"
         "a"},
        {"\xE2\x96\xC3\xA9", "\xEF\xBF\xBD\xC3\xA9"},
        {"\x80\x80", "\xEF\xBF\xBD\xEF\xBF\xBD"},
        {"\xC0\xAF", "\xEF\xBF\xBD\xEF\xBF\xBD"},
        {"\xED\xA0\x80", "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD"},
        {"\xF4\x91\x92", "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD"},
        {"\xF1\x80\x80\xE1\x80\xC2", "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD"}, /* table 3-8 */
        {"\xE1\xE1\x80\xFF", "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD"},
    };
    fixture f;
    open_fixture(&f, false);
    for (size_t i = 0; i < WK_COUNT(cases); i++) {
        uint32_t ids[16];
        char out[256] = {0};
        size_t n = 0;
        for (const char *c = cases[i].bytes; *c; c++) ids[n++] = (unsigned char)*c;
        wick_detokenizer d = {.tokenizer = f.tokenizer};
        const size_t size = decode(&d, ids, n, out);
        assert_int_equal(size, strlen(cases[i].text));
        assert_string_equal(out, cases[i].text);
    }
    close_fixture(&f);
}

static void characters_come_out_whole(void **state) {
    (void)state;
    static const unsigned char bytes[] = {'a',  0xC3, 0xA9, 0xE2, 0x96,
                                          0x81, 0xF0, 0x9F, 0x98, 0x81};
    static const size_t expected[] = {1, 0, 2, 0, 0, 3, 0, 0, 0, 4};
    fixture f;
    open_fixture(&f, false);
    wick_detokenizer d = {.tokenizer = f.tokenizer};
    for (size_t i = 0; i < sizeof bytes; i++) {
        char out[64];
        size_t size;
        assert_int_equal(wick_detokenize(&d, bytes[i], out, sizeof out, &size), WICK_OK);
        assert_int_equal(size, expected[i]);
    }
    close_fixture(&f);
}

static size_t encode(const wick_tokenizer *t, const char *text, size_t size, uint32_t *ids,
                     size_t capacity) {
    size_t n = 0;
    assert_int_equal(wick_tokenize(t, text, size, 0, ids, capacity, &n), WICK_OK);
    assert_in_range(n, 0, capacity);
    return n;
}

/* The token bytes of byte-level BPE are the text, valid or not. */
static void random_bytes_round_trip(void **state) {
    (void)state;
    fixture f;
    open_fixture(&f, false);
    wk_rng rng = {.seed = 11};
    for (int round = 0; round < 5000; round++) {
        char text[40], back[40];
        uint32_t ids[40];
        const size_t size = wk_rng_u32(&rng) % sizeof text;
        for (size_t i = 0; i < size; i++) {
            const uint32_t r = wk_rng_u32(&rng);
            text[i] = r & 1 ? " hello"[(r >> 1) % 6] : (char)(r >> 8 & 255);
        }
        const size_t n = encode(f.tokenizer, text, size, ids, WK_COUNT(ids));
        size_t total = 0;
        for (size_t i = 0; i < n; i++) {
            size_t token_size;
            const char *const bytes = wick_token_bytes(f.tokenizer, ids[i], false, &token_size);
            assert_in_range(token_size, 1, size - total);
            memcpy(back + total, bytes, token_size);
            total += token_size;
        }
        assert_int_equal(total, size);
        assert_memory_equal(back, text, size);
    }
    close_fixture(&f);
}

static size_t random_text(wk_rng *rng, char *text, size_t characters) {
    size_t size = 0;
    for (size_t i = 0; i < characters; i++) {
        const uint32_t r = wk_rng_u32(rng);
        uint32_t code = (r >> 3) % (r & 1 ? 0x80 : r & 2 ? 0x3000 : 0x110000);
        if (r & 4) code = (unsigned char)" hello"[code % 6];
        if (code >= 0xD800 && code <= 0xDFFF) code = 'x';
        /* SentencePiece writes U+2581 for a space and cannot tell them apart. */
        if (code == 0x2581) code = ' ';
        size += wk_utf8_encode(code, text + size);
    }
    return size;
}

/* Both kinds: text -> ids -> text; and a second detokenizer that takes over after any token. */
static void random_text_round_trips(void **state) {
    (void)state;
    wk_rng rng = {.seed = 12};
    for (int kind = 0; kind < 2; kind++) {
        fixture f;
        open_fixture(&f, kind == 1);
        for (int round = 0; round < 1000; round++) {
            char text[80], back[512];
            uint32_t ids[128];
            const size_t size = random_text(&rng, text, wk_rng_u32(&rng) % 20);
            const size_t n = encode(f.tokenizer, text, size, ids, WK_COUNT(ids));
            for (size_t cut = 0; cut <= n; cut++) {
                wick_detokenizer d = {.tokenizer = f.tokenizer};
                size_t total = 0, piece;
                for (size_t i = 0; i < cut; i++) {
                    assert_int_equal(
                        wick_detokenize(&d, ids[i], back + total, sizeof back - total, &piece),
                        WICK_OK);
                    total += piece;
                }
                wick_detokenizer next = d;
                total += decode(&next, ids + cut, n - cut, back + total);
                assert_int_equal(total, size);
                assert_memory_equal(back, text, size);
            }
        }
        close_fixture(&f);
    }
}

static void leading_space(void **state) {
    (void)state;
    enum { SPACE = 259, HE = 264, S_HELLO = 268 };
    fixture f;
    open_fixture(&f, true);
    char out[128] = {0};
    const uint32_t two[] = {S_HELLO, S_HELLO};
    const uint32_t after_begin[] = {1, S_HELLO, 2, S_HELLO};

    wick_detokenizer d = {.tokenizer = f.tokenizer};
    assert_int_equal(decode(&d, two, 2, out), 11);
    assert_memory_equal(out, "hello hello", 11);
    d = (wick_detokenizer){.tokenizer = f.tokenizer, .begun = true};
    assert_int_equal(decode(&d, two, 2, out), 12);
    d = (wick_detokenizer){.tokenizer = f.tokenizer};
    assert_int_equal(decode(&d, after_begin, 4, out), 11);
    d = (wick_detokenizer){.tokenizer = f.tokenizer, .special = true};
    assert_int_equal(decode(&d, after_begin, 4, out), 18);
    assert_memory_equal(out, "<s>hello</s> hello", 18);
    /* A space that is a token of its own is dropped as well, a byte is not. */
    d = (wick_detokenizer){.tokenizer = f.tokenizer};
    assert_int_equal(decode(&d, (const uint32_t[]){SPACE, HE}, 2, out), 2);
    d = (wick_detokenizer){.tokenizer = f.tokenizer};
    assert_int_equal(decode(&d, (const uint32_t[]){3 + ' ', HE}, 2, out), 3);
    close_fixture(&f);
}

static void too_little_room_changes_nothing(void **state) {
    (void)state;
    fixture f;
    open_fixture(&f, false);
    enum { HELLO = 259 };
    char out[32] = "untouched";
    size_t size = 99;
    wick_detokenizer d = {.tokenizer = f.tokenizer};
    assert_int_equal(wick_detokenize(&d, 0xC3, NULL, 0, &size), WICK_OK); /* held back */
    assert_int_equal(size, 0);
    const wick_detokenizer before = d;
    assert_int_equal(wick_detokenize(&d, HELLO, out, 7, &size), WICK_ERR_ARGUMENT);
    assert_memory_equal(&d, &before, sizeof d);
    assert_string_equal(out, "untouched");
    assert_int_equal(wick_detokenize(&d, 'A', out, 3, &size), WICK_ERR_ARGUMENT); /* 3 and 1 */
    assert_memory_equal(&d, &before, sizeof d);
    assert_int_equal(wick_detokenize(&d, 100000, out, sizeof out, &size), WICK_ERR_INDEX);
    assert_memory_equal(&d, &before, sizeof d);
    assert_int_equal(wick_detokenize(&d, HELLO, out, 8, &size), WICK_OK);
    assert_int_equal(size, 8);
    assert_memory_equal(out, "\xEF\xBF\xBDhello", 8);
    close_fixture(&f);
}

static void allocates_nothing(void **state) {
    (void)state;
    fixture f;
    open_fixture(&f, true);
    const uint64_t before = f.heap.n_allocations;
    wick_detokenizer d = {.tokenizer = f.tokenizer};
    for (uint32_t id = 0; id < wick_tokenizer_size(f.tokenizer); id++) {
        char out[128];
        size_t size;
        assert_int_equal(wick_detokenize(&d, id, out, sizeof out, &size), WICK_OK);
        wick_token_bytes(f.tokenizer, id, true, &size);
    }
    assert_int_equal(f.heap.n_allocations, before);
    close_fixture(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(maximal_subparts),
        cmocka_unit_test(characters_come_out_whole),
        cmocka_unit_test(random_bytes_round_trip),
        cmocka_unit_test(random_text_round_trips),
        cmocka_unit_test(leading_space),
        cmocka_unit_test(too_little_room_changes_nothing),
        cmocka_unit_test(allocates_nothing),
    };
    return cmocka_run_group_tests_name("detokenize", tests, NULL, NULL);
}
