/* Fuzzes the tokenizers: text -> ids -> text with small vocabularies, and vocabularies that the
 * input makes up. The first byte chooses: bits 0-1 the vocabulary, 2-3 the flags of wick_tokenize,
 * 4-7 how many allocations succeed (0: all). */
#include "checked_heap.h"
#include "unit/small_vocab.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds) {
    if (!holds) abort();
}

typedef struct input {
    const uint8_t *data;
    size_t size;
} input;

static uint8_t take_byte(input *in) {
    if (in->size == 0) return 0;
    in->size--;
    return *in->data++;
}

/* A string of 0 to 15 bytes; its text stays in the input. */
static wk_str take_string(input *in) {
    size_t size = take_byte(in) & 15;
    if (size > in->size) size = in->size;
    const wk_str string = {(const char *)in->data, size};
    in->data += size;
    in->size -= size;
    return string;
}

/* Mostly "no token", mostly in range. */
static uint32_t take_id(input *in) {
    const uint8_t id = take_byte(in);
    return id & 128 ? WICK_NO_TOKEN : id;
}

/* The five kinds; the first two as small vocabularies or as empty ones. */
static void begin_vocabulary(input *in, small_vocab *v) {
    static const char *const models[] = {"llama", "gpt2", "gemma4", "t5", "bert"};
    static const char *const pres[] = {"smollm", "falcon",       "llama-bpe",      "qwen35",
                                       "gpt-4o", "deepseek-llm", "deepseek-coder", "deepseek-v3",
                                       "tekken", "seed-coder",   "viking",         "default"};
    const size_t kind = take_byte(in) % WK_COUNT(models);
    const uint8_t choice = take_byte(in);
    const char *const pre = pres[(choice >> 1) % WK_COUNT(pres)];
    if (choice & 1 || kind > 1) {
        small_vocab_begin(v, models[kind], pre);
    } else if (kind == 1) {
        small_vocab_bpe(v, pre);
    } else {
        small_vocab_sentencepiece(v);
    }
}

/* Adds tokens and merges to a vocabulary, and overwrites ids. */
static void take_vocabulary(input *in, small_vocab *v) {
    begin_vocabulary(in, v);
    for (int n = take_byte(in) & 63; n > 0; n--) {
        const uint32_t id = small_vocab_add(v, "", WK_TOKEN_NORMAL, 0);
        v->tokens[id] = take_string(in);
        v->kinds[id] = take_byte(in) & 7;
        const uint32_t bits = (uint32_t)take_byte(in) << 24; /* NaN and infinity included */
        memcpy(&v->scores[id], &bits, sizeof bits);
    }
    for (int n = take_byte(in) & 15; n > 0; n--) v->merges[v->desc.n_merges++] = take_string(in);
    v->desc.begin = take_id(in);
    v->desc.end = take_id(in);
    v->desc.unknown = take_id(in);
    v->desc.separator = take_id(in);
    v->desc.charsmap = take_string(in);
    const uint8_t options = take_byte(in);
    v->desc.add_begin = (wk_tristate)((options & 3) % 3);
    v->desc.add_end = (wk_tristate)((options >> 2 & 3) % 3);
    v->desc.add_space_prefix = (wk_tristate)((options >> 4 & 3) % 3);
    v->desc.removes_extra_spaces = v->desc.add_end;
    if (options & 64) v->desc.kinds = NULL;
    if (options & 128) v->desc.scores = NULL;
}

/* Feeds all ids, in exactly the room that the bound promises. */
static size_t detokenize(const wick_tokenizer *t, const uint32_t *ids, size_t n, char *out) {
    wick_detokenizer state = {.tokenizer = t};
    size_t total = 0, piece;
    for (size_t i = 0; i < n; i++) {
        require(wick_detokenize(&state, ids[i], out + total, wick_detokenize_bound(t), &piece) ==
                WICK_OK);
        total += piece;
    }
    wick_detokenize_flush(&state, out + total, &piece);
    return total + piece;
}

static bool is_valid_text(const char *text, size_t size) {
    for (size_t at = 0; at < size;) {
        uint32_t code;
        at += wk_utf8_decode(text + at, size - at, &code);
        if (code == WK_CHAR_INVALID) return false;
    }
    return true;
}

static bool contains(const char *text, size_t size, const char *what) {
    const size_t length = strlen(what);
    for (size_t at = 0; at + length <= size; at++) {
        if (memcmp(text + at, what, length) == 0) return true;
    }
    return false;
}

/* Whatever the vocabulary, text that comes out is UTF-8. Where faithful, it is the text that went
 * in, but for two things in SentencePiece's nature: U+2581 comes back as a space, and text after a
 * special token gets one. */
static void check_text(const wick_tokenizer *t, const char *text, size_t size, const uint32_t *ids,
                       size_t n, bool faithful) {
    const size_t room = 3 * size + (n + 1) * wick_detokenize_bound(t);
    char *const out = malloc(room);
    require(out != NULL);
    const size_t written = detokenize(t, ids, n, out);
    require(is_valid_text(out, written));
    const bool comparable = faithful && is_valid_text(text, size) &&
                            !contains(text, size, "\xE2\x96\x81") &&
                            !contains(text, size, "<tool>");
    if (comparable) require(written == size && (size == 0 || memcmp(out, text, size) == 0));
    free(out);
}

static void check_tokenizer(const wick_tokenizer *t, input in, uint32_t flags, bool faithful) {
    const char *const text = (const char *)in.data;
    size_t n = 0, again = 0;
    if (wick_tokenize(t, text, in.size, flags, NULL, 0, &n) != WICK_OK) return;
    uint32_t *const ids = malloc((n + 1) * sizeof *ids);
    require(ids != NULL);
    if (wick_tokenize(t, text, in.size, flags, ids, n, &again) == WICK_OK) {
        require(again == n);
        for (size_t i = 0; i < n; i++) require(ids[i] < wick_tokenizer_size(t));
        check_text(t, text, in.size, ids, n, faithful && flags == 0);
    }
    free(ids);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    input in = {data, size};
    const uint8_t choice = take_byte(&in);
    small_vocab vocab;
    switch (choice & 3) {
    case 0: small_vocab_bpe(&vocab, in.size % 2 ? "llama-bpe" : "gpt-2"); break;
    case 1: small_vocab_bpe(&vocab, "smollm"); break;
    case 2: small_vocab_sentencepiece(&vocab); break;
    default: take_vocabulary(&in, &vocab); break;
    }
    checked_heap checked;
    checked_heap_init(&checked, choice >> 4 ? choice >> 4 : UINT64_MAX);
    wick_tokenizer *tokenizer = NULL;
    wick_error error = {.status = WICK_OK};
    const wick_status status = wk_tokenizer_make(&checked.heap, &vocab.desc, &tokenizer, &error);
    require((status == WICK_OK) == (tokenizer != NULL));
    require((status == WICK_OK) == (error.message[0] == '\0'));
    if (tokenizer) check_tokenizer(tokenizer, in, choice >> 2 & 3, (choice & 3) != 3);
    wk_tokenizer_free(&checked.heap, tokenizer);
    require(checked_heap_is_clean(&checked));
    return 0;
}
