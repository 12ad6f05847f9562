/* Products with weights that lie as in their file (WK_USE_IN_PLACE): the bits that they have with
 * panels, of each type, on each instruction set that is here, in both kinds of math. */
#include "backend/backend.h"
#include "tensor/device.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "core/dtype.h"
#include "core/rng.h"

#include <wick/wick.h>

enum { K = 512, EXPERTS = 3, TOKENS = 5, USED = 2, N_MOST = 320, M_MOST = 40 };

static uint8_t blocks[4 * N_MOST * K]; /* of the widest type, f32 */
static float x[M_MOST * K], bias[N_MOST];
static float panels[M_MOST * N_MOST], raw[M_MOST * N_MOST];

static const wick_dtype dtypes[] = {WICK_F32, WICK_F16, WICK_BF16,
#define DTYPE(dtype, name) WICK_##dtype,
                                    WK_PANEL_FORMATS(DTYPE)
#undef DTYPE
};

/* Without the highest bit of an exponent, no number is infinite or NaN. */
static void make_operands(void) {
    wk_rng rng = {.seed = 11};
    for (size_t i = 0; i < sizeof blocks; i++) blocks[i] = (uint8_t)(wk_rng_u32(&rng) & 0xBF);
    for (size_t i = 0; i < WK_COUNT(x); i++) x[i] = wk_rng_uniform(&rng) - 0.5F;
    for (size_t i = 0; i < WK_COUNT(bias); i++) bias[i] = wk_rng_uniform(&rng);
}

static wick_tensor *weight_of(wick_device *device, wick_dtype dtype, wick_shape shape,
                              uint32_t uses) {
    const wk_weight_desc desc = {
        .dtype = dtype,
        .shape = shape,
        .uses = uses,
        .data = (uses & WK_USE_IN_PLACE) != 0 ? blocks : NULL,
    };
    wk_weight_store store = {.device = device};
    bool in_place;
    wick_tensor *const weight = wk_weight_new(device, &desc, &store, &in_place);
    assert_non_null(weight);
    assert_true((weight->view.layout == WK_LAYOUT_RAW) == (desc.data != NULL));
    assert_true(in_place == (desc.data != NULL));
    if (in_place) return weight;
    int64_t n_rows = 1;
    for (int i = 0; i < shape.rank - 1; i++) n_rows *= shape.extent[i];
    assert_int_equal(wk_weight_upload(weight, 0, n_rows, blocks), WICK_OK);
    return weight;
}

static wick_tensor *floats(wick_device *device, wick_shape shape, const float *from, int64_t n) {
    return wick_tensor_from_data(device, WICK_F32, shape, from, (size_t)n * sizeof *from);
}

static void product(wick_device *device, wick_dtype dtype, int64_t m, int64_t n, int64_t k,
                    uint32_t uses, float *y) {
    const wick_scope scope = wick_scope_begin(device);
    wick_tensor *const weight = weight_of(device, dtype, WICK_SHAPE(n, k), uses);
    wick_tensor *const b = n % 2 == 0 ? floats(device, WICK_SHAPE(n), bias, n) : NULL;
    wick_tensor *const result = wick_linear(floats(device, WICK_SHAPE(m, k), x, m * k), weight, b);
    assert_int_equal(wick_read(result, y, (size_t)(m * n) * sizeof *y), WICK_OK);
    wick_scope_end(scope);
    wick_release(weight);
}

static void product_by_experts(wick_device *device, wick_dtype dtype, int64_t n, uint32_t uses,
                               float *y) {
    static const uint32_t ids[TOKENS * USED] = {2, 0, 2, 1, 0, 2, 2, 2, 1, 2};
    const wick_scope scope = wick_scope_begin(device);
    wick_tensor *const weight = weight_of(device, dtype, WICK_SHAPE(EXPERTS, n, K), uses);
    wick_tensor *const b = floats(device, WICK_SHAPE(EXPERTS, n), bias, EXPERTS * n);
    wick_tensor *const at =
        wick_tensor_from_data(device, WICK_U32, WICK_SHAPE(TOKENS, USED), ids, sizeof ids);
    wick_tensor *const result =
        wick_linear_experts(floats(device, WICK_SHAPE(TOKENS, K), x, TOKENS * K), weight, b, at);
    assert_int_equal(wick_read(result, y, (size_t)(TOKENS * USED * n) * sizeof *y), WICK_OK);
    wick_scope_end(scope);
    wick_release(weight);
}

static void check(wick_device *device, wick_dtype dtype) {
    static const struct {
        int64_t m, n, k;
    } shapes[] = {{1, 1, K},       {1, 50, K},          {1, N_MOST, K}, {3, 33, K},
                  {M_MOST, 50, K}, {M_MOST, N_MOST, K}, {1, 40, 8 * K}};
    for (size_t i = 0; i < WK_COUNT(shapes); i++) {
        const int64_t m = shapes[i].m, n = shapes[i].n, k = shapes[i].k;
        product(device, dtype, m, n, k, WK_USE_LINEAR, panels);
        product(device, dtype, m, n, k, WK_USE_LINEAR | WK_USE_IN_PLACE, raw);
        assert_memory_equal(panels, raw, (size_t)(m * n) * sizeof *raw);
    }
    for (int64_t n = 32; n <= 96; n += 64) { /* fewer panels than a group of them, and more */
        product_by_experts(device, dtype, n, WK_USE_LINEAR, panels);
        product_by_experts(device, dtype, n, WK_USE_LINEAR | WK_USE_IN_PLACE, raw);
        assert_memory_equal(panels, raw, (size_t)(TOKENS * USED * n) * sizeof *raw);
    }
}

static void same_bits(void **state) {
    (void)state;
    static const wick_isa isas[] = {WICK_ISA_AVX2, WICK_ISA_AVX512, WICK_ISA_NEON, WICK_ISA_DOTPROD,
                                    WICK_ISA_I8MM};
    make_operands();
    for (size_t i = 0; i < WK_COUNT(isas); i++) {
        const wick_device_desc desc = {.backend = WICK_BACKEND_CPU, .n_threads = 2, .isa = isas[i]};
        wick_device *device;
        if (wick_device_open(&desc, &device, NULL) != WICK_OK) continue;
        for (int math = WICK_MATH_EXACT; math <= WICK_MATH_FAST; math++) {
            wick_device_set_math(device, (wick_math)math);
            for (size_t d = 0; d < WK_COUNT(dtypes); d++) check(device, dtypes[d]);
        }
        wick_device_stats stats;
        wick_device_get_stats(device, &stats);
        assert_int_equal(stats.n_ops_ref, 0); /* no plain loops */
        wick_device_close(device);
    }
}

/* Experts whose rows do not fill panels have no layout at all, and fast products nevertheless. */
static void uneven_experts(void **state) {
    (void)state;
    const wick_device_desc descs[] = {{.backend = WICK_BACKEND_CPU, .n_threads = 2},
                                      {.backend = WICK_BACKEND_CPU, .isa = WICK_ISA_REF}};
    float found[2][TOKENS * USED * 20];
    for (int i = 0; i < 2; i++) {
        wick_device *device;
        assert_int_equal(wick_device_open(&descs[i], &device, NULL), WICK_OK);
        product_by_experts(device, WICK_Q8_0, 20, WK_USE_LINEAR | WK_USE_IN_PLACE, found[i]);
        wick_device_close(device);
    }
    for (size_t i = 0; i < WK_COUNT(found[0]); i++) {
        const float difference = found[0][i] - found[1][i];
        assert_true(difference < 1e-2F && difference > -1e-2F);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_bits),
        cmocka_unit_test(uneven_experts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
