/* llm/runner_struct.h: the inside of a runner and of its sequences, for the files that share their
 * cache out (sequence.c), make up batches (batch.c) and compute them (runner.c). */
#ifndef WK_LLM_RUNNER_STRUCT_H
#define WK_LLM_RUNNER_STRUCT_H

#include "llm/blocks.h"
#include "llm/prefix_tree.h"
#include "llm/runner.h"
#include "llm/snapshots.h"

enum {
    WK_MAX_PARTS = 64,   /* sequences in a batch */
    WK_MAX_CHUNK = 8192, /* rows of one */
    WK_LEAST_REUSED = 16 /* tokens that a snapshot saves: fewer are computed again */
};

/* What sequences share out: blocks of keys and values, those of layers with a window, slots of
 * recurrent states. */
enum { WK_POOL_BLOCKS, WK_POOL_WINDOW, WK_POOL_SLOTS, WK_POOL_COUNT };

/* A sequence's own of one pool, in the order of its text. */
typedef struct wk_share {
    uint32_t *ids; /* [capacity] */
    uint32_t n, capacity;
} wk_share;

struct wk_sequence {
    wk_runner *runner;
    wk_sequence *next; /* of the runner */
    wk_waiting_fn waiting;
    void *session;
    uint64_t number; /* the later it was opened, the larger */
    uint64_t served; /* number of its latest batch */
    uint32_t context_length, chunk_length;
    wk_outputs outputs;
    wk_choice choice;

    uint32_t n_cached;
    uint32_t n_reached; /* most tokens that were in the cache since its text was shortened */
    uint32_t n_ahead;   /* of these, the last ones are guesses */
    uint32_t ahead[WK_MOST_STEPS]; /* see wk_result */
    uint32_t n_backed_up;          /* positions that the state in its second slot has seen */
    bool has_no_guesses;           /* a batch with some has failed */
    bool has_no_steps;             /* until it begins again: logits of one had no best token */
    uint32_t n_beside;             /* rows of others in its last batch */
    uint32_t window_begin; /* from this position on, layers with a window have keys and values */
    uint32_t ring_length;  /* blocks of these layers, used in turn; 0: there are none */
    wk_share share[WK_POOL_COUNT];
    /* What is known of its tokens: of the last block, which is not full. Not so of rows of
     * embeddings, and of what follows them. */
    bool is_known;
    uint32_t tail[WK_BLOCK_SIZE]; /* [n_cached % WK_BLOCK_SIZE] */
    uint32_t n_reused;            /* tokens that were found in the tree, for the next result */
    uint32_t snapped, branch; /* positions: of the latest snapshot of its text, and of the next one,
                               * where other texts went on otherwise; 0: none */

    bool is_held;       /* see wk_sequence_hold */
    wk_waiting wants;   /* while a batch is made up; n is 0 once it is set back */
    uint32_t n_running; /* in the batch that is running */
    bool is_dropped;    /* which gives no result */
    bool has_result;
    wk_result result;
    wick_error why;

    /* Rows of outputs: in the batch's memory until the next batch, then its own. */
    uint32_t first_row, n_rows;
    bool is_short;
    float *rows; /* [rows_capacity, row_length]; used where has_own_rows */
    uint32_t rows_capacity;
    bool has_own_rows;
};

/* Of a sequence in a batch. */
typedef struct wk_part {
    wk_sequence *sequence; /* NULL: it was closed */
    wk_waiting waiting;
    uint32_t n, n_outputs; /* rows */
    uint32_t first;        /* position */
    size_t row;            /* its first row of the batch */
} wk_part;

struct wk_runner {
    wk_runner *next; /* of the model */
    wick_model *model;
    wick_device *device; /* the model's */
    const wk_model *net;
    const wk_hparams *hparams;
    wk_runner_desc desc;
    wk_sequence *sequences; /* in the order in which they were served; those of one batch, and those
                             * that never were, as they were opened */
    uint64_t n_opened;

    wk_cache_desc cache; /* as much as there is; its blocks are 0 where texts are read whole */
    wk_blocks pools[WK_POOL_COUNT];
    bool has_prefixes;  /* the tree is used */
    bool has_snapshots; /* a text goes on from one: some layers do not keep all keys and values */
    wk_prefix_tree prefixes;
    wk_snapshots snapshots;
    wk_stage *stages[WK_MAX_STAGES];
    uint32_t n_stages;

    /* The batch on the host, as large as the largest one that there was. */
    wk_stage_batch batch;
    uint32_t max_rows, max_outputs, max_words;
    size_t n_tables, n_hidden; /* floats of all rotary tables, and of hidden rows */
    float *tables;
    float *rows;   /* [max_rows, n_embd] of batch.rows; NULL: there was none yet */
    float *states; /* the same of batch.states */

    wk_part parts[WK_MAX_PARTS]; /* of the batch that is running, or is being made up */
    uint32_t n_parts;
    uint32_t most_rows; /* of a batch, after one that failed; 0: no limit */
    bool has_progress;  /* the last batch reached further into a text than any before */
    bool is_careful;    /* after a loss amid several steps: one at a time until there is progress */
    uint64_t n_batches, begun_ns;
    uint64_t costs[2][WK_COST_CLASSES]; /* see wk_sequence_costs */
    bool is_running;
    uint32_t at;    /* the stage that is computing */
    bool has_begun; /* else its kernels compile */
};

/* The stages of the model that a runner of the desc computes. */
static inline uint32_t wk_runner_first_stage(const wk_runner_desc *desc) {
    return desc->is_head ? WK_HEAD_STAGE : 0;
}
static inline uint32_t wk_runner_count_stages(const wk_model *net, const wk_runner_desc *desc) {
    return desc->is_head ? 1 : wk_model_placement(net)->n_stages;
}
/* Its sequences carry states, which cannot go back. */
static inline bool wk_runner_is_recurrent(const wk_runner *runner) {
    return runner->hparams->is_recurrent && !runner->desc.is_head;
}

static inline wk_heap *wk_runner_heap(const wk_runner *runner) {
    return wk_device_heap(runner->device);
}
/* Grows with all that changes in its cache. */
static inline uint64_t wk_runner_clock(const wk_runner *runner) {
    return runner->prefixes.clock + runner->snapshots.clock + runner->n_batches;
}
/* Where its failures go. */
static inline wick_error *wk_runner_err(const wk_runner *runner) {
    return wk_device_err(runner->device);
}

/* runner.c: whether a sequence can be of this kind. */
wick_status wk_runner_check(const wick_model *model, const wk_runner_desc *desc, wick_error *err);
/* For the first sequence of its kind. */
wick_status wk_runner_make(wick_model *model, const wk_runner_desc *desc, wk_runner **out,
                           wick_error *err);
void wk_runner_free(wk_runner *runner);
/* Numbers in a row of outputs. */
size_t wk_runner_row_length(const wk_runner *runner);
bool wk_runner_is_stale(const wk_runner *runner);

/* The failure is the sequence's. */
void wk_sequence_fail(wk_sequence *sequence, wick_status status, const wick_error *why);
/* Whether a failure is the loss of a device: what was lost has only not run yet, and the next batch
 * brings the device back, unless another session has by then. A device may refuse a call before it
 * says that it is lost. */
bool wk_runner_is_loss(const wk_runner *runner, wick_status status);

/* batch.c: makes up the parts of the next batch; none: no sequence waits, or what waits has no
 * room. Fails where a device is lost. */
wick_status wk_batch_choose(wk_runner *runner);
/* Its descriptor, with memory for what goes in and comes out. */
wick_status wk_batch_describe(wk_runner *runner);
/* The same for its next step, see wk_stage_batch; false: there is none. */
bool wk_batch_next_step(wk_runner *runner);
/* Whether its batches may have several. */
bool wk_batch_may_run_ahead(const wk_runner *runner);
/* How large a batch is, its class. */
typedef struct wk_batch_size {
    uint32_t n_rows, n_outputs, n_sequences, n_blocks, n_adapters;
} wk_batch_size;
void wk_batch_lay_out(wk_runner *runner, wk_batch_size size);
/* Blocks of the class of key lengths that n_keys are in: 256, 512, 1024, ... keys, or all that a
 * context has room for. What a plan dispatches, and what it is expected to cost, follows its class.
 */
uint32_t wk_batch_blocks(uint32_t n_keys, uint32_t context_length);
/* Whether some batch of such outputs has this many rows, a power of two. */
bool wk_batch_is_used(const wk_runner *runner, uint32_t n_rows, wk_outputs outputs);
/* Memory that depends on the number of rows. */
void wk_batch_free_rows(wk_runner *runner);
uint32_t wk_round_up_to_power(uint32_t n);

/* --- sequence.c --- */

/* Room for n positions, in blocks that are its own from n_cached on. On failure the device holds
 * the sentence; WICK_PENDING: others need the memory first. */
wick_status wk_sequence_make_room(wk_sequence *sequence, uint32_t n);
/* Before a part with guesses: keeps the state of its recurrent layers. On failure the device holds
 * the sentence; WICK_PENDING: there is no room now. */
wick_status wk_sequence_back_up(wk_sequence *sequence);
/* Tokens at positions first, ... first + n - 1 are going to be: of layers with a window they take
 * the place of others. */
void wk_sequence_note_written(wk_sequence *sequence, uint32_t first, uint32_t n);
/* Of one of its pools: how many blocks or slots n positions take; there will be n, for which others
 * may give up theirs; those after the first n_kept go back. */
uint32_t wk_sequence_wanted(const wk_sequence *sequence, int pool, uint32_t n);
wick_status wk_sequence_reserve_share(wk_sequence *sequence, int pool, uint32_t n);
void wk_sequence_give_back(wk_sequence *sequence, int pool, uint32_t n_kept);
/* The block at index becomes its own: a copy where others have it, too. */
wick_status wk_sequence_own_block(wk_sequence *sequence, uint32_t index);
/* It has nothing in the cache any more. */
void wk_sequence_give_all(wk_sequence *sequence);
/* The one for such sequences, which is made where there is none. */
wick_status wk_runner_find(wick_model *model, const wk_runner_desc *desc, wk_runner **out,
                           wick_error *err);
/* A block for the tree, without dropping anything; WK_NO_BLOCK: there is no room. */
uint32_t wk_runner_take_block(wk_runner *runner);
/* Nothing of any sequence is in the cache any more. */
void wk_runner_forget(wk_runner *runner);

/* --- sequence_prefix.c --- */

/* The tokens ids, of which n are in the cache now, n_before were before: full blocks of them become
 * known to other sequences. */
void wk_sequence_learn(wk_sequence *sequence, const uint32_t *ids, uint32_t n_before, uint32_t n);
/* Before it gives up its last block, which is not full: others may find it, unless no text could go
 * on from it without a snapshot. */
void wk_sequence_leave_tail(wk_sequence *sequence);
/* The same of all sequences but those with guesses, whose last block is written to again. */
void wk_runner_learn_tails(wk_runner *runner);
/* Before it goes back to n tokens: those of the last block then; blocks before it are in the tree.
 */
void wk_sequence_recall_tail(wk_sequence *sequence, uint32_t n);
/* Of layers that do not keep everything, a snapshot after its tokens ids, which are in the cache.
 */
void wk_sequence_snapshot(wk_sequence *sequence, const uint32_t *ids);
/* How many tokens a chunk may have at most to end where the next snapshot is due. */
uint32_t wk_sequence_until_snapshot(const wk_sequence *sequence);
/* Before a part is made of its tokens ids [n], of which at least one is computed: goes on after the
 * longest beginning of them that is in the cache for any sequence. On failure the device holds the
 * sentence. */
wick_status wk_sequence_find_prefix(wk_sequence *sequence, const uint32_t *ids, uint32_t n);

#endif
