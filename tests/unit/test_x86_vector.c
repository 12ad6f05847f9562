/* tests/unit/test_x86_vector.c: elementwise functions, norm, softmax, rotation, copies, products
 * and cached attention against cpu/ref, on odd sizes, strides and alignments. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "x86_case.h"

#include "core/half.h"

#include <math.h>
#include <stdio.h>

enum { MAX_OPERANDS = 8 };

/* An op with its memory. */
typedef struct fixture {
    wk_op op;
    x86_memory memory[MAX_OPERANDS];
    int n;
} fixture;

static size_t element_bytes(wick_dtype dtype) { return dtype == WICK_F16 ? 2 : 4; }

/* Adds a dense operand, in op order, of random numbers. */
static wk_view *add(fixture *f, wk_rng *rng, wick_dtype dtype, int rank, const int64_t *extent) {
    int64_t count = 1;
    for (int d = 0; d < rank; d++) count *= extent[d];
    x86_memory *const memory = &f->memory[f->n];
    x86_memory_make(memory, (size_t)count * element_bytes(dtype));
    for (int64_t i = 0; i < count; i++) {
        const float value = x86_random(rng);
        const uint16_t half = wk_f32_to_f16(value);
        if (dtype == WICK_F32) memcpy((float *)x86_contents(memory) + i, &value, sizeof value);
        if (dtype == WICK_F16) memcpy((uint16_t *)x86_contents(memory) + i, &half, sizeof half);
    }
    f->op.view[f->n] = x86_view(memory, dtype, rank, extent);
    return &f->op.view[f->n++];
}

static void fixture_free(fixture *f) {
    for (int i = 0; i < f->n; i++)
        if (f->memory[i].base != NULL) x86_memory_free(&f->memory[i]);
}

static const wk_cpu_kernel *reference(wk_opcode code) {
    for (size_t i = 0;; i++) {
        const wk_cpu_kernel *const kernel = wk_cpu_kernel_at(i);
        assert_non_null(kernel);
        if (kernel->code == code && kernel->base.is_reference) return kernel;
    }
}

static double element(const void *data, wick_dtype dtype, size_t i) {
    float value;
    uint16_t half;
    memcpy(&value, (const char *)data + 4 * (dtype == WICK_F16 ? 0 : i), sizeof value);
    memcpy(&half, (const char *)data + 2 * i, sizeof half);
    return (double)(dtype == WICK_F16 ? wk_f16_to_f32(half) : value);
}

static void compare(const fixture *f, const char *name, int operand, const void *want,
                    double bound) {
    const x86_memory *const memory = &f->memory[operand];
    const wick_dtype dtype = f->op.view[operand].dtype;
    for (size_t i = 0; i < memory->size / element_bytes(dtype); i++) {
        const double x = element(want, dtype, i), y = element(x86_contents(memory), dtype, i);
        if (isnan(x) && isnan(y)) continue;
        if (!(x == y || fabs(x - y) <= bound * (1 + fabs(x)))) {
            print_message("%s: element %d is %.9g instead of %.9g\n", name, (int)i, y, x);
            fail();
        }
    }
}

/* Runs every kernel that takes the op and compares its destinations with what cpu/ref gives, and
 * with each other bit for bit. At least one must take it. */
static void check(fixture *f, double bound) {
    unsigned char *before[2] = {0}, *want[2] = {0}, *first[2] = {0};
    const int n = f->op.n_dst;
    for (int i = 0; i < n; i++) {
        const size_t size = f->memory[i].size;
        before[i] = malloc(size + 1), want[i] = malloc(size + 1), first[i] = malloc(size + 1);
        assert_true(before[i] != NULL && want[i] != NULL && first[i] != NULL);
        memcpy(before[i], x86_contents(&f->memory[i]), size);
    }
    x86_run(reference(f->op.code), &f->op, 1);
    for (int i = 0; i < n; i++) memcpy(want[i], x86_contents(&f->memory[i]), f->memory[i].size);
    int n_run = 0;
    for (size_t at = 0; wk_cpu_kernel_at(at) != NULL; at++) {
        const wk_cpu_kernel *const k = wk_cpu_kernel_at(at);
        if (k->code != f->op.code || k->needs == 0 || !x86_can_run(k) || !k->accepts(&f->op))
            continue;
        for (int i = 0; i < n; i++)
            memcpy(x86_contents(&f->memory[i]), before[i], f->memory[i].size);
        x86_run(k, &f->op, 1 + n_run % 2);
        for (int i = 0; i < n; i++) {
            compare(f, k->base.name, i, want[i], bound);
            if (n_run == 0) memcpy(first[i], x86_contents(&f->memory[i]), f->memory[i].size);
            assert_memory_equal(first[i], x86_contents(&f->memory[i]), f->memory[i].size);
        }
        n_run++;
    }
    if (wk_cpu_features() & WK_CPU_AVX2) assert_true(n_run > 0);
    for (int i = 0; i < n; i++) {
        free(before[i]);
        free(want[i]);
        free(first[i]);
    }
}

/* Takes every second row of a dense operand with twice the rows. */
static void spread_rows(wk_view *view) {
    view->extent[0] /= 2;
    view->stride[0] *= 2;
}

static void test_elementwise(void **state) {
    (void)state;
    static const wk_opcode codes[] = {WK_OP_UNARY, WK_OP_BINARY, WK_OP_BINARY, WK_OP_GATED,
                                      WK_OP_COPY};
    wk_rng rng = {.seed = 1};
    for (size_t c = 0; c < sizeof codes / sizeof *codes; c++) {
        for (int64_t n = 1; n < 100; n += 1 + n / 3) {
            const int n_src = codes[c] == WK_OP_BINARY || codes[c] == WK_OP_GATED ? 2 : 1;
            fixture f = {.op = {.code = codes[c], .n_dst = 1, .n_src = (uint8_t)n_src}};
            if (codes[c] == WK_OP_BINARY) f.op.p.binary = c == 1 ? WK_BINARY_ADD : WK_BINARY_MUL;
            add(&f, &rng, WICK_F32, 3, (const int64_t[]){3, 5, n});
            spread_rows(add(&f, &rng, WICK_F32, 3, (const int64_t[]){6, 5, n}));
            if (n_src == 2) {
                wk_view *const row = add(&f, &rng, WICK_F32, 1, (const int64_t[]){n});
                *row = (wk_view){.buf = row->buf,
                                 .offset = row->offset,
                                 .rank = 3,
                                 .extent = {3, 5, n},
                                 .stride = {0, 0, 1}};
            }
            check(&f, 4e-7);
            fixture_free(&f);
        }
    }
}

/* From far below to far above where e^x fits in a float. */
static void test_silu_range(void **state) {
    (void)state;
    enum { N = 4000 };
    wk_rng rng = {.seed = 2};
    fixture f = {.op = {.code = WK_OP_UNARY, .n_dst = 1, .n_src = 1}};
    add(&f, &rng, WICK_F32, 1, (const int64_t[]){N});
    add(&f, &rng, WICK_F32, 1, (const int64_t[]){N});
    float *const x = x86_contents(&f.memory[1]);
    for (int i = 0; i < N; i++) x[i] = (float)(i - N / 2) * 0.06F;
    x[0] = NAN, x[1] = INFINITY, x[2] = -1e30F, x[3] = 1e30F, x[4] = 0, x[5] = 1e-40F;
    check(&f, 3e-7);
    for (int i = 6; i < N; i++) { /* and relative to each result */
        const double want = (double)x[i] / (1 + exp(-(double)x[i]));
        const double got = (double)((float *)x86_contents(&f.memory[0]))[i];
        if (x[i] > -80) assert_true(fabs(got - want) <= 3e-7 * fabs(want));
    }
    fixture_free(&f);
}

static void test_norm_and_softmax(void **state) {
    (void)state;
    wk_rng rng = {.seed = 3};
    for (int64_t n = 1; n < 700; n += 1 + n / 4) {
        for (int has_weight = 0; has_weight < 2; has_weight++) {
            fixture f = {.op = {.code = WK_OP_RMS_NORM, .n_dst = 1, .n_src = 2}};
            f.op.p.norm.eps = 1e-5F;
            add(&f, &rng, WICK_F32, 2, (const int64_t[]){3, n});
            spread_rows(add(&f, &rng, WICK_F32, 2, (const int64_t[]){6, n}));
            if (has_weight) add(&f, &rng, WICK_F32, 1, &n);
            check(&f, 4e-7);
            fixture_free(&f);
        }
        fixture f = {.op = {.code = WK_OP_SOFTMAX, .n_dst = 1, .n_src = 1}};
        add(&f, &rng, WICK_F32, 2, (const int64_t[]){3, n});
        add(&f, &rng, WICK_F32, 2, (const int64_t[]){3, n});
        float *const x = x86_contents(&f.memory[1]);
        for (int64_t i = 0; i < n; i++) {
            x[i] *= 30;
            if (i % 3 == 1) x[i] = -INFINITY;
            if (n % 2 == 0) x[2 * n + i] = -INFINITY; /* a row of nothing is NaN */
        }
        check(&f, 4e-7);
        fixture_free(&f);
    }
}

static void test_rope_table(void **state) {
    (void)state;
    wk_rng rng = {.seed = 4};
    for (int64_t half = 1; half < 50; half += 1 + half / 5) {
        for (int i = 0; i < 4; i++) {
            const int64_t d = 2 * half + (i & 1) * 6;
            fixture f = {.op = {.code = WK_OP_ROPE_TABLE, .n_dst = 1, .n_src = 3}};
            f.op.p.rope_table.interleaved = i >= 2;
            add(&f, &rng, WICK_F32, 4, (const int64_t[]){2, 3, 5, d});
            add(&f, &rng, WICK_F32, 4, (const int64_t[]){2, 3, 5, d});
            add(&f, &rng, WICK_F32, 3, (const int64_t[]){2, 3, half});
            add(&f, &rng, WICK_F32, 3, (const int64_t[]){2, 3, half});
            check(&f, 6e-7);
            f.op.view[1] = f.op.view[0]; /* in place */
            check(&f, 6e-7);
            fixture_free(&f);
        }
    }
}

static void test_matmul(void **state) {
    (void)state;
    static const int64_t cases[][3] = {{1, 1, 1},     {3, 5, 7}, {13, 40, 31}, {12, 32, 64},
                                       {25, 65, 100}, {4, 0, 9}, {70, 17, 48}, {7, 129, 1}};
    wk_rng rng = {.seed = 5};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (int turned = 0; turned < 4; turned++) {
            const int64_t m = cases[i][0], k = cases[i][1], n = cases[i][2];
            fixture f = {.op = {.code = WK_OP_MATMUL, .n_dst = 1, .n_src = 2}};
            add(&f, &rng, WICK_F32, 3, (const int64_t[]){2, m, n});
            for (int o = 0; o < 2; o++) {
                const int64_t rows = o == 0 ? m : k, columns = o == 0 ? k : n;
                const bool is_turned = (turned >> o & 1) != 0;
                wk_view *const v = add(
                    &f, &rng, WICK_F32, 3,
                    (const int64_t[]){2, is_turned ? columns : rows, is_turned ? rows : columns});
                if (!is_turned) continue;
                v->extent[1] = rows, v->extent[2] = columns;
                v->stride[1] = 1, v->stride[2] = rows;
            }
            check(&f, 3e-6);
            fixture_free(&f);
        }
    }
}

/* ---- The paged cache. ---- */

typedef struct cache_case {
    wick_dtype dtype;
    int64_t heads, groups, d, e, block_size;
    int window;
    uint32_t n_rows, n_sequences;
    const uint32_t *sequences, *positions, *lengths; /* NULL: one sequence of n_rows keys */
} cache_case;

enum { N_BLOCKS = 40 }; /* of one sequence; the cache has 97 */

static void add_batch(fixture *f, wk_rng *rng, const cache_case *c) {
    const uint32_t rows = c->n_rows, n = c->n_sequences;
    const wk_batch_layout b = {
        .n_rows = rows,
        .n_sequences = n,
        .n_blocks = N_BLOCKS,
        .block_size = (uint32_t)c->block_size,
        .ids = 0,
        .positions = rows,
        .sequences = 2 * rows,
        .slots = 3 * rows,
        .outputs = 4 * rows,
        .lengths = 4 * rows,
        .tables = 4 * rows + n,
        .n_words = 4 * rows + n + n * N_BLOCKS,
    };
    f->op.p.cached.batch = b;
    f->op.p.cached.window = c->window;
    f->op.p.cached.scale = 0.3F;
    add(f, rng, WICK_U32, 1, (const int64_t[]){b.n_words});
    uint32_t *const words = x86_contents(&f->memory[f->n - 1]);
    for (uint32_t i = 0; i < n * N_BLOCKS; i++) words[b.tables + i] = i * 5 % 97;
    for (uint32_t s = 0; s < n; s++) words[b.lengths + s] = c->lengths ? c->lengths[s] : rows;
    for (uint32_t r = 0; r < rows; r++) {
        const uint32_t s = c->sequences ? c->sequences[r] : 0;
        const uint32_t position = c->positions ? c->positions[r] : r;
        const uint32_t bs = b.block_size;
        words[b.sequences + r] = s;
        words[b.positions + r] = position;
        words[b.slots + r] =
            s == WK_NO_ROW ? 0 : (s * N_BLOCKS + position / bs) * 5 % 97 * bs + position % bs;
    }
}

static void make_attention(fixture *f, wk_rng *rng, const cache_case *c) {
    *f = (fixture){.op = {.code = WK_OP_ATTENTION_CACHED, .n_dst = 1, .n_src = 6}};
    add(f, rng, WICK_F32, 3, (const int64_t[]){c->n_rows, c->heads, c->e});
    add(f, rng, WICK_F32, 3, (const int64_t[]){c->n_rows, c->heads, c->d});
    add(f, rng, c->dtype, 4, (const int64_t[]){97, c->groups, c->block_size, c->d});
    add(f, rng, c->dtype, 4, (const int64_t[]){97, c->groups, c->block_size, c->e});
    add_batch(f, rng, c);
}

static void test_attention_cached(void **state) {
    (void)state;
    static const uint32_t sequences[] = {0, 0, 1, WK_NO_ROW, 2, 2, 2, 1};
    static const uint32_t positions[] = {3, 4, 200, 0, 77, 78, 79, 130};
    static const uint32_t lengths[] = {5, 201, 80};
    const cache_case cases[] = {
        {WICK_F32, 9, 3, 64, 64, 16, 0, 1, 1, NULL, NULL, NULL},
        {WICK_F32, 9, 3, 64, 64, 16, 0, 150, 1, NULL, NULL, NULL},
        {WICK_F16, 4, 4, 32, 48, 8, 0, 70, 1, NULL, NULL, NULL},
        {WICK_F32, 4, 1, 20, 7, 32, 0, 40, 1, NULL, NULL, NULL},
        {WICK_F16, 8, 2, 80, 80, 16, 50, 200, 1, NULL, NULL, NULL},
        {WICK_F32, 6, 2, 16, 130, 24, 0, 8, 3, sequences, positions, lengths},
        {WICK_F16, 6, 2, 17, 30, 16, 70, 8, 3, sequences, positions, lengths},
    };
    wk_rng rng = {.seed = 6};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        fixture f;
        make_attention(&f, &rng, &cases[i]);
        check(&f, 8e-6); /* e^x turns the absolute error of a logit into a relative one */
        fixture_free(&f);
    }
}

/* Rows together and each alone give the same bits. */
static void test_attention_same_bits(void **state) {
    (void)state;
    enum { ROWS = 150, HEADS = 9, D = 64 };
    wk_rng rng = {.seed = 7};
    fixture f;
    const cache_case c = {WICK_F32, HEADS, 3, D, D, 16, 60, ROWS, 1, NULL, NULL, NULL};
    make_attention(&f, &rng, &c);
    for (size_t at = 0; wk_cpu_kernel_at(at) != NULL; at++) {
        const wk_cpu_kernel *const k = wk_cpu_kernel_at(at);
        if (k->code != WK_OP_ATTENTION_CACHED || k->needs == 0 || !x86_can_run(k)) continue;
        x86_run(k, &f.op, 1);
        const float *const all = x86_contents(&f.memory[0]);
        for (uint32_t r = 0; r < ROWS; r += 7) {
            wk_op op = f.op;
            op.p.cached.batch.n_rows = 1;
            op.p.cached.batch.sequences += r;
            op.p.cached.batch.positions += r;
            x86_memory y;
            x86_memory_make(&y, HEADS * D * sizeof(float));
            op.view[0] = x86_view(&y, WICK_F32, 3, (const int64_t[]){1, HEADS, D});
            op.view[1].offset += r * HEADS * D * sizeof(float);
            op.view[1].extent[0] = 1;
            x86_run(k, &op, 1);
            assert_memory_equal(all + r * HEADS * D, x86_contents(&y), HEADS * D * sizeof(float));
            x86_memory_free(&y);
        }
    }
    fixture_free(&f);
}

/* Numbers out of range: nothing is read or written through them, and the fault is set. */
static void test_attention_fault(void **state) {
    (void)state;
    wk_rng rng = {.seed = 8};
    for (int kind = 0; kind < 4; kind++) {
        fixture f;
        const cache_case c = {WICK_F32, 2, 1, 16, 16, 16, 0, 3, 1, NULL, NULL, NULL};
        make_attention(&f, &rng, &c);
        const wk_batch_layout b = f.op.p.cached.batch;
        uint32_t *const words = x86_contents(&f.memory[4]);
        if (kind == 0) words[b.sequences + 1] = 1;
        if (kind == 1) words[b.positions + 1] = 3;
        if (kind == 2) words[b.lengths] = N_BLOCKS * 16 + 1;
        if (kind == 3) words[b.tables] = 97;
        for (size_t at = 0; wk_cpu_kernel_at(at) != NULL; at++) {
            const wk_cpu_kernel *const k = wk_cpu_kernel_at(at);
            if (k->code != WK_OP_ATTENTION_CACHED || k->needs == 0 || !x86_can_run(k)) continue;
            void *const worker = x86_scratch(k->worker_bytes(&f.op));
            atomic_bool fault = false;
            const wk_cpu_run run = {.op = &f.op, .worker_scratch = worker, .fault = &fault};
            k->run(&run, 0, 0, k->items(&f.op, 0));
            assert_true(fault);
            free(worker);
        }
        fixture_free(&f);
    }
}

static void test_kv_append(void **state) {
    (void)state;
    static const uint32_t sequences[] = {0, WK_NO_ROW, 1, 1};
    static const uint32_t positions[] = {9, 0, 40, 41};
    static const uint32_t lengths[] = {10, 42};
    wk_rng rng = {.seed = 9};
    for (int64_t d = 1; d < 70; d += 11) {
        const cache_case c = {d % 2 == 0 ? WICK_F16 : WICK_F32,
                              3,
                              3,
                              d,
                              d + 3,
                              16,
                              0,
                              4,
                              2,
                              sequences,
                              positions,
                              lengths};
        fixture f = {.op = {.code = WK_OP_KV_APPEND, .n_dst = 2, .n_src = 3}};
        add(&f, &rng, c.dtype, 4, (const int64_t[]){97, 3, 16, c.d});
        add(&f, &rng, c.dtype, 4, (const int64_t[]){97, 3, 16, c.e});
        add(&f, &rng, WICK_F32, 3, (const int64_t[]){4, 3, c.d});
        add(&f, &rng, WICK_F32, 3, (const int64_t[]){4, 3, c.e});
        add_batch(&f, &rng, &c);
        check(&f, 0);
        fixture_free(&f);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_elementwise),
        cmocka_unit_test(test_silu_range),
        cmocka_unit_test(test_norm_and_softmax),
        cmocka_unit_test(test_rope_table),
        cmocka_unit_test(test_matmul),
        cmocka_unit_test(test_attention_cached),
        cmocka_unit_test(test_attention_same_bits),
        cmocka_unit_test(test_attention_fault),
        cmocka_unit_test(test_kv_append),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
