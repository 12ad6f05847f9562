/* judge/embed.c: embeddings: the hidden states that a session gives, pooled. */
#include <wick/embed.h>

#include "llm/llm.h"

#include <math.h>
#include <string.h>

struct wick_embedder {
    wick_model *model;
    wick_session *session; /* gives states */
    wick_pooling pooling;
    bool is_raw, is_done;
    wick_error error;        /* of the last call that failed; clear: a later one was accepted */
    size_t n_embd, n_tokens; /* n_tokens: of this text */
    float *rows;             /* [capacity, n_embd] */
    size_t capacity, n_rows;
    double *sum; /* [n_embd] of the rows so far; NULL: the mean is not wanted */
};

static wick_pooling choose_pooling(const wk_hparams *hparams) {
    switch (hparams->pooling) {
    case WK_POOLING_NONE: return WICK_POOLING_NONE;
    case WK_POOLING_MEAN: return WICK_POOLING_MEAN;
    case WK_POOLING_CLS: return WICK_POOLING_CLS;
    case WK_POOLING_LAST: return WICK_POOLING_LAST;
    case WK_POOLING_RANK: break;
    case WK_POOLING_UNSAID:
        return hparams->is_bidirectional ? WICK_POOLING_MEAN : WICK_POOLING_LAST;
    }
    return WICK_POOLING_AUTO;
}

static wick_status make_parts(wick_embedder *e, const wick_embedder_desc *desc, wick_error *err) {
    wk_heap *const heap = e->model->heap;
    const wick_session_desc session = {.context_length = desc->max_tokens,
                                       .chunk_length = desc->chunk_length,
                                       .logits = WICK_LOGITS_STATES};
    WK_TRY(wk_session_open_whole(e->model, &session, &e->session, err));
    e->rows = wk_alloc_array(heap, e->n_embd, sizeof *e->rows);
    if (e->rows == NULL) return wk_fail_memory(err, e->n_embd * sizeof *e->rows, 0, "a vector");
    e->capacity = 1;
    if (e->pooling != WICK_POOLING_MEAN) return WICK_OK;
    e->sum = wk_alloc_array(heap, e->n_embd, sizeof *e->sum);
    if (e->sum != NULL) return WICK_OK;
    return wk_fail_memory(err, e->n_embd * sizeof *e->sum, 0, "a vector");
}

wick_status wick_embedder_open(wick_model *model, const wick_embedder_desc *desc,
                               wick_embedder **embedder, wick_error *error) {
    static const wick_embedder_desc defaults;
    if (embedder != NULL) *embedder = NULL;
    if (model == NULL || embedder == NULL)
        return wk_fail(error, WICK_ERR_ARGUMENT, "wick_embedder_open: an argument is NULL");
    if (desc == NULL) desc = &defaults;
    if ((uint32_t)desc->pooling > WICK_POOLING_LAST)
        return wk_fail(error, WICK_ERR_VALUE, "there is no such pooling");
    const wk_hparams *const hparams = wk_model_hparams(model->model);
    const wick_pooling pooling =
        desc->pooling != WICK_POOLING_AUTO ? desc->pooling : choose_pooling(hparams);
    if (pooling == WICK_POOLING_AUTO)
        return wk_fail(error, WICK_ERR_UNSUPPORTED,
                       "the model ranks texts, which is not supported yet: choose a pooling");
    wick_embedder *const e = wk_alloc_zeroed(model->heap, sizeof *e);
    if (e == NULL) return wk_fail_memory(error, sizeof *e, 0, "an embedder");
    e->model = model;
    e->pooling = pooling;
    e->is_raw = desc->is_raw || pooling == WICK_POOLING_NONE;
    e->n_embd = hparams->n_embd;
    const wick_status status = make_parts(e, desc, error);
    if (status == WICK_OK)
        *embedder = e;
    else
        wick_embedder_close(e);
    return status;
}

void wick_embedder_close(wick_embedder *embedder) {
    if (embedder == NULL) return;
    wick_embedder *const e = embedder;
    wk_heap *const heap = e->model->heap;
    wick_session_close(e->session);
    wk_free(heap, e->rows, e->capacity * e->n_embd * sizeof *e->rows);
    wk_free(heap, e->sum, e->sum != NULL ? e->n_embd * sizeof *e->sum : 0);
    wk_free(heap, e, sizeof *e);
}

wick_pooling wick_embedder_pooling(const wick_embedder *embedder) {
    return embedder != NULL ? embedder->pooling : WICK_POOLING_NONE;
}

/* ---- A text ---- */

static void forget_error(wick_embedder *e) { e->error = (wick_error){.status = WICK_OK}; }

/* A failure of the session is one of the embedder. */
static wick_status take_error(wick_embedder *e, wick_status status) {
    wick_error reason = {.status = WICK_OK};
    if (status < 0) (void)wick_session_error(e->session, &reason);
    return wk_pass_on(&e->error, status, &reason);
}

wick_status wick_embedder_error(const wick_embedder *embedder, wick_error *error) {
    if (embedder == NULL)
        return wk_fail(error, WICK_ERR_ARGUMENT, "wick_embedder_error: embedder is NULL");
    if (error != NULL) *error = embedder->error;
    return embedder->error.status;
}

static wick_status reserve_rows(wick_embedder *e, size_t n) {
    if (n <= e->capacity) return WICK_OK;
    const size_t row = e->n_embd * sizeof *e->rows;
    float *const larger = wk_realloc(e->model->heap, e->rows, e->capacity * row, n * row);
    if (larger == NULL) return wk_fail_memory(&e->error, n * row, 0, "vectors");
    e->rows = larger;
    e->capacity = n;
    return WICK_OK;
}

wick_status wick_embedder_start_tokens(wick_embedder *embedder, const uint32_t *ids, size_t n) {
    if (embedder == NULL) return WICK_ERR_ARGUMENT;
    forget_error(embedder);
    if (ids == NULL && n > 0)
        return wk_fail(&embedder->error, WICK_ERR_ARGUMENT,
                       "wick_embedder_start_tokens: ids is NULL");
    wick_embedder *const e = embedder;
    wick_session_reset(e->session);
    e->is_done = false;
    e->n_rows = 0;
    e->n_tokens = 0;
    if (n == 0) return wk_fail(&e->error, WICK_ERR_ARGUMENT, "there are no tokens to embed");
    for (size_t i = 0; i < e->n_embd && e->sum != NULL; i++) e->sum[i] = 0.0;
    WK_TRY(take_error(e, wick_session_append_tokens(e->session, ids, n)));
    if (e->pooling == WICK_POOLING_NONE) WK_TRY(reserve_rows(e, n));
    e->n_tokens = n;
    return WICK_OK;
}

wick_status wick_embedder_start(wick_embedder *embedder, const char *text, size_t size) {
    if (embedder == NULL) return WICK_ERR_ARGUMENT;
    wick_model *const model = embedder->model;
    forget_error(embedder);
    if (text == NULL && size > 0)
        return wk_fail(&embedder->error, WICK_ERR_ARGUMENT, "wick_embedder_start: text is NULL");
    const uint32_t flags = WICK_TOKENIZE_ADD_SPECIAL;
    size_t n = 0;
    wick_status status = wick_tokenize(model->tokenizer, text, size, flags, NULL, 0, &n);
    const size_t capacity = n > 0 ? n : 1;
    uint32_t *const ids = wk_alloc_array(model->heap, capacity, sizeof *ids);
    if (ids == NULL)
        return wk_fail_memory(&embedder->error, capacity * sizeof *ids, 0, "token ids");
    if (status == WICK_OK) status = wick_tokenize(model->tokenizer, text, size, flags, ids, n, &n);
    if (status == WICK_OK)
        status = wick_embedder_start_tokens(embedder, ids, n);
    else
        (void)wk_fail(&embedder->error, status, "the text cannot be tokenized: %s",
                      wick_status_text(status));
    wk_free(model->heap, ids, capacity * sizeof *ids);
    return status;
}

/* Takes in the state of the token at position. */
static void add_row(wick_embedder *e, const float *row, size_t position) {
    const bool is_kept = e->pooling == WICK_POOLING_NONE ||
                         (e->pooling == WICK_POOLING_CLS && position == 0) ||
                         (e->pooling == WICK_POOLING_LAST && position + 1 == e->n_tokens);
    if (is_kept) memcpy(e->rows + e->n_rows++ * e->n_embd, row, e->n_embd * sizeof *row);
    for (size_t i = 0; i < e->n_embd && e->sum != NULL; i++) e->sum[i] += (double)row[i];
}

static bool is_finite(const float *values, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (!isfinite(values[i])) return false;
    return true;
}

static wick_status finish(wick_embedder *e) {
    double squares = 0.0;
    if (e->sum != NULL) {
        for (size_t i = 0; i < e->n_embd; i++)
            e->rows[i] = (float)(e->sum[i] / (double)e->n_tokens);
        e->n_rows = 1;
    }
    if (!is_finite(e->rows, e->n_rows * e->n_embd))
        return wk_fail(&e->error, WICK_ERR_DEVICE,
                       "the model's output holds numbers that are not finite");
    e->is_done = true;
    if (e->is_raw) return WICK_OK;
    for (size_t i = 0; i < e->n_embd; i++) squares += (double)e->rows[i] * (double)e->rows[i];
    const double scale = squares > 0.0 ? 1.0 / sqrt(squares) : 0.0;
    for (size_t i = 0; i < e->n_embd; i++) e->rows[i] = (float)(e->rows[i] * scale);
    return WICK_OK;
}

wick_status wick_embedder_poll(wick_embedder *embedder) {
    if (embedder == NULL) return WICK_ERR_ARGUMENT;
    wick_embedder *const e = embedder;
    forget_error(e);
    if (e->n_tokens == 0) return wk_fail(&e->error, WICK_ERR_STATE, "no text has been started");
    while (!e->is_done) {
        wick_event event;
        WK_TRY(take_error(e, wick_session_step(e->session, &event)));
        if (event.kind == WICK_EVENT_PENDING) return WICK_PENDING;
        if (event.kind == WICK_EVENT_LOGITS) add_row(e, event.logits, event.position);
        if (event.kind == WICK_EVENT_END) WK_TRY(finish(e));
    }
    return WICK_OK;
}

const float *wick_embedder_result(const wick_embedder *embedder, size_t *n_rows) {
    if (n_rows != NULL) *n_rows = embedder != NULL && embedder->is_done ? embedder->n_rows : 0;
    return embedder != NULL ? embedder->rows : NULL;
}
