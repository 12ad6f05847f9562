/* Pooling and resizing against loops: every desc, dims, dtypes, rank 6; indices; bad input. */
#include "nn_fixture.h"

/* --- Pooling --- */

/* One dim, for the windows of several are those of each. */
typedef struct line {
    int64_t in, kernel, stride, padding, dilation, out;
} line;

static int64_t below(wk_rng *rng, int64_t n) { return (int64_t)(wk_rng_u32(rng) % (uint32_t)n); }

/* The windows as PyTorch counts them; false: none. */
static bool draw_line(wk_rng *rng, bool is_ceil, bool is_dilated, line *l) {
    *l = (line){.in = 1 + below(rng, 9), .kernel = 1 + below(rng, 4), .stride = 1 + below(rng, 4)};
    l->dilation = is_dilated ? 1 + below(rng, 2) : 1;
    l->padding = below(rng, l->kernel / 2 + 1);
    const int64_t room = l->in + 2 * l->padding - l->dilation * (l->kernel - 1) - 1;
    if (room < 0 && (!is_ceil || room + l->stride - 1 < 0)) return false;
    l->out = (room + (is_ceil ? l->stride - 1 : 0)) / l->stride + 1;
    if (is_ceil && (l->out - 1) * l->stride >= l->in + l->padding) l->out--;
    return l->out > 0;
}

typedef struct pooled {
    double largest, sum;
    int64_t index, n, n_padded; /* elements inside, and with those of the padding */
} pooled;

/* Window o of two dims of a plane. */
static pooled pool(const line *h, const line *w, const double *plane, int64_t oh, int64_t ow) {
    pooled p = {.largest = -(double)INFINITY, .index = -1};
    for (int64_t i = 0; i < h->kernel; i++)
        for (int64_t j = 0; j < w->kernel; j++) {
            const int64_t y = oh * h->stride - h->padding + i * h->dilation;
            const int64_t x = ow * w->stride - w->padding + j * w->dilation;
            p.n_padded += y < h->in + h->padding && x < w->in + w->padding;
            if (y < 0 || y >= h->in || x < 0 || x >= w->in) continue;
            const double value = plane[y * w->in + x];
            if (value > p.largest || p.index < 0) {
                p.largest = value;
                p.index = y * w->in + x;
            }
            p.sum += value;
            p.n++;
        }
    return p;
}

static void check_pool(wick_device *device, const line *h, const line *w, bool is_ceil,
                       bool excludes, wick_dtype dtype, uint64_t seed) {
    const wick_scope scope = wick_scope_begin(device);
    const wick_pooling_desc desc = {.kernel = {h->kernel, w->kernel},
                                    .stride = {h->stride, w->stride},
                                    .padding = {h->padding, w->padding},
                                    .dilation = {h->dilation, w->dilation},
                                    .ceil_mode = is_ceil,
                                    .excludes_padding = excludes};
    /* rank 3 to 6 */
    wick_shape shape = {.rank = 3 + (int)(seed % 4), .extent = {2, 1, 1, 1, 1, 1}}, out;
    shape.extent[shape.rank - 2] = h->in;
    shape.extent[shape.rank - 1] = w->in;
    out = shape;
    out.extent[out.rank - 2] = h->out;
    out.extent[out.rank - 1] = w->out;
    wick_tensor *const x = random_tensor(device, dtype, shape, seed);
    wick_tensor *places;
    wick_tensor *const most = wick_max_pool2d(x, &desc, &places);
    assert_non_null(most);
    assert_shape(most, out);
    assert_shape(places, out);
    assert_int_equal(wick_tensor_dtype(places), WICK_U32);
    double *const in = contents(x);
    const int64_t n = 2 * h->out * w->out;
    double *const wanted = calloc((size_t)(3 * n), sizeof *wanted);
    for (int64_t i = 0; i < n; i++) {
        const int64_t plane = i / (h->out * w->out), o = i % (h->out * w->out);
        const pooled p = pool(h, w, in + plane * h->in * w->in, o / w->out, o % w->out);
        wanted[i] = p.largest;
        wanted[n + i] = (double)p.index;
        wanted[2 * n + i] = p.sum / (double)(excludes ? p.n : p.n_padded);
    }
    assert_close(most, wanted, 0);
    assert_close(wick_max_pool2d(x, &desc, NULL), wanted, 0);
    assert_close(places, wanted + n, 0);
    if (h->dilation == 1 && w->dilation == 1)
        assert_close(wick_avg_pool2d(x, &desc), wanted + 2 * n, dtype == WICK_F16 ? 1e-3 : 1e-6);
    free(wanted);
    free(in);
    wick_scope_end(scope);
}

static void random_windows(void **state) {
    static const wick_dtype dtypes[] = {WICK_F32, WICK_F64, WICK_F16};
    wk_rng rng = {.seed = 3};
    for (uint64_t i = 0; i < 200; i++) {
        line h, w;
        const bool is_ceil = i % 3 == 0, is_dilated = i % 4 == 0;
        if (draw_line(&rng, is_ceil, is_dilated, &h) && draw_line(&rng, is_ceil, is_dilated, &w))
            check_pool(device_of(state), &h, &w, is_ceil, i % 2 == 0, dtypes[i % 7 % 3], i);
    }
}

/* Integers as well; padding is less than all of them, and -infinity is found before it. */
static void edges(void **state) {
    wick_device *const device = device_of(state);
    const wick_scope scope = wick_scope_begin(device);
    const int32_t data[] = {-5, -3, -9, INT32_MIN};
    wick_tensor *const whole =
        wick_tensor_from_data(device, WICK_I32, WICK_SHAPE(1, 4), data, sizeof data);
    const wick_pooling_desc desc = {.kernel = {2}, .padding = {1}};
    const double wanted[] = {-5, -3, INT32_MIN};
    assert_close(wick_max_pool1d(whole, &desc, NULL), wanted, 0);
    wick_tensor *const least = wick_full(device, WICK_F32, WICK_SHAPE(1, 4), -(double)INFINITY),
                       *places;
    assert_non_null(wick_max_pool1d(least, &desc, &places));
    assert_close(places, (const double[]){0, 1, 3}, 0);
    /* of a window that begins in the padding the first element that is in it */
    const wick_pooling_desc apart = {.kernel = {2}, .stride = {1}, .padding = {1}, .dilation = {2}};
    assert_non_null(wick_max_pool1d(least, &apart, &places));
    assert_close(places, (const double[]){1, 0, 1, 2}, 0);
    const float nan[] = {1, NAN, 2, 3};
    wick_tensor *const some =
        wick_tensor_from_data(device, WICK_F32, WICK_SHAPE(1, 4), nan, sizeof nan);
    assert_close(wick_max_pool1d(some, &(wick_pooling_desc){.kernel = {2}}, NULL),
                 (const double[]){(double)NAN, 3}, 0);
    const wick_pooling_desc three = {.kernel = {3}, .stride = {1}, .padding = {1}};
    assert_non_null(wick_max_pool1d(some, &three, &places));
    assert_close(places, (const double[]){1, 1, 1, 3}, 0);
    assert_non_null(wick_max_pool2d(wick_reshape(some, WICK_SHAPE(1, 2, 2)),
                                    &(wick_pooling_desc){.kernel = {2, 2}}, &places));
    assert_close(places, (const double[]){1}, 0);
    assert_shape(wick_max_pool3d(wick_zeros(device, WICK_F32, WICK_SHAPE(0, 2, 4, 4, 4)),
                                 &(wick_pooling_desc){.kernel = {2, 2, 2}}, NULL),
                 WICK_SHAPE(0, 2, 2, 2, 2));
    wick_scope_end(scope);
}

static void adaptive(void **state) {
    wick_device *const device = device_of(state);
    for (int64_t in = 1; in <= 7; in++)
        for (int64_t out = 1; out <= 8; out++) {
            const wick_scope scope = wick_scope_begin(device);
            wick_tensor *const x =
                random_tensor(device, WICK_F32, WICK_SHAPE(3, in), (uint64_t)(in * 9 + out));
            double *const data = contents(x), mean[24], largest[24];
            for (int64_t i = 0; i < 3 * out; i++) {
                const int64_t o = i % out, begin = o * in / out;
                const int64_t end = ((o + 1) * in + out - 1) / out;
                mean[i] = 0;
                largest[i] = -9;
                for (int64_t k = begin; k < end; k++) {
                    const double value = data[i / out * in + k];
                    mean[i] += value / (double)(end - begin);
                    largest[i] = fmax(largest[i], value);
                }
            }
            assert_close(wick_adaptive_avg_pool(x, 1, &out), mean, 1e-6);
            assert_close(wick_adaptive_max_pool(x, 1, &out), largest, 0);
            free(data);
            wick_scope_end(scope);
        }
}

/* --- Resizing --- */

/* What a neighbour at a distance weighs. */
static double weight_of(wick_resize_mode mode, double distance) {
    const double x = fabs(distance), a = -0.75;
    if (mode == WICK_RESIZE_LINEAR) return x < 1 ? 1 - x : 0;
    if (x <= 1) return (a + 2) * x * x * x - (a + 3) * x * x + 1;
    return x < 2 ? a * x * x * x - 5 * a * x * x + 8 * a * x - 4 * a : 0;
}

static double resized(const double *row, int64_t in, int64_t out, int64_t i, wick_resize_mode mode,
                      bool align) {
    if (mode == WICK_RESIZE_NEAREST) return row[i * in / out];
    double at = ((double)i + 0.5) * (double)in / (double)out - 0.5;
    if (align) at = out == 1 ? 0 : (double)(i * (in - 1)) / (double)(out - 1);
    if (mode == WICK_RESIZE_LINEAR && at < 0) at = 0;
    double sum = 0;
    for (int64_t k = -3; k < in + 3; k++)
        sum += weight_of(mode, at - (double)k) * row[k < 0 ? 0 : k < in ? k : in - 1];
    return sum;
}

static void lines(void **state) {
    wick_device *const device = device_of(state);
    for (int64_t in = 1; in <= 5; in++)
        for (int64_t out = 1; out <= 9; out++)
            for (int mode = 0; mode < 6; mode++) {
                const wick_scope scope = wick_scope_begin(device);
                const bool align = mode >= 3;
                wick_tensor *const x =
                    random_tensor(device, out % 2 ? WICK_F32 : WICK_F64, WICK_SHAPE(2, in), 5);
                double *const data = contents(x), wanted[18];
                for (int64_t i = 0; i < 2 * out; i++)
                    wanted[i] = resized(data + i / out * in, in, out, i % out,
                                        (wick_resize_mode)(mode % 3), align);
                wick_tensor *const y = wick_resize(x, 1, &out, (wick_resize_mode)(mode % 3), align);
                assert_shape(y, WICK_SHAPE(2, out));
                assert_close(y, wanted, 1e-6);
                free(data);
                wick_scope_end(scope);
            }
}

/* Three dims of six; nearest moves any dtype; the result is never x itself. */
static void volumes(void **state) {
    wick_device *const device = device_of(state);
    const wick_scope scope = wick_scope_begin(device);
    const int64_t size[] = {4, 1, 2};
    wick_tensor *const x = wick_arange(device, WICK_I64, 0, 4, 1);
    wick_tensor *const y = wick_resize(wick_reshape(x, WICK_SHAPE(1, 1, 1, 2, 2, 1)), 3, size,
                                       WICK_RESIZE_NEAREST, false);
    assert_shape(y, WICK_SHAPE(1, 1, 1, 4, 1, 2));
    assert_close(y, (const double[]){0, 0, 0, 0, 2, 2, 2, 2}, 0);
    wick_tensor *const floats = wick_ones(device, WICK_F32, WICK_SHAPE(2, 3));
    const int64_t same = 3;
    wick_tensor *const kept = wick_resize(floats, 1, &same, WICK_RESIZE_LINEAR, false);
    assert_ptr_not_equal(kept, floats);
    wick_release(kept);
    assert_shape(floats, WICK_SHAPE(2, 3));
    wick_scope_end(scope);
}

/* --- Bad input --- */

static void bad_input(void **state) {
    wick_device *const device = device_of(state);
    const wick_scope scope = wick_scope_begin(device);
    wick_tensor *const x = random_tensor(device, WICK_F32, WICK_SHAPE(2, 4, 4), 1);
    static const struct {
        wick_status status;
        wick_pooling_desc desc;
    } descs[] = {
        {WICK_ERR_VALUE, {.kernel = {2}}},
        {WICK_ERR_VALUE, {.kernel = {-2, 2}}},
        {WICK_ERR_VALUE, {.kernel = {2, 2}, .stride = {-1, 1}}},
        {WICK_ERR_VALUE, {.kernel = {2, 2}, .dilation = {1, -1}}},
        {WICK_ERR_VALUE, {.kernel = {3, 3}, .padding = {2, 0}}},
        {WICK_ERR_VALUE, {.kernel = {3, 3}, .padding = {0, -1}}},
        {WICK_ERR_SHAPE, {.kernel = {2, 5}}},
        {WICK_ERR_SHAPE, {.kernel = {2, 6}, .stride = {1, 1}, .ceil_mode = true}},
    };
    for (size_t i = 0; i < WK_COUNT(descs); i++) {
        wick_tensor *places = x;
        assert_refused(device, wick_max_pool2d(x, &descs[i].desc, &places), descs[i].status);
        assert_null(places);
        assert_refused(device, wick_avg_pool2d(x, &descs[i].desc), descs[i].status);
    }
    const wick_pooling_desc two = {.kernel = {2, 2}};
    assert_refused(device, wick_avg_pool2d(x, NULL), WICK_ERR_VALUE);
    const wick_shape endless = WICK_SHAPE(1, 1, INT64_MAX);
    wick_tensor *const one = wick_ones(device, WICK_F32, WICK_SCALAR);
    const wick_pooling_desc padded = {.kernel = {100}, .padding = {50}};
    assert_refused(device, wick_max_pool1d(wick_expand(one, endless), &padded, NULL),
                   WICK_ERR_SHAPE);
    assert_refused(device,
                   wick_avg_pool2d(x, &(wick_pooling_desc){.kernel = {2, 2}, .dilation = {2, 1}}),
                   WICK_ERR_VALUE);
    assert_refused(device, wick_avg_pool2d(wick_cast(x, WICK_I32), &two), WICK_ERR_DTYPE);
    assert_refused(device,
                   wick_max_pool2d(wick_ones(device, WICK_F32, WICK_SHAPE(4, 4)), &two, NULL),
                   WICK_ERR_SHAPE);
    const int64_t zero[] = {2, 0}, fine[] = {2, 2, 2, 2};
    assert_refused(device, wick_adaptive_avg_pool(x, 2, zero), WICK_ERR_VALUE);
    assert_refused(device, wick_adaptive_avg_pool(x, 4, fine), WICK_ERR_VALUE);
    assert_refused(device, wick_adaptive_max_pool(x, 3, fine), WICK_ERR_SHAPE);
    assert_refused(device, wick_resize(x, 2, zero, WICK_RESIZE_LINEAR, false), WICK_ERR_VALUE);
    assert_refused(device, wick_resize(x, 0, fine, WICK_RESIZE_LINEAR, false), WICK_ERR_VALUE);
    assert_refused(device, wick_resize(x, 2, fine, (wick_resize_mode)7, false), WICK_ERR_VALUE);
    assert_refused(device, wick_resize(wick_cast(x, WICK_I32), 2, fine, WICK_RESIZE_CUBIC, false),
                   WICK_ERR_DTYPE);
    assert_refused(device, wick_resize(x, 3, fine, WICK_RESIZE_NEAREST, false), WICK_ERR_SHAPE);
    assert_null(wick_resize(NULL, 2, fine, WICK_RESIZE_NEAREST, false));
    wick_scope_end(scope);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(random_windows), TEST(edges),   TEST(adaptive),
        TEST(lines),          TEST(volumes), TEST(bad_input),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
