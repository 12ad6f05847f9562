/* llm/sequence.c: sequences and their shares of the runner's cache: opening, growing, setting back,
 * forking. */
#include "llm/runner_struct.h"

#include "model/rope.h"

#include <assert.h>
#include <string.h>

/* --- Shares --- */

void wk_sequence_give_back(wk_sequence *sequence, int pool, uint32_t n_kept) {
    wk_sequence *const s = sequence;
    wk_share *const share = &s->share[pool];
    while (share->n > n_kept) wk_blocks_give(&s->runner->pools[pool], share->ids[--share->n]);
}

/* --- Giving back --- */

void wk_sequence_give_all(wk_sequence *sequence) {
    wk_sequence *const s = sequence;
    s->n_cached -= s->n_ahead; /* what is not known of it is not learned */
    s->n_ahead = 0;
    wk_sequence_leave_tail(s);
    for (int pool = 0; pool < WK_POOL_COUNT; pool++) wk_sequence_give_back(s, pool, 0);
    s->n_cached = s->window_begin = s->n_reused = s->wants.n = 0;
    s->snapped = s->branch = 0;
    s->is_held = false;
    s->is_known = true;
}

static bool drop_prefix(wk_runner *runner) {
    wk_blocks *const pool = &runner->pools[WK_POOL_BLOCKS];
    const uint32_t block = wk_prefix_drop(&runner->prefixes, pool);
    if (block != WK_NO_BLOCK) wk_blocks_give(pool, block);
    return block != WK_NO_BLOCK;
}

void wk_runner_forget(wk_runner *runner) {
    for (wk_sequence *s = runner->sequences; s; s = s->next) wk_sequence_give_all(s);
    while (drop_prefix(runner)) continue;
    wk_snapshots_drop(runner);
}

/* How much of each pool the sequence has with n positions. */
uint32_t wk_sequence_wanted(const wk_sequence *sequence, int pool, uint32_t n) {
    const wk_sequence *const s = sequence;
    if (pool == WK_POOL_SLOTS) return wk_runner_is_recurrent(s->runner) && n > 0;
    return pool == WK_POOL_WINDOW ? wk_smaller(wk_blocks_for(n), s->ring_length) : wk_blocks_for(n);
}

static uint32_t *room_of(wk_cache_desc *cache, int pool) {
    return pool == WK_POOL_SLOTS    ? &cache->n_slots
           : pool == WK_POOL_WINDOW ? &cache->n_window_blocks
                                    : &cache->n_blocks;
}

/* --- Growing --- */

/* Blocks that all sequences together have at most: as many as the cache's budget has room for, and
 * as the longest of them may need alone. Without a budget, as many as the device gives. */
static uint32_t most_blocks(const wk_runner *runner) {
    uint32_t longest = 1;
    for (const wk_sequence *s = runner->sequences; s; s = s->next)
        longest = wk_larger(longest, wk_blocks_for(s->context_length));
    uint64_t block_bytes = 0;
    const wk_cache_desc one = {1, WK_BLOCK_SIZE, runner->desc.cache_dtype, 0, 0};
    /* A head has as many blocks as its model. */
    for (uint32_t i = 0; i < wk_model_placement(runner->net)->n_stages; i++)
        block_bytes += wk_state_bytes(runner->net, i, &one);
    const uint64_t budget = runner->model->cache_budget;
    if (block_bytes == 0 || budget == 0 || budget / block_bytes > INT32_MAX) return INT32_MAX;
    return wk_larger(longest, (uint32_t)(budget / block_bytes));
}

/* A pool gets twice as many as it has, where it may. WICK_PENDING: it may not. */
static wick_status grow(wk_runner *runner, int pool) {
    wk_cache_desc cache = runner->cache;
    uint32_t *const room = room_of(&cache, pool);
    const uint32_t most = pool == WK_POOL_BLOCKS ? most_blocks(runner) : INT32_MAX;
    if (*room >= most) return WICK_PENDING;
    *room = *room > most / 2 ? most : 2 * *room;
    for (uint32_t i = 0; i < runner->n_stages; i++)
        WK_TRY(wk_stage_grow(runner->stages[i], &cache));
    wick_error *const err = wk_runner_err(runner);
    if (pool == WK_POOL_BLOCKS && runner->has_prefixes)
        WK_TRY(wk_prefix_grow(wk_runner_heap(runner), &runner->prefixes, *room, err));
    WK_TRY(wk_blocks_grow(wk_runner_heap(runner), &runner->pools[pool], *room, err));
    runner->cache = cache;
    return WICK_OK;
}

static bool is_in_batch(const wk_sequence *s) {
    const wk_runner *const runner = s->runner;
    for (uint32_t i = 0; i < runner->n_parts; i++)
        if (runner->parts[i].sequence == s) return true;
    return false;
}

/* The sequence that gives up its cache: of those with nothing to compute, which may never be
 * stepped again, the one that was served longest ago, else the youngest, if it is younger than s.
 * NULL: there is none. */
static wk_sequence *find_victim(const wk_sequence *s) {
    wk_sequence *idle = NULL, *youngest = NULL;
    for (wk_sequence *other = s->runner->sequences; other; other = other->next) {
        if (other == s || other->is_held || is_in_batch(other)) continue;
        if (other->share[WK_POOL_BLOCKS].n == 0) continue;
        const bool is_idle = other->has_result || other->waiting(other->session).n == 0;
        if (is_idle && (!idle || other->served < idle->served)) idle = other;
        if (!is_idle && other->number > s->number &&
            (!youngest || other->number > youngest->number))
            youngest = other;
    }
    return idle ? idle : youngest;
}

/* A text that is over goes first, then what a sequence has. False: there is neither. */
static bool make_free(wk_sequence *s, int pool) {
    if (pool == WK_POOL_BLOCKS && drop_prefix(s->runner)) return true;
    wk_sequence *const victim = find_victim(s);
    if (victim) wk_sequence_give_all(victim);
    return victim != NULL;
}

static wick_status take(wk_sequence *s, int pool, uint32_t *id) {
    for (;;) {
        *id = wk_blocks_take(&s->runner->pools[pool]);
        if (*id != WK_NO_BLOCK) return WICK_OK;
        if (s->runner->is_running) return WICK_PENDING; /* with the tensors that there are */
        const wick_status status = grow(s->runner, pool);
        if (status == WICK_OK) continue;
        if (status == WICK_ERR_DEVICE_LOST) return status;
        if (!make_free(s, pool)) return status;
        *wk_runner_err(s->runner) = (wick_error){.status = WICK_OK};
    }
}

uint32_t wk_runner_take_block(wk_runner *runner) {
    wk_blocks *const pool = &runner->pools[WK_POOL_BLOCKS];
    const uint32_t block = wk_blocks_take(pool);
    if (block != WK_NO_BLOCK || grow(runner, WK_POOL_BLOCKS) == WICK_OK)
        return block != WK_NO_BLOCK ? block : wk_blocks_take(pool);
    *wk_runner_err(runner) = (wick_error){.status = WICK_OK};
    return WK_NO_BLOCK;
}

wick_status wk_sequence_reserve_share(wk_sequence *sequence, int pool, uint32_t n) {
    wk_sequence *const s = sequence;
    wk_share *const share = &s->share[pool];
    assert(n <= share->capacity);
    while (share->n < n) {
        uint32_t id = 0;
        WK_TRY(take(s, pool, &id));
        share->ids[share->n++] = id;
    }
    return WICK_OK;
}

static wick_status copy_cell(const wk_runner *runner, int pool, uint32_t from, uint32_t to) {
    static const wk_state_kind kinds[WK_POOL_COUNT] = {
        [WK_POOL_BLOCKS] = WK_STATE_BLOCKS,
        [WK_POOL_WINDOW] = WK_STATE_WINDOW_BLOCKS,
        [WK_POOL_SLOTS] = WK_STATE_SLOTS,
    };
    for (uint32_t i = 0; i < runner->n_stages; i++)
        WK_TRY(wk_stage_copy(runner->stages[i], kinds[pool], from, to));
    return WICK_OK;
}

/* A block that only the tree has beside a sequence, which has no room for a copy. */
static bool unlearn_block(wk_runner *runner, uint32_t block) {
    wk_blocks *const pool = &runner->pools[WK_POOL_BLOCKS];
    if (pool->refs[block] > 2 || !wk_prefix_remove(&runner->prefixes, block)) return false;
    wk_blocks_give(pool, block);
    *wk_runner_err(runner) = (wick_error){.status = WICK_OK};
    return true;
}

/* The block that the next position goes to, where others have it, too: a copy of its own. */
wick_status wk_sequence_own_block(wk_sequence *sequence, uint32_t index) {
    wk_sequence *const s = sequence;
    wk_share *const share = &s->share[WK_POOL_BLOCKS];
    if (index >= share->n ||
        !wk_blocks_is_shared(&s->runner->pools[WK_POOL_BLOCKS], share->ids[index]))
        return WICK_OK;
    uint32_t id = 0;
    wick_status status = take(s, WK_POOL_BLOCKS, &id);
    if (status == WICK_ERR_DEVICE_LOST) return status;
    if (status != WICK_OK) return unlearn_block(s->runner, share->ids[index]) ? WICK_OK : status;
    status = copy_cell(s->runner, WK_POOL_BLOCKS, share->ids[index], id);
    const uint32_t unused = status == WICK_OK ? share->ids[index] : id;
    if (status == WICK_OK) share->ids[index] = id;
    wk_blocks_give(&s->runner->pools[WK_POOL_BLOCKS], unused);
    return status;
}

wick_status wk_sequence_make_room(wk_sequence *sequence, uint32_t n) {
    if (sequence->runner->desc.is_whole) return WICK_OK;
    WK_TRY(wk_sequence_own_block(sequence, sequence->n_cached / WK_BLOCK_SIZE));
    for (int pool = 0; pool < WK_POOL_COUNT; pool++)
        WK_TRY(wk_sequence_reserve_share(sequence, pool, wk_sequence_wanted(sequence, pool, n)));
    return WICK_OK;
}

wick_status wk_sequence_back_up(wk_sequence *sequence) {
    wk_share *const slots = &sequence->share[WK_POOL_SLOTS];
    if (!wk_runner_is_recurrent(sequence->runner)) return WICK_OK;
    WK_TRY(wk_sequence_reserve_share(sequence, WK_POOL_SLOTS, 2));
    sequence->n_backed_up = sequence->n_cached;
    return copy_cell(sequence->runner, WK_POOL_SLOTS, slots->ids[0], slots->ids[1]);
}

/* --- Opening --- */

/* Layers with a window keep no keys older than it: they have blocks for the window of a chunk's
 * first token and the chunk, at any position in a block. */
static uint32_t ring_length(const wk_hparams *hparams, const wk_runner_desc *desc) {
    return wk_cache_describe(hparams, desc).n_window_blocks;
}

static bool is_same_kind(const wk_runner *runner, const wk_runner_desc *desc) {
    const wk_runner_desc *const has = &runner->desc;
    const bool is_same = has->math == desc->math && has->cache_dtype == desc->cache_dtype &&
                         has->is_whole == desc->is_whole && has->is_head == desc->is_head &&
                         (has->outputs == desc->outputs ||
                          (has->outputs < WK_OUTPUTS_STATES && desc->outputs < WK_OUTPUTS_STATES));
    for (uint32_t i = 0; i < runner->hparams->n_ropes; i++) {
        const wk_rope *const rope = &runner->hparams->rope[i];
        if (wk_rope_is_long(rope, has->context_length) !=
            wk_rope_is_long(rope, desc->context_length))
            return false;
    }
    return is_same;
}

wick_status wk_runner_find(wick_model *model, const wk_runner_desc *desc, wk_runner **out,
                           wick_error *err) {
    *out = model->runners;
    while (*out && !is_same_kind(*out, desc)) *out = (*out)->next;
    if (*out) return WICK_OK;
    WK_TRY(wk_runner_make(model, desc, out, err));
    (*out)->next = model->runners;
    model->runners = *out;
    return WICK_OK;
}

static void drop_runner(wk_runner *runner) {
    wk_runner **at = &runner->model->runners;
    while (*at != runner) at = &(*at)->next;
    *at = runner->next;
    runner->model->cache_clock += wk_runner_clock(runner) + 1;
    wk_runner_free(runner);
}

void wk_runners_drop(wick_model *model) {
    for (wk_runner *runner = model->runners, *next; runner; runner = next) {
        next = runner->next;
        if (!runner->sequences) drop_runner(runner);
    }
}

void wk_runners_trim(wick_model *model) {
    wk_runners_drop(model);
    for (wk_runner *runner = model->runners; runner; runner = runner->next) {
        while (drop_prefix(runner)) continue;
        wk_snapshots_drop(runner);
    }
}

uint32_t wk_model_count_known(wick_model *model, const uint32_t *ids, uint32_t n) {
    uint32_t most = 0;
    for (wk_runner *runner = model->runners; runner; runner = runner->next)
        if (runner->has_prefixes)
            most = wk_larger(most, wk_prefix_find(&runner->prefixes, 0, ids, n, NULL));
    return most;
}

/* The cache is taken as it is used: a system that gives more than it has would fail in the middle
 * of a text. */
static wick_status check_memory(const wick_model *model, const wk_runner_desc *desc,
                                wick_error *err) {
    const wk_cache_desc cache = wk_cache_describe(wk_model_hparams(model->model), desc);
    const wk_placement *const placement = wk_model_placement(model->model);
    for (uint32_t i = 0; i < wk_runner_count_stages(model->model, desc); i++) {
        const uint32_t stage = wk_runner_first_stage(desc) + i;
        wick_device_info info;
        wick_device_get_info(placement->stages[stage].device, &info);
        const uint64_t needed = wk_state_bytes(model->model, stage, &cache);
        if (info.memory_available > 0 && needed > info.memory_available)
            return wk_fail_memory_of(err, needed, info.memory_available,
                                     "the cache of this context");
    }
    return WICK_OK;
}

/* For a full context. */
static wick_status make_shares(wk_sequence *s, wick_error *err) {
    for (int pool = 0; pool < WK_POOL_COUNT; pool++) {
        wk_share *const share = &s->share[pool];
        const uint32_t n = wk_sequence_wanted(s, pool, s->context_length) *
                           (pool == WK_POOL_SLOTS ? 2 : 1); /* see wk_sequence_back_up */
        if (n == 0 || s->runner->desc.is_whole) continue;
        share->ids = wk_alloc_array(wk_runner_heap(s->runner), n, sizeof *share->ids);
        if (!share->ids) return wk_fail_memory(err, n * sizeof *share->ids, "a block table");
        share->capacity = n;
    }
    return WICK_OK;
}

wick_status wk_sequence_open(wick_model *model, const wk_runner_desc *desc, wk_waiting_fn waiting,
                             void *session, wk_sequence **out, wick_error *err) {
    *out = NULL;
    WK_TRY(wk_runner_check(model, desc, err));
    WK_TRY(check_memory(model, desc, err));
    wk_runner *runner;
    WK_TRY(wk_runner_find(model, desc, &runner, err));
    wk_sequence *const s = wk_alloc_zeroed(wk_runner_heap(runner), sizeof *s);
    if (!s) {
        if (!runner->has_prefixes && !runner->sequences) drop_runner(runner);
        return wk_fail_memory(err, sizeof *s, "a sequence");
    }
    s->runner = runner;
    s->waiting = waiting;
    s->session = session;
    s->number = ++runner->n_opened;
    s->context_length = desc->context_length;
    s->chunk_length = desc->chunk_length;
    s->outputs = desc->outputs;
    s->ring_length = ring_length(runner->hparams, desc);
    wk_sequence **at = &runner->sequences;
    while (*at && (*at)->served == 0) at = &(*at)->next;
    s->next = *at;
    *at = s;
    const wick_status status = make_shares(s, err);
    if (status == WICK_OK)
        *out = s;
    else
        wk_sequence_close(s);
    return status;
}

void wk_sequence_close(wk_sequence *sequence) {
    if (!sequence) return;
    wk_runner *const runner = sequence->runner;
    wk_heap *const heap = wk_runner_heap(runner);
    for (uint32_t i = 0; i < runner->n_parts; i++)
        if (runner->parts[i].sequence == sequence) runner->parts[i].sequence = NULL;
    wk_sequence_give_all(sequence);
    for (int pool = 0; pool < WK_POOL_COUNT; pool++)
        wk_free(heap, sequence->share[pool].ids, sequence->share[pool].capacity * sizeof(uint32_t));
    wk_free(heap, sequence->rows,
            sequence->rows_capacity * wk_runner_row_length(runner) * sizeof(float));
    wk_sequence **at = &runner->sequences;
    while (*at != sequence) at = &(*at)->next;
    *at = sequence->next;
    wk_free(heap, sequence, sizeof *sequence);
    /* A cache that later texts can begin with stays. */
    if (!runner->has_prefixes && !runner->sequences) drop_runner(runner);
}

/* Whether a batch still has stages to come: they write to what its sequences had, too, of which
 * those that were reset or closed have given theirs back. */
static bool has_stages_left(const wk_runner *runner) {
    return runner->is_running && runner->n_stages > 1;
}

/* Blocks of layers with a window and states are written in place: the fork has copies. */
static wick_status copy_own(wk_sequence *to, const wk_sequence *from, int pool) {
    WK_TRY(wk_sequence_reserve_share(to, pool, from->share[pool].n));
    for (uint32_t i = 0; i < from->share[pool].n; i++)
        WK_TRY(copy_cell(to->runner, pool, from->share[pool].ids[i], to->share[pool].ids[i]));
    return WICK_OK;
}

static wick_status share_blocks(wk_sequence *to, const wk_sequence *from) {
    const wk_share *const blocks = &from->share[WK_POOL_BLOCKS];
    wk_share *const own = &to->share[WK_POOL_BLOCKS];
    assert(blocks->n <= own->capacity);
    if (has_stages_left(to->runner) &&
        from->share[WK_POOL_WINDOW].n + from->share[WK_POOL_SLOTS].n > 0)
        return WICK_PENDING;
    for (; own->n < blocks->n; own->n++) {
        own->ids[own->n] = blocks->ids[own->n];
        wk_blocks_share(&to->runner->pools[WK_POOL_BLOCKS], own->ids[own->n]);
    }
    WK_TRY(copy_own(to, from, WK_POOL_WINDOW));
    return copy_own(to, from, WK_POOL_SLOTS);
}

void wk_sequence_share(wk_sequence *to, wk_sequence *from) {
    wk_runner *const runner = to->runner;
    const bool was_held = from->is_held;
    assert(runner == from->runner && to->share[WK_POOL_BLOCKS].n == 0);
    assert(from->n_running == 0 || from->is_dropped);
    if (from->n_cached == 0 || from->n_running > 0 || runner->desc.is_whole ||
        wk_runner_is_stale(runner))
        return;
    wick_error failure = {.status = WICK_OK}; /* then it computes its tokens again */
    const wk_model_errors before = wk_model_borrow(runner->model, &failure);
    from->is_held = true; /* what is copied stays while room is made for the copies */
    const wick_status status = share_blocks(to, from);
    from->is_held = was_held;
    if (status == WICK_OK) {
        to->n_cached = from->n_cached;
        to->is_known = from->is_known;
        memcpy(to->tail, from->tail, sizeof to->tail);
        to->window_begin = from->window_begin;
        to->snapped = from->snapped;
    } else {
        wk_sequence_give_all(to);
    }
    wk_model_give_back(runner->model, before);
}

/* --- What it has --- */

uint32_t wk_sequence_cached(const wk_sequence *sequence) { return sequence->n_cached; }

bool wk_sequence_can_return(const wk_sequence *sequence, uint32_t n) {
    if (n == 0 || n == sequence->n_cached) return true;
    const wk_runner *const runner = sequence->runner;
    const uint32_t begin = sequence->window_begin;
    return !wk_runner_is_recurrent(runner) &&
           (begin == 0 || begin + runner->hparams->window <= n + 1);
}

bool wk_sequence_return(wk_sequence *sequence, uint32_t n) {
    assert(n <= sequence->n_cached && (n == 0 || sequence->n_ahead == 0));
    const bool can = wk_sequence_can_return(sequence, n);
    if (n < sequence->n_reached) sequence->n_reached = n;
    if (n == 0) sequence->has_no_steps = false;
    if (!can || n == 0) {
        wk_sequence_give_all(sequence);
    } else {
        if (n < sequence->n_cached) wk_sequence_leave_tail(sequence);
        wk_sequence_recall_tail(sequence, n);
        if (n < sequence->snapped) sequence->snapped = 0;
        sequence->n_reused -= wk_smaller(sequence->n_reused, sequence->n_cached - n);
        sequence->n_cached = n;
        wk_sequence_give_back(sequence, WK_POOL_BLOCKS, wk_blocks_for(n));
    }
    return can;
}

void wk_sequence_choose(wk_sequence *sequence, const wk_choice *choice) {
    wk_sequence_give_all(sequence);
    sequence->choice = *choice;
}

const wk_choice *wk_sequence_choice(const wk_sequence *sequence) { return &sequence->choice; }

uint32_t wk_sequence_accept(wk_sequence *sequence, const uint32_t *ids, uint32_t n) {
    wk_sequence *const s = sequence;
    wk_share *const slots = &s->share[WK_POOL_SLOTS];
    if (s->n_ahead == 0) return n;
    const uint32_t n_known = s->n_cached - s->n_ahead, end = s->n_cached;
    const uint32_t n_right = wk_larger(n, n_known);
    assert(n_right <= end);
    s->n_ahead = 0;
    if (slots->n == 2 && n_right < end) {
        const uint32_t spoilt = slots->ids[0];
        slots->ids[0] = slots->ids[1];
        slots->ids[1] = spoilt;
        s->n_cached = n_known;
        wk_sequence_recall_tail(s, s->n_backed_up);
        s->n_cached = s->n_backed_up;
    } else {
        wk_sequence_learn(s, ids, n_known, n_right);
        s->n_cached = n_right;
    }
    wk_sequence_give_back(s, WK_POOL_SLOTS, 1);
    wk_sequence_give_back(s, WK_POOL_BLOCKS, wk_blocks_for(s->n_cached));
    return s->n_cached;
}

wk_runner_desc wk_sequence_desc(const wk_sequence *sequence) {
    wk_runner_desc desc = sequence->runner->desc;
    desc.context_length = sequence->context_length;
    desc.chunk_length = sequence->chunk_length;
    desc.outputs = sequence->outputs;
    return desc;
}

uint64_t wk_sequence_bytes(const wk_sequence *sequence) {
    const wk_runner *const runner = sequence->runner;
    const wk_runner_desc desc = wk_sequence_desc(sequence);
    const wk_cache_desc cache = wk_cache_describe(runner->hparams, &desc);
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < runner->n_stages; i++)
        bytes += wk_state_bytes(runner->net, wk_runner_first_stage(&desc) + i, &cache);
    return bytes;
}

wick_dtype wk_sequence_dtype(const wk_sequence *sequence) {
    return sequence->runner->desc.cache_dtype;
}

const wk_state *wk_sequence_state(const wk_sequence *sequence, uint32_t layer) {
    const wk_model_stage *const stages = wk_model_placement(sequence->runner->net)->stages;
    uint32_t i = 0;
    while (layer >= stages[i].first + stages[i].count) i++;
    return wk_stage_state(sequence->runner->stages[i]);
}

uint32_t wk_sequence_block(const wk_sequence *sequence, uint32_t position, bool has_window) {
    const wk_share *const share = &sequence->share[has_window ? WK_POOL_WINDOW : WK_POOL_BLOCKS];
    const uint32_t i = position / WK_BLOCK_SIZE;
    assert(share->n > 0 && (has_window || i < share->n));
    return share->ids[has_window ? i % sequence->ring_length : i];
}

uint32_t wk_sequence_slot(const wk_sequence *sequence) {
    const wk_share *const share = &sequence->share[WK_POOL_SLOTS];
    return share->n > 0 ? share->ids[0] : WK_NO_BLOCK;
}

uint32_t wk_sequence_window_begin(const wk_sequence *sequence) { return sequence->window_begin; }

uint32_t wk_sequence_window_room(const wk_sequence *sequence, uint32_t n) {
    const uint32_t n_used = wk_blocks_for(n), ring = sequence->ring_length;
    return ring > 0 && n_used > ring ? (n_used - ring) * WK_BLOCK_SIZE : 0;
}

void wk_sequence_hold(wk_sequence *sequence) { sequence->is_held = true; }

bool wk_sequence_is_held(const wk_sequence *sequence) { return sequence->is_held; }

void wk_sequence_release(wk_sequence *sequence) { sequence->is_held = false; }

wick_status wk_sequence_reserve(wk_sequence *sequence, uint32_t n, wick_error *err) {
    if (has_stages_left(sequence->runner)) return WICK_PENDING;
    const wick_status status = wk_sequence_make_room(sequence, n);
    if (status != WICK_PENDING || sequence->runner->is_running) return status;
    return wk_fail(err, WICK_ERR_OUT_OF_MEMORY,
                   "the cache has no room for %u tokens beside those of older sessions", n);
}

void wk_sequence_resume(wk_sequence *sequence, uint32_t n, uint32_t window_begin) {
    sequence->is_known = false;
    sequence->n_cached = n;
    sequence->window_begin = wk_larger(window_begin, wk_sequence_window_room(sequence, n));
}

void wk_sequence_note_written(wk_sequence *sequence, uint32_t first, uint32_t n) {
    const uint32_t begin = first > 0 ? sequence->window_begin : 0;
    sequence->window_begin = wk_larger(begin, wk_sequence_window_room(sequence, first + n));
}

void wk_sequence_drop(wk_sequence *sequence) {
    sequence->has_result = false;
    if (sequence->n_running == 0) return;
    sequence->is_dropped = true;
    /* Its state, and what a window had before, are gone. */
    const wk_runner *const runner = sequence->runner;
    const uint32_t begin = sequence->window_begin;
    if (wk_runner_is_recurrent(runner) ||
        (begin > 0 && begin + runner->hparams->window > sequence->n_cached + 1))
        wk_sequence_give_all(sequence);
}
