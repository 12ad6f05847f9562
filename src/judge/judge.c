/* judge/judge.c: perplexity of a model over a text, and its divergence from another one.
 *
 * Both read the same chunk and are stepped in turn: the logits after a token, which a session keeps
 * until its next step, are looked at when both have theirs. Of all that was read there remain sums,
 * and for the quantiles one divergence for each scored token. */
#include <wick/judge.h>

#include "llm/llm.h"
#include "sample/scores.h"
#include "tensor/tensor.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { DEFAULT_CONTEXT = 512 };

/* A model that reads. */
typedef struct reader {
    wick_model *model;
    wick_session *session;
    const float *logits; /* [n_vocab] after the token at n_read; NULL: not there yet */
    double log_total;    /* of them, where the next token is scored */
    wk_moments nll;
} reader;

struct wick_judging {
    wk_heap heap;
    reader readers[2]; /* the model, the base */
    size_t n_readers;
    uint32_t n_vocab;
    uint32_t *ids; /* [n_ids], whole chunks */
    size_t n_ids, at;
    uint32_t context_length, n_unscored;
    uint32_t n_read; /* tokens of the chunk at `at` whose logits have been looked at */
    bool is_reading; /* that chunk */
    wk_moments log_ratio, kl, same_top;
    double *divergences; /* [kl.n] of [most_scored], NULL without a base */
    size_t most_scored;
};

/* ---- Starting ---- */

/* Where ids mean the same in both, texts can be compared token by token. */
static wick_status check_vocabularies(const wick_judging *j, wick_error *err) {
    const wick_model *const model = j->readers[0].model, *const base = j->readers[1].model;
    if (model->info.n_vocab != base->info.n_vocab)
        return wk_fail(err, WICK_ERR_VALUE,
                       "the vocabularies differ: %" PRIu32 " tokens, and %" PRIu32 " in the base",
                       model->info.n_vocab, base->info.n_vocab);
    const wick_tokenizer *const a = model->tokenizer, *const b = base->tokenizer;
    for (uint32_t i = 0; i < wick_tokenizer_size(a) && i < wick_tokenizer_size(b); i++) {
        wk_str x, y;
        x.text = wick_token_bytes(a, i, true, &x.size);
        y.text = wick_token_bytes(b, i, true, &y.size);
        if (wk_str_equal(x, y)) continue;
        return wk_fail(err, WICK_ERR_VALUE,
                       "the vocabularies differ: token %" PRIu32 " is '%s', and '%s' in the base",
                       i, wk_str_show(x).text, wk_str_show(y).text);
    }
    return WICK_OK;
}

static wick_status choose_chunks(wick_judging *j, const wick_judge_desc *desc, size_t n,
                                 wick_error *err) {
    const uint32_t length = desc->context_length != 0 ? desc->context_length : DEFAULT_CONTEXT;
    const uint32_t half = length > 2 ? length / 2 + 1 : 1;
    j->context_length = length;
    j->n_unscored = desc->n_unscored != 0 ? desc->n_unscored : half;
    if (length < 2)
        return wk_fail(err, WICK_ERR_VALUE, "chunks of one token: nothing stands before it");
    if (j->n_unscored >= length)
        return wk_fail(err, WICK_ERR_VALUE,
                       "no token is scored: chunks have %" PRIu32 " tokens, of which %" PRIu32
                       " are only read",
                       length, j->n_unscored);
    if (n < length)
        return wk_fail(err, WICK_ERR_VALUE,
                       "the text has %zu of the %" PRIu32 " tokens that one chunk needs: "
                       "use shorter chunks or a longer text",
                       n, length);
    j->n_ids = n / length * length;
    j->most_scored = n / length * (length - j->n_unscored);
    return WICK_OK;
}

static wick_status copy_ids(wick_judging *j, const uint32_t *ids, wick_error *err) {
    j->ids = wk_alloc_array(&j->heap, j->n_ids, sizeof *j->ids);
    if (j->ids == NULL) return wk_fail_memory(err, j->n_ids * sizeof *ids, "token ids");
    memcpy(j->ids, ids, j->n_ids * sizeof *ids);
    const uint32_t begin = wick_token_begin(j->readers[0].model->tokenizer);
    if (ids[0] != begin) return WICK_OK;
    for (size_t i = 0; i < j->n_ids; i += j->context_length) j->ids[i] = begin;
    return WICK_OK;
}

static wick_status start(wick_judging *j, const uint32_t *ids, size_t n,
                         const wick_judge_desc *desc, wick_error *err) {
    WK_TRY(choose_chunks(j, desc, n, err));
    if (j->n_readers > 1) {
        WK_TRY(check_vocabularies(j, err));
        j->divergences = wk_alloc_array(&j->heap, j->most_scored, sizeof *j->divergences);
        if (j->divergences == NULL)
            return wk_fail_memory(err, j->most_scored * sizeof *j->divergences, "divergences");
    }
    WK_TRY(copy_ids(j, ids, err));
    wick_session_desc session = {.context_length = j->context_length,
                                 .chunk_length = desc->chunk_length,
                                 .cache = desc->cache,
                                 .logits = WICK_LOGITS_ALL};
    for (size_t i = 0; i < j->n_readers; i++, session.cache = WICK_CACHE_AUTO)
        WK_TRY(wick_session_open(j->readers[i].model, &session, &j->readers[i].session, err));
    return WICK_OK;
}

wick_status wick_judge_start(wick_model *model, wick_model *base, const uint32_t *ids, size_t n,
                             const wick_judge_desc *desc, wick_judging **judging,
                             wick_error *error) {
    if (judging == NULL)
        return wk_fail(error, WICK_ERR_ARGUMENT, "wick_judge_start: judging is NULL");
    *judging = NULL;
    if (model == NULL || (ids == NULL && n > 0))
        return wk_fail(error, WICK_ERR_ARGUMENT, "wick_judge_start: an argument is NULL");
    wk_heap heap;
    wk_heap_init(&heap, NULL);
    wick_judging *const made = wk_alloc_zeroed(&heap, sizeof *made);
    if (made == NULL) return wk_fail_memory(error, sizeof *made, "the judging of a model");
    made->heap = heap;
    made->readers[0].model = model;
    made->readers[1].model = base;
    made->n_readers = base != NULL ? 2 : 1;
    made->n_vocab = model->info.n_vocab;
    const wick_status status =
        start(made, ids, n, desc != NULL ? desc : &(wick_judge_desc){.context_length = 0}, error);
    if (status == WICK_OK)
        *judging = made;
    else
        wick_judge_finish(made);
    return status;
}

void wick_judge_finish(wick_judging *judging) {
    if (judging == NULL) return;
    for (size_t i = 0; i < judging->n_readers; i++) wick_session_close(judging->readers[i].session);
    wk_free(&judging->heap, judging->ids, judging->n_ids * sizeof *judging->ids);
    wk_free(&judging->heap, judging->divergences,
            judging->most_scored * sizeof *judging->divergences);
    wk_heap heap = judging->heap; /* judging lies in it */
    wk_free(&heap, judging, sizeof *judging);
}

/* ---- Reading ---- */

static wick_status take_error(const reader *r, wick_status status, wick_error *err) {
    wick_error reason = {.status = WICK_OK};
    (void)wick_session_error(r->session, &reason);
    return wk_pass_on(err, status, &reason);
}

/* One step of a reader that has no logits yet. What a step says beyond them is its end, after the
 * last ones. */
static wick_status step(reader *r, wick_error *err) {
    wick_event event = {0};
    const wick_status status = wick_session_step(r->session, &event);
    if (status != WICK_OK) return take_error(r, status, err);
    if (event.kind == WICK_EVENT_LOGITS) r->logits = event.logits;
    return WICK_OK;
}

static void compare_readers(wick_judging *j, const double nll[2]) {
    const reader *const model = &j->readers[0], *const base = &j->readers[1];
    const double kl = wk_kl_divergence(base->logits, base->log_total, model->logits,
                                       model->log_total, j->n_vocab);
    j->divergences[j->kl.n] = kl;
    wk_moments_add(&j->kl, kl);
    wk_moments_add(&j->log_ratio, nll[0] - nll[1]);
    wk_moments_add(&j->same_top,
                   wk_largest(base->logits, j->n_vocab) == wk_largest(model->logits, j->n_vocab));
}

/* The token that comes next, by the logits that every reader has. */
static wick_status score(wick_judging *j, uint32_t token, wick_error *err) {
    double nll[2] = {0};
    for (size_t i = 0; i < j->n_readers; i++) {
        reader *const r = &j->readers[i];
        r->log_total = wk_log_sum_exp(r->logits, j->n_vocab);
        nll[i] = r->log_total - (double)r->logits[token];
        if (!(r->logits[token] < INFINITY) || !isfinite(r->log_total))
            return wk_fail(err, WICK_ERR_VALUE, "the logits after token %zu%s are not numbers",
                           j->at + j->n_read, i == 0 ? "" : " of the base");
    }
    for (size_t i = 0; i < j->n_readers; i++) wk_moments_add(&j->readers[i].nll, nll[i]);
    if (j->n_readers > 1) compare_readers(j, nll);
    return WICK_OK;
}

static wick_status begin_chunk(wick_judging *j, wick_error *err) {
    for (size_t i = 0; i < j->n_readers; i++) {
        reader *const r = &j->readers[i];
        wick_session_reset(r->session);
        const wick_status status =
            wick_session_append_tokens(r->session, j->ids + j->at, j->context_length);
        if (status != WICK_OK) return take_error(r, status, err);
    }
    j->n_read = 0;
    j->is_reading = true;
    return WICK_OK;
}

/* All readers have the logits after token n_read of the chunk. Those after its last one foretell
 * nothing of it. */
static wick_status look(wick_judging *j, wick_error *err) {
    const uint32_t next = j->n_read + 1;
    if (next < j->context_length && next >= j->n_unscored)
        WK_TRY(score(j, j->ids[j->at + next], err));
    for (size_t i = 0; i < j->n_readers; i++) j->readers[i].logits = NULL;
    j->n_read = next;
    if (next == j->context_length) {
        j->at += j->context_length;
        j->is_reading = false;
    }
    return WICK_OK;
}

static wick_status do_slice(wick_judging *j, wick_error *err) {
    if (j->at == j->n_ids) return WICK_OK;
    if (!j->is_reading) WK_TRY(begin_chunk(j, err));
    bool is_complete = true;
    for (size_t i = 0; i < j->n_readers; i++) {
        reader *const r = &j->readers[i];
        if (r->logits == NULL) WK_TRY(step(r, err));
        is_complete = is_complete && r->logits != NULL;
    }
    if (is_complete) WK_TRY(look(j, err));
    return j->at == j->n_ids ? WICK_OK : WICK_PENDING;
}

wick_status wick_judge_poll(wick_judging *judging, wick_progress *progress, wick_error *error) {
    if (judging == NULL)
        return wk_fail(error, WICK_ERR_ARGUMENT, "wick_judge_poll: judging is NULL");
    const wick_status status = do_slice(judging, error);
    if (progress != NULL) {
        const size_t done = judging->at + (judging->is_reading ? judging->n_read : 0);
        *progress = (wick_progress){.done = done, .total = judging->n_ids};
    }
    return status;
}

/* ---- The result ---- */

static wick_judged judged(const wk_moments *nll) {
    const double mean = wk_mean(nll), error = wk_standard_error(nll), perplexity = exp(mean);
    return (wick_judged){.nll = mean,
                         .nll_error = error,
                         .perplexity = perplexity,
                         .perplexity_error = perplexity * error}; /* d exp(x) = exp(x) dx */
}

void wick_judge_get(wick_judging *judging, wick_judgement *judgement) {
    if (judgement == NULL) return;
    *judgement = (wick_judgement){0};
    if (judging == NULL) return;
    wick_judging *const j = judging;
    const size_t n = (size_t)j->readers[0].nll.n;
    if (n == 0) return;
    judgement->n_chunks = j->at / j->context_length;
    judgement->n_scored = n;
    judgement->model = judged(&j->readers[0].nll);
    if (j->n_readers == 1) return;
    judgement->base = judged(&j->readers[1].nll);
    judgement->log_ratio = wk_mean(&j->log_ratio);
    judgement->log_ratio_error = wk_standard_error(&j->log_ratio);
    judgement->kl = wk_mean(&j->kl);
    judgement->kl_error = wk_standard_error(&j->kl);
    wk_sort_doubles(j->divergences, n); /* their order says nothing */
    judgement->kl_median = wk_quantile(j->divergences, n, 0.5);
    judgement->kl_99 = wk_quantile(j->divergences, n, 0.99);
    judgement->kl_largest = j->divergences[n - 1];
    judgement->same_top = wk_mean(&j->same_top);
    judgement->same_top_error = wk_standard_error(&j->same_top);
}
