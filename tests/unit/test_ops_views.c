/* Views of tensors: shapes, contents, shared memory, and what is refused. */
#include "ops_fixture.h"

/* --- Views --- */

static void test_views_share_memory(void **state) {
    wick_device *const device = device_of(state);
    wick_tensor *const x = count_up(device, WICK_SHAPE(2, 3, 4));
    seen s = {0};
    wk_observer *const observer = begin_observing(device, &s);
    wick_tensor *const views[] = {
        wick_transpose(x, 0, -1),
        wick_permute(x, 3, (const int[]){1, -1, 0}),
        wick_reshape(x, WICK_SHAPE(6, -1)),
        wick_flatten(x, 0, 1),
        wick_squeeze(x, 0),
        wick_unsqueeze(x, -1),
        wick_narrow(x, 1, 1, 2),
        wick_slice(x, 2, 1, 4, 2),
        wick_expand(x, WICK_SHAPE(5, 2, 3, 4)),
        wick_contiguous(x),
    };
    const wick_shape shapes[] = {
        WICK_SHAPE(4, 3, 2),    WICK_SHAPE(3, 4, 2),    WICK_SHAPE(6, 4),    WICK_SHAPE(6, 4),
        WICK_SHAPE(2, 3, 4),    WICK_SHAPE(2, 3, 4, 1), WICK_SHAPE(2, 2, 4), WICK_SHAPE(2, 3, 2),
        WICK_SHAPE(5, 2, 3, 4), WICK_SHAPE(2, 3, 4),
    };
    for (size_t i = 0; i < WK_COUNT(views); i++) {
        assert_non_null(views[i]);
        assert_shape(views[i], shapes[i]);
        assert_ptr_equal(views[i]->view.buf, x->view.buf);
        wick_release(views[i]);
    }
    assert_int_equal(s.n, 0);
    wk_observer_remove(observer);
    wick_release(x);
}

static void test_view_contents(void **state) {
    wick_tensor *const x = count_up(device_of(state), WICK_SHAPE(2, 3));
    ASSERT_FLOATS(wick_transpose(x, 0, 1), 0, 3, 1, 4, 2, 5);
    ASSERT_FLOATS(wick_narrow(x, 1, 1, 2), 1, 2, 4, 5);
    ASSERT_FLOATS(wick_slice(x, 1, 0, 3, 2), 0, 2, 3, 5);
    ASSERT_FLOATS(wick_slice(x, 1, 2, 3, INT64_MAX), 2, 5);
    wick_tensor *const row = wick_narrow(x, 0, 1, 1);
    ASSERT_FLOATS(wick_expand(row, WICK_SHAPE(2, 3)), 3, 4, 5, 3, 4, 5);
    wick_release(row);
    wick_release(x);
}

/* Strides that have no such view: a copy, and x stays as it was. */
static void test_reshape_copies(void **state) {
    wick_tensor *const x = count_up(device_of(state), WICK_SHAPE(2, 3));
    wick_tensor *const t = wick_transpose(x, 0, 1);
    wick_tensor *const y = wick_flatten(t, 0, 1);
    assert_ptr_not_equal(y->view.buf, x->view.buf);
    wick_tensor *const dense = wick_contiguous(t);
    assert_ptr_not_equal(dense->view.buf, x->view.buf);
    wick_release(t);
    ASSERT_FLOATS(y, 0, 3, 1, 4, 2, 5);
    ASSERT_FLOATS(dense, 0, 3, 1, 4, 2, 5);
    wick_release(x);
}

/* A view keeps the memory when its tensor is gone. */
static void test_view_outlives_tensor(void **state) {
    wick_tensor *const x = count_up(device_of(state), WICK_SHAPE(3, 2));
    wick_tensor *const row = wick_narrow(x, 0, 2, 1);
    wick_release(x);
    ASSERT_FLOATS(row, 4, 5);
}

static void test_view_refusals(void **state) {
    wick_device *const device = device_of(state);
    wick_tensor *const x = count_up(device, WICK_SHAPE(2, 3));
    wick_tensor *const less_deep = wick_reshape(x, WICK_SHAPE(1, 1, 1, 2, 3));
    wick_tensor *const deep = wick_unsqueeze(less_deep, 0); /* WICK_MAX_RANK dimensions */
    assert_shape(deep, WICK_SHAPE(1, 1, 1, 1, 2, 3));
    assert_refused(device, wick_transpose(x, 0, 2), WICK_ERR_DIM);
    assert_refused(device, wick_transpose(x, INT32_MIN, 0), WICK_ERR_DIM);
    assert_refused(device, wick_permute(x, 2, (const int[]){0, -2}), WICK_ERR_DIM);
    assert_refused(device, wick_permute(x, 7, (const int[]){0}), WICK_ERR_DIM);
    assert_refused(device, wick_reshape(x, WICK_SHAPE(4, -1)), WICK_ERR_SHAPE);
    assert_refused(device, wick_reshape(x, WICK_SHAPE(6, 1, 1, 1, 1, 1, 1)), WICK_ERR_SHAPE);
    assert_refused(device, wick_reshape(x, WICK_SHAPE(INT64_MAX, 6)), WICK_ERR_SHAPE);
    assert_refused(device, wick_flatten(x, 1, 0), WICK_ERR_DIM);
    assert_refused(device, wick_squeeze(x, 2), WICK_ERR_DIM);
    assert_refused(device, wick_unsqueeze(x, 3), WICK_ERR_DIM);
    assert_refused(device, wick_unsqueeze(deep, 0), WICK_ERR_SHAPE);
    assert_refused(device, wick_narrow(x, 1, 2, 2), WICK_ERR_INDEX);
    assert_refused(device, wick_narrow(x, 1, INT64_MAX, INT64_MAX), WICK_ERR_INDEX);
    assert_refused(device, wick_narrow(x, 1, 0, -1), WICK_ERR_VALUE);
    assert_refused(device, wick_slice(x, 1, 0, 3, 0), WICK_ERR_VALUE);
    assert_refused(device, wick_slice(x, 1, 2, 1, 1), WICK_ERR_INDEX);
    assert_refused(device, wick_expand(x, WICK_SHAPE(3)), WICK_ERR_SHAPE);
    assert_refused(device, wick_expand(x, WICK_SHAPE(-1, 3)), WICK_ERR_SHAPE);
    assert_refused(device, wick_expand(x, WICK_SHAPE(INT64_MAX, 2, 3)), WICK_ERR_SHAPE);
    wick_release(deep);
    wick_release(less_deep);
    wick_release(x);
}

/* --- Block types and compute layouts --- */

static void test_block_views(void **state) {
    wick_device *const device = device_of(state);
    wick_tensor *const w = q8_weight(device);
    wick_tensor *const x = wick_full(device, WICK_F32, WICK_SHAPE(1, 2 * BLOCK), 1);
    wick_tensor *const rows = wick_narrow(w, 0, 1, 2);
    ASSERT_FLOATS(wick_linear(x, rows, NULL), 128, 192);
    wick_tensor *const skipped = wick_slice(w, 0, 0, 3, 2);
    wick_tensor *const floats = wick_cast(skipped, WICK_F32);
    ASSERT_FLOATS(wick_linear(x, floats, NULL), 64, 192);
    assert_refused(device, wick_linear(x, skipped, NULL), WICK_ERR_UNSUPPORTED);
    assert_refused(device, wick_contiguous(skipped), WICK_ERR_UNSUPPORTED);
    assert_refused(device, wick_transpose(w, 0, 1), WICK_ERR_UNSUPPORTED);
    assert_refused(device, wick_flatten(w, 0, 1), WICK_ERR_UNSUPPORTED);
    assert_refused(device, wick_narrow(w, 1, 0, BLOCK), WICK_ERR_UNSUPPORTED);
    assert_refused(device, wick_narrow(w, 1, 1, 5), WICK_ERR_UNSUPPORTED);
    assert_refused(device, wick_unsqueeze(w, -1), WICK_ERR_UNSUPPORTED);
    assert_refused(device, wick_add(w, w), WICK_ERR_DTYPE);
    assert_refused(device, wick_fill(w, 0), WICK_ERR_DTYPE);
    assert_refused(device, wick_cast(x, WICK_Q8_0), WICK_ERR_DTYPE);
    assert_refused(device, wick_zeros(device, WICK_Q8_0, WICK_SHAPE(32)), WICK_ERR_DTYPE);
    assert_refused(device, wick_cat((wick_tensor *[]){w, w}, 2, 0), WICK_ERR_DTYPE);
    wick_release(floats);
    wick_release(skipped);
    wick_release(rows);
    wick_release(x);
    wick_release(w);
}

/* A weight in a compute layout serves linear and embedding and nothing else. */
static void test_compute_layout(void **state) {
    wick_device *const device = device_of(state);
    wick_tensor *const w = q8_weight(device);
    w->view.layout = WK_LAYOUT_PANEL_Q8_0;
    assert_refused(device, wick_narrow(w, 0, 0, 1), WICK_ERR_UNSUPPORTED);
    assert_refused(device, wick_reshape(w, WICK_SHAPE(1, ROWS, 2 * BLOCK)), WICK_ERR_UNSUPPORTED);
    assert_refused(device, wick_cast(w, WICK_F32), WICK_ERR_UNSUPPORTED);
    assert_refused(device, wick_contiguous(w), WICK_ERR_UNSUPPORTED);
    w->view.layout = WK_LAYOUT_RAW;
    wick_release(w);
}

#define REFUSED(...) assert_refused(device, __VA_ARGS__, WICK_ERR_UNSUPPORTED)

/* p, p_ids and p_v are in a compute layout. */
static void test_compute_layout_of_operands(void **state) {
    wick_device *const device = device_of(state);
    const wick_scope scope = wick_scope_begin(device);
    wick_tensor *const x = wick_ones(device, WICK_F32, WICK_SHAPE(4, 4));
    wick_tensor *const u8 = wick_ones(device, WICK_U8, WICK_SHAPE(4, 4));
    wick_tensor *const v = wick_ones(device, WICK_F32, WICK_SHAPE(4));
    wick_tensor *const p = wick_ones(device, WICK_F32, WICK_SHAPE(4, 4));
    wick_tensor *const p_ids = wick_zeros(device, WICK_U32, WICK_SHAPE(4, 4));
    wick_tensor *const p_v = wick_ones(device, WICK_F32, WICK_SHAPE(4));
    p->view.layout = p_ids->view.layout = p_v->view.layout = WK_LAYOUT_PANEL_F32;
    const int first = 0;
    wick_tensor *indices;
    REFUSED(wick_neg(p));
    REFUSED(wick_silu(p));
    REFUSED(wick_add(p, x));
    REFUSED(wick_add(x, p));
    REFUSED(wick_lt(p, x));
    REFUSED(wick_lt(x, p));
    REFUSED(wick_where(u8, p, x));
    REFUSED(wick_where(u8, x, p));
    REFUSED(wick_tril(p, 0));
    REFUSED(wick_swiglu(p, x));
    REFUSED(wick_swiglu(x, p));
    REFUSED(wick_fill(p, 1));
    REFUSED(wick_copy(p, x));
    REFUSED(wick_copy(x, p));
    REFUSED(wick_cat((wick_tensor *[]){x, p}, 2, 0));
    REFUSED(wick_stack((wick_tensor *[]){x, p}, 2, 0));
    REFUSED(wick_sum(p, 1, &first, false));
    REFUSED(wick_argmax(p, 0, false));
    REFUSED(wick_top_k(p, 1, 1, &indices));
    REFUSED(wick_softmax(p, 1));
    REFUSED(wick_rms_norm(p, v, 1));
    REFUSED(wick_rms_norm(x, p_v, 1));
    REFUSED(wick_layer_norm(p, v, v, 1));
    REFUSED(wick_layer_norm(x, v, p_v, 1));
    REFUSED(wick_matmul(p, x));
    REFUSED(wick_matmul(x, p));
    REFUSED(wick_linear(p, x, NULL));
    REFUSED(wick_linear(x, x, p_v));
    REFUSED(wick_embedding(x, p_ids));
    wick_scope_end(scope);
}

static wick_tensor *of_rank_4(wick_device *device, bool is_packed) {
    wick_tensor *const made = wick_ones(device, WICK_F32, WICK_SHAPE(1, 1, 4, 4));
    if (is_packed) made->view.layout = WK_LAYOUT_PANEL_F32;
    return made;
}

static void test_compute_layout_of_heads(void **state) {
    wick_device *const device = device_of(state);
    const wick_scope scope = wick_scope_begin(device);
    wick_tensor *const x = of_rank_4(device, false), *const p = of_rank_4(device, true);
    wick_tensor *const table = wick_ones(device, WICK_F32, WICK_SHAPE(4, 2));
    wick_tensor *const p_table = wick_ones(device, WICK_F32, WICK_SHAPE(4, 2));
    wick_tensor *const p_at = wick_zeros(device, WICK_U32, WICK_SHAPE(4));
    p_table->view.layout = p_at->view.layout = WK_LAYOUT_PANEL_F32;
    const wick_attention_desc plain = {.scale = 1}, biased = {.scale = 1, .bias = p};
    REFUSED(wick_attention(p, x, x, &plain));
    REFUSED(wick_attention(x, p, x, &plain));
    REFUSED(wick_attention(x, x, p, &plain));
    REFUSED(wick_attention(x, x, x, &biased));
    REFUSED(wick_kv_append(p, x, 0));
    REFUSED(wick_kv_append(x, p, 0));
    REFUSED(wick_rope(p, NULL, NULL));
    REFUSED(wick_rope(x, p_at, NULL));
    REFUSED(wick_rope_table(p, table, table, false, WICK_ROPE_BHTD));
    REFUSED(wick_rope_table(x, p_table, table, false, WICK_ROPE_BHTD));
    REFUSED(wick_rope_table(x, table, p_table, false, WICK_ROPE_BHTD));
    wick_scope_end(scope);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_views_share_memory),      TEST(test_view_contents),
        TEST(test_reshape_copies),          TEST(test_view_outlives_tensor),
        TEST(test_view_refusals),           TEST(test_block_views),
        TEST(test_compute_layout),          TEST(test_compute_layout_of_operands),
        TEST(test_compute_layout_of_heads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
