/* verify/case_batch.c: random batch descriptors (backend.h): several sequences, blocks out of
 * order, rows in any order with padding among them, gaps of poison between the sections. */
#include "verify/case.h"

#include "core/compiler.h"

static uint32_t word_below(wk_case *c, int64_t n) { return (uint32_t)wk_case_below(c, n); }

/* The section begins after up to two words of poison. */
static uint32_t add_section(wk_case *c, wk_batch_layout *layout, uint32_t n) {
    const uint32_t begin = layout->n_words + word_below(c, 3);
    layout->n_words = begin + n;
    return begin;
}

void wk_case_plan_batch(wk_case *c, wk_batch_layout *layout, int64_t n_rows) {
    static const uint32_t block_sizes[] = {1, 3, 8, 16, 32, 64};
    *layout = (wk_batch_layout){
        .n_rows = (uint32_t)n_rows,
        .n_outputs = word_below(c, n_rows + 1),
        .n_sequences = 1 + word_below(c, 4),
        .block_size = block_sizes[wk_case_below(c, WK_COUNT(block_sizes))],
    };
    const uint32_t most = wk_case_chance(c, 10) ? 1500 : 200; /* keys: of several spans or of one */
    layout->n_blocks = 1 + word_below(c, most / layout->block_size + 1);
    layout->ids = add_section(c, layout, layout->n_rows);
    layout->positions = add_section(c, layout, layout->n_rows);
    layout->sequences = add_section(c, layout, layout->n_rows);
    layout->slots = add_section(c, layout, layout->n_rows);
    layout->outputs = add_section(c, layout, layout->n_outputs);
    layout->lengths = add_section(c, layout, layout->n_sequences);
    layout->states = add_section(c, layout, layout->n_sequences);
    layout->tables = add_section(c, layout, layout->n_sequences * layout->n_blocks);
    layout->n_words += word_below(c, 3);
}

/* A permutation of n blocks or slots: i * step + shift, modulo n. */
typedef struct block_order {
    int64_t n, step, shift;
} block_order;

static int64_t common_divisor(int64_t a, int64_t b) {
    while (b != 0) {
        const int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

static block_order random_order(wk_case *c, int64_t n) {
    block_order order = {n, 1, wk_case_below(c, n)};
    do {
        order.step = 1 + wk_case_below(c, n);
    } while (common_divisor(order.step, n) != 1);
    return order;
}

/* Gives sequence a length and as many blocks as that takes. */
static void fill_sequence(wk_case *c, const wk_batch_layout *layout, uint32_t sequence,
                          const block_order *order, uint32_t *words) {
    const int64_t most = (int64_t)layout->n_blocks * layout->block_size;
    const uint32_t length = 1 + word_below(c, most);
    words[layout->lengths + sequence] = length;
    const uint32_t n = (length + layout->block_size - 1) / layout->block_size;
    for (uint32_t i = 0; i < n; i++) {
        const int64_t place = (int64_t)sequence * layout->n_blocks + i;
        words[layout->tables + sequence * layout->n_blocks + i] =
            (uint32_t)((place * order->step + order->shift) % order->n);
    }
}

/* Row becomes the token before those that the sequence's other rows are, if there is one left. */
static void fill_row(wk_case *c, const wk_batch_layout *layout, uint32_t row, uint32_t *next,
                     uint32_t *words) {
    const uint32_t sequence = word_below(c, layout->n_sequences);
    if (next[sequence] == 0 || wk_case_chance(c, 12)) return; /* padding */
    const uint32_t position = --next[sequence];
    const uint32_t *const table = words + layout->tables + sequence * layout->n_blocks;
    words[layout->ids + row] = word_below(c, 1000);
    words[layout->positions + row] = position;
    words[layout->sequences + row] = sequence;
    words[layout->slots + row] =
        table[position / layout->block_size] * layout->block_size + position % layout->block_size;
}

/* One of the numbers that lead to memory, wrong. */
static void spoil(wk_case *c, const wk_batch_layout *layout, uint32_t *words) {
    const uint32_t row = word_below(c, layout->n_rows), sequence = words[layout->sequences + row];
    if (sequence == WK_NO_ROW) return;
    if (c->has_states && wk_case_chance(c, 50)) {
        words[layout->states + sequence] = WK_NO_ROW;
        return;
    }
    switch (c->has_states ? 0 : wk_case_below(c, 4)) {
    case 0: words[layout->sequences + row] = layout->n_sequences; break;
    case 1: words[layout->positions + row] = layout->n_blocks * layout->block_size; break;
    case 2: words[layout->slots + row] = WK_NO_ROW - 1; break;
    default: words[layout->tables + words[layout->sequences + row] * layout->n_blocks] = WK_NO_ROW;
    }
}

void wk_case_fill_batch(wk_case *c, const wk_batch_layout *layout, uint32_t *words) {
    enum { MAX_SEQUENCES = 8 };
    uint32_t next[MAX_SEQUENCES] = {0};
    const block_order order = random_order(c, c->op.view[c->places].extent[0]);
    for (uint32_t i = 0; i < layout->n_words; i++) words[i] = WK_NO_ROW;
    for (uint32_t s = 0; s < layout->n_sequences && s < MAX_SEQUENCES; s++) {
        fill_sequence(c, layout, s, &order, words);
        words[layout->states + s] = (uint32_t)((s * order.step + order.shift) % order.n);
        /* Mostly the last tokens, as in use; otherwise any, so that kernels meet keys to come. */
        const uint32_t length = words[layout->lengths + s];
        next[s] = wk_case_chance(c, 70) ? length : 1 + word_below(c, length);
    }
    const bool is_ascending = wk_case_chance(c, 70);
    for (uint32_t i = 0; i < layout->n_rows; i++)
        fill_row(c, layout, is_ascending ? layout->n_rows - 1 - i : i, next, words);
    for (uint32_t i = 0; i < layout->n_outputs; i++)
        words[layout->outputs + i] = word_below(c, layout->n_rows);
    if (c->has_bad_index && layout->n_rows > 0) spoil(c, layout, words);
}
