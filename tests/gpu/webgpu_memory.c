/* usage: webgpu_memory [--backend webgpu] --webgpu-lib LIBRARY
 * The memory of a WebGPU device: buffers in several pieces, uploads and reads of any size, and
 * operations on what no binding can hold, each compared with cpu/ref. With the drivers that the
 * environment names. */
#include "webgpu_memory.h"

#include <math.h>

#include "backend/webgpu/webgpu_state.h"
#include "tensor/device.h"
#include "tensor/plan.h"
#include "tensor/tensor.h"

enum { LIMIT = 64 << 10 }; /* of bindings, and so of pieces, in most tests */

static wick_device *open_small(void) {
    return open_with((wick_webgpu_desc){.max_binding_bytes = LIMIT}, true);
}

/* The operation that computes y fails, and nothing else. */
static void expect_failure(wick_tensor *y, wick_status want) {
    wick_device *const device = wick_tensor_device(y);
    wick_error err = {0};
    void *const data = malloc(wick_tensor_bytes(y));
    assert_int_equal(wick_synchronize(device), WICK_OK);
    assert_int_equal(wick_read(y, data, wick_tensor_bytes(y)), want);
    free(data);
    assert_int_equal(wick_device_error(device, &err), want);
    assert_true(strlen(err.message) > 10);
}

/* --- Tensors in several pieces --- */

static void bytes_go_round_in_pieces(void **state) {
    enum { SIZE = 5 * LIMIT + 12345 };
    static unsigned char bytes[SIZE], back[SIZE];
    (void)state;
    wick_device *const device = open_small();
    for (size_t i = 0; i < SIZE; i++) bytes[i] = (unsigned char)(i * 31 >> 3);
    wick_tensor *const t =
        wick_tensor_from_data(device, WICK_U8, WICK_SHAPE(SIZE), bytes, sizeof bytes);
    expect_ok(device, wick_read(t, back, sizeof back));
    assert_memory_equal(bytes, back, sizeof back);
    /* Parts that begin and end within words, across the pieces' ends. */
    static const int64_t parts[][2] = {{0, 3}, {1, 2}, {LIMIT - 3, 7}, {3 * LIMIT - 1, LIMIT + 2}};
    for (size_t i = 0; i < WK_COUNT(parts); i++) {
        const int64_t begin = parts[i][0], length = parts[i][1];
        wick_tensor *const part = wick_narrow(t, 0, begin, length);
        for (int64_t k = 0; k < length; k++) bytes[begin + k] ^= 0x5A;
        expect_ok(device, wick_write(part, bytes + begin, (size_t)length));
        expect_ok(device, wick_read(part, back, (size_t)length));
        assert_memory_equal(bytes + begin, back, (size_t)length);
        wick_release(part);
    }
    expect_ok(device, wick_read(t, back, sizeof back));
    assert_memory_equal(bytes, back, sizeof back);
    wick_release(t);
    wick_device_close(device);
}

static void ops_by_element(void **state) {
    (void)state;
    wick_device *const device = open_small();
    const wick_scope scope = wick_scope_begin(device);
    wick_tensor *const a = random_tensor(device, WICK_SHAPE(300, 211), 1);
    wick_tensor *const b = random_tensor(device, WICK_SHAPE(211, 300), 2);
    wick_tensor *const flat = random_tensor(device, WICK_SHAPE(300 * 211), 3);
    wick_tensor *const row = random_tensor(device, WICK_SHAPE(1, 211), 4);
    expect_right(device, wick_add(a, a));
    expect_right(device, wick_add(a, wick_transpose(b, 0, 1))); /* cut both ways */
    expect_right(device, wick_mul(a, wick_reshape(flat, WICK_SHAPE(300, 211))));
    expect_right(device, wick_sub(a, row));
    expect_right(device, wick_add(flat, wick_reshape(a, WICK_SHAPE(300 * 211))));
    expect_right(device, wick_exp(a));
    expect_right(device, wick_contiguous(wick_transpose(a, 0, 1)));
    expect_right(device, wick_cast(a, WICK_F16));
    expect_right(device, wick_where(wick_lt(a, row), a, row));
    expect_right(device, wick_silu(wick_narrow(a, 1, 3, 100)));
    expect_right(device, wick_full(device, WICK_F32, WICK_SHAPE(7, 70000), 0.5));
    wick_scope_end(scope);
    wick_device_close(device);
}

static void ops_by_row(void **state) {
    (void)state;
    wick_device *const device = open_small();
    const wick_scope scope = wick_scope_begin(device);
    static const int last[] = {1};
    wick_tensor *const a = random_tensor(device, WICK_SHAPE(200, 301), 5);
    wick_tensor *const weight = random_tensor(device, WICK_SHAPE(301), 6);
    expect_right(device, wick_softmax(a, -1));
    expect_right(device, wick_rms_norm(a, weight, 1e-5F));
    expect_right(device, wick_layer_norm(a, weight, weight, 1e-5F));
    expect_right(device, wick_sum(a, 1, last, false));
    expect_right(device, wick_max(a, 1, last, true));
    expect_right(device, wick_argmax(a, 1, false));
    wick_scope_end(scope);
    wick_device_close(device);
}

/* Keys and values as absorbed latent attention has them: one for all heads. */
static void wide_heads(void **state) {
    (void)state;
    wick_device *const device = open_small();
    const wick_scope scope = wick_scope_begin(device);
    wick_tensor *const q = random_tensor(device, WICK_SHAPE(1, 3, 2, 576), 19);
    wick_tensor *const k = random_tensor(device, WICK_SHAPE(1, 1, 20, 576), 20);
    expect_right(device, wick_attention(q, k, wick_narrow(k, 3, 0, 512), NULL));
    wick_scope_end(scope);
    wick_device_close(device);
}

static void products(void **state) {
    (void)state;
    wick_device *const device = open_small();
    const wick_scope scope = wick_scope_begin(device);
    wick_tensor *const a = random_tensor(device, WICK_SHAPE(2, 150, 70), 7);
    wick_tensor *const b = random_tensor(device, WICK_SHAPE(2, 70, 160), 8);
    wick_tensor *const tall = random_tensor(device, WICK_SHAPE(600, 60), 9);
    wick_tensor *const wide = random_tensor(device, WICK_SHAPE(60, 200), 10);
    expect_right(device, wick_matmul(a, b));
    expect_right(device, wick_matmul(tall, wide));
    expect_right(device, wick_matmul(wick_transpose(wide, 0, 1), wick_transpose(tall, 0, 1)));
    wick_tensor *const broad = random_tensor(device, WICK_SHAPE(40, 600), 14);
    expect_right(device, wick_matmul(wick_transpose(broad, 0, 1), broad)); /* copied in parts */
    wick_scope_end(scope);
    wick_device_close(device);
}

/* A weight of n rows of k elements, in the layout that the device wants. */
static wick_tensor *make_weight(wick_device *device, wick_dtype dtype, wick_shape shape, int64_t n,
                                int64_t k) {
    const wk_weight_desc desc = {
        .dtype = dtype, .shape = shape, .uses = WK_USE_LINEAR | WK_USE_EMBEDDING};
    bool in_place;
    wk_weight_store none = {.device = device};
    wick_tensor *const weight = wk_weight_new(device, &desc, &none, &in_place);
    if (!weight) expect_ok(device, WICK_ERR_INTERNAL);
    /* q8_0 blocks: a scale of 2^-7 or less, and 32 bytes; f32: small numbers. */
    const size_t row = dtype == WICK_Q8_0 ? (size_t)(k / 32 * 34) : (size_t)k * 4;
    unsigned char *const blocks = malloc((size_t)n * row);
    assert_non_null(blocks);
    uint32_t seed = 11;
    for (size_t i = 0; i < (size_t)n * row; i++) blocks[i] = (unsigned char)random_bits(&seed);
    for (size_t i = 0; dtype == WICK_Q8_0 && i < (size_t)n * row; i += 34)
        blocks[i + 1] = (unsigned char)(0x10 | (blocks[i + 1] & 0x0F));
    for (size_t i = 3; dtype == WICK_F32 && i < (size_t)n * row; i += 4)
        blocks[i] = (unsigned char)(0x3E | (blocks[i] & 0x80));
    expect_ok(device, wk_weight_upload(weight, 0, n, blocks));
    free(blocks);
    return weight;
}

/* y = x weight^T, and rows of weight. */
static void check_weight(wick_device *device, wick_dtype dtype, int64_t n, int64_t k, int64_t m) {
    wick_tensor *const weight = make_weight(device, dtype, WICK_SHAPE(n, k), n, k);
    const wick_scope scope = wick_scope_begin(device);
    expect_right(device, wick_linear(random_tensor(device, WICK_SHAPE(m, k), 12), weight,
                                     random_tensor(device, WICK_SHAPE(n), 13)));
    const uint32_t ids[] = {0, (uint32_t)n - 1, 17, (uint32_t)n / 2, (uint32_t)n / 2, 1};
    wick_tensor *const of = wick_tensor_from_data(device, WICK_U32, WICK_SHAPE(6), ids, sizeof ids);
    expect_right(device, wick_embedding(weight, of));
    const uint32_t wrong[] = {3, (uint32_t)n};
    wick_tensor *const outside =
        wick_tensor_from_data(device, WICK_U32, WICK_SHAPE(2), wrong, sizeof wrong);
    expect_failure(wick_embedding(weight, outside), WICK_ERR_INDEX);
    wick_scope_end(scope);
    wick_release(weight);
}

/* Rows by weights [experts, n, k], of which a block holds a few; ids of all of them, and one too
 * many. */
static void check_experts(wick_device *device, wick_dtype dtype, int64_t n_experts, int64_t n,
                          int64_t k, int64_t m) {
    enum { U = 3, MOST = 200 };
    uint32_t ids[MOST * U], seed = 15;
    assert_true(m <= MOST);
    for (int i = 0; i < m * U; i++) ids[i] = random_bits(&seed) % (uint32_t)n_experts;
    wick_tensor *const weight =
        make_weight(device, dtype, WICK_SHAPE(n_experts, n, k), n_experts * n, k);
    const wick_scope scope = wick_scope_begin(device);
    const size_t size = (size_t)m * U * sizeof *ids;
    wick_tensor *const x = random_tensor(device, WICK_SHAPE(m, k), 16);
    wick_tensor *const own = random_tensor(device, WICK_SHAPE(m, U, k), 17);
    wick_tensor *const bias = random_tensor(device, WICK_SHAPE(n_experts, n), 18);
    wick_tensor *const at = wick_tensor_from_data(device, WICK_U32, WICK_SHAPE(m, U), ids, size);
    expect_right(device, wick_linear_experts(x, weight, bias, at));
    expect_right(device, wick_linear_experts(own, weight, NULL, at));
    ids[m] = (uint32_t)n_experts;
    wick_tensor *const outside =
        wick_tensor_from_data(device, WICK_U32, WICK_SHAPE(m, U), ids, size);
    expect_failure(wick_linear_experts(x, weight, NULL, outside), WICK_ERR_INDEX);
    wick_scope_end(scope);
    wick_release(weight);
}

static void experts_in_pieces(void **state) {
    (void)state;
    wick_device *const device = open_small();
    check_experts(device, WICK_F32, 9, 64, 64, 3);
    check_experts(device, WICK_F32, 7, 33, 128, 20); /* rows, not panels */
    check_experts(device, WICK_Q8_0, 40, 48, 128, 2);
    check_experts(device, WICK_Q8_0, 40, 48, 128, 150);
    wick_device_close(device);
}

static void weights_in_pieces(void **state) {
    (void)state;
    wick_device *const device = open_small();
    check_weight(device, WICK_F32, 1000, 64, 3);
    check_weight(device, WICK_F32, 333, 128, 20);
    check_weight(device, WICK_Q8_0, 1003, 256, 2);
    check_weight(device, WICK_Q8_0, 600, 1024, 40); /* x and y in pieces as well */
    wick_device_close(device);
}

/* One number of all elements: of each block first. They are whole, so that sums are exact. */
static void numbers_of_all_elements(void **state) {
    enum { ROWS = 300, COLUMNS = 211, N = ROWS * COLUMNS };
    static const wick_dtype dtypes[] = {WICK_F32, WICK_F16, WICK_I32, WICK_U8};
    static float values[N];
    (void)state;
    wick_device *const device = open_with((wick_webgpu_desc){.max_binding_bytes = 16384}, false);
    uint32_t seed = 7;
    for (size_t i = 0; i < WK_COUNT(dtypes); i++) {
        const bool is_float = i < 2;
        double sum = 0, most = 0, least = 1000;
        for (int k = 0; k < N; k++) {
            values[k] = (float)(random_bits(&seed) % 3);
            if (k == N - 5) values[k] = 9; /* in the last block */
            sum += (double)values[k];
            most = values[k] > most ? (double)values[k] : most;
            least = values[k] < least ? (double)values[k] : least;
        }
        const double mean = sum / (double)N;
        const wick_scope scope = wick_scope_begin(device);
        wick_tensor *const all =
            wick_cast(wick_tensor_from_data(device, WICK_F32, WICK_SHAPE(ROWS, COLUMNS), values,
                                            sizeof values),
                      dtypes[i]);
        /* Turned round, of which many short pieces lie across the ends of blocks. */
        wick_tensor *const turned = wick_permute(wick_reshape(all, WICK_SHAPE(2, 3, 2, 5, N / 60)),
                                                 5, (const int[]){4, 3, 2, 1, 0});
        wick_tensor *const shapes[] = {all, wick_flatten(all, 0, 1), wick_transpose(all, 0, 1),
                                       turned};
        for (size_t k = 0; k < WK_COUNT(shapes); k++) {
            double found;
            expect_ok(device, wick_read_scalar(wick_max(shapes[k], 0, NULL, false), &found));
            assert_true(found == most);
            expect_ok(device, wick_read_scalar(wick_min(shapes[k], 0, NULL, true), &found));
            assert_true(found == least);
            if (dtypes[i] != WICK_F32 && dtypes[i] != WICK_I32) continue; /* others overflow */
            expect_ok(device, wick_read_scalar(wick_sum(shapes[k], 0, NULL, false), &found));
            assert_true(found == sum);
            if (!is_float) continue;
            expect_ok(device, wick_read_scalar(wick_mean(shapes[k], 0, NULL, false), &found));
            assert_true(fabs(found - mean) < 1e-6);
        }
        if (dtypes[i] == WICK_F16) { /* which does not hold the sum exactly */
            double found;
            expect_ok(device, wick_read_scalar(wick_mean(all, 0, NULL, false), &found));
            assert_true(fabs(found - mean) < 1e-3);
        }
        wick_scope_end(scope);
    }
    assert_int_equal(stats_of(device).n_fallbacks, 0);
    wick_device_close(device);
}

static void what_cannot_be_cut_is_refused(void **state) {
    (void)state;
    wick_device *const device = open_with((wick_webgpu_desc){.max_binding_bytes = LIMIT}, false);
    wick_tensor *const a = random_tensor(device, WICK_SHAPE(300, 211), 1);
    wick_tensor *const variance = wick_var(a, 0, NULL, false, 0);
    expect_failure(variance, WICK_ERR_UNSUPPORTED);
    wick_tensor *const b = wick_add(a, a); /* and the device goes on */
    expect_ok(device, wick_synchronize(device));
    wick_release(variance);
    wick_release(a);
    wick_release(b);
    wick_device_close(device);
}

/* Where that is allowed, the CPU computes it. */
static void what_cannot_be_cut_falls_back(void **state) {
    (void)state;
    const wick_device_desc desc = {.backend = WICK_BACKEND_WEBGPU,
                                   .webgpu = {.library = library, .max_binding_bytes = LIMIT}};
    wick_device *device = NULL;
    assert_int_equal(wick_device_open(&desc, &device, NULL), WICK_OK);
    const wick_scope scope = wick_scope_begin(device);
    wick_tensor *const ones = wick_ones(device, WICK_F32, WICK_SHAPE(300, 211));
    float variance = 1;
    expect_ok(device, wick_read(wick_var(ones, 0, NULL, false, 0), &variance, sizeof variance));
    assert_true(variance == 0);
    assert_int_equal(stats_of(device).n_fallbacks, 1);
    wick_scope_end(scope);
    wick_device_close(device);
}

/* --- Plans and time --- */

static void a_plan_is_cut_alike(void **state) {
    enum { N = 300 * 211 };
    static float want[N], got[N];
    (void)state;
    wick_device *const device =
        open_with((wick_webgpu_desc){.max_binding_bytes = LIMIT, .submit_us = 1}, false);
    wick_tensor *const a = random_tensor(device, WICK_SHAPE(300, 211), 1);
    wk_plan_pool *pool;
    wk_plan *plan;
    expect_ok(device, wk_plan_pool_make(device, &pool));
    expect_ok(device, wk_plan_begin(device, pool));
    wick_tensor *const b = wick_add(a, a);
    wick_tensor *c = wick_mul(b, a);
    expect_ok(device, wk_plan_end(device, &c, 1, &plan));
    for (uint32_t seed = 20; seed < 23; seed++) {
        wick_tensor *const fresh = random_tensor(device, WICK_SHAPE(300, 211), seed);
        expect_ok(device, wick_read(fresh, want, sizeof want));
        expect_ok(device, wick_write(a, want, sizeof want));
        expect_ok(device, wk_plan_run(plan));
        expect_ok(device, wick_read(c, got, sizeof got));
        for (size_t i = 0; i < N; i++) want[i] = (want[i] + want[i]) * want[i];
        assert_memory_equal(want, got, sizeof got);
        wick_release(fresh);
    }
    wick_release(b);
    wick_release(c);
    wk_plan_free(plan);
    wk_plan_pool_free(pool);
    wick_release(a);
    wick_device_close(device);
}

/* A sum and its norm, which one kernel computes. The operands lie in a block each where they are
 * ROWS * COLUMNS numbers. */
enum { ROWS = 60, COLUMNS = 200, MOST_ROWS = 5 * ROWS };

static wk_plan *plan_sum_and_norm(wick_device *device, wk_plan_pool **pool, wick_tensor *const x[3],
                                  wick_tensor **y) {
    wk_plan *plan;
    expect_ok(device, wk_plan_pool_make(device, pool));
    expect_ok(device, wk_plan_begin(device, *pool));
    wick_tensor *const sum = wick_add(x[0], x[1]);
    *y = wick_rms_norm(sum, x[2], 1e-5);
    expect_ok(device, wk_plan_end(device, y, 1, &plan));
    wick_release(sum);
    return plan;
}

/* bindings: as many as a kernel may have, 0 for the device's own. The dispatches of a run. */
static uint64_t run_sum_and_norm(int64_t rows, uint32_t bindings, float *out) {
    wick_device *device = NULL;
    const wick_device_desc desc = {.backend = WICK_BACKEND_WEBGPU,
                                   .strict = true,
                                   .webgpu = {.library = library, .max_binding_bytes = LIMIT}};
    assert_int_equal(wick_device_open(&desc, &device, NULL), WICK_OK);
    if (bindings > 0) device->handle->adapter.limits.storage_bindings = bindings;
    wk_plan_pool *pool;
    wick_tensor *y, *const x[3] = {random_tensor(device, WICK_SHAPE(rows, COLUMNS), 1),
                                   random_tensor(device, WICK_SHAPE(rows, COLUMNS), 2),
                                   random_tensor(device, WICK_SHAPE(COLUMNS), 3)};
    wk_plan *const plan = plan_sum_and_norm(device, &pool, x, &y);
    const uint64_t before = stats_of(device).n_dispatches;
    expect_ok(device, wk_plan_run(plan));
    expect_ok(device, wick_read(y, out, (size_t)(rows * COLUMNS) * sizeof *out));
    const uint64_t n = stats_of(device).n_dispatches - before;
    for (int i = 0; i < 3; i++) wick_release(x[i]);
    wick_release(y);
    wk_plan_free(plan);
    wk_plan_pool_free(pool);
    wick_device_close(device);
    return n;
}

/* Where they need more buffers than can be bound, or lie in pieces. */
static void joined_ops_that_cannot_be_are_run_one_by_one(void **state) {
    static float whole[ROWS * COLUMNS], other[MOST_ROWS * COLUMNS];
    (void)state;
    assert_int_equal(run_sum_and_norm(ROWS, 0, whole), 1);
    assert_int_equal(run_sum_and_norm(ROWS, 3, other), 2);
    assert_memory_equal(whole, other, sizeof whole);
    assert_true(run_sum_and_norm(MOST_ROWS, 0, other) > 2);
    uint32_t seeds[] = {1, 2, 3};
    float weight[COLUMNS], sum[COLUMNS];
    double squares = 0;
    for (int i = 0; i < COLUMNS; i++) {
        float x[3];
        for (int k = 0; k < 3; k++)
            x[k] = (float)((int)(random_bits(&seeds[k]) % 4001) - 2000) / 1000;
        weight[i] = x[2];
        sum[i] = x[0] + x[1];
        squares += (double)(sum[i] * sum[i]);
    }
    const float scale = (float)(1 / sqrt(squares / (double)COLUMNS + 1e-5));
    for (int i = 0; i < COLUMNS; i++) {
        const float want = sum[i] * scale * weight[i];
        assert_true(fabsf(whole[i] - want) < 1e-4F && fabsf(other[i] - want) < 1e-4F);
    }
}

/* The first dispatches of an op whose next one is refused do not run. */
static void what_is_refused_leaves_nothing_behind(void **state) {
    enum { N = 16000 };
    static uint32_t slots[N];
    (void)state;
    wick_device *const device = open_with((wick_webgpu_desc){.max_binding_bytes = LIMIT}, false);
    wick_tensor *const x = wick_ones(device, WICK_F32, WICK_SHAPE(N));
    wick_tensor *const src = random_tensor(device, WICK_SHAPE(N), 1);
    wick_tensor *const index =
        wick_tensor_from_data(device, WICK_U32, WICK_SHAPE(N), slots, sizeof slots);
    expect_ok(device, wick_synchronize(device));
    const uint64_t before = stats_of(device).n_dispatches;
    device->handle->adapter.limits.storage_bindings = 3; /* as many as sorting takes */
    wick_tensor *const y = wick_scatter(x, 0, index, src, WICK_SCATTER_SET);
    expect_failure(y, WICK_ERR_UNSUPPORTED);
    assert_int_equal(stats_of(device).n_dispatches - before, 1); /* the copy of x */
    wick_release(x);
    wick_release(y);
    wick_release(src);
    wick_release(index);
    wick_device_close(device);
}

static void long_recordings_are_submitted_early(void **state) {
    enum { N = 20 };
    (void)state;
    static const uint32_t budgets[] = {1, UINT32_MAX};
    uint64_t n_submits[2];
    for (int i = 0; i < 2; i++) {
        wick_device *const device = open_with((wick_webgpu_desc){.submit_us = budgets[i]}, false);
        wick_tensor *const a = random_tensor(device, WICK_SHAPE(256, 256), 1);
        const wick_scope scope = wick_scope_begin(device);
        wick_tensor *sum = a;
        for (int k = 0; k < N; k++) sum = wick_add(sum, a);
        expect_ok(device, wick_synchronize(device));
        const wick_device_stats stats = stats_of(device);
        n_submits[i] = stats.n_submits;
        assert_true(stats.n_dispatches >= N);
        double value, first;
        expect_ok(device, wick_read_scalar(wick_narrow(wick_flatten(a, 0, 1), 0, 9, 1), &first));
        expect_ok(device, wick_read_scalar(wick_narrow(wick_flatten(sum, 0, 1), 0, 9, 1), &value));
        assert_true(value > (N + 1) * first - 1e-3 && value < (N + 1) * first + 1e-3);
        wick_scope_end(scope);
        wick_release(a);
        wick_device_close(device);
    }
    assert_true(n_submits[0] >= N);
    assert_true(n_submits[1] <= 2);
}

/* The same bits whether an op is cut or not. */
static void long_ops_are_cut(void **state) {
    enum { N = 400 };
    static float results[2][2 * N * N];
    (void)state;
    static const uint32_t budgets[] = {1, UINT32_MAX};
    uint64_t n[2];
    for (int i = 0; i < 2; i++) {
        wick_device *const device = open_with((wick_webgpu_desc){.submit_us = budgets[i]}, false);
        const wick_scope scope = wick_scope_begin(device);
        wick_tensor *const a = random_tensor(device, WICK_SHAPE(N, 500), 1);
        wick_tensor *const b = random_tensor(device, WICK_SHAPE(500, N), 2);
        expect_ok(device, wick_synchronize(device));
        const uint64_t before = stats_of(device).n_dispatches;
        wick_tensor *const products[] = {
            wick_matmul(a, b), wick_linear(a, wick_contiguous(wick_transpose(b, 0, 1)), NULL)};
        expect_ok(device, wick_synchronize(device));
        n[i] = stats_of(device).n_dispatches - before;
        for (size_t k = 0; k < WK_COUNT(products); k++)
            expect_ok(device,
                      wick_read(products[k], results[i] + k * N * N, N * N * sizeof(float)));
        wick_scope_end(scope);
        wick_device_close(device);
    }
    assert_true(n[0] > n[1]);
    assert_memory_equal(results[0], results[1], sizeof results[0]);
}

/* A large upload is handed over in parts, none of which waits for the end. */
static void uploads_are_submitted_in_parts(void **state) {
    enum { SIZE = 48 << 20 };
    (void)state;
    wick_device *const device = open_with((wick_webgpu_desc){0}, false);
    unsigned char *const bytes = malloc(SIZE), *const back = malloc(SIZE);
    assert_true(bytes && back);
    for (size_t i = 0; i < SIZE; i++) bytes[i] = (unsigned char)(i >> 12 ^ i);
    wick_tensor *const t = wick_tensor_from_data(device, WICK_U8, WICK_SHAPE(SIZE), bytes, SIZE);
    expect_ok(device, wick_synchronize(device));
    assert_true(stats_of(device).n_submits >= SIZE / (16 << 20));
    expect_ok(device, wick_read(t, back, SIZE));
    assert_memory_equal(bytes, back, SIZE);
    wick_release(t);
    free(bytes);
    free(back);
    wick_device_close(device);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(bytes_go_round_in_pieces),
    cmocka_unit_test(ops_by_element),
    cmocka_unit_test(ops_by_row),
    cmocka_unit_test(products),
    cmocka_unit_test(weights_in_pieces),
    cmocka_unit_test(wide_heads),
    cmocka_unit_test(experts_in_pieces),
    cmocka_unit_test(numbers_of_all_elements),
    cmocka_unit_test(what_cannot_be_cut_is_refused),
    cmocka_unit_test(what_cannot_be_cut_falls_back),
    cmocka_unit_test(a_plan_is_cut_alike),
    cmocka_unit_test(joined_ops_that_cannot_be_are_run_one_by_one),
    cmocka_unit_test(what_is_refused_leaves_nothing_behind),
    cmocka_unit_test(long_recordings_are_submitted_early),
    cmocka_unit_test(long_ops_are_cut),
    cmocka_unit_test(uploads_are_submitted_in_parts),
};

int main(int argc, char **argv) {
    return find_library(argc, argv) ? cmocka_run_group_tests(tests, NULL, NULL) : 77;
}
