/* usage: test_faults [--backend webgpu] [options of webgpu_options.h]
 * Indices out of range: what was computed with them says so, and nothing else does, also where more
 * operations wait at once than there are slots for their faults. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "backend/op.h"
#include "core/compiler.h"
#include "webgpu_options.h"

#include <wick/device.h>
#include <wick/ops.h>
#include <wick/tensor.h>

enum { ROWS = 4, N = 2 * WK_FAULT_SLOTS };

static const wick_device_desc places[] = {
    {.backend = WICK_BACKEND_CPU, .n_threads = 1},
    {.backend = WICK_BACKEND_CPU, .n_threads = 1, .slice_us = 1},
    {.backend = WICK_BACKEND_NULL, .n_threads = 1},
    {.backend = WICK_BACKEND_NULL, .n_threads = 1, .null_flags = WICK_NULL_LATE},
    {.backend = WICK_BACKEND_NULL,
     .n_threads = 1,
     .null_flags = WICK_NULL_LATE | WICK_NULL_OUT_OF_ORDER},
};

/* In place of these, where the options ask for WebGPU. */
static wick_device_desc chosen = {.strict = true};

static wick_tensor *make_rows(wick_device *device) {
    static const float rows[ROWS] = {1, 2, 3, 4};
    return wick_tensor_from_data(device, WICK_F32, WICK_SHAPE(ROWS, 1), rows, sizeof rows);
}

static wick_tensor *look_up(wick_device *device, wick_tensor *rows, uint32_t id) {
    wick_tensor *const ids = wick_tensor_from_data(device, WICK_U32, WICK_SHAPE(1), &id, sizeof id);
    wick_tensor *const y = wick_embedding(rows, ids);
    assert_non_null(y);
    wick_release(ids);
    return y;
}

/* All are queued before the first one is read. */
static void check_place(const wick_device_desc *desc) {
    static wick_tensor *found[N];
    wick_device *device;
    wick_error error = {0};
    if (wick_device_open(desc, &device, &error) != WICK_OK) fail_msg("%s", error.message);
    wick_tensor *const rows = make_rows(device);
    for (uint32_t k = 0; k < N; k++) found[k] = look_up(device, rows, k % 7);
    for (uint32_t k = 0; k < N; k++) {
        float got = 0;
        const wick_status status = wick_read(found[k], &got, sizeof got);
        if (status != (k % 7 < ROWS ? WICK_OK : WICK_ERR_INDEX))
            fail_msg("row %u: %s", (unsigned)k, wick_status_text(status));
        assert_true(k % 7 >= ROWS || (uint32_t)got == k % 7 + 1);
        wick_release(found[k]);
    }
    wick_release(rows);
    wick_device_close(device);
}

static void test_more_than_slots(void **state) {
    (void)state;
    if (chosen.backend == WICK_BACKEND_WEBGPU) {
        check_place(&chosen);
        return;
    }
    for (size_t i = 0; i < WK_COUNT(places); i++) check_place(&places[i]);
}

int main(int argc, char **argv) {
    static const struct CMUnitTest tests[] = {cmocka_unit_test(test_more_than_slots)};
    if (!parse_device(argc, argv, &chosen)) return 2;
    return cmocka_run_group_tests_name("faults", tests, NULL, NULL);
}
