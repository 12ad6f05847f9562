/* llm/runner.h: runs batches of tokens through the model: cache blocks, batch descriptors, and the
 * stages one after the other.
 *
 * A batch of n tokens is rounded up to a power of two rows, or less for whole texts: each such
 * class is recorded once and then replayed. Padding rows belong to no sequence and write nothing.
 */
#ifndef WK_LLM_RUNNER_H
#define WK_LLM_RUNNER_H

#include "llm/llm.h"
#include "llm/stage.h"

typedef struct wk_runner wk_runner;

wick_status wk_runner_make(wick_model *model, const wk_runner_desc *desc, wk_runner **out,
                           wick_error *err);
void wk_runner_free(wk_runner *runner);

/* The runner's device was lost, with all that the runner had on it: call wk_runner_renew before the
 * next start. That leaves the cache empty and the logits as they are. */
bool wk_runner_is_stale(const wk_runner *runner);
wick_status wk_runner_renew(wk_runner *runner);

/* Whether a batch may begin at position first although later tokens were computed: layers with a
 * window still have the keys and values that it needs. */
bool wk_runner_can_return(const wk_runner *runner, uint32_t first);
/* How many of the next tokens go into one batch. */
uint32_t wk_runner_chunk(const wk_runner *runner, uint32_t n_waiting, wk_outputs outputs);
/* Begins to compile the kernels for batches of *n_rows rows, a power of two, of a runner that will
 * be made with this desc. *n_rows becomes the next size, 0 after the last one. A model without
 * weights yet is described by its header. */
wick_status wk_runner_rehearse(wick_model *model, const wk_runner_desc *desc, uint32_t *n_rows,
                               wick_error *err);
/* n tokens (as wk_runner_chunk says) at positions first, first + 1, ... An id may be WICK_NO_TOKEN:
 * the next of the rows [.., n_embd] is taken in its place. */
typedef struct wk_runner_input {
    const uint32_t *ids;
    const float *rows;
    uint32_t n, first;
} wk_runner_input;

/* Starts a batch. is_short: of its logits the WK_SHORTLIST best are enough, all others may be
 * -infinity. WICK_PENDING: kernels compile, call again. */
wick_status wk_runner_start(wk_runner *runner, const wk_runner_input *input, wk_outputs outputs,
                            bool is_short);
/* WICK_PENDING, WICK_OK: the batch has run and its logits are there, or its error. */
wick_status wk_runner_poll(wk_runner *runner);
/* Row of [n_vocab] logits, or of [n_embd] states: i counts the batch's outputs. Valid until the
 * next start. */
const float *wk_runner_logits(const wk_runner *runner, uint32_t i);
/* Brings the rest of the last batch's logits. WICK_PENDING: call again. WICK_ERR_DEVICE_LOST: they
 * have to be computed again. */
wick_status wk_runner_complete(wk_runner *runner);

/* For who saves and loads what a runner holds; no batch may be running. */

wk_cache_desc wk_runner_cache(const wk_runner *runner);
/* The state that layer is part of; NULL: its device was lost, or texts are read whole. */
const wk_state *wk_runner_state(const wk_runner *runner, uint32_t layer);
/* The first position whose keys and values layers with a window have. */
uint32_t wk_runner_window_begin(const wk_runner *runner);
/* As many of them as they have room for, where n positions are there. */
uint32_t wk_runner_window_room(const wk_runner *runner, uint32_t n);
/* n positions are in the cache from now on; those of layers with a window from window_begin on. */
void wk_runner_resume(wk_runner *runner, uint32_t n, uint32_t window_begin);
/* The logits of the last token, f32 [n_vocab], at any address. WICK_ERR_OUT_OF_MEMORY. */
wick_status wk_runner_set_logits(wk_runner *runner, const void *logits);

uint64_t wk_runner_cache_bytes(const wk_runner *runner);

#endif
