/* llm/runner.h: computes the sequences of a model's sessions together: one runner for all sessions
 * of one kind (math, type of the cache, what comes out). It owns the cache, whose blocks its
 * sequences share out among themselves, and makes up batches: tokens of every sequence that has
 * some to compute, through the stages of the model.
 *
 * A batch is rounded up to a power of two rows, or less for whole texts: each such class is
 * recorded once and then replayed. Padding rows belong to no sequence and write nothing.
 */
#ifndef WK_LLM_RUNNER_H
#define WK_LLM_RUNNER_H

#include "llm/llm.h"
#include "llm/stage.h"

typedef struct wk_runner wk_runner;
/* A text: its blocks and state in the runner's cache, and rows of the batches that are for it. */
typedef struct wk_sequence wk_sequence;

/* What a sequence's session wants computed next. */
typedef struct wk_waiting {
    const uint32_t *ids; /* [n], at the positions after those in the cache; WICK_NO_TOKEN: the next
                          * of the rows [.., n_embd] is taken in its place */
    const float *rows;   /* of a prediction head [n, n_embd]: the states before the tokens */
    uint32_t n;          /* 0: nothing */
    wk_outputs outputs;  /* LAST: after the last of the n; ALL, STATES: after each of them */
    uint32_t n_ahead;    /* with LAST: the last of the n are guesses, which may be taken back: after
                          * the token before them, and after each of them */
    /* [n_ahead] The guesses are not in ids: after each token the device draws the next one so, and
     * computes it before it is known here. Left out where others wait. NULL: they are in ids. */
    const wk_draw *draws;
    bool no_reuse; /* of what other texts have in the cache, nor by others of this one */
    bool is_short; /* the WK_SHORTLIST best logits are enough, all others may be -infinity */
    /* [n, n_embd] where the states after the tokens go, which a prediction head reads; valid until
     * the result is taken or the part is dropped. NULL: they are not wanted. */
    float *states;
} wk_waiting;
/* Asked of every sequence that has no result waiting, whenever a batch is made up. */
typedef wk_waiting (*wk_waiting_fn)(void *session);

/* In the runner of the model that is for such sequences, which is made for its first one. What a
 * full context takes has to be free. */
wick_status wk_sequence_open(wick_model *model, const wk_runner_desc *desc, wk_waiting_fn waiting,
                             void *session, wk_sequence **out, wick_error *err);
/* Never waits: what is being computed for it is of no use then. */
void wk_sequence_close(wk_sequence *sequence);

/* Goes on with the batch that is running, or begins one with what is waiting, in this sequence and
 * in others. WICK_OK: there was nothing to do, or a batch has ended: results are waiting.
 * WICK_PENDING: call again. A failure is the caller's (its sentence stands where those of the
 * devices go): those of a batch are results. */
wick_status wk_sequence_step(wk_sequence *sequence);

/* What became of the sequence's part of a batch; taken once. */
typedef struct wk_result {
    wick_status status;
    uint32_t first, end;   /* positions that were computed, */
    uint32_t n_reused;     /* and before these, found in the cache: another text began with them */
    bool has_states;       /* of these positions, where they were wanted: else memory was short */
    const uint32_t *ahead; /* where it has run ahead: the guesses; until its next part begins */
    uint64_t nanoseconds;  /* that the batch took */
    const wick_error *why; /* of a failure; valid until the next call */
} wk_result;
bool wk_sequence_has_result(const wk_sequence *sequence);
/* What batches of 1, 2, 4, ... rows with logits have lately taken, in nanoseconds, or 1, 2, 4, ...
 * steps of one row; of the runner. At most SEEN: not known. */
enum { WK_COST_CLASSES = 6, WK_COST_SEEN = 1 };
uint64_t *wk_sequence_costs(wk_sequence *sequence, bool runs_ahead);
/* Most guesses of a part that runs ahead; 0: none of its parts can. */
uint32_t wk_sequence_most_ahead(const wk_sequence *sequence);
/* Rows of others in its last batch. */
uint32_t wk_sequence_beside(const wk_sequence *sequence);
bool wk_sequence_take(wk_sequence *sequence, wk_result *result);
/* Tokens of it that are being computed, for a result. */
uint32_t wk_sequence_running(const wk_sequence *sequence);
/* See wk_session_batch_rows; not of whole texts. */
wk_batch_rows wk_sequence_batch_rows(const wk_sequence *sequence);
/* What is being computed gives no result. */
void wk_sequence_drop(wk_sequence *sequence);

/* Row i of the outputs of its last part, [n_vocab] logits or [n_embd] states; of a prediction head
 * a token and the state for the next one, [1 + n_embd]. NULL: they were lost, and have to be
 * computed again. Valid until the runner's next step, or once they are kept until
 * the sequence's next part begins. */
const float *wk_sequence_row(const wk_sequence *sequence, uint32_t i);
/* In memory of its own, where there is some. */
void wk_sequence_keep_rows(wk_sequence *sequence);
void wk_sequence_drop_rows(wk_sequence *sequence);
/* Of logits: only the best are there. */
bool wk_sequence_is_short(const wk_sequence *sequence);
/* Brings the rest of logits that are short. WICK_PENDING: call again. WICK_ERR_DEVICE_LOST: they
 * have to be computed again. */
wick_status wk_sequence_complete(wk_sequence *sequence);
/* The logits of its last token, f32 [n_vocab], at any address. WICK_ERR_OUT_OF_MEMORY. */
wick_status wk_sequence_set_logits(wk_sequence *sequence, const void *logits);

/* --- The cache --- */

/* Positions that are in the cache: fewer than were computed where a device was lost, or where
 * others needed the memory. */
uint32_t wk_sequence_cached(const wk_sequence *sequence);
/* Goes back to the first n of them. False: what layers with a window or with a state have does not
 * go back so far: nothing is kept. Nothing of the sequence may be running, except to be dropped. */
bool wk_sequence_return(wk_sequence *sequence, uint32_t n);
/* Guesses of its last part up to position n of the text ids are tokens of it, others are taken
 * back: called before anything but rows is asked for. Returns the positions that are in the cache
 * then: fewer than n where a state had to go back. */
uint32_t wk_sequence_accept(wk_sequence *sequence, const uint32_t *ids, uint32_t n);
/* Whether it would. */
bool wk_sequence_can_return(const wk_sequence *sequence, uint32_t n);
/* The adapters of its rows, and what each of them is multiplied by; key: the same for the same ones
 * in this order, 0 for none. What it has in the cache is given up; nothing of it may be running,
 * except to be dropped. */
enum { WK_MAX_ADAPTERS = 8 };
typedef struct wk_choice {
    uint32_t n, numbers[WK_MAX_ADAPTERS];
    float scales[WK_MAX_ADAPTERS];
    uint64_t key;
} wk_choice;
void wk_sequence_choose(wk_sequence *sequence, const wk_choice *choice);
const wk_choice *wk_sequence_choice(const wk_sequence *sequence);
/* What it was opened with. */
wk_runner_desc wk_sequence_desc(const wk_sequence *sequence);
/* to, which is new and of the same desc, has what from has in the cache: full blocks are shared. As
 * much as there is memory for; nothing while what was dropped of from is still running. */
void wk_sequence_share(wk_sequence *to, wk_sequence *from);
/* Whether it was lost with a device. */
bool wk_sequence_is_stale(const wk_sequence *sequence);
/* Brings back what was lost. WICK_PENDING: call again. */
wick_status wk_sequence_restore(wk_sequence *sequence);
/* Of a full context, by the cache's type. */
uint64_t wk_sequence_bytes(const wk_sequence *sequence);

/* For who saves and loads. */

wick_dtype wk_sequence_dtype(const wk_sequence *sequence);
/* The state that layer is part of; NULL: its device was lost, or texts are read whole. */
const wk_state *wk_sequence_state(const wk_sequence *sequence, uint32_t layer);
/* The block that position is in, of layers with or without a window; and the slot of recurrent
 * layers' states. */
uint32_t wk_sequence_block(const wk_sequence *sequence, uint32_t position, bool has_window);
uint32_t wk_sequence_slot(const wk_sequence *sequence);
/* The first position whose keys and values layers with a window have. */
uint32_t wk_sequence_window_begin(const wk_sequence *sequence);
/* The first one that they have room for where n positions are there. */
uint32_t wk_sequence_window_room(const wk_sequence *sequence, uint32_t n);
/* Its text ends here for now: the tokens ids, as many as are in the cache, may begin other texts.
 */
void wk_sequence_end_text(wk_sequence *sequence, const uint32_t *ids);
/* From now on the sequence is not computed, and others do not take what it has in the cache. Where
 * it is not held at the next look, it was lost all the same: with a device, or in a batch that
 * failed. */
void wk_sequence_hold(wk_sequence *sequence);
bool wk_sequence_is_held(const wk_sequence *sequence);
void wk_sequence_release(wk_sequence *sequence);
/* Room for n positions. WICK_PENDING: step first, and call again. They are there once the caller
 * has written them and says so; those of layers with a window from window_begin on. */
wick_status wk_sequence_reserve(wk_sequence *sequence, uint32_t n, wick_error *err);
void wk_sequence_resume(wk_sequence *sequence, uint32_t n, uint32_t window_begin);

/* Those without sequences, with what is in their caches: when what the model computes changes, and
 * at its end. */
void wk_runners_drop(wick_model *model);
/* The same, and of those with sequences what none of them has. */
void wk_runners_trim(wick_model *model);

/* How many of the first tokens of ids are in the cache of one of its runners, without adapters. */
uint32_t wk_model_count_known(wick_model *model, const uint32_t *ids, uint32_t n);

/* Begins to compile the kernels for batches of *n_rows rows, a power of two, of a sequence that
 * will be opened with this desc. *n_rows becomes the next size, 0 after the last one. A model
 * without weights yet is described by its header. */
wick_status wk_runner_rehearse(wick_model *model, const wk_runner_desc *desc, uint32_t *n_rows,
                               wick_error *err);

#endif
