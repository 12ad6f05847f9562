/* Operations: shapes of their results and what they refuse. Values in full are the business of the
 * recorded cases (op_cases) and of the kernel tests. */
#include "ops_fixture.h"

#include <math.h>

/* --- Elementwise, creation, copies --- */

static void test_broadcast(void **state) {
    wick_device *const device = device_of(state);
    wick_tensor *const row = count_up(device, WICK_SHAPE(3));
    wick_tensor *const column = count_up(device, WICK_SHAPE(2, 1));
    wick_tensor *const scalar = wick_full(device, WICK_F32, WICK_SCALAR, 10);
    ASSERT_FLOATS(wick_add(row, column), 0, 1, 2, 1, 2, 3);
    ASSERT_FLOATS(wick_mul(scalar, row), 0, 10, 20);
    ASSERT_FLOATS(wick_add(scalar, scalar), 20);
    wick_tensor *const pair = count_up(device, WICK_SHAPE(2));
    assert_refused(device, wick_add(row, pair), WICK_ERR_SHAPE);
    assert_refused(device, wick_swiglu(row, column), WICK_ERR_SHAPE);
    wick_release(pair);
    wick_release(scalar);
    wick_release(column);
    wick_release(row);
}

static void test_dtypes(void **state) {
    wick_device *const device = device_of(state);
    wick_tensor *const x = count_up(device, WICK_SHAPE(3));
    wick_tensor *const half = wick_cast(x, WICK_F16);
    wick_tensor *const whole = wick_cast(x, WICK_I32);
    wick_tensor *const truth = wick_cast(x, WICK_BOOL);
    assert_refused(device, wick_add(truth, truth), WICK_ERR_DTYPE);
    assert_refused(device, wick_silu(whole), WICK_ERR_DTYPE);
    assert_refused(device, wick_softmax(whole, 0), WICK_ERR_DTYPE);
    assert_refused(device, wick_rms_norm(whole, NULL, 1e-5F), WICK_ERR_DTYPE);
    assert_refused(device, wick_argmax(truth, 0, false), WICK_ERR_DTYPE);
    assert_refused(device, wick_cat((wick_tensor *[]){x, half}, 2, 0), WICK_ERR_DTYPE);
    ASSERT_FLOATS(wick_cast(truth, WICK_F32), 0, 1, 1);
    wick_release(truth);
    wick_release(whole);
    wick_release(half);
    wick_release(x);
}

static void assert_sentence(wick_device *device, const char *sentence) {
    wick_error error;
    wick_device_error(device, &error);
    assert_string_equal(error.message, sentence);
}

static void test_creation(void **state) {
    wick_device *const device = device_of(state);
    ASSERT_FLOATS(wick_zeros(device, WICK_F32, WICK_SHAPE(2)), 0, 0);
    ASSERT_FLOATS(wick_arange(device, WICK_F32, 3, 0, -1), 3, 2, 1);
    wick_tensor *const bytes = wick_full(device, WICK_U8, WICK_SHAPE(1), 300);
    ASSERT_FLOATS(wick_cast(bytes, WICK_F32), 255);
    ASSERT_FLOATS((wick_fill(bytes, -1), wick_cast(bytes, WICK_F32)), 0);
    ASSERT_FLOATS((wick_fill(bytes, NAN), wick_cast(bytes, WICK_F32)), 0);
    assert_refused(device, wick_arange(device, WICK_F32, 0, 1, 0), WICK_ERR_VALUE);
    assert_refused(device, wick_arange(device, WICK_F32, 0, 1, -1), WICK_ERR_VALUE);
    assert_refused(device, wick_arange(device, WICK_F32, 0, INFINITY, 1), WICK_ERR_VALUE);
    assert_refused(device, wick_arange(device, WICK_F32, 0, 1, NAN), WICK_ERR_VALUE);
    assert_refused(device, wick_arange(device, WICK_F64, 0, 1e300, 1e-300), WICK_ERR_VALUE);
    assert_refused(device, wick_arange(device, WICK_I32, 0, 1, 0.5), WICK_ERR_VALUE);
    assert_refused(device, wick_arange(device, WICK_U8, 250, 260, 1), WICK_ERR_VALUE);
    assert_refused(device, wick_arange(device, WICK_I64, 0x1p63, 0x1.1p63, 0x1p60), WICK_ERR_VALUE);
    assert_refused(device, wick_arange(device, WICK_BOOL, 0, 1, 1), WICK_ERR_DTYPE);
    assert_refused(device, wick_zeros(device, WICK_DTYPE_COUNT_, WICK_SCALAR), WICK_ERR_DTYPE);
    assert_refused(device, wick_cast(bytes, WICK_DTYPE_COUNT_), WICK_ERR_DTYPE);
    wick_release(bytes);
    assert_null(wick_arange(device, WICK_U8, 250, 257, 1));
    assert_sentence(device, "arange: 250 to 257 by 1 does not fit u8");
    wick_tensor *const last = wick_arange(device, WICK_U8, 254, 256, 1);
    ASSERT_FLOATS(wick_cast(last, WICK_F32), 254, 255);
    wick_release(last);
    assert_null(wick_arange(device, WICK_F32, 0, 1e30, 1));
    assert_sentence(device, "arange: 0 to 1e+30 by 1 are too many elements");
    assert_null(wick_zeros(device, WICK_F32, (wick_shape){.rank = 9}));
    assert_sentence(device, "a tensor has 0 to 6 dims, not 9");
    assert_null(wick_zeros(device, WICK_F32, (wick_shape){.rank = -1}));
    assert_sentence(device, "a tensor has 0 to 6 dims, not -1");
}

static void test_in_place(void **state) {
    wick_device *const device = device_of(state);
    wick_tensor *const x = count_up(device, WICK_SHAPE(2, 2));
    wick_tensor *const t = wick_transpose(x, 0, 1);
    assert_ptr_equal(wick_copy(x, t), x); /* reads what it writes */
    ASSERT_FLOATS(wick_contiguous(x), 0, 2, 1, 3);
    wick_tensor *const column = wick_narrow(x, 1, 0, 1);
    assert_ptr_equal(wick_fill(column, 7), column);
    ASSERT_FLOATS(wick_contiguous(x), 7, 2, 7, 3);
    wick_tensor *const repeated = wick_expand(column, WICK_SHAPE(2, 3));
    assert_refused(device, wick_fill(repeated, 0), WICK_ERR_ARGUMENT);
    assert_refused(device, wick_copy(repeated, column), WICK_ERR_ARGUMENT);
    assert_refused(device, wick_copy(column, x), WICK_ERR_SHAPE);
    wick_release(repeated);
    wick_release(column);
    wick_release(t);
    wick_release(x);
}

static void test_kv_append(void **state) {
    wick_device *const device = device_of(state);
    wick_tensor *const cache = wick_zeros(device, WICK_F32, WICK_SHAPE(1, 1, 4, 2));
    wick_tensor *const fresh = wick_full(device, WICK_F16, WICK_SHAPE(1, 1, 2, 2), 1.5);
    assert_ptr_equal(wick_kv_append(cache, fresh, 1), cache);
    ASSERT_FLOATS(wick_contiguous(cache), 0, 0, 1.5F, 1.5F, 1.5F, 1.5F, 0, 0);
    assert_ptr_equal(wick_kv_append(cache, fresh, 2), cache); /* up to its end */
    ASSERT_FLOATS(wick_contiguous(cache), 0, 0, 1.5F, 1.5F, 1.5F, 1.5F, 1.5F, 1.5F);
    wick_tensor *const none = wick_empty(device, WICK_F32, WICK_SHAPE(1, 1, 0, 2));
    assert_ptr_equal(wick_kv_append(cache, none, 4), cache);
    assert_refused(device, wick_kv_append(cache, none, 5), WICK_ERR_INDEX);
    wick_release(none);
    assert_refused(device, wick_kv_append(cache, fresh, 3), WICK_ERR_INDEX);
    assert_refused(device, wick_kv_append(cache, fresh, -1), WICK_ERR_INDEX);
    assert_refused(device, wick_kv_append(fresh, cache, 0), WICK_ERR_INDEX);
    wick_tensor *const flat = wick_flatten(fresh, 0, 1);
    assert_refused(device, wick_kv_append(cache, flat, 0), WICK_ERR_SHAPE);
    wick_release(flat);
    wick_release(fresh);
    wick_release(cache);
}

static void test_cat(void **state) {
    wick_device *const device = device_of(state);
    wick_tensor *const a = count_up(device, WICK_SHAPE(2, 1));
    wick_tensor *const b = count_up(device, WICK_SHAPE(2, 2));
    wick_tensor *const none = wick_zeros(device, WICK_F32, WICK_SHAPE(2, 0));
    ASSERT_FLOATS(wick_cat((wick_tensor *[]){a, none, b}, 3, -1), 0, 0, 1, 1, 2, 3);
    ASSERT_FLOATS(wick_cat((wick_tensor *[]){a, a}, 2, 0), 0, 1, 0, 1);
    assert_refused(device, wick_cat((wick_tensor *[]){a, b}, 2, 0), WICK_ERR_SHAPE);
    assert_null(wick_cat(NULL, 0, 0));
    wick_release(none);
    wick_release(b);
    wick_release(a);
}

/* --- Reductions and products --- */

static void test_reduce_any_dim(void **state) {
    wick_device *const device = device_of(state);
    wick_tensor *const x = count_up(device, WICK_SHAPE(2, 3, 4));
    for (int dim = 0; dim < 3; dim++) {
        wick_tensor *const kept = wick_argmax(x, dim, true), *const cut =
                                                                 wick_argmax(x, dim, false);
        wick_shape shape = WICK_SHAPE(2, 3, 4);
        shape.extent[dim] = 1;
        assert_shape(kept, shape);
        assert_int_equal(wick_tensor_shape(cut).rank, 2);
        assert_int_equal(wick_tensor_dtype(cut), WICK_U32);
        wick_tensor *const s = wick_softmax(x, dim);
        assert_shape(s, WICK_SHAPE(2, 3, 4));
        wick_release(s);
        wick_release(cut);
        wick_release(kept);
    }
    wick_tensor *const flat = wick_zeros(device, WICK_F32, WICK_SHAPE(2, 2));
    ASSERT_FLOATS(wick_softmax(flat, 0), 0.5F, 0.5F, 0.5F, 0.5F);
    wick_tensor *const scalar = wick_zeros(device, WICK_F32, WICK_SCALAR);
    wick_tensor *const none = wick_zeros(device, WICK_F32, WICK_SHAPE(0, 2));
    assert_refused(device, wick_softmax(scalar, 0), WICK_ERR_DIM);
    assert_refused(device, wick_rms_norm(scalar, NULL, 0), WICK_ERR_SHAPE);
    assert_refused(device, wick_rms_norm(x, NULL, -1), WICK_ERR_VALUE);
    assert_refused(device, wick_rms_norm(x, scalar, 0), WICK_ERR_SHAPE);
    assert_refused(device, wick_argmax(none, 0, false), WICK_ERR_SHAPE);
    wick_release(none);
    wick_release(scalar);
    wick_release(flat);
    wick_release(x);
}

/* One element repeated more often than an op can go through it, or than its indices count. */
static void test_endless_views(void **state) {
    wick_device *const device = device_of(state);
    const int64_t endless = (int64_t)1 << 61;
    wick_tensor *const x = wick_ones(device, WICK_F32, WICK_SHAPE(1, 1, 1, 1));
    wick_tensor *const keys = wick_expand(x, WICK_SHAPE(1, 1, endless, 1));
    wick_tensor *const wide = wick_expand(x, WICK_SHAPE(1, 1, 1, endless));
    wick_tensor *const many = wick_expand(x, WICK_SHAPE(1, 1, 1, (int64_t)UINT32_MAX + 1));
    assert_refused(device, wick_attention(x, keys, keys, NULL), WICK_ERR_SHAPE);
    assert_refused(device, wick_attention(wide, wide, x, NULL), WICK_ERR_SHAPE);
    assert_refused(device, wick_max(wide, 0, NULL, false), WICK_ERR_SHAPE);
    assert_refused(device, wick_argmax(many, 3, false), WICK_ERR_SHAPE);
    wick_release(many);
    wick_release(wide);
    wick_release(keys);
    wick_release(x);
}

static void test_matmul_broadcast(void **state) {
    wick_device *const device = device_of(state);
    wick_tensor *const a = wick_full(device, WICK_F32, WICK_SHAPE(2, 1, 1, 1, 1, 3), 1);
    wick_tensor *const b = wick_full(device, WICK_F32, WICK_SHAPE(2, 1, 3, 1), 2);
    wick_tensor *const c = wick_matmul(a, b);
    assert_shape(c, WICK_SHAPE(2, 1, 2, 1, 1, 1));
    ASSERT_FLOATS(c, 6, 6, 6, 6);
    assert_refused(device, wick_matmul(a, a), WICK_ERR_SHAPE);
    wick_release(b);
    wick_release(a);
}

static void test_linear_rows(void **state) {
    wick_device *const device = device_of(state);
    wick_tensor *const x = count_up(device, WICK_SHAPE(2, 2, 2));
    wick_tensor *const t = wick_transpose(x, 0, 1); /* its rows do not lie in order */
    wick_tensor *const ones = wick_full(device, WICK_F32, WICK_SHAPE(1, 2), 1);
    wick_tensor *const bias = wick_full(device, WICK_F32, WICK_SHAPE(1), 100);
    wick_tensor *const y = wick_linear(t, ones, bias);
    assert_shape(y, WICK_SHAPE(2, 2, 1));
    ASSERT_FLOATS(y, 101, 109, 105, 113);
    wick_tensor *const one_row = wick_narrow(bias, 0, 0, 1);
    assert_refused(device, wick_linear(one_row, ones, NULL), WICK_ERR_SHAPE);
    assert_refused(device, wick_linear(x, ones, x), WICK_ERR_SHAPE);
    assert_refused(device, wick_linear(x, x, NULL), WICK_ERR_SHAPE);
    wick_release(one_row);
    wick_release(bias);
    wick_release(ones);
    wick_release(t);
    wick_release(x);
}

static void test_linear_follows_math(void **state) {
    wick_device *const device = device_of(state);
    wick_tensor *const x = count_up(device, WICK_SHAPE(1, 2));
    seen s = {0};
    wk_observer *const observer = begin_observing(device, &s);
    wick_release(wick_linear(x, x, NULL));
    assert_false(s.last.p.linear.fast);
    wick_device_set_math(device, WICK_MATH_FAST);
    wick_release(wick_linear(x, x, NULL));
    assert_true(s.last.p.linear.fast);
    assert_int_equal(s.n, 2);
    wk_observer_remove(observer);
    wick_release(x);
}

static void test_embedding(void **state) {
    wick_device *const device = device_of(state);
    wick_tensor *const w = q8_weight(device);
    const int64_t ids[] = {2, 0, 1, 2};
    wick_tensor *const table =
        wick_tensor_from_data(device, WICK_I64, WICK_SHAPE(2, 2), ids, sizeof ids);
    wick_tensor *const t = wick_transpose(table, 0, 1);
    wick_tensor *const y = wick_embedding(w, t);
    assert_shape(y, WICK_SHAPE(2, 2, 2 * BLOCK));
    assert_int_equal(wick_tensor_dtype(y), WICK_F32);
    wick_tensor *const first = wick_narrow(y, 2, 0, 1);
    ASSERT_FLOATS(first, 3, 2, 1, 3);
    wick_release(y);
    static const wick_dtype dtypes[] = {WICK_U8, WICK_U32, WICK_I64};
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++) {
        wick_tensor *const id = wick_full(device, dtypes[i], WICK_SHAPE(1), 2);
        wick_tensor *const row = wick_embedding(w, id);
        wick_tensor *const start = wick_narrow(row, 1, 0, 1);
        ASSERT_FLOATS(start, 3);
        wick_release(row);
        wick_release(id);
    }
    wick_tensor *const far = wick_full(device, WICK_U32, WICK_SHAPE(1), 3);
    wick_tensor *const unread = wick_embedding(w, far);
    float data[2 * BLOCK];
    assert_int_equal(wick_read(unread, data, sizeof data), WICK_ERR_INDEX);
    wick_release(unread);
    assert_refused(device, NULL, WICK_ERR_INDEX);
    assert_refused(device, wick_embedding(w, w), WICK_ERR_DTYPE);
    assert_refused(device, wick_embedding(far, far), WICK_ERR_DTYPE);
    wick_release(far);
    wick_release(t);
    wick_release(table);
    wick_release(w);
}

/* --- Transformers --- */

static void test_rope(void **state) {
    wick_device *const device = device_of(state);
    wick_tensor *const x = wick_full(device, WICK_F32, WICK_SHAPE(1, 1, 2, 2), 1);
    const float c = cosf(1), s = sinf(1);
    ASSERT_FLOATS(wick_rope(x, NULL, NULL), 1, 1, c - s, s + c);
    wick_tensor *const far = wick_full(device, WICK_I64, WICK_SHAPE(1, 2), 1);
    ASSERT_FLOATS(wick_rope(x, far, NULL), c - s, s + c, c - s, s + c);
    wick_tensor *const back = wick_full(device, WICK_I64, WICK_SHAPE(2), -1);
    ASSERT_FLOATS(wick_rope(x, back, NULL), c + s, c - s, c + s, c - s);
    wick_release(back);
    wick_tensor *const wide = wick_zeros(device, WICK_U32, WICK_SHAPE(3));
    wick_tensor *const flat = wick_flatten(x, 0, 1);
    assert_refused(device, wick_rope(x, wide, NULL), WICK_ERR_SHAPE);
    assert_refused(device, wick_rope(x, x, NULL), WICK_ERR_DTYPE);
    assert_refused(device, wick_rope(flat, NULL, NULL), WICK_ERR_SHAPE);
    /* Rows longer than rotary_dim can say are left as they are. */
    for (int64_t d = INT32_MAX - 1; d <= (int64_t)INT32_MAX + 1; d++) {
        wick_tensor *const rows = wick_zeros(device, WICK_F32, WICK_SHAPE(1, 0, 1, d));
        wick_tensor *const y = wick_rope(rows, NULL, NULL);
        if (d == INT32_MAX)
            assert_refused(device, y, WICK_ERR_VALUE); /* odd */
        else
            assert_non_null(y);
        wick_release(y);
        wick_release(rows);
    }
    const wick_rope_desc bad[] = {{.rotary_dim = 1}, {.rotary_dim = 4},
                                  {.theta = -1},     {.scale_factor = INFINITY},
                                  {.offset = -1},    {.offset = UINT32_MAX}};
    for (size_t i = 0; i < WK_COUNT(bad); i++) {
        assert_refused(device, wick_rope(x, NULL, &bad[i]), WICK_ERR_VALUE);
    }
    wick_release(flat);
    wick_release(wide);
    wick_release(far);
    wick_release(x);
}

static void test_rope_table(void **state) {
    wick_device *const device = device_of(state);
    wick_tensor *const x = count_up(device, WICK_SHAPE(1, 2, 2)); /* [h, t, d] */
    wick_tensor *const zero = wick_zeros(device, WICK_F16, WICK_SHAPE(2, 1));
    wick_tensor *const one = wick_full(device, WICK_F16, WICK_SHAPE(2, 1), 1);
    wick_tensor *const y = wick_rope_table(x, zero, one, false, WICK_ROPE_BHTD);
    assert_shape(y, WICK_SHAPE(1, 2, 2));
    ASSERT_FLOATS(y, -1, 0, -3, 2); /* (a, b) by 90 degrees is (-b, a) */
    assert_refused(device, wick_rope_table(x, zero, x, false, WICK_ROPE_BHTD), WICK_ERR_DTYPE);
    assert_refused(device, wick_rope_table(x, zero, one, false, WICK_ROPE_BTHD), WICK_ERR_SHAPE);
    /* Tables of f64 turn f64 as they are. */
    wick_tensor *const wide = wick_ones(device, WICK_F64, WICK_SHAPE(1, 1, 2));
    wick_tensor *const cosine = wick_full(device, WICK_F64, WICK_SHAPE(1, 1), 0.1);
    wick_tensor *const sine = wick_full(device, WICK_F64, WICK_SHAPE(1, 1), 0.3);
    wick_tensor *const turned = wick_rope_table(wide, cosine, sine, false, WICK_ROPE_BHTD);
    double pair[2];
    assert_int_equal(wick_read(turned, pair, sizeof pair), WICK_OK);
    assert_true(fabs(pair[0] + 0.2) < 1e-15 && fabs(pair[1] - 0.4) < 1e-15);
    wick_release(turned);
    wick_release(sine);
    wick_release(cosine);
    wick_release(wide);
    wick_release(one);
    wick_release(zero);
    wick_release(x);
}

static void test_attention(void **state) {
    wick_device *const device = device_of(state);
    wick_tensor *const q = wick_zeros(device, WICK_F32, WICK_SHAPE(1, 2, 1, 4));
    wick_tensor *const k = wick_zeros(device, WICK_F32, WICK_SHAPE(1, 1, 2, 4));
    wick_tensor *const v = count_up(device, WICK_SHAPE(1, 1, 2, 1));
    ASSERT_FLOATS(wick_attention(q, k, v, NULL), 0.5F, 0.5F);
    wick_tensor *const sinks = wick_zeros(device, WICK_F32, WICK_SHAPE(2));
    ASSERT_FLOATS(wick_attention(q, k, v, &(wick_attention_desc){.sinks = sinks}), 1.0F / 3,
                  1.0F / 3);
    wick_tensor *const no_k = wick_narrow(k, 2, 0, 0), *const no_v = wick_narrow(v, 2, 0, 0);
    ASSERT_FLOATS(wick_attention(q, no_k, no_v, NULL), 0, 0);
    assert_refused(device, wick_attention(q, k, no_v, NULL), WICK_ERR_SHAPE);
    assert_refused(device, wick_attention(k, q, q, NULL), WICK_ERR_SHAPE);
    assert_refused(device, wick_attention(q, k, v, &(wick_attention_desc){.window = -1}),
                   WICK_ERR_VALUE);
    assert_refused(device, wick_attention(q, k, v, &(wick_attention_desc){.scale = NAN}),
                   WICK_ERR_VALUE);
    assert_refused(device, wick_attention(q, k, v, &(wick_attention_desc){.mask = sinks}),
                   WICK_ERR_DTYPE);
    assert_refused(device, wick_attention(q, k, v, &(wick_attention_desc){.bias = k}),
                   WICK_ERR_SHAPE);
    wick_release(no_v);
    wick_release(no_k);
    wick_release(sinks);
    wick_release(v);
    wick_release(k);
    wick_release(q);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_broadcast),
        TEST(test_dtypes),
        TEST(test_creation),
        TEST(test_in_place),
        TEST(test_kv_append),
        TEST(test_cat),
        TEST(test_reduce_any_dim),
        TEST(test_endless_views),
        TEST(test_matmul_broadcast),
        TEST(test_linear_rows),
        TEST(test_linear_follows_math),
        TEST(test_embedding),
        TEST(test_rope),
        TEST(test_rope_table),
        TEST(test_attention),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
