/* text/tokenize/tokenizer.c: makes tokenizers, and turns text into ids: special tokens first, then
 * the vocabulary's own algorithm on what lies between them. */
#include "text/tokenize/tokenizer.h"

#include "text/tokenize/tokenizer_state.h"

static wick_status check_named(uint32_t id, uint32_t n_tokens, const char *key, wick_error *err) {
    if (id < n_tokens) return WICK_OK;
    return wk_fail(err, WICK_ERR_FORMAT, "%s is %u, but the vocabulary has %u tokens", key,
                   (unsigned)id, (unsigned)n_tokens);
}

static wick_status check_id(uint32_t id, uint32_t n_tokens, const char *key, wick_error *err) {
    return id == WICK_NO_TOKEN ? WICK_OK : check_named(id, n_tokens, key, err);
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
    WK_TRY(check_id(desc->end_of_message, n, "tokenizer.ggml.eom_token_id", err));
    WK_TRY(check_id(desc->classify, n, "tokenizer.ggml.cls_token_id", err));
    WK_TRY(check_id(desc->separator, n, "tokenizer.ggml.seperator_token_id", err));
    for (size_t i = 0; i < desc->n_suppressed; i++)
        WK_TRY(check_named(desc->suppressed[i], n, "tokenizer.ggml.suppress_tokens", err));
    return WICK_OK;
}

/* What a model is called in tokenizer.ggml.model, and how it is made. */
typedef struct model_kind {
    const char *name;
    wk_tokenizer_kind kind;
    wk_sentencepiece_kind pieces;                 /* of SentencePiece alone */
    bool adds_begin, adds_end, adds_space_prefix; /* where the file does not say */
} model_kind;

/* Unset choices as the models' own tokenizers have them. */
static const model_kind model_kinds[] = {
    {.name = "gpt2", .kind = WK_TOKENIZER_BPE},
    {.name = "llama",
     .kind = WK_TOKENIZER_SENTENCEPIECE,
     .pieces = WK_SENTENCEPIECE_SCORES,
     .adds_begin = true,
     .adds_space_prefix = true},
    {.name = "gemma4",
     .kind = WK_TOKENIZER_SENTENCEPIECE,
     .pieces = WK_SENTENCEPIECE_MERGES,
     .adds_begin = true},
    {.name = "t5",
     .kind = WK_TOKENIZER_SENTENCEPIECE,
     .pieces = WK_SENTENCEPIECE_UNIGRAM,
     .adds_end = true,
     .adds_space_prefix = true},
    {.name = "bert",
     .kind = WK_TOKENIZER_WORDPIECE,
     .adds_begin = true,
     .adds_end = true,
     .adds_space_prefix = true},
};

static const model_kind *find_kind(wk_str model, wick_error *err) {
    for (size_t i = 0; i < WK_COUNT(model_kinds); i++) {
        if (wk_str_is(model, model_kinds[i].name)) return &model_kinds[i];
    }
    wk_fail(err, WICK_ERR_UNSUPPORTED, "tokenizer model '%s' is not known",
            wk_str_show(model).text);
    return NULL;
}

static bool resolve(wk_tristate value, bool by_default) {
    return value == WK_UNSET ? by_default : value == WK_YES;
}

/* What stands first and last: BERT's have names of their own. */
static void find_ends(wick_tokenizer *t, wk_tristate *add_end) {
    const wk_vocab_desc *const desc = &t->desc;
    const bool is_bert = t->kind == WK_TOKENIZER_WORDPIECE;
    t->begin = is_bert && desc->begin == WICK_NO_TOKEN ? desc->classify : desc->begin;
    t->end = desc->end;
    *add_end = desc->add_end;
    if (!is_bert || desc->separator == WICK_NO_TOKEN) return;
    t->end = desc->separator;
    if (desc->add_separator != WK_UNSET) *add_end = desc->add_separator;
}

/* Files may wish for a token that they do not name. */
static wick_status resolve_choices(const model_kind *kind, wick_tokenizer *t, wick_error *err) {
    const wk_vocab_desc *const desc = &t->desc;
    wk_tristate add_end;
    find_ends(t, &add_end);
    if (desc->add_begin == WK_YES && t->begin == WICK_NO_TOKEN) {
        return wk_fail(err, WICK_ERR_FORMAT,
                       "tokenizer.ggml.add_bos_token is set without tokenizer.ggml.bos_token_id");
    }
    if (add_end == WK_YES && t->end == WICK_NO_TOKEN) {
        return wk_fail(err, WICK_ERR_FORMAT,
                       "tokenizer.ggml.add_eos_token is set without tokenizer.ggml.eos_token_id");
    }
    const bool adds_begin =
        kind->adds_begin || (kind->kind == WK_TOKENIZER_BPE && t->bpe.pretokenizer->adds_begin);
    t->add_begin = t->begin != WICK_NO_TOKEN && resolve(desc->add_begin, adds_begin);
    t->add_end = t->end != WICK_NO_TOKEN && resolve(add_end, kind->adds_end);
    const wk_str scheme = desc->prepend_scheme;
    t->prefixes_first = wk_str_is(scheme, "first");
    if (scheme.size > 0 && !t->prefixes_first && !wk_str_is(scheme, "always"))
        return wk_fail(err, WICK_ERR_UNSUPPORTED, "tokenizer.ggml.prepend_scheme '%s' is not known",
                       wk_str_show(scheme).text);
    t->add_space_prefix =
        kind->kind != WK_TOKENIZER_BPE && resolve(desc->add_space_prefix, kind->adds_space_prefix);
    return WICK_OK;
}

/* --- White space beside special tokens --- */

/* Files do not say which tokens take it; the models' own tokenizers do. */
static bool is_phi3(wk_str name) {
    for (size_t i = 0; i + 4 <= name.size; i++) {
        const char *const at = name.text + i;
        const bool has_sign = at[3] == '-' && i + 4 < name.size;
        if ((at[0] | 0x20) == 'p' && (at[1] | 0x20) == 'h' && (at[2] | 0x20) == 'i' &&
            at[has_sign ? 4 : 3] == '3')
            return true;
    }
    return false;
}

static bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

size_t wk_text_before(const wick_tokenizer *t, wk_str text, size_t from, size_t at, uint32_t id) {
    static const char *const masked[][2] = {{"jina-v2-de", "<mask>"},
                                            {"jina-v2-es", "<mask>"},
                                            {"jina-v2-code", "<mask>"},
                                            {"modern-bert", "[MASK]"}};
    for (size_t i = 0; i < WK_COUNT(masked); i++) {
        if (!wk_str_is(t->desc.tokens[id], masked[i][1]) || !wk_str_is(t->desc.pre, masked[i][0]))
            continue;
        while (at > from && is_space(text.text[at - 1])) at--;
    }
    return at;
}

size_t wk_text_after(const wick_tokenizer *t, wk_str text, size_t at, uint32_t id) {
    const wk_str token = t->desc.tokens[id];
    const bool strips = t->strips_after && !wk_str_is(token, "<unk>") && !wk_str_is(token, "<s>") &&
                        !wk_str_is(token, "<|endoftext|>");
    while (strips && at < text.size && is_space(text.text[at])) at++;
    return at;
}

/* --- Making --- */

static wick_status fill(wk_heap *heap, wick_tokenizer *t, wick_error *err) {
    const wk_vocab_desc *const desc = &t->desc;
    WK_TRY(check_desc(desc, err));
    const model_kind *const kind = find_kind(desc->model, err);
    if (!kind) return WICK_ERR_UNSUPPORTED;
    t->kind = kind->kind;
    t->strips_after = is_phi3(desc->name) ||
                      (wk_str_is(desc->architecture, "phi3") && wk_str_is(desc->model, "llama"));
    const wk_token_spelling spelling =
        t->kind == WK_TOKENIZER_BPE ? WK_SPELLING_BYTE_LEVEL : WK_SPELLING_SENTENCEPIECE;
    WK_TRY(wk_token_table_make(heap, desc, spelling, &t->table, err));
    WK_TRY(wk_special_make(heap, desc, &t->table, &t->special, err));
    switch (t->kind) {
    case WK_TOKENIZER_BPE:
        WK_TRY(wk_bpe_make(heap, desc, &t->table, &t->special, &t->bpe, err));
        break;
    case WK_TOKENIZER_SENTENCEPIECE:
        WK_TRY(wk_sentencepiece_make(heap, kind->pieces, desc, &t->table, &t->special,
                                     &t->sentencepiece, err));
        break;
    case WK_TOKENIZER_WORDPIECE:
        WK_TRY(wk_wordpiece_make(heap, desc, &t->table, &t->wordpiece, err));
        break;
    }
    return resolve_choices(kind, t, err);
}

wick_status wk_tokenizer_make(wk_heap *heap, const wk_vocab_desc *desc, wick_tokenizer **out,
                              wick_error *err) {
    *out = NULL;
    wick_tokenizer *const t = wk_alloc_zeroed(heap, sizeof *t);
    if (!t) return wk_fail_memory(err, sizeof *t, "the tokenizer");
    t->heap = heap;
    t->desc = *desc;
    const wick_status status = fill(heap, t, err);
    if (status != WICK_OK) {
        wk_tokenizer_free(heap, t);
        return status;
    }
    t->desc.other_ends = NULL; /* the caller's; the table has them */
    *out = t;
    return WICK_OK;
}

void wk_tokenizer_free(wk_heap *heap, wick_tokenizer *tokenizer) {
    if (!tokenizer) return;
    wk_token_table_release(heap, &tokenizer->table);
    wk_special_release(heap, &tokenizer->special);
    wk_bpe_release(heap, &tokenizer->bpe);
    wk_sentencepiece_release(heap, &tokenizer->sentencepiece);
    wk_wordpiece_release(heap, &tokenizer->wordpiece);
    wk_free(heap, tokenizer, sizeof *tokenizer);
}

wk_heap *wk_tokenizer_heap(const wick_tokenizer *tokenizer) { return tokenizer->heap; }

const uint32_t *wk_tokenizer_suppressed(const wick_tokenizer *tokenizer, size_t *n) {
    *n = tokenizer->desc.n_suppressed;
    return tokenizer->desc.suppressed;
}

/* --- Tokenizing --- */

/* Tokens that a converter adds to the pieces have this score or a lower one. */
#define ADDED_SCORE (-1000.0f)

bool wk_is_user_piece(const wick_tokenizer *t, uint32_t id) {
    return t->kind == WK_TOKENIZER_SENTENCEPIECE && t->desc.scores &&
           !t->sentencepiece.is_metaspace && t->table.kinds[id] == WK_TOKEN_USER_DEFINED &&
           t->desc.scores[id] > ADDED_SCORE;
}

unsigned wk_edges_after(const wick_tokenizer *t, uint32_t id) {
    if (wk_is_user_piece(t, id)) return WK_EDGE_AFTER;
    return t->add_space_prefix && !t->prefixes_first ? WK_EDGE_PREFIX : 0;
}

static wick_status encode_text(const wick_tokenizer *t, unsigned edges, wk_str text,
                               wk_merger *merger, wk_id_sink *out) {
    switch (t->kind) {
    case WK_TOKENIZER_BPE: return wk_bpe_encode(&t->bpe, merger, text, out);
    case WK_TOKENIZER_SENTENCEPIECE:
        return wk_sentencepiece_encode(&t->sentencepiece, edges, text, merger, out);
    case WK_TOKENIZER_WORDPIECE: wk_wordpiece_encode(&t->wordpiece, text, out); break;
    }
    return WICK_OK;
}

/* The space prefix belongs to text at the very beginning and to text after a special token, where a
 * user-defined piece is text: "<tool>a" is a space, <tool> and a. */
static wick_status encode_all(const wick_tokenizer *t, wk_str text, bool all, unsigned edges,
                              wk_merger *merger, wk_id_sink *out) {
    const unsigned last = edges & WK_EDGE_BEFORE;
    if (text.size == 0 && last && edges & WK_EDGE_PREFIX)
        return encode_text(t, edges, text, merger, out); /* the prefix alone */
    edges &= ~last;
    while (text.size > 0) {
        uint32_t id = WICK_NO_TOKEN;
        size_t id_size = 0;
        const size_t before = wk_special_find(&t->special, text, all, &id, &id_size);
        const size_t end = id_size > 0 ? wk_text_before(t, text, 0, before, id) : before;
        size_t next = before + id_size;
        if (id_size > 0 ? wk_is_user_piece(t, id) : last) edges |= WK_EDGE_BEFORE;
        if (end > 0 || edges == (WK_EDGE_PREFIX | WK_EDGE_BEFORE))
            WK_TRY(encode_text(t, edges, (wk_str){text.text, end}, merger, out));
        if (id_size > 0) {
            wk_id_sink_put(out, id);
            edges = wk_edges_after(t, id);
            next = wk_text_after(t, text, next, id);
        }
        text.text += next;
        text.size -= next;
    }
    return WICK_OK;
}

wick_status wk_tokenize_between(const wick_tokenizer *t, wk_str text, unsigned edges,
                                wk_id_sink *out) {
    if (text.size > WICK_TOKENIZE_MAX_SIZE) return WICK_ERR_ARGUMENT;
    wk_merger merger;
    wick_status status = wk_merger_init(&merger, t->heap, text.size);
    if (status == WICK_OK) status = encode_all(t, text, false, edges, &merger, out);
    wk_merger_release(&merger);
    return status;
}

wick_status wick_tokenize(const wick_tokenizer *tokenizer, const char *text, size_t size,
                          uint32_t flags, uint32_t *ids, size_t capacity, size_t *count) {
    const uint32_t known =
        WICK_TOKENIZE_ADD_SPECIAL | WICK_TOKENIZE_PARSE_SPECIAL | WICK_TOKENIZE_CONTINUE;
    if (!tokenizer || !count || (!text && size > 0) || (!ids && capacity > 0) || (flags & ~known) ||
        size > WICK_TOKENIZE_MAX_SIZE) {
        return WICK_ERR_ARGUMENT;
    }
    const bool add_begin = (flags & WICK_TOKENIZE_ADD_BEGIN) && tokenizer->add_begin;
    const bool add_end = (flags & WICK_TOKENIZE_ADD_END) && tokenizer->add_end;
    const bool has_prefix = tokenizer->add_space_prefix && !(flags & WICK_TOKENIZE_CONTINUE);
    wk_id_sink out = {.ids = ids, .capacity = capacity, .last = WICK_NO_TOKEN};
    wk_merger merger;
    wick_status status = wk_merger_init(&merger, tokenizer->heap, size);
    if (add_begin) wk_id_sink_put(&out, tokenizer->begin);
    if (status == WICK_OK) {
        status =
            encode_all(tokenizer, (wk_str){text, size}, (flags & WICK_TOKENIZE_PARSE_SPECIAL) != 0,
                       has_prefix ? WK_EDGE_PREFIX : 0, &merger, &out);
    }
    if (add_end) wk_id_sink_put(&out, tokenizer->end);
    wk_merger_release(&merger);
    *count = status == WICK_OK ? out.count : 0;
    return status;
}

uint32_t wick_tokenizer_size(const wick_tokenizer *tokenizer) {
    return tokenizer ? tokenizer->desc.n_tokens : 0;
}

uint32_t wick_token_begin(const wick_tokenizer *tokenizer) {
    return tokenizer ? tokenizer->begin : WICK_NO_TOKEN;
}

uint32_t wick_token_end(const wick_tokenizer *tokenizer) {
    return tokenizer ? tokenizer->end : WICK_NO_TOKEN;
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
