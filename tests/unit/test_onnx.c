/* Operators of ONNX (opset 21 and later) that are made of several functions, as docs/tensors.md
 * says; the numbers are what ONNX's own reference evaluator (1.23) computes. */
#include "nn_fixture.h"

#define LIST(...) ((const int64_t[]){__VA_ARGS__})
#define DIMS(...) ((const int[]){__VA_ARGS__})
#define DOUBLES(...) ((const double[]){__VA_ARGS__})
/* A vector of these numbers. */
#define VECTOR(dtype, ...)                                                                         \
    tensor_of(device, dtype,                                                                       \
              wick_shape_of(1, LIST((int64_t)(sizeof DOUBLES(__VA_ARGS__) / sizeof(double)))),     \
              DOUBLES(__VA_ARGS__))
/* y has exactly these elements, within rounding. */
#define GIVES(y, ...)                                                                              \
    gives(y, DOUBLES(__VA_ARGS__), (int64_t)(sizeof DOUBLES(__VA_ARGS__) / sizeof(double)))

static void gives(wick_tensor *y, const double *wanted, int64_t n) {
    assert_non_null(y);
    assert_int_equal(wick_tensor_size(y), n);
    assert_close(y, wanted, 2e-6);
}

/* count_up as a temporary. */
static wick_tensor *upward(wick_device *device, wick_shape shape) {
    int64_t n;
    assert_true(wk_shape_count(&shape, &n));
    return wick_reshape(wick_arange(device, WICK_F32, 0, (double)n, 1), shape);
}

static wick_tensor *number(const wick_tensor *like, double value) {
    return wick_full(wick_tensor_device(like), wick_tensor_dtype(like), WICK_SCALAR, value);
}

static wick_tensor *spread_numbers(wick_device *device) {
    return VECTOR(WICK_F32, -2, -1, -0.4, 0, 0.3, 1.5);
}

static void elements(void **state) {
    wick_device *const device = device_of(state);
    const wick_scope scope = wick_scope_begin(device);
    wick_tensor *const s = spread_numbers(device), *const zero = number(s, 0);
    /* BitShift, Clip */
    GIVES(wick_bitwise_right_shift(VECTOR(WICK_U8, 1, 200, 7), VECTOR(WICK_U8, 1, 3, 0)), 0, 25, 7);
    GIVES(wick_clamp(s, 1, -1), -1, -1, -1, -1, -1, -1);
    GIVES(wick_celu(s, 2), -1.264241, -0.7869387, -0.3625385, 0, 0.3, 1.5);
    /* HardSigmoid, Shrink, Swish, ThresholdedRelu */
    GIVES(wick_clamp(wick_affine(s, 0.5, 0.6), 0, 1), 0, 0.1, 0.4, 0.6, 0.75, 1);
    wick_tensor *const low = wick_where(wick_lt(s, number(s, -0.5)), wick_affine(s, 1, 0.25), zero);
    GIVES(wick_where(wick_gt(s, number(s, 0.5)), wick_affine(s, 1, -0.25), low), -1.75, -0.75, 0, 0,
          0, 1.25);
    GIVES(wick_mul(s, wick_sigmoid(wick_affine(s, 1.5, 0))), -0.09485175, -0.1824255, -0.1417375, 0,
          0.1831918, 1.356976);
    GIVES(wick_where(wick_gt(s, number(s, 0.5)), s, zero), 0, 0, 0, 0, 0, 1.5);
    /* PRelu */
    wick_tensor *const x = wick_affine(upward(device, WICK_SHAPE(3, 4)), 1, -5);
    wick_tensor *const slope = VECTOR(WICK_F32, 0.1, 0.2, 0.3, 0.4);
    GIVES(wick_where(wick_gt(x, zero), x, wick_mul(x, slope)), -0.5, -0.8, -0.9, -0.8, -0.1, 0, 1,
          2, 3, 4, 5, 6);
    /* Mod: with fmod and without */
    GIVES(wick_fmod(VECTOR(WICK_F32, -5.5, 5.5, -3), VECTOR(WICK_F32, 3, -3, 2)), -2.5, 2.5, -1);
    GIVES(wick_remainder(VECTOR(WICK_I64, -5, 5, -3), VECTOR(WICK_I64, 3, -3, 2)), 1, -1, 1);
    /* IsInf of positive infinity alone */
    wick_tensor *const ends = VECTOR(WICK_F32, (double)INFINITY, -(double)INFINITY, 1);
    GIVES(wick_eq(ends, number(ends, (double)INFINITY)), 1, 0, 0);
    wick_scope_end(scope);
}

static void quantization(void **state) {
    wick_device *const device = device_of(state);
    const wick_scope scope = wick_scope_begin(device);
    /* QuantizeLinear: scale 0.5, zero point 2; a cast saturates. */
    wick_tensor *const x = VECTOR(WICK_F32, -3, -1, 0.26, 0.25, 1, 300);
    GIVES(wick_cast(wick_affine(wick_round(wick_affine(x, 2, 0)), 1, 2), WICK_U8), 0, 0, 3, 2, 4,
          255);
    /* DequantizeLinear along dim 0 */
    wick_tensor *const q = wick_reshape(VECTOR(WICK_U8, 0, 3, 128, 255), WICK_SHAPE(2, 2));
    wick_tensor *const zero_point = wick_unsqueeze(VECTOR(WICK_I32, 1, 128), 1);
    wick_tensor *const scale = wick_unsqueeze(VECTOR(WICK_F32, 2, 0.5), 1);
    GIVES(wick_mul(wick_sub(wick_cast(q, WICK_I32), zero_point), scale), -2, 4, 0, 63.5);
    /* MatMulInteger: exact in f64, or in f32 up to 2^24 */
    wick_tensor *const a = wick_reshape(VECTOR(WICK_F32, 11, 7, 3, 10), WICK_SHAPE(2, 2));
    wick_tensor *const b = wick_reshape(VECTOR(WICK_F32, 1, 4, 2, 5), WICK_SHAPE(2, 2));
    GIVES(wick_cast(wick_matmul(wick_affine(a, 1, -12), b), WICK_I32), -11, -29, -13, -46);
    wick_scope_end(scope);
}

static void places(void **state) {
    wick_device *const device = device_of(state);
    const wick_scope scope = wick_scope_begin(device);
    wick_tensor *const x = upward(device, WICK_SHAPE(3, 4));
    wick_tensor *const cube = wick_reshape(x, WICK_SHAPE(3, 2, 2));
    /* Gather with negative indices */
    wick_tensor *const at = VECTOR(WICK_I64, -1, 0);
    wick_tensor *const from_start =
        wick_where(wick_lt(at, number(at, 0)), wick_add(at, number(at, 4)), at);
    GIVES(wick_index_select(x, 1, from_start), 3, 0, 7, 4, 11, 8);
    /* GatherND, with a batch dim as one more column; i32 indices */
    wick_tensor *const two = wick_reshape(VECTOR(WICK_I32, 0, 1, 2, 0), WICK_SHAPE(2, 2));
    GIVES(wick_gather_nd(cube, two), 2, 3, 8, 9);
    wick_tensor *const columns[] = {VECTOR(WICK_I32, 0, 1, 2), VECTOR(WICK_I32, 1, 0, 1)};
    GIVES(wick_gather_nd(cube, wick_stack(columns, 2, 1)), 2, 3, 4, 5, 10, 11);
    /* ScatterND, ScatterElements */
    wick_tensor *const rows = wick_reshape(VECTOR(WICK_U8, 2, 0), WICK_SHAPE(2, 1));
    wick_tensor *const tens = wick_affine(wick_narrow(x, 0, 0, 2), 10, 0);
    GIVES(wick_scatter_nd(x, rows, tens, WICK_SCATTER_ADD), 40, 51, 62, 73, 4, 5, 6, 7, 8, 19, 30,
          41);
    wick_tensor *const chosen = wick_reshape(VECTOR(WICK_I32, 1, 1, 0, 3), WICK_SHAPE(2, 2));
    wick_tensor *const factors = wick_reshape(VECTOR(WICK_F32, 0.5, 2, 3, -1), WICK_SHAPE(2, 2));
    GIVES(wick_scatter(x, 1, chosen, factors, WICK_SCATTER_MUL), 0, 1, 2, 3, 12, 5, 6, -7, 8, 9, 10,
          11);
    /* OneHot with two values along the first dim; -1 is the last class */
    wick_tensor *const hot = wick_one_hot(VECTOR(WICK_U8, 0, 2, 2), 3, WICK_F32);
    GIVES(wick_transpose(wick_affine(hot, 3, 2), 0, 1), 5, 2, 2, 2, 2, 2, 2, 5, 5);
    /* Compress, Slice backwards, ReverseSequence of lengths 1 2 3 2 */
    wick_tensor *const mask = VECTOR(WICK_BOOL, 1, 0, 1);
    wick_tensor *const kept = wick_flatten(wick_nonzero(mask, -1), 0, 1);
    GIVES(wick_index_select(x, 0, kept), 0, 1, 2, 3, 8, 9, 10, 11);
    wick_tensor *const line = wick_flip(upward(device, WICK_SHAPE(7)), 0, NULL);
    GIVES(wick_slice(line, 0, 1, 6, 2), 5, 3, 1);
    wick_tensor *const step = wick_unsqueeze(wick_arange(device, WICK_I32, 0, 3, 1), 1);
    wick_tensor *const length = VECTOR(WICK_I32, 1, 2, 3, 2);
    wick_tensor *const turned = wick_affine(wick_sub(length, step), 1, -1);
    wick_tensor *const order = wick_where(wick_lt(step, length), turned, step);
    GIVES(wick_gather(x, 0, order), 0, 5, 10, 7, 4, 1, 6, 3, 8, 9, 2, 11);
    /* A place that is out of range in one dim is refused, though its number would be another's. */
    wick_tensor *const outside = wick_reshape(VECTOR(WICK_I32, 0, 2), WICK_SHAPE(1, 2));
    float unread[2];
    assert_int_equal(wick_read(wick_gather_nd(cube, outside), unread, sizeof unread),
                     WICK_ERR_INDEX);
    wick_device_error(device, NULL);
    wick_scope_end(scope);
}

static void order_and_sums(void **state) {
    wick_device *const device = device_of(state);
    const wick_scope scope = wick_scope_begin(device);
    wick_tensor *const x = VECTOR(WICK_F32, 1, 3, 2, 3);
    /* ArgMax of the last index */
    wick_tensor *const back = wick_argmax(wick_flip(x, 0, NULL), 0, false);
    GIVES(wick_sub(number(back, 3), back), 3);
    /* CumSum, exclusive and reversed */
    wick_tensor *const up = VECTOR(WICK_F32, 1, 2, 3, 4);
    wick_tensor *const sums = wick_flip(wick_cumsum(wick_flip(up, 0, NULL), 0), 0, NULL);
    GIVES(wick_sub(sums, up), 9, 7, 4, 0);
    /* TopK of the smallest, Hardmax */
    wick_tensor *indices;
    wick_tensor *const small =
        wick_top_k(wick_neg(VECTOR(WICK_F32, 3, 1, 2, 1, 5)), 2, 0, &indices);
    GIVES(wick_neg(small), 1, 1);
    GIVES(indices, 1, 3);
    wick_tensor *const rows = wick_reshape(VECTOR(WICK_F32, 1, 3, 3, 2, 0, 1), WICK_SHAPE(2, 3));
    GIVES(wick_one_hot(wick_argmax(rows, 1, false), 3, WICK_F32), 0, 1, 0, 1, 0, 0);
    /* ReduceLogSum, ReduceSumSquare, LpNormalization of p = 1 */
    wick_tensor *const grid = upward(device, WICK_SHAPE(3, 4));
    wick_tensor *const more = wick_affine(grid, 1, 1);
    GIVES(wick_log(wick_sum(more, 1, DIMS(1), false)), 2.302585, 3.258096, 3.73767);
    GIVES(wick_sum(wick_sqr(more), 1, DIMS(1), false), 30, 174, 446);
    GIVES(wick_div(grid, wick_norm(grid, 1, 1, DIMS(1), true)), 0, 0.1666667, 0.3333333, 0.5,
          0.1818182, 0.2272727, 0.2727273, 0.3181818, 0.2105263, 0.2368421, 0.2631579, 0.2894737);
    wick_scope_end(scope);
}

static void products(void **state) {
    wick_device *const device = device_of(state);
    const wick_scope scope = wick_scope_begin(device);
    wick_tensor *const x = upward(device, WICK_SHAPE(3, 4));
    wick_tensor *const cube = wick_reshape(x, WICK_SHAPE(3, 2, 2));
    wick_tensor *const two = wick_narrow(x, 0, 0, 2);
    /* Gemm: alpha a b^T + beta c */
    wick_tensor *const product = wick_affine(wick_linear(two, x, NULL), 0.5, 0);
    GIVES(wick_add(product, wick_affine(VECTOR(WICK_F32, 1, 2, 3), 2, 0)), 9, 23, 37, 21, 67, 113);
    /* Einsum */
    wick_tensor *const pair[] = {wick_narrow(x, 1, 0, 2), two}, *const cubes[] = {cube, cube};
    GIVES(wick_einsum("ij,jk->ki", pair, 2), 4, 20, 36, 5, 29, 53, 6, 38, 70, 7, 47, 87);
    GIVES(wick_einsum("...ij,...kj->...ik", cubes, 2), 1, 3, 3, 13, 41, 59, 59, 85, 145, 179, 179,
          221);
    wick_tensor *const square[] = {wick_narrow(x, 1, 0, 3)};
    GIVES(wick_einsum("ii", square, 1), 15);
    wick_scope_end(scope);
}

static void images(void **state) {
    wick_device *const device = device_of(state);
    const wick_scope scope = wick_scope_begin(device);
    wick_tensor *const image = upward(device, WICK_SHAPE(1, 1, 4, 4));
    const int64_t *const one = LIST(0, 0, 1, 1), *const none = LIST(0, 0, 0, 0);
    /* AveragePool padded on one side: with the padding counted, and without */
    const wick_pooling_desc pool = {.kernel = {3, 3}, .stride = {2, 2}};
    wick_tensor *const sums =
        wick_avg_pool2d(wick_pad(image, one, none, WICK_PAD_CONSTANT, 0), &pool);
    GIVES(sums, 1.111111, 2.666667, 5.666667, 10);
    wick_tensor *const ones = wick_pad(wick_ones_like(image), one, none, WICK_PAD_CONSTANT, 0);
    GIVES(wick_div(sums, wick_avg_pool2d(ones, &pool)), 2.5, 4, 8.5, 10);
    /* LpPool of p = 3 */
    const wick_pooling_desc quarter = {.kernel = {2, 2}};
    wick_tensor *const mean = wick_avg_pool2d(wick_powf(wick_abs(image), 3), &quarter);
    GIVES(wick_powf(wick_affine(mean, 4, 0), 1 / 3.0), 5.748897, 8.406118, 17.28694, 20.36818);
    /* DepthToSpace: DCR, CRD; SpaceToDepth */
    wick_tensor *const deep = upward(device, WICK_SHAPE(1, 8, 1, 2));
    wick_tensor *const blocks = wick_transpose(wick_reshape(deep, WICK_SHAPE(1, 4, 2, 1, 2)), 1, 2);
    GIVES(wick_pixel_shuffle(wick_reshape(blocks, WICK_SHAPE(1, 8, 1, 2)), 2), 0, 4, 1, 5, 8, 12, 9,
          13, 2, 6, 3, 7, 10, 14, 11, 15);
    GIVES(wick_pixel_shuffle(deep, 2), 0, 2, 1, 3, 4, 6, 5, 7, 8, 10, 9, 11, 12, 14, 13, 15);
    wick_tensor *const wide = wick_pixel_unshuffle(upward(device, WICK_SHAPE(1, 2, 2, 4)), 2);
    wick_tensor *const apart = wick_transpose(wick_reshape(wide, WICK_SHAPE(1, 2, 4, 1, 2)), 1, 2);
    GIVES(wick_contiguous(apart), 0, 2, 8, 10, 1, 3, 9, 11, 4, 6, 12, 14, 5, 7, 13, 15);
    /* Resize */
    wick_tensor *const line = wick_reshape(VECTOR(WICK_F32, 1, 2, 4, 8), WICK_SHAPE(1, 1, 4));
    GIVES(wick_resize(line, 1, LIST(7), WICK_RESIZE_LINEAR, false), 1, 1.357143, 1.928571, 3,
          4.285714, 6.571429, 8);
    GIVES(wick_resize(line, 1, LIST(7), WICK_RESIZE_LINEAR, true), 1, 1.5, 2, 3, 4, 6, 8);
    GIVES(wick_resize(line, 1, LIST(7), WICK_RESIZE_CUBIC, false), 0.9007837, 1.217746, 1.8504,
          2.71875, 4.321246, 6.760021, 8.396864);
    GIVES(wick_resize(line, 1, LIST(7), WICK_RESIZE_NEAREST, false), 1, 1, 2, 2, 4, 4, 8);
    GIVES(wick_index_select(line, 2, VECTOR(WICK_U8, 0, 0, 1, 1, 2, 3, 3)), 1, 1, 2, 2, 4, 8, 8);
    /* Pad */
    wick_tensor *const few = VECTOR(WICK_F32, 1, 2, 3);
    GIVES(wick_pad(few, LIST(2), LIST(1), WICK_PAD_CIRCULAR, 0), 2, 3, 1, 2, 3, 1);
    GIVES(wick_pad(few, LIST(2), LIST(1), WICK_PAD_REFLECT, 0), 3, 2, 1, 2, 3, 2);
    GIVES(wick_pad(few, LIST(2), LIST(1), WICK_PAD_REPLICATE, 0), 1, 1, 1, 2, 3, 3);
    wick_scope_end(scope);
}

static void norms(void **state) {
    wick_device *const device = device_of(state);
    const wick_scope scope = wick_scope_begin(device);
    wick_tensor *const cube = upward(device, WICK_SHAPE(3, 2, 2));
    wick_tensor *const one = wick_ones(device, WICK_F32, WICK_SHAPE(2, 2));
    wick_tensor *const two = wick_affine(one, 2, 0);
    /* LayerNormalization and RMSNormalization with axis 1 */
    GIVES(wick_layer_norm_over(cube, 2, two, one, 1e-5), -1.683271, 0.1055763, 1.894424, 3.683271,
          -1.683271, 0.1055763, 1.894424, 3.683271, -1.683271, 0.1055763, 1.894424, 3.683271);
    GIVES(wick_rms_norm_over(cube, 2, two, 1e-5), 0, 1.069043, 2.138087, 3.20713, 1.425393,
          1.781741, 2.13809, 2.494438, 1.672667, 1.88175, 2.090833, 2.299917);
    assert_refused(device, wick_layer_norm_over(cube, 0, NULL, NULL, 0), WICK_ERR_DIM);
    assert_refused(device, wick_layer_norm_over(cube, 4, NULL, NULL, 0), WICK_ERR_DIM);
    assert_refused(device, wick_rms_norm_over(cube, 1, two, 0), WICK_ERR_SHAPE);
    wick_tensor *const x = upward(device, WICK_SHAPE(1, 4, 2));
    GIVES(wick_group_norm(x, 2, VECTOR(WICK_F32, 1, 2, 3, 4), VECTOR(WICK_F32, 0, 0, 1, 1), 1e-5),
          -1.341635, -0.4472118, 0.8944237, 2.683271, -3.024906, -0.3416355, 2.788847, 6.366542);
    /* MeanVarianceNormalization */
    wick_tensor *const batch = upward(device, WICK_SHAPE(2, 1, 2, 2));
    GIVES(wick_batch_norm_train(batch, NULL, NULL, NULL, NULL, 0, 0), -1.527525, -1.091089,
          -0.6546537, -0.2182179, 0.2182179, 0.6546537, 1.091089, 1.527525);
    wick_scope_end(scope);
}

/* (0, 1, .. - less) / divisor. */
static wick_tensor *weights(wick_device *device, wick_shape shape, double less, double divisor) {
    return wick_affine(upward(device, shape), 1 / divisor, -less / divisor);
}

/* Gates of ONNX, which have other places: LSTM i o f c, GRU z r h. */
static wick_tensor *reordered(wick_tensor *w, const int64_t *order, int64_t n) {
    wick_tensor *const places =
        wick_tensor_from_data(wick_tensor_device(w), WICK_I64, WICK_SHAPE(n), order, (size_t)n * 8);
    return wick_index_select(w, 0, places);
}

static wick_rnn_weights of_onnx(wick_tensor *w, wick_tensor *r, wick_tensor *b,
                                const int64_t *order, int64_t gates) {
    return (wick_rnn_weights){.w_ih = reordered(w, order, gates),
                              .w_hh = reordered(r, order, gates),
                              .b_ih = reordered(wick_narrow(b, 0, 0, gates), order, gates),
                              .b_hh = reordered(wick_narrow(b, 0, gates, gates), order, gates)};
}

static void recurrent(void **state) {
    wick_device *const device = device_of(state);
    const wick_scope scope = wick_scope_begin(device);
    wick_tensor *const x = wick_transpose(weights(device, WICK_SHAPE(3, 1, 2), 2, 2), 0, 1);
    /* LSTM from the end: time goes backwards before and after it. */
    wick_rnn_weights w =
        of_onnx(weights(device, WICK_SHAPE(4, 2), 4, 8), weights(device, WICK_SHAPE(4, 1), 2, 4),
                weights(device, WICK_SHAPE(8), 3, 10), LIST(0, 2, 3, 1), 4);
    wick_tensor *h, *c;
    wick_tensor *const y = wick_lstm(wick_flip(x, 1, DIMS(1)), &w, NULL, NULL, &h, &c);
    GIVES(wick_flip(y, 1, DIMS(1)), 0.09561995, 0.1478565, 0.07164772);
    GIVES(h, 0.09561995);
    GIVES(c, 0.1698253);
    /* GRU with linear_before_reset */
    w = of_onnx(weights(device, WICK_SHAPE(3, 2), 3, 6), weights(device, WICK_SHAPE(3, 1), 1, 3),
                weights(device, WICK_SHAPE(6), 2, 10), LIST(1, 0, 2), 3);
    GIVES(wick_gru(x, &w, NULL, NULL), -0.05864894, 0.1449543, 0.5535648);
    wick_scope_end(scope);
}

static void losses(void **state) {
    wick_device *const device = device_of(state);
    const wick_scope scope = wick_scope_begin(device);
    wick_tensor *const p = wick_reshape(VECTOR(WICK_F32, 0.2, 0.8, 0.5, 0.5), WICK_SHAPE(2, 2));
    const wick_cross_entropy_desc desc = {.weight = VECTOR(WICK_F32, 1, 3)};
    GIVES(wick_nll(wick_log(p), VECTOR(WICK_I32, 1, 0), &desc), 0.3406444);
    wick_tensor *const x = upward(device, WICK_SHAPE(2, 4));
    GIVES(wick_cross_entropy(x, VECTOR(WICK_I32, 1, 0), NULL), 2.94019);
    wick_scope_end(scope);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(elements), TEST(quantization), TEST(places),    TEST(order_and_sums), TEST(products),
        TEST(images),   TEST(norms),        TEST(recurrent), TEST(losses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
