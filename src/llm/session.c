/* llm/session.c: a sequence of tokens and the machine that steps it: read the prompt, choose, let
 * text out, and again. */
#include "llm/session_struct.h"

#include "llm/shortlist.h"
#include "sample/logprobs.h"
#include "sys/clock.h"

#include <assert.h>
#include <math.h>
#include <string.h>

/* Whose result is wanted. */
static bool is_running(const wick_session *s) { return wk_sequence_running(s->sequence) > 0; }

wk_batch_rows wk_session_batch_rows(const wick_session *session) {
    return wk_sequence_batch_rows(session->sequence);
}

bool wk_session_is_busy(const wick_session *session) {
    return session->is_stepping && is_running(session);
}

void wk_session_drop_batch(wick_session *session) {
    wick_session *const s = session;
    if (!is_running(s)) return;
    s->is_stepping = false;
    wk_sequence_drop(s->sequence);
    /* Rows that were shown do not come again. */
    if (wk_sequence_cached(s->sequence) == 0 && s->outputs == WK_OUTPUTS_LAST) s->n_computed = 0;
}

/* --- Before it reads more --- */

wick_status wick_session_error(const wick_session *session, wick_error *error) {
    if (!session) return wk_fail(error, WICK_ERR_ARGUMENT, "wick_session_error: session is NULL");
    if (error) *error = session->error;
    return session->error.status;
}

void wk_session_forget_logits(wick_session *session) {
    wick_session *const s = session;
    s->has_logits = false;
    s->row = 0;
    wk_sequence_drop_rows(s->sequence);
}

void wk_session_begin_prompt(wick_session *session) {
    wick_session *const s = session;
    s->ended = WICK_END_NONE;
    s->has_logits = false;
    s->n_since_prompt = s->n_shifted = 0;
    s->guess.length = 0;
    s->n_out = 0;
    wk_sampler_begin_text(&s->sampler);
    wk_stop_release(&s->stop, s->stop.n_held);
    s->detokenizer.begun = s->n_tokens > 0;
    s->detokenizer.pending_size = 0;
    s->appended_ns = wk_clock_ns();
    s->first_token_ns = 0;
}

wick_status wk_session_check_idle(wick_session *session) {
    wick_session *const s = session;
    wk_session_absorb(s);
    if (s->failed != WICK_OK) return WICK_ERR_STATE; /* its error stays that failure */
    wk_session_forget_error(s);
    if (wk_session_is_busy(s))
        return wk_fail(&s->error, WICK_ERR_STATE,
                       "the session is computing, step it until an event comes");
    if (s->n_ahead > 0) wk_session_drop_batch(s); /* with guesses that become other tokens */
    wk_session_take_back(s);
    return WICK_OK;
}

void wick_session_cancel(wick_session *session) {
    if (!session || session->failed != WICK_OK || !is_running(session)) return;
    session->n_changes++;
    wk_session_drop_batch(session);
}

void wick_session_reset(wick_session *session) {
    if (!session) return;
    wick_session *const s = session;
    s->n_changes++;
    wk_sequence_drop(s->sequence); /* never waits for it */
    s->is_stepping = s->is_showing = false;
    (void)wk_sequence_return(s->sequence, 0);
    wk_head_forget(s);
    s->n_rows = s->n_given = s->row = s->n_ahead = s->n_wanted = 0;
    s->n_tokens = s->n_computed = 0;
    s->guess.n_drafted = s->guess.n_accepted = 0;
    s->n_prompt = s->n_reused = s->n_generated = 0;
    s->prompt_ns = s->generate_ns = 0;
    s->failed = WICK_OK;
    wk_device_settle(s->model->device);
    wk_sampler_reset(&s->sampler);
    wk_session_forget_error(s);
    wk_session_begin_prompt(s);
}

/* --- Stepping --- */

static void show_end(wick_session *s, wick_end_reason reason, wick_event *event) {
    s->ended = reason;
    event->kind = WICK_EVENT_END;
    event->reason = reason;
    event->text = s->stop.held;
    event->stop = (uint32_t)s->stop.found;
    event->text_size = reason == WICK_END_STOP_STRING ? s->n_out : s->stop.n_held;
    s->n_out = s->stop.n_held; /* what a stop string cut off goes with it */
    if (s->outputs != WK_OUTPUTS_LAST || s->no_reuse || is_running(s)) return;
    wk_session_take_back(s);
    wk_sequence_end_text(s->sequence, s->tokens);
}

/* The end of a text: what the detokenizer and the stop strings hold back comes out. */
static void end_text(wick_session *s, wick_end_reason reason, wick_event *event) {
    size_t size;
    bool stopped;
    wick_detokenize_flush(&s->detokenizer, s->piece, &size);
    s->n_out = wk_stop_feed(&s->stop, s->piece, size, true, &stopped);
    show_end(s, stopped ? WICK_END_STOP_STRING : reason, event);
}

static void show_logprobs(wick_session *s, const float *logits, uint32_t id, wick_event *event) {
    if (!s->logprobs) return;
    if (s->has_drawn_logprobs) logits = wk_sampler_drawn(&s->sampler, id);
    wk_logprobs_find(logits, s->sampler.n_vocab, id, s->n_logprobs, s->logprobs);
    event->logprobs = s->logprobs;
    event->n_logprobs = s->n_logprobs + 1;
    while (s->has_drawn_logprobs && s->logprobs[event->n_logprobs - 1].logprob == -INFINITY)
        event->n_logprobs--;
}

/* Adds the text of a generated token to the held text, of which n_out bytes may then go out. */
static wick_status add_text(wick_session *s, uint32_t id, bool *stopped) {
    size_t size;
    WK_TRY(wick_detokenize(&s->detokenizer, id, s->piece, s->piece_capacity, &size));
    s->n_out = wk_stop_feed(&s->stop, s->piece, size, false, stopped);
    return WICK_OK;
}

wick_status wk_session_retell(wick_session *session, wick_error *err) {
    wick_session *const s = session;
    for (uint32_t i = s->n_tokens - s->n_since_prompt; i < s->n_tokens; i++) {
        bool stopped;
        if (s->sampler.matcher) WK_TRY(wk_matcher_accept(s->sampler.matcher, s->tokens[i], err));
        WK_TRY(add_text(s, s->tokens[i], &stopped));
        /* A stop string that was none when the text was generated. */
        wk_stop_release(&s->stop, stopped ? s->stop.n_held : s->n_out);
    }
    s->n_out = 0;
    return WICK_OK;
}

bool wk_session_needs_all_logits(const wick_session *session) {
    return session->logprobs || wk_sampler_reach(&session->sampler) > WK_SHORTLIST;
}

/* The logits of its last token were lost: it is computed again. */
static void lose_logits(wick_session *s) {
    wk_session_forget_logits(s);
    assert(s->n_tokens > 0); /* else there were no logits */
    s->n_computed = s->n_tokens - 1;
    wk_session_take_back(s);
    if (wk_sequence_cached(s->sequence) > s->n_computed)
        (void)wk_sequence_return(s->sequence, s->n_computed);
}

static wick_status choose(wick_session *s, wick_event *event) {
    if (wk_session_needs_all_logits(s)) WK_TRY(wk_session_complete_logits(s));
    if (s->n_tokens == s->context_length) {
        if (!wk_session_shift(s)) end_text(s, WICK_END_CONTEXT_FULL, event);
        return WICK_OK;
    }
    uint32_t id;
    const uint64_t begin_ns = wk_clock_ns();
    const float *const logits = wk_sequence_row(s->sequence, s->row);
    WK_TRY(wk_sampler_choose(&s->sampler, logits, s->tokens, s->n_tokens, &id, &s->error));
    if (id == WICK_NO_TOKEN) {
        end_text(s, WICK_END_GRAMMAR, event);
        return WICK_OK;
    }
    show_logprobs(s, logits, id, event);
    if (s->first_token_ns == 0) s->first_token_ns = wk_clock_ns() - s->appended_ns;
    if (s->n_since_prompt > 0) s->generate_ns += wk_clock_ns() - begin_ns;
    if (!wk_session_verify(s, id)) {
        wk_session_forget_logits(s); /* until here a text that goes on needs them */
        wk_session_take_back(s);
    }
    s->tokens[s->n_tokens++] = id;
    s->n_generated++;
    s->model->usage.n_generated++;
    s->n_since_prompt++;
    event->token = id;
    const bool is_end = !s->ignore_end && wick_token_ends_generation(s->tokenizer, id);
    bool stopped = false;
    if (!is_end) WK_TRY(add_text(s, id, &stopped));
    if (is_end || stopped) {
        if (s->has_logits) lose_logits(s); /* nothing follows */
        if (is_end)
            end_text(s, WICK_END_TOKEN, event);
        else
            show_end(s, WICK_END_STOP_STRING, event);
        return WICK_OK;
    }
    wk_session_guess(s);
    event->kind = WICK_EVENT_TOKEN;
    event->text = s->stop.held;
    event->text_size = s->n_out;
    return WICK_OK;
}

/* The last token allowed need not be computed: nothing follows it. */
static bool is_at_limit(const wick_session *s) {
    return s->max_tokens > 0 && s->n_since_prompt + s->n_shifted >= s->max_tokens;
}

void wk_session_take_logits(wick_session *to, const wick_session *from) {
    if (!from->has_logits) return;
    const float *const logits = wk_sequence_row(from->sequence, from->row);
    const bool is_whole = logits && !wk_sequence_is_short(from->sequence);
    wick_error *const error = wk_device_err(to->model->device), before = *error;
    to->has_logits = is_whole && wk_sequence_set_logits(to->sequence, logits) == WICK_OK;
    *error = before;
    if (!to->has_logits) lose_logits(to);
}

wick_status wk_session_complete_logits(wick_session *session) {
    wick_session *const s = session;
    const wick_status status = wk_sequence_complete(s->sequence);
    if (status != WICK_ERR_DEVICE_LOST) return status;
    lose_logits(s);
    return WICK_PENDING;
}

/* Computes tokens again that are not in the cache any more: their logits are not needed, and they
 * cause no events. */
static bool is_replaying(const wick_session *s) {
    return wk_sequence_cached(s->sequence) < s->n_computed;
}

wk_waiting wk_session_waiting(void *session) {
    const wick_session *const s = session;
    const uint32_t n_cached = wk_sequence_cached(s->sequence);
    const bool is_replay = is_replaying(s);
    const uint32_t end = is_replay ? s->n_computed : s->n_tokens;
    const uint32_t n_ahead = is_replay ? 0 : s->n_ahead;
    const bool runs_ahead = n_ahead > 0 && s->guess.kind == WK_AHEAD;
    if (s->failed != WICK_OK || s->ended != WICK_END_NONE || s->n_rows > 0 || s->is_showing ||
        s->has_logits || wk_session_is_guessing(s) || is_at_limit(s) || end == n_cached)
        return (wk_waiting){.n = 0};
    return (wk_waiting){.ids = s->tokens + n_cached,
                        .rows = wk_session_given_from(s, n_cached),
                        .n = end - n_cached + n_ahead,
                        .outputs = is_replay ? WK_OUTPUTS_NONE : s->outputs,
                        .n_ahead = n_ahead,
                        .draws = runs_ahead ? s->guess.draws : NULL,
                        .no_reuse = s->no_reuse,
                        .states = wk_head_states(s),
                        .is_short = s->outputs == WK_OUTPUTS_LAST && (n_ahead == 0 || runs_ahead) &&
                                    !wk_session_needs_all_logits(s)};
}

/* The sequence's part of a batch has ended. */
static wick_status take_result(wick_session *s, const wk_result *result, wick_event *event) {
    s->is_stepping = false;
    if (result->status != WICK_OK)
        return wk_pass_on(wk_device_err(s->model->device), result->status, result->why);
    wk_head_take(s, result);
    const bool is_prompt = s->n_since_prompt == 0;
    *(is_prompt ? &s->prompt_ns : &s->generate_ns) += result->nanoseconds;
    if (result->end <= s->n_computed) return WICK_OK; /* a replay */
    assert(result->end <= s->n_tokens + s->n_ahead);
    if (result->end >= s->n_tokens) {
        s->n_ahead = result->end - s->n_tokens;
        for (uint32_t i = 0; i < s->n_ahead && result->ahead; i++)
            s->tokens[s->n_tokens + i] = result->ahead[i];
        s->guess.n_drafted += s->n_ahead;
    }
    const uint32_t end = result->end < s->n_tokens ? result->end : s->n_tokens;
    const uint32_t n = end - s->n_computed;
    s->n_computed = end;
    s->n_reused += result->n_reused;
    if (is_prompt) s->model->usage.n_prompt += n - result->n_reused;
    wk_device_settle(s->model->device);
    if (s->outputs != WK_OUTPUTS_LAST)
        s->n_rows = s->n_batch_rows = n;
    else
        s->has_logits = s->n_computed == s->n_tokens;
    if (is_prompt) {
        event->kind = WICK_EVENT_PROMPT;
        event->done = s->n_computed;
        event->total = s->n_tokens;
    }
    return WICK_OK;
}

/* A result that waits, or one more step of the runner for it. */
static wick_status run_batch(wick_session *s, wick_event *event) {
    wk_result result;
    if (wk_sequence_take(s->sequence, &result)) return take_result(s, &result, event);
    const bool was_running = is_running(s);
    const wick_status status = wk_sequence_step(s->sequence);
    if (status < 0) return status;
    if (wk_sequence_take(s->sequence, &result)) return take_result(s, &result, event);
    s->is_stepping = is_running(s);
    /* While a GPU computes. */
    if (!was_running && is_running(s)) return wk_sampler_prepare(&s->sampler, &s->error);
    return WICK_OK;
}

/* What has come of the devices' work is final until the session is reset; its sentence stands where
 * theirs go, which may be the error of a call that saves or loads the session. */
static void fail(wick_session *s, wick_status status) {
    const wick_error *const reason = wk_device_err(s->model->device);
    s->failed = reason != &s->error ? wk_pass_on(&s->error, status, reason) : status;
    if (s->error.status == WICK_OK)
        (void)wk_fail(&s->error, status, "%s", wick_status_text(status));
}

void wk_session_absorb(wick_session *session) {
    wick_session *const s = session;
    wick_event event; /* a prompt's progress: not reported */
    wk_result result;
    if (!wk_sequence_take(s->sequence, &result)) return;
    if (result.status < 0) wk_session_forget_error(s);
    const wk_model_errors before = wk_model_borrow(s->model, &s->error);
    const wick_status status = take_result(s, &result, &event);
    if (status < 0) fail(s, status);
    wk_model_give_back(s->model, before);
}

wick_status wk_session_settle(wick_session *session) {
    wick_session *const s = session;
    wick_event event;
    wk_session_absorb(s);
    if (s->failed != WICK_OK || !is_running(s)) return s->failed;
    const wick_status status = run_batch(s, &event);
    if (status < 0) fail(s, status);
    if (status < 0 || !is_running(s)) return s->failed; /* a lost batch has only not run yet */
    return WICK_PENDING;
}

bool wk_session_is_full(const wick_session *session) {
    const wick_session *const s = session;
    return s->has_logits && s->ended == WICK_END_NONE && s->n_tokens == s->context_length &&
           !is_at_limit(s);
}

static wick_status prepare(wick_session *s) {
    WK_TRY(wk_session_settle(s));
    if (wk_session_is_guessing(s)) {
        wk_session_go_on_guessing(s);
        return WICK_PENDING;
    }
    if (wk_session_waiting(s).n == 0) return WICK_OK;
    s->n_changes++;
    wick_event event;
    const wick_status status = run_batch(s, &event);
    if (status < 0) fail(s, status);
    return status < 0 ? status : WICK_PENDING;
}

static void show_row(wick_session *s, wick_event *event) {
    event->kind = WICK_EVENT_LOGITS;
    assert(s->n_rows <= s->n_batch_rows && s->n_rows <= s->n_computed);
    event->position = s->n_computed - s->n_rows;
    s->is_showing = true;
    wk_sequence_keep_rows(s->sequence); /* other sessions may step before this one does */
    event->logits = wk_sequence_row(s->sequence, s->n_batch_rows - s->n_rows);
    s->n_rows--;
}

/* Rows that were not shown went, for lack of memory, when others needed the batch's: they are
 * computed again. */
static void lose_rows(wick_session *s) {
    s->n_computed -= s->n_rows;
    s->n_rows = 0;
    if (wk_sequence_cached(s->sequence) > s->n_computed)
        (void)wk_sequence_return(s->sequence, s->n_computed);
}

void wk_session_forget_computed(wick_session *session) {
    wick_session *const s = session;
    wk_session_drop_batch(s);
    s->n_changes++;
    if (s->n_rows > 0) lose_rows(s);
    if (s->has_logits) lose_logits(s);
    wk_session_forget_logits(s);
}

static wick_status step(wick_session *s, wick_event *event) {
    s->is_showing = false;
    wk_stop_release(&s->stop, s->n_out);
    s->n_out = 0;
    const bool has_row = wk_sequence_row(s->sequence, s->row) != NULL;
    if (s->n_rows > 0 && !has_row) lose_rows(s);
    if (s->has_logits && !has_row) lose_logits(s);
    if (is_running(s) || wk_sequence_has_result(s->sequence)) {
        WK_TRY(run_batch(s, event));
        /* The next token is chosen at once, to be in the next batch that any session begins; a
         * conversation makes room before. */
        if (event->kind != WICK_EVENT_PENDING || !s->has_logits || wk_session_is_full(s) ||
            !wk_sequence_row(s->sequence, s->row)) /* or they went while its result waited */
            return WICK_OK;
    }
    if (s->n_rows > 0) {
        show_row(s, event);
        return WICK_OK;
    }
    if (s->ended != WICK_END_NONE || s->n_tokens == 0) {
        event->kind = WICK_EVENT_END;
        event->reason = s->ended;
        return WICK_OK;
    }
    if (s->has_logits || s->n_computed < s->n_tokens) {
        if (is_at_limit(s)) {
            end_text(s, WICK_END_MAX_TOKENS, event);
            return WICK_OK;
        }
        if (wk_session_is_guessing(s)) {
            wk_session_go_on_guessing(s);
            return WICK_OK;
        }
        return s->has_logits ? choose(s, event) : run_batch(s, event);
    }
    show_end(s, WICK_END_PROMPT, event);
    return WICK_OK;
}

wick_status wick_session_step(wick_session *session, wick_event *event) {
    if (!session) return WICK_ERR_ARGUMENT;
    wick_session *const s = session;
    if (!event) return wk_session_refuse_null(s, "wick_session_step: event");
    *event = (wick_event){.kind = WICK_EVENT_PENDING, .text = ""};
    s->n_changes++;
    if (s->failed != WICK_OK) return s->failed;
    wk_session_forget_error(s);
    const wk_model_errors before = wk_model_borrow(s->model, &s->error);
    const wick_status status = step(s, event);
    if (status < 0) fail(s, status);
    wk_model_give_back(s->model, before);
    return s->failed; /* WICK_PENDING: a lost device is coming back */
}

wick_status wick_session_prepare(wick_session *session) {
    if (!session) return WICK_ERR_ARGUMENT;
    wick_session *const s = session;
    if (s->failed != WICK_OK) return s->failed;
    if (s->n_since_prompt == 0 || s->ended != WICK_END_NONE) return WICK_OK;
    wk_session_forget_error(s);
    const wk_model_errors before = wk_model_borrow(s->model, &s->error);
    const wick_status status = prepare(s);
    wk_model_give_back(s->model, before);
    return status;
}

wick_status wick_session_next(wick_session *session, wick_event *event) {
    if (!session) return WICK_ERR_ARGUMENT;
    if (!event) return wk_session_refuse_null(session, "wick_session_next: event");
    do {
        WK_TRY(wick_session_step(session, event));
        if (event->kind == WICK_EVENT_PENDING) wick_pause(session->model->device);
    } while (event->kind == WICK_EVENT_PENDING);
    return WICK_OK;
}

/* --- Figures --- */

void wick_session_get_stats(const wick_session *session, wick_session_stats *stats) {
    const wick_session *const s = session;
    if (!stats) return;
    *stats = (wick_session_stats){0};
    if (!s) return;
    *stats =
        (wick_session_stats){.n_prompt = s->n_prompt,
                             .n_reused = s->n_reused,
                             .n_generated = s->n_generated,
                             .n_drafted = s->guess.n_drafted,
                             .n_accepted = s->guess.n_accepted,
                             .prompt_seconds = (double)s->prompt_ns * 1e-9,
                             .generate_seconds = (double)s->generate_ns * 1e-9,
                             .first_token_seconds = (double)s->first_token_ns * 1e-9,
                             .cache_bytes = wk_sequence_bytes(s->sequence),
                             .n_context = s->n_tokens,
                             .context_length = s->context_length,
                             .seed = s->sampler.desc.temperature > 0 ? s->sampler.desc.seed : 0};
}

const uint32_t *wick_session_tokens(const wick_session *session, size_t *n) {
    if (n) *n = session ? session->n_tokens : 0;
    return session ? session->tokens : NULL;
}
