/* Gradients of causal convolutions and scans over whole texts, on cpu/ref: against central
 * differences, in float64, of the formulas written out. */
#include "ops_fixture.h"

#include "core/rng.h"
#include "ops/recurrent.h"

#include <wick/grad.h>

#include <math.h>

/* Two texts of T rows, the second of which is shorter: its last rows are padding. */
enum { T = 19, N_TEXTS = 2, PADDING = 3, N_ROWS = T * N_TEXTS };
enum { N_WORDS = 2 * N_ROWS + N_TEXTS };

static bool is_padding(int row) { return row >= N_ROWS - PADDING; }

static wk_batch_layout describe(uint32_t *words) {
    for (int row = 0; row < N_ROWS; row++) {
        words[row] = is_padding(row) ? 0 : (uint32_t)(row % T);
        words[N_ROWS + row] = is_padding(row) ? WK_NO_ROW : (uint32_t)(row / T);
    }
    for (int i = 0; i < N_TEXTS; i++) words[2 * N_ROWS + i] = (uint32_t)i;
    return (wk_batch_layout){.n_rows = N_ROWS,
                             .n_sequences = N_TEXTS,
                             .sequences = N_ROWS,
                             .states = 2 * N_ROWS,
                             .n_words = N_WORDS};
}

/* The result is weighted, so that each of its elements counts. */
static double weight_of(int i) { return 0.3 + 0.1 * (i * 7 % 11); }

/* --- The operations, of numbers side by side --- */

enum { MOST_INPUTS = 4, MOST_NUMBERS = 1024 };

typedef struct problem {
    const char *name;
    int n_inputs;
    wick_shape shapes[MOST_INPUTS], of_y, of_state;
    double (*value)(const struct problem *p, double (*x)[MOST_NUMBERS]);
    wk_params params; /* without the batch */
} problem;

enum { C = 3, K = 4 };

static double value_of_conv(const problem *p, double (*x)[MOST_NUMBERS]) {
    double sum = 0;
    for (int row = 0; row < N_ROWS; row++) {
        for (int c = 0; c < C && !is_padding(row); c++) {
            double y = p->n_inputs > 2 ? x[2][c] : 0;
            for (int j = 0; j < K; j++) {
                const int from = row % T - (K - 1 - j);
                if (from >= 0) y += x[1][c * K + j] * x[0][(row / T * T + from) * C + c];
            }
            sum += weight_of(row * C + c) * y;
        }
    }
    return sum;
}

enum { H = 4, P = 3, N = 2, G = 2, CHANNELS = H * P };

/* Of x, step, gate and bc: one channel at one token. */
static double advance(const problem *p, double (*x)[MOST_NUMBERS], int row, int channel,
                      double *s) {
    const bool is_delta = p->params.scan.fn == WK_SCAN_DELTA;
    const int head = channel / P, group = p->params.scan.is_tiled ? head % G : head / (H / G);
    const double *const first = &x[3][(row * 2 * G + group) * N], *const second = first + G * N;
    const double *const b = is_delta ? second : first, *const c = is_delta ? first : second;
    const double step = x[1][row * CHANNELS + channel], input = x[0][row * CHANNELS + channel];
    double known = 0, y = 0;
    for (int i = 0; i < N; i++) {
        s[i] *= exp(is_delta ? step : step * x[2][channel * N + i]);
        known += s[i] * b[i];
    }
    for (int i = 0; i < N; i++) {
        s[i] += is_delta ? x[2][row * CHANNELS + channel] * (input - known) * b[i]
                         : step * input * b[i];
        y += s[i] * c[i];
    }
    return (double)p->params.scan.scale * y;
}

static double value_of_scan(const problem *p, double (*x)[MOST_NUMBERS]) {
    double sum = 0;
    for (int channel = 0; channel < CHANNELS; channel++) {
        double s[N];
        for (int row = 0; row < N_ROWS && !is_padding(row); row++) {
            if (row % T == 0) memset(s, 0, sizeof s);
            sum += weight_of(row * CHANNELS + channel) * advance(p, x, row, channel, s);
        }
    }
    return sum;
}

static wick_tensor *compute(wick_device *device, const problem *p, wick_tensor **x) {
    uint32_t words[N_WORDS];
    wk_params params = p->params;
    const wk_batch_layout batch = describe(words);
    wick_tensor *const state = wick_full(device, WICK_F32, p->of_state, NAN); /* is not read */
    wick_tensor *const descriptor =
        wick_tensor_from_data(device, WICK_U32, WICK_SHAPE(N_WORDS), words, sizeof words);
    if (p->value == value_of_conv) {
        params.conv.batch = batch;
        return wk_causal_conv(x[0], x[1], p->n_inputs > 2 ? x[2] : NULL, state, descriptor,
                              &params);
    }
    params.scan.batch = batch;
    const wk_scan_inputs inputs = {.x = x[0], .step = x[1], .gate = x[2], .bc = x[3]};
    return wk_scan(&inputs, state, descriptor, &params);
}

/* --- Comparing --- */

static int64_t draw(const problem *p, int i, double *x, float *as_floats) {
    int64_t count = 1;
    for (int d = 0; d < p->shapes[i].rank; d++) count *= p->shapes[i].extent[d];
    assert_true(count <= MOST_NUMBERS);
    wk_rng rng = {.seed = 5, .stream = (uint64_t)i};
    for (int64_t k = 0; k < count; k++) {
        as_floats[k] = wk_rng_uniform(&rng) - (i == 0 || i == 3 ? 0.5F : 1);
        x[k] = (double)as_floats[k]; /* steps and gates: from -1 to 0 */
    }
    return count;
}

static void check(wick_device *device, const problem *p) {
    static double x[MOST_INPUTS][MOST_NUMBERS];
    static float numbers[MOST_NUMBERS], weights[N_ROWS * CHANNELS];
    int64_t count[MOST_INPUTS];
    wick_tensor *in[MOST_INPUTS], *grads[MOST_INPUTS];
    wick_tape *tape;
    const wick_scope scope = wick_scope_begin(device);
    assert_int_equal(wick_tape_begin(device, &tape), WICK_OK);
    for (int i = 0; i < p->n_inputs; i++) {
        count[i] = draw(p, i, x[i], numbers);
        in[i] = wick_tensor_from_data(device, WICK_F32, p->shapes[i], numbers,
                                      (size_t)count[i] * sizeof *numbers);
        assert_int_equal(wick_tape_watch(tape, in[i]), WICK_OK);
    }
    for (int i = 0; i < N_ROWS * CHANNELS; i++) weights[i] = (float)weight_of(i);
    wick_tensor *const y = compute(device, p, in);
    const size_t size = wick_tensor_bytes(y);
    wick_tensor *const g = wick_tensor_from_data(device, WICK_F32, p->of_y, weights, size);
    if (wick_grad(tape, y, g, in, (size_t)p->n_inputs, grads) != WICK_OK)
        fail_msg("%s: no gradient", p->name);
    wick_tape_end(tape);
    for (int i = 0; i < p->n_inputs; i++) {
        assert_int_equal(wick_read(grads[i], numbers, (size_t)count[i] * sizeof *numbers), WICK_OK);
        for (int64_t k = 0; k < count[i]; k++) {
            const double h = 1e-5, at = x[i][k], got = (double)numbers[k];
            x[i][k] = at + h;
            const double above = p->value(p, x);
            x[i][k] = at - h;
            const double slope = (above - p->value(p, x)) / (2 * h);
            x[i][k] = at;
            if (!(fabs(got - slope) <= 2e-5 * (1 + fabs(slope))))
                fail_msg("%s: gradient %d of input %d is %.9g, by differences %.9g", p->name,
                         (int)k, i, got, slope);
        }
    }
    wick_scope_end(scope);
}

static problem conv_problem(int n_inputs) {
    return (problem){.name = "causal_conv",
                     .n_inputs = n_inputs,
                     .shapes = {WICK_SHAPE(N_ROWS, C), WICK_SHAPE(C, K), WICK_SHAPE(C)},
                     .of_y = WICK_SHAPE(N_ROWS, C),
                     .of_state = WICK_SHAPE(N_TEXTS, K - 1, C),
                     .value = value_of_conv,
                     .params = {.conv.is_whole = true}};
}

static problem scan_problem(wk_scan_fn fn, bool is_tiled) {
    const wick_shape rows = WICK_SHAPE(N_ROWS, H, P);
    return (problem){
        .name = fn == WK_SCAN_DELTA ? "scan, delta" : "scan, selective",
        .n_inputs = MOST_INPUTS,
        .shapes = {rows, rows, fn == WK_SCAN_DELTA ? rows : WICK_SHAPE(H, P, N),
                   WICK_SHAPE(N_ROWS, 2, G, N)},
        .of_y = rows,
        .of_state = WICK_SHAPE(N_TEXTS, H, N, P),
        .value = value_of_scan,
        .params = {.scan = {.is_whole = true, .fn = fn, .is_tiled = is_tiled, .scale = 0.7F}}};
}

static void test_convolutions(void **state) {
    for (int n = 2; n <= 3; n++) {
        const problem p = conv_problem(n);
        check(device_of(state), &p);
    }
}

static void test_scans(void **state) {
    for (int i = 0; i < 4; i++) {
        const problem p = scan_problem(i % 2 ? WK_SCAN_DELTA : WK_SCAN_SELECTIVE, i / 2);
        check(device_of(state), &p);
    }
}

static void check_refused(wick_device *device, const problem *p, const char *message) {
    const wick_scope scope = wick_scope_begin(device);
    wick_tape *tape;
    wick_tensor *in[MOST_INPUTS], *grads[MOST_INPUTS];
    assert_int_equal(wick_tape_begin(device, &tape), WICK_OK);
    for (int i = 0; i < p->n_inputs; i++) {
        in[i] = wick_zeros(device, WICK_F32, p->shapes[i]);
        assert_int_equal(wick_tape_watch(tape, in[i]), WICK_OK);
    }
    wick_tensor *const y = compute(device, p, in);
    assert_int_equal(wick_grad(tape, y, NULL, in, (size_t)p->n_inputs, grads),
                     WICK_ERR_UNSUPPORTED);
    assert_null(grads[0]);
    wick_error error;
    assert_int_equal(wick_device_error(device, &error), WICK_ERR_UNSUPPORTED);
    assert_string_equal(error.message, message);
    wick_tape_end(tape);
    wick_scope_end(scope);
}

/* What came before is not known where a batch goes on with texts. */
static void test_refused(void **state) {
    problem p = conv_problem(2);
    p.params.conv.is_whole = false;
    check_refused(device_of(state), &p, "causal_conv has no gradient");
    p = scan_problem(WK_SCAN_DELTA, false);
    p.params.scan.is_whole = false;
    check_refused(device_of(state), &p, "scan has no gradient");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_convolutions, setup, teardown),
        cmocka_unit_test_setup_teardown(test_scans, setup, teardown),
        cmocka_unit_test_setup_teardown(test_refused, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
