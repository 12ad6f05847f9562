/* llm/session_struct.h: the inside of a session, for the files that step, save and load it. */
#ifndef WK_LLM_SESSION_STRUCT_H
#define WK_LLM_SESSION_STRUCT_H

#include "llm/speculate.h"
#include "sample/sampler.h"
#include "sample/stop.h"

#include <wick/lora.h>

struct wick_session {
    wick_model *model;
    const wick_tokenizer *tokenizer;
    wk_sequence *sequence;
    wk_sampler sampler;
    wk_stop stop;
    wick_detokenizer detokenizer;
    char *piece; /* [piece_capacity] text of one token */
    size_t piece_capacity;

    uint32_t context_length, max_tokens;
    bool ignore_end, no_reuse, has_shift;
    uint32_t n_keep;        /* of a shift */
    bool is_whole;          /* see wk_runner_desc */
    wk_outputs outputs;     /* of every batch: all logits or states; else LAST, of the last one */
    wick_logprob *logprobs; /* [1 + n_logprobs] of the last token; NULL: not asked for */
    uint32_t n_logprobs;
    bool has_drawn_logprobs; /* as in wick_session_desc */

    uint32_t *tokens; /* [context_length]; WICK_NO_TOKEN: the next of the rows given */
    float *given;     /* [given_capacity, n_embd] rows of embeddings, n_given of them */
    uint32_t n_given, given_capacity;
    uint32_t n_tokens;     /* known */
    uint32_t n_computed;   /* of these, computed: more than are in the cache where they have to be
                            * computed again */
    uint32_t n_batch_rows; /* logits rows of the last batch, in these modes */
    uint32_t n_rows;       /* of these, not shown yet */
    bool has_logits;       /* of the last token: choose from them, */
    uint32_t row;          /* this one of the batch */
    uint32_t n_ahead;      /* guesses after n_tokens, where the logits are, or to be computed */
    wk_speculation guess;
    wick_session *draft;   /* of a draft model; NULL: there is none */
    wk_head *head;         /* of the model's prediction head; NULL: it is not used */
    uint32_t n_wanted;     /* guesses that they are to make before this session goes on, */
    uint64_t draft_ns;     /* since then */
    bool is_stepping;      /* its own steps wait for the batch that is running */
    bool is_showing;       /* logits, which stay until its next step: it waits for nothing before */
    size_t n_out;          /* held text that the last event showed */
    wick_end_reason ended; /* NONE: going on */
    wick_status failed;
    wick_error error; /* of the last call that failed; clear: a later one was accepted */

    wick_lora *loras[WK_MAX_ADAPTERS]; /* [n_loras] that it computes with */
    uint32_t n_loras;

    uint32_t n_prompt, n_generated, n_reused, n_since_prompt;
    uint32_t n_shifted; /* tokens generated since the prompt that the context has lost */
    uint64_t n_changes; /* grows with every call that may change something */
    uint64_t prompt_ns, generate_ns, first_token_ns, appended_ns;
};

static inline void wk_session_forget_error(wick_session *session) {
    session->error = (wick_error){.status = WICK_OK};
}
static inline wick_status wk_session_refuse_null(wick_session *session, const char *what) {
    if (session->failed == WICK_OK) wk_session_forget_error(session); /* else that failure stays */
    return wk_fail(&session->error, WICK_ERR_ARGUMENT, "%s is NULL", what);
}

/* session_text.c: bytes of n given rows; the first of them that comes at position n or later. */
size_t wk_session_given_bytes(const wick_session *session, uint32_t n);
const float *wk_session_given_from(const wick_session *session, uint32_t n);
/* session_text.c: the context is full: the first n_keep tokens stay and the newer half of the
 * others; whole blocks go, where there is one. False: it cannot. */
bool wk_session_shift(wick_session *session);
/* session.c: what is being computed gives no result; what it has overwritten is computed again. */
void wk_session_drop_batch(wick_session *session);
/* session.c: of its last token. */
void wk_session_forget_logits(wick_session *session);
/* session.c: the generation before is over. */
void wk_session_begin_prompt(wick_session *session);
/* session.c: takes what a batch that others have begun has given, and no event. */
void wk_session_absorb(wick_session *session);
/* session.c: whether its steps have to end a batch before it takes anything. */
bool wk_session_is_busy(const wick_session *session);
/* session.c: ends the batch that is running for it, if one is. WICK_PENDING: call again. */
wick_status wk_session_settle(wick_session *session);
/* session.c: before every call that changes what it computes. */
wick_status wk_session_check_idle(wick_session *session);
/* session.c: what it has computed counts for nothing any more: it computes it again, and rows and
 * logits that were not shown come of that. */
void wk_session_forget_computed(wick_session *session);
/* session_adapters.c: those of a session that is closed; of a fork, which has none yet. */
void wk_session_release_loras(wick_session *session);
void wk_session_take_loras(wick_session *to, const wick_session *from);
/* session.c: of the last token all logits, where only the best came back. WICK_PENDING: call again;
 * has_logits says whether there are some still, or its batch has to run again. */
wick_status wk_session_complete_logits(wick_session *session);
/* session.c: from's logits of the last token, which to has computed as well; or it computes that
 * token again. */
void wk_session_take_logits(wick_session *to, const wick_session *from);
/* session.c: of a wick_session: see wk_waiting_fn. */
wk_waiting wk_session_waiting(void *session);
/* session.c: the last n_since_prompt tokens as if they had just been generated: for what is held
 * back of their text, and for the grammar. */
wick_status wk_session_retell(wick_session *session, wick_error *err);
/* session.c: whether a choice may need more of the logits than a shortlist. */
bool wk_session_needs_all_logits(const wick_session *session);
/* session.c: the context has no room for the next token of the text. */
bool wk_session_is_full(const wick_session *session);
/* session_text.c: what stands before the generated text becomes n ids of the vocabulary, which
 * leave room for the text; it goes on. No batch may be running. */
void wk_session_replace_prompt(wick_session *session, const uint32_t *ids, uint32_t n);

#endif
