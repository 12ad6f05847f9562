/* llm/draft.c: guesses of a smaller model: a session of its own, which is given the text and goes
 * on from its end. See speculate.h. */
#include "llm/session_struct.h"
#include "sys/clock.h"

#include <string.h>

/* Whether tokens that both have are the same. */
static wick_status check_vocabulary(const wick_model *model, const wick_model *draft,
                                    wick_error *err) {
    const uint32_t n = wick_tokenizer_size(model->tokenizer);
    for (uint32_t id = 0; id < n && id < wick_tokenizer_size(draft->tokenizer); id++) {
        size_t size, draft_size;
        const char *const text = wick_token_bytes(model->tokenizer, id, true, &size);
        const char *const other = wick_token_bytes(draft->tokenizer, id, true, &draft_size);
        if (size == draft_size && memcmp(text, other, size) == 0) continue;
        return wk_fail(err, WICK_ERR_MISMATCH,
                       "the draft model '%s' has another vocabulary than '%s': token %u is '%.*s' "
                       "there and '%.*s' here",
                       draft->info.name, model->info.name, id, (int)draft_size, other, (int)size,
                       text);
    }
    return WICK_OK;
}

wick_status wk_draft_open(wick_session *session, const wick_session_desc *desc, wick_error *err) {
    wick_session *const s = session;
    wick_model *const draft = desc->draft;
    const wick_speculate mode = s->guess.mode;
    if (mode == WICK_SPECULATE_DRAFT && !draft)
        return wk_fail(err, WICK_ERR_ARGUMENT,
                       "a draft model is asked for guesses, but there is none");
    if (!draft || (mode != WICK_SPECULATE_DRAFT && mode != WICK_SPECULATE_AUTO)) return WICK_OK;
    WK_TRY(check_vocabulary(s->model, draft, err));
    if (wk_model_hparams(draft->model)->is_recurrent)
        return wk_fail(err, WICK_ERR_UNSUPPORTED,
                       "the draft model '%s' has recurrent layers, which cannot go back when a "
                       "guess is wrong",
                       draft->info.name);
    const wick_session_desc own = {.context_length = s->context_length,
                                   .chunk_length = desc->chunk_length,
                                   .ignore_end = true,
                                   .speculate = WICK_SPECULATE_NONE,
                                   .no_reuse = true};
    wick_error failure = {.status = WICK_OK};
    if (wick_session_open(draft, &own, &s->draft, &failure) == WICK_OK) return WICK_OK;
    return wk_fail(err, failure.status, "the draft model '%s': %s", draft->info.name,
                   failure.message);
}

void wk_draft_begin(wick_session *session, uint32_t n) {
    wick_session *const s = session;
    wick_session_cancel(s->draft); /* what it was asked for before */
    if (wick_session_sync_tokens(s->draft, s->tokens, s->n_tokens) != WICK_OK) return;
    s->n_wanted = n;
    s->draft_ns = wk_clock_ns();
}

void wk_draft_step(wick_session *session) {
    wick_session *const s = session;
    wick_event event;
    const wick_status status = wick_session_step(s->draft, &event);
    if (status < 0)
        wk_device_log(s->model->device, WICK_LOG_WARNING,
                      "the draft model '%s' guesses no more: %s", s->draft->model->info.name,
                      s->draft->error.message);
    const uint32_t n_vocab = wk_model_hparams(s->model->model)->n_vocab;
    const bool is_over = status < 0 || event.kind == WICK_EVENT_END ||
                         (event.kind == WICK_EVENT_TOKEN && event.token >= n_vocab);
    if (!is_over && event.kind != WICK_EVENT_TOKEN) return;
    wk_session_take_guess(s, is_over ? WICK_NO_TOKEN : event.token);
}
