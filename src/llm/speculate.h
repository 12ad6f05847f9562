/* llm/speculate.h: guesses at the tokens to come, which go into one batch with the token before
 * them. Each row of logits gives the token that it would give alone; while these are the guessed
 * ones, the next row counts, too. So every text is the one without guesses, drawn ones included: a
 * certain guess is accepted with the probability of its token, which is the rule of Leviathan et
 * al. and of Chen et al. (2023).
 *
 * The guess is what followed when the text's last tokens stood in it before, or what a smaller
 * model or the model's own prediction head makes of the text. Or the device itself draws the next
 * token, by the random number that the sampler will use, and computes on before it has been asked:
 * no batch grows, but the device does not wait for the host. How many go into a batch follows from
 * how often such guesses were right, which of the first kind is known without computing them, and
 * from what batches of more rows were measured to take. */
#ifndef WK_LLM_SPECULATE_H
#define WK_LLM_SPECULATE_H

#include "llm/runner.h"

#include <wick/session.h>

enum {
    WK_MOST_AHEAD = 31, /* guesses in a batch */
    WK_MATCH_SIZES = 5, /* 2, 4, 8, 16, 32 tokens and more */
    /* In their place: guesses of a draft model or a prediction head, and the device's own. */
    WK_DRAFT = WK_MATCH_SIZES,
    WK_AHEAD,
    WK_GUESS_KINDS
};

typedef struct wk_speculation {
    wick_speculate mode;
    uint32_t length; /* tokens at the end of the text that stand before position at, too; 0: none */
    uint32_t at;     /* of the guess */
    float hits[WK_GUESS_KINDS], tries[WK_GUESS_KINDS]; /* of late, by that length */
    uint32_t kind;                                     /* of the guesses that are computed */
    wk_draw draws[WK_MOST_STEPS - 1];                  /* by which the device guesses */
    uint32_t n_drafted, n_accepted, n_refused;
} wk_speculation;

void wk_speculate_begin(wk_speculation *s, wick_speculate mode);
/* The last of tokens [n] is new: looks for the next guess. */
void wk_speculate_learn(wk_speculation *s, const uint32_t *tokens, uint32_t n);
/* How many guesses pay beside n_beside rows of other sequences, `most` at most: length 0, those of
 * s->kind, which take step_ns each before they are computed; else the one above. costs: see
 * wk_sequence_costs; after many refusals they are forgotten. */
uint32_t wk_speculate_depth(wk_speculation *s, uint32_t length, double step_ns, uint64_t *costs,
                            uint32_t n_beside, uint32_t most);

/* Of a session that has generated a token: the tokens after it. */
void wk_session_guess(wick_session *session);
/* id is chosen next: whether it is the guess, so that the next row counts. */
bool wk_session_verify(wick_session *session, uint32_t id);
/* Guesses that were not looked at are forgotten; the logits of the last token are not. Before
 * anything but a step. */
void wk_session_take_back(wick_session *session);

/* Whether guesses are to be made, or what they will need, before this session goes on; each call
 * makes some of them, in place of a step. */
bool wk_session_is_guessing(const wick_session *session);
void wk_session_go_on_guessing(wick_session *session);
/* One of the n_wanted has come; WICK_NO_TOKEN: no more will. */
void wk_session_take_guess(wick_session *session, uint32_t id);

/* draft.c: the session of a draft model that follows this one; none where it is not wanted. Its
 * refusals name the model. */
wick_status wk_draft_open(wick_session *session, const wick_session_desc *desc, wick_error *err);
/* It is to guess n tokens after the session's, if it can. */
void wk_draft_begin(wick_session *session, uint32_t n);
void wk_draft_step(wick_session *session);

/* head.c: the session's prediction head; none where it is not wanted. */
typedef struct wk_head wk_head;
wick_status wk_head_open(wick_session *session, const wick_session_desc *desc, wick_error *err);
void wk_head_close(wick_session *session);
/* Where the states of a batch go. NULL: there is no head. */
float *wk_head_states(const wick_session *session);
/* A batch has ended: they are there. */
void wk_head_take(wick_session *session, const wk_result *result);
/* It has to read some before others come. */
bool wk_head_is_due(const wick_session *session);
/* The text begins again. */
void wk_head_forget(wick_session *session);
/* What a guess takes. */
uint64_t wk_head_step_ns(const wick_session *session);
/* A token was chosen, which it is to read; and to guess the n after it, if it can. */
void wk_head_begin(wick_session *session, uint32_t n);
void wk_head_step(wick_session *session);

#endif
