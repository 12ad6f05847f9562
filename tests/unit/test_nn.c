/* Normalisation, recurrent networks, dropout, losses and experts against loops; bad input. */
#include "nn_fixture.h"

/* --- Normalisation --- */

/* x [n, c, w] in groups of channels, with weight [c] and bias [c]. */
static void normalize_groups(const double *x, int64_t n, int64_t c, int64_t w, int64_t groups,
                             const double *weight, const double *bias, double eps, double *y) {
    const int64_t size = c / groups * w;
    for (int64_t g = 0; g < n * groups; g++) {
        double mean = 0, variance = 0;
        for (int64_t i = 0; i < size; i++) mean += x[g * size + i] / (double)size;
        for (int64_t i = 0; i < size; i++)
            variance += pow(x[g * size + i] - mean, 2) / (double)size;
        for (int64_t i = g * size; i < (g + 1) * size; i++) {
            const int64_t channel = i / w % c;
            y[i] = (x[i] - mean) / sqrt(variance + eps);
            y[i] = y[i] * (weight ? weight[channel] : 1) + (bias ? bias[channel] : 0);
        }
    }
}

static void groups(void **state) {
    wick_device *const device = device_of(state);
    static const wick_dtype dtypes[] = {WICK_F32, WICK_F64, WICK_F16, WICK_BF16};
    for (int64_t i = 0; i < 16; i++) {
        const wick_scope scope = wick_scope_begin(device);
        const wick_dtype dtype = dtypes[i % 4];
        const int64_t c = 12, w = 5, n_groups = (const int64_t[]){1, 3, 4, 12}[i / 4];
        const double tolerance = dtype == WICK_BF16 ? 1.6e-2 : dtype == WICK_F16 ? 2e-3 : 1e-5;
        wick_tensor *const x = random_tensor(device, dtype, WICK_SHAPE(2, c, w), (uint64_t)i);
        wick_tensor *const weight = random_tensor(device, dtype, WICK_SHAPE(c), 50);
        wick_tensor *const bias = i % 2 ? random_tensor(device, dtype, WICK_SHAPE(c), 51) : NULL;
        double *const in = contents(x), *const a = contents(weight),
                      *const b = bias ? contents(bias) : NULL;
        double wanted[120];
        normalize_groups(in, 2, c, w, n_groups, a, b, 1e-5, wanted);
        assert_close(wick_group_norm(x, n_groups, weight, bias, 1e-5F), wanted, tolerance);
        normalize_groups(in, 2, c, w, c, NULL, NULL, 1e-5, wanted);
        assert_close(wick_instance_norm(x, NULL, NULL, 1e-5F), wanted, tolerance);
        free(b);
        free(a);
        free(in);
        wick_scope_end(scope);
    }
}

static void batches(void **state) {
    wick_device *const device = device_of(state);
    const wick_scope scope = wick_scope_begin(device);
    const double data[] = {1, 2, 3, 4, 5, 6, 7, 9}; /* [2, 2, 2] */
    wick_tensor *const x = tensor_of(device, WICK_F32, WICK_SHAPE(2, 2, 2), data);
    const double begin[] = {1, 10};
    wick_tensor *const mean = tensor_of(device, WICK_F32, WICK_SHAPE(2), begin);
    wick_tensor *const variance = tensor_of(device, WICK_F32, WICK_SHAPE(2), begin);
    /* channel 0: 1 2 5 6, channel 1: 3 4 7 9 */
    const double m[] = {3.5, 5.75}, v[] = {4.25, 5.6875};
    double wanted[8];
    for (int i = 0; i < 8; i++) wanted[i] = (data[i] - m[i / 2 % 2]) / sqrt(v[i / 2 % 2] + 0.5);
    assert_close(wick_batch_norm_train(x, mean, variance, NULL, NULL, 0.25, 0.5F), wanted, 1e-6);
    assert_close(wick_batch_norm_train(x, NULL, NULL, NULL, NULL, 0.25, 0.5F), wanted, 1e-6);
    assert_close(mean, (const double[]){0.75 + 3.5 / 4, 7.5 + 5.75 / 4}, 1e-6);
    assert_close(variance, (const double[]){0.75 + 4.25 / 3, 7.5 + 5.6875 / 3}, 1e-6);
    wick_tensor *const one = wick_ones(device, WICK_F32, WICK_SHAPE(2));
    for (int i = 0; i < 8; i++) wanted[i] = (data[i] - 1) / 2 * begin[i / 2 % 2] + 1;
    assert_close(
        wick_batch_norm(x, one, one, tensor_of(device, WICK_F32, WICK_SHAPE(2), begin), one, 3),
        wanted, 1e-6);
    wick_tensor *const single = wick_ones(device, WICK_F32, WICK_SHAPE(1, 2));
    assert_refused(device, wick_batch_norm_train(single, NULL, NULL, NULL, NULL, 0.1, 0),
                   WICK_ERR_VALUE);
    assert_refused(device, wick_batch_norm_train(x, NULL, NULL, NULL, NULL, 1.5, 0),
                   WICK_ERR_VALUE);
    assert_refused(device, wick_batch_norm(x, single, one, NULL, NULL, 0), WICK_ERR_SHAPE);
    assert_refused(device, wick_group_norm(x, 0, NULL, NULL, 0), WICK_ERR_VALUE);
    assert_refused(device, wick_group_norm(x, 3, NULL, NULL, 0), WICK_ERR_SHAPE);
    assert_refused(device, wick_group_norm(one, 1, NULL, NULL, 0), WICK_ERR_SHAPE);
    assert_refused(device, wick_group_norm(x, 1, NULL, NULL, -1), WICK_ERR_VALUE);
    assert_shape(
        wick_group_norm(wick_zeros(device, WICK_F32, WICK_SHAPE(0, 4, 3)), 2, NULL, NULL, 0),
        WICK_SHAPE(0, 4, 3));
    wick_scope_end(scope);
}

static void responses(void **state) {
    wick_device *const device = device_of(state);
    const wick_scope scope = wick_scope_begin(device);
    wick_tensor *const x = random_tensor(device, WICK_F32, WICK_SHAPE(2, 6, 1, 2), 4);
    double *const in = contents(x), wanted[24];
    for (int64_t size = 1; size <= 6; size++) {
        for (int64_t i = 0; i < 24; i++) {
            double sum = 0;
            for (int64_t c = i / 2 % 6 - (size - 1) / 2; c <= i / 2 % 6 + size / 2; c++)
                if (c >= 0 && c < 6) sum += pow(in[i / 12 * 12 + c * 2 + i % 2], 2);
            wanted[i] = in[i] / pow(2 + 0.5 / (double)size * sum, 0.75);
        }
        assert_close(wick_local_response_norm(x, size, 0.5, 0.75, 2), wanted, 1e-6);
    }
    for (int64_t i = 0; i < 24; i++)
        wanted[i] = in[i] / fmax(hypot(in[i / 2 * 2], in[i / 2 * 2 + 1]), 1e-3);
    assert_close(wick_normalize(x, -1, 1e-3), wanted, 1e-6);
    free(in);
    assert_refused(device, wick_local_response_norm(x, 0, 1, 1, 1), WICK_ERR_VALUE);
    assert_refused(device, wick_normalize(x, 4, 0), WICK_ERR_DIM);
    wick_scope_end(scope);
}

/* --- Recurrent networks --- */

/* The fixtures check the arithmetic; here what may be left out, and the last state. */
static void left_out(void **state) {
    wick_device *const device = device_of(state);
    const wick_scope scope = wick_scope_begin(device);
    wick_tensor *const x = random_tensor(device, WICK_F32, WICK_SHAPE(2, 3, 4), 1);
    const wick_rnn_weights bare = {.w_ih = random_tensor(device, WICK_F32, WICK_SHAPE(5, 4), 2),
                                   .w_hh = random_tensor(device, WICK_F32, WICK_SHAPE(5, 5), 3)};
    wick_tensor *last, *again, *cell;
    wick_tensor *const zero = wick_zeros(device, WICK_F32, WICK_SHAPE(2, 5));
    wick_tensor *const y = wick_rnn(x, &bare, NULL, &last);
    assert_shape(y, WICK_SHAPE(2, 3, 5));
    double *const all = contents(y), *const end = contents(last), *const in = contents(x);
    double *const u = contents(bare.w_hh), *const w = contents(bare.w_ih);
    for (int i = 0; i < 10; i++) assert_float_equal(end[i], all[i / 5 * 15 + 10 + i % 5], 1e-6);
    for (int i = 0; i < 5; i++) { /* the second token of the first text */
        double sum = 0;
        for (int k = 0; k < 4; k++) sum += w[i * 4 + k] * in[4 + k];
        for (int k = 0; k < 5; k++) sum += u[i * 5 + k] * all[k];
        assert_float_equal(all[5 + i], tanh(sum), 1e-5);
    }
    assert_close(wick_rnn(x, &bare, zero, &again), all, 0);
    free(w);
    free(u);
    free(in);
    free(end);
    free(all);
    /* No token: the state that there was. */
    wick_tensor *const none = wick_zeros(device, WICK_F32, WICK_SHAPE(2, 0, 4));
    wick_tensor *const h0 = wick_ones(device, WICK_F32, WICK_SHAPE(2, 5));
    assert_shape(wick_rnn(none, &bare, h0, &last), WICK_SHAPE(2, 0, 5));
    assert_ptr_not_equal(last, h0);
    assert_close(last, (const double[]){1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, 0);
    assert_non_null(wick_fill(last, 9)); /* it has memory of its own */
    assert_close(h0, (const double[]){1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, 0);
    const wick_rnn_weights four = {.w_ih = random_tensor(device, WICK_F32, WICK_SHAPE(20, 4), 4),
                                   .w_hh = random_tensor(device, WICK_F32, WICK_SHAPE(20, 5), 5)};
    assert_shape(wick_lstm(x, &four, NULL, NULL, NULL, &cell), WICK_SHAPE(2, 3, 5));
    assert_shape(cell, WICK_SHAPE(2, 5));
    assert_refused(device, wick_gru(x, &four, NULL, &last), WICK_ERR_SHAPE);
    assert_null(last);
    assert_refused(device, wick_lstm(x, &four, x, NULL, NULL, NULL), WICK_ERR_SHAPE);
    assert_refused(device, wick_lstm(zero, &four, NULL, NULL, NULL, NULL), WICK_ERR_SHAPE);
    assert_refused(device, wick_lstm(x, NULL, NULL, NULL, NULL, NULL), WICK_ERR_ARGUMENT);
    wick_scope_end(scope);
}

/* Several results, and nothing else, belong to a caller without a scope. */
static void owned_by_the_caller(void **state) {
    wick_device *const device = device_of(state);
    wick_tensor *const x = wick_ones(device, WICK_F16, WICK_SHAPE(1, 3, 1));
    wick_tensor *const w = wick_ones(device, WICK_F16, WICK_SHAPE(4, 1));
    const wick_rnn_weights weights = {.w_ih = w, .w_hh = w};
    wick_tensor *h, *c, *places, *ids;
    wick_release(wick_lstm(x, &weights, NULL, NULL, &h, &c));
    wick_release(wick_max_pool1d(x, &(wick_pooling_desc){.kernel = {1}}, &places));
    wick_release(wick_moe_route(w, NULL, &(wick_moe_route_desc){.top_k = 1}, &ids));
    wick_release(wick_mse(w, w, WICK_REDUCTION_NONE));
    wick_release(wick_dropout(x, 0.5, true));
    wick_release(wick_dropout(x, 0.5, false));
    wick_tensor *const all[] = {ids, places, c, h, w, x};
    for (size_t i = 0; i < WK_COUNT(all); i++) {
        assert_non_null(all[i]);
        wick_release(all[i]);
    }
    assert_int_equal(wick_device_error(device, NULL), WICK_OK);
}

/* A tensor without elements may have any extents: work does not grow with them. */
static void extents_of_nothing(void **state) {
    wick_device *const device = device_of(state);
    const wick_scope scope = wick_scope_begin(device);
    const int64_t many = INT64_C(1) << 40;
    wick_tensor *const windows = wick_zeros(device, WICK_F32, WICK_SHAPE(0, 1, many));
    assert_shape(wick_fold(windows, 1, many, 1), WICK_SHAPE(0, many));
    wick_tensor *const x = wick_zeros(device, WICK_F32, WICK_SHAPE(0, 5));
    assert_shape(wick_adaptive_max_pool(x, 1, &many), WICK_SHAPE(0, many));
    wick_tensor *const tokens = wick_zeros(device, WICK_F32, WICK_SHAPE(0, many, 2));
    wick_tensor *const w = wick_ones(device, WICK_F32, WICK_SHAPE(3, 2)), *last;
    const wick_rnn_weights weights = {.w_ih = w,
                                      .w_hh = wick_ones(device, WICK_F32, WICK_SHAPE(3, 3))};
    assert_shape(wick_rnn(tokens, &weights, NULL, &last), WICK_SHAPE(0, many, 3));
    assert_shape(last, WICK_SHAPE(0, 3));
    wick_scope_end(scope);
}

/* --- Dropout --- */

static void shares(void **state) {
    wick_device *const device = device_of(state);
    const wick_scope scope = wick_scope_begin(device);
    wick_tensor *const x = wick_ones(device, WICK_F16, WICK_SHAPE(100, 100));
    double *const y = contents(wick_dropout(x, 0.2, true));
    int n = 0;
    for (int i = 0; i < 10000; i++) {
        assert_true(y[i] == 0 || y[i] == 1.25);
        n += y[i] > 0;
    }
    free(y);
    assert_in_range(n, 7800, 8200);
    wick_tensor *const four = wick_narrow(wick_narrow(x, 0, 0, 1), 1, 0, 4);
    assert_close(wick_dropout(four, 1, true), (const double[]){0, 0, 0, 0}, 0);
    assert_close(wick_dropout(four, 0, true), (const double[]){1, 1, 1, 1}, 0);
    assert_close(wick_dropout(four, 1, false), (const double[]){1, 1, 1, 1}, 0);
    assert_refused(device, wick_dropout(x, -0.1, true), WICK_ERR_VALUE);
    assert_refused(device, wick_dropout(x, 1.1, false), WICK_ERR_VALUE);
    assert_refused(device, wick_dropout(x, (double)NAN, true), WICK_ERR_VALUE);
    assert_refused(device, wick_dropout(wick_ones(device, WICK_U8, WICK_SCALAR), 0, true),
                   WICK_ERR_DTYPE);
    wick_scope_end(scope);
}

/* --- Losses --- */

/* logits [2, 3, 2] in rows of classes. */
static const double logits[] = {1, 2, 0.5, -1, 3, 0, -2, 1, 1, 1, 0, 2};
static const double class_weight[] = {1, 0.5, 2};

static double log_p(int n, int c, int d) {
    double sum = 0;
    for (int k = 0; k < 3; k++) sum += exp(logits[n * 6 + k * 2 + d]);
    return logits[n * 6 + c * 2 + d] - log(sum);
}

static double wanted_loss(int n, int d, int64_t target, bool is_weighted, double smoothing) {
    double even = 0;
    for (int c = 0; c < 3; c++) even -= log_p(n, c, d) * (is_weighted ? class_weight[c] : 1) / 3;
    const double weight = is_weighted ? class_weight[target] : 1;
    return (1 - smoothing) * -log_p(n, (int)target, d) * weight + smoothing * even;
}

static void classes(void **state) {
    static const int64_t targets[] = {0, 2, 1, -100}; /* [2, 2] */
    wick_device *const device = device_of(state);
    const wick_scope scope = wick_scope_begin(device);
    wick_tensor *const x = tensor_of(device, WICK_F32, WICK_SHAPE(2, 3, 2), logits);
    wick_tensor *const target =
        wick_tensor_from_data(device, WICK_I64, WICK_SHAPE(2, 2), targets, sizeof targets);
    wick_tensor *const weight = tensor_of(device, WICK_F32, WICK_SHAPE(3), class_weight);
    for (int i = 0; i < 12; i++) {
        const bool is_weighted = i % 2;
        const double smoothing = i / 2 % 2 ? 0.2 : 0;
        double each[4] = {0}, sum = 0, weights = 0;
        for (int k = 0; k < 3; k++) {
            each[k] = wanted_loss(k / 2, k % 2, targets[k], is_weighted, smoothing);
            sum += each[k];
            weights += is_weighted ? class_weight[targets[k]] : 1;
        }
        const wick_cross_entropy_desc desc = {.weight = is_weighted ? weight : NULL,
                                              .label_smoothing = smoothing,
                                              .ignores = true,
                                              .ignored_index = -100,
                                              .reduction = (wick_reduction)(i / 4)};
        const double mean = sum / weights;
        const double *const wanted[] = {&mean, &sum, each};
        assert_close(wick_cross_entropy(x, target, &desc), wanted[i / 4], 1e-5);
        if (smoothing == 0)
            assert_close(wick_nll(wick_log_softmax(x, 1), target, &desc), wanted[i / 4], 1e-5);
    }
    /* Of one sample without a batch, and an ignored class that u8 does not have. */
    wick_tensor *const row =
        wick_reshape(wick_narrow(wick_narrow(x, 0, 0, 1), 2, 1, 1), WICK_SHAPE(3));
    const double one = wanted_loss(0, 1, 2, false, 0);
    const wick_cross_entropy_desc negative = {.ignores = true, .ignored_index = -100};
    assert_close(wick_cross_entropy(row, wick_full(device, WICK_U8, WICK_SCALAR, 2), &negative),
                 &one, 1e-5);
    /* -100 is an index like others unless it is ignored. */
    float unread;
    wick_tensor *const bad = wick_cross_entropy(x, target, NULL);
    assert_non_null(bad);
    assert_int_equal(wick_read(bad, &unread, sizeof unread), WICK_ERR_INDEX);
    (void)wick_device_error(device, NULL);
    wick_scope_end(scope);
}

static void probabilities(void **state) {
    wick_device *const device = device_of(state);
    const wick_scope scope = wick_scope_begin(device);
    wick_tensor *const x = tensor_of(device, WICK_F32, WICK_SHAPE(2, 3, 2), logits);
    double share[12], sum = 0;
    for (int i = 0; i < 12; i++) {
        share[i] = (i % 5) / 8.0;
        sum -= (share[i] * 0.75 + 0.25 / 3) * log_p(i / 6, i / 2 % 3, i % 2);
    }
    wick_tensor *const target = tensor_of(device, WICK_F32, WICK_SHAPE(2, 3, 2), share);
    const wick_cross_entropy_desc desc = {.label_smoothing = 0.25};
    assert_close(wick_cross_entropy(x, target, &desc), (const double[]){sum / 4}, 1e-5);
    const wick_cross_entropy_desc ignores = {.ignores = true};
    assert_refused(device, wick_cross_entropy(x, target, &ignores), WICK_ERR_VALUE);
    assert_refused(device, wick_nll(x, target, NULL), WICK_ERR_DTYPE);
    assert_refused(device, wick_cross_entropy(x, wick_cast(target, WICK_I64), NULL),
                   WICK_ERR_SHAPE);
    assert_refused(device, wick_cross_entropy(x, wick_cast(target, WICK_BOOL), NULL),
                   WICK_ERR_DTYPE);
    assert_refused(device,
                   wick_cross_entropy(x, target, &(wick_cross_entropy_desc){.label_smoothing = 2}),
                   WICK_ERR_VALUE);
    assert_refused(
        device,
        wick_cross_entropy(x, target, &(wick_cross_entropy_desc){.reduction = (wick_reduction)3}),
        WICK_ERR_VALUE);
    wick_scope_end(scope);
}

static void elements(void **state) {
    static const double x[] = {0.1, 0.9, 0, 1, 0.5, 0.25}, t[] = {1, 0.5, 0, 1, 0, 0.75};
    static const wick_dtype dtypes[] = {WICK_F32, WICK_F64, WICK_F16};
    wick_device *const device = device_of(state);
    for (int i = 0; i < 9; i++) {
        const wick_scope scope = wick_scope_begin(device);
        const wick_dtype dtype = dtypes[i % 3];
        const wick_reduction reduction = (wick_reduction)(i / 3);
        wick_tensor *const a = tensor_of(device, dtype, WICK_SHAPE(2, 3), x);
        wick_tensor *const b = tensor_of(device, dtype, WICK_SHAPE(2, 3), t);
        wick_tensor *const two = wick_full(device, dtype, WICK_SHAPE(3), 2);
        double *const p = contents(a), loss[9][6], sum[9] = {0}, mean[9];
        for (int k = 0; k < 6; k++) {
            const double d = fabs(p[k] - t[k]), s = 1 / (1 + exp(-p[k]));
            loss[0][k] = d * d;
            loss[1][k] = d;
            loss[2][k] = d < 0.5 ? d * d / 2 : 0.5 * (d - 0.25);
            loss[3][k] = loss[2][k] / 0.5;
            loss[4][k] =
                -(t[k] > 0 ? t[k] * log(p[k]) : 0) - (t[k] < 1 ? (1 - t[k]) * log(1 - p[k]) : 0);
            loss[5][k] = -t[k] * log(s) - (1 - t[k]) * log(1 - s);
            loss[6][k] = -2 * t[k] * log(s) - (1 - t[k]) * log(1 - s);
            loss[7][k] = t[k] > 0 ? t[k] * (log(t[k]) - p[k]) : 0;
            loss[8][k] = exp(t[k]) * (t[k] - p[k]);
            for (int n = 0; n < 9; n++) sum[n] += loss[n][k];
        }
        wick_tensor *const got[] = {wick_mse(a, b, reduction),
                                    wick_l1(a, b, reduction),
                                    wick_huber(a, b, 0.5, reduction),
                                    wick_smooth_l1(a, b, 0.5, reduction),
                                    wick_bce(a, b, reduction),
                                    wick_bce_with_logits(a, b, NULL, reduction),
                                    wick_bce_with_logits(a, b, two, reduction),
                                    wick_kl_div(a, b, false, reduction),
                                    wick_kl_div(a, b, true, reduction)};
        for (int n = 0; n < 9; n++) {
            mean[n] = sum[n] / 6;
            const double *const wanted[] = {&mean[n], &sum[n], loss[n]};
            assert_close(got[n], wanted[reduction], dtype == WICK_F16 ? 1e-3 : 1e-5);
        }
        free(p);
        wick_scope_end(scope);
    }
}

static void huber_without_bound(void **state) {
    wick_device *const device = device_of(state);
    const wick_scope scope = wick_scope_begin(device);
    const double x[] = {0, 1, 5}, t[] = {1, 1, 1}, wanted[] = {0.5, 0, 8}, none[] = {0, 0, 0};
    wick_tensor *const a = tensor_of(device, WICK_F32, WICK_SHAPE(3), x);
    wick_tensor *const b = tensor_of(device, WICK_F32, WICK_SHAPE(3), t);
    const double infinite = (double)INFINITY;
    assert_close(wick_huber(a, b, infinite, WICK_REDUCTION_NONE), wanted, 0);
    assert_close(wick_smooth_l1(a, b, infinite, WICK_REDUCTION_NONE), none, 0);
    wick_scope_end(scope);
}

static void losses_refused(void **state) {
    wick_device *const device = device_of(state);
    const wick_scope scope = wick_scope_begin(device);
    wick_tensor *const a = wick_ones(device, WICK_F32, WICK_SHAPE(2, 3));
    wick_tensor *const b = wick_ones(device, WICK_F32, WICK_SHAPE(3));
    wick_tensor *const c = wick_ones(device, WICK_F16, WICK_SHAPE(2, 3));
    assert_refused(device, wick_mse(a, b, WICK_REDUCTION_MEAN), WICK_ERR_SHAPE);
    assert_refused(device, wick_l1(a, c, WICK_REDUCTION_MEAN), WICK_ERR_DTYPE);
    assert_refused(device, wick_huber(a, a, 0, WICK_REDUCTION_MEAN), WICK_ERR_VALUE);
    assert_refused(device, wick_smooth_l1(a, a, -1, WICK_REDUCTION_MEAN), WICK_ERR_VALUE);
    assert_close(wick_smooth_l1(a, a, 0, WICK_REDUCTION_SUM), (const double[]){0}, 0);
    assert_refused(device, wick_bce(a, a, (wick_reduction)9), WICK_ERR_VALUE);
    assert_refused(device, wick_bce_with_logits(b, b, a, WICK_REDUCTION_MEAN), WICK_ERR_SHAPE);
    const double far[] = {-200, 200, 30};
    wick_tensor *const large = tensor_of(device, WICK_F32, WICK_SHAPE(3), far);
    assert_close(wick_bce_with_logits(large, wick_zeros(device, WICK_F32, WICK_SHAPE(3)), NULL,
                                      WICK_REDUCTION_NONE),
                 (const double[]){0, 200, 30}, 1e-6);
    assert_close(wick_cosine_similarity(a, wick_narrow(large, 0, 0, 3), -1, 1e-8),
                 (const double[]){30 / sqrt(3 * 80900.), 30 / sqrt(3 * 80900.)}, 1e-6);
    assert_refused(device, wick_cosine_similarity(a, b, 2, 0), WICK_ERR_DIM);
    assert_refused(device, wick_cosine_similarity(a, b, 0, -1e-8), WICK_ERR_VALUE);
    assert_refused(device,
                   wick_cosine_similarity(a, wick_ones(device, WICK_F32, WICK_SHAPE(4)), 0, 0),
                   WICK_ERR_SHAPE);
    wick_scope_end(scope);
}

/* --- Experts --- */

static void experts_refused(void **state) {
    wick_device *const device = device_of(state);
    const wick_scope scope = wick_scope_begin(device);
    wick_tensor *const x = wick_ones(device, WICK_F32, WICK_SHAPE(2, 4));
    wick_tensor *ids = x;
    static const wick_moe_route_desc bad[] = {
        {.top_k = 0}, {.top_k = 5}, {.top_k = 1, .is_sigmoid = true, .is_topk_first = true}};
    for (size_t i = 0; i < WK_COUNT(bad); i++) {
        assert_refused(device, wick_moe_route(x, NULL, &bad[i], &ids), WICK_ERR_VALUE);
        assert_null(ids);
    }
    assert_refused(device, wick_moe_route(x, x, &(wick_moe_route_desc){.top_k = 1}, &ids),
                   WICK_ERR_SHAPE);
    wick_tensor *const w = wick_ones(device, WICK_F32, WICK_SHAPE(3, 4, 4));
    wick_tensor *const flat = wick_ones(device, WICK_F32, WICK_SHAPE(4, 4));
    wick_tensor *const route = wick_ones(device, WICK_F32, WICK_SHAPE(2, 1));
    wick_tensor *const chosen = wick_zeros(device, WICK_U32, WICK_SHAPE(2, 1));
    wick_moe_weights weights = {.gate = w, .up = w, .down = w};
    assert_non_null(wick_moe_ffn(x, route, chosen, &weights));
    assert_refused(device, wick_moe_ffn(x, route, route, &weights), WICK_ERR_DTYPE);
    assert_refused(device, wick_moe_ffn(x, route, chosen, NULL), WICK_ERR_ARGUMENT);
    assert_refused(device, wick_moe_ffn(x, x, chosen, &weights), WICK_ERR_SHAPE);
    weights.shared_gate = flat;
    assert_refused(device, wick_moe_ffn(x, route, chosen, &weights), WICK_ERR_ARGUMENT);
    weights = (wick_moe_weights){.gate = w, .up = w, .down = flat};
    assert_refused(device, wick_moe_ffn(x, route, chosen, &weights), WICK_ERR_SHAPE);
    wick_tensor *const fewer = wick_ones(device, WICK_F32, WICK_SHAPE(2, 4, 4));
    weights = (wick_moe_weights){.gate = w, .up = fewer, .down = w};
    assert_null(wick_moe_ffn(x, route, chosen, &weights));
    wick_error error;
    assert_int_equal(wick_device_error(device, &error), WICK_ERR_SHAPE);
    assert_string_equal(error.message,
                        "moe_ffn: up [2, 4, 4] does not fit x [2, 4] and the others");
    weights.up = w;
    assert_refused(
        device,
        wick_moe_ffn(wick_ones(device, WICK_F32, WICK_SHAPE(3, 4)), route, chosen, &weights),
        WICK_ERR_SHAPE);
    wick_scope_end(scope);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(groups),
        TEST(batches),
        TEST(responses),
        TEST(left_out),
        TEST(shares),
        TEST(classes),
        TEST(probabilities),
        TEST(owned_by_the_caller),
        TEST(elements),
        TEST(huber_without_bound),
        TEST(losses_refused),
        TEST(experts_refused),
        TEST(extents_of_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
