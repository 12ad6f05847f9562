/* llm/batch.c: what goes into a batch, and its descriptor. See runner.h. */
#include "llm/runner_struct.h"

#include "model/rope.h"

#include <assert.h>
#include <string.h>

enum {
    LOGITS_BYTES = 16 * 1024 * 1024, /* most that a batch of logits may take, one row excepted */
    LEAST_KEYS = 256,                /* that the plans of short texts are made for */
    CHEAP_ROWS = 32,  /* batches of up to this size cost the same: the weights are read once */
    WHOLE_ROWS = 512, /* of several whole texts in a batch */
};

uint32_t wk_round_up_to_power(uint32_t n) {
    assert(n <= UINT32_C(1) << 31); /* else there is none */
    uint32_t power = 1;
    while (power < n) power *= 2;
    return power;
}

static bool has_window_blocks(const wk_runner *runner) { return runner->cache.n_window_blocks > 0; }

static uint32_t max_output_rows(const wk_runner *runner) {
    const uint64_t row_bytes = wk_runner_row_length(runner) * sizeof(float);
    const uint64_t rows = LOGITS_BYTES / row_bytes;
    const uint32_t most = rows < 1 ? 1 : rows > WK_MAX_CHUNK ? WK_MAX_CHUNK : (uint32_t)rows;
    const uint32_t power = wk_round_up_to_power(most);
    return power > most ? power / 2 : power;
}

static size_t rows_bytes(const wk_runner *runner) {
    return (size_t)runner->max_rows * runner->hparams->n_embd * sizeof(float);
}

void wk_batch_free_rows(wk_runner *runner) {
    wk_heap *const heap = wk_runner_heap(runner);
    wk_free(heap, runner->rows, runner->rows ? rows_bytes(runner) : 0);
    wk_free(heap, runner->states, runner->states ? rows_bytes(runner) : 0);
    wk_free(heap, runner->tables, runner->n_tables * sizeof *runner->tables);
    wk_free(heap, runner->batch.hidden, runner->n_hidden * sizeof *runner->batch.hidden);
    runner->rows = runner->states = runner->tables = runner->batch.hidden = NULL;
    runner->n_tables = runner->n_hidden = 0;
    runner->max_rows = 0;
}

/* --- Memory of a batch --- */

static wick_status reserve_tables(wk_runner *runner) {
    const wk_hparams *const hp = runner->hparams;
    runner->n_tables = (size_t)WK_MAX_ADAPTERS * runner->max_rows;
    for (uint32_t i = 0; i < hp->n_ropes; i++)
        runner->n_tables += 2 * (size_t)hp->rope[i].n_pairs * runner->max_rows;
    runner->tables =
        wk_alloc_array(wk_runner_heap(runner), runner->n_tables, sizeof *runner->tables);
    if (!runner->tables)
        return wk_fail_memory(wk_runner_err(runner), runner->n_tables * sizeof *runner->tables,
                              "a batch");
    float *at = runner->batch.scales = runner->tables;
    at += (size_t)WK_MAX_ADAPTERS * runner->max_rows;
    for (uint32_t i = 0; i < hp->n_ropes; i++) {
        const size_t n = (size_t)hp->rope[i].n_pairs * runner->max_rows;
        runner->batch.cos[i] = at;
        runner->batch.sin[i] = at + n;
        at += 2 * n;
    }
    return WICK_OK;
}

static wick_status reserve_rows(wk_runner *runner, uint32_t n) {
    if (n <= runner->max_rows) return WICK_OK;
    wk_batch_free_rows(runner);
    runner->max_rows = wk_round_up_to_power(n);
    wick_status status = reserve_tables(runner);
    if (status == WICK_OK && runner->n_stages > 1) {
        runner->n_hidden = (size_t)runner->max_rows * runner->hparams->n_embd;
        runner->batch.hidden =
            wk_alloc_array(wk_runner_heap(runner), runner->n_hidden, sizeof *runner->batch.hidden);
        if (!runner->batch.hidden)
            status = wk_fail_memory(wk_runner_err(runner),
                                    runner->n_hidden * sizeof *runner->batch.hidden, "a batch");
    }
    if (status != WICK_OK) wk_batch_free_rows(runner);
    return status;
}

static wick_status reserve_words(wk_runner *runner) {
    const uint32_t n = runner->batch.layout.n_words;
    if (n <= runner->max_words) return WICK_OK;
    uint32_t *const words = wk_alloc_array(wk_runner_heap(runner), n, sizeof *words);
    if (!words) return wk_fail_memory(wk_runner_err(runner), n * sizeof *words, "a batch");
    wk_free(wk_runner_heap(runner), runner->batch.words, runner->max_words * sizeof *words);
    runner->batch.words = words;
    runner->max_words = n;
    return WICK_OK;
}

static wick_status reserve_logits(wk_runner *runner, uint32_t n_outputs) {
    if (n_outputs <= runner->max_outputs) return WICK_OK;
    wk_stage_batch *const batch = &runner->batch;
    const size_t row = wk_runner_row_length(runner) * sizeof *batch->logits;
    float *const larger = wk_realloc(wk_runner_heap(runner), batch->logits,
                                     runner->max_outputs * row, n_outputs * row);
    if (!larger) return wk_fail_memory(wk_runner_err(runner), n_outputs * row, "logits");
    batch->logits = larger;
    runner->max_outputs = n_outputs;
    return WICK_OK;
}

/* --- Classes --- */

uint32_t wk_batch_blocks(uint32_t n_keys, uint32_t context_length) {
    uint64_t n = LEAST_KEYS;
    while (n < n_keys) n *= 2;
    return wk_blocks_for(n < context_length ? (uint32_t)n : context_length);
}

/* Sections of a descriptor, one after the other. */
void wk_batch_lay_out(wk_runner *runner, wk_batch_size size) {
    wk_stage_batch *const batch = &runner->batch;
    wk_batch_layout l = {.n_rows = size.n_rows,
                         .n_outputs = size.n_outputs,
                         .n_sequences = size.n_sequences,
                         .n_blocks = size.n_blocks,
                         .block_size = WK_BLOCK_SIZE};
    l.positions = l.ids + l.n_rows;
    l.sequences = l.positions + l.n_rows;
    l.slots = l.sequences + l.n_rows;
    l.outputs = l.slots + l.n_rows;
    l.lengths = l.outputs + l.n_outputs;
    l.states = l.lengths + l.n_sequences;
    l.tables = l.states + l.n_sequences;
    l.n_words = l.tables + l.n_sequences * l.n_blocks;
    if (has_window_blocks(runner)) {
        batch->window_slots = l.n_words;
        batch->window_tables = batch->window_slots + l.n_rows;
        l.n_words = batch->window_tables + l.n_sequences * l.n_blocks;
    }
    batch->given = l.n_words;
    if (batch->rows) l.n_words += l.n_rows;
    batch->adapters = l.n_words;
    batch->n_adapters = size.n_adapters;
    l.n_words += l.n_rows * size.n_adapters;
    batch->layout = l;
    batch->outputs = l.n_outputs == 0                            ? WK_OUTPUTS_NONE
                     : runner->desc.outputs >= WK_OUTPUTS_STATES ? runner->desc.outputs
                     : l.n_outputs == 1                          ? WK_OUTPUTS_LAST
                                                                 : WK_OUTPUTS_ALL;
}

/* Rows of a batch of n tokens. Whole texts cannot be cut, and several sequences have no choice:
 * they are rounded up to eighths of a power of two (40, 48, 56, 64, 80, 96, ...). */
static uint32_t round_up_rows(uint32_t n, bool is_fine) {
    const uint32_t power = wk_round_up_to_power(n);
    if (!is_fine || power <= CHEAP_ROWS) return power;
    const uint32_t step = power / 8;
    return (n + step - 1) / step * step;
}

/* How many of n tokens, with room for most, are a batch of their own. Padding is worth it while it
 * is a quarter at most; else as many as make a power of two, the rest later. */
static uint32_t fit_chunk(uint32_t n, uint32_t most) {
    if (n > most) n = most;
    const uint32_t up = wk_round_up_to_power(n);
    return up <= CHEAP_ROWS || (up - n) * 4 <= up ? n : up / 2;
}

static uint32_t most_of(const wk_runner *runner, uint32_t chunk_length, wk_outputs outputs) {
    const bool has_all = outputs >= WK_OUTPUTS_ALL && !runner->desc.is_whole;
    return has_all && max_output_rows(runner) < chunk_length ? max_output_rows(runner)
                                                             : chunk_length;
}

bool wk_batch_is_used(const wk_runner *runner, uint32_t n_rows, wk_outputs outputs) {
    const uint32_t most = most_of(runner, runner->desc.chunk_length, outputs);
    if (runner->desc.is_whole) return wk_round_up_to_power(n_rows < most ? n_rows : most) == n_rows;
    return wk_round_up_to_power(fit_chunk(n_rows, most)) == n_rows;
}

/* --- Making up a batch --- */

/* Rows that a batch has at most: the largest chunk of its sequences. */
static uint32_t find_budget(const wk_runner *runner) {
    uint32_t most = 1;
    for (const wk_sequence *s = runner->sequences; s; s = s->next)
        if (s->chunk_length > most) most = s->chunk_length;
    return runner->most_rows > 0 && runner->most_rows < most ? runner->most_rows : most;
}

static void drop_guesses(wk_sequence *s) {
    s->wants.n -= s->wants.n_ahead;
    s->wants.n_ahead = 0;
    s->wants.draws = NULL;
}

static void ask(wk_sequence *s) {
    s->wants = s->waiting(s->session);
    if (s->has_no_guesses) drop_guesses(s);
}

static void ask_all(const wk_runner *runner) {
    for (wk_sequence *s = runner->sequences; s; s = s->next) {
        const bool is_ready = !s->is_held && s->n_running == 0 && !s->has_result;
        s->wants = (wk_waiting){.n = 0};
        if (is_ready) ask(s);
    }
}

bool wk_batch_may_run_ahead(const wk_runner *runner) {
    return !runner->is_careful && !runner->desc.is_whole && wk_stage_takes_steps(runner->stages[0]);
}

/* A token that was generated, with guesses at the next ones; and a few before it, computed again.
 */
static bool is_single(const wk_waiting *waiting) {
    return waiting->n == 1 || (waiting->n_ahead > 0 && waiting->n <= 2 * CHEAP_ROWS);
}

static uint32_t count_outputs(const wk_waiting *waiting, uint32_t n) {
    if (waiting->outputs != WK_OUTPUTS_LAST) return waiting->outputs == WK_OUTPUTS_NONE ? 0 : n;
    const uint32_t first = waiting->n - waiting->n_ahead - 1;
    return n > first ? n - first : 0;
}

/* What of its text is in the cache already is not computed; where logits are wanted, the last token
 * is. */
static wick_status find_prefix(wk_sequence *s) {
    const wk_waiting *const wants = &s->wants;
    if (wants->n <= 1 || wants->no_reuse || wants->outputs >= WK_OUTPUTS_ALL || wants->n_ahead > 0)
        return WICK_OK;
    const uint32_t n = s->n_cached + wants->n - (wants->outputs == WK_OUTPUTS_LAST);
    const uint32_t n_before = s->n_cached;
    WK_TRY(wk_sequence_find_prefix(s, wants->ids - s->n_cached, n));
    if (wants->outputs == WK_OUTPUTS_LAST && s->n_cached > n_before)
        s->n_reused += s->n_cached - n_before;
    if (s->n_cached != n_before || wants->n == 0) ask(s);
    return WICK_OK;
}

/* A batch that is being made up. */
typedef struct filling {
    uint32_t budget, n_rows, n_outputs; /* rows that it may have, has, and of these outputs */
    uint32_t most_parts;
    uint32_t text_rows;   /* of whole texts: of each */
    uint32_t n_waiting;   /* sequences */
    wk_sequence *refused; /* the first one for which there was no memory */
    wick_status status;
    wick_error why;
} filling;

/* It runs ahead where it is a single token, of the only sequence that waits. */
static void check_draws(const wk_runner *runner, wk_sequence *s, const filling *f) {
    const wk_waiting *const wants = &s->wants;
    const bool may = f->n_waiting == 1 && wants->n - wants->n_ahead == 1 && wants->is_short &&
                     !s->has_no_steps && wk_batch_may_run_ahead(runner);
    if (wants->draws && !may) drop_guesses(s);
}

/* Whole texts lie side by side, in the same number of rows each; of three tokens and four:
 *
 *   position   0 1 2 . 0 1 2 3
 *
 * With the first one go others that are not longer, nor so short that padding is most of them. */
static bool goes_along(const wk_runner *runner, uint32_t n, const filling *f) {
    if (f->n_rows == 0) return true;
    const uint32_t most = f->budget < WHOLE_ROWS ? f->budget : WHOLE_ROWS;
    return n <= f->text_rows && 2 * n > f->text_rows && f->n_rows + f->text_rows <= most &&
           f->n_outputs + n <= max_output_rows(runner);
}

/* How many of its tokens go into the batch. */
static uint32_t find_share(const wk_runner *runner, const wk_sequence *s, const filling *f) {
    const wk_waiting *const waiting = &s->wants;
    const uint32_t own = most_of(runner, s->chunk_length, waiting->outputs);
    if (runner->desc.is_whole) return goes_along(runner, waiting->n, f) ? waiting->n : 0;
    const uint32_t left = f->n_rows < f->budget ? f->budget - f->n_rows : 0;
    const uint32_t due = waiting->no_reuse ? own : wk_sequence_until_snapshot(s);
    uint32_t most = own < left ? own : left;
    if (due < most && waiting->outputs < WK_OUTPUTS_ALL && waiting->n_ahead == 0) most = due;
    if (f->n_rows > 0 && (waiting->outputs >= WK_OUTPUTS_ALL || waiting->n_ahead > 0)) {
        const uint32_t room = max_output_rows(runner);
        const uint32_t room_left = f->n_outputs < room ? room - f->n_outputs : 0;
        if (room_left < most) most = room_left;
    }
    if (f->n_rows == 0 && !is_single(waiting)) return fit_chunk(waiting->n, most);
    return waiting->n < most ? waiting->n : most;
}

/* Before guesses, which are left out where there is no memory for that. */
static wick_status back_up(wk_runner *runner, wk_sequence *s, uint32_t *n) {
    const uint32_t n_known = s->wants.n - s->wants.n_ahead;
    if (*n <= n_known) return WICK_OK;
    const wick_status status = wk_sequence_back_up(s);
    if (wk_runner_is_loss(runner, status)) return status;
    if (status != WICK_OK) *n = n_known;
    if (status < 0) *wk_runner_err(runner) = (wick_error){.status = WICK_OK};
    return WICK_OK;
}

/* Where the cache has no room for its tokens now, it is passed over. */
static wick_status add_part(wk_runner *runner, wk_sequence *s, filling *f) {
    check_draws(runner, s, f); /* it may have been asked again */
    uint32_t n = find_share(runner, s, f);
    if (n == 0) return WICK_OK;
    wick_status status = wk_sequence_make_room(s, s->n_cached + n);
    if (status == WICK_OK) status = back_up(runner, s, &n);
    if (wk_runner_is_loss(runner, status)) return status;
    if (status != WICK_OK && !f->refused) {
        f->refused = s;
        f->status = status;
        f->why = *wk_runner_err(runner);
    }
    if (status < 0) *wk_runner_err(runner) = (wick_error){.status = WICK_OK};
    if (status != WICK_OK) return WICK_OK;
    const uint32_t n_outputs = count_outputs(&s->wants, n);
    runner->parts[runner->n_parts++] = (wk_part){
        .sequence = s, .waiting = s->wants, .n = n, .n_outputs = n_outputs, .first = s->n_cached};
    if (runner->n_parts == 1) f->text_rows = round_up_rows(n, true);
    f->n_rows += runner->desc.is_whole ? f->text_rows : n;
    f->n_outputs += n_outputs;
    return WICK_OK;
}

/* In the order of the list, which is that in which they were served: none reads a second chunk
 * while another one waits for its first. */
static wick_status add_parts(wk_runner *runner, bool are_single, filling *f) {
    for (wk_sequence *s = runner->sequences; s; s = s->next) {
        if (runner->n_parts >= f->most_parts) return WICK_OK;
        if (s->wants.n == 0 || is_single(&s->wants) != are_single) continue;
        WK_TRY(find_prefix(s));
        if (s->wants.n > 0) WK_TRY(add_part(runner, s, f));
    }
    return WICK_OK;
}

/* There is no batch, for lack of memory. While a sequence is held its room may come, else never. */
static void refuse(const wk_runner *runner, filling *f) {
    bool is_held = false;
    for (const wk_sequence *s = runner->sequences; s; s = s->next) is_held = is_held || s->is_held;
    if (f->status == WICK_PENDING && is_held) return;
    if (f->status == WICK_PENDING)
        f->status = wk_fail(&f->why, WICK_ERR_OUT_OF_MEMORY, "the cache has no room for the text");
    wk_sequence_fail(f->refused, f->status, &f->why);
}

/* Single tokens, which leave a quarter of the rows to prompts that wait: however many there are,
 * those are read. Where there is one row, they have it in turn. */
static wick_status add_singles(wk_runner *runner, filling *f) {
    const uint32_t budget = f->budget;
    bool has_prompt = false;
    for (const wk_sequence *s = runner->sequences; s; s = s->next)
        has_prompt = has_prompt || (s->wants.n > 0 && !is_single(&s->wants));
    if (has_prompt && !runner->desc.is_whole) {
        f->budget -= budget > 1 ? (budget + 3) / 4 : (uint32_t)(runner->n_batches % 2);
        f->most_parts--;
    }
    WK_TRY(add_parts(runner, true, f));
    f->budget = budget;
    f->most_parts = WK_MAX_PARTS;
    return WICK_OK;
}

/* Single tokens go first, so that a long prompt delays others by a batch at most. */
wick_status wk_batch_choose(wk_runner *runner) {
    filling f = {.budget = find_budget(runner), .most_parts = WK_MAX_PARTS};
    runner->n_parts = 0;
    ask_all(runner);
    for (const wk_sequence *s = runner->sequences; s; s = s->next) f.n_waiting += s->wants.n > 0;
    for (wk_sequence *s = runner->sequences; s; s = s->next) check_draws(runner, s, &f);
    WK_TRY(add_singles(runner, &f));
    WK_TRY(add_parts(runner, false, &f));
    if (runner->n_parts == 0) WK_TRY(add_parts(runner, true, &f)); /* whose turn it was not */
    if (runner->n_parts == 0 && f.refused) refuse(runner, &f);
    /* Texts that would be padding are computed like others: as many as are a power of two. */
    while (runner->desc.is_whole && (runner->n_parts & (runner->n_parts - 1)) != 0)
        runner->n_parts--;
    return WICK_OK;
}

/* The only part of a batch of several steps. */
static bool runs_ahead(const wk_part *part) { return part->waiting.draws && part->n > 1; }

static wk_batch_size size_of(const wk_runner *runner) {
    uint32_t n_rows = 0, n_outputs = 0, n_keys = 0, context = 0, n_adapters = 0;
    for (uint32_t i = 0; i < runner->n_parts; i++) {
        const wk_part *const part = &runner->parts[i];
        n_rows += runs_ahead(part) ? 1 : part->n;
        n_outputs += runs_ahead(part) ? 1 : part->n_outputs;
        if (part->sequence->choice.n > n_adapters) n_adapters = part->sequence->choice.n;
        if (part->first + part->n > n_keys) n_keys = part->first + part->n;
        if (part->sequence->context_length > context) context = part->sequence->context_length;
    }
    const bool is_whole = runner->desc.is_whole;
    wk_batch_size size = {.n_rows = is_whole
                                        ? runner->n_parts * round_up_rows(runner->parts[0].n, true)
                                        : round_up_rows(n_rows, runner->n_parts > 1),
                          .n_outputs = n_outputs,
                          .n_adapters = n_adapters > 0 ? wk_round_up_to_power(n_adapters) : 0,
                          .n_sequences = wk_round_up_to_power(runner->n_parts),
                          .n_blocks = is_whole ? 0 : wk_batch_blocks(n_keys, context)};
    if (n_outputs > 1) {
        const uint32_t power = wk_round_up_to_power(n_outputs);
        size.n_outputs = power < size.n_rows ? power : size.n_rows;
    }
    return size;
}

/* --- Describing it --- */

static wick_status reserve_embeddings(wk_runner *runner, float **rows) {
    if (!*rows) *rows = wk_alloc_zeroed(wk_runner_heap(runner), rows_bytes(runner));
    if (*rows) return WICK_OK;
    return wk_fail_memory(wk_runner_err(runner), rows_bytes(runner), "rows of embeddings");
}

/* Whether some are rows, and of some the states are wanted: these then have memory in a batch. */
static wick_status find_rows(wk_runner *runner) {
    bool has_rows = runner->desc.is_head, has_states = false;
    for (uint32_t i = 0; i < runner->n_parts; i++) {
        const wk_part *const part = &runner->parts[i];
        has_states = has_states || part->waiting.states;
        for (uint32_t k = 0; k < part->n && !part->waiting.draws; k++)
            has_rows = has_rows || part->waiting.ids[k] == WICK_NO_TOKEN;
    }
    if (has_rows) WK_TRY(reserve_embeddings(runner, &runner->rows));
    /* Guesses can do without them. */
    if (has_states && reserve_embeddings(runner, &runner->states) != WICK_OK) {
        *wk_runner_err(runner) = (wick_error){.status = WICK_OK};
        has_states = false;
    }
    runner->batch.rows = has_rows ? runner->rows : NULL;
    runner->batch.states = has_states ? runner->states : NULL;
    return WICK_OK;
}

/* Rows of a part to where their tokens would be, a head's beside them; what stands in the others is
 * not used. */
static void place_rows(wk_runner *runner, const wk_part *part, uint32_t at) {
    const wk_stage_batch *const batch = &runner->batch;
    const size_t n_embd = runner->hparams->n_embd;
    const float *from = part->waiting.rows;
    for (uint32_t i = 0; i < part->n; i++) {
        const bool is_row = part->waiting.ids[i] == WICK_NO_TOKEN;
        batch->words[batch->given + at + i] = is_row;
        if (!is_row && !runner->desc.is_head) continue;
        if (is_row) batch->words[batch->layout.ids + at + i] = 0; /* any: it is not used */
        memcpy(runner->rows + (at + i) * n_embd, from, n_embd * sizeof *from);
        from += n_embd;
    }
}

static uint32_t slot_of(const wk_sequence *s, uint32_t position, bool has_window) {
    return wk_sequence_block(s, position, has_window) * WK_BLOCK_SIZE + position % WK_BLOCK_SIZE;
}

/* Rows of a part, of which there is one in each of several steps. */
static uint32_t rows_of(const wk_runner *runner, const wk_part *part) {
    return runner->batch.n_steps > 1 ? 1 : part->n;
}

/* Rows [at, at + rows_of part) of the batch. */
static void describe_rows(wk_runner *runner, uint32_t index, uint32_t at) {
    const wk_stage_batch *const batch = &runner->batch;
    const wk_batch_layout *const l = &batch->layout;
    const wk_part *const part = &runner->parts[index];
    uint32_t *const words = batch->words;
    for (uint32_t i = 0; i < rows_of(runner, part); i++) {
        const uint32_t row = at + i, position = part->first + batch->step + i;
        words[l->ids + row] = part->waiting.ids[i]; /* of a later step any */
        words[l->positions + row] = position;
        words[l->sequences + row] = index;
        if (runner->desc.is_whole) continue;
        words[l->slots + row] = slot_of(part->sequence, position, false);
        if (has_window_blocks(runner))
            words[batch->window_slots + row] = slot_of(part->sequence, position, true);
    }
    if (batch->rows) place_rows(runner, part, at);
}

/* All rows, before those that are not. */
static void describe_padding(const wk_runner *runner) {
    const wk_stage_batch *const batch = &runner->batch;
    const wk_batch_layout *const l = &batch->layout;
    uint32_t *const words = batch->words;
    for (uint32_t row = 0; row < l->n_rows; row++) {
        words[l->ids + row] = words[l->positions + row] = 0;
        words[l->sequences + row] = words[l->slots + row] = WK_NO_ROW;
        if (has_window_blocks(runner)) words[batch->window_slots + row] = WK_NO_ROW;
        if (batch->rows) words[batch->given + row] = 0;
    }
}

/* Blocks of a layer that drops keys: one that a later position needs is given to it. */
static void describe_tables(const wk_runner *runner, uint32_t index) {
    const wk_stage_batch *const batch = &runner->batch;
    const wk_batch_layout *const l = &batch->layout;
    const wk_sequence *const s = runner->parts[index].sequence;
    uint32_t *const table = batch->words + l->tables + (size_t)index * l->n_blocks;
    uint32_t *const window = batch->words + batch->window_tables + (size_t)index * l->n_blocks;
    const wk_share *const blocks = &s->share[WK_POOL_BLOCKS];
    for (uint32_t i = 0; i < l->n_blocks; i++) {
        const bool is_there = i < blocks->n;
        table[i] = is_there ? blocks->ids[i] : 0;
        if (has_window_blocks(runner))
            window[i] = is_there ? wk_sequence_block(s, i * WK_BLOCK_SIZE, true) : 0;
    }
}

static void describe_sequences(const wk_runner *runner) {
    const wk_batch_layout *const l = &runner->batch.layout;
    uint32_t *const words = runner->batch.words;
    for (uint32_t i = 0; i < l->n_sequences; i++) {
        const bool is_there = i < runner->n_parts;
        const wk_part *const part = &runner->parts[i];
        words[l->lengths + i] =
            is_there ? part->first + runner->batch.step + rows_of(runner, part) : 0;
        /* Of whole texts states that are made for the batch; no two the same. */
        words[l->states + i] = runner->desc.is_whole ? i
                               : is_there            ? wk_sequence_slot(part->sequence)
                                                     : WK_NO_BLOCK;
        if (is_there)
            describe_tables(runner, i);
        else
            memset(words + l->tables + (size_t)i * l->n_blocks, 0, l->n_blocks * sizeof *words);
    }
}

/* After the rows' sequences; rows without an adapter have number 0. */
static void describe_adapters(const wk_runner *runner) {
    const wk_stage_batch *const batch = &runner->batch;
    const size_t n = batch->n_adapters, count = n * batch->layout.n_rows;
    uint32_t *const numbers = batch->words + batch->adapters;
    memset(numbers, 0, count * sizeof *numbers);
    memset(batch->scales, 0, count * sizeof *batch->scales);
    for (uint32_t row = 0; row < batch->layout.n_rows; row++) {
        const uint32_t part = batch->words[batch->layout.sequences + row];
        if (part == WK_NO_ROW) continue;
        const wk_choice *const choice = &runner->parts[part].sequence->choice;
        memcpy(numbers + row * n, choice->numbers, choice->n * sizeof *numbers);
        memcpy(batch->scales + row * n, choice->scales, choice->n * sizeof *batch->scales);
    }
}

static void describe(wk_runner *runner) {
    const wk_batch_layout *const l = &runner->batch.layout;
    uint32_t *const words = runner->batch.words;
    uint32_t row = 0, output = 0;
    describe_padding(runner);
    for (uint32_t i = 0; i < runner->n_parts; i++) {
        wk_part *const part = &runner->parts[i];
        part->row = row;
        assert(row + rows_of(runner, part) <= l->n_rows);
        describe_rows(runner, i, row);
        part->sequence->first_row = output;
        for (uint32_t k = 0; k < part->n_outputs && output < l->n_outputs; k++)
            words[l->outputs + output++] = row + part->n - part->n_outputs + k;
        row += runner->desc.is_whole ? l->n_rows / l->n_sequences : part->n;
    }
    while (output < l->n_outputs) words[l->outputs + output++] = 0;
    describe_sequences(runner);
    if (runner->batch.n_adapters > 0) describe_adapters(runner);
    for (uint32_t i = 0; i < runner->hparams->n_ropes; i++)
        wk_rope_rows(
            &runner->hparams->rope[i],
            (wk_rope_positions){words + l->positions, l->n_rows, runner->desc.context_length},
            runner->batch.cos[i], runner->batch.sin[i]);
}

wick_status wk_batch_describe(wk_runner *runner) {
    const wk_batch_size size = size_of(runner);
    runner->batch.n_steps = runs_ahead(&runner->parts[0]) ? runner->parts[0].n : 1;
    assert(runner->batch.n_steps == 1 || runner->n_parts == 1);
    runner->batch.step = 0;
    runner->batch.draws = runner->parts[0].waiting.draws;
    WK_TRY(reserve_rows(runner, size.n_rows));
    WK_TRY(find_rows(runner));
    wk_batch_lay_out(runner, size);
    WK_TRY(reserve_words(runner));
    WK_TRY(reserve_logits(runner, size.n_outputs * runner->batch.n_steps));
    runner->batch.is_short = size.n_outputs == 1;
    for (uint32_t i = 0; i < runner->n_parts; i++) /* of one part, which need not be the first */
        if (runner->parts[i].n_outputs > 0)
            runner->batch.is_short = runner->batch.is_short && runner->parts[i].waiting.is_short;
    describe(runner);
    return WICK_OK;
}

bool wk_batch_next_step(wk_runner *runner) {
    if (runner->batch.step + 1 == runner->batch.n_steps) return false;
    runner->batch.step++;
    describe(runner);
    return true;
}
