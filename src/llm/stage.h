/* llm/stage.h: a stage of the forward pass on its device: the cache of its layers, and batches
 * through them. What it computes comes back to the host and goes on from there: to the next stage,
 * or as logits. */
#ifndef WK_LLM_STAGE_H
#define WK_LLM_STAGE_H

#include "llm/llm.h"

typedef struct wk_stage wk_stage;

enum { WK_MOST_STEPS = 8 };

/* A batch on the host, the same for every stage. */
typedef struct wk_stage_batch {
    wk_batch_layout layout;
    uint32_t window_slots, window_tables, given; /* as in wk_batch */
    wk_outputs outputs;
    wick_math math;                               /* of all batches of a session */
    uint32_t *words;                              /* [layout.n_words] */
    float *cos[WK_MAX_ROPES], *sin[WK_MAX_ROPES]; /* [rows, n_pairs] */
    uint32_t adapters, n_adapters;                /* as in wk_batch */
    float *scales;                                /* [rows, n_adapters] */
    const float *rows; /* [rows, n_embd] in place of embedded tokens; NULL: there are none */
    float *hidden;     /* [rows, n_embd], from stage to stage */
    float *states; /* [rows, n_embd] of the last stage, for a prediction head; NULL: not wanted */
    float *logits; /* [n_outputs, n_vocab], of the last one; or states, [n_outputs, n_embd] */
    bool is_short; /* in: the best logits are enough; out: the others are -infinity, see
                      wk_stage_complete */
    /* More than 1, of one row with short logits: after it come the rows of the next positions, each
     * with the token that is drawn from the logits of the one before. They are started one after
     * the other, without waiting; logits is [n_steps, n_vocab]. */
    uint32_t n_steps;
    uint32_t step;        /* being started: words describe it, except for its token from 1 on */
    const wk_draw *draws; /* [n_steps - 1] */
    bool has_drawn;       /* out; false: no step counts, as the logits of one have no best */
    uint32_t drawn[WK_MOST_STEPS]; /* [n_steps - 1] */
} wk_stage_batch;

/* Number index of the model's placement, or WK_HEAD_STAGE. On failure its device holds the
 * sentence; *out is set also when the device was lost, see wk_stage_is_stale. */
wick_status wk_stage_make(const wk_model *net, uint32_t index, const wk_cache_desc *cache,
                          wk_stage **out);
void wk_stage_free(wk_stage *stage);

/* What it had on its device was lost with it: the next start needs a renewal, which leaves the
 * cache empty. */
bool wk_stage_is_stale(const wk_stage *stage);
/* What its layers hold does not matter any more. */
void wk_stage_forget_faults(wk_stage *stage);
wick_status wk_stage_renew(wk_stage *stage);

/* More blocks and slots for its layers; no batch may be running. On failure its device holds the
 * sentence. */
wick_status wk_stage_grow(wk_stage *stage, const wk_cache_desc *cache);
/* See wk_state_copy. */
wick_status wk_stage_copy(const wk_stage *stage, wk_state_kind kind, uint32_t from, uint32_t to);

/* What its layers keep; NULL: nothing, or it was lost with its device. */
const wk_state *wk_stage_state(const wk_stage *stage);

/* What batches of this layout and outputs need of a stage that is not made yet begins to compile.
 * Where it has no weights yet, from what the header says of them. */
wick_status wk_stage_rehearse(wk_model *net, uint32_t index, const wk_cache_desc *cache,
                              const wk_stage_batch *batch);

/* Whether it takes batches of several steps: only where it is the model's one stage. */
bool wk_stage_takes_steps(const wk_stage *stage);
/* Starts a batch, or its next step; the first stage reads no hidden rows. WICK_PENDING: kernels
 * compile, call again. *has_begun: also after a failure, what its layers keep may have been
 * written. */
wick_status wk_stage_start(wk_stage *stage, const wk_stage_batch *batch, bool *has_begun);
/* WICK_PENDING, WICK_OK: the batch has run and its result is in the batch, or its error. */
wick_status wk_stage_poll(wk_stage *stage, wk_stage_batch *batch);
/* Reads all logits of the last batch where it is short. WICK_PENDING: call again. */
wick_status wk_stage_complete(wk_stage *stage, wk_stage_batch *batch);

#endif
