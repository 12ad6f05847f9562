/* vocab_fixture.h: the tokenizer of a GGUF file, for tests. */
#ifndef VOCAB_FIXTURE_H
#define VOCAB_FIXTURE_H

#include "format/gguf_parse.h"
#include "text/tokenize/tokenizer.h"

#include <stdio.h>
#include <stdlib.h>

typedef struct vocab_fixture {
    wk_heap heap;
    wk_gguf_parser *parser;
    wk_str *tokens, *merges;
    wk_vocab_desc desc;
    wick_tokenizer *tokenizer;
    wick_error error;
} vocab_fixture;

static inline wk_str *fixture_strings(const wk_gguf *gguf, const char *key, uint32_t *count) {
    const wick_value *const value = wk_gguf_find(gguf, key);
    *count = value ? (uint32_t)value->array.count : 0;
    wk_str *const strings = calloc((size_t)*count + 1, sizeof *strings);
    if (!strings) abort();
    const wick_string *const from = value ? value->array.values : NULL;
    for (uint32_t i = 0; i < *count; i++) strings[i] = (wk_str){from[i].text, from[i].size};
    return strings;
}

static inline wk_str fixture_string(const wk_gguf *gguf, const char *key) {
    const wick_value *const value = wk_gguf_find(gguf, key);
    return value ? (wk_str){value->string.text, value->string.size} : (wk_str){NULL, 0};
}

static inline uint32_t fixture_id(const wk_gguf *gguf, const char *key) {
    const wick_value *const value = wk_gguf_find(gguf, key);
    return value ? (uint32_t)value->u : WICK_NO_TOKEN;
}

static inline wk_tristate fixture_bool(const wk_gguf *gguf, const char *key) {
    const wick_value *const value = wk_gguf_find(gguf, key);
    return !value ? WK_UNSET : value->u ? WK_YES : WK_NO;
}

static inline void fixture_describe(vocab_fixture *f) {
    const wk_gguf *const gguf = wk_gguf_parser_result(f->parser);
    const wick_value *const scores = wk_gguf_find(gguf, "tokenizer.ggml.scores");
    const wick_value *const kinds = wk_gguf_find(gguf, "tokenizer.ggml.token_type");
    f->tokens = fixture_strings(gguf, "tokenizer.ggml.tokens", &f->desc.n_tokens);
    f->merges = fixture_strings(gguf, "tokenizer.ggml.merges", &f->desc.n_merges);
    f->desc.model = fixture_string(gguf, "tokenizer.ggml.model");
    f->desc.pre = fixture_string(gguf, "tokenizer.ggml.pre");
    f->desc.tokens = f->tokens;
    f->desc.merges = f->merges;
    f->desc.scores = scores ? scores->array.values : NULL;
    f->desc.kinds = kinds ? kinds->array.values : NULL;
    f->desc.begin = fixture_id(gguf, "tokenizer.ggml.bos_token_id");
    f->desc.end = fixture_id(gguf, "tokenizer.ggml.eos_token_id");
    f->desc.unknown = fixture_id(gguf, "tokenizer.ggml.unknown_token_id");
    f->desc.end_of_turn = fixture_id(gguf, "tokenizer.ggml.eot_token_id");
    f->desc.end_of_message = fixture_id(gguf, "tokenizer.ggml.eom_token_id");
    f->desc.classify = fixture_id(gguf, "tokenizer.ggml.cls_token_id");
    f->desc.separator = fixture_id(gguf, "tokenizer.ggml.seperator_token_id");
    f->desc.add_begin = fixture_bool(gguf, "tokenizer.ggml.add_bos_token");
    f->desc.add_end = fixture_bool(gguf, "tokenizer.ggml.add_eos_token");
    f->desc.add_separator = fixture_bool(gguf, "tokenizer.ggml.add_sep_token");
    f->desc.add_space_prefix = fixture_bool(gguf, "tokenizer.ggml.add_space_prefix");
    f->desc.removes_extra_spaces = fixture_bool(gguf, "tokenizer.ggml.remove_extra_whitespaces");
    const wick_value *const map = wk_gguf_find(gguf, "tokenizer.ggml.precompiled_charsmap");
    if (map) f->desc.charsmap = (wk_str){map->array.values, (size_t)map->array.count};
}

/* WICK_ERR_NOT_FOUND when there is no such file; otherwise what wk_tokenizer_make says. To be
 * closed in any case. */
static inline wick_status vocab_fixture_open(vocab_fixture *f, const char *path) {
    *f = (vocab_fixture){.tokenizer = NULL};
    wk_heap_init(&f->heap, NULL);
    FILE *const file = fopen(path, "rb");
    if (!file) return WICK_ERR_NOT_FOUND;
    wick_status status = wk_gguf_parser_make(&f->heap, WICK_SIZE_UNKNOWN, &f->parser, &f->error);
    if (status == WICK_OK) status = WICK_PENDING;
    while (status == WICK_PENDING) {
        char chunk[65536];
        const size_t size = fread(chunk, 1, sizeof chunk, file);
        status = size > 0 ? wk_gguf_parser_feed(f->parser, chunk, size, NULL, &f->error)
                          : WICK_ERR_FORMAT;
    }
    fclose(file);
    if (status != WICK_OK) return status;
    fixture_describe(f);
    return wk_tokenizer_make(&f->heap, &f->desc, &f->tokenizer, &f->error);
}

static inline void vocab_fixture_close(vocab_fixture *f) {
    wk_tokenizer_free(&f->heap, f->tokenizer);
    if (f->parser) wk_gguf_parser_free(f->parser);
    free(f->tokens);
    free(f->merges);
}

#endif
