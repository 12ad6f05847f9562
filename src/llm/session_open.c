/* llm/session_open.c: makes, configures and frees sessions. */
#include "llm/session_struct.h"

#include "llm/grammar.h"
#include "sample/logprobs.h"
#include "sys/clock.h"

#include <string.h>

static void free_session(wick_session *s) {
    wk_heap *const heap = s->model->heap;
    wick_session_close(s->draft);
    wk_head_close(s);
    wk_sequence_close(s->sequence);
    wk_session_release_loras(s);
    wk_sampler_free(heap, &s->sampler);
    wk_stop_free(heap, &s->stop);
    wk_free(heap, s->piece, s->piece_capacity);
    wk_free(heap, s->tokens, s->context_length * sizeof *s->tokens);
    wk_free(heap, s->given, wk_session_given_bytes(s, s->given_capacity));
    wk_free(heap, s->logprobs, (s->n_logprobs + 1) * sizeof *s->logprobs);
    wk_free(heap, s, sizeof *s);
}

static wick_status make_logprobs(wick_session *s, uint32_t n, uint32_t n_vocab, wick_error *err) {
    if (n > WK_MAX_LOGPROBS)
        return wk_fail(err, WICK_ERR_VALUE, "%u log probabilities with each token: at most %d", n,
                       WK_MAX_LOGPROBS);
    s->n_logprobs = n < n_vocab ? n : n_vocab;
    if (n == 0) return WICK_OK;
    s->logprobs = wk_alloc_array(s->model->heap, s->n_logprobs + 1, sizeof *s->logprobs);
    if (!s->logprobs)
        return wk_fail_memory(err, (s->n_logprobs + 1) * sizeof *s->logprobs, "log probabilities");
    return WICK_OK;
}

static bool is_warm(const wick_model *model, const wk_runner_desc *runner) {
    const wk_runner_desc *const warm = &model->warm;
    return warm->context_length == runner->context_length &&
           warm->chunk_length == runner->chunk_length && warm->is_whole == runner->is_whole &&
           warm->cache_dtype == runner->cache_dtype && warm->math == runner->math &&
           warm->outputs == runner->outputs;
}

/* For a session that is not like those that the model was loaded for. */
static wick_status warm_up(wick_model *model, const wk_runner_desc *runner, wick_error *err) {
    if (!wk_device_compiles(model->device) || model->no_warm_up || is_warm(model, runner))
        return WICK_OK;
    wick_error failure = {.status = WICK_OK};
    for (uint32_t n_rows = 1; n_rows > 0 && failure.status == WICK_OK;)
        (void)wk_runner_rehearse(model, runner, &n_rows, &failure);
    /* A device that is lost comes back when a batch is to run. */
    if (failure.status != WICK_OK && failure.status != WICK_ERR_DEVICE_LOST)
        return wk_fail(err, failure.status, "%s", failure.message);
    model->warm = *runner;
    return WICK_OK;
}

/* How tokens are chosen, and where the text ends; both to be freed also on failure. */
static wick_status make_choice(const wick_session *s, const wick_session_desc *desc,
                               wk_sampler *sampler, wk_stop *stop, wick_error *err) {
    wk_heap *const heap = s->model->heap;
    const uint32_t n_vocab = wk_model_hparams(s->model->model)->n_vocab;
    if (desc->n_stop > 0 && !desc->stop)
        return wk_fail(err, WICK_ERR_ARGUMENT, "n_stop is %zu, but stop is NULL", desc->n_stop);
    WK_TRY(wk_sampler_make(heap, &desc->sampler, s->tokenizer, n_vocab, sampler, err));
    WK_TRY(wk_grammar_open(s->model, &desc->sampler, &sampler->matcher, err));
    return wk_stop_make(heap, desc->stop, desc->n_stop, s->piece_capacity, stop, err);
}

static wick_status make_parts(wick_session *s, const wick_session_desc *desc,
                              const wk_runner_desc *runner, wick_error *err) {
    wk_heap *const heap = s->model->heap;
    s->piece_capacity = wick_detokenize_bound(s->tokenizer);
    WK_TRY(make_choice(s, desc, &s->sampler, &s->stop, err));
    WK_TRY(make_logprobs(s, desc->n_logprobs, wk_model_hparams(s->model->model)->n_vocab, err));
    /* This compares the cache with what memory there is: nothing large is taken before. */
    WK_TRY(wk_sequence_open(s->model, runner, wk_session_waiting, s, &s->sequence, err));
    WK_TRY(warm_up(s->model, runner, err));
    WK_TRY(wk_draft_open(s, desc, err));
    WK_TRY(wk_head_open(s, desc, err));
    s->tokens = wk_alloc(heap, s->context_length * sizeof *s->tokens);
    s->piece = wk_alloc(heap, s->piece_capacity);
    if (!s->tokens || !s->piece)
        return wk_fail_memory(err, s->context_length * sizeof *s->tokens, "a session");
    return WICK_OK;
}

static void take_limits(wick_session *s, const wick_session_desc *desc) {
    s->max_tokens = desc->max_tokens;
    s->ignore_end = desc->ignore_end;
    s->detokenizer.special = desc->special;
}

/* What sees the whole text at once does not go on with it. */
static wick_status check_kind(const wick_model *model, const wick_session_desc *desc,
                              wick_error *err) {
    if (desc->logits == WICK_LOGITS_SCORES && wk_model_hparams(model->model)->n_labels == 0)
        return wk_fail(err, WICK_ERR_UNSUPPORTED, "the model has no classifier that scores texts");
    if (!wk_model_hparams(model->model)->is_bidirectional || desc->logits >= WICK_LOGITS_STATES)
        return WICK_OK;
    return wk_fail(err, WICK_ERR_UNSUPPORTED,
                   "the model is an encoder: it can embed a text (wick embed), not continue it");
}

static wick_status check_enums(const wick_session_desc *desc, wick_error *error) {
    if ((uint32_t)desc->cache > WICK_CACHE_Q4_0)
        return wk_fail(error, WICK_ERR_VALUE, "there is no cache number %d", (int)desc->cache);
    if ((uint32_t)desc->logits > WICK_LOGITS_SCORES)
        return wk_fail(error, WICK_ERR_VALUE, "there is no logits mode number %d",
                       (int)desc->logits);
    if ((uint32_t)desc->speculate > WICK_SPECULATE_AHEAD)
        return wk_fail(error, WICK_ERR_VALUE, "there is no kind of speculation number %d",
                       (int)desc->speculate);
    return WICK_OK;
}

static wick_status check_shift(const wick_session_desc *desc, const wk_runner_desc *runner,
                               wick_error *error) {
    if (!desc->context_shift) return WICK_OK;
    if (desc->logits != WICK_LOGITS_NONE)
        return wk_fail(error, WICK_ERR_VALUE, "context_shift is for generated text, not logits");
    if (desc->n_keep < runner->context_length) return WICK_OK;
    return wk_fail(error, WICK_ERR_VALUE, "n_keep is %u, the context holds %u tokens", desc->n_keep,
                   runner->context_length);
}

static wick_status make_session(wick_model *model, const wick_session_desc *desc,
                                const wk_runner_desc *runner, wick_session **session,
                                wick_error *error) {
    wick_session *const s = wk_alloc_zeroed(model->heap, sizeof *s);
    if (!s) return wk_fail_memory(error, sizeof *s, "a session");
    s->model = model;
    s->tokenizer = model->tokenizer;
    s->context_length = runner->context_length;
    s->outputs = runner->outputs;
    s->is_whole = runner->is_whole;
    s->no_reuse = desc->no_reuse;
    wk_speculate_begin(&s->guess,
                       s->outputs == WK_OUTPUTS_LAST ? desc->speculate : WICK_SPECULATE_NONE);
    s->has_drawn_logprobs = desc->drawn_logprobs;
    s->has_shift = desc->context_shift;
    s->n_keep = desc->n_keep;
    s->detokenizer.tokenizer = s->tokenizer;
    take_limits(s, desc);
    const wick_status status = make_parts(s, desc, runner, error);
    if (status != WICK_OK) {
        free_session(s);
        return status;
    }
    model->usage.n_sessions++;
    model->usage.n_opened++;
    *session = s;
    return WICK_OK;
}

static wick_status open_session(wick_model *model, const wick_session_desc *desc, bool has_whole,
                                wick_session **session, wick_error *error) {
    static const wick_session_desc defaults;
    if (session) *session = NULL;
    if (!model || !session)
        return wk_fail(error, WICK_ERR_ARGUMENT, "wick_session_open: an argument is NULL");
    if (!desc) desc = &defaults;
    WK_TRY(check_enums(desc, error));
    wk_runner_desc runner = wk_runner_describe(model->model, wick_device_math(model->device),
                                               model->cache_budget, desc);
    if (has_whole && runner.context_length <= runner.chunk_length && runner.cache_dtype == WICK_F32)
        runner.is_whole = true;
    WK_TRY(check_kind(model, desc, error));
    WK_TRY(check_shift(desc, &runner, error));
    return make_session(model, desc, &runner, session, error);
}

wick_status wick_session_open(wick_model *model, const wick_session_desc *desc,
                              wick_session **session, wick_error *error) {
    return open_session(model, desc, false, session, error);
}

wick_status wk_session_open_whole(wick_model *model, const wick_session_desc *desc,
                                  wick_session **session, wick_error *error) {
    return open_session(model, desc, true, session, error);
}

/* What from knows and has computed; rows that it is still to show are left out. */
static wick_status take_text(wick_session *to, const wick_session *from, wick_error *error) {
    const size_t given_bytes = wk_session_given_bytes(from, from->n_given);
    if (from->n_given > 0) {
        to->given = wk_alloc(to->model->heap, given_bytes);
        if (!to->given) return wk_fail_memory(error, given_bytes, "rows of embeddings");
        memcpy(to->given, from->given, given_bytes);
        to->n_given = to->given_capacity = from->n_given;
    }
    memcpy(to->tokens, from->tokens, from->n_tokens * sizeof *to->tokens);
    to->n_tokens = from->n_tokens;
    to->n_computed = to->n_reused = from->n_computed;
    to->n_since_prompt = from->n_since_prompt;
    to->n_shifted = from->n_shifted;
    to->has_shift = from->has_shift;
    to->n_keep = from->n_keep;
    to->ended = from->ended;
    to->appended_ns = wk_clock_ns();
    to->detokenizer.begun = to->n_tokens > to->n_since_prompt;
    wk_sequence_share(to->sequence, from->sequence);
    wk_session_take_logits(to, from);
    return to->ended == WICK_END_NONE ? wk_session_retell(to, error) : WICK_OK;
}

wick_status wick_session_fork(wick_session *session, const wick_session_desc *desc,
                              wick_session **fork, wick_error *error) {
    static const wick_session_desc defaults;
    if (fork) *fork = NULL;
    if (!session || !fork)
        return wk_fail(error, WICK_ERR_ARGUMENT, "wick_session_fork: an argument is NULL");
    if (!desc) desc = &defaults;
    WK_TRY(check_enums(desc, error));
    wk_session_absorb(session);
    if (session->failed != WICK_OK)
        return wk_fail(error, WICK_ERR_STATE, "a session that has failed cannot be forked");
    if (wk_sequence_running(session->sequence) > 0)
        return wk_fail(error, WICK_ERR_STATE,
                       "the session is computing, step it until an event comes");
    wk_session_take_back(session);
    const wk_runner_desc runner = wk_sequence_desc(session->sequence);
    wick_session *s = NULL;
    WK_TRY(make_session(session->model, desc, &runner, &s, error));
    wk_session_take_loras(s, session);
    const wick_status status = take_text(s, session, error);
    if (status == WICK_OK)
        *fork = s;
    else
        wick_session_close(s);
    return status;
}

void wick_session_close(wick_session *session) {
    if (!session) return;
    session->model->usage.n_sessions--;
    free_session(session);
}

wick_status wick_session_configure(wick_session *session, const wick_session_desc *desc,
                                   wick_error *error) {
    static const wick_session_desc defaults;
    if (!session) return wk_fail(error, WICK_ERR_ARGUMENT, "wick_session_configure: no session");
    wick_session *const s = session;
    wk_session_absorb(s);
    if (wk_session_is_busy(s)) {
        s->error = (wick_error){.status = WICK_OK};
        wk_fail(&s->error, WICK_ERR_STATE,
                "the session is computing, step it until an event comes");
        return wk_pass_on(error, WICK_ERR_STATE, &s->error);
    }
    if (!desc) desc = &defaults;
    wk_sampler sampler = {.n_vocab = 0};
    wk_stop stop = {.n_strings = 0};
    wick_error failure = {.status = WICK_OK};
    const wick_status status =
        wk_pass_on(error, make_choice(s, desc, &sampler, &stop, &failure), &failure);
    wk_heap *const heap = s->model->heap;
    wk_sampler_free(heap, status == WICK_OK ? &s->sampler : &sampler);
    wk_stop_free(heap, status == WICK_OK ? &s->stop : &stop);
    if (s->failed == WICK_OK) s->error = failure;
    if (status != WICK_OK) return status;
    s->sampler = sampler;
    s->stop = stop;
    s->n_out = 0;
    take_limits(s, desc);
    s->n_changes++;
    return WICK_OK;
}
