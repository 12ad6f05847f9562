/* llm/vocabulary.c: from the tokenizer.ggml.* metadata to a tokenizer. */
#include "llm/llm.h"
#include "model/metadata.h"
#include "source/file.h"

#include <inttypes.h>

/* Where the values of one vocabulary come from. */
typedef struct reading {
    const wk_gguf *gguf;
    wick_error *err;
} reading;

static wick_status refuse(const reading *from, const char *key, const char *wanted) {
    return wk_fail(from->err, WICK_ERR_FORMAT, "the metadata key '%s' must be %s", key, wanted);
}

static wick_status read_id(const reading *from, const char *key, uint32_t *out) {
    *out = WICK_NO_TOKEN;
    const wick_value *const value = wk_gguf_find(from->gguf, key);
    if (value == NULL) return WICK_OK;
    if (value->type == WICK_VALUE_U32 && value->u < WICK_NO_TOKEN) {
        *out = (uint32_t)value->u;
        return WICK_OK;
    }
    /* Some converters write -1 where there is none. */
    if (value->type == WICK_VALUE_I32) {
        if (value->i >= 0) *out = (uint32_t)value->i;
        return WICK_OK;
    }
    return value->type == WICK_VALUE_U32 ? WICK_OK : refuse(from, key, "a u32");
}

static wick_status read_flag(const reading *from, const char *key, wk_tristate *out) {
    *out = WK_UNSET;
    const wick_value *const value = wk_gguf_find(from->gguf, key);
    if (value == NULL) return WICK_OK;
    if (value->type != WICK_VALUE_BOOL) return refuse(from, key, "a bool");
    *out = value->u != 0 ? WK_YES : WK_NO;
    return WICK_OK;
}

/* An array of texts; NULL and 0 when it is missing. */
static wick_status read_texts(const reading *from, const char *key, const wk_str **out,
                              uint32_t *n) {
    const wick_value *const value = wk_gguf_find(from->gguf, key);
    *out = NULL;
    *n = 0;
    if (value == NULL) return WICK_OK;
    if (value->type != WICK_VALUE_ARRAY || value->array.element_type != WICK_VALUE_STRING ||
        value->array.count >= WICK_NO_TOKEN)
        return refuse(from, key, "an array of texts");
    *out = value->array.values;
    *n = (uint32_t)value->array.count;
    return WICK_OK;
}

/* An array of numbers of one of two types (of one size); NULL when it is missing. */
static wick_status read_numbers(const reading *from, const char *key, const wick_value_type type[2],
                                const char *wanted, const wick_value **out) {
    const wick_value *const value = wk_gguf_find(from->gguf, key);
    *out = value;
    if (value == NULL ||
        (value->type == WICK_VALUE_ARRAY &&
         (value->array.element_type == type[0] || value->array.element_type == type[1])))
        return WICK_OK;
    return refuse(from, key, wanted);
}

static const wick_value_type floats[2] = {WICK_VALUE_F32, WICK_VALUE_F32};
static const wick_value_type integers[2] = {WICK_VALUE_I32, WICK_VALUE_U32};
static const wick_value_type bytes[2] = {WICK_VALUE_U8, WICK_VALUE_I8};

/* One for each of n_tokens tokens. */
static wick_status read_each(const reading *from, const char *key, const wick_value_type type[2],
                             const char *wanted, uint32_t n_tokens, const void **out) {
    const wick_value *value;
    *out = NULL;
    WK_TRY(read_numbers(from, key, type, wanted, &value));
    if (value == NULL) return WICK_OK;
    if (value->array.count != n_tokens)
        return wk_fail(from->err, WICK_ERR_FORMAT,
                       "the metadata key '%s' has %" PRIu64 " elements for %" PRIu32 " tokens", key,
                       value->array.count, n_tokens);
    *out = value->array.values;
    return WICK_OK;
}

/* An array of bytes, signed or not; empty when it is missing. */
static wick_status read_bytes(const reading *from, const char *key, wk_str *out) {
    const wick_value *value;
    *out = (wk_str){.text = NULL};
    WK_TRY(read_numbers(from, key, bytes, "an array of u8", &value));
    if (value != NULL) *out = (wk_str){value->array.values, (size_t)value->array.count};
    return WICK_OK;
}

static wick_status read_tokens(const reading *from, wk_vocab_desc *desc) {
    const void *scores, *kinds;
    WK_TRY(read_texts(from, "tokenizer.ggml.tokens", &desc->tokens, &desc->n_tokens));
    if (wk_gguf_find(from->gguf, "tokenizer.ggml.tokens") == NULL)
        return wk_fail(from->err, WICK_ERR_FORMAT,
                       "the metadata has no key 'tokenizer.ggml.tokens'");
    WK_TRY(read_texts(from, "tokenizer.ggml.merges", &desc->merges, &desc->n_merges));
    WK_TRY(read_each(from, "tokenizer.ggml.scores", floats, "an array of f32", desc->n_tokens,
                     &scores));
    WK_TRY(read_each(from, "tokenizer.ggml.token_type", integers, "an array of i32", desc->n_tokens,
                     &kinds));
    desc->scores = scores;
    desc->kinds = kinds;
    return WICK_OK;
}

static wick_status read_suppressed(const reading *from, wk_vocab_desc *desc) {
    const wick_value *value;
    WK_TRY(
        read_numbers(from, "tokenizer.ggml.suppress_tokens", integers, "an array of i32", &value));
    if (value == NULL) return WICK_OK;
    desc->suppressed = value->array.values;
    desc->n_suppressed = (size_t)value->array.count;
    return WICK_OK;
}

/* The tokenizer that the metadata describes, with its arrays: gguf must outlive it. */
static wick_status tokenizer_of(wk_heap *heap, const wk_gguf *gguf, wick_tokenizer **out,
                                wick_error *err) {
    *out = NULL;
    /* What follows a file that was completed in the middle. */
    static const char *const other_ends[] = {"tokenizer.ggml.fim_pad_token_id",
                                             "tokenizer.ggml.fim_rep_token_id",
                                             "tokenizer.ggml.fim_sep_token_id"};
    const reading from = {.gguf = gguf, .err = err};
    uint32_t ends[WK_COUNT(other_ends)];
    wk_vocab_desc desc = {.n_other_ends = WK_COUNT(ends), .other_ends = ends};
    for (size_t i = 0; i < WK_COUNT(ends); i++) WK_TRY(read_id(&from, other_ends[i], &ends[i]));
    WK_TRY(wk_metadata_general(gguf, "tokenizer.ggml.model", true, &desc.model, err));
    WK_TRY(wk_metadata_general(gguf, "tokenizer.ggml.pre", false, &desc.pre, err));
    WK_TRY(wk_metadata_general(gguf, "general.name", false, &desc.name, err));
    WK_TRY(wk_metadata_general(gguf, "general.architecture", false, &desc.architecture, err));
    WK_TRY(read_tokens(&from, &desc));
    WK_TRY(read_suppressed(&from, &desc));
    WK_TRY(read_id(&from, "tokenizer.ggml.bos_token_id", &desc.begin));
    WK_TRY(read_id(&from, "tokenizer.ggml.eos_token_id", &desc.end));
    WK_TRY(read_id(&from, "tokenizer.ggml.unknown_token_id", &desc.unknown));
    WK_TRY(read_id(&from, "tokenizer.ggml.eot_token_id", &desc.end_of_turn));
    WK_TRY(read_id(&from, "tokenizer.ggml.eom_token_id", &desc.end_of_message));
    WK_TRY(read_id(&from, "tokenizer.ggml.cls_token_id", &desc.classify));
    WK_TRY(read_id(&from, "tokenizer.ggml.seperator_token_id", &desc.separator)); /* (sic) */
    WK_TRY(read_flag(&from, "tokenizer.ggml.add_bos_token", &desc.add_begin));
    WK_TRY(read_flag(&from, "tokenizer.ggml.add_eos_token", &desc.add_end));
    WK_TRY(read_flag(&from, "tokenizer.ggml.add_sep_token", &desc.add_separator));
    WK_TRY(read_flag(&from, "tokenizer.ggml.add_space_prefix", &desc.add_space_prefix));
    WK_TRY(read_flag(&from, "tokenizer.ggml.remove_extra_whitespaces", &desc.removes_extra_spaces));
    WK_TRY(read_bytes(&from, "tokenizer.ggml.precompiled_charsmap", &desc.charsmap));
    WK_TRY(read_flag(&from, "tokenizer.ggml.ignore_merges", &desc.takes_whole));
    WK_TRY(wk_metadata_general(gguf, "tokenizer.ggml.prepend_scheme", false, &desc.prepend_scheme,
                               err));
    return wk_tokenizer_make(heap, &desc, out, err);
}

wick_status wk_tokenizer_of_model(wk_heap *heap, const wk_gguf *gguf, uint32_t n_vocab,
                                  wick_tokenizer **out, wick_error *err) {
    WK_TRY(tokenizer_of(heap, gguf, out, err));
    const uint32_t n_tokens = wick_tokenizer_size(*out);
    if (n_tokens == n_vocab) return WICK_OK;
    wk_tokenizer_free(heap, *out);
    *out = NULL;
    return wk_fail(err, WICK_ERR_FORMAT,
                   "the metadata key 'tokenizer.ggml.tokens' has %" PRIu32
                   " tokens, but the tensor 'token_embd.weight' has %" PRIu32 " rows",
                   n_tokens, n_vocab);
}

/* ---- The tokenizer of a file alone ---- */

/* Its heap lies in a block from that heap. */
static void free_heap(wk_heap *at) {
    wk_heap heap = *at;
    wk_free(&heap, at, sizeof *at);
}

wick_status wick_tokenizer_open(const wick_file *file, wick_tokenizer **tokenizer,
                                wick_error *error) {
    if (tokenizer != NULL) *tokenizer = NULL;
    if (file == NULL || tokenizer == NULL)
        return wk_fail(error, WICK_ERR_ARGUMENT, "wick_tokenizer_open: an argument is NULL");
    wk_heap heap;
    wk_heap_init(&heap, NULL);
    wk_heap *const own = wk_alloc(&heap, sizeof *own);
    if (own == NULL) return wk_fail_memory(error, sizeof *own, "a tokenizer");
    *own = heap;
    const wick_status status = tokenizer_of(own, wk_file_gguf(file), tokenizer, error);
    if (status != WICK_OK) free_heap(own);
    return status;
}

void wick_tokenizer_close(wick_tokenizer *tokenizer) {
    if (tokenizer == NULL) return;
    wk_heap *const heap = wk_tokenizer_heap(tokenizer);
    wk_tokenizer_free(heap, tokenizer);
    free_heap(heap);
}
