/* Products by labels and of statistics, blends, and writes by index: contents and refusals. */
#include "nn_fixture.h"

#include <wick/grad.h>

#define LIST(...) ((const int64_t[]){__VA_ARGS__})
#define DOUBLES(...) ((const double[]){__VA_ARGS__})
#define VECTOR(dtype, ...)                                                                         \
    tensor_of(device, dtype,                                                                       \
              wick_shape_of(1, LIST((int64_t)(sizeof DOUBLES(__VA_ARGS__) / sizeof(double)))),     \
              DOUBLES(__VA_ARGS__))
#define GIVES(y, ...) assert_close(y, DOUBLES(__VA_ARGS__), 2e-6)

static wick_tensor *same(wick_tensor *y, wick_tensor *expected) {
    return wick_all_close(y, expected, 1e-5, 1e-6, false);
}

/* Each text against the functions that it stands for. */
static void einsum(void **state) {
    wick_device *const device = device_of(state);
    const wick_scope scope = wick_scope_begin(device);
    wick_tensor *const a = random_tensor(device, WICK_F32, WICK_SHAPE(2, 3, 4), 1);
    wick_tensor *const b = random_tensor(device, WICK_F32, WICK_SHAPE(2, 4, 5), 2);
    wick_tensor *const m = random_tensor(device, WICK_F32, WICK_SHAPE(4, 4), 3);
    wick_tensor *const v = random_tensor(device, WICK_F32, WICK_SHAPE(4), 4);
    wick_tensor *const ab[] = {a, b}, *const am[] = {a, m}, *const mm[] = {m, m};
    wick_tensor *const amv[] = {a, m, v}, *const vv[] = {v, v}, *const va[] = {v, a};
    GIVES(same(wick_einsum("bij,bjk->bik", ab, 2), wick_matmul(a, b)), 1);
    GIVES(same(wick_einsum("bij,jk", am, 2), wick_matmul(a, m)), 1);
    GIVES(same(wick_einsum("...j,jk->...k", am, 2), wick_matmul(a, m)), 1);
    GIVES(same(wick_einsum("bij,jk,k->bi", amv, 3), wick_matmul(a, wick_mv(m, v))), 1);
    GIVES(same(wick_einsum("i,j->ij", vv, 2), wick_outer(v, v)), 1);
    GIVES(same(wick_einsum("i,i", vv, 2), wick_dot(v, v)), 1);
    GIVES(same(wick_einsum("ij,ij->ij", mm, 2), wick_mul(m, m)), 1);
    GIVES(same(wick_einsum("j,...j->...j", va, 2), wick_mul(v, a)), 1);
    GIVES(same(wick_einsum("ii->i", mm, 1), wick_diagonal(m, 0, 0, 1)), 1);
    GIVES(same(wick_einsum("ii", mm, 1), wick_trace(m, 0)), 1);
    GIVES(same(wick_einsum("ba", mm, 1), wick_transpose(m, 0, 1)), 1);
    GIVES(same(wick_einsum(" bij -> ib ", ab, 1),
               wick_transpose(wick_sum(a, 1, (int[]){2}, false), 0, 1)),
          1);
    GIVES(same(wick_einsum("abc->", ab, 1), wick_sum(a, 0, NULL, false)), 1);
    /* Sums of f16 are rounded once. */
    wick_tensor *const half[] = {wick_cast(a, WICK_F16), wick_cast(b, WICK_F16)};
    wick_tensor *const y = wick_einsum("bij,bjk->bik", half, 2);
    assert_int_equal(wick_tensor_dtype(y), WICK_F16);
    GIVES(wick_all_close(wick_cast(y, WICK_F32), wick_matmul(a, b), 1e-3, 1e-3, false), 1);
    wick_scope_end(scope);
}

static void einsum_refusals(void **state) {
    wick_device *const device = device_of(state);
    const wick_scope scope = wick_scope_begin(device);
    wick_tensor *const x = wick_ones(device, WICK_F32, WICK_SHAPE(2, 3));
    wick_tensor *const xx[9] = {x, x, x, x, x, x, x, x, x};
    wick_tensor *const mixed[] = {x, wick_cast(x, WICK_F16)};
    static const char *const texts[] = {"ij",      "ij,ij,ij",  "i,ij",      "ijk,ij",
                                        "ij,i!",   "ij,ij->i>", "ij,ij->ii", "ij,ij->k",
                                        "ij,ij-i", "......,ij"};
    for (size_t i = 0; i < WK_COUNT(texts); i++)
        assert_refused(device, wick_einsum(texts[i], xx, 2), WICK_ERR_VALUE);
    assert_refused(device, wick_einsum(NULL, xx, 1), WICK_ERR_VALUE);
    assert_refused(device, wick_einsum("ij,ij,ij,ij,ij,ij,ij,ij,ij", xx, 9), WICK_ERR_VALUE);
    assert_refused(device, wick_einsum("ij,ji", xx, 2), WICK_ERR_SHAPE);
    assert_refused(device, wick_einsum("ij,kl,mn,op->ijklmnop", xx, 4), WICK_ERR_VALUE);
    assert_refused(device, wick_einsum("ij,kl,mn,op", xx, 4), WICK_ERR_SHAPE);
    assert_refused(device, wick_einsum("ij,ij", mixed, 2), WICK_ERR_DTYPE);
    assert_null(wick_einsum("ij", NULL, 1));
    wick_scope_end(scope);
}

static void statistics(void **state) {
    wick_device *const device = device_of(state);
    const wick_scope scope = wick_scope_begin(device);
    wick_tensor *const x = wick_reshape(VECTOR(WICK_F32, 0, 1, 2, 2, 1, 0), WICK_SHAPE(2, 3));
    GIVES(wick_cov(x, 1), 1, -1, -1, 1);
    GIVES(wick_cov(VECTOR(WICK_F32, 1, 2, 3, 6), 0), 3.5);
    GIVES(wick_corrcoef(x), 1, -1, -1, 1);
    wick_tensor *const row = wick_reshape(VECTOR(WICK_F32, 1, 2, 3, 6), WICK_SHAPE(1, 4));
    assert_int_equal(wick_tensor_shape(wick_cov(row, 0)).rank, 0);
    assert_int_equal(wick_tensor_shape(wick_corrcoef(row)).rank, 0);
    wick_tensor *const a = wick_reshape(VECTOR(WICK_I32, 1, 2, 3, 4), WICK_SHAPE(2, 2));
    wick_tensor *const b = wick_reshape(VECTOR(WICK_I32, 0, 5), WICK_SHAPE(1, 2));
    GIVES(wick_kron(a, b), 0, 5, 0, 10, 0, 15, 0, 20);
    GIVES(wick_logspace(device, WICK_F32, 0, 3, 4, 2), 1, 2, 4, 8);
    GIVES(wick_lerp(VECTOR(WICK_F32, 0, 10), VECTOR(WICK_F32, 4, 20), VECTOR(WICK_F32, 0.25)), 1,
          12.5);
    wick_tensor *const odd = VECTOR(WICK_F16, (double)NAN, (double)INFINITY, -(double)INFINITY, 2);
    GIVES(wick_nan_to_num(odd, 7, 8, -9), 7, 8, -9, 2);
    GIVES(wick_nan_to_num(b, 7, 8, 9), 0, 5);
    wick_tensor *const cube = wick_ones(device, WICK_F32, WICK_SHAPE(2, 2, 2));
    assert_refused(device, wick_cov(cube, 1), WICK_ERR_SHAPE);
    assert_refused(device, wick_cov(x, (double)NAN), WICK_ERR_VALUE);
    assert_refused(device, wick_corrcoef(a), WICK_ERR_DTYPE);
    assert_refused(device, wick_kron(cube, x), WICK_ERR_SHAPE);
    assert_refused(device, wick_logspace(device, WICK_F32, 0, 1, 2, -1), WICK_ERR_VALUE);
    assert_refused(device, wick_logspace(device, WICK_I32, 0, 1, 2, 2), WICK_ERR_DTYPE);
    assert_refused(device, wick_lerp(x, x, a), WICK_ERR_DTYPE);
    assert_refused(device, wick_nan_to_num(wick_cast(a, WICK_BOOL), 0, 0, 0), WICK_ERR_DTYPE);
    wick_scope_end(scope);
}

/* --- Writes by index --- */

static void in_place(void **state) {
    wick_device *const device = device_of(state);
    const wick_scope scope = wick_scope_begin(device);
    static const wick_dtype dtypes[] = {WICK_F32, WICK_F16, WICK_I32, WICK_U8, WICK_I64, WICK_F64};
    for (size_t i = 0; i < WK_COUNT(dtypes); i++) {
        wick_tensor *const x = wick_cast(count_up(device, WICK_SHAPE(6)), dtypes[i]);
        wick_tensor *const part = wick_slice(x, 0, 0, 6, 2); /* 0 2 4 of 0 1 2 3 4 5 */
        wick_tensor *const src = VECTOR(dtypes[i], 1, 2, 3), *const at = VECTOR(WICK_I32, 2, 0, 2);
        assert_ptr_equal(wick_scatter_in_place(part, 0, at, src, WICK_SCATTER_ADD), part);
        GIVES(x, 2, 1, 2, 3, 8, 5);
        assert_ptr_equal(wick_index_add_in_place(part, -1, at, src), part);
        GIVES(x, 4, 1, 2, 3, 12, 5);
        assert_ptr_equal(wick_index_copy_in_place(part, 0, at, src), part);
        GIVES(x, 2, 1, 2, 3, 3, 5);
        assert_ptr_equal(wick_scatter_in_place(part, 0, at, src, WICK_SCATTER_MAX), part);
        GIVES(x, 2, 1, 2, 3, 3, 5);
        /* Sources, and indices, in the memory that is written to */
        assert_ptr_equal(wick_index_add_in_place(part, 0, VECTOR(WICK_U8, 1, 2, 0), part), part);
        GIVES(x, 5, 1, 4, 3, 5, 5);
    }
    wick_tensor *const ids = VECTOR(WICK_U32, 1, 2, 0);
    (void)wick_index_copy_in_place(ids, 0, ids, VECTOR(WICK_U32, 7, 8, 9));
    GIVES(ids, 9, 7, 8);
    wick_tensor *const x = wick_ones(device, WICK_F32, WICK_SHAPE(3)), *const at =
                                                                           VECTOR(WICK_I64, 3);
    wick_tensor *const one = wick_ones(device, WICK_F32, WICK_SHAPE(1));
    wick_tensor *const wide = wick_expand(one, WICK_SHAPE(3));
    assert_refused(device, wick_index_add_in_place(wide, 0, at, one), WICK_ERR_ARGUMENT);
    assert_refused(device, wick_index_add_in_place(x, 1, at, one), WICK_ERR_DIM);
    assert_refused(device, wick_index_copy_in_place(x, 0, at, x), WICK_ERR_SHAPE);
    assert_refused(device, wick_scatter_in_place(x, 0, one, one, WICK_SCATTER_SET), WICK_ERR_DTYPE);
    assert_null(wick_index_add_in_place(x, 0, NULL, one));
    float unread[3];
    assert_ptr_equal(wick_index_add_in_place(x, 0, at, one), x);
    assert_int_equal(wick_read(x, unread, sizeof unread), WICK_ERR_INDEX);
    wick_device_error(device, NULL);
    wick_scope_end(scope);
}

static void several_dims(void **state) {
    wick_device *const device = device_of(state);
    const wick_scope scope = wick_scope_begin(device);
    wick_tensor *const x = count_up(device, WICK_SHAPE(2, 2, 2));
    wick_tensor *const at = wick_reshape(VECTOR(WICK_I64, 1, 0, 0, 1), WICK_SHAPE(2, 2));
    GIVES(wick_gather_nd(x, at), 4, 5, 2, 3);
    wick_tensor *const none = wick_zeros(device, WICK_U32, WICK_SHAPE(0, 2));
    assert_shape(wick_gather_nd(x, none), WICK_SHAPE(0, 2));
    GIVES(
        wick_scatter_nd(x, none, wick_zeros(device, WICK_F32, WICK_SHAPE(0, 2)), WICK_SCATTER_SET),
        0, 1, 2, 3, 4, 5, 6, 7);
    assert_refused(device, wick_gather_nd(x, x), WICK_ERR_DTYPE);
    assert_refused(device, wick_gather_nd(wick_narrow(x, 0, 0, 0), at), WICK_ERR_SHAPE);
    assert_refused(device, wick_gather_nd(x, wick_zeros(device, WICK_U8, WICK_SHAPE(1, 4))),
                   WICK_ERR_SHAPE);
    assert_refused(device, wick_gather_nd(x, wick_zeros(device, WICK_U8, WICK_SCALAR)),
                   WICK_ERR_SHAPE);
    assert_refused(device, wick_scatter_nd(x, at, x, WICK_SCATTER_SET), WICK_ERR_SHAPE);
    wick_scope_end(scope);
}

/* Results of more elements than 64 bits count, of views that repeat one. */
static void too_large(void **state) {
    wick_device *const device = device_of(state);
    const wick_scope scope = wick_scope_begin(device);
    const int64_t many = INT64_C(1) << 40;
    wick_tensor *const one = wick_ones(device, WICK_F32, WICK_SHAPE(1, 1));
    wick_tensor *const tall = wick_expand(one, WICK_SHAPE(many, 1));
    wick_tensor *const wide = wick_expand(one, WICK_SHAPE(1, many));
    wick_tensor *const at =
        wick_expand(wick_zeros(device, WICK_U32, WICK_SHAPE(1, 1)), WICK_SHAPE(many, 1));
    assert_refused(device, wick_gather_nd(wide, at), WICK_ERR_SHAPE);
    assert_refused(device, wick_kron(tall, tall), WICK_ERR_SHAPE);
    wick_scope_end(scope);
}

/* --- Gradients where they are easily NaN --- */

/* Of the sum of weights 1, 2, .. times fn(x), x watched. */
static wick_tensor *gradient(wick_tensor *x, wick_tensor *(*fn)(wick_tensor *x)) {
    wick_tape *tape;
    wick_tensor *g = NULL;
    wick_device *const device = wick_tensor_device(x);
    assert_int_equal(wick_tape_begin(device, &tape), WICK_OK);
    assert_int_equal(wick_tape_watch(tape, x), WICK_OK);
    wick_tensor *const y = fn(x);
    wick_tensor *const by = wick_reshape(
        wick_arange(device, WICK_F32, 1, (double)wick_tensor_size(y) + 1, 1), wick_tensor_shape(y));
    assert_int_equal(wick_grad(tape, y, by, &x, 1, &g), WICK_OK);
    wick_tape_end(tape);
    return g;
}

static wick_tensor *product(wick_tensor *x) { return wick_prod(x, 1, (int[]){-1}, false); }
static wick_tensor *running(wick_tensor *x) { return wick_cumprod(x, -1); }
static wick_tensor *constant(wick_tensor *x) { return wick_powf(x, 0); }
static wick_tensor *root_norm(wick_tensor *x) { return wick_norm(x, 0.5, 0, NULL, false); }
static wick_tensor *angle(wick_tensor *x) { return wick_atan2(x, x); }
static wick_tensor *crossed(wick_tensor *x) { return wick_clamp(x, 2, 1); }
static wick_tensor *largest(wick_tensor *x) {
    wick_tensor *const at = wick_zeros(wick_tensor_device(x), WICK_U8, WICK_SHAPE(3));
    wick_tensor *const base = wick_zeros(wick_tensor_device(x), WICK_F32, WICK_SHAPE(2));
    return wick_scatter(base, 0, at, x, WICK_SCATTER_MAX);
}

static void gradients_at_zero(void **state) {
    wick_device *const device = device_of(state);
    const wick_scope scope = wick_scope_begin(device);
    wick_tensor *const x =
        wick_reshape(VECTOR(WICK_F32, 2, 3, 5, 2, 0, 5, 0, 3, 0), WICK_SHAPE(3, 3));
    /* Rows without, with one and with two zeros; their weights are 1, 2 and 3. */
    GIVES(gradient(x, product), 15, 10, 6, 0, 20, 0, 0, 0, 0);
    /* Sums of weights 1 2 3, 4 5 6, 7 8 9 times running products without the element */
    GIVES(gradient(x, running), 1 + 2 * 3 + 3 * 15, 2 * 2 + 2 * 3 * 5, 3 * 6, 4, 2 * 5 + 2 * 6 * 5,
          0, 7 + 8 * 3, 0, 0);
    wick_tensor *const zeros = wick_zeros(device, WICK_F32, WICK_SHAPE(2));
    GIVES(gradient(zeros, constant), 0, 0);
    GIVES(gradient(zeros, root_norm), 0, 0);
    GIVES(gradient(zeros, angle), 0, 0);
    GIVES(gradient(VECTOR(WICK_F32, 0, 1), crossed), 0, 0);
    GIVES(gradient(VECTOR(WICK_F32, 4, 1, 4), largest), 0.5, 0, 0.5);
    wick_scope_end(scope);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(einsum),       TEST(einsum_refusals), TEST(statistics),        TEST(in_place),
        TEST(several_dims), TEST(too_large),       TEST(gradients_at_zero),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
