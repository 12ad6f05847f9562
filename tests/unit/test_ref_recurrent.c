/* Ops that carry a state, of cpu/ref and of this processor: against the formulas written out over
 * whole sequences, in one batch, in chunks and token by token; what must be refused. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "ref_case.h"

#include "sys/cpu_features.h"

#include <math.h>

enum { T = 7, C = 21, K = 4, H = 4, P = 19, N = 5, G = 2, SLOTS = 3 };

/* Tokens of two sequences side by side, with a padding row between. */
enum { MAX_ROWS = 2 * T + 1, MAX_WORDS = 3 * MAX_ROWS + 2 };
static const uint32_t slots[2] = {2, 0};

typedef struct batch {
    wk_batch_layout layout;
    uint32_t words[MAX_WORDS];
} batch;

/* Tokens [begin, end) of both. */
static void make_batch(batch *b, uint32_t begin, uint32_t end) {
    const uint32_t n = 2 * (end - begin) + 1;
    memset(b->words, 0, sizeof b->words);
    b->layout = (wk_batch_layout){
        .n_rows = n, .n_sequences = 2, .sequences = n, .states = 2 * n, .n_words = 2 * n + 2};
    for (uint32_t i = 0; i < n - 1; i++) {
        const uint32_t row = i == 0 ? 0 : i + 1;
        b->words[row] = begin + i / 2;
        b->words[n + row] = i % 2;
    }
    b->words[n + 1] = WK_NO_ROW;
    memcpy(&b->words[2 * n], slots, sizeof slots);
}

/* Row of token t of a sequence, in a batch of tokens from begin on. */
static uint32_t row_of(uint32_t t, uint32_t sequence, uint32_t begin) {
    const uint32_t i = 2 * (t - begin) + sequence;
    return i == 0 ? 0 : i + 1;
}

static void fill(float *x, size_t n, double seed) {
    for (size_t i = 0; i < n; i++) x[i] = (float)sin((double)i * 1.3 + seed);
}

/* Tokens come in chunks of this many. */
static const uint32_t chunks[] = {T, 3, 1};

/* Kernels: the reference, and the best of this processor. */
enum { N_LEVELS = 2 };

static bool run(ref_case *c, int level) {
    if (level == 0) return ref_run(c);
    return ref_run_by(c, wk_cpu_find_kernel(&c->op, wk_cpu_features()));
}

/* --- causal_conv --- */

typedef struct conv_case {
    float x[2][T][C], y[2][T][C], weight[C][K], bias[C], state[SLOTS][K - 1][C];
} conv_case;

static bool run_conv(conv_case *v, uint32_t begin, uint32_t end, const batch *b, int level) {
    static float x[MAX_ROWS][C], y[MAX_ROWS][C];
    const int64_t n = b->layout.n_rows;
    for (uint32_t t = begin; t < end; t++)
        for (uint32_t s = 0; s < 2; s++) memcpy(x[row_of(t, s, begin)], v->x[s][t], sizeof *x);
    memset(y, 0x7F, sizeof y);
    ref_case c;
    ref_begin(&c, WK_OP_CAUSAL_CONV);
    REF_ADD(&c, y, WICK_F32, n, C);
    REF_ADD(&c, v->state, WICK_F32, SLOTS, K - 1, C);
    REF_ADD(&c, x, WICK_F32, n, C);
    REF_ADD(&c, v->weight, WICK_F32, C, K);
    REF_ADD(&c, v->bias, WICK_F32, C);
    ref_add(&c, (void *)(uintptr_t)b->words, sizeof b->words, WICK_U32,
            WICK_SHAPE(b->layout.n_words));
    c.op.p.conv.batch = b->layout;
    const bool has_fault = run(&c, level);
    for (uint32_t t = begin; t < end; t++)
        for (uint32_t s = 0; s < 2; s++) memcpy(v->y[s][t], y[row_of(t, s, begin)], sizeof *y);
    for (int i = 0; i < C && n > 1; i++) assert_true(has_fault || y[1][i] == 0); /* padding */
    return has_fault;
}

static void fill_conv(conv_case *v) {
    fill(&v->x[0][0][0], sizeof v->x / sizeof(float), 1);
    fill(&v->weight[0][0], sizeof v->weight / sizeof(float), 2);
    fill(v->bias, C, 3);
    memset(v->state, 0xFF, sizeof v->state); /* NaN: position 0 must not look */
}

static void test_causal_conv(void **state) {
    (void)state;
    static conv_case v, whole;
    for (int level = 0; level < N_LEVELS; level++) {
        for (size_t k = 0; k < WK_COUNT(chunks); k++) {
            fill_conv(&v);
            for (uint32_t t = 0; t < T; t += chunks[k]) {
                batch b;
                const uint32_t end = t + chunks[k] < T ? t + chunks[k] : T;
                make_batch(&b, t, end);
                assert_false(run_conv(&v, t, end, &b, level));
            }
            if (k == 0) whole = v;
            assert_memory_equal(v.y, whole.y, sizeof v.y);
            assert_memory_equal(v.state, whole.state, sizeof v.state);
        }
        for (int s = 0; s < 2; s++) {
            for (int t = 0; t < T; t++) {
                for (int c = 0; c < C; c++) {
                    double sum = (double)v.bias[c];
                    for (int j = 0; j < K && j <= t; j++)
                        sum += (double)v.weight[c][K - 1 - j] * (double)v.x[s][t - j][c];
                    assert_true(fabs((double)v.y[s][t][c] - sum) < 1e-6);
                }
            }
        }
        for (int j = 0; j < K - 1; j++)
            assert_memory_equal(v.state[slots[0]][j], v.x[0][T - K + 1 + j], sizeof *v.x[0]);
    }
}

/* --- scan --- */

typedef struct scan_case {
    wk_scan_fn fn;
    bool is_tiled;
    float x[2][T][H][P], step[2][T][H], gate[H][P][N], beta[2][T][H], bc[2][T][2][G][N];
    float y[2][T][H][P], state[SLOTS][H][N][P];
} scan_case;

static void fill_scan(scan_case *v) {
    const bool is_delta = v->fn == WK_SCAN_DELTA;
    fill(&v->x[0][0][0][0], sizeof v->x / sizeof(float), 1);
    fill(&v->step[0][0][0], sizeof v->step / sizeof(float), 2);
    fill(&v->gate[0][0][0], sizeof v->gate / sizeof(float), 3);
    fill(&v->beta[0][0][0], sizeof v->beta / sizeof(float), 4);
    fill(&v->bc[0][0][0][0][0], sizeof v->bc / sizeof(float), 5);
    float *const step = &v->step[0][0][0], *const gate = &v->gate[0][0][0];
    for (size_t i = 0; i < sizeof v->step / sizeof(float); i++)
        step[i] = is_delta ? -fabsf(step[i]) : fabsf(step[i]);
    for (size_t i = 0; i < sizeof v->gate / sizeof(float); i++) gate[i] = -fabsf(gate[i]);
    memset(v->state, 0xFF, sizeof v->state);
}

static bool run_scan(scan_case *v, uint32_t begin, uint32_t end, const batch *b, int level) {
    static float x[MAX_ROWS][H][P], y[MAX_ROWS][H][P], step[MAX_ROWS][H], beta[MAX_ROWS][H];
    static float bc[MAX_ROWS][2][G][N];
    const int64_t n = b->layout.n_rows;
    for (uint32_t t = begin; t < end; t++) {
        for (uint32_t s = 0; s < 2; s++) {
            const uint32_t row = row_of(t, s, begin);
            memcpy(x[row], v->x[s][t], sizeof *x);
            memcpy(step[row], v->step[s][t], sizeof *step);
            memcpy(beta[row], v->beta[s][t], sizeof *beta);
            memcpy(bc[row], v->bc[s][t], sizeof *bc);
        }
    }
    memset(y, 0x7F, sizeof y);
    ref_case c;
    ref_begin(&c, WK_OP_SCAN);
    REF_ADD(&c, y, WICK_F32, n, H, P);
    REF_ADD(&c, v->state, WICK_F32, SLOTS, H, N, P);
    REF_ADD(&c, x, WICK_F32, n, H, P);
    wk_view *const steps = REF_ADD(&c, step, WICK_F32, n, H, 1);
    wk_view *const gate = v->fn == WK_SCAN_DELTA ? REF_ADD(&c, beta, WICK_F32, n, H, 1)
                                                 : REF_ADD(&c, v->gate, WICK_F32, H, P, N);
    steps->extent[2] = P; /* one number for a head's channels */
    steps->stride[2] = 0;
    if (v->fn == WK_SCAN_DELTA) {
        gate->extent[2] = P;
        gate->stride[2] = 0;
    }
    REF_ADD(&c, bc, WICK_F32, n, 2, G, N);
    ref_add(&c, (void *)(uintptr_t)b->words, sizeof b->words, WICK_U32,
            WICK_SHAPE(b->layout.n_words));
    c.op.p.scan.fn = v->fn;
    c.op.p.scan.is_tiled = v->is_tiled;
    c.op.p.scan.scale = 0.5F;
    c.op.p.scan.batch = b->layout;
    const bool has_fault = run(&c, level);
    for (uint32_t t = begin; t < end; t++)
        for (uint32_t s = 0; s < 2; s++) memcpy(v->y[s][t], y[row_of(t, s, begin)], sizeof *y);
    for (int i = 0; i < H * P && n > 1; i++) assert_true(has_fault || y[1][i / P][i % P] == 0);
    return has_fault;
}

/* One channel through its whole sequence, in float64. */
static void check_channel(const scan_case *v, int s, int h, int p) {
    const int group = v->is_tiled ? h % G : h / (H / G);
    const bool is_delta = v->fn == WK_SCAN_DELTA;
    double number[N] = {0};
    for (int t = 0; t < T; t++) {
        const float *const first = v->bc[s][t][0][group], *const second = v->bc[s][t][1][group];
        const float *const b = is_delta ? second : first, *const c = is_delta ? first : second;
        const double step = (double)v->step[s][t][h], x = (double)v->x[s][t][h][p];
        double known = 0, y = 0;
        for (int i = 0; i < N; i++) {
            number[i] *= exp(is_delta ? step : step * (double)v->gate[h][p][i]);
            known += number[i] * (double)b[i];
        }
        const double input = is_delta ? (double)v->beta[s][t][h] * (x - known) : step * x;
        for (int i = 0; i < N; i++) {
            number[i] += input * (double)b[i];
            y += 0.5 * number[i] * (double)c[i];
        }
        assert_true(fabs((double)v->y[s][t][h][p] - y) < 2e-5);
    }
    for (int i = 0; i < N; i++)
        assert_true(fabs((double)v->state[slots[s]][h][i][p] - number[i]) < 2e-5);
}

static void check_scan(scan_case *v, int level) {
    static scan_case whole;
    for (size_t k = 0; k < WK_COUNT(chunks); k++) {
        fill_scan(v);
        for (uint32_t t = 0; t < T; t += chunks[k]) {
            batch b;
            const uint32_t end = t + chunks[k] < T ? t + chunks[k] : T;
            make_batch(&b, t, end);
            assert_false(run_scan(v, t, end, &b, level));
        }
        if (k == 0) whole = *v;
        assert_memory_equal(v->y, whole.y, sizeof v->y);
        assert_memory_equal(v->state, whole.state, sizeof v->state);
    }
    for (int i = 0; i < 2 * H * P; i++) check_channel(v, i / (H * P), i / P % H, i % P);
}

static void test_scan(void **state) {
    (void)state;
    static scan_case v;
    for (int i = 0; i < 8; i++) {
        v.fn = i & 1 ? WK_SCAN_DELTA : WK_SCAN_SELECTIVE;
        v.is_tiled = i & 2;
        check_scan(&v, i >> 2);
    }
}

/* --- What is wrong --- */

static void test_bad_words(void **state) {
    (void)state;
    static conv_case conv;
    static scan_case scan;
    batch b;
    for (int i = 0; i < 4; i++) {
        make_batch(&b, 0, 1);
        if (i & 1)
            b.words[b.layout.sequences] = 2; /* there is no such sequence */
        else
            b.words[b.layout.states] = SLOTS; /* nor such a slot */
        fill_conv(&conv);
        fill_scan(&scan);
        const conv_case before = conv;
        assert_true(run_conv(&conv, 0, 1, &b, i >> 1));
        assert_memory_equal(conv.state[slots[0]], before.state[slots[0]], sizeof conv.state[0]);
        assert_true(run_scan(&scan, 0, 1, &b, i >> 1));
    }
}

static void assert_refused(const wk_op *op, wick_status status) {
    wick_error err = {.status = WICK_OK};
    assert_int_equal(wk_op_check(op, &err), status);
}

static void test_refused(void **state) {
    (void)state;
    static float x[2][4][3], s[1][4][5][3], bc[2][2][2][5], gate[4][3][5], y[2][4][3];
    static uint32_t words[8];
    ref_case c;
    ref_begin(&c, WK_OP_SCAN);
    REF_ADD(&c, y, WICK_F32, 2, 4, 3);
    REF_ADD(&c, s, WICK_F32, 1, 4, 5, 3);
    REF_ADD(&c, x, WICK_F32, 2, 4, 3);
    REF_ADD(&c, x, WICK_F32, 2, 4, 3);
    REF_ADD(&c, gate, WICK_F32, 4, 3, 5);
    REF_ADD(&c, bc, WICK_F32, 2, 2, 2, 5);
    REF_ADD(&c, words, WICK_U32, 8);
    c.op.p.scan.batch = (wk_batch_layout){.n_rows = 2, .n_sequences = 1, .n_words = 8};
    assert_refused(&c.op, WICK_OK);
    const wk_op good = c.op;
    c.op.p.scan.fn = WK_SCAN_COUNT_;
    assert_refused(&c.op, WICK_ERR_VALUE);
    c.op = good;
    c.op.p.scan.fn = WK_SCAN_DELTA; /* whose gate is another one */
    assert_refused(&c.op, WICK_ERR_SHAPE);
    c.op = good;
    c.op.p.scan.batch.states = 8; /* after the words */
    assert_refused(&c.op, WICK_ERR_SHAPE);
    static const struct {
        int operand, dim;
        int64_t extent;
    } wrong[] = {{0, 0, 1}, {1, 1, 3}, {1, 2, 4}, {1, 3, 2}, {2, 2, 2}, {3, 0, 1},
                 {4, 2, 4}, {5, 0, 1}, {5, 1, 1}, {5, 3, 4}, {6, 0, 7}};
    for (size_t i = 0; i < WK_COUNT(wrong); i++) {
        c.op = good;
        c.op.view[wrong[i].operand].extent[wrong[i].dim] = wrong[i].extent;
        assert_refused(&c.op, WICK_ERR_SHAPE);
    }
    c.op = good;
    c.op.view[2].dtype = WICK_I32;
    assert_refused(&c.op, WICK_ERR_DTYPE);
}

static void test_refused_conv(void **state) {
    (void)state;
    static float x[2][4], s[1][2][4], weight[4][3], bias[4], y[2][4];
    static uint32_t words[8];
    ref_case c;
    ref_begin(&c, WK_OP_CAUSAL_CONV);
    REF_ADD(&c, y, WICK_F32, 2, 4);
    REF_ADD(&c, s, WICK_F32, 1, 2, 4);
    REF_ADD(&c, x, WICK_F32, 2, 4);
    REF_ADD(&c, weight, WICK_F32, 4, 3);
    REF_ADD(&c, bias, WICK_F32, 4);
    REF_ADD(&c, words, WICK_U32, 8);
    c.op.p.conv.batch = (wk_batch_layout){.n_rows = 2, .n_sequences = 1, .n_words = 8};
    assert_refused(&c.op, WICK_OK);
    const wk_op good = c.op;
    for (int i = 0; i < 6; i++) { /* each but the words with an extent that is one too small */
        c.op = good;
        c.op.view[i].extent[c.op.view[i].rank - 1]--;
        assert_refused(&c.op, WICK_ERR_SHAPE);
    }
    c.op = good;
    c.op.view[3].dtype = WICK_I32;
    assert_refused(&c.op, WICK_ERR_DTYPE);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_causal_conv),  cmocka_unit_test(test_scan),
        cmocka_unit_test(test_bad_words),    cmocka_unit_test(test_refused),
        cmocka_unit_test(test_refused_conv),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
