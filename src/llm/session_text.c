/* llm/session_text.c: what a session reads next: tokens, texts and rows of embeddings that follow
 * what it has, or take its place; and what stays of a text that has filled the context. */
#include "llm/session_struct.h"

#include <assert.h>
#include <string.h>

/* Whether the session takes n more tokens, or rows. */
static wick_status check_room(wick_session *s, size_t n) {
    WK_TRY(wk_session_check_idle(s));
    if (s->n_tokens == 0 && n > s->context_length)
        return wk_fail(&s->error, WICK_ERR_STATE, "the prompt has %zu tokens, the context holds %u",
                       n, s->context_length);
    if (n > s->context_length - s->n_tokens)
        return wk_fail(&s->error, WICK_ERR_STATE,
                       "%zu tokens do not fit: %u of the context's %u are left", n,
                       s->context_length - s->n_tokens, s->context_length);
    if (s->n_tokens > 0 && s->is_whole)
        return wk_fail(&s->error, WICK_ERR_STATE,
                       "an encoder reads a text at once: reset the session before the next");
    return WICK_OK;
}

/* n tokens were put after the others. */
static void note_appended(wick_session *s, size_t n) {
    s->n_changes++;
    s->n_tokens += (uint32_t)n;
    s->n_prompt += (uint32_t)n;
    const bool has_logits = s->has_logits && n == 0;
    wk_session_begin_prompt(s);
    s->has_logits = has_logits;
}

static wick_status sync_tokens(wick_session *s, const uint32_t *ids, size_t n);

static bool can_shift(const wick_session *s) { return s->has_shift && s->n_given == 0; }

/* Makes the first n_before of its tokens and n ids the whole sequence, without its middle: there is
 * no room for all of them. */
static wick_status sync_cut(wick_session *s, uint32_t n_before, const uint32_t *ids, size_t n) {
    const size_t total = n_before + n;
    const uint32_t most = s->context_length - (s->context_length - s->n_keep) / 4;
    const size_t size = most * sizeof *ids;
    uint32_t *const kept = wk_alloc(s->model->heap, size);
    if (!kept) return wk_fail_memory(&s->error, size, "a prompt");
    for (uint32_t i = 0; i < most; i++) {
        const size_t at = i < s->n_keep ? i : total - most + i;
        kept[i] = at < n_before ? s->tokens[at] : ids[at - n_before];
    }
    const wick_status status = sync_tokens(s, kept, most);
    wk_free(s->model->heap, kept, size);
    return status;
}

static wick_status append_tokens(wick_session *s, const uint32_t *ids, size_t n) {
    WK_TRY(wk_session_check_idle(s));
    if (can_shift(s) && n > s->context_length - s->n_tokens)
        return sync_cut(s, s->n_tokens, ids, n);
    WK_TRY(check_room(s, n));
    for (size_t i = 0; i < n; i++)
        if (ids[i] >= wk_model_hparams(s->model->model)->n_vocab)
            return wk_fail(&s->error, WICK_ERR_INDEX, "token %u is not in the vocabulary of %u",
                           ids[i], wk_model_hparams(s->model->model)->n_vocab);
    if (n > 0) memmove(s->tokens + s->n_tokens, ids, n * sizeof *ids); /* may be its own */
    note_appended(s, n);
    return WICK_OK;
}

size_t wk_session_given_bytes(const wick_session *session, uint32_t n) {
    return (size_t)n * wk_model_hparams(session->model->model)->n_embd * sizeof(float);
}

static wick_status reserve_given(wick_session *s, uint32_t n) {
    if (n <= s->given_capacity) return WICK_OK;
    const size_t size = wk_session_given_bytes(s, n);
    float *const larger =
        wk_realloc(s->model->heap, s->given, wk_session_given_bytes(s, s->given_capacity), size);
    if (!larger) return wk_fail_memory(&s->error, size, "rows of embeddings");
    s->given = larger;
    s->given_capacity = n;
    return WICK_OK;
}

/* They stay on the host: after a loss they are read again. */
static wick_status append_rows(wick_session *s, const float *rows, size_t n) {
    const wk_hparams *const hparams = wk_model_hparams(s->model->model);
    WK_TRY(check_room(s, n));
    if (hparams->n_embd_layer > 0)
        return wk_fail(&s->error, WICK_ERR_UNSUPPORTED,
                       "the layers of this model take rows of their own for each token: it reads "
                       "tokens only");
    WK_TRY(reserve_given(s, s->n_given + (uint32_t)n));
    if (n > 0)
        memcpy(s->given + (size_t)s->n_given * hparams->n_embd, rows,
               wk_session_given_bytes(s, (uint32_t)n));
    for (size_t i = 0; i < n; i++) s->tokens[s->n_tokens + i] = WICK_NO_TOKEN;
    s->n_given += (uint32_t)n;
    note_appended(s, n);
    return WICK_OK;
}

const float *wk_session_given_from(const wick_session *session, uint32_t n) {
    const wick_session *const s = session;
    uint32_t count = 0;
    for (uint32_t i = 0; i < n && count < s->n_given; i++) count += s->tokens[i] == WICK_NO_TOKEN;
    return count < s->n_given ? s->given + wk_session_given_bytes(s, count) / sizeof *s->given
                              : NULL;
}

/* Text that is appended in parts gets the tokens of the whole text: a new text begins only at the
 * start of the session and after special tokens. */
static uint32_t text_flags(const wick_session *s) {
    if (s->n_tokens == 0) return WICK_TOKENIZE_PARSE_SPECIAL | WICK_TOKENIZE_ADD_BEGIN;
    const bool begins = wick_token_is_special(s->tokenizer, s->tokens[s->n_tokens - 1]);
    return WICK_TOKENIZE_PARSE_SPECIAL | (begins ? 0 : (uint32_t)WICK_TOKENIZE_CONTINUE);
}

static wick_status append_text(wick_session *s, const char *text) {
    WK_TRY(wk_session_check_idle(s));
    wk_heap *const heap = s->model->heap;
    const uint32_t flags = text_flags(s);
    const size_t text_size = strlen(text);
    size_t capacity = text_size + 2, n = 0; /* enough for most texts */
    uint32_t *ids = wk_alloc_array(heap, capacity, sizeof *ids);
    wick_status status =
        ids ? wick_tokenize(s->tokenizer, text, text_size, flags, ids, capacity, &n)
            : WICK_ERR_OUT_OF_MEMORY;
    if (status == WICK_OK && n > capacity) {
        wk_free(heap, ids, capacity * sizeof *ids);
        capacity = n;
        ids = wk_alloc_array(heap, capacity, sizeof *ids);
        status = ids ? wick_tokenize(s->tokenizer, text, text_size, flags, ids, capacity, &n)
                     : WICK_ERR_OUT_OF_MEMORY;
    }
    if (status != WICK_OK)
        (void)wk_fail(&s->error, status, "the text cannot be tokenized: %s",
                      wick_status_text(status));
    else
        status = append_tokens(s, ids, n);
    wk_free(heap, ids, capacity * sizeof *ids);
    return status;
}

/* How many of ids, from the first one on, need not be computed again: none after a given row, which
 * no id names. */
static uint32_t count_kept(const wick_session *s, const uint32_t *ids, size_t n) {
    uint32_t same = 0;
    while (same < n && same < s->n_tokens && s->tokens[same] == ids[same] &&
           ids[same] != WICK_NO_TOKEN)
        same++;
    /* The last token is computed again where nothing is new: its logits are what comes next. */
    uint32_t kept = same < s->n_computed ? same : s->n_computed;
    if (kept == n && kept > 0) kept--;
    const bool goes_back = kept < wk_sequence_cached(s->sequence);
    return goes_back && !wk_sequence_can_return(s->sequence, kept) ? 0 : kept;
}

/* The first `kept` tokens have been computed, and no others. */
static void go_back(wick_session *s, uint32_t kept) {
    assert(kept <= s->n_computed && kept <= s->n_tokens);
    wk_session_forget_logits(s);
    s->n_computed = kept;
    if (wk_sequence_cached(s->sequence) > kept) (void)wk_sequence_return(s->sequence, kept);
    s->n_rows = s->n_given = 0;
    s->n_reused += kept;
    s->guess.length = 0; /* its place was one of the text before */
}

static wick_status sync_tokens(wick_session *s, const uint32_t *ids, size_t n) {
    WK_TRY(wk_session_check_idle(s));
    if (can_shift(s) && n > s->context_length) return sync_cut(s, 0, ids, n);
    wk_session_drop_batch(s);
    const uint32_t kept = count_kept(s, ids, n), n_tokens = s->n_tokens;
    s->n_tokens = kept;
    const wick_status status = append_tokens(s, n > kept ? ids + kept : NULL, n - kept);
    if (status != WICK_OK) {
        s->n_tokens = n_tokens;
        return status;
    }
    go_back(s, kept);
    return WICK_OK;
}

bool wk_session_shift(wick_session *session) {
    wick_session *const s = session;
    const uint32_t keep = s->n_keep, half = (s->n_tokens - keep) / 2;
    const uint32_t n = half > WK_BLOCK_SIZE ? half - half % WK_BLOCK_SIZE : half;
    if (!can_shift(s) || n == 0) return false;
    wk_session_forget_logits(s);
    wk_session_take_back(s); /* guesses that the full context ends before */
    const uint32_t n_prompt = s->n_tokens - s->n_since_prompt;
    const uint32_t begin = n_prompt > keep ? n_prompt : keep; /* of generated tokens that may go */
    const uint32_t n_lost = keep + n > begin ? keep + n - begin : 0;
    memmove(s->tokens + keep, s->tokens + keep + n, (s->n_tokens - keep - n) * sizeof *s->tokens);
    s->n_tokens -= n;
    s->n_since_prompt -= n_lost;
    s->n_shifted += n_lost;
    go_back(s, wk_sequence_can_return(s->sequence, keep) ? keep : 0);
    return true;
}

void wk_session_replace_prompt(wick_session *session, const uint32_t *ids, uint32_t n) {
    wick_session *const s = session;
    wk_session_absorb(s);
    wk_session_drop_batch(s);
    wk_session_take_back(s);
    const uint32_t n_text = s->n_since_prompt, kept = count_kept(s, ids, n);
    assert(n_text <= s->context_length && n <= s->context_length - n_text);
    memmove(s->tokens + n, s->tokens + s->n_tokens - n_text, n_text * sizeof *ids);
    memcpy(s->tokens, ids, n * sizeof *ids);
    s->n_tokens = n + n_text;
    s->n_changes++;
    go_back(s, kept);
}

wick_status wick_session_append_tokens(wick_session *session, const uint32_t *ids, size_t n) {
    if (!session) return WICK_ERR_ARGUMENT;
    if (!ids && n > 0) return wk_session_refuse_null(session, "wick_session_append_tokens: ids");
    return append_tokens(session, ids, n);
}

wick_status wick_session_append_embeddings(wick_session *session, const float *rows, size_t n) {
    if (!session) return WICK_ERR_ARGUMENT;
    if (!rows && n > 0)
        return wk_session_refuse_null(session, "wick_session_append_embeddings: rows");
    return append_rows(session, rows, n);
}

wick_status wick_session_append_text(wick_session *session, const char *text) {
    if (!session) return WICK_ERR_ARGUMENT;
    if (!text) return wk_session_refuse_null(session, "wick_session_append_text: text");
    return append_text(session, text);
}

wick_status wick_session_sync_tokens(wick_session *session, const uint32_t *ids, size_t n) {
    if (!session) return WICK_ERR_ARGUMENT;
    if (!ids && n > 0) return wk_session_refuse_null(session, "wick_session_sync_tokens: ids");
    return sync_tokens(session, ids, n);
}
