/* usage: webgpu_long --webgpu-lib PATH [options of webgpu_options.h]
 * Ops over a batch of rows that would hold the GPU for longer than a submit may are cut along the
 * rows: more dispatches, and the same bits in the results and in what is kept. */
#include "webgpu_memory.h"

#include "amount.h"

#include "ops/cached.h"
#include "ops/recurrent.h"

enum {
    ROWS = 512,
    SEQUENCES = 3,
    BLOCK = 64,
    BLOCKS = 10, /* of a sequence at most */
    CACHED = SEQUENCES * BLOCKS,
    GROUPS = 2,
    HEADS = 4,
    DIM = 64,
    CHANNELS = 2048,
    TAPS = 4,
    NUMBERS = 128,
};

/* Three sequences in turn: one that goes on at position 100, one that begins in the middle, one
 * from position 0 on; and padding rows. */
static wk_batch_layout make_batch(uint32_t words[8 * ROWS]) {
    wk_batch_layout b = {
        .n_rows = ROWS, .n_sequences = SEQUENCES, .n_blocks = BLOCKS, .block_size = BLOCK};
    b.positions = ROWS;
    b.sequences = 2 * ROWS;
    b.slots = 3 * ROWS;
    b.outputs = b.lengths = 4 * ROWS;
    b.states = b.lengths + SEQUENCES;
    b.tables = b.states + SEQUENCES;
    b.n_words = b.tables + SEQUENCES * BLOCKS;
    uint32_t next[SEQUENCES] = {100, 0, 0};
    for (uint32_t i = 0; i < SEQUENCES * BLOCKS; i++) words[b.tables + i] = CACHED - 1 - i;
    for (uint32_t i = 0; i < ROWS; i++) {
        const uint32_t s = i / 50 % 4; /* 3: padding */
        words[i] = 0;
        words[b.positions + i] = s < SEQUENCES ? next[s]++ : 0;
        words[b.sequences + i] = s < SEQUENCES ? s : WK_NO_ROW;
        const uint32_t p = words[b.positions + i];
        words[b.slots + i] =
            s < SEQUENCES ? words[b.tables + s * BLOCKS + p / BLOCK] * BLOCK + p % BLOCK : 0;
    }
    for (uint32_t s = 0; s < SEQUENCES; s++) {
        words[b.lengths + s] = next[s];
        words[b.states + s] = (s + 1) % SEQUENCES;
    }
    return b;
}

typedef struct run {
    wick_device *device;
    wick_tensor *batch;
    wk_batch_layout layout;
    float *out; /* where the next results go */
    uint64_t n_dispatches;
} run;

static void keep(run *r, wick_tensor *t) {
    const size_t bytes = wick_tensor_bytes(t);
    expect_ok(r->device, wick_read(t, r->out, bytes));
    r->out += bytes / sizeof *r->out;
}

static uint64_t begin_count(const run *r) {
    expect_ok(r->device, wick_synchronize(r->device));
    return stats_of(r->device).n_dispatches;
}

static void end_count(run *r, uint64_t before) {
    expect_ok(r->device, wick_synchronize(r->device));
    r->n_dispatches = stats_of(r->device).n_dispatches - before;
}

static void append_and_attend(run *r) {
    wick_device *const d = r->device;
    const wk_params params = {.cached = {.scale = 0.125F, .batch = r->layout}};
    wick_tensor *const k_cache = random_tensor(d, WICK_SHAPE(CACHED, GROUPS, BLOCK, DIM), 1);
    wick_tensor *const v_cache = random_tensor(d, WICK_SHAPE(CACHED, GROUPS, BLOCK, DIM), 2);
    const wk_kv_rows fresh = {random_tensor(d, WICK_SHAPE(ROWS, GROUPS, DIM), 3),
                              random_tensor(d, WICK_SHAPE(ROWS, GROUPS, DIM), 4)};
    wick_tensor *const q = random_tensor(d, WICK_SHAPE(ROWS, HEADS, DIM), 5);
    const uint64_t before = begin_count(r);
    expect_ok(d, wk_kv_append_cached(k_cache, v_cache, fresh, r->batch, &params));
    const wk_kv_seen seen = {.k_cache = k_cache, .v_cache = v_cache};
    wick_tensor *const y = wk_attention_cached(q, &seen, r->batch, &params);
    end_count(r, before);
    keep(r, y);
    keep(r, k_cache);
    keep(r, v_cache);
}

/* Of keys and values alone, as many as take their time. */
static void append(run *r) {
    enum { WIDE = 1024 };
    wick_device *const d = r->device;
    const wk_params params = {.cached = {.scale = 1, .batch = r->layout}};
    wick_tensor *const k_cache = random_tensor(d, WICK_SHAPE(CACHED, 1, BLOCK, WIDE), 1);
    wick_tensor *const v_cache = random_tensor(d, WICK_SHAPE(CACHED, 1, BLOCK, WIDE), 2);
    const wk_kv_rows fresh = {random_tensor(d, WICK_SHAPE(ROWS, 1, WIDE), 3),
                              random_tensor(d, WICK_SHAPE(ROWS, 1, WIDE), 4)};
    const uint64_t before = begin_count(r);
    expect_ok(d, wk_kv_append_cached(k_cache, v_cache, fresh, r->batch, &params));
    end_count(r, before);
    keep(r, k_cache);
    keep(r, v_cache);
}

static void convolve(run *r) {
    wick_device *const d = r->device;
    const wk_params params = {.conv = {.batch = r->layout}};
    wick_tensor *const x = random_tensor(d, WICK_SHAPE(ROWS, CHANNELS), 1);
    wick_tensor *const weight = random_tensor(d, WICK_SHAPE(CHANNELS, TAPS), 2);
    wick_tensor *const state = random_tensor(d, WICK_SHAPE(SEQUENCES, TAPS - 1, CHANNELS), 3);
    const uint64_t before = begin_count(r);
    wick_tensor *const y = wk_causal_conv(x, weight, NULL, state, r->batch, &params);
    end_count(r, before);
    keep(r, y);
    keep(r, state);
}

/* Numbers so small that no product over the rows grows without end. */
static wick_tensor *small_tensor(wick_device *device, wick_shape shape, uint32_t seed) {
    const float factor = 1.0F / 64;
    return wick_mul(random_tensor(device, shape, seed),
                    wick_tensor_from_data(device, WICK_F32, WICK_SHAPE(1), &factor, sizeof factor));
}

static void scan(run *r, wk_scan_fn fn) {
    wick_device *const d = r->device;
    const wk_params params = {.scan = {.fn = fn, .scale = 1, .batch = r->layout}};
    const wick_shape rows = WICK_SHAPE(ROWS, HEADS, DIM);
    const wick_shape gate = fn == WK_SCAN_DELTA ? rows : WICK_SHAPE(HEADS, DIM, NUMBERS);
    const wk_scan_inputs inputs = {
        .x = random_tensor(d, rows, 1),
        .step = small_tensor(d, rows, 2),
        .gate = small_tensor(d, gate, 3),
        .bc = small_tensor(d, WICK_SHAPE(ROWS, 2, GROUPS, NUMBERS), 4),
    };
    wick_tensor *const state = random_tensor(d, WICK_SHAPE(SEQUENCES, HEADS, NUMBERS, DIM), 5);
    const uint64_t before = begin_count(r);
    wick_tensor *const y = wk_scan(&inputs, state, r->batch, &params);
    end_count(r, before);
    keep(r, y);
    keep(r, state);
}

static void scan_delta(run *r) { scan(r, WK_SCAN_DELTA); }
static void scan_selective(run *r) { scan(r, WK_SCAN_SELECTIVE); }

/* With submits that may take a microsecond and such that may take any time. */
static void check(void (*work)(run *)) {
    static const uint32_t budgets[] = {1, UINT32_MAX};
    static float results[2][5 << 20];
    static uint32_t words[8 * ROWS];
    uint64_t n[2];
    size_t count = 0;
    for (int i = 0; i < 2; i++) {
        run r = {.layout = make_batch(words), .out = results[i]};
        r.device = open_with((wick_webgpu_desc){.submit_us = budgets[i]}, false);
        const wick_scope scope = wick_scope_begin(r.device);
        r.batch = wick_tensor_from_data(r.device, WICK_U32, WICK_SHAPE(r.layout.n_words), words,
                                        r.layout.n_words * sizeof *words);
        work(&r);
        assert_int_equal(stats_of(r.device).n_fallbacks, 0);
        n[i] = r.n_dispatches;
        count = (size_t)(r.out - results[i]);
        assert_true(count <= sizeof results[i] / sizeof *results[i]);
        wick_scope_end(scope);
        wick_device_close(r.device);
    }
    assert_true(n[0] > n[1]);
    assert_memory_equal(results[0], results[1], count * sizeof(float));
}

static void attention_is_cut(void **state) {
    (void)state;
    check(append_and_attend);
}
static void appending_is_cut(void **state) {
    (void)state;
    check(append);
}
static void convolution_is_cut(void **state) {
    (void)state;
    check(convolve);
}
static void scans_are_cut(void **state) {
    (void)state;
    skip_unless_all(); /* they take their rows as the convolution does */
    check(scan_selective);
    check(scan_delta);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(attention_is_cut),
        cmocka_unit_test(appending_is_cut),
        cmocka_unit_test(convolution_is_cut),
        cmocka_unit_test(scans_are_cut),
    };
    return find_library(argc, argv) ? cmocka_run_group_tests(tests, NULL, NULL) : 77;
}
