/* Attention of cpu/ref against the formula written out, and the paged cache against dense
 * attention. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "ref_case.h"

#include "core/half.h"
#include "quant/block.h"

#include <math.h>

enum { H = 4, G = 2, T = 3, S = 7, D = 5, E = 3 };

typedef struct dense_case {
    float q[H * T * D], k[G * S * D], v[G * S * E], y[H * T * E];
    float bias[H * T * S], sinks[H], slopes[H];
    uint8_t mask[H * T * S];
    bool has_mask, has_bias, has_sinks, has_slopes;
    ref_case c;
} dense_case;

static void fill(float *x, size_t n, double seed) {
    for (size_t i = 0; i < n; i++) x[i] = (float)sin((double)i * 1.3 + seed);
}

static void add_optional(ref_case *c, bool is_there, void *data, size_t size, wick_dtype dtype,
                         wick_shape shape) {
    if (is_there) {
        ref_add(c, data, size, dtype, shape);
    } else {
        ref_skip(c);
    }
}

static void run_dense(dense_case *d) {
    fill(d->q, WK_COUNT(d->q), 1);
    fill(d->k, WK_COUNT(d->k), 2);
    fill(d->v, WK_COUNT(d->v), 3);
    fill(d->bias, WK_COUNT(d->bias), 4);
    fill(d->sinks, H, 5);
    fill(d->slopes, H, 6);
    for (int i = 0; i < H * T * S; i++) d->mask[i] = i * 7 % 5 != 0;
    ref_case *c = &d->c;
    const wk_params p = c->op.p;
    ref_begin(c, WK_OP_ATTENTION);
    c->op.p = p;
    REF_ADD(c, d->y, WICK_F32, 1, H, T, E);
    REF_ADD(c, d->q, WICK_F32, 1, H, T, D);
    REF_ADD(c, d->k, WICK_F32, 1, G, S, D);
    REF_ADD(c, d->v, WICK_F32, 1, G, S, E);
    add_optional(c, d->has_mask, d->mask, sizeof d->mask, WICK_U8, WICK_SHAPE(1, H, T, S));
    add_optional(c, d->has_bias, d->bias, sizeof d->bias, WICK_F32, WICK_SHAPE(1, H, T, S));
    add_optional(c, d->has_sinks, d->sinks, sizeof d->sinks, WICK_F32, WICK_SHAPE(H));
    add_optional(c, d->has_slopes, d->slopes, sizeof d->slopes, WICK_F32, WICK_SHAPE(H));
    assert_false(ref_run(c));
}

/* Probability of key j, not normalized; 0 where it is hidden. */
static double formula(const dense_case *d, int h, int t, int j) {
    const wk_params *p = &d->c.op.p;
    const int i = t + S - T, g = h / (H / G), at = (h * T + t) * S + j;
    double logit = 0;
    for (int l = 0; l < D; l++) {
        logit += (double)d->q[(h * T + t) * D + l] * (double)d->k[(g * S + j) * D + l];
    }
    logit *= p->attention.scale;
    const double cap = p->attention.softcap;
    if (cap > 0) logit = cap * tanh(logit / cap);
    if (d->has_slopes) logit += (double)d->slopes[h] * (j - i);
    if (d->has_bias) logit += (double)d->bias[at];
    const bool is_hidden = (d->has_mask && d->mask[at] == 0) || (p->attention.causal && j > i) ||
                           (p->attention.window > 0 && i - j >= p->attention.window);
    return is_hidden ? 0 : exp(logit);
}

static void check_dense(dense_case *d) {
    run_dense(d);
    for (int row = 0; row < H * T; row++) {
        double sum = d->has_sinks ? exp((double)d->sinks[row / T]) : 0, y[E] = {0};
        for (int j = 0; j < S; j++) {
            const double weight = formula(d, row / T, row % T, j);
            sum += weight;
            for (int l = 0; l < E; l++) {
                y[l] += weight * (double)d->v[(row / T / (H / G) * S + j) * E + l];
            }
        }
        for (int l = 0; l < E; l++)
            assert_true(fabs((double)d->y[row * E + l] - y[l] / sum) < 1e-6);
    }
}

static void dense_attention(void **state) {
    (void)state;
    for (int bits = 0; bits < 128; bits++) {
        dense_case d = {.has_mask = bits & 1,
                        .has_bias = bits & 2,
                        .has_sinks = bits & 4,
                        .has_slopes = bits & 8};
        d.c.op.p.attention.scale = 0.7;
        d.c.op.p.attention.causal = bits & 16;
        d.c.op.p.attention.window = (bits & 32) != 0 ? 4 : 0;
        d.c.op.p.attention.softcap = (bits & 64) != 0 ? 0.5 : 0;
        check_dense(&d);
    }
}

static void a_row_that_sees_nothing_is_zero(void **state) {
    (void)state;
    float q[2] = {1, 1}, k[1] = {1}, v[1] = {5}, y[2];
    uint8_t mask[2] = {0, 1};
    ref_case c;
    ref_begin(&c, WK_OP_ATTENTION);
    REF_ADD(&c, y, WICK_F32, 1, 1, 2, 1);
    REF_ADD(&c, q, WICK_F32, 1, 1, 2, 1);
    REF_ADD(&c, k, WICK_F32, 1, 1, 1, 1);
    REF_ADD(&c, v, WICK_F32, 1, 1, 1, 1);
    REF_ADD(&c, mask, WICK_BOOL, 1, 1, 2, 1);
    for (int i = 0; i < 3; i++) ref_skip(&c);
    c.op.p.attention.scale = 1;
    ref_run(&c);
    ASSERT_BYTES(y, ((float[]){0, 5}));
}

/* -- the paged cache: two sequences in blocks of 4, out of order, and a padding row -- */

enum { BLOCK_SIZE = 4, BLOCKS = 5, N_BLOCKS = 2, ROWS = 4, SEQUENCES = 2 };

static const wk_batch_layout layout = {
    .n_rows = ROWS,
    .n_sequences = SEQUENCES,
    .n_blocks = N_BLOCKS,
    .block_size = BLOCK_SIZE,
    .ids = 0,
    .positions = 4,
    .sequences = 8,
    .slots = 12,
    .outputs = 16,
    .lengths = 16,
    .tables = 18,
    .n_words = 22,
};

/* Rows: positions 4 and 5 of sequence 0 (blocks 3, 1), padding, position 1 of sequence 1 (block 4).
 */
static const uint32_t good_words[22] = {9, 9, 9, 9, 4,  5, 0, 1, 0, 0, WK_NO_ROW,
                                        1, 4, 5, 0, 17, 6, 2, 3, 1, 4, 99};

typedef struct cached_case {
    uint32_t words[22];
    float q[ROWS * H * D], y[ROWS * H * E], slopes[H], sinks[H];
    float k_cache[BLOCKS * G * BLOCK_SIZE * D], v_cache[BLOCKS * G * BLOCK_SIZE * E];
    ref_case c;
} cached_case;

static void set_cached(cached_case *p, int window) {
    memcpy(p->words, good_words, sizeof p->words);
    fill(p->q, WK_COUNT(p->q), 1);
    fill(p->k_cache, WK_COUNT(p->k_cache), 2);
    fill(p->v_cache, WK_COUNT(p->v_cache), 3);
    fill(p->slopes, H, 4);
    fill(p->sinks, H, 5);
    for (size_t i = 0; i < WK_COUNT(p->y); i++) p->y[i] = 7;
    ref_case *c = &p->c;
    ref_begin(c, WK_OP_ATTENTION_CACHED);
    REF_ADD(c, p->y, WICK_F32, ROWS, H, E);
    REF_ADD(c, p->q, WICK_F32, ROWS, H, D);
    REF_ADD(c, p->k_cache, WICK_F32, BLOCKS, G, BLOCK_SIZE, D);
    REF_ADD(c, p->v_cache, WICK_F32, BLOCKS, G, BLOCK_SIZE, E);
    REF_ADD(c, p->words, WICK_U32, 22);
    REF_ADD(c, p->sinks, WICK_F32, H);
    REF_ADD(c, p->slopes, WICK_F32, H);
    c->op.p.cached.scale = 0.7f;
    c->op.p.cached.softcap = 2;
    c->op.p.cached.window = window;
    c->op.p.cached.batch = layout;
}

/* The same row by dense attention over its keys, gathered. */
static void attend_dense(cached_case *p, int row, float *y) {
    enum { MOST = N_BLOCKS * BLOCK_SIZE };
    float k[G * MOST * D], v[G * MOST * E];
    const uint32_t sequence = p->words[layout.sequences + (uint32_t)row];
    const int n = (int)p->words[layout.positions + (uint32_t)row] + 1;
    for (int j = 0; j < G * n; j++) {
        const int g = j / n, key = j % n;
        const uint32_t table = layout.tables + sequence * N_BLOCKS;
        const int block = (int)p->words[table + (uint32_t)(key / BLOCK_SIZE)];
        const int from = (block * G + g) * BLOCK_SIZE + key % BLOCK_SIZE;
        memcpy(k + j * D, p->k_cache + from * D, D * sizeof *k);
        memcpy(v + j * E, p->v_cache + from * E, E * sizeof *v);
    }
    ref_case c;
    ref_begin(&c, WK_OP_ATTENTION);
    ref_add(&c, y, H * E * sizeof *y, WICK_F32, WICK_SHAPE(1, H, 1, E));
    ref_add(&c, p->q + row * H * D, H * D * sizeof *p->q, WICK_F32, WICK_SHAPE(1, H, 1, D));
    ref_add(&c, k, sizeof k, WICK_F32, WICK_SHAPE(1, G, n, D));
    ref_add(&c, v, sizeof v, WICK_F32, WICK_SHAPE(1, G, n, E));
    ref_skip(&c);
    ref_skip(&c);
    REF_ADD(&c, p->sinks, WICK_F32, H);
    REF_ADD(&c, p->slopes, WICK_F32, H);
    c.op.p.attention.scale = (double)p->c.op.p.cached.scale;
    c.op.p.attention.softcap = (double)p->c.op.p.cached.softcap;
    c.op.p.attention.window = p->c.op.p.cached.window;
    c.op.p.attention.causal = true;
    ref_run(&c);
}

static void cached_attention(void **state) {
    (void)state;
    static cached_case p;
    for (int window = 0; window < 7; window++) {
        set_cached(&p, window);
        assert_false(ref_run(&p.c));
        for (int row = 0; row < ROWS; row++) {
            float expected[H * E] = {0};
            if (row != 2) attend_dense(&p, row, expected);
            assert_memory_equal(p.y + row * H * E, expected, sizeof expected);
        }
    }
}

static void bad_words_write_nothing(void **state) {
    (void)state;
    static cached_case p;
    static const struct {
        uint32_t word, value;
        int row;
    } cases[] = {
        {8, 2, 0},                       /* no such sequence */
        {4, 6, 0},                       /* a position that is not below the length */
        {7, 2, 3},           {17, 9, 3}, /* longer than its table */
        {18, 5, 0},                      /* no such block; row 1 reads it too */
        {20, UINT32_MAX, 3},
    };
    for (size_t i = 0; i < WK_COUNT(cases); i++) {
        set_cached(&p, 0);
        p.words[cases[i].word] = cases[i].value;
        assert_true(ref_run(&p.c));
        for (int j = 0; j < H * E; j++) assert_true(p.y[cases[i].row * H * E + j] == 7);
        for (int j = 0; j < H * E; j++) assert_true(p.y[2 * H * E + j] == 0);
    }
    set_cached(&p, 2); /* a block that the window leaves out is not looked at */
    p.words[18] = UINT32_MAX;
    p.words[4] = 5;
    assert_false(ref_run(&p.c));
}

static void appends_to_the_cache(void **state) {
    (void)state;
    uint32_t words[22];
    memcpy(words, good_words, sizeof words);
    float k[ROWS * G * D], v[ROWS * G * E];
    fill(k, WK_COUNT(k), 1);
    fill(v, WK_COUNT(v), 2);
    uint16_t k_cache[BLOCKS * G * BLOCK_SIZE * D] = {0}, v_cache[BLOCKS * G * BLOCK_SIZE * E] = {0};
    ref_case c;
    ref_begin(&c, WK_OP_KV_APPEND);
    REF_ADD(&c, k_cache, WICK_F16, BLOCKS, G, BLOCK_SIZE, D);
    REF_ADD(&c, v_cache, WICK_F16, BLOCKS, G, BLOCK_SIZE, E);
    REF_ADD(&c, k, WICK_F32, ROWS, G, D);
    REF_ADD(&c, v, WICK_F32, ROWS, G, E);
    REF_ADD(&c, words, WICK_U32, 22);
    c.op.p.cached.batch = layout;
    assert_false(ref_run(&c));
    uint16_t expected_k[WK_COUNT(k_cache)] = {0}, expected_v[WK_COUNT(v_cache)] = {0};
    for (int row = 0; row < ROWS; row++) {
        if (row == 2) continue;
        const int slot = (int)words[12 + row];
        for (int g = 0; g < G; g++) {
            const int at = (slot / BLOCK_SIZE * G + g) * BLOCK_SIZE + slot % BLOCK_SIZE;
            for (int i = 0; i < D; i++) {
                expected_k[at * D + i] = wk_f32_to_f16(k[(row * G + g) * D + i]);
            }
            for (int i = 0; i < E; i++) {
                expected_v[at * E + i] = wk_f32_to_f16(v[(row * G + g) * E + i]);
            }
        }
    }
    ASSERT_BYTES(k_cache, expected_k);
    ASSERT_BYTES(v_cache, expected_v);
    words[12] = BLOCKS * BLOCK_SIZE;
    assert_true(ref_run(&c));
    ASSERT_BYTES(k_cache, expected_k);
}

/* A cache of blocks: the same as one of floats that holds what the blocks stand for. */
static void caches_of_blocks(void **state) {
    (void)state;
    enum { WIDTH = 64, SLOTS = BLOCKS * G * BLOCK_SIZE, ROW_BYTES = 2 * 34 };
    static const wick_dtype types[] = {WICK_Q8_0, WICK_Q4_0};
    static float k[ROWS * G * WIDTH], v[ROWS * G * WIDTH], floats[2][SLOTS * WIDTH];
    static float q[ROWS * H * WIDTH], y[2][ROWS * H * WIDTH];
    static uint8_t blocks[2][SLOTS * ROW_BYTES];
    uint32_t words[22];
    memcpy(words, good_words, sizeof words);
    words[4] = 0, words[5] = 1, words[7] = 0, words[16] = 2, words[17] = 1; /* no keys before */
    words[12] = 12, words[13] = 13, words[15] = 16;
    fill(q, WK_COUNT(q), 1);
    fill(k, WK_COUNT(k), 2);
    fill(v, WK_COUNT(v), 3);
    for (size_t t = 0; t < WK_COUNT(types); t++) {
        const size_t bytes = (size_t)SLOTS * WIDTH / 32 * (types[t] == WICK_Q8_0 ? 34 : 18);
        memset(blocks, 0, sizeof blocks);
        ref_case c;
        ref_begin(&c, WK_OP_KV_APPEND);
        for (int i = 0; i < 2; i++)
            ref_add(&c, blocks[i], bytes, types[t], WICK_SHAPE(BLOCKS, G, BLOCK_SIZE, WIDTH));
        REF_ADD(&c, k, WICK_F32, ROWS, G, WIDTH);
        REF_ADD(&c, v, WICK_F32, ROWS, G, WIDTH);
        REF_ADD(&c, words, WICK_U32, 22);
        c.op.p.cached.batch = layout;
        assert_false(ref_run(&c));
        for (int i = 0; i < 2; i++)
            wk_decoder(types[t])(blocks[i], floats[i], (int64_t)SLOTS * WIDTH);
        const double step = types[t] == WICK_Q8_0 ? 1.0 / 127 : 1.0 / 8; /* k is at most 1 */
        for (int g = 0; g < G; g++)
            for (int l = 0; l < WIDTH; l++) /* row 1: offset 1 of block 3 */
                assert_true(fabs((double)floats[0][((3 * G + g) * BLOCK_SIZE + 1) * WIDTH + l] -
                                 (double)k[(1 * G + g) * WIDTH + l]) <= step);
        for (int i = 0; i < 2; i++) {
            ref_begin(&c, WK_OP_ATTENTION_CACHED);
            REF_ADD(&c, y[i], WICK_F32, ROWS, H, WIDTH);
            REF_ADD(&c, q, WICK_F32, ROWS, H, WIDTH);
            for (int j = 0; j < 2; j++)
                ref_add(&c, i == 0 ? (void *)blocks[j] : floats[j],
                        i == 0 ? bytes : sizeof floats[j], i == 0 ? types[t] : WICK_F32,
                        WICK_SHAPE(BLOCKS, G, BLOCK_SIZE, WIDTH));
            REF_ADD(&c, words, WICK_U32, 22);
            ref_skip(&c);
            ref_skip(&c);
            c.op.p.cached.scale = 0.7f;
            c.op.p.cached.batch = layout;
            assert_false(ref_run(&c));
        }
        ASSERT_BYTES(y[0], y[1]);
    }
}

static void only_some_types_are_caches(void **state) {
    (void)state;
    static uint8_t caches[2][BLOCKS * G * BLOCK_SIZE * 64];
    static float rows[ROWS * G * 32];
    uint32_t words[22];
    memcpy(words, good_words, sizeof words);
    static const wick_dtype types[] = {WICK_Q8_0, WICK_Q5_0, WICK_Q4_0, WICK_BF16};
    for (size_t t = 0; t < WK_COUNT(types); t++) {
        ref_case c;
        ref_begin(&c, WK_OP_KV_APPEND);
        for (int i = 0; i < 2; i++) REF_ADD(&c, caches[i], types[t], BLOCKS, G, BLOCK_SIZE, 32);
        for (int i = 0; i < 2; i++) REF_ADD(&c, rows, WICK_F32, ROWS, G, 32);
        REF_ADD(&c, words, WICK_U32, 22);
        c.op.p.cached.batch = layout;
        wick_error err = {.status = WICK_OK};
        assert_int_equal(wk_op_check(&c.op, &err), t % 2 == 0 ? WICK_OK : WICK_ERR_DTYPE);
        c.op.view[0].extent[3] = 24; /* rows are whole blocks */
        if (t % 2 == 0) assert_int_equal(wk_op_check(&c.op, &err), WICK_ERR_INTERNAL);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dense_attention),
        cmocka_unit_test(a_row_that_sees_nothing_is_zero),
        cmocka_unit_test(cached_attention),
        cmocka_unit_test(bad_words_write_nothing),
        cmocka_unit_test(appends_to_the_cache),
        cmocka_unit_test(caches_of_blocks),
        cmocka_unit_test(only_some_types_are_caches),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
