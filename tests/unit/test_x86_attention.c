/* tests/unit/test_x86_attention.c: attention, dense and over the paged cache, against cpu/ref; the
 * same bits however rows and keys are shared out. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "x86_fixture.h"

/* e^x turns the absolute error of a logit into a relative one; slopes make large logits. */
static const double attention_bound = 8e-6, slopes_bound = 6e-5;

static void exchange(int64_t pair[2]) {
    const int64_t first = pair[0];
    pair[0] = pair[1];
    pair[1] = first;
}

/* Keys [.., s, d], lying [.., d, s] where is_transposed. */
static void add_keys(fixture *f, wk_rng *rng, wick_dtype dtype, const int64_t extent[4],
                     bool is_transposed) {
    int64_t lying[4];
    memcpy(lying, extent, sizeof lying);
    if (is_transposed) exchange(&lying[2]);
    wk_view *const view = fixture_add(f, rng, dtype, 4, lying);
    if (!is_transposed) return;
    exchange(&view->extent[2]);
    exchange(&view->stride[2]);
}

/* ---- The paged cache. ---- */

typedef struct cache_case {
    wick_dtype dtype;
    int64_t heads, groups, d, e, block_size;
    int window;
    uint32_t n_rows, n_sequences, n_blocks;          /* the latter: of one sequence */
    const uint32_t *sequences, *positions, *lengths; /* NULL: the last rows of one sequence */
    uint32_t past;                                   /* keys before these rows */
    bool is_transposed, has_sinks, has_slopes;
    float softcap;
} cache_case;

/* No multiple of 5, so that tables can go through it in steps of 5. */
static int64_t cache_blocks(const cache_case *c) {
    const int64_t n = c->n_sequences * (int64_t)c->n_blocks;
    return n % 5 == 0 ? n + 1 : n;
}

static void add_batch(fixture *f, wk_rng *rng, const cache_case *c) {
    const uint32_t rows = c->n_rows, n = c->n_sequences, n_table = n * c->n_blocks;
    const wk_batch_layout b = {
        .n_rows = rows,
        .n_sequences = n,
        .n_blocks = c->n_blocks,
        .block_size = (uint32_t)c->block_size,
        .ids = 0,
        .positions = rows,
        .sequences = 2 * rows,
        .slots = 3 * rows,
        .outputs = 4 * rows,
        .lengths = 4 * rows,
        .tables = 4 * rows + n,
        .n_words = 4 * rows + n + n_table,
    };
    f->op.p.cached.batch = b;
    f->op.p.cached.window = c->window;
    f->op.p.cached.scale = 0.3F;
    f->op.p.cached.softcap = c->softcap;
    fixture_add(f, rng, WICK_U32, 1, (const int64_t[]){b.n_words});
    uint32_t *const words = x86_contents(&f->memory[f->n - 1]);
    const uint32_t *const table = words + b.tables;
    for (uint32_t i = 0; i < n_table; i++)
        words[b.tables + i] = (uint32_t)(i * (int64_t)5 % cache_blocks(c));
    for (uint32_t s = 0; s < n; s++)
        words[b.lengths + s] = c->lengths ? c->lengths[s] : c->past + rows;
    for (uint32_t r = 0; r < rows; r++) {
        const uint32_t s = c->sequences ? c->sequences[r] : 0;
        const uint32_t position = c->positions ? c->positions[r] : c->past + r;
        words[b.sequences + r] = s;
        words[b.positions + r] = position;
        words[b.slots + r] = s == WK_NO_ROW
                                 ? 0
                                 : table[s * c->n_blocks + position / b.block_size] * b.block_size +
                                       position % b.block_size;
    }
}

static void make_attention(fixture *f, wk_rng *rng, const cache_case *c) {
    *f = (fixture){.op = {.code = WK_OP_ATTENTION_CACHED, .n_dst = 1, .n_src = 6}};
    const int64_t n = cache_blocks(c);
    fixture_add(f, rng, WICK_F32, 3, (const int64_t[]){c->n_rows, c->heads, c->e});
    fixture_add(f, rng, WICK_F32, 3, (const int64_t[]){c->n_rows, c->heads, c->d});
    add_keys(f, rng, c->dtype, (const int64_t[]){n, c->groups, c->block_size, c->d},
             c->is_transposed);
    fixture_add(f, rng, c->dtype, 4, (const int64_t[]){n, c->groups, c->block_size, c->e});
    add_batch(f, rng, c);
    if (c->has_sinks) fixture_add(f, rng, WICK_F32, 1, &c->heads);
    if (!c->has_sinks) f->n++;
    if (c->has_slopes) fixture_add(f, rng, WICK_F32, 1, &c->heads);
}

static const uint32_t some_sequences[] = {0, 0, 1, WK_NO_ROW, 2, 2, 2, 1};
static const uint32_t some_positions[] = {3, 4, 200, 0, 77, 78, 79, 130};
static const uint32_t some_lengths[] = {5, 201, 80};

static void test_attention_cached(void **state) {
    (void)state;
    cache_case cases[] = {
        {WICK_F32, 9, 3, 64, 64, 16, 0, 1, 1, 40, NULL, NULL, NULL, 0, false, false, false, 0},
        {WICK_F32, 9, 3, 64, 64, 16, 0, 150, 1, 40, NULL, NULL, NULL, 0, false, false, false, 0},
        {WICK_F16, 4, 4, 32, 48, 8, 0, 70, 1, 40, NULL, NULL, NULL, 0, false, true, false, 0},
        {WICK_F32, 4, 1, 20, 7, 32, 0, 40, 1, 40, NULL, NULL, NULL, 0, false, false, true, 0},
        {WICK_F16, 8, 2, 80, 80, 16, 50, 200, 1, 40, NULL, NULL, NULL, 0, false, false, false, 2},
        {WICK_F32, 6, 2, 16, 130, 24, 0, 8, 3, 40, some_sequences, some_positions, some_lengths, 0,
         false, true, true, 1},
        {WICK_F16, 6, 2, 17, 30, 16, 70, 8, 3, 40, some_sequences, some_positions, some_lengths, 0,
         false, true, true, 0},
        {WICK_F32, 7, 1, 24, 96, 48, 0, 3, 1, 30, NULL, NULL, NULL, 1100, false, true, true, 5},
        {WICK_F16, 10, 2, 40, 16, 16, 600, 2, 1, 90, NULL, NULL, NULL, 1300, false, true, false, 0},
        {WICK_Q8_0, 9, 3, 64, 64, 16, 0, 150, 1, 40, NULL, NULL, NULL, 0, false, false, false, 0},
        {WICK_Q8_0, 6, 2, 96, 32, 24, 70, 8, 3, 40, some_sequences, some_positions, some_lengths, 0,
         false, true, true, 1},
        {WICK_Q4_0, 4, 1, 32, 96, 8, 0, 70, 1, 40, NULL, NULL, NULL, 0, false, true, false, 0},
        {WICK_Q4_0, 10, 2, 64, 64, 16, 600, 2, 1, 90, NULL, NULL, NULL, 1300, false, true, false,
         0},
    };
    wk_rng rng = {.seed = 6};
    for (size_t i = 0; i < 2 * (sizeof cases / sizeof *cases); i++) {
        cache_case c = cases[i / 2];
        c.is_transposed = i % 2 != 0 && c.block_size % 16 == 0 && !wk_dtype_is_block(c.dtype);
        fixture f;
        make_attention(&f, &rng, &c);
        fixture_check(&f, c.has_slopes ? slopes_bound : attention_bound);
        fixture_free(&f);
    }
}

/* Row r alone, in ranges of step items. */
static void run_row(const wk_cpu_kernel *kernel, const wk_op *all, uint32_t r, int64_t step,
                    x86_memory *y) {
    const int64_t heads = all->view[0].extent[1], d = all->view[0].extent[2];
    wk_op op = *all;
    op.p.cached.batch.n_rows = 1;
    op.p.cached.batch.sequences += r;
    op.p.cached.batch.positions += r;
    x86_memory_make(y, (size_t)(heads * d) * sizeof(float));
    op.view[0] = x86_view(y, WICK_F32, 3, (const int64_t[]){1, heads, d});
    op.view[1].offset += (uint64_t)(r * heads * d) * sizeof(float);
    op.view[1].extent[0] = 1;
    x86_run(kernel, &op, step);
}

/* Rows together and each alone give the same bits, which other threads do not change: keys of
 * several spans, short and long ones. */
static void test_attention_same_bits(void **state) {
    (void)state;
    enum { HEADS = 3, D = 32, ROWS = 150 };
    static const uint32_t past[] = {0, 480, 1200, 12300};
    wk_rng rng = {.seed = 7};
    static const wick_dtype types[] = {WICK_F32, WICK_F16, WICK_Q8_0, WICK_Q4_0};
    for (int i = 0; i < 16; i++) {
        const cache_case c = {
            .dtype = types[i % 2 + i / 8 * 2],
            .heads = HEADS,
            .groups = 1,
            .d = D,
            .e = D,
            .block_size = 32,
            .window = i % 8 == 4 ? 700 : 0,
            .n_rows = ROWS,
            .n_sequences = 1,
            .n_blocks = (past[i % 8 / 2] + ROWS) / 32 + 1,
            .past = past[i % 8 / 2],
            .is_transposed = i < 8 && i != 4,
            .has_sinks = i % 8 == 5,
        };
        fixture f;
        make_attention(&f, &rng, &c);
        for (size_t at = 0; wk_cpu_kernel_at(at) != NULL; at++) {
            const wk_cpu_kernel *const k = wk_cpu_kernel_at(at);
            if (k->base.code != WK_OP_ATTENTION_CACHED || k->base.needs == 0 || !x86_can_run(k))
                continue;
            x86_run(k, &f.op, 1);
            const float *const all = x86_contents(&f.memory[0]);
            for (uint32_t r = 0; r < ROWS; r += 37) {
                x86_memory y;
                run_row(k, &f.op, r, 1 + r % 4, &y);
                assert_memory_equal(all + r * HEADS * D, x86_contents(&y),
                                    HEADS * D * sizeof(float));
                x86_memory_free(&y);
            }
        }
        fixture_free(&f);
    }
}

/* A context of 131072 keys: right, and in scratch memory that does not hold the context. */
static void test_long_context(void **state) {
    (void)state;
    enum { KEYS = 131072, HEADS = 4, D = 16 };
    const cache_case c = {
        .dtype = WICK_F16,
        .heads = HEADS,
        .groups = 2,
        .d = D,
        .e = D,
        .block_size = 32,
        .n_rows = 2,
        .n_sequences = 1,
        .n_blocks = KEYS / 32,
        .past = KEYS - 2,
        .is_transposed = true,
    };
    wk_rng rng = {.seed = 8};
    fixture f;
    make_attention(&f, &rng, &c);
    fixture_check(&f, attention_bound);
    for (size_t at = 0; wk_cpu_kernel_at(at) != NULL; at++) {
        const wk_cpu_kernel *const k = wk_cpu_kernel_at(at);
        if (k->base.code != WK_OP_ATTENTION_CACHED || k->base.needs == 0 || !x86_can_run(k))
            continue;
        assert_true(k->scratch_bytes(&f.op) <= 2 * HEADS * 50 * (D + 32) * sizeof(float));
        assert_true(k->worker_bytes(&f.op) < 32768);
        wk_op prompt = f.op; /* many rows: no parts at all */
        prompt.view[0].extent[0] = prompt.view[1].extent[0] = 512;
        assert_int_equal(k->scratch_bytes(&prompt), 0);
    }
    fixture_free(&f);
}

/* Numbers out of range: nothing is read or written through them, and the fault is set. */
static void check_fault(const cache_case *c, int kind) {
    wk_rng rng = {.seed = 9};
    fixture f;
    make_attention(&f, &rng, c);
    const wk_batch_layout b = f.op.p.cached.batch;
    uint32_t *const words = x86_contents(&f.memory[4]);
    const uint32_t capacity = b.n_blocks * b.block_size;
    if (kind == 0) words[b.sequences + 1] = 1;
    if (kind == 1) words[b.positions + 1] = words[b.lengths];
    if (kind == 2) words[b.lengths] = capacity + 1;
    if (kind == 3) words[b.tables] = b.n_blocks + 1;
    const size_t row = (size_t)(c->heads * c->e);
    for (size_t at = 0; wk_cpu_kernel_at(at) != NULL; at++) {
        const wk_cpu_kernel *const k = wk_cpu_kernel_at(at);
        if (k->base.code != WK_OP_ATTENTION_CACHED || k->base.needs == 0 || !x86_can_run(k))
            continue;
        float *const y = x86_contents(&f.memory[0]);
        for (size_t i = 0; i < row; i++) y[row + i] = 7;
        void *const worker = x86_scratch(k->worker_bytes(&f.op));
        void *const scratch = x86_scratch(k->scratch_bytes(&f.op));
        atomic_bool fault = false;
        const wk_cpu_run run = {
            .op = &f.op, .scratch = scratch, .worker_scratch = worker, .fault = &fault};
        for (int phase = 0; phase < k->n_phases; phase++)
            for (int64_t i = 0; i < k->items(&f.op, phase); i++) k->run(&run, phase, i, i + 1);
        assert_true(fault);
        for (size_t i = 0; i < row; i++) assert_true(y[row + i] == 7);
        free(scratch);
        free(worker);
    }
    fixture_free(&f);
}

static void test_attention_fault(void **state) {
    (void)state;
    for (int i = 0; i < 8; i++) {
        const cache_case c = {
            .heads = 2,
            .groups = 1,
            .d = 16,
            .e = 16,
            .block_size = 16,
            .n_rows = 3,
            .n_sequences = 1,
            .n_blocks = 40,
            .past = i < 4 ? 0 : 600,
        };
        check_fault(&c, i % 4);
    }
}

static void check_append(wk_rng *rng, wick_dtype dtype, int64_t d, int64_t e, bool is_transposed) {
    static const uint32_t sequences[] = {0, WK_NO_ROW, 1, 1};
    static const uint32_t positions[] = {9, 0, 40, 41};
    static const uint32_t lengths[] = {10, 42};
    const cache_case c = {
        .dtype = dtype,
        .heads = 3,
        .groups = 3,
        .block_size = 16,
        .n_rows = 4,
        .n_sequences = 2,
        .n_blocks = 40,
        .sequences = sequences,
        .positions = positions,
        .lengths = lengths,
    };
    fixture f = {.op = {.code = WK_OP_KV_APPEND, .n_dst = 2, .n_src = 3}};
    const int64_t n = cache_blocks(&c);
    add_keys(&f, rng, dtype, (const int64_t[]){n, 3, 16, d}, is_transposed);
    fixture_add(&f, rng, dtype, 4, (const int64_t[]){n, 3, 16, e});
    fixture_add(&f, rng, WICK_F32, 3, (const int64_t[]){4, 3, d});
    fixture_add(&f, rng, WICK_F32, 3, (const int64_t[]){4, 3, e});
    add_batch(&f, rng, &c);
    fixture_check(&f, 0);
    fixture_free(&f);
}

static void test_kv_append(void **state) {
    (void)state;
    wk_rng rng = {.seed = 10};
    for (int64_t d = 1; d < 70; d += 11)
        check_append(&rng, d % 2 == 0 ? WICK_F16 : WICK_F32, d, d + 3, d % 3 == 0);
    for (int64_t d = 32; d <= 96; d += 32) {
        check_append(&rng, WICK_Q8_0, d, 128 - d, false);
        check_append(&rng, WICK_Q4_0, d, 128 - d, false);
    }
}

/* ---- Dense. ---- */

enum { WITH_MASK = 1, WITH_BIAS = 2, WITH_SINKS = 4, WITH_SLOPES = 8, WITH_ALL = 16 };

/* An operand that may be absent. */
static void add_optional(fixture *f, wk_rng *rng, bool is_given, wick_dtype dtype, int rank,
                         const int64_t *extent) {
    if (!is_given) {
        f->n++;
        return;
    }
    fixture_add(f, rng, dtype, rank, extent);
    unsigned char *const mask = x86_contents(&f->memory[f->n - 1]);
    const size_t size = f->memory[f->n - 1].size;
    for (size_t i = 0; dtype == WICK_U8 && i < size; i++) mask[i] = wk_rng_uniform(rng) < 0.6F;
}

/* extent: b, h, g, t, s, d, e. */
static void make_dense(fixture *f, wk_rng *rng, wick_dtype dtype, const int64_t extent[7],
                       int with) {
    const int64_t b = extent[0], h = extent[1], g = extent[2], t = extent[3], s = extent[4];
    const int64_t d = extent[5], e = extent[6];
    *f = (fixture){.op = {.code = WK_OP_ATTENTION, .n_dst = 1, .n_src = 7}};
    fixture_add(f, rng, dtype, 4, (const int64_t[]){b, h, t, e});
    fixture_add(f, rng, dtype, 4, (const int64_t[]){b, h, t, d});
    add_keys(f, rng, dtype, (const int64_t[]){b, g, s, d}, s % 16 == 0);
    fixture_add(f, rng, dtype, 4, (const int64_t[]){b, g, s, e});
    add_optional(f, rng, with & WITH_MASK, WICK_U8, 4, (const int64_t[]){b, h, t, s});
    add_optional(f, rng, with & WITH_BIAS, dtype, 4, (const int64_t[]){b, h, t, s});
    add_optional(f, rng, with & WITH_SINKS, dtype, 1, &h);
    add_optional(f, rng, with & WITH_SLOPES, dtype, 1, &h);
    f->op.p.attention.scale = 0.3;
}

static void test_attention_dense(void **state) {
    (void)state;
    static const int64_t extents[][7] = {
        {1, 2, 1, 1, 1, 1, 1},      {2, 6, 2, 20, 48, 24, 40}, {1, 3, 3, 37, 130, 64, 64},
        {1, 4, 1, 50, 20, 17, 3},   {2, 2, 2, 5, 0, 8, 8},     {1, 8, 2, 3, 1100, 16, 20},
        {1, 5, 5, 33, 64, 80, 112},
    };
    wk_rng rng = {.seed = 11};
    for (size_t i = 0; i < sizeof extents / sizeof *extents; i++) {
        for (int with = 0; with < 8 * WITH_ALL; with++) {
            if (i > 1 && with % 7 != 0) continue;
            fixture f;
            make_dense(&f, &rng, with % 3 == 1 ? WICK_F16 : WICK_F32, extents[i], with);
            f.op.p.attention.causal = (with & WITH_ALL) != 0;
            f.op.p.attention.window = (with & 2 * WITH_ALL) != 0 ? 9 : 0;
            f.op.p.attention.softcap = (with & 4 * WITH_ALL) != 0 ? 1.5 : 0;
            /* Results in halves may be rounded the other way. */
            fixture_check(&f, with % 3 == 1 ? 0x1p-10 : slopes_bound);
            fixture_free(&f);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_attention_cached), cmocka_unit_test(test_attention_same_bits),
        cmocka_unit_test(test_long_context),     cmocka_unit_test(test_attention_fault),
        cmocka_unit_test(test_kv_append),        cmocka_unit_test(test_attention_dense),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
