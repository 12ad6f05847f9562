/* text/tokenizer.c: makes tokenizers, and turns text into ids: special tokens first, then the
 * vocabulary's own algorithm on what lies between them. */
#include "text/tokenizer.h"

#include "text/tokenizer_state.h"

static wick_status check_id(uint32_t id, uint32_t n_tokens, const char *key, wick_error *err) {
    if (id == WICK_NO_TOKEN || id < n_tokens) return WICK_OK;
    return wk_fail(err, WICK_ERR_FORMAT, "%s is %u, but the vocabulary has %u tokens", key,
                   (unsigned)id, (unsigned)n_tokens);
}

static wick_status check_desc(const wk_vocab_desc *desc, wick_error *err) {
    const uint32_t n = desc->n_tokens;
    if (n == 0 || n == WICK_NO_TOKEN) {
        return wk_fail(err, WICK_ERR_FORMAT, "a vocabulary of %u tokens", (unsigned)n);
    }
    WK_TRY(check_id(desc->begin, n, "tokenizer.ggml.bos_token_id", err));
    WK_TRY(check_id(desc->end, n, "tokenizer.ggml.eos_token_id", err));
    WK_TRY(check_id(desc->unknown, n, "tokenizer.ggml.unknown_token_id", err));
    WK_TRY(check_id(desc->end_of_turn, n, "tokenizer.ggml.eot_token_id", err));
    if (desc->add_begin == WK_YES && desc->begin == WICK_NO_TOKEN) {
        return wk_fail(err, WICK_ERR_FORMAT,
                       "tokenizer.ggml.add_bos_token is set without tokenizer.ggml.bos_token_id");
    }
    if (desc->add_end == WK_YES && desc->end == WICK_NO_TOKEN) {
        return wk_fail(err, WICK_ERR_FORMAT,
                       "tokenizer.ggml.add_eos_token is set without tokenizer.ggml.eos_token_id");
    }
    return WICK_OK;
}

static wick_status find_kind(wk_str model, wk_tokenizer_kind *kind, wick_error *err) {
    *kind = WK_TOKENIZER_BPE;
    if (wk_str_is(model, "gpt2")) return WICK_OK;
    *kind = WK_TOKENIZER_SENTENCEPIECE;
    if (wk_str_is(model, "llama")) return WICK_OK;
    return wk_fail(err, WICK_ERR_UNSUPPORTED, "tokenizer model '%s' is not known",
                   wk_str_show(model).text);
}

static bool resolve(wk_tristate value, bool by_default) {
    return value == WK_UNSET ? by_default : value == WK_YES;
}

/* Unset choices as the models' own tokenizers have them: SentencePiece models begin with the
 * beginning token and a space, of the byte-level ones only Llama 3 begins with the former. */
static void resolve_defaults(wick_tokenizer *t) {
    const bool is_sentencepiece = t->kind == WK_TOKENIZER_SENTENCEPIECE;
    const bool is_llama3 = !is_sentencepiece && t->bpe.pretokenizer == WK_PRETOKENIZER_LLAMA3;
    t->add_begin =
        t->desc.begin != WICK_NO_TOKEN && resolve(t->desc.add_begin, is_sentencepiece || is_llama3);
    t->add_end = t->desc.end != WICK_NO_TOKEN && resolve(t->desc.add_end, false);
    t->add_space_prefix = is_sentencepiece && resolve(t->desc.add_space_prefix, true);
}

static wick_status fill(wk_heap *heap, const wk_vocab_desc *desc, wick_tokenizer *t,
                        wick_error *err) {
    WK_TRY(check_desc(desc, err));
    WK_TRY(find_kind(desc->model, &t->kind, err));
    const bool is_bpe = t->kind == WK_TOKENIZER_BPE;
    WK_TRY(wk_token_table_make(
        heap, desc, is_bpe ? WK_SPELLING_BYTE_LEVEL : WK_SPELLING_SENTENCEPIECE, &t->table, err));
    WK_TRY(wk_special_make(heap, desc, &t->table, &t->special, err));
    WK_TRY(is_bpe ? wk_bpe_make(heap, desc, &t->table, &t->bpe, err)
                  : wk_sentencepiece_make(heap, desc, &t->table, &t->sentencepiece, err));
    resolve_defaults(t);
    return WICK_OK;
}

wick_status wk_tokenizer_make(wk_heap *heap, const wk_vocab_desc *desc, wick_tokenizer **out,
                              wick_error *err) {
    *out = NULL;
    wick_tokenizer *const t = wk_alloc_zeroed(heap, sizeof *t);
    if (!t) return wk_fail_memory(err, sizeof *t, 0, "the tokenizer");
    t->heap = heap;
    t->desc = *desc;
    const wick_status status = fill(heap, desc, t, err);
    if (status != WICK_OK) {
        wk_tokenizer_free(heap, t);
        return status;
    }
    *out = t;
    return WICK_OK;
}

void wk_tokenizer_free(wk_heap *heap, wick_tokenizer *tokenizer) {
    if (!tokenizer) return;
    wk_token_table_release(heap, &tokenizer->table);
    wk_special_release(heap, &tokenizer->special);
    wk_bpe_release(heap, &tokenizer->bpe);
    wk_sentencepiece_release(&tokenizer->sentencepiece);
    wk_free(heap, tokenizer, sizeof *tokenizer);
}

wk_heap *wk_tokenizer_heap(const wick_tokenizer *tokenizer) { return tokenizer->heap; }

static wick_status encode_text(const wick_tokenizer *t, bool prefix, wk_str text,
                               wk_sentencepiece_scratch *scratch, wk_id_sink *out) {
    if (t->kind == WK_TOKENIZER_BPE) return wk_bpe_encode(&t->bpe, &scratch->merger, text, out);
    return wk_sentencepiece_encode(&t->sentencepiece, prefix, text, scratch, out);
}

/* The space prefix belongs to text at the very beginning and to text after a special token. */
static wick_status encode_all(const wick_tokenizer *t, wk_str text, uint32_t flags,
                              wk_sentencepiece_scratch *scratch, wk_id_sink *out) {
    bool prefix = t->add_space_prefix;
    while (text.size > 0) {
        uint32_t id = WICK_NO_TOKEN;
        size_t id_size = 0;
        const bool all = (flags & WICK_TOKENIZE_PARSE_SPECIAL) != 0;
        const size_t before = wk_special_find(&t->special, text, all, &id, &id_size);
        if (before > 0) {
            WK_TRY(encode_text(t, prefix, (wk_str){text.text, before}, scratch, out));
            prefix = false;
        }
        if (id_size > 0) {
            wk_id_sink_put(out, id);
            prefix = t->add_space_prefix;
        }
        text.text += before + id_size;
        text.size -= before + id_size;
    }
    return WICK_OK;
}

wick_status wick_tokenize(const wick_tokenizer *tokenizer, const char *text, size_t size,
                          uint32_t flags, uint32_t *ids, size_t capacity, size_t *count) {
    const uint32_t known = WICK_TOKENIZE_ADD_SPECIAL | WICK_TOKENIZE_PARSE_SPECIAL;
    if (!tokenizer || !count || (!text && size > 0) || (!ids && capacity > 0) || (flags & ~known) ||
        size > WICK_TOKENIZE_MAX_SIZE) {
        return WICK_ERR_ARGUMENT;
    }
    const bool add_begin = (flags & WICK_TOKENIZE_ADD_BEGIN) && tokenizer->add_begin;
    const bool add_end = (flags & WICK_TOKENIZE_ADD_END) && tokenizer->add_end;
    wk_id_sink out = {.ids = ids, .capacity = capacity};
    wk_sentencepiece_scratch scratch = {.n_chars = 0};
    wk_merger_init(&scratch.merger, tokenizer->heap);
    wk_strbuf_init(&scratch.chunk, tokenizer->heap);

    if (add_begin) wk_id_sink_put(&out, tokenizer->desc.begin);
    const wick_status status = encode_all(tokenizer, (wk_str){text, size}, flags, &scratch, &out);
    if (add_end) wk_id_sink_put(&out, tokenizer->desc.end);

    wk_merger_release(&scratch.merger);
    wk_strbuf_release(&scratch.chunk);
    *count = status == WICK_OK ? out.count : 0;
    return status;
}

uint32_t wick_tokenizer_size(const wick_tokenizer *tokenizer) {
    return tokenizer ? tokenizer->desc.n_tokens : 0;
}

uint32_t wick_token_begin(const wick_tokenizer *tokenizer) {
    return tokenizer ? tokenizer->desc.begin : WICK_NO_TOKEN;
}

uint32_t wick_token_end(const wick_tokenizer *tokenizer) {
    return tokenizer ? tokenizer->desc.end : WICK_NO_TOKEN;
}

bool wick_token_ends_generation(const wick_tokenizer *tokenizer, uint32_t id) {
    return id < wick_tokenizer_size(tokenizer) && tokenizer->table.ends[id];
}

bool wick_token_is_special(const wick_tokenizer *tokenizer, uint32_t id) {
    return id < wick_tokenizer_size(tokenizer) && !wk_token_is_text(&tokenizer->table, id);
}

const char *wick_token_bytes(const wick_tokenizer *tokenizer, uint32_t id, bool special,
                             size_t *size) {
    if (size) *size = 0;
    if (!size || id >= wick_tokenizer_size(tokenizer)) return NULL;
    const bool as_named = special && !wk_token_is_text(&tokenizer->table, id);
    const wk_str text =
        as_named ? tokenizer->desc.tokens[id] : wk_token_text(&tokenizer->table, id);
    *size = text.size;
    return text.size > 0 ? text.text : "";
}
