/* Convolutions against loops: every desc, dims, dtypes, strides; pieces; bad input. */
#include "nn_fixture.h"

/* In the order d h w, 1 (stride, dilation, kernel) or 0 where there is no such dim. */
typedef struct problem {
    int dims;
    int64_t n, c, m, groups;
    int64_t in[3], kernel[3], out[3];
    wick_conv_desc desc;
} problem;

static wick_shape shape_of(int64_t first, int64_t second, const int64_t *extent, int dims) {
    wick_shape shape = {.rank = 2 + dims, .extent = {first, second}};
    for (int i = 0; i < dims; i++) shape.extent[2 + i] = extent[i];
    return shape;
}

static int64_t at_least_one(int64_t value) { return value > 0 ? value : 1; }

static int64_t extent_of(const problem *p, const int64_t *extent, int i) {
    return i < p->dims ? extent[i] : 1;
}

/* For each pair of an element i of the large side and k of the kernel that the small side's element
 * o meets: calls fn with the offsets in planes of both sides. */
typedef void pair_fn(void *user, int64_t large, int64_t small, int64_t tap);

static void for_pairs(const problem *p, const int64_t *large, const int64_t *small, pair_fn *fn,
                      void *user) {
    int64_t o[3], k[3];
    for (o[0] = 0; o[0] < extent_of(p, small, 0); o[0]++)
        for (o[1] = 0; o[1] < extent_of(p, small, 1); o[1]++)
            for (o[2] = 0; o[2] < extent_of(p, small, 2); o[2]++)
                for (k[0] = 0; k[0] < extent_of(p, p->kernel, 0); k[0]++)
                    for (k[1] = 0; k[1] < extent_of(p, p->kernel, 1); k[1]++)
                        for (k[2] = 0; k[2] < extent_of(p, p->kernel, 2); k[2]++) {
                            int64_t at_large = 0, at_small = 0, tap = 0;
                            bool is_inside = true;
                            for (int i = 0; i < p->dims; i++) {
                                const int64_t place = o[i] * at_least_one(p->desc.stride[i]) -
                                                      p->desc.padding[i] +
                                                      k[i] * at_least_one(p->desc.dilation[i]);
                                is_inside = is_inside && place >= 0 && place < large[i];
                                at_large = at_large * large[i] + place;
                                at_small = at_small * small[i] + o[i];
                                tap = tap * p->kernel[i] + k[i];
                            }
                            if (is_inside) fn(user, at_large, at_small, tap);
                        }
}

typedef struct sums {
    const double *x, *weight;
    double *y;
} sums;

static void add_forward(void *user, int64_t large, int64_t small, int64_t tap) {
    const sums *const s = user;
    s->y[small] += s->x[large] * s->weight[tap];
}

static void add_backward(void *user, int64_t large, int64_t small, int64_t tap) {
    const sums *const s = user;
    s->y[large] += s->x[small] * s->weight[tap];
}

static int64_t product(const int64_t *extent, int dims) {
    int64_t n = 1;
    for (int i = 0; i < dims; i++) n *= extent[i];
    return n;
}

static void convolve(const problem *p, bool is_transposed, const double *x, const double *weight,
                     const double *bias, double *y) {
    const int64_t plane_x = product(p->in, p->dims), plane_y = product(p->out, p->dims);
    const int64_t taps = product(p->kernel, p->dims);
    const int64_t c_group = p->c / p->groups, m_group = p->m / p->groups;
    for (int64_t n = 0; n < p->n; n++)
        for (int64_t m = 0; m < p->m; m++) {
            double *const to = y + (n * p->m + m) * plane_y;
            for (int64_t i = 0; i < plane_y; i++) to[i] = bias ? bias[m] : 0;
            for (int64_t c = 0; c < c_group; c++) {
                const int64_t channel = m / m_group * c_group + c;
                const int64_t filter =
                    is_transposed ? channel * m_group + m % m_group : m * c_group + c;
                sums s = {x + (n * p->c + channel) * plane_x, weight + filter * taps, to};
                if (is_transposed)
                    for_pairs(p, p->out, p->in, add_backward, &s);
                else
                    for_pairs(p, p->in, p->out, add_forward, &s);
            }
        }
}

static wick_tensor *call(const problem *p, bool is_transposed, wick_tensor *x, wick_tensor *weight,
                         wick_tensor *bias) {
    if (is_transposed)
        return p->dims == 1   ? wick_conv_transpose1d(x, weight, bias, &p->desc)
               : p->dims == 2 ? wick_conv_transpose2d(x, weight, bias, &p->desc)
                              : wick_conv_transpose3d(x, weight, bias, &p->desc);
    return p->dims == 1   ? wick_conv1d(x, weight, bias, &p->desc)
           : p->dims == 2 ? wick_conv2d(x, weight, bias, &p->desc)
                          : wick_conv3d(x, weight, bias, &p->desc);
}

static int64_t below(wk_rng *rng, int64_t n) { return (int64_t)(wk_rng_u32(rng) % (uint32_t)n); }

/* False: nothing would be left. */
static bool draw(wk_rng *rng, problem *p, int dims, bool is_transposed) {
    *p = (problem){.dims = dims, .n = 1 + below(rng, 3), .groups = 1 + below(rng, 3)};
    p->c = p->groups * (1 + below(rng, 3));
    p->m = p->groups * (1 + below(rng, 3));
    p->desc.groups = p->groups == 1 ? 0 : p->groups;
    for (int i = 0; i < dims; i++) {
        p->in[i] = 1 + below(rng, 7);
        p->kernel[i] = 1 + below(rng, 4);
        p->desc.stride[i] = below(rng, 4);
        p->desc.dilation[i] = below(rng, 3);
        p->desc.padding[i] = below(rng, 3);
        const int64_t s = at_least_one(p->desc.stride[i]);
        const int64_t span = at_least_one(p->desc.dilation[i]) * (p->kernel[i] - 1) + 1;
        if (is_transposed) {
            p->desc.output_padding[i] = below(rng, s);
            p->out[i] =
                (p->in[i] - 1) * s - 2 * p->desc.padding[i] + span + p->desc.output_padding[i];
        } else {
            const int64_t room = p->in[i] + 2 * p->desc.padding[i] - span;
            p->out[i] = room < 0 ? 0 : room / s + 1;
        }
        if (p->out[i] < 1) return false;
    }
    return true;
}

static void check(wick_device *device, const problem *p, bool is_transposed, wick_dtype dtype,
                  uint64_t seed) {
    const wick_scope scope = wick_scope_begin(device);
    wick_shape shape = shape_of(p->n, p->c, p->in, p->dims);
    wick_tensor *x = random_tensor(device, dtype, shape, seed);
    if (seed % 3 == 0) /* the same elements, along other strides */
        x = wick_transpose(wick_contiguous(wick_transpose(x, 1, -1)), 1, -1);
    wick_tensor *const weight =
        random_tensor(device, dtype,
                      is_transposed ? shape_of(p->c, p->m / p->groups, p->kernel, p->dims)
                                    : shape_of(p->m, p->c / p->groups, p->kernel, p->dims),
                      seed + 1);
    wick_tensor *const bias =
        seed % 2 == 0 ? random_tensor(device, dtype, WICK_SHAPE(p->m), seed + 2) : NULL;
    wick_tensor *const y = call(p, is_transposed, x, weight, bias);
    assert_non_null(y);
    assert_shape(y, shape_of(p->n, p->m, p->out, p->dims));
    assert_int_equal(wick_tensor_dtype(y), dtype);
    double *const in = contents(x), *const w = contents(weight),
                  *const b = bias ? contents(bias) : NULL;
    double *const wanted = calloc((size_t)wick_tensor_size(y) + 1, sizeof *wanted);
    convolve(p, is_transposed, in, w, b, wanted);
    assert_close(y, wanted, dtype == WICK_F16 ? 1e-3 : dtype == WICK_BF16 ? 8e-3 : 1e-6);
    free(wanted);
    free(b);
    free(w);
    free(in);
    wick_scope_end(scope);
}

/* A device that has no op of a convolution: it is made of others. */
static wick_device *open_without(void) {
    const wick_device_desc desc = {
        .backend = WICK_BACKEND_NULL, .n_threads = 1, .null_flags = WICK_NULL_NO_KERNELS};
    wick_device *device;
    assert_int_equal(wick_device_open(&desc, &device, NULL), WICK_OK);
    return device;
}

static void random_ones(void **state) {
    static const wick_dtype dtypes[] = {WICK_F32, WICK_F64, WICK_F16, WICK_BF16};
    wk_rng rng = {.seed = 7};
    wick_device *const without = open_without();
    for (uint64_t i = 0; i < 240; i++) {
        problem p;
        const bool is_transposed = i % 2 == 1;
        const int dims = 1 + (int)(i / 2 % 3);
        if (!draw(&rng, &p, dims, is_transposed)) continue;
        check(device_of(state), &p, is_transposed, dtypes[i / 7 % 4], i);
        if (!is_transposed) check(without, &p, false, dtypes[i / 7 % 4], i);
    }
    wick_device_close(without);
}

/* Kernels that have more elements than are done one by one. */
static void long_depthwise(void **state) {
    for (int64_t kernel = 63; kernel <= 66; kernel++) {
        const problem p = {.dims = 1,
                           .n = 2,
                           .c = 3,
                           .m = 6,
                           .groups = 3,
                           .in = {70},
                           .kernel = {kernel},
                           .out = {71 - kernel},
                           .desc = {.groups = 3}};
        check(device_of(state), &p, false, WICK_F32, (uint64_t)kernel);
    }
}

/* Columns of more than 4 MiB: of a sample, in pieces of rows; of several, in pieces of samples. */
static void in_pieces(void **state) {
    static const problem cases[] = {
        {.dims = 2,
         .n = 2,
         .c = 3,
         .m = 1,
         .groups = 1,
         .in = {130, 130},
         .kernel = {8, 8},
         .out = {123, 123}},
        {.dims = 2,
         .n = 5,
         .c = 4,
         .m = 2,
         .groups = 2,
         .in = {50, 50},
         .kernel = {7, 7},
         .out = {44, 44},
         .desc = {.groups = 2}},
        /* Few positions: all samples in one product, in pieces of samples. */
        {.dims = 1, .n = 1500, .c = 64, .m = 3, .groups = 1, .in = {6}, .kernel = {3}, .out = {4}},
    };
    wick_device *const without = open_without();
    for (size_t i = 0; i < WK_COUNT(cases); i++) {
        check(device_of(state), &cases[i], false, WICK_F32, 4 + i);
        check(without, &cases[i], false, WICK_F32, 4 + i);
    }
    wick_device_close(without);
}

static void nothing_at_all(void **state) {
    wick_device *const device = device_of(state);
    const wick_scope scope = wick_scope_begin(device);
    wick_tensor *const bias = wick_ones(device, WICK_F16, WICK_SHAPE(3));
    wick_tensor *const none = wick_zeros(device, WICK_F16, WICK_SHAPE(2, 0, 5));
    wick_tensor *const y =
        wick_conv1d(none, wick_zeros(device, WICK_F16, WICK_SHAPE(3, 0, 2)), bias, NULL);
    assert_shape(y, WICK_SHAPE(2, 3, 4));
    double ones[24];
    for (int i = 0; i < 24; i++) ones[i] = 1;
    assert_close(y, ones, 0);
    wick_scope_end(scope);
}

/* What refuses conv2d of x [1, 4, 5, 5] and weight [6, 4, 3, 3]. */
static void bad_input(void **state) {
    wick_device *const device = device_of(state);
    const wick_scope scope = wick_scope_begin(device);
    wick_tensor *const x = random_tensor(device, WICK_F32, WICK_SHAPE(1, 4, 5, 5), 1);
    wick_tensor *const w = random_tensor(device, WICK_F32, WICK_SHAPE(6, 4, 3, 3), 2);
    static const struct {
        wick_status status;
        wick_conv_desc desc;
    } descs[] = {
        {WICK_ERR_VALUE, {.stride = {-1}}},        {WICK_ERR_VALUE, {.padding = {0, -1}}},
        {WICK_ERR_VALUE, {.dilation = {-2}}},      {WICK_ERR_VALUE, {.groups = -1}},
        {WICK_ERR_VALUE, {.stride = {INT64_MAX}}}, {WICK_ERR_VALUE, {.output_padding = {1}}},
        {WICK_ERR_SHAPE, {.groups = 2}},           {WICK_ERR_SHAPE, {.groups = 4}},
        {WICK_ERR_SHAPE, {.dilation = {3}}},
    };
    for (size_t i = 0; i < WK_COUNT(descs); i++)
        assert_refused(device, wick_conv2d(x, w, NULL, &descs[i].desc), descs[i].status);
    wick_tensor *const wide = wick_cast(x, WICK_F64), *const whole = wick_cast(x, WICK_I32);
    assert_refused(device, wick_conv2d(wide, w, NULL, NULL), WICK_ERR_DTYPE);
    assert_refused(device, wick_conv2d(whole, whole, NULL, NULL), WICK_ERR_DTYPE);
    assert_refused(device, wick_conv1d(x, w, NULL, NULL), WICK_ERR_SHAPE);
    assert_refused(device, wick_conv3d(x, w, NULL, NULL), WICK_ERR_SHAPE);
    assert_refused(device, wick_conv2d(x, w, wick_ones(device, WICK_F32, WICK_SHAPE(5)), NULL),
                   WICK_ERR_SHAPE);
    assert_refused(device, wick_conv_transpose2d(x, w, NULL, NULL), WICK_ERR_SHAPE);
    const wick_conv_desc padded = {.padding = {9, 9}};
    wick_tensor *const turned = random_tensor(device, WICK_F32, WICK_SHAPE(4, 6, 3, 3), 3);
    assert_refused(device, wick_conv_transpose2d(x, turned, NULL, &padded), WICK_ERR_SHAPE);
    assert_null(wick_conv2d(NULL, w, NULL, NULL));
    assert_null(wick_conv2d(x, NULL, NULL, NULL));
    assert_int_equal(wick_device_error(device, NULL), WICK_OK);
    wick_scope_end(scope);
}

/* Views that repeat one element: products of their extents are beyond 64 bits. */
static void huge_views(void **state) {
    wick_device *const device = device_of(state);
    static const wick_dtype dtypes[] = {WICK_F32, WICK_F64};
    const int64_t many = INT64_C(1) << 30, some = 1 << 15, few = 1 << 14;
    for (size_t i = 0; i < WK_COUNT(dtypes); i++) {
        const wick_scope scope = wick_scope_begin(device);
        wick_tensor *const one = wick_ones(device, dtypes[i], WICK_SCALAR);
        wick_tensor *x = wick_expand(one, WICK_SHAPE(1, many, some + 1, some + 1));
        wick_tensor *w = wick_expand(one, WICK_SHAPE(4, many, some, some));
        assert_true(x != NULL && w != NULL);
        assert_refused(device, wick_conv2d(x, w, NULL, NULL), WICK_ERR_SHAPE);
        x = wick_expand(one, WICK_SHAPE(1, 1, few, few));
        w = wick_expand(one, WICK_SHAPE(1, 8 * many, few, few));
        assert_refused(device, wick_conv_transpose2d(x, w, NULL, NULL), WICK_ERR_SHAPE);
        /* One element with more padding than memory could hold. */
        const wick_conv_desc desc = {.padding = {INT32_MAX, INT32_MAX, INT32_MAX},
                                     .stride = {INT32_MAX, INT32_MAX, INT32_MAX}};
        x = wick_expand(one, WICK_SHAPE(1, 1, 1, 1, 1));
        assert_refused(device, wick_conv3d(x, x, NULL, &desc), WICK_ERR_SHAPE);
        wick_scope_end(scope);
    }
}

/* Nothing is left where memory ends at any allocation. */
static void out_of_memory(void **state) {
    fixture *const f = *state;
    wick_tensor *const x = random_tensor(f->device, WICK_F32, WICK_SHAPE(2, 4, 5, 5), 1);
    wick_tensor *const w = random_tensor(f->device, WICK_F32, WICK_SHAPE(6, 2, 3, 3), 2);
    wick_tensor *const b = random_tensor(f->device, WICK_F32, WICK_SHAPE(6), 3);
    const wick_conv_desc desc = {.padding = {1, 1}, .groups = 2};
    for (uint64_t allowed = 0;; allowed++) {
        f->allowed = allowed;
        wick_tensor *const y = wick_conv2d(x, w, b, &desc);
        const wick_status status = y ? wick_synchronize(f->device) : WICK_ERR_OUT_OF_MEMORY;
        f->allowed = UINT64_MAX;
        (void)wick_device_error(f->device, NULL);
        wick_release(y);
        if (status == WICK_OK) break;
        assert_int_equal(status, WICK_ERR_OUT_OF_MEMORY);
    }
    wick_release(b);
    wick_release(w);
    wick_release(x);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(random_ones), TEST(long_depthwise), TEST(in_pieces),     TEST(nothing_at_all),
        TEST(bad_input),   TEST(huge_views),     TEST(out_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
