/* llm/snapshots.c: see snapshots.h. A snapshot is packed on its device and read by a ticket: the
 * batch that follows does not wait for it. */
#include "llm/snapshots.h"

#include "llm/runner_struct.h"

#include <wick/ops.h>

#include <assert.h>
#include <string.h>

/* --- The list --- */

static size_t count_bytes(const wk_snapshot *snapshot, uint32_t n_stages) {
    size_t bytes = 0;
    for (uint32_t i = 0; i < n_stages; i++) bytes += snapshot->sizes[i];
    return bytes;
}

static uint64_t total_bytes(const wk_runner *runner, const wk_snapshot *snapshot) {
    return sizeof *snapshot + snapshot->n * sizeof *snapshot->ids +
           count_bytes(snapshot, runner->n_stages);
}

static void remove_one(wk_runner *runner, wk_snapshot *snapshot) {
    wk_snapshot **at = &runner->snapshots.first;
    while (*at != snapshot) at = &(*at)->next;
    *at = snapshot->next;
    runner->snapshots.clock++; /* as wk_prefix_remove */
    runner->snapshots.bytes -= total_bytes(runner, snapshot);
    for (uint32_t i = 0; i < runner->n_stages; i++)
        if (snapshot->readings[i]) (void)wick_read_finish(snapshot->readings[i], NULL, 0);
    wk_heap *const heap = wk_runner_heap(runner);
    wk_free(heap, snapshot->ids, snapshot->n * sizeof *snapshot->ids);
    wk_free(heap, snapshot->bytes, count_bytes(snapshot, runner->n_stages));
    wk_free(heap, snapshot, sizeof *snapshot);
}

void wk_snapshots_drop(wk_runner *runner) {
    while (runner->snapshots.first) remove_one(runner, runner->snapshots.first);
}

/* False: it would have no room alone. */
static bool make_room(wk_runner *runner, uint64_t bytes) {
    const uint64_t budget = runner->model->snapshot_budget;
    if (bytes > budget) return false;
    while (runner->snapshots.bytes > budget - bytes) {
        wk_snapshot *oldest = runner->snapshots.first;
        for (wk_snapshot *s = oldest; s; s = s->next)
            if (s->used < oldest->used) oldest = s;
        remove_one(runner, oldest);
    }
    return true;
}

static bool begins_with(const wk_snapshot *snapshot, uint64_t key, const uint32_t *ids) {
    return snapshot->key == key && memcmp(snapshot->ids, ids, snapshot->n * sizeof *ids) == 0;
}

bool wk_snapshot_is_here(const wk_runner *runner, const wk_snapshot *snapshot) {
    for (uint32_t i = 0; i < runner->n_stages; i++)
        if (snapshot->readings[i]) return false;
    return true;
}

wk_snapshot *wk_snapshot_find(wk_runner *runner, uint64_t key, const uint32_t *ids, uint32_t n,
                              uint32_t n_before) {
    wk_snapshot *best = NULL;
    wk_snapshots_poll(runner);
    for (wk_snapshot *s = runner->snapshots.first; s; s = s->next)
        if (s->n > (best ? best->n : n_before) && s->n <= n && wk_snapshot_is_here(runner, s) &&
            begins_with(s, key, ids))
            best = s;
    if (best) best->used = ++runner->snapshots.clock;
    return best;
}

static bool is_known(wk_runner *runner, uint64_t key, const uint32_t *ids, uint32_t n) {
    for (wk_snapshot *s = runner->snapshots.first; s; s = s->next) {
        if (s->n != n || !begins_with(s, key, ids)) continue;
        s->used = ++runner->snapshots.clock;
        return true;
    }
    return false;
}

/* --- Sizes --- */

/* Blocks of layers with a window from position begin to n - 1. */
static uint32_t count_window(const wk_runner *runner, uint32_t begin, uint32_t n) {
    return runner->cache.n_window_blocks == 0 ? 0 : wk_blocks_for(n) - begin / WK_BLOCK_SIZE;
}

static size_t cell_bytes(const wk_runner *runner, uint32_t stage, wk_state_kind kind) {
    return wk_state_cell_bytes(runner->net, wk_stage_state(runner->stages[stage]), kind);
}

static size_t stage_bytes(const wk_runner *runner, uint32_t stage, uint32_t n, uint32_t begin) {
    return count_window(runner, begin, n) * cell_bytes(runner, stage, WK_STATE_WINDOW_BLOCKS) +
           cell_bytes(runner, stage, WK_STATE_SLOTS);
}

size_t wk_snapshot_size(const wk_runner *runner, uint32_t n, uint32_t begin) {
    size_t bytes = 0;
    for (uint32_t i = 0; i < runner->n_stages; i++) bytes += stage_bytes(runner, i, n, begin);
    return bytes;
}

wk_snapshot *wk_snapshot_add(wk_runner *runner, uint64_t key, const uint32_t *ids, uint32_t n,
                             uint32_t begin) {
    wk_heap *const heap = wk_runner_heap(runner);
    wk_snapshot made = {.key = key, .n = n, .begin = begin};
    for (uint32_t i = 0; i < runner->n_stages; i++)
        made.sizes[i] = stage_bytes(runner, i, n, begin);
    if (is_known(runner, key, ids, n) || !make_room(runner, total_bytes(runner, &made)))
        return NULL;
    wk_snapshot *const s = wk_alloc(heap, sizeof *s);
    made.ids = wk_alloc_array(heap, n, sizeof *ids);
    made.bytes = wk_alloc(heap, count_bytes(&made, runner->n_stages));
    if (!s || !made.ids || !made.bytes) {
        wk_free(heap, s, sizeof *s);
        wk_free(heap, made.ids, n * sizeof *ids);
        wk_free(heap, made.bytes, count_bytes(&made, runner->n_stages));
        return NULL;
    }
    memcpy(made.ids, ids, n * sizeof *ids);
    made.used = ++runner->snapshots.clock;
    made.next = runner->snapshots.first;
    *s = made;
    runner->snapshots.first = s;
    runner->snapshots.bytes += total_bytes(runner, s);
    return s;
}

/* --- Taking --- */

static bool pack(const wk_sequence *sequence, const wk_snapshot *s, uint32_t stage,
                 wick_tensor *packed) {
    const wk_runner *const runner = sequence->runner;
    const wk_state *const state = wk_stage_state(runner->stages[stage]);
    const uint32_t first = s->begin / WK_BLOCK_SIZE, n = count_window(runner, s->begin, s->n);
    int64_t at = 0;
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t block = wk_sequence_block(sequence, (first + i) * WK_BLOCK_SIZE, true);
        if (!wk_state_pack(runner->net, state, WK_STATE_WINDOW_BLOCKS, block, packed, &at))
            return false;
    }
    return !runner->hparams->is_recurrent || wk_state_pack(runner->net, state, WK_STATE_SLOTS,
                                                           wk_sequence_slot(sequence), packed, &at);
}

static bool start_reading(const wk_sequence *sequence, wk_snapshot *s, uint32_t stage) {
    if (s->sizes[stage] == 0) return true;
    wick_device *const device = wk_model_placement(sequence->runner->net)->stages[stage].device;
    const wick_scope scope = wick_scope_begin(device);
    wick_tensor *const packed =
        wick_empty(device, WICK_U32, WICK_SHAPE(1, (int64_t)(s->sizes[stage] / sizeof(uint32_t))));
    const bool is_started = packed && pack(sequence, s, stage, packed) &&
                            wick_read_start(packed, &s->readings[stage]) == WICK_OK;
    wick_scope_end(scope);
    return is_started;
}

void wk_snapshot_take(wk_sequence *sequence, const uint32_t *ids) {
    wk_runner *const runner = sequence->runner;
    const uint32_t n = sequence->n_cached, begin = wk_window_begin(runner->hparams->window, n);
    if (wk_runner_is_stale(runner) || sequence->window_begin > begin) return;
    wk_snapshot *const s = wk_snapshot_add(runner, sequence->choice.key, ids, n, begin);
    for (uint32_t i = 0; s && i < runner->n_stages; i++) {
        if (start_reading(sequence, s, i)) continue;
        remove_one(runner, s);
        *wk_runner_err(runner) = (wick_error){.status = WICK_OK};
        return;
    }
}

/* False: it was lost. */
static bool poll_one(const wk_runner *runner, wk_snapshot *s) {
    unsigned char *to = s->bytes;
    for (uint32_t i = 0; i < runner->n_stages; to += s->sizes[i++]) {
        if (!s->readings[i] || wick_read_poll(s->readings[i]) == WICK_PENDING) continue;
        const wick_status status = wick_read_finish(s->readings[i], to, s->sizes[i]);
        s->readings[i] = NULL;
        if (status != WICK_OK) return false;
    }
    return true;
}

void wk_snapshots_poll(wk_runner *runner) {
    for (wk_snapshot *s = runner->snapshots.first, *next; s; s = next) {
        next = s->next;
        if (poll_one(runner, s)) continue;
        remove_one(runner, s);
        *wk_runner_err(runner) = (wick_error){.status = WICK_OK};
    }
}

/* --- Going on from one --- */

wick_status wk_snapshot_restore(wk_sequence *sequence, const wk_snapshot *snapshot) {
    const wk_runner *const runner = sequence->runner;
    const wk_snapshot *const s = snapshot;
    const uint32_t first = s->begin / WK_BLOCK_SIZE, n = count_window(runner, s->begin, s->n);
    const unsigned char *from = s->bytes;
    for (uint32_t i = 0; i < runner->n_stages; i++) {
        const wk_state *const state = wk_stage_state(runner->stages[i]);
        const size_t size = cell_bytes(runner, i, WK_STATE_WINDOW_BLOCKS);
        for (uint32_t k = 0; k < n && size > 0; k++, from += size)
            WK_TRY(wk_state_unpack(runner->net, state, WK_STATE_WINDOW_BLOCKS,
                                   wk_sequence_block(sequence, (first + k) * WK_BLOCK_SIZE, true),
                                   from));
        if (!runner->hparams->is_recurrent) continue;
        WK_TRY(
            wk_state_unpack(runner->net, state, WK_STATE_SLOTS, wk_sequence_slot(sequence), from));
        from += cell_bytes(runner, i, WK_STATE_SLOTS);
    }
    return WICK_OK;
}
