/* Operations: who owns what, with and without scopes; empty tensors; chains that failed. */
#include "ops_fixture.h"

/* --- Empty tensors, chains, ownership --- */

/* Nothing is queued for a result without elements, and a product over nothing needs no product. */
static void test_empty(void **state) {
    wick_device *const device = device_of(state);
    const wick_scope scope = wick_scope_begin(device);
    seen s = {0};
    wk_observer *const observer = begin_observing(device, &s);
    wick_tensor *const none = wick_zeros(device, WICK_F32, WICK_SHAPE(0, 4));
    wick_tensor *const weight = wick_zeros(device, WICK_F32, WICK_SHAPE(0, 4));
    assert_shape(wick_add(none, none), WICK_SHAPE(0, 4));
    assert_shape(wick_silu(none), WICK_SHAPE(0, 4));
    assert_shape(wick_softmax(none, 0), WICK_SHAPE(0, 4));
    assert_shape(wick_rms_norm(none, NULL, 0), WICK_SHAPE(0, 4));
    assert_shape(wick_argmax(none, 1, false), WICK_SHAPE(0));
    assert_shape(wick_linear(none, weight, NULL), WICK_SHAPE(0, 0));
    assert_shape(wick_transpose(none, 0, 1), WICK_SHAPE(4, 0));
    assert_shape(wick_reshape(none, WICK_SHAPE(7, 0)), WICK_SHAPE(7, 0));
    assert_shape(wick_fill(none, 1), WICK_SHAPE(0, 4));
    assert_shape(wick_copy(none, none), WICK_SHAPE(0, 4));
    assert_shape(wick_arange(device, WICK_I64, 5, 5, 1), WICK_SHAPE(0));
    assert_shape(wick_cast(none, WICK_I8), WICK_SHAPE(0, 4));
    assert_shape(wick_contiguous(wick_transpose(none, 0, 1)), WICK_SHAPE(4, 0));
    assert_int_equal(s.n, 0);
    wick_tensor *const product = wick_matmul(wick_transpose(none, 0, 1), none);
    assert_shape(product, WICK_SHAPE(4, 4));
    assert_int_equal(s.n, 1);
    assert_int_equal(s.last.code, WK_OP_FILL);
    wk_observer_remove(observer);
    wick_tensor *const thin = wick_zeros(device, WICK_F32, WICK_SHAPE(2, 0));
    wick_tensor *const bias = count_up(device, WICK_SHAPE(2));
    wick_tensor *const y = wick_linear(thin, thin, bias);
    ASSERT_FLOATS(wick_retain(y), 0, 1, 0, 1);
    wick_release(bias);
    wick_scope_end(scope);
}

/* The first failure stays, and everything after it is NULL. */
static void test_null_chain(void **state) {
    wick_device *const device = device_of(state);
    wick_tensor *const x = count_up(device, WICK_SHAPE(2, 3));
    wick_tensor *const lost = wick_matmul(x, x);
    assert_null(wick_softmax(wick_add(wick_silu(lost), x), 5));
    assert_null(wick_attention(lost, lost, lost, NULL));
    assert_null(wick_cat((wick_tensor *[]){x, lost}, 2, 0));
    assert_null(wick_rope(wick_reshape(lost, WICK_SHAPE(1)), NULL, NULL));
    assert_null(wick_copy(wick_fill(wick_kv_append(lost, x, 0), 1), x));
    assert_null(wick_zeros(NULL, WICK_F32, WICK_SHAPE(1)));
    wick_error error;
    assert_int_equal(wick_device_error(device, &error), WICK_ERR_SHAPE);
    assert_non_null(strstr(error.message, "matmul"));
    assert_int_equal(wick_device_error(device, NULL), WICK_OK);
    wick_release(x);
}

static void test_two_devices(void **state) {
    wick_device *const device = device_of(state);
    wick_device *other = NULL;
    const wick_device_desc desc = {.backend = WICK_BACKEND_CPU, .n_threads = 1};
    assert_int_equal(wick_device_open(&desc, &other, NULL), WICK_OK);
    wick_tensor *const x = count_up(device, WICK_SHAPE(2)), *const y =
                                                                count_up(other, WICK_SHAPE(2));
    assert_refused(device, wick_add(x, y), WICK_ERR_ARGUMENT);
    assert_refused(device, wick_copy(x, y), WICK_ERR_ARGUMENT);
    wick_release(y);
    wick_release(x);
    wick_device_close(other);
}

/* A chain that makes every kind of temporary: copies for strides, casts, positions. */
static wick_tensor *temporaries(wick_tensor *x, wick_tensor *positions) {
    wick_tensor *made[10];
    made[0] = wick_transpose(x, 0, 1);
    made[1] = wick_flatten(made[0], 0, 1);
    made[2] = wick_linear(made[0], x, NULL);
    made[3] = wick_reshape(made[1], WICK_SHAPE(1, 1, 2, 2));
    made[4] = wick_rope(made[3], positions, NULL);
    made[5] = wick_rope(made[3], NULL, &(wick_rope_desc){.layout = WICK_ROPE_BTHD, .offset = 3});
    made[6] = wick_cat(made + 4, 2, 0);
    made[7] = wick_copy(x, made[0]) != NULL ? wick_argmax(x, 0, true) : NULL;
    made[8] = wick_attention(made[4], made[5], made[3], NULL);
    made[9] = wick_add(made[8], made[6]);
    for (size_t i = 0; i < 9; i++) wick_release(made[i]);
    return made[9];
}

static void test_no_scope_no_leak(void **state) {
    fixture *const f = *state;
    wick_tensor *const x = count_up(f->device, WICK_SHAPE(2, 2));
    wick_tensor *const positions = wick_zeros(f->device, WICK_I64, WICK_SHAPE(2));
    assert_int_equal(wick_synchronize(f->device), WICK_OK);
    const uint64_t before = buffer_bytes(f);
    wick_tensor *const y = temporaries(x, positions);
    assert_non_null(y);
    wick_release(y);
    assert_int_equal(wick_synchronize(f->device), WICK_OK);
    assert_int_equal(buffer_bytes(f), before);
    wick_release(positions);
    wick_release(x);
}

/* Inside a scope nothing needs to be released, and releasing by hand is allowed. */
static void test_scope_owns(void **state) {
    fixture *const f = *state;
    const wick_scope outer = wick_scope_begin(f->device);
    wick_tensor *const x = count_up(f->device, WICK_SHAPE(2, 2));
    wick_tensor *const positions = wick_zeros(f->device, WICK_I64, WICK_SHAPE(2));
    const wick_scope inner = wick_scope_begin(f->device);
    wick_tensor *const y = wick_retain(temporaries(x, positions));
    wick_softmax(wick_matmul(x, wick_contiguous(wick_transpose(x, 0, 1))), 0);
    wick_scope_end(inner);
    assert_shape(y, WICK_SHAPE(2, 1, 2, 2));
    wick_release(y);
    wick_scope_end(outer);
}

/* Memory runs out at every place in turn: NULL, the status, and nothing left behind (teardown). */
static void test_out_of_memory(void **state) {
    fixture *const f = *state;
    wick_tensor *const x = count_up(f->device, WICK_SHAPE(2, 2));
    wick_tensor *const positions = wick_zeros(f->device, WICK_I64, WICK_SHAPE(2));
    assert_int_equal(wick_synchronize(f->device), WICK_OK);
    bool is_enough = false;
    for (uint64_t allowed = 0; !is_enough; allowed++) {
        assert_true(allowed < 200);
        f->allowed = allowed;
        wick_tensor *const y = temporaries(x, positions);
        wick_error error;
        const wick_status status = wick_device_error(f->device, &error);
        is_enough = y != NULL && status == WICK_OK;
        if (!is_enough) assert_int_equal(status, WICK_ERR_OUT_OF_MEMORY);
        f->allowed = UINT64_MAX;
        wick_release(y);
        (void)wick_synchronize(f->device);
        (void)wick_device_error(f->device, NULL);
    }
    wick_release(positions);
    wick_release(x);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_empty),       TEST(test_null_chain),
        TEST(test_two_devices), TEST(test_no_scope_no_leak),
        TEST(test_scope_owns),  TEST(test_out_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
