/* usage: webgpu_pool [--backend webgpu] --webgpu-lib LIBRARY
 * The pool that a WebGPU device's buffers come from: what is freed serves again, what is missing is
 * told, and slabs are shared. With the drivers that the environment names. */
#include "webgpu_memory.h"

#include "core/compiler.h"

static wick_tensor *make(wick_device *device, int64_t bytes) {
    return wick_empty(device, WICK_U8, WICK_SHAPE(bytes));
}

static void freed_memory_serves_again(void **state) {
    (void)state;
    wick_device *const device = open_with((wick_webgpu_desc){0}, false);
    wick_release(make(device, 1000000));
    const wick_device_stats before = stats_of(device);
    assert_true(before.pool_free_bytes >= 1000000);
    wick_tensor *const again = make(device, 999000); /* of the same class */
    const wick_device_stats after = stats_of(device);
    assert_int_equal(after.n_pool_hits, before.n_pool_hits + 1);
    assert_int_equal(after.pool_bytes, before.pool_bytes);
    assert_true(after.pool_free_bytes < 1000000);
    wick_release(again);
    uint64_t freed;
    expect_ok(device, wick_device_trim(device, &freed, NULL));
    const wick_device_stats trimmed = stats_of(device);
    assert_true(freed >= 1000000);
    assert_int_equal(trimmed.pool_bytes + freed, after.pool_bytes);
    assert_int_equal(trimmed.pool_free_bytes, 0);
    assert_int_equal(trimmed.pool_peak_bytes, after.pool_peak_bytes);
    wick_device_close(device);
}

static void a_missing_memory_is_told(void **state) {
    enum { MOST = 1 << 20 };
    (void)state;
    wick_device *const device = open_with((wick_webgpu_desc){.pool = {.max_bytes = MOST}}, false);
    wick_tensor *const a = make(device, MOST / 2);
    assert_non_null(a);
    assert_null(make(device, MOST * 3 / 4));
    wick_error err = {0};
    assert_int_equal(wick_device_error(device, &err), WICK_ERR_OUT_OF_MEMORY);
    assert_true(err.bytes_requested >= MOST * 3 / 4);
    assert_in_range(err.bytes_available, MOST / 4, MOST / 2);
    /* Free pieces of other sizes make room. */
    wick_release(a);
    wick_tensor *const b = make(device, MOST * 3 / 4);
    assert_non_null(b);
    expect_ok(device, wick_synchronize(device));
    wick_release(b);
    /* In the middle of work: what was queued is not harmed. */
    wick_tensor *const x = random_tensor(device, WICK_SHAPE(32, 1024), 1);
    wick_tensor *const y = wick_add(x, x);
    const wick_scope scope = wick_scope_begin(device);
    assert_null(wick_contiguous(wick_expand(x, WICK_SHAPE(64, 32, 1024))));
    assert_int_equal(wick_device_error(device, NULL), WICK_ERR_OUT_OF_MEMORY);
    double one, two;
    wick_tensor *const of_x = wick_narrow(wick_flatten(x, 0, 1), 0, 7, 1);
    wick_tensor *const of_y = wick_narrow(wick_flatten(y, 0, 1), 0, 7, 1);
    expect_ok(device, wick_read_scalar(of_x, &one));
    expect_ok(device, wick_read_scalar(of_y, &two));
    assert_true(two == 2 * one);
    wick_scope_end(scope);
    wick_release(x);
    wick_release(y);
    wick_device_close(device);
}

/* The numbers are those of the tensor, not of the piece for which there was no memory. */
static void a_tensor_in_pieces_is_reported_whole(void **state) {
    enum { MOST = 1 << 20, PIECE = 64 << 10 };
    (void)state;
    wick_device *const device = open_with(
        (wick_webgpu_desc){.pool = {.max_bytes = MOST}, .max_binding_bytes = PIECE}, false);
    wick_error err = {0};
    assert_null(make(device, 3 * MOST));
    assert_int_equal(wick_device_error(device, &err), WICK_ERR_OUT_OF_MEMORY);
    assert_int_equal(err.bytes_requested, 3 * MOST);
    assert_in_range(err.bytes_available, MOST / 2, MOST);
    assert_non_null(strstr(err.message, "3.0 MiB needed"));
    wick_device_close(device);
}

static void impossible_sizes_are_refused(void **state) {
    (void)state;
    wick_device *const device = open_with((wick_webgpu_desc){0}, false);
    static const int64_t sizes[] = {INT64_MAX / 1024, INT64_MAX / 2048, (int64_t)1 << 50};
    for (size_t i = 0; i < WK_COUNT(sizes); i++) {
        assert_null(make(device, sizes[i]));
        assert_int_equal(wick_device_error(device, NULL), WICK_ERR_OUT_OF_MEMORY);
    }
    wick_tensor *const empty = make(device, 0);
    assert_non_null(empty);
    expect_ok(device, wick_read(empty, NULL, 0));
    wick_release(empty);
    wick_device_close(device);
}

typedef struct pressure {
    wick_tensor *spare;
    int n_calls;
} pressure;

static void on_pressure(void *user, uint64_t used, uint64_t most) {
    pressure *const p = user;
    p->n_calls++;
    assert_true(used > most / 2);
    wick_release(p->spare);
    p->spare = NULL;
}

static void pressure_is_told(void **state) {
    (void)state;
    pressure p = {0};
    wick_device *const device = open_with((wick_webgpu_desc){.pool = {.max_bytes = 1 << 20,
                                                                      .pressure = 0.5,
                                                                      .on_pressure = on_pressure,
                                                                      .user = &p}},
                                          false);
    p.spare = make(device, 400000);
    assert_int_equal(p.n_calls, 0);
    wick_tensor *const a = make(device, 400000);
    assert_non_null(a);
    assert_int_equal(p.n_calls, 1);
    assert_null(p.spare);
    wick_tensor *const b = make(device, 300000);
    assert_non_null(b);             /* in the place of the spare one */
    assert_int_equal(p.n_calls, 1); /* it is known */
    wick_release(a);
    wick_release(b);
    expect_ok(device, wick_synchronize(device));
    wick_tensor *const small = make(device, 100000); /* there is room again */
    assert_int_equal(p.n_calls, 1);
    wick_tensor *const large = make(device, 500000);
    assert_int_equal(p.n_calls, 2);
    wick_release(small);
    wick_release(large);
    wick_device_close(device);
}

static void wrong_options_are_refused(void **state) {
    (void)state;
    static const wick_pool_desc wrong[] = {
        {.alignment = 3}, {.alignment = 8}, {.growth = 0.5}, {.pressure = 2}, {.fit = 9}};
    for (size_t i = 0; i < WK_COUNT(wrong); i++) {
        wick_device *device;
        const wick_device_desc desc = {.backend = WICK_BACKEND_WEBGPU,
                                       .webgpu = {.library = library, .pool = wrong[i]}};
        assert_int_equal(wick_device_open(&desc, &device, NULL), WICK_ERR_VALUE);
    }
}

/* Small buffers that come and go in slabs: none changes another. */
static void slabs_are_shared(void **state) {
    enum { N = 60, STEPS = 1500, MOST = 9000 };
    static unsigned char back[MOST];
    (void)state;
    for (wick_pool_fit fit = WICK_POOL_BEST_FIT; fit <= WICK_POOL_NEXT_FIT; fit++) {
        wick_device *const device =
            open_with((wick_webgpu_desc){.pool = {.initial_bytes = 65536, .fit = fit}}, false);
        wick_tensor *tensors[N] = {NULL};
        unsigned char *const bytes = malloc(N * MOST);
        assert_non_null(bytes);
        uint32_t seed = 5;
        for (int step = 0; step < STEPS; step++) {
            const size_t i = random_bits(&seed) % N;
            if (tensors[i] && step % 4 == 0) {
                expect_ok(device, wick_read(tensors[i], back, wick_tensor_bytes(tensors[i])));
                assert_memory_equal(back, bytes + i * MOST, wick_tensor_bytes(tensors[i]));
            }
            wick_release(tensors[i]);
            const int64_t size = random_bits(&seed) % MOST + 1;
            for (int64_t k = 0; k < size; k++)
                bytes[i * MOST + (size_t)k] = (unsigned char)random_bits(&seed);
            tensors[i] = wick_tensor_from_data(device, WICK_U8, WICK_SHAPE(size), bytes + i * MOST,
                                               (size_t)size);
            assert_non_null(tensors[i]);
        }
        const wick_device_stats stats = stats_of(device);
        assert_true(stats.pool_bytes > 65536); /* it has grown, and not by every buffer */
        assert_true(stats.n_pool_misses < 12);
        assert_true(stats.pool_fragmentation >= 0 && stats.pool_fragmentation < 1);
        for (size_t i = 0; i < N; i++) wick_release(tensors[i]);
        uint64_t freed;
        expect_ok(device, wick_device_trim(device, &freed, NULL));
        assert_true(freed > 0 && stats_of(device).pool_bytes <= stats.pool_bytes - freed);
        free(bytes);
        wick_device_close(device);
    }
}

/* Ops on small tensors that share a slab, so that their operands share a binding. */
static void operands_share_a_slab(void **state) {
    (void)state;
    wick_device *const device =
        open_with((wick_webgpu_desc){.pool = {.initial_bytes = 1 << 20}}, true);
    const wick_scope scope = wick_scope_begin(device);
    wick_tensor *const a = random_tensor(device, WICK_SHAPE(30, 21), 1);
    wick_tensor *const b = random_tensor(device, WICK_SHAPE(30, 21), 2);
    wick_tensor *const half = wick_cast(a, WICK_F16);
    expect_right(device, wick_add(a, b));
    expect_right(device, wick_mul(half, half));
    expect_right(device, wick_matmul(a, wick_transpose(b, 0, 1)));
    wick_scope_end(scope);
    wick_device_close(device);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(freed_memory_serves_again),
    cmocka_unit_test(a_missing_memory_is_told),
    cmocka_unit_test(a_tensor_in_pieces_is_reported_whole),
    cmocka_unit_test(impossible_sizes_are_refused),
    cmocka_unit_test(pressure_is_told),
    cmocka_unit_test(wrong_options_are_refused),
    cmocka_unit_test(slabs_are_shared),
    cmocka_unit_test(operands_share_a_slab),
};

int main(int argc, char **argv) {
    return find_library(argc, argv) ? cmocka_run_group_tests(tests, NULL, NULL) : 77;
}
