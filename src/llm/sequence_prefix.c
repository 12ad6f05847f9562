/* llm/sequence_prefix.c: what sequences teach the tree of prefixes and take from it: blocks that
 * others have computed, and snapshots of what layers do not keep. */
#include "llm/runner_struct.h"

#include <string.h>

enum { SNAPSHOT_TOKENS = 512 }; /* of a prompt, between two snapshots */

/* --- Learning --- */

/* The block at index holds n tokens that others may find from now on; where others had them before,
 * theirs takes its place. */
static void learn_block(wk_sequence *s, uint32_t index, const uint32_t *ids, uint32_t n) {
    wk_blocks *const pool = &s->runner->pools[WK_POOL_BLOCKS];
    uint32_t *const own = s->share[WK_POOL_BLOCKS].ids;
    const uint32_t parent = index > 0 ? own[index - 1] : WK_NO_BLOCK;
    const bool was_known = s->runner->prefixes.nodes[own[index]].n > 0;
    const uint32_t known =
        wk_prefix_add(&s->runner->prefixes, s->choice.key, parent, ids, n, own[index]);
    if (known == own[index] && was_known) return;
    wk_blocks_share(pool, known); /* for the tree, or instead of its own */
    if (known == own[index]) return;
    wk_blocks_give(pool, own[index]);
    own[index] = known;
}

void wk_sequence_learn(wk_sequence *sequence, const uint32_t *ids, uint32_t n_before, uint32_t n) {
    wk_sequence *const s = sequence;
    if (!s->runner->has_prefixes) return;
    if (n_before == 0) s->is_known = true;
    for (uint32_t i = n_before; i < n && s->is_known; i++) {
        s->is_known = ids[i] != WICK_NO_TOKEN;
        s->tail[i % WK_BLOCK_SIZE] = ids[i];
        if (s->is_known && (i + 1) % WK_BLOCK_SIZE == 0)
            learn_block(s, i / WK_BLOCK_SIZE, s->tail, WK_BLOCK_SIZE);
    }
}

/* What is left of the text after full blocks. */
static void learn_tail(wk_sequence *s) {
    const uint32_t n = s->n_cached % WK_BLOCK_SIZE;
    if (s->runner->has_prefixes && s->is_known && n > 0)
        learn_block(s, s->n_cached / WK_BLOCK_SIZE, s->tail, n);
}

void wk_sequence_leave_tail(wk_sequence *sequence) {
    wk_sequence *const s = sequence;
    if (!s->runner->has_snapshots) learn_tail(s);
}

void wk_runner_learn_tails(wk_runner *runner) {
    for (wk_sequence *s = runner->sequences; s; s = s->next)
        if (s->n_running == 0 && s->n_ahead == 0) wk_sequence_leave_tail(s);
}

void wk_sequence_recall_tail(wk_sequence *sequence, uint32_t n) {
    wk_sequence *const s = sequence;
    const uint32_t index = n / WK_BLOCK_SIZE;
    const bool is_same = index == s->n_cached / WK_BLOCK_SIZE;
    if (!s->runner->has_prefixes || is_same || n % WK_BLOCK_SIZE == 0) return;
    const uint32_t block = s->share[WK_POOL_BLOCKS].ids[index];
    const wk_prefix_node *const node = &s->runner->prefixes.nodes[block];
    s->is_known = node->n == WK_BLOCK_SIZE;
    if (s->is_known) memcpy(s->tail, node->tokens, sizeof s->tail);
}

/* --- Finding --- */

/* Its blocks become those of a prefix of n tokens; of the last one, where it is not full, a copy,
 * if there is room for it. */
static wick_status adopt(wk_sequence *s, const uint32_t *blocks, uint32_t n) {
    wk_blocks *const pool = &s->runner->pools[WK_POOL_BLOCKS];
    wk_share *const own = &s->share[WK_POOL_BLOCKS];
    const uint32_t n_blocks = wk_blocks_for(n), n_full = n / WK_BLOCK_SIZE;
    for (uint32_t i = 0; i < n_blocks; i++) wk_blocks_share(pool, blocks[i]);
    wk_sequence_leave_tail(s);
    wk_sequence_give_back(s, WK_POOL_BLOCKS, 0);
    memcpy(own->ids, blocks, n_blocks * sizeof *blocks);
    own->n = n_blocks;
    s->n_cached = n;
    s->is_known = true;
    if (n_full == n_blocks) return WICK_OK;
    memcpy(s->tail, s->runner->prefixes.nodes[blocks[n_full]].tokens, sizeof s->tail);
    const wick_status status = wk_sequence_own_block(s, n_full);
    if (status == WICK_OK) return WICK_OK;
    s->n_cached = n_full * WK_BLOCK_SIZE;
    wk_sequence_give_back(s, WK_POOL_BLOCKS, n_full);
    if (wk_runner_is_loss(s->runner, status)) return status;
    *wk_runner_err(s->runner) = (wick_error){.status = WICK_OK};
    return WICK_OK;
}

/* What a snapshot has of layers that do not keep everything. */
static wick_status take_over(wk_sequence *s, const wk_snapshot *snapshot) {
    WK_TRY(wk_sequence_reserve_share(s, WK_POOL_WINDOW,
                                     wk_sequence_wanted(s, WK_POOL_WINDOW, snapshot->n)));
    WK_TRY(wk_sequence_reserve_share(s, WK_POOL_SLOTS,
                                     wk_sequence_wanted(s, WK_POOL_SLOTS, snapshot->n)));
    WK_TRY(wk_snapshot_restore(s, snapshot));
    s->window_begin = wk_larger(snapshot->begin, wk_sequence_window_room(s, snapshot->n));
    s->snapped = snapshot->n;
    return WICK_OK;
}

/* After its blocks were adopted, with that status: all of it, or the text begins again. */
static wick_status go_on_from(wk_sequence *s, const wk_snapshot *snapshot, wick_status status) {
    if (status == WICK_OK) status = WICK_PENDING;
    if (status == WICK_PENDING && s->n_cached == snapshot->n) status = take_over(s, snapshot);
    if (status == WICK_OK) return WICK_OK;
    s->is_known = false; /* of its last block */
    wk_sequence_give_all(s);
    if (wk_runner_is_loss(s->runner, status)) return status;
    *wk_runner_err(s->runner) = (wick_error){.status = WICK_OK};
    return WICK_OK;
}

/* Where a text goes on from: the first `found` tokens of ids are in blocks. The next snapshot is
 * due where that is further than the last one: other texts have branched off there before. */
static uint32_t find_snapshot(wk_sequence *s, const uint32_t *ids, uint32_t found,
                              const wk_snapshot **out) {
    *out = wk_snapshot_find(s->runner, s->choice.key, ids, found, s->n_cached);
    const uint32_t n = *out ? (*out)->n : s->n_cached;
    s->branch = found >= n + WK_LEAST_REUSED ? found : 0;
    return n;
}

wick_status wk_sequence_find_prefix(wk_sequence *sequence, const uint32_t *ids, uint32_t n) {
    wk_sequence *const s = sequence;
    wk_runner *const runner = s->runner;
    if (!runner->has_prefixes || n == 0 || wk_blocks_for(n) > s->share[WK_POOL_BLOCKS].capacity)
        return WICK_OK;
    uint32_t *const blocks =
        wk_alloc_array(wk_runner_heap(runner), wk_blocks_for(n) + 1, sizeof *blocks);
    if (!blocks) return WICK_OK; /* then it is computed */
    uint32_t found = wk_prefix_find(&runner->prefixes, s->choice.key, ids, n, blocks);
    const wk_snapshot *snapshot = NULL;
    if (runner->has_snapshots) found = find_snapshot(s, ids, found, &snapshot);
    wick_status status = WICK_OK;
    if (found > s->n_cached) status = adopt(s, blocks, found);
    if (snapshot) status = go_on_from(s, snapshot, status);
    wk_free(wk_runner_heap(runner), blocks, (wk_blocks_for(n) + 1) * sizeof *blocks);
    return status;
}

/* --- Snapshots --- */

void wk_sequence_snapshot(wk_sequence *sequence, const uint32_t *ids) {
    wk_sequence *const s = sequence;
    if (!s->runner->has_snapshots || !s->is_known || s->n_cached < WK_LEAST_REUSED ||
        s->n_cached == s->snapped)
        return;
    learn_tail(s);
    wk_snapshot_take(s, ids);
    s->snapped = s->n_cached;
}

void wk_sequence_end_text(wk_sequence *sequence, const uint32_t *ids) {
    if (sequence->n_running == 0) wk_sequence_snapshot(sequence, ids);
}

uint32_t wk_sequence_until_snapshot(const wk_sequence *sequence) {
    const wk_sequence *const s = sequence;
    if (!s->runner->has_snapshots) return UINT32_MAX;
    const uint32_t every = wk_larger(SNAPSHOT_TOKENS, s->chunk_length), n = s->n_cached;
    const uint32_t due = every - n % every;
    return s->branch > n ? wk_smaller(due, s->branch - n) : due;
}
