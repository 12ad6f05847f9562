/* bench/compare.c: what operations of each class reach of the machine's limits, and beside other
 * libraries where the system has them (OpenBLAS, oneDNN).
 *
 * usage: compare [--threads N] [--only TEXT] [--json] [--no-limits]
 *
 * --only takes the cases whose class or name contains TEXT, with CLASS: those of a class;
 * --no-limits leaves the limits out. The two sides of a case take turns, so that whatever else the
 * machine does meets both; the ratio is the median of the turns' ratios, and above 1 Wick is the
 * faster. */
#define _POSIX_C_SOURCE 200809L /* clock_gettime */

#include "compare.h"

#include "core/compiler.h"
#include "sys/clock.h"
#include "sys/thread_pool.h"

#include <wick/wick.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

enum { TURNS = 7, MOST_OPERANDS = 4 };
static const double turn_seconds = 0.03, long_seconds = 0.5;

typedef struct bench {
    wick_device *device;
    int n_threads;
    const char *only;
    bool is_json, has_printed, has_limits;
    double f32_per_second;
    double bytes_per_second[3]; /* of reading 0, 1 or 2 floats for each one that is written; 0:
                                 * nothing is written */
    wk_pool *pool;
} bench;

/* One thread: the time of the processor, so that other programs count for little. */
static clockid_t clock_used = CLOCK_MONOTONIC;

static double now(void) {
    struct timespec t;
    clock_gettime(clock_used, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void fail(const char *why) {
    fprintf(stderr, "compare: %s\n", why);
    exit(1);
}

static void check(bench *b) {
    wick_error err = {0};
    const wick_status status = wick_synchronize(b->device);
    (void)wick_device_error(b->device, &err);
    if (status != WICK_OK || err.status != WICK_OK) fail(err.message);
}

/* --- Two sides that take turns --- */

typedef struct side {
    void (*run)(void *state);
    void *state;
    double seconds[TURNS]; /* of one run */
    int runs, turns;       /* runs that fill a turn; turns that were taken */
} side;

/* Threads of a pool wait for more work in a loop before they sleep, those of OpenBLAS for 2^26
 * cycles: the side whose turn comes would not get the second processor. */
static void let_others_sleep(void) {
    if (clock_used == CLOCK_MONOTONIC) wk_sleep_us(50000);
}

static void take_turn(side *s, int turn) {
    let_others_sleep();
    if (s->runs == 0) {
        double begun = now(), once;
        s->run(s->state); /* to warm up, unless it takes long */
        once = s->seconds[turn] = now() - begun;
        s->runs = 1;
        if (once > long_seconds) return;
        begun = now();
        s->run(s->state);
        once = now() - begun;
        s->runs = once < turn_seconds ? (int)(turn_seconds / (once + 1e-9)) + 1 : 1;
        if (s->runs > 200000) s->runs = 200000;
    } else if (s->seconds[0] < long_seconds) {
        s->run(s->state); /* which wakes its own threads */
    }
    const double begun = now();
    for (int i = 0; i < s->runs; i++) s->run(s->state);
    s->seconds[turn] = (now() - begun) / s->runs;
}

/* Long runs are taken three times. */
static bool is_enough(const side *s, int turns) {
    return turns >= TURNS || (turns >= 3 && s->seconds[0] > long_seconds);
}

static int by_size(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double best_of(const side *s) {
    double best = s->seconds[0];
    for (int i = 1; i < s->turns; i++) best = s->seconds[i] < best ? s->seconds[i] : best;
    return best;
}

typedef struct result {
    const char *group, *name, *unit, *other_name; /* other_name NULL: nothing beside it */
    double work;                                  /* of a run: of 1e9 units a second */
    double limit;                                 /* units a second; 0: there is none */
} result;

static void print_result(bench *b, const result *r, const side *wick, const side *other) {
    double ratios[TURNS];
    const int turns = wick->turns;
    for (int i = 0; other && i < turns; i++) ratios[i] = other->seconds[i] / wick->seconds[i];
    if (other) qsort(ratios, (size_t)turns, sizeof *ratios, by_size);
    const double seconds = best_of(wick), rate = r->work / seconds;
    const double beside = other ? r->work / best_of(other) : 0,
                 ratio = other ? ratios[turns / 2] : 0;
    if (b->is_json) {
        printf("%s{\"class\": \"%s\", \"case\": \"%s\", \"threads\": %d, \"microseconds\": %.4g, "
               "\"unit\": \"%s\", \"rate\": %.4g, \"share\": %.4g, \"other\": \"%s\", "
               "\"other_rate\": %.4g, \"ratio\": %.4g}",
               b->has_printed ? ",\n" : "[", r->group, r->name, b->n_threads, 1e6 * seconds,
               r->unit, 1e-9 * rate, r->limit > 0 ? rate / r->limit : 0, other ? r->other_name : "",
               1e-9 * beside, ratio);
        b->has_printed = true;
        fflush(stdout);
        return;
    }
    printf("%-11s %-30s %10.1f us %8.2f %-7s", r->group, r->name, 1e6 * seconds, 1e-9 * rate,
           r->unit);
    if (r->limit > 0) printf(" %5.1f %%", 100 * rate / r->limit);
    if (other) printf("   %8.2f by %s, ratio %.2f", 1e-9 * beside, r->other_name, ratio);
    printf("\n");
    fflush(stdout);
}

static bool is_wanted(const bench *b, const char *group, const char *name) {
    const size_t n = b->only ? strlen(b->only) : 0;
    if (n > 0 && b->only[n - 1] == ':')
        return strlen(group) == n - 1 && memcmp(group, b->only, n - 1) == 0;
    return !b->only || strstr(group, b->only) || strstr(name, b->only);
}

/* other NULL: it is missing. */
static void measure(bench *b, const result *r, side *wick, side *other) {
    for (int i = 0; !is_enough(wick, i); i++) {
        take_turn(wick, i);
        if (other) take_turn(other, i);
        wick->turns = i + 1;
        if (other) other->turns = i + 1;
    }
    check(b);
    print_result(b, r, wick, other);
}

/* --- An operation of tensors --- */

typedef struct operation operation;
struct operation {
    bench *bench;
    wick_tensor *operands[MOST_OPERANDS];
    const void *desc;
    wick_tensor *(*run)(const operation *op);
};

static void run_operation(void *state) {
    const operation *const op = state;
    const wick_scope scope = wick_scope_begin(op->bench->device);
    if (!op->run(op)) check(op->bench);
    if (wick_synchronize(op->bench->device) != WICK_OK) fail("the device failed");
    wick_scope_end(scope);
}

static wick_tensor *numbers(bench *b, wick_shape shape) {
    return wick_randn(b->device, WICK_F32, shape, 0, 1);
}

/* --- Products --- */

static const product products[] = {
    {"1024", 1, 1024, 1024, 1024, false, false},
    {"4096", 1, 4096, 4096, 4096, false, false},
    {"odd 333 x 517 x 771", 1, 333, 517, 771, false, false},
    {"odd 1023", 1, 1023, 1023, 1023, false, false},
    {"1024, a transposed", 1, 1024, 1024, 1024, true, false},
    {"1024, b transposed", 1, 1024, 1024, 1024, false, true},
    {"batch of 64: 128", 64, 128, 128, 128, false, false},
    {"batch of 256: 128 x 64 x 128", 256, 128, 128, 64, false, true},
    {"1024 x 768 x 256, b transposed", 1, 1024, 768, 256, false, true}, /* of a training step */
    {"1024 x 256 x 768", 1, 1024, 256, 768, false, false},
    {"768 x 256 x 1024, a transposed", 1, 768, 256, 1024, true, false},
    {"thin 1 x 4096 x 4096", 1, 1, 4096, 4096, false, false},
    {"thin 1 x 4096 x 4096, b tr.", 1, 1, 4096, 4096, false, true},
    {"thin 4096 x 1 x 4096", 1, 4096, 1, 4096, false, false},
    {"thin 8 x 4096 x 4096", 1, 8, 4096, 4096, false, false},
    {"thin 4096 x 8 x 4096", 1, 4096, 8, 4096, false, false},
    {"thin 4096 x 4096 x 8", 1, 4096, 4096, 8, false, false},
    {"small 32", 1, 32, 32, 32, false, false},
};

typedef struct blas {
    const product *p;
    int n_threads;
    float *a, *b, *c;
} blas;

static void run_blas(void *state) {
    const blas *const s = state;
    (void)blas_product(s->p, s->n_threads, s->a, s->b, s->c);
}

static float *copy_out(bench *b, wick_tensor *x) {
    const size_t size = wick_tensor_bytes(x);
    float *const memory = aligned_alloc(64, (size + 63) / 64 * 64);
    if (!memory) fail("out of memory");
    if (wick_read(x, memory, size) != WICK_OK) check(b);
    return memory;
}

static wick_tensor *do_matmul(const operation *op) {
    return wick_matmul(op->operands[0], op->operands[1]);
}

static wick_tensor *factor(bench *b, const product *p, int64_t rows, int64_t columns,
                           bool is_transposed, float **memory) {
    wick_tensor *const x = numbers(b, is_transposed ? WICK_SHAPE(p->batch, columns, rows)
                                                    : WICK_SHAPE(p->batch, rows, columns));
    *memory = copy_out(b, x);
    return is_transposed ? wick_transpose(x, 1, 2) : x;
}

static void bench_product(bench *b, const product *p) {
    if (!is_wanted(b, "matmul", p->name)) return;
    const wick_scope scope = wick_scope_begin(b->device);
    blas s = {.p = p, .n_threads = b->n_threads};
    operation op = {.bench = b, .run = do_matmul};
    op.operands[0] = factor(b, p, p->m, p->k, p->a_is_transposed, &s.a);
    op.operands[1] = factor(b, p, p->k, p->n, p->b_is_transposed, &s.b);
    const size_t size = (size_t)(p->batch * p->m * p->n) * sizeof(float);
    s.c = aligned_alloc(64, (size + 63) / 64 * 64);
    if (!s.c) fail("out of memory");
    side wick = {.run = run_operation, .state = &op}, other = {.run = run_blas, .state = &s};
    const bool has_other = blas_product(p, b->n_threads, s.a, s.b, s.c);
    const double work = 2.0 * (double)(p->batch * p->m * p->n) * (double)p->k;
    measure(b, &(result){"matmul", p->name, "GFLOP/s", "OpenBLAS", work, b->f32_per_second}, &wick,
            has_other ? &other : NULL);
    free(s.a), free(s.b), free(s.c);
    wick_scope_end(scope);
}

/* --- Convolutions and pools --- */

static const windows convolutions[] = {
    {"3 x 3, 64 channels of 56", 1, 64, 56, 64, 3, 1, 1, 1, false},
    {"3 x 3, 256 channels of 14, 4", 4, 256, 14, 256, 3, 1, 1, 1, false},
    {"1 x 1, 64 to 256 of 56", 1, 64, 56, 256, 1, 1, 0, 1, false},
    {"1 x 1, 512 to 512 of 14, 4", 4, 512, 14, 512, 1, 1, 0, 1, false},
    {"3 x 3 by 2, 128 of 56", 1, 128, 56, 128, 3, 2, 1, 1, false},
    {"7 x 7 by 2, 3 to 64 of 224", 1, 3, 224, 64, 7, 2, 3, 1, false},
    {"depthwise 3 x 3, 128 of 56", 1, 128, 56, 128, 3, 1, 1, 128, false},
    {"depthwise 3 x 3 by 2, 128 of 56", 1, 128, 56, 128, 3, 2, 1, 128, false},
};

static const windows pools[] = {
    {"max 2 by 2, 64 of 112", 4, 64, 112, 64, 2, 2, 0, 64, true},
    {"max 3 by 2, 64 of 112", 4, 64, 112, 64, 3, 2, 1, 64, true},
    {"mean 2 by 2, 64 of 112", 4, 64, 112, 64, 2, 2, 0, 64, false},
    {"mean 3 by 1, 64 of 56", 4, 64, 56, 64, 3, 1, 1, 64, false},
};

static wick_tensor *do_conv(const operation *op) {
    const windows *const w = op->desc;
    const wick_conv_desc desc = {
        .stride = {w->stride, w->stride}, .padding = {w->padding, w->padding}, .groups = w->groups};
    return wick_conv2d(op->operands[0], op->operands[1], NULL, &desc);
}

static wick_tensor *do_pool(const operation *op) {
    const windows *const w = op->desc;
    const wick_pooling_desc desc = {.kernel = {w->kernel, w->kernel},
                                    .stride = {w->stride, w->stride},
                                    .padding = {w->padding, w->padding},
                                    .excludes_padding = true};
    return w->is_max ? wick_max_pool2d(op->operands[0], &desc, NULL)
                     : wick_avg_pool2d(op->operands[0], &desc);
}

static void run_onednn(void *state) { onednn_run(state); }

static void bench_windows(bench *b, const windows *w, bool is_pool) {
    const char *const group = is_pool ? "pool" : "convolution";
    if (!is_wanted(b, group, w->name)) return;
    const wick_scope scope = wick_scope_begin(b->device);
    const int64_t out = windows_out(w);
    operation op = {.bench = b, .desc = w, .run = is_pool ? do_pool : do_conv};
    op.operands[0] = numbers(b, WICK_SHAPE(w->n, w->c, w->h, w->h));
    op.operands[1] = numbers(b, WICK_SHAPE(w->m, w->c / w->groups, w->kernel, w->kernel));
    float *const x = copy_out(b, op.operands[0]), *const weight = copy_out(b, op.operands[1]);
    const size_t size = (size_t)(w->n * w->m * out * out) * sizeof(float);
    float *const y = aligned_alloc(64, (size + 63) / 64 * 64);
    if (!y) fail("out of memory");
    other_windows *made;
    const bool has_other = onednn_make(w, b->n_threads, x, is_pool ? NULL : weight, y, &made);
    side wick = {.run = run_operation, .state = &op}, other = {.run = run_onednn, .state = made};
    const double elements = (double)(w->n * w->m * out * out);
    const double work = is_pool ? (double)(size + wick_tensor_bytes(op.operands[0]))
                                : 2 * elements * (double)(w->c / w->groups * w->kernel * w->kernel);
    const result r = {group,    w->name, is_pool ? "GB/s" : "GFLOP/s",
                      "oneDNN", work,    is_pool ? b->bytes_per_second[1] : b->f32_per_second};
    measure(b, &r, &wick, has_other ? &other : NULL);
    onednn_done(made);
    free(x), free(weight), free(y);
    wick_scope_end(scope);
}

/* --- What memory bounds --- */

enum { ROWS = 16384, COLUMNS = 1024 }; /* 64 MiB */

#define UNARY(X)                                                                                   \
    X(copy, wick_copy_of)                                                                          \
    X(neg, wick_neg)                                                                               \
    X(sqrt, wick_sqrt)                                                                             \
    X(exp, wick_exp)                                                                               \
    X(log, wick_log)                                                                               \
    X(sin, wick_sin)                                                                               \
    X(tanh, wick_tanh)                                                                             \
    X(erf, wick_erf)                                                                               \
    X(gelu, wick_gelu)                                                                             \
    X(silu, wick_silu)                                                                             \
    X(tan, wick_tan)                                                                               \
    X(asin, wick_asin)                                                                             \
    X(acos, wick_acos)                                                                             \
    X(atan, wick_atan)                                                                             \
    X(sinh, wick_sinh)                                                                             \
    X(cosh, wick_cosh)                                                                             \
    X(asinh, wick_asinh)                                                                           \
    X(acosh, wick_acosh)                                                                           \
    X(atanh, wick_atanh)                                                                           \
    X(expm1, wick_expm1)                                                                           \
    X(exp2, wick_exp2) X(log1p, wick_log1p) X(log2, wick_log2) X(log10, wick_log10)
#define BINARY(X)                                                                                  \
    X(add)                                                                                         \
    X(mul)                                                                                         \
    X(div)                                                                                         \
    X(maximum)                                                                                     \
    X(pow)                                                                                         \
    X(remainder) X(fmod) X(floor_divide) X(atan2) X(hypot) X(copysign) X(nextafter) X(logaddexp)

static wick_tensor *wick_copy_of(wick_tensor *x) {
    wick_tensor *const y = wick_empty(wick_tensor_device(x), WICK_F32, wick_tensor_shape(x));
    return wick_copy(y, x);
}

#define DEFINE(name, call)                                                                         \
    static wick_tensor *do_##name(const operation *op) { return call(op->operands[0]); }
UNARY(DEFINE)
#undef DEFINE
#define DEFINE(name)                                                                               \
    static wick_tensor *do_##name(const operation *op) {                                           \
        return wick_##name(op->operands[0], op->operands[1]);                                      \
    }
BINARY(DEFINE)
#undef DEFINE

/* Over rows, columns and all. */
static const int last[] = {-1}, first[] = {0};
#define DEFINE(name, call)                                                                         \
    static wick_tensor *do_##name(const operation *op) {                                           \
        wick_tensor *const x = op->operands[0];                                                    \
        return call;                                                                               \
    }
DEFINE(sum_all, wick_sum(x, 0, NULL, false))
DEFINE(sum_rows, wick_sum(x, 1, last, false))
DEFINE(sum_columns, wick_sum(x, 1, first, false))
DEFINE(mean_rows, wick_mean(x, 1, last, false))
DEFINE(max_rows, wick_max(x, 1, last, false))
DEFINE(max_columns, wick_max(x, 1, first, false))
DEFINE(argmax_rows, wick_argmax(x, -1, false))
DEFINE(prod_rows, wick_prod(x, 1, last, false))
DEFINE(softmax, wick_softmax(x, -1))
DEFINE(log_softmax, wick_log_softmax(x, -1))
DEFINE(cumsum, wick_cumsum(x, -1))
DEFINE(cumsum_columns, wick_cumsum(x, 0))
DEFINE(rms_norm, wick_rms_norm(x, op->operands[2], 1e-5F))
DEFINE(layer_norm, wick_layer_norm(x, op->operands[2], op->operands[2], 1e-5F))
DEFINE(transpose, wick_contiguous(wick_transpose(x, 0, 1)))
DEFINE(to_f16, wick_cast(x, WICK_F16))
DEFINE(index_select, wick_index_select(x, 0, op->operands[3]))
DEFINE(scatter_add, wick_index_add(x, 0, op->operands[3], op->operands[1]))
DEFINE(argsort, wick_argsort(x, -1, false))
#undef DEFINE

typedef struct memory_case {
    const char *group, *name;
    wick_tensor *(*run)(const operation *op);
    int n_read, n_written; /* floats for each element */
} memory_case;

static const memory_case memory_cases[] = {
#define ROW(name, call) {"elementwise", #name, do_##name, 1, 1},
    UNARY(ROW)
#undef ROW
#define ROW(name) {"elementwise", #name, do_##name, 2, 1},
        BINARY(ROW)
#undef ROW
            {"reduction", "sum of all", do_sum_all, 1, 0},
    {"reduction", "sum of rows", do_sum_rows, 1, 0},
    {"reduction", "sum of columns", do_sum_columns, 1, 0},
    {"reduction", "mean of rows", do_mean_rows, 1, 0},
    {"reduction", "max of rows", do_max_rows, 1, 0},
    {"reduction", "max of columns", do_max_columns, 1, 0},
    {"reduction", "argmax of rows", do_argmax_rows, 1, 0},
    {"reduction", "prod of rows", do_prod_rows, 1, 0},
    {"softmax", "softmax", do_softmax, 1, 1},
    {"softmax", "log_softmax", do_log_softmax, 1, 1},
    {"norm", "rms_norm", do_rms_norm, 1, 1},
    {"norm", "layer_norm", do_layer_norm, 1, 1},
    {"cumulate", "cumsum of rows", do_cumsum, 1, 1},
    {"cumulate", "cumsum of columns", do_cumsum_columns, 1, 1},
    {"copy", "transpose", do_transpose, 1, 1},
    {"copy", "to f16 (half counted)", do_to_f16, 1, 1},
    {"index", "index_select of rows", do_index_select, 1, 1},
    {"index", "index_add of rows", do_scatter_add, 2, 1},
};

static void bench_memory(bench *b, const memory_case *c, wick_tensor *const *operands) {
    if (!is_wanted(b, c->group, c->name)) return;
    operation op = {.bench = b, .run = c->run};
    memcpy(op.operands, operands, sizeof op.operands);
    side wick = {.run = run_operation, .state = &op};
    const double work = 4.0 * ROWS * COLUMNS * (c->n_read + c->n_written);
    const double limit = b->bytes_per_second[c->n_written > 0 ? c->n_read : 0];
    measure(b, &(result){c->group, c->name, "GB/s", NULL, work, limit}, &wick, NULL);
}

static void bench_all_memory(bench *b) {
    const wick_scope scope = wick_scope_begin(b->device);
    wick_tensor *const index =
        wick_cast(wick_rand(b->device, WICK_F32, WICK_SHAPE(ROWS), 0, (double)ROWS), WICK_U32);
    wick_tensor *const operands[MOST_OPERANDS] = {
        wick_rand(b->device, WICK_F32, WICK_SHAPE(ROWS, COLUMNS), 0.1, 0.9),
        wick_rand(b->device, WICK_F32, WICK_SHAPE(ROWS, COLUMNS), 0.1, 0.9),
        wick_ones(b->device, WICK_F32, WICK_SHAPE(COLUMNS)), index};
    for (size_t i = 0; i < sizeof memory_cases / sizeof *memory_cases; i++)
        bench_memory(b, &memory_cases[i], operands);
    wick_scope_end(scope);
}

/* --- Sort, beside a radix sort of 8 bits at a time --- */

typedef struct radix {
    int64_t n;
    const float *from;
    uint32_t *keys[2], *index[2];
} radix;

static void run_radix(void *state) {
    const radix *const r = state;
    for (int64_t i = 0; i < r->n; i++) {
        uint32_t bits;
        memcpy(&bits, &r->from[i], sizeof bits);
        r->keys[0][i] = bits >> 31 ? ~bits : bits | 1U << 31;
        r->index[0][i] = (uint32_t)i;
    }
    for (int pass = 0; pass < 4; pass++) {
        const uint32_t *const keys = r->keys[pass % 2], *const index = r->index[pass % 2];
        int64_t at[256] = {0}, sum = 0;
        for (int64_t i = 0; i < r->n; i++) at[keys[i] >> 8 * pass & 255]++;
        for (int d = 0; d < 256; d++) {
            const int64_t count = at[d];
            at[d] = sum;
            sum += count;
        }
        for (int64_t i = 0; i < r->n; i++) {
            const int64_t to = at[keys[i] >> 8 * pass & 255]++;
            r->keys[(pass + 1) % 2][to] = keys[i];
            r->index[(pass + 1) % 2][to] = index[i];
        }
    }
}

static void bench_sort(bench *b, const char *name, int64_t rows, int64_t n) {
    if (!is_wanted(b, "sort", name)) return;
    const wick_scope scope = wick_scope_begin(b->device);
    operation op = {.bench = b, .run = do_argsort, .operands = {numbers(b, WICK_SHAPE(rows, n))}};
    float *const from = copy_out(b, op.operands[0]);
    const size_t room = (size_t)n * sizeof(uint32_t);
    radix r = {n, from, {malloc(room), malloc(room)}, {malloc(room), malloc(room)}};
    side wick = {.run = run_operation, .state = &op}, other = {.run = run_radix, .state = &r};
    /* The radix sort is of one row. */
    measure(b, &(result){"sort", name, "G/s", "a radix sort", (double)(rows * n), 0}, &wick,
            rows == 1 ? &other : NULL);
    for (int i = 0; i < 2; i++) free(r.keys[i]), free(r.index[i]);
    free(from);
    wick_scope_end(scope);
}

/* --- What an operation costs by itself --- */

enum { CALLS = 100 };

/* The scope keeps the results until they are there: what no one can read is not computed. */
static void run_many(void *state) {
    const operation *const op = state;
    const wick_scope scope = wick_scope_begin(op->bench->device);
    for (int i = 0; i < CALLS; i++) (void)op->run(op);
    if (wick_synchronize(op->bench->device) != WICK_OK) fail("the device failed");
    wick_scope_end(scope);
}

static void bench_call(bench *b) {
    if (!is_wanted(b, "call", "add of one element")) return;
    const wick_scope scope = wick_scope_begin(b->device);
    operation op = {.bench = b, .run = do_add};
    op.operands[0] = numbers(b, WICK_SHAPE(1));
    op.operands[1] = numbers(b, WICK_SHAPE(1));
    side wick = {.run = run_many, .state = &op};
    measure(b, &(result){"call", "100 adds of one element", "G/s", NULL, CALLS, 0}, &wick, NULL);
    wick_scope_end(scope);
}

/* --- The limits --- */

enum {
    MOST_SUMS = 64,
    BLOCK = 1 << 16, /* floats */
    N_BLOCKS = 256,  /* 64 MiB for each operand */
    LINE = 16,       /* floats that are read before the next of the other half */
    N_FORMS = 6,
};

/* Bytes from what is read to what is asked for; past the end nothing happens. */
static const int ahead[N_FORMS / 2] = {0, 1024, 2048};

typedef struct stream {
    float *y, *a, *b; /* b NULL: a copy; y NULL: a sum */
    bool is_direct;   /* past the caches */
    int ahead;
    wk_pool *pool;
    float sums[MOST_SUMS]; /* or the compiler would leave the reading out */
} stream;

/* Of both halves in turns, which keeps more of memory at work than one run through it does; in 64
 * sums, so that adding keeps up with reading. */
static float sum_block(const float *a, int further) {
    enum { HALF = BLOCK / 2 };
    float sums[4 * LINE] = {0}, sum = 0;
    for (int i = 0; i < HALF; i += 2 * LINE) {
        for (int part = 0; part < 4; part++) {
            const float *const x = a + part % 2 * HALF + i + part / 2 * LINE;
            if (further > 0) wk_prefetch((const char *)x + further);
            for (int j = 0; j < LINE; j++) sums[part * LINE + j] += x[j];
        }
    }
    for (int j = 0; j < 4 * LINE; j++) sum += sums[j];
    return sum;
}

static void store_block(float *y, const float *a, const float *b, const stream *s) {
    for (int i = 0; i < BLOCK; i += LINE) {
        if (s->ahead > 0) wk_prefetch((const char *)(a + i) + s->ahead);
        if (s->ahead > 0 && b) wk_prefetch((const char *)(b + i) + s->ahead);
#ifdef __SSE2__
        for (int j = i; s->is_direct && j < i + LINE; j += 4) {
            const __m128 x = _mm_load_ps(a + j);
            _mm_stream_ps(y + j, b ? _mm_add_ps(x, _mm_load_ps(b + j)) : x);
        }
        if (s->is_direct) continue;
#endif
        for (int j = i; b && j < i + LINE; j++) y[j] = a[j] + b[j];
        if (!b) memcpy(y + i, a + i, LINE * sizeof *y);
    }
}

static void run_blocks(void *argument, int worker, int64_t begin, int64_t end) {
    stream *const s = argument;
    for (int64_t i = begin; i < end && !s->y; i++)
        s->sums[worker % MOST_SUMS] += sum_block(s->a + i * BLOCK, s->ahead);
    for (int64_t i = begin; i < end && s->y; i++)
        store_block(s->y + i * BLOCK, s->a + i * BLOCK, s->b ? s->b + i * BLOCK : NULL, s);
}

static void run_stream(void *state) {
    stream *const s = state;
    wk_pool_run(s->pool, run_blocks, s, N_BLOCKS, 1);
}

/* Of the best form. */
static double stream_rate(stream s, int n_operands) {
    double best = 0;
    for (int form = 0; form < N_FORMS; form++) {
        s.is_direct = form % 2 != 0;
        s.ahead = ahead[form / 2];
        side both = {.run = run_stream, .state = &s};
        for (; both.turns < TURNS; both.turns++) take_turn(&both, both.turns);
        const double rate = 4.0 * BLOCK * N_BLOCKS * n_operands / best_of(&both);
        best = rate > best ? rate : best;
    }
    return best;
}

/* As a device has it: in large pages. */
static float *operand_of_stream(void) {
    const size_t size = sizeof(float) * BLOCK * N_BLOCKS;
    float *const x = aligned_alloc(64, size);
    if (!x) fail("out of memory");
    wk_memory_prefer_large_pages(x, size);
    memset(x, 0, size);
    return x;
}

static void find_limits(bench *b) {
    wick_device_limits limits;
    wick_error err = {0};
    if (wick_device_measure(b->device, &limits, &err) != WICK_OK) fail(err.message);
    wk_heap heap;
    wk_heap_init(&heap, NULL);
    if (wk_pool_make(&heap, b->n_threads, &b->pool, &err) != WICK_OK) fail(err.message);
    float *const y = operand_of_stream(), *const a = operand_of_stream();
    float *const c = operand_of_stream();
    b->f32_per_second = limits.f32_ops_per_second;
    b->bytes_per_second[0] = stream_rate((stream){.a = a, .pool = b->pool}, 1);
    b->bytes_per_second[1] = stream_rate((stream){.y = y, .a = a, .pool = b->pool}, 2);
    b->bytes_per_second[2] = stream_rate((stream){.y = y, .a = a, .b = c, .pool = b->pool}, 3);
    free(y), free(a), free(c);
    wk_pool_free(b->pool);
    fprintf(stderr, "%d threads: %.1f GFLOP/s; GB/s: %.1f reading, %.1f copying, %.1f adding\n",
            b->n_threads, 1e-9 * b->f32_per_second, 1e-9 * b->bytes_per_second[0],
            1e-9 * b->bytes_per_second[1], 1e-9 * b->bytes_per_second[2]);
}

int main(int argc, char **argv) {
    bench b = {.n_threads = 1, .has_limits = true};
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--json") == 0)
            b.is_json = true;
        else if (strcmp(argv[i], "--threads") == 0 && i + 1 < argc)
            b.n_threads = atoi(argv[++i]);
        else if (strcmp(argv[i], "--only") == 0 && i + 1 < argc)
            b.only = argv[++i];
        else if (strcmp(argv[i], "--no-limits") == 0)
            b.has_limits = false;
        else
            fail("usage: compare [--threads N] [--only TEXT] [--json] [--no-limits]");
    }
    if (b.n_threads == 1) clock_used = CLOCK_PROCESS_CPUTIME_ID;
    wick_error err = {0};
    /* Each operation is measured by itself, and results may go unread. */
    const wick_device_desc desc = {
        .backend = WICK_BACKEND_CPU, .n_threads = b.n_threads, .fusion = WICK_FUSION_OFF};
    if (wick_device_open(&desc, &b.device, &err) != WICK_OK) fail(err.message);
    if (b.has_limits) find_limits(&b);
    for (size_t i = 0; i < sizeof products / sizeof *products; i++) bench_product(&b, &products[i]);
    for (size_t i = 0; i < sizeof convolutions / sizeof *convolutions; i++)
        bench_windows(&b, &convolutions[i], false);
    for (size_t i = 0; i < sizeof pools / sizeof *pools; i++) bench_windows(&b, &pools[i], true);
    bench_all_memory(&b);
    bench_sort(&b, "argsort of 1,000,000", 1, 1000000);
    bench_sort(&b, "argsort of 1000 x 1000", 1000, 1000);
    bench_call(&b);
    if (b.is_json) printf("%s\n", b.has_printed ? "]" : "[]");
    wick_device_close(b.device);
    return 0;
}
