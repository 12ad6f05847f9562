/* llm/head.c: guesses of the model's own prediction head (wk_model_guess): a sequence of its own
 * beside the session's, whose rows are the tokens of the text, each with the model's state before
 * it. What is guessed goes on from the head's own states. See speculate.h. */
#include "llm/session_struct.h"
#include "sys/clock.h"

#include <assert.h>
#include <string.h>

struct wk_head {
    const wick_session *session;
    wk_sequence *sequence;
    size_t n_embd;
    float *states; /* [room, n_embd] after the tokens of the positions [first, first + n) */
    uint32_t room, first, n;
    /* Rows of the text: the token, and the position of the state before it. They may leave
     * positions out: those of tokens that were found in the cache, and of embeddings. */
    uint32_t *ids, *at; /* [context_length] */
    uint32_t n_rows;
    /* The row after these while it guesses: the guess before, and the state for it. */
    uint32_t guessed;
    float *guess_state; /* [n_embd] */
};

/* --- Its sequence --- */

/* What it had in the cache went, with a device or for others, and so did the states. */
static bool is_lost(const wk_head *h) {
    const uint32_t n_cached = wk_sequence_cached(h->sequence);
    return n_cached < h->n_rows && h->at[n_cached] < h->first;
}

/* Rows of the text that it has not computed. Guesses are computed when there are none. */
static uint32_t count_missing(const wk_head *h) {
    const uint32_t n_cached = wk_sequence_cached(h->sequence);
    return h->n_rows > n_cached && !is_lost(h) ? h->n_rows - n_cached : 0;
}

static wk_waiting next_rows(void *head) {
    const wk_head *const h = head;
    const bool is_wanted = h->session->n_wanted > 0;
    const uint32_t n_missing = count_missing(h);
    wk_waiting waiting = {.outputs = is_wanted ? WK_OUTPUTS_LAST : WK_OUTPUTS_NONE,
                          .no_reuse = true};
    /* Other states than those of its rows may be there already. */
    if (wk_sequence_has_result(h->session->sequence)) return waiting;
    if (n_missing > 0) {
        const uint32_t begin = h->n_rows - n_missing;
        waiting.ids = h->ids + begin;
        waiting.rows = h->states + (h->at[begin] - h->first) * h->n_embd;
        while (waiting.n < n_missing && h->at[begin + waiting.n] == h->at[begin] + waiting.n)
            waiting.n++;
    } else if (is_wanted && !is_lost(h)) {
        waiting.ids = &h->guessed;
        waiting.rows = h->guess_state;
        waiting.n = 1;
    }
    return waiting;
}

static void free_head(wk_heap *heap, wk_head *h, uint32_t context_length) {
    wk_sequence_close(h->sequence);
    wk_free(heap, h->states, h->room * h->n_embd * sizeof *h->states);
    wk_free(heap, h->ids, context_length * sizeof *h->ids);
    wk_free(heap, h->at, context_length * sizeof *h->at);
    wk_free(heap, h->guess_state, h->n_embd * sizeof *h->guess_state);
    wk_free(heap, h, sizeof *h);
}

void wk_head_close(wick_session *session) {
    if (session->head) free_head(session->model->heap, session->head, session->context_length);
    session->head = NULL;
}

wick_status wk_head_open(wick_session *session, const wick_session_desc *desc, wick_error *err) {
    wick_session *const s = session;
    wk_heap *const heap = s->model->heap;
    const bool has_head = wk_model_has_head(s->model->model);
    const bool may_be_asked = s->guess.mode == WICK_SPECULATE_AUTO && has_head && !desc->draft;
    if (s->guess.mode != WICK_SPECULATE_HEADS && !may_be_asked) return WICK_OK;
    if (!has_head)
        return wk_fail(err, WICK_ERR_ARGUMENT,
                       "the model's prediction head is asked for guesses, but the model was opened "
                       "without it");
    wk_head *const h = wk_alloc_zeroed(heap, sizeof *h);
    if (!h) return wk_fail_memory(err, sizeof *h, "a prediction head");
    wk_runner_desc runner = wk_sequence_desc(s->sequence);
    runner.is_head = true;
    h->session = s;
    h->n_embd = wk_model_hparams(s->model->model)->n_embd;
    h->room = runner.chunk_length;
    h->states = wk_alloc_array(heap, h->room * h->n_embd, sizeof *h->states);
    h->ids = wk_alloc_array(heap, s->context_length, sizeof *h->ids);
    h->at = wk_alloc_array(heap, s->context_length, sizeof *h->at);
    h->guess_state = wk_alloc_array(heap, h->n_embd, sizeof *h->guess_state);
    wick_status status = WICK_OK;
    if (!h->states || !h->ids || !h->at || !h->guess_state)
        status = wk_fail_memory(err, h->room * h->n_embd * sizeof *h->states, "a prediction head");
    if (status == WICK_OK)
        status = wk_sequence_open(s->model, &runner, next_rows, h, &h->sequence, err);
    s->head = h;
    if (status != WICK_OK) wk_head_close(s);
    return status;
}

/* --- The text --- */

/* Back to its first n rows, without guesses. */
static void go_back(wk_head *h, uint32_t n) {
    wk_sequence_drop(h->sequence);
    h->n_rows = n;
    const uint32_t n_cached = wk_sequence_cached(h->sequence);
    if (n_cached > n) (void)wk_sequence_return(h->sequence, n);
}

void wk_head_forget(wick_session *session) {
    wk_head *const h = session->head;
    if (!h) return;
    go_back(h, 0);
    h->n = 0;
}

/* A row for each state whose next token is known. */
static void add_rows(wick_session *s) {
    wk_head *const h = s->head;
    const uint32_t next = h->n_rows > 0 ? h->at[h->n_rows - 1] + 1 : 0;
    for (uint32_t at = wk_larger(h->first, next); at < h->first + h->n && at + 1 < s->n_tokens;
         at++) {
        if (s->tokens[at + 1] == WICK_NO_TOKEN) continue;
        h->ids[h->n_rows] = s->tokens[at + 1];
        h->at[h->n_rows++] = at;
    }
}

float *wk_head_states(const wick_session *session) {
    return session->head ? session->head->states : NULL;
}

/* States that come again are of another text, or of the same one computed again; guesses that it
 * made go, whether they were right or not. */
void wk_head_take(wick_session *session, const wk_result *result) {
    wick_session *const s = session;
    wk_head *const h = s->head;
    const uint32_t first = result->first;
    if (!h) return;
    assert(result->end - first <= h->room);
    uint32_t n = is_lost(h) ? 0 : wk_smaller(h->n_rows, wk_sequence_cached(h->sequence));
    while (n > 0 && (h->at[n - 1] >= first || h->at[n - 1] + 1 >= s->n_tokens ||
                     s->tokens[h->at[n - 1] + 1] != h->ids[n - 1]))
        n--;
    go_back(h, n);
    h->first = first;
    h->n = result->has_states ? result->end - first : 0;
    add_rows(s);
}

bool wk_head_is_due(const wick_session *session) {
    const wick_session *const s = session;
    return s->head && !s->has_logits && s->n_computed < s->n_tokens && count_missing(s->head) > 0;
}

uint64_t wk_head_step_ns(const wick_session *session) {
    return wk_sequence_costs(session->head->sequence, false)[0];
}

void wk_head_begin(wick_session *session, uint32_t n) {
    wick_session *const s = session;
    wk_head *const h = s->head;
    if (is_lost(h)) go_back(h, 0);
    add_rows(s);
    if (n == 0 || count_missing(h) == 0 || h->at[h->n_rows - 1] + 2 != s->n_tokens) return;
    s->n_wanted = n;
    s->draft_ns = wk_clock_ns();
}

/* --- Guessing --- */

/* Why not: the text goes on without it. */
static void give_up(wick_session *s, const wick_error *why) {
    wick_error *const error = wk_device_err(s->model->device);
    wk_device_log(s->model->device, WICK_LOG_WARNING, "the prediction head guesses no more: %s",
                  why->message);
    *error = (wick_error){.status = WICK_OK};
    if (s->n_wanted > 0) wk_session_take_guess(s, WICK_NO_TOKEN);
    wk_head_close(s);
}

static void take_guess(wick_session *s) {
    wk_head *const h = s->head;
    const float *const row = wk_sequence_row(h->sequence, 0);
    if (row) {
        h->guessed = (uint32_t)row[0];
        memcpy(h->guess_state, row + 1, h->n_embd * sizeof *row);
    }
    wk_session_take_guess(s, row ? h->guessed : WICK_NO_TOKEN); /* or it was lost */
}

static void take_result(wick_session *s, const wk_result *result) {
    if (result->status != WICK_OK) {
        give_up(s, result->why);
    } else if (s->n_wanted == 0) { /* a part of the text was read */
        *(s->n_since_prompt == 0 ? &s->prompt_ns : &s->generate_ns) += result->nanoseconds;
    } else if (count_missing(s->head) == 0) {
        take_guess(s);
    }
}

void wk_head_step(wick_session *session) {
    wick_session *const s = session;
    wk_head *const h = s->head;
    wk_result result;
    wick_status status = WICK_OK;
    if (is_lost(h)) {
        if (s->n_wanted > 0) wk_session_take_guess(s, WICK_NO_TOKEN);
        go_back(h, 0);
        return;
    }
    if (!wk_sequence_has_result(h->sequence)) status = wk_sequence_step(h->sequence);
    if (status < 0)
        give_up(s, wk_device_err(s->model->device));
    else if (wk_sequence_take(h->sequence, &result))
        take_result(s, &result);
}
