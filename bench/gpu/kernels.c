/* bench/gpu/kernels.c: every kernel that takes an operation, in every tuning, on the operations of
 * real models.
 *
 * Each run reads other memory than the one before: weights, keys and values lie in an arena larger
 * than any cache, which the runs walk through. All kernels and tunings of an operation take turns,
 * and what counts is the median of the rounds:
 *
 *   round 0:  linear/0 linear/1 linear_dot4/0     round 1:  linear/0 linear/1 linear_dot4/0 ...
 *
 * Times are the host's, of as many runs as last long enough, and contain what a dispatch costs. */
#include "gpu_bench.h"

#include "backend/kernels.h"
#include "core/compiler.h"
#include "core/dtype.h"
#include "tensor/device.h"
#include "verify/case.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_BLOCKS = 64, MOST_VARIANTS = 24, MOST_TUNINGS = 8, ROUNDS = 5, MOST_RUNS = 512 };

static const uint64_t largest_block = (uint64_t)640 << 20;
static const double long_enough = 0.005, too_long = 0.25; /* seconds */

/* ---- The arena ---- */

typedef struct arena {
    wk_buffer *blocks[MOST_BLOCKS];
    uint64_t block_bytes;
    int n_blocks;
} arena;

/* One way to compute an operation. */
typedef struct variant {
    const wk_kernel *kernel;
    uint32_t tuning;
    int n_runs, n_rounds;
    double seconds[ROUNDS];
} variant;

typedef struct timing {
    bench *bench;
    const wk_backend *backend;
    wk_backend_device *dev;
    arena arena;
    const char *model, *type;
    int64_t rows;
    wk_case *c;
    int rotated[2], n_rotated; /* operands that lie in the arena */
    uint64_t bytes[2];         /* that they take */
    uint64_t next;             /* run, which of their places is theirs */
    variant variants[MOST_VARIANTS];
    int n_variants;
    wick_error error;
} timing;

/* Numbers that are small and finite, as f16 and f32, and any quants. */
static void fill_block(timing *t, wk_buffer *block) {
    enum { PART = 4 << 20 };
    uint32_t *const words = malloc(PART), state = 1;
    if (words == NULL) check(WICK_ERR_OUT_OF_MEMORY, &(wick_error){.message = "out of memory"});
    uint32_t random = state;
    for (size_t i = 0; i < PART / sizeof *words; i++) {
        random = random * 1664525U + 1013904223U; /* Numerical Recipes */
        words[i] = (random ^ random >> 16) & 0x37ff37ffU;
    }
    for (uint64_t at = 0; at < t->arena.block_bytes; at += PART) {
        const uint64_t left = t->arena.block_bytes - at;
        check(t->backend->upload(t->dev, block, at, words, left < PART ? left : PART, &t->error),
              &t->error);
    }
    free(words);
}

static void make_arena(timing *t) {
    const uint64_t rotated = t->bench->rotated_bytes;
    uint64_t block = t->bench->info.adapter.limits.binding_bytes;
    if (block > largest_block) block = largest_block;
    if (block > rotated) block = rotated;
    t->arena.block_bytes = block / 256 * 256;
    while (t->arena.n_blocks < MOST_BLOCKS &&
           (uint64_t)t->arena.n_blocks * t->arena.block_bytes < rotated) {
        wk_buffer **const place = &t->arena.blocks[t->arena.n_blocks];
        check(t->backend->alloc(t->dev, t->arena.block_bytes, 0, place, &t->error), &t->error);
        t->arena.n_blocks++;
        fill_block(t, *place);
    }
}

/* ---- Operands ---- */

static bool is_rotated(const timing *t, int operand) {
    for (int i = 0; i < t->n_rotated; i++)
        if (t->rotated[i] == operand) return true;
    return false;
}

static bool is_own(const timing *t, int i) {
    const wk_view *const view = &t->c->op.view[i];
    return view->buf != NULL && !is_rotated(t, i);
}

static void place_operands(timing *t) {
    for (int i = 0; i < t->c->op.n_dst + t->c->op.n_src; i++) {
        wk_view *const view = &t->c->op.view[i];
        uint64_t begin, end;
        if (!is_own(t, i)) continue;
        wk_view_range(view, &begin, &end);
        check(t->backend->alloc(t->dev, (end + 15) / 16 * 16, 0, &view->buf, &t->error), &t->error);
    }
}

static void free_operands(timing *t) {
    for (int i = 0; i < t->c->op.n_dst + t->c->op.n_src; i++)
        if (is_own(t, i)) t->backend->free(t->dev, t->c->op.view[i].buf);
}

/* False: a block of the arena does not hold them. */
static bool measure_rotated(timing *t) {
    for (int i = 0; i < t->n_rotated; i++) {
        uint64_t begin, end;
        wk_view_range(&t->c->op.view[t->rotated[i]], &begin, &end);
        t->bytes[i] = (end + 255) / 256 * 256;
        if (t->bytes[i] > t->arena.block_bytes) return false;
    }
    return true;
}

/* The next places of the arena, one operand after the other. */
static void rotate(timing *t) {
    for (int i = 0; i < t->n_rotated; i++) {
        wk_view *const view = &t->c->op.view[t->rotated[i]];
        const uint64_t in_block = t->arena.block_bytes / t->bytes[i];
        const uint64_t place = t->next++ % (in_block * (uint64_t)t->arena.n_blocks);
        view->buf = t->arena.blocks[place / in_block];
        view->offset = place % in_block * t->bytes[i];
    }
}

/* One sequence, whose rows are its last tokens, with its blocks in order. */
static void upload_batch(timing *t) {
    int operand;
    const wk_batch_layout *const l = wk_op_batch(&t->c->op, &operand);
    if (l == NULL) return;
    const uint32_t n_keys = l->n_blocks * l->block_size;
    uint32_t *const words = calloc(l->n_words, sizeof *words);
    if (words == NULL) check(WICK_ERR_OUT_OF_MEMORY, &(wick_error){.message = "out of memory"});
    for (uint32_t i = 0; i < l->n_rows; i++)
        words[l->positions + i] = words[l->slots + i] = n_keys - l->n_rows + i;
    words[l->lengths] = n_keys;
    for (uint32_t i = 0; i < l->n_blocks; i++) words[l->tables + i] = i;
    check(t->backend->upload(t->dev, t->c->op.view[operand].buf, 0, words,
                             l->n_words * sizeof *words, &t->error),
          &t->error);
    free(words);
}

/* ---- Time ---- */

static double run(timing *t, const variant *v, int n) {
    wk_ticket ticket;
    wick_status status;
    t->backend->kernels->force_tuning(t->dev, &v->tuning);
    const double begin = wick_time();
    for (int i = 0; i < n; i++) {
        rotate(t);
        check(t->backend->encode(t->dev, v->kernel, &t->c->op, &t->error), &t->error);
    }
    check(t->backend->submit(t->dev, &ticket, &t->error), &t->error);
    while ((status = t->backend->poll(t->dev, ticket, &t->error)) == WICK_PENDING)
        t->backend->pause(t->dev);
    check(status, &t->error);
    const double seconds = wick_time() - begin;
    t->backend->kernels->force_tuning(t->dev, NULL);
    return seconds;
}

/* When time has run out, only the kernel that the device would choose, as it is by default. */
static void find_variants(timing *t) {
    const wk_kernel *kernel = t->backend->find_kernel(t->dev, &t->c->op);
    const wk_backend_kernels *const kernels = t->backend->kernels;
    t->n_variants = 0;
    if (is_late(t->bench)) {
        if (kernel != NULL) t->variants[t->n_variants++] = (variant){.kernel = kernel};
        return;
    }
    for (size_t i = 0; (kernel = kernels->at(t->dev, i)) != NULL; i++) {
        if (kernels->is_disabled(t->dev, kernel) || !wk_kernel_takes(kernel, &t->c->op)) continue;
        const uint32_t n = kernel->n_tunings == 0 ? 1 : kernel->n_tunings;
        for (uint32_t k = 0; k < n && k < MOST_TUNINGS && t->n_variants < MOST_VARIANTS; k++)
            t->variants[t->n_variants++] = (variant){.kernel = kernel, .tuning = k};
    }
}

/* Compiles, warms up, and finds out how many runs last long enough. */
static void prepare(timing *t, variant *v) {
    (void)run(t, v, 1);
    double seconds = run(t, v, 1);
    v->n_runs = 1;
    if (seconds >= too_long) v->seconds[v->n_rounds++] = seconds;
    while (seconds < long_enough && v->n_runs < MOST_RUNS) {
        v->n_runs *= 2;
        seconds = run(t, v, v->n_runs);
    }
}

static void time_rounds(timing *t) {
    for (int round = 0; round < ROUNDS; round++) {
        if (round > 0 && is_late(t->bench)) return;
        for (int i = 0; i < t->n_variants; i++) {
            variant *const v = &t->variants[i];
            if (v->n_rounds > 0 && v->n_runs == 1 && v->seconds[0] >= too_long) continue;
            v->seconds[v->n_rounds++] = run(t, v, v->n_runs) / v->n_runs;
        }
    }
}

static void print_variant(timing *t, variant *v, const wk_kernel *chosen, double least) {
    char text[320];
    bench *const b = t->bench;
    const wk_cost cost = wk_op_cost(&t->c->op, NULL);
    const double seconds = median(v->seconds, v->n_rounds);
    (void)wk_op_text(&t->c->op, text, sizeof text);
    begin_line(b);
    wk_write_put(&b->line, "model", t->model);
    wk_write_put(&b->line, "op", wk_op_get_info(t->c->op.code)->name);
    wk_write_put(&b->line, "type", t->type);
    wk_write_put_whole(&b->line, "rows", (uint64_t)t->rows);
    wk_write_put(&b->line, "operands", text);
    wk_write_put(&b->line, "kernel", v->kernel->name);
    wk_write_put_whole(&b->line, "tuning", v->tuning);
    wk_write_key(&b->line, "is_chosen");
    wk_write_bool(&b->line, v->kernel == chosen);
    wk_write_key(&b->line, "is_fastest");
    wk_write_bool(&b->line, seconds <= least);
    put_number(b, "seconds", seconds);
    put_number(b, "bytes", cost.bytes_read + cost.bytes_written);
    put_number(b, "flops", cost.flops);
    end_line(b);
}

static void print_variants(timing *t) {
    const wk_kernel *const chosen = t->backend->find_kernel(t->dev, &t->c->op);
    double least = 1e30;
    for (int i = 0; i < t->n_variants; i++) {
        const double seconds = median(t->variants[i].seconds, t->variants[i].n_rounds);
        if (seconds < least) least = seconds;
    }
    for (int i = 0; i < t->n_variants; i++) print_variant(t, &t->variants[i], chosen, least);
}

/* The case has been described; its rotated operands follow. */
static void time_case(timing *t, int first, int second) {
    t->n_rotated = first < 0 ? 0 : second < 0 ? 1 : 2;
    t->rotated[0] = first;
    t->rotated[1] = second;
    if (!measure_rotated(t)) {
        char text[320];
        (void)wk_op_text(&t->c->op, text, sizeof text);
        leave_out(t->bench, text, "an operand is larger than a binding");
        return;
    }
    find_variants(t);
    if (t->n_variants == 0) return;
    place_operands(t);
    upload_batch(t);
    for (int i = 0; i < t->n_variants; i++) prepare(t, &t->variants[i]);
    time_rounds(t);
    print_variants(t);
    free_operands(t);
}

/* ---- The table ---- */

typedef struct matrix {
    const char *model;
    int64_t n, k;
    bool is_output; /* its inputs are the last tokens of prompts */
} matrix;

static void time_linear(timing *t, const matrix *w, wick_dtype dtype, int64_t rows) {
    if (w->k % wk_dtype_get(dtype)->block_elements != 0) return; /* no model has such a weight */
    const wk_bench_sizes sizes = {.m = rows, .n = w->n, .k = w->k};
    *t->c = (wk_case){.places = 0};
    wk_bench_describe(t->c, WK_OP_LINEAR, &sizes);
    wk_view *const view = wk_case_dense(t->c, 2, dtype, 2, (const int64_t[]){w->n, w->k});
    view->layout = (uint8_t)t->backend->prepare_weight(t->dev, dtype, w->n, w->k, WK_USE_LINEAR);
    t->c->op.p.linear.fast = true;
    t->model = w->model;
    t->type = wick_dtype_name(dtype);
    t->rows = rows;
    time_case(t, 2, -1);
}

typedef struct head_shape {
    const char *model;
    int64_t heads, key_heads, dim;
} head_shape;

/* Caches of blocks lie in rows, those of floats with keys transposed (model/state.c). */
static void set_cache(wk_case *c, wick_dtype dtype) {
    for (int i = 2; i < 4; i++) {
        wk_view *const view = &c->op.view[i];
        const int64_t extent[4] = {view->extent[0], view->extent[1], view->extent[2],
                                   view->extent[3]};
        const bool is_transposed = i == 2 && !wk_dtype_is_block(dtype);
        (void)wk_case_dense(c, i, dtype, 4, extent);
        if (!is_transposed) continue;
        view->stride[2] = 1;
        view->stride[3] = extent[2];
    }
}

static void time_attention(timing *t, const head_shape *h, wick_dtype cache, int64_t keys,
                           int64_t rows) {
    const wk_bench_sizes sizes = {
        .m = rows, .n = h->dim, .k = keys, .heads = h->heads, .key_heads = h->key_heads};
    *t->c = (wk_case){.places = 0};
    wk_bench_describe(t->c, WK_OP_ATTENTION_CACHED, &sizes);
    set_cache(t->c, cache);
    t->model = h->model;
    t->type = wick_dtype_name(cache);
    t->rows = rows;
    time_case(t, 2, 3);
}

static void time_norm(timing *t, const char *model, int64_t n, int64_t rows) {
    const wk_bench_sizes sizes = {.m = rows, .n = n};
    *t->c = (wk_case){.places = 0};
    wk_bench_describe(t->c, WK_OP_RMS_NORM, &sizes);
    t->model = model;
    t->type = "f32";
    t->rows = rows;
    time_case(t, 1, -1);
}

/* What a sampler asks for: the best of a vocabulary. */
static void time_top_k(timing *t) {
    enum { BEST = 128, VOCABULARY = 151936 };
    const int64_t best = BEST, all = VOCABULARY;
    *t->c = (wk_case){.op = {.code = WK_OP_TOP_K, .n_dst = 2, .n_src = 1}};
    (void)wk_case_dense(t->c, 0, WICK_F32, 1, &best);
    (void)wk_case_dense(t->c, 1, WICK_U32, 1, &best);
    (void)wk_case_dense(t->c, 2, WICK_F32, 1, &all);
    t->model = "qwen3-0.6b";
    t->type = "f32";
    t->rows = 1;
    time_case(t, 2, -1);
}

static const matrix matrices[] = {
    {"smollm2-135m", 576, 1536, false}, {"smollm2-135m", 1536, 576, false},
    {"smollm2-135m", 49152, 576, true}, {"qwen3-0.6b", 1024, 3072, false},
    {"qwen3-0.6b", 3072, 1024, false},  {"qwen3-0.6b", 2048, 1024, false},
    {"qwen3-0.6b", 151936, 1024, true}, {"llama-3-8b", 4096, 4096, false},
    {"llama-3-8b", 1024, 4096, false},  {"llama-3-8b", 14336, 4096, false},
    {"llama-3-8b", 4096, 14336, false}, {"llama-3-8b", 128256, 4096, true},
};
static const wick_dtype types[] = {WICK_Q4_0, WICK_Q8_0, WICK_Q4_K, WICK_Q6_K, WICK_F16};
static const head_shape heads[] = {
    {"smollm2-135m", 9, 3, 64}, {"qwen3-0.6b", 16, 8, 128}, {"llama-3-8b", 32, 8, 128}};

static void time_matrices(timing *t, size_t first, size_t end, int64_t rows) {
    for (size_t i = first; i < end; i++) {
        for (size_t type = 0; type < WK_COUNT(types); type++) {
            if (matrices[i].is_output && rows > 4) continue;
            if (is_late(t->bench)) return;
            time_linear(t, &matrices[i], types[type], rows);
        }
    }
}

static void time_heads(timing *t, int64_t keys, int64_t rows) {
    static const wick_dtype caches[] = {WICK_F16, WICK_F32, WICK_Q8_0, WICK_Q4_0};
    for (size_t i = 0; i < WK_COUNT(heads); i++)
        for (size_t cache = 0; cache < WK_COUNT(caches) && !is_late(t->bench); cache++)
            time_attention(t, &heads[i], caches[cache], keys, rows);
}

/* A sample of everything, which is never left out, then what matters most. */
static void time_table(timing *t) {
    static const int64_t rows[] = {1, 4, 16, 64, 512}, keys[] = {1024, 4096, 32768};
    for (size_t i = 0; i < WK_COUNT(types); i++) time_linear(t, &matrices[0], types[i], 1);
    time_attention(t, &heads[0], WICK_F16, 128, 1);
    time_norm(t, "smollm2-135m", 576, 1);
    time_top_k(t);
    for (size_t r = 0; r < WK_COUNT(rows); r++)
        time_matrices(t, r == 0 ? 1 : 0, WK_COUNT(matrices), rows[r]);
    time_heads(t, 128, 1);
    for (size_t i = 0; i < WK_COUNT(keys); i++) time_heads(t, keys[i], 1);
    for (size_t i = 0; i < 2; i++) time_heads(t, keys[i], 512);
    if (!is_late(t->bench)) time_norm(t, "llama-3-8b", 4096, 1);
    if (!is_late(t->bench)) time_norm(t, "llama-3-8b", 4096, 512);
    if (is_late(t->bench)) leave_out(t->bench, "the rest of the table", "no time was left");
}

void measure_kernels(bench *b) {
    timing *const t = calloc(1, sizeof *t);
    wk_case *const c = calloc(1, sizeof *c);
    if (t == NULL || c == NULL)
        check(WICK_ERR_OUT_OF_MEMORY, &(wick_error){.message = "out of memory"});
    t->bench = b;
    t->backend = b->device->backend;
    t->dev = b->device->handle;
    t->c = c;
    if (b->info.backend != WICK_BACKEND_WEBGPU)
        check(WICK_ERR_UNSUPPORTED, &(wick_error){.message = "kernels: --backend webgpu alone"});
    make_arena(t);
    time_table(t);
    for (int i = 0; i < t->arena.n_blocks; i++) t->backend->free(t->dev, t->arena.blocks[i]);
    free(c);
    free(t);
}
