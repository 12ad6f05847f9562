/* judge/embed.c: embeddings: the hidden states that a session gives, pooled. */
#include <wick/embed.h>

#include "llm/llm.h"

#include <math.h>
#include <string.h>

enum { MOST_LANES = 32 }; /* texts that are computed at once */

/* A session that gives states, and the text that it reads. */
typedef struct reader {
    wick_session *session; /* NULL: not opened yet */
    bool is_busy;
    size_t text, n_tokens; /* n_tokens: of it */
    double *sum;           /* [n_embd] of its rows so far; NULL: the mean is not wanted */
} reader;

struct wick_embedder {
    wick_model *model;
    wick_session_desc desc;   /* of the sessions */
    reader lanes[MOST_LANES]; /* the first one is open */
    size_t n_lanes;           /* that there is memory for */
    wick_pooling pooling;
    bool is_raw, is_done;
    wick_error error; /* of the last call that failed; clear: a later one was accepted */
    size_t n_embd;    /* numbers in a row */
    uint32_t *ids;    /* [id_capacity] of all texts */
    size_t *ends;     /* [text_capacity] of each in ids */
    size_t n_texts, n_ids, text_capacity, id_capacity;
    size_t n_begun, n_ended; /* texts */
    float *rows;             /* [row_capacity, n_embd] */
    size_t row_capacity, n_rows;
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

static wick_status open_lane(wick_embedder *e, reader *lane, wick_error *err) {
    WK_TRY(wk_session_open_whole(e->model, &e->desc, &lane->session, err));
    if (e->pooling != WICK_POOLING_MEAN) return WICK_OK;
    lane->sum = wk_alloc_array(e->model->heap, e->n_embd, sizeof *lane->sum);
    if (lane->sum != NULL) return WICK_OK;
    return wk_fail_memory(err, e->n_embd * sizeof *lane->sum, "a vector");
}

static void close_lane(const wick_embedder *e, reader *lane) {
    wick_session_close(lane->session);
    wk_free(e->model->heap, lane->sum, lane->sum != NULL ? e->n_embd * sizeof *lane->sum : 0);
    *lane = (reader){.session = NULL};
}

wick_status wick_embedder_open(wick_model *model, const wick_embedder_desc *desc,
                               wick_embedder **embedder, wick_error *error) {
    static const wick_embedder_desc defaults;
    if (embedder != NULL) *embedder = NULL;
    if (model == NULL || embedder == NULL)
        return wk_fail(error, WICK_ERR_ARGUMENT, "wick_embedder_open: an argument is NULL");
    if (desc == NULL) desc = &defaults;
    if ((uint32_t)desc->pooling > WICK_POOLING_RANK)
        return wk_fail(error, WICK_ERR_VALUE, "there is no such pooling");
    const wk_hparams *const hparams = wk_model_hparams(model->model);
    const wick_pooling pooling =
        desc->pooling != WICK_POOLING_AUTO ? desc->pooling : choose_pooling(hparams);
    if (pooling == WICK_POOLING_AUTO)
        return wk_fail(error, WICK_ERR_UNSUPPORTED,
                       "the model ranks texts (wick rerank): for vectors choose a pooling");
    wick_embedder *const e = wk_alloc_zeroed(model->heap, sizeof *e);
    if (e == NULL) return wk_fail_memory(error, sizeof *e, "an embedder");
    e->model = model;
    e->pooling = pooling;
    e->is_raw = desc->is_raw || pooling == WICK_POOLING_NONE || pooling == WICK_POOLING_RANK;
    e->n_embd = pooling == WICK_POOLING_RANK ? hparams->n_labels : hparams->n_embd;
    e->n_lanes = MOST_LANES;
    e->desc = (wick_session_desc){.context_length = desc->max_tokens,
                                  .chunk_length = desc->chunk_length,
                                  .logits = pooling == WICK_POOLING_RANK ? WICK_LOGITS_SCORES
                                                                         : WICK_LOGITS_STATES};
    const wick_status status = open_lane(e, &e->lanes[0], error);
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
    for (size_t i = 0; i < MOST_LANES; i++) close_lane(e, &e->lanes[i]);
    wk_free(heap, e->rows, e->row_capacity * e->n_embd * sizeof *e->rows);
    wk_free(heap, e->ids, e->id_capacity * sizeof *e->ids);
    wk_free(heap, e->ends, e->text_capacity * sizeof *e->ends);
    wk_free(heap, e, sizeof *e);
}

wick_pooling wick_embedder_pooling(const wick_embedder *embedder) {
    return embedder != NULL ? embedder->pooling : WICK_POOLING_NONE;
}

/* ---- Texts ---- */

static void forget_error(wick_embedder *e) { e->error = (wick_error){.status = WICK_OK}; }

wick_status wick_embedder_error(const wick_embedder *embedder, wick_error *error) {
    if (embedder == NULL)
        return wk_fail(error, WICK_ERR_ARGUMENT, "wick_embedder_error: embedder is NULL");
    if (error != NULL) *error = embedder->error;
    return embedder->error.status;
}

/* Room for n things of a size in place of *capacity. */
static wick_status reserve(wick_embedder *e, void *memory, size_t *capacity, size_t n, size_t size,
                           const char *what) {
    void **const array = memory;
    if (n <= *capacity) return WICK_OK;
    if (n < 2 * *capacity) n = 2 * *capacity;
    void *const larger =
        n > SIZE_MAX / size ? NULL : wk_realloc(e->model->heap, *array, *capacity * size, n * size);
    if (larger == NULL) return wk_fail_memory(&e->error, n * size, what);
    *array = larger;
    *capacity = n;
    return WICK_OK;
}

/* A failure to do with one text; with several its number belongs to the sentence. */
static wick_status fail_text(wick_embedder *e, size_t text, wick_status status,
                             const wick_error *reason) {
    if (e->n_texts < 2) return wk_pass_on(&e->error, status, reason);
    return wk_fail(&e->error, status, "text %zu of %zu: %s", text + 1, e->n_texts, reason->message);
}

/* One of a lane's session. */
static wick_status fail_lane(wick_embedder *e, const reader *lane, wick_status status) {
    wick_error reason = {.status = WICK_OK};
    (void)wick_session_error(lane->session, &reason);
    return fail_text(e, lane->text, status, &reason);
}

static size_t first_id(const wick_embedder *e, size_t text) {
    return text > 0 ? e->ends[text - 1] : 0;
}

/* Drops what was under way; n texts follow. */
static wick_status begin(wick_embedder *e, size_t n) {
    for (reader *l = e->lanes; l < e->lanes + MOST_LANES; l++) {
        if (l->session != NULL) wick_session_reset(l->session);
        l->is_busy = false;
    }
    e->is_done = false;
    e->n_rows = e->n_texts = e->n_ids = e->n_begun = e->n_ended = 0;
    if (n > 1 && e->pooling == WICK_POOLING_NONE)
        return wk_fail(&e->error, WICK_ERR_UNSUPPORTED,
                       "without pooling one text at a time is embedded");
    return reserve(e, &e->ends, &e->text_capacity, n, sizeof *e->ends, "texts");
}

/* n more ids at the end of the text that is being made. */
static wick_status reserve_ids(wick_embedder *e, size_t n, uint32_t **ids) {
    WK_TRY(reserve(e, &e->ids, &e->id_capacity, e->n_ids + n, sizeof **ids, "token ids"));
    *ids = e->ids != NULL ? e->ids + e->n_ids : NULL;
    e->n_ids += n;
    return WICK_OK;
}

static wick_status tokenize(wick_embedder *e, wick_string text, uint32_t flags) {
    const wick_tokenizer *const tokenizer = e->model->tokenizer;
    size_t n = 0;
    uint32_t *ids = NULL;
    wick_status status = wick_tokenize(tokenizer, text.text, text.size, flags, NULL, 0, &n);
    if (status == WICK_OK) {
        WK_TRY(reserve_ids(e, n, &ids));
        status = wick_tokenize(tokenizer, text.text, text.size, flags, ids, n, &n);
    }
    if (status == WICK_OK) return WICK_OK;
    return wk_fail(&e->error, status, "the text cannot be tokenized: %s", wick_status_text(status));
}

static void close_text(wick_embedder *e) { e->ends[e->n_texts++] = e->n_ids; }

static wick_status begin_text(wick_embedder *e, reader *lane) {
    const size_t first = first_id(e, e->n_begun);
    lane->text = e->n_begun++;
    lane->n_tokens = e->ends[lane->text] - first;
    if (lane->n_tokens == 0) {
        const wick_error reason = {.status = WICK_ERR_ARGUMENT,
                                   .message = "there are no tokens to embed"};
        return fail_text(e, lane->text, reason.status, &reason);
    }
    wick_session_reset(lane->session);
    const wick_status status =
        wick_session_append_tokens(lane->session, e->ids + first, lane->n_tokens);
    if (status != WICK_OK) return fail_lane(e, lane, status);
    for (size_t i = 0; i < e->n_embd && lane->sum != NULL; i++) lane->sum[i] = 0.0;
    lane->is_busy = true;
    return WICK_OK;
}

/* Texts to lanes that are free; without memory for more of these, those that there are do. */
static wick_status begin_texts(wick_embedder *e) {
    for (size_t i = 0; i < e->n_lanes && e->n_begun < e->n_texts; i++) {
        reader *const lane = &e->lanes[i];
        if (lane->session == NULL && open_lane(e, lane, NULL) != WICK_OK) {
            close_lane(e, lane);
            e->n_lanes = i;
            break;
        }
        if (!lane->is_busy) WK_TRY(begin_text(e, lane));
    }
    return WICK_OK;
}

/* All texts are known. */
static wick_status start(wick_embedder *e) {
    const size_t n_rows = e->pooling == WICK_POOLING_NONE ? e->ends[0] : e->n_texts;
    const size_t row = e->n_embd * sizeof *e->rows;
    WK_TRY(reserve(e, &e->rows, &e->row_capacity, n_rows, row, "vectors"));
    const wick_status status = begin_texts(e);
    if (status != WICK_OK) e->n_texts = 0;
    return status;
}

static wick_status start_tokens(wick_embedder *e, const uint32_t *ids, size_t n) {
    uint32_t *own = NULL;
    WK_TRY(begin(e, 1));
    WK_TRY(reserve_ids(e, n, &own));
    if (n > 0) memcpy(own, ids, n * sizeof *ids);
    close_text(e);
    return start(e);
}

static wick_status start_texts(wick_embedder *e, const char *const *texts, const size_t *sizes,
                               size_t n) {
    WK_TRY(begin(e, n));
    for (size_t i = 0; i < n; i++) {
        WK_TRY(tokenize(e, (wick_string){texts[i], sizes[i]}, WICK_TOKENIZE_ADD_SPECIAL));
        close_text(e);
    }
    return start(e);
}

wick_status wick_embedder_start_tokens(wick_embedder *embedder, const uint32_t *ids, size_t n) {
    if (embedder == NULL) return WICK_ERR_ARGUMENT;
    forget_error(embedder);
    if (ids == NULL && n > 0)
        return wk_fail(&embedder->error, WICK_ERR_ARGUMENT,
                       "wick_embedder_start_tokens: ids is NULL");
    return start_tokens(embedder, ids, n);
}

wick_status wick_embedder_start(wick_embedder *embedder, const char *text, size_t size) {
    if (embedder == NULL) return WICK_ERR_ARGUMENT;
    forget_error(embedder);
    if (text == NULL && size > 0)
        return wk_fail(&embedder->error, WICK_ERR_ARGUMENT, "wick_embedder_start: text is NULL");
    return start_texts(embedder, &text, &size, 1);
}

static wick_status check_texts(wick_embedder *e, const char *const *texts, const size_t *sizes,
                               size_t n) {
    forget_error(e);
    if (texts == NULL || sizes == NULL || n == 0)
        return wk_fail(&e->error, WICK_ERR_ARGUMENT, "there are no texts to embed");
    for (size_t i = 0; i < n; i++)
        if (texts[i] == NULL && sizes[i] > 0)
            return wk_fail(&e->error, WICK_ERR_ARGUMENT, "text %zu to embed is NULL", i);
    return WICK_OK;
}

wick_status wick_embedder_start_texts(wick_embedder *embedder, const char *const *texts,
                                      const size_t *sizes, size_t n) {
    if (embedder == NULL) return WICK_ERR_ARGUMENT;
    WK_TRY(check_texts(embedder, texts, sizes, n));
    return start_texts(embedder, texts, sizes, n);
}

/* --- Pairs --- */

/* Of a template: what stands before the next of its two names, and which of them that is. */
static wick_string next_part(wick_string *left, int *name) {
    static const char *const names[] = {"{query}", "{document}"};
    for (size_t i = 0; i < left->size; i++)
        for (*name = 0; *name < 2; (*name)++) {
            const size_t size = strlen(names[*name]);
            if (left->size - i < size || memcmp(left->text + i, names[*name], size) != 0) continue;
            const wick_string part = {left->text, i};
            *left = (wick_string){left->text + i + size, left->size - i - size};
            return part;
        }
    const wick_string part = *left;
    left->size = 0;
    return part;
}

/* The template with the pair in its place; out NULL: how long that is. */
static size_t fill_template(wick_string form, const wick_string given[2], char *out) {
    size_t size = 0;
    while (form.size > 0) {
        int name;
        const wick_string part = next_part(&form, &name);
        if (out != NULL) memcpy(out + size, part.text, part.size);
        size += part.size;
        if (name == 2) continue;
        if (out != NULL && given[name].size > 0)
            memcpy(out + size, given[name].text, given[name].size);
        size += given[name].size;
    }
    return size;
}

static wick_status add_by_template(wick_embedder *e, wick_string form, const wick_string pair[2]) {
    const size_t size = fill_template(form, pair, NULL);
    char *const text = wk_alloc(e->model->heap, size + 1);
    if (text == NULL) return wk_fail_memory(&e->error, size + 1, "a text");
    (void)fill_template(form, pair, text);
    const wick_status status = tokenize(e, (wick_string){text, size}, WICK_TOKENIZE_PARSE_SPECIAL);
    wk_free(e->model->heap, text, size + 1);
    return status;
}

/* XLM-RoBERTa, whose vocabulary is one of unigrams, has one after the end of the first text. */
static uint32_t separator_of(const wk_gguf *gguf) {
    const wick_value *const kind = wk_gguf_find(gguf, "tokenizer.ggml.model");
    const wick_value *const wants = wk_gguf_find(gguf, "tokenizer.ggml.add_sep_token");
    const wick_value *const id = wk_gguf_find(gguf, "tokenizer.ggml.seperator_token_id"); /* sic */
    const bool is_unigram = kind != NULL && kind->type == WICK_VALUE_STRING &&
                            wk_str_is((wk_str){kind->string.text, kind->string.size}, "t5");
    const bool is_wanted = wants != NULL && wants->type == WICK_VALUE_BOOL && wants->u != 0;
    const bool has_id = id != NULL && id->type == WICK_VALUE_U32;
    return is_unigram && is_wanted && has_id ? (uint32_t)id->u : WICK_NO_TOKEN;
}

/* Of the second text the token with which it begins is left out. */
static wick_status add_pair(wick_embedder *e, const wick_string pair[2]) {
    const wick_tokenizer *const tokenizer = e->model->tokenizer;
    const wick_value *const form = wk_gguf_find(e->model->gguf, "tokenizer.chat_template.rerank");
    if (form != NULL && form->type == WICK_VALUE_STRING)
        return add_by_template(e, (wick_string){form->string.text, form->string.size}, pair);
    WK_TRY(tokenize(e, pair[0], WICK_TOKENIZE_ADD_SPECIAL));
    const uint32_t separator = separator_of(e->model->gguf);
    if (separator != WICK_NO_TOKEN) {
        uint32_t *id;
        WK_TRY(reserve_ids(e, 1, &id));
        *id = separator;
    }
    const size_t first = e->n_ids;
    WK_TRY(tokenize(e, pair[1], WICK_TOKENIZE_ADD_SPECIAL));
    if (e->n_ids == first || e->ids[first] != wick_token_begin(tokenizer)) return WICK_OK;
    e->n_ids--;
    memmove(e->ids + first, e->ids + first + 1, (e->n_ids - first) * sizeof *e->ids);
    return WICK_OK;
}

/* Takes in the state of the token at position. */
static void add_row(wick_embedder *e, const reader *lane, const float *row, size_t position) {
    const size_t at = e->pooling == WICK_POOLING_NONE ? position : lane->text;
    const bool is_encoder = wk_model_hparams(e->model->model)->is_bidirectional;
    const bool is_first =
        e->pooling == WICK_POOLING_CLS || (e->pooling == WICK_POOLING_RANK && is_encoder);
    const bool is_one = e->pooling == WICK_POOLING_RANK || e->pooling == WICK_POOLING_CLS ||
                        e->pooling == WICK_POOLING_LAST;
    const bool is_kept = e->pooling == WICK_POOLING_NONE ||
                         (is_one && position == (is_first ? 0 : lane->n_tokens - 1));
    if (is_kept) memcpy(e->rows + at * e->n_embd, row, e->n_embd * sizeof *row);
    for (size_t i = 0; i < e->n_embd && lane->sum != NULL; i++) lane->sum[i] += (double)row[i];
}

static bool is_finite(const float *values, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (!isfinite(values[i])) return false;
    return true;
}

/* Several labels of a decoder are the logits of as many tokens. */
static void choose_score(const wick_embedder *e, float *row) {
    double total = 0.0;
    if (e->n_embd < 2 || wk_model_hparams(e->model->model)->is_bidirectional) return;
    for (size_t i = 0; i < e->n_embd; i++) total += exp((double)row[i] - (double)row[0]);
    row[0] = (float)(1.0 / total);
}

static wick_status end_text(wick_embedder *e, reader *lane) {
    const size_t n_rows = e->pooling == WICK_POOLING_NONE ? lane->n_tokens : 1;
    float *const rows = e->rows + lane->text * e->n_embd;
    double squares = 0.0;
    lane->is_busy = false;
    for (size_t i = 0; i < e->n_embd && lane->sum != NULL; i++)
        rows[i] = (float)(lane->sum[i] / (double)lane->n_tokens);
    if (!is_finite(rows, n_rows * e->n_embd)) {
        const wick_error reason = {.status = WICK_ERR_DEVICE,
                                   .message =
                                       "the model's output holds numbers that are not finite"};
        return fail_text(e, lane->text, reason.status, &reason);
    }
    if (e->pooling == WICK_POOLING_RANK) choose_score(e, rows);
    e->n_rows += n_rows;
    e->is_done = ++e->n_ended == e->n_texts;
    if (e->is_raw) return WICK_OK;
    for (size_t i = 0; i < e->n_embd; i++) squares += (double)rows[i] * (double)rows[i];
    const double scale = squares > 0.0 ? 1.0 / sqrt(squares) : 0.0;
    for (size_t i = 0; i < e->n_embd; i++) rows[i] = (float)(rows[i] * scale);
    return WICK_OK;
}

/* Until there is nothing to take in: what steps compute is for all lanes. */
static wick_status step_lane(wick_embedder *e, reader *lane) {
    wick_event event = {.kind = WICK_EVENT_LOGITS};
    while (lane->is_busy && event.kind != WICK_EVENT_PENDING) {
        const wick_status status = wick_session_step(lane->session, &event);
        if (status < 0) return fail_lane(e, lane, status);
        if (event.kind == WICK_EVENT_LOGITS) add_row(e, lane, event.logits, event.position);
        if (event.kind == WICK_EVENT_END) WK_TRY(end_text(e, lane));
    }
    return WICK_OK;
}

static wick_status poll(wick_embedder *e) {
    WK_TRY(begin_texts(e));
    for (size_t i = 0; i < e->n_lanes; i++) WK_TRY(step_lane(e, &e->lanes[i]));
    return e->is_done ? WICK_OK : WICK_PENDING;
}

wick_status wick_embedder_poll(wick_embedder *embedder) {
    if (embedder == NULL) return WICK_ERR_ARGUMENT;
    wick_embedder *const e = embedder;
    forget_error(e);
    if (e->n_texts == 0) return wk_fail(&e->error, WICK_ERR_STATE, "no text has been started");
    if (e->is_done) return WICK_OK;
    const wick_status status = poll(e);
    if (status < 0) e->n_texts = 0;
    return status;
}

const float *wick_embedder_result(const wick_embedder *embedder, size_t *n_rows) {
    if (n_rows != NULL) *n_rows = embedder != NULL && embedder->is_done ? embedder->n_rows : 0;
    return embedder != NULL ? embedder->rows : NULL;
}

size_t wick_embedder_token_count(const wick_embedder *embedder) {
    return embedder != NULL ? embedder->n_ids : 0;
}

wick_status wick_embedder_start_pairs(wick_embedder *embedder, wick_string query,
                                      const char *const *texts, const size_t *sizes, size_t n) {
    if (embedder == NULL) return WICK_ERR_ARGUMENT;
    wick_embedder *const e = embedder;
    WK_TRY(check_texts(e, texts, sizes, n));
    if (e->pooling != WICK_POOLING_RANK)
        return wk_fail(&e->error, WICK_ERR_STATE, "pairs are scored with WICK_POOLING_RANK");
    WK_TRY(begin(e, n));
    for (size_t i = 0; i < n; i++) {
        const wick_string pair[2] = {query, {texts[i], sizes[i]}};
        WK_TRY(add_pair(e, pair));
        close_text(e);
    }
    return start(e);
}
