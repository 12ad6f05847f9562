/* 8-bit floats: every number, every rounding, casts, files, text; and that nothing computes. */
#include "core/half.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <wick/wick.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct format {
    wick_dtype dtype;
    int exponent, fraction, bias;
    uint8_t largest; /* finite */
    float (*load)(uint8_t bits);
    uint8_t (*store)(double value);
} format;

static const format formats[] = {
    {WICK_F8_E4M3, 4, 3, 7, 0x7E, wk_f8_e4m3_to_f32, wk_f64_to_f8_e4m3},
    {WICK_F8_E5M2, 5, 2, 15, 0x7B, wk_f8_e5m2_to_f32, wk_f64_to_f8_e5m2},
};

/* By the formula. */
static double value_of(const format *f, uint8_t bits) {
    const int field = (bits & 0x7F) >> f->fraction, part = bits & ((1 << f->fraction) - 1);
    const double sign = bits & 0x80 ? -1 : 1, one = 1 << f->fraction;
    if ((bits & 0x7F) > f->largest)
        return f->dtype == WICK_F8_E5M2 && part == 0 ? sign * HUGE_VAL : (double)NAN;
    if (field == 0) return sign * ldexp(part / one, 1 - f->bias);
    return sign * ldexp(1 + part / one, field - f->bias);
}

static void test_every_number(void **state) {
    (void)state;
    for (size_t k = 0; k < 2; k++) {
        const format *const f = &formats[k];
        for (int bits = 0; bits < 256; bits++) {
            const double want = value_of(f, (uint8_t)bits);
            const double got = (double)f->load((uint8_t)bits);
            assert_true(got == want || (isnan(got) && isnan(want)));
            assert_int_equal(signbit(got) != 0, bits >> 7);
            const uint8_t back = f->store(got);
            if (isnan(want))
                assert_int_equal(back & 0x7F, 0x7F);
            else
                assert_int_equal(back, bits);
        }
    }
    assert_true(value_of(&formats[0], 0x7E) == 448 && value_of(&formats[1], 0x7B) == 57344);
}

/* Between neighbours: the middle goes to the even one, all else to the nearer one; past the
 * largest the next one there would be counts. */
static void test_rounding(void **state) {
    (void)state;
    for (size_t k = 0; k < 2; k++) {
        const format *const f = &formats[k];
        for (int bits = 0; bits <= f->largest; bits++) {
            const double low = value_of(f, (uint8_t)bits);
            const int field = bits >> f->fraction;
            const double step = ldexp(1, (field > 0 ? field : 1) - f->bias - f->fraction);
            const double middle = low + step / 2;
            const int even = bits % 2 == 0 ? bits : bits + 1;
            for (int sign = 0; sign < 2; sign++) {
                const double s = sign ? -1 : 1;
                const int add = sign << 7;
                assert_int_equal(f->store(s * middle), add + even);
                assert_int_equal(f->store(s * nextafter(middle, 0)), add + bits);
                assert_int_equal(f->store(s * nextafter(middle, HUGE_VAL)), add + bits + 1);
                assert_int_equal(f->store(s * (double)nextafterf((float)middle, 0)), add + bits);
            }
        }
        const int over = f->largest + 1; /* infinity, or NaN where there is none */
        assert_int_equal(f->store(HUGE_VAL), over);
        assert_int_equal(f->store(-HUGE_VAL), over + 0x80);
        assert_int_equal(f->store(1e300), over);
        assert_int_equal(f->store(-1e9), over + 0x80);
        assert_int_equal(f->store(1e-300), 0);
        assert_int_equal(f->store(-5e-324), 0x80);
        assert_int_equal(f->store((double)NAN) & 0x7F, 0x7F);
    }
    assert_int_equal(wk_f64_to_f8_e4m3(464), 0x7E); /* a tie of 448 and what is NaN */
    assert_int_equal(wk_f64_to_f8_e4m3(465), 0x7F);
}

static wick_device *open_device(void) {
    const wick_device_desc desc = {.backend = WICK_BACKEND_CPU, .n_threads = 1};
    wick_device *device = NULL;
    assert_int_equal(wick_device_open(&desc, &device, NULL), WICK_OK);
    return device;
}

/* To each type and back: what both have comes back. */
static void test_casts(void **state) {
    (void)state;
    static const float values[] = {0, 1, -2, 3.5F, 448, -0.25F, 100.4F, 0.001953125F, 1e5F, -3};
    enum { N = 10 };
    wick_device *const device = open_device();
    const wick_scope scope = wick_scope_begin(device);
    wick_tensor *const x =
        wick_tensor_from_data(device, WICK_F32, WICK_SHAPE(2, 5), values, sizeof values);
    for (size_t k = 0; k < 2; k++) {
        const format *const f = &formats[k];
        for (int via = WICK_F32; via <= WICK_BOOL; via++) {
            double got[N], direct[N];
            uint8_t bits[N];
            wick_tensor *const there = wick_cast(wick_transpose(x, 0, 1), (wick_dtype)via);
            wick_tensor *const stored = wick_cast(there, f->dtype);
            assert_int_equal(wick_tensor_dtype(stored), f->dtype);
            assert_int_equal(wick_tensor_bytes(stored), N);
            assert_int_equal(wick_read(stored, bits, sizeof bits), WICK_OK);
            assert_int_equal(wick_read(wick_cast(there, WICK_F64), direct, sizeof direct), WICK_OK);
            for (int i = 0; i < N; i++) assert_int_equal(bits[i], f->store(direct[i]));
            assert_int_equal(
                wick_read(wick_cast(wick_cast(stored, WICK_F32), WICK_F64), got, sizeof got),
                WICK_OK);
            for (int i = 0; i < N; i++) {
                const double want = value_of(f, bits[i]);
                assert_true(got[i] == want || (isnan(got[i]) && isnan(want)));
            }
        }
        int32_t whole[N];
        assert_int_equal(
            wick_read(wick_cast(wick_cast(x, f->dtype), WICK_I32), whole, sizeof whole), WICK_OK);
        assert_true(whole[2] == -2 && whole[3] == 3 && whole[5] == 0 && whole[9] == -3);
        assert_int_equal(whole[8], k == 0 ? 0 : INT32_MAX); /* NaN, infinity */
    }
    wick_tensor *const low = wick_cast(wick_cast(x, WICK_F8_E4M3), WICK_F8_E5M2);
    uint8_t bits[N];
    assert_int_equal(wick_read(low, bits, sizeof bits), WICK_OK);
    assert_int_equal(bits[4], wk_f64_to_f8_e5m2(448));
    assert_int_equal(bits[8] & 0x7F, 0x7F);
    wick_scope_end(scope);
    wick_device_close(device);
}

static void test_moves(void **state) {
    (void)state;
    static const uint8_t bits[6] = {0x00, 0x38, 0xB8, 0x7F, 0x7E, 0x01};
    char text[128];
    uint8_t got[12];
    wick_device *const device = open_device();
    const wick_scope scope = wick_scope_begin(device);
    wick_tensor *const x =
        wick_tensor_from_data(device, WICK_F8_E4M3, WICK_SHAPE(2, 3), bits, sizeof bits);
    assert_int_equal(wick_read(wick_contiguous(wick_transpose(x, 0, 1)), got, 6), WICK_OK);
    assert_memory_equal(got, ((const uint8_t[]){0x00, 0x7F, 0x38, 0x7E, 0xB8, 0x01}), 6);
    assert_int_equal(wick_read(wick_cat((wick_tensor *[]){x, x}, 2, 0), got, 12), WICK_OK);
    assert_memory_equal(got + 6, bits, 6);
    wick_tensor *const y = wick_empty(device, WICK_F8_E4M3, WICK_SHAPE(2, 3));
    assert_int_equal(wick_read(wick_copy(y, x), got, 6), WICK_OK);
    assert_memory_equal(got, bits, 6);
    assert_int_equal(wick_read_text(wick_narrow(x, 0, 0, 1), text, sizeof text, NULL), WICK_OK);
    assert_string_equal(text, "[[ 0.  1. -1.]] f8_e4m3[1, 3]");
    double value;
    assert_int_equal(wick_read_scalar(wick_narrow(wick_narrow(x, 0, 1, 1), 1, 1, 1), &value),
                     WICK_OK);
    assert_true(value == 448);
    wick_scope_end(scope);
    wick_device_close(device);
}

static void check_refused(wick_device *device, wick_tensor *y, const char *op) {
    wick_error error = {.status = WICK_OK};
    if (y != NULL) fail_msg("%s is not refused", op);
    if (wick_device_error(device, &error) != WICK_ERR_DTYPE)
        fail_msg("%s: %d '%s'", op, error.status, error.message);
}

#define REFUSED(call) check_refused(device, call, #call)

static void test_refused(void **state) {
    (void)state;
    static const uint8_t bits[4] = {0x38, 0x40, 0xB8, 0x30};
    static const float floats[4] = {1, 2, 3, 4};
    static const uint32_t places[4] = {0};
    wick_device *const device = open_device();
    const wick_scope scope = wick_scope_begin(device);
    for (size_t k = 0; k < 2; k++) {
        const wick_dtype dtype = formats[k].dtype;
        const wick_shape square = WICK_SHAPE(2, 2);
        wick_tensor *const x = wick_tensor_from_data(device, dtype, square, bits, 4);
        wick_tensor *const f = wick_tensor_from_data(device, WICK_F32, square, floats, 16);
        wick_tensor *const i = wick_tensor_from_data(device, WICK_U32, square, places, 16);
        REFUSED(wick_add(x, x));
        REFUSED(wick_mul(x, f));
        REFUSED(wick_add(f, x));
        REFUSED(wick_eq(x, x));
        REFUSED(wick_neg(x));
        REFUSED(wick_abs(x));
        REFUSED(wick_exp(x));
        REFUSED(wick_relu(x));
        REFUSED(wick_sum(x, 0, NULL, false));
        REFUSED(wick_argmax(x, 0, false));
        REFUSED(wick_softmax(x, -1));
        REFUSED(wick_matmul(x, x));
        REFUSED(wick_matmul(f, x));
        REFUSED(wick_linear(f, x, NULL));
        REFUSED(wick_embedding(x, i));
        REFUSED(wick_gather(x, 0, i));
        REFUSED(wick_scatter(x, 0, i, x, WICK_SCATTER_SET));
        REFUSED(wick_where(wick_eq(i, i), x, x));
        REFUSED(wick_cumsum(x, 0));
        REFUSED(wick_argsort(x, 0, false));
        REFUSED(wick_rms_norm(x, NULL, 1e-5F));
        REFUSED(wick_tril(x, 0));
        REFUSED(wick_fill(x, 1));
        REFUSED(wick_zeros(device, dtype, square));
        REFUSED(wick_ones(device, dtype, square));
        REFUSED(wick_arange(device, dtype, 0, 4, 1));
        REFUSED(wick_rand(device, dtype, square, 0, 1));
    }
    wick_scope_end(scope);
    wick_device_close(device);
}

static void test_files(void **state) {
    (void)state;
    static const char *const names[] = {"a", "b"};
    static const char *const paths[] = {"test_float8_out.safetensors", "test_float8_out.pt",
                                        "test_float8_out.npz"};
    uint8_t bits[256], got[256];
    for (int i = 0; i < 256; i++) bits[i] = (uint8_t)i;
    wick_device *const device = open_device();
    const wick_scope scope = wick_scope_begin(device);
    wick_tensor *const both[] = {
        wick_tensor_from_data(device, WICK_F8_E4M3, WICK_SHAPE(16, 16), bits, 256),
        wick_tensor_from_data(device, WICK_F8_E5M2, WICK_SHAPE(256), bits, 256)};
    for (size_t k = 0; k < 3; k++) {
        wick_error error = {.status = WICK_OK};
        const wick_status status = wick_tensor_file_save(paths[k], names, both, 2, &error);
        assert_int_equal(status, k < 2 ? WICK_OK : WICK_ERR_DTYPE);
        for (size_t i = 0; i < 2 && status == WICK_OK; i++) {
            wick_tensor *const found = wick_tensor_load(device, paths[k], names[i]);
            assert_int_equal(wick_tensor_dtype(found), wick_tensor_dtype(both[i]));
            assert_int_equal(wick_read(found, got, 256), WICK_OK);
            assert_memory_equal(got, bits, 256);
        }
        if (status == WICK_OK) assert_int_equal(remove(paths[k]), 0);
    }
    wick_scope_end(scope);
    wick_device_close(device);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_number), cmocka_unit_test(test_rounding),
        cmocka_unit_test(test_casts),        cmocka_unit_test(test_moves),
        cmocka_unit_test(test_refused),      cmocka_unit_test(test_files),
    };
    return cmocka_run_group_tests_name("float8", tests, NULL, NULL);
}
