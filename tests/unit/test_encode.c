/* Encoding of weights: no worse than the reference encoder's blocks, and sane on odd input. */
#include "quant/encode.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "core/compiler.h"
#include "core/rng.h"
#include "checked_heap.h"
#include "fixture_file.h"
#include "format/gguf_parse.h"
#include "quant/block.h"
#include "quant/encode_block.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* tensor: the name in the fixtures. */
static const struct {
    wick_dtype dtype;
    const char *tensor;
} types[] = {
    {WICK_F16, "f16"},       {WICK_BF16, "bf16"},     {WICK_Q4_0, "q4_0"},   {WICK_Q4_1, "q4_1"},
    {WICK_Q5_0, "q5_0"},     {WICK_Q5_1, "q5_1"},     {WICK_Q8_0, "q8_0"},   {WICK_Q2_K, "q2_K"},
    {WICK_Q3_K, "q3_K"},     {WICK_Q4_K, "q4_K"},     {WICK_Q5_K, "q5_K"},   {WICK_Q6_K, "q6_K"},
    {WICK_IQ4_NL, "iq4_nl"}, {WICK_IQ4_XS, "iq4_xs"}, {WICK_MXFP4, "mxfp4"},
};

enum { N = 512 };

/* The sum of w (x - x')^2 after encoding and decoding x; w NULL: all 1. */
static double error_of(const float *x, const float *decoded, const float *w, size_t n) {
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        const double e = (double)x[i] - (double)decoded[i];
        sum += e * e * (w != NULL ? (double)w[i] : 1);
    }
    return sum;
}

/* Encodes to an odd address and decodes. */
static void round_trip(wick_dtype dtype, const float *x, const float *importance, float *decoded,
                       size_t n) {
    uint64_t size = 0;
    assert_true(wk_dtype_bytes(dtype, (int64_t)n, &size));
    uint8_t *const blocks = malloc((size_t)size + 1);
    assert_non_null(blocks);
    wk_encode(dtype, x, importance, blocks + 1, (int64_t)n);
    wk_decoder(dtype)(blocks + 1, decoded, (int64_t)n);
    free(blocks);
}

/* The types of caches without the search: half a step of the scale that the extreme element asks
 * for, one step where the other end of the levels is nearer to 0; and no input is dangerous. */
static void test_quick(void **state) {
    (void)state;
    static const wick_dtype quick[] = {WICK_Q8_0, WICK_Q4_0};
    static const float odd[] = {NAN, INFINITY, -INFINITY, FLT_MAX, -FLT_MAX, 1e-40F, 0, -0.0F};
    wk_rng rng = {.seed = 3};
    for (size_t t = 0; t < WK_COUNT(quick); t++) {
        const float n_levels = quick[t] == WICK_Q8_0 ? 127 : 8;
        assert_true(wk_can_encode_quickly(quick[t]));
        float x[64], decoded[64];
        uint8_t blocks[2 * 34 + 1];
        for (int run = 0; run < 100; run++) {
            float largest[2] = {0};
            for (int j = 0; j < 64; j++) {
                x[j] = (wk_rng_uniform(&rng) - 0.5F) * (float)(1 + run);
                largest[j / 32] = fmaxf(largest[j / 32], fabsf(x[j]));
            }
            wk_encode_quickly(quick[t], x, blocks + 1, 64);
            wk_decoder(quick[t])(blocks + 1, decoded, 64);
            for (int j = 0; j < 64; j++)
                assert_true(fabsf(x[j] - decoded[j]) <= 1.002F * largest[j / 32] / n_levels);
        }
        for (size_t i = 0; i < WK_COUNT(odd); i++) {
            for (int j = 0; j < 32; j++) x[j] = j % 3 == 0 ? odd[i] : 1;
            wk_encode_quickly(quick[t], x, blocks + 1, 32);
            wk_decoder(quick[t])(blocks + 1, decoded, 32);
            for (int j = 0; j < 32; j++) assert_true(isfinite(decoded[j]));
        }
        memset(x, 0, sizeof x);
        wk_encode_quickly(quick[t], x, blocks + 1, 32);
        wk_decoder(quick[t])(blocks + 1, decoded, 32);
        for (int j = 0; j < 32; j++) assert_true(decoded[j] == 0);
    }
    assert_false(wk_can_encode_quickly(WICK_F16));
}

static void test_reference_errors(void **state) {
    (void)state;
    fixture_file file;
    if (!fixture_read("WICK_SHARED_DATA", "quant/quant_vectors.gguf", &file)) skip();
    checked_heap checked;
    checked_heap_init(&checked, UINT64_MAX);
    wk_gguf_parser *parser = NULL;
    assert_int_equal(wk_gguf_parser_make(&checked.heap, file.size, &parser, NULL), WICK_OK);
    assert_int_equal(wk_gguf_parser_feed(parser, file.data, file.size, NULL, NULL), WICK_OK);
    const wk_gguf *const gguf = wk_gguf_parser_result(parser);
    const wick_file_tensor *const source = wk_gguf_find_tensor(gguf, "source.f32");
    const float *const x = (const float *)(const void *)(file.data + source->offset);
    float *const decoded = malloc(source->size);
    assert_non_null(decoded);
    const size_t n = source->size / sizeof *x;
    for (size_t i = 0; i < WK_COUNT(types); i++) {
        char name[32];
        snprintf(name, sizeof name, "%s.f32", types[i].tensor);
        const wick_file_tensor *const reference = wk_gguf_find_tensor(gguf, name);
        round_trip(types[i].dtype, x, NULL, decoded, n);
        const void *const expected = file.data + reference->offset;
        const double ours = error_of(x, decoded, NULL, n), theirs = error_of(x, expected, NULL, n);
        printf("%-7s rms error %.6f, reference %.6f\n", types[i].tensor, sqrt(ours / (double)n),
               sqrt(theirs / (double)n));
        assert_true(ours <= theirs);
    }
    free(decoded);
    wk_gguf_parser_free(parser);
    assert_true(checked_heap_is_clean(&checked));
    free(file.data);
}

/* Sums of 4 uniform numbers: near enough to a normal distribution. */
static void fill_random(float *x, size_t n, uint64_t seed) {
    wk_rng rng = {.seed = seed};
    for (size_t i = 0; i < n; i++) {
        x[i] = -2;
        for (int k = 0; k < 4; k++) x[i] += wk_rng_uniform(&rng);
    }
}

/* Zeros stay zeros. */
static void test_zeros(void **state) {
    (void)state;
    const float x[N] = {0};
    float decoded[N];
    for (size_t i = 0; i < WK_COUNT(types); i++) {
        round_trip(types[i].dtype, x, NULL, decoded, N);
        for (int j = 0; j < N; j++) assert_true(decoded[j] == 0);
    }
}

/* A number of either sign and of any size comes back within 1.5 %. */
static void test_constants(void **state) {
    (void)state;
    static const float values[] = {1, -1, 0.017F, -123.4F, 60000, -60000, 3e-3F};
    float x[N], decoded[N];
    for (size_t i = 0; i < WK_COUNT(types); i++) {
        for (size_t v = 0; v < WK_COUNT(values); v++) {
            for (int j = 0; j < N; j++) x[j] = values[v];
            round_trip(types[i].dtype, x, NULL, decoded, N);
            const float tolerance = types[i].dtype == WICK_MXFP4 ? 0.25F : 0.015F;
            for (int j = 0; j < N; j++)
                assert_true(fabsf(decoded[j] - x[j]) <= tolerance * fabsf(x[j]));
        }
    }
}

/* As large as the type holds: finite, and of the right magnitude; as small as can be: an error of
 * a few of the smallest steps that there are. */
static void test_extremes(void **state) {
    (void)state;
    float x[N], decoded[N], base[N];
    fill_random(base, N, 7);
    for (size_t i = 0; i < WK_COUNT(types); i++) {
        const wick_dtype dtype = types[i].dtype;
        float largest = FLT_MAX;
        while (wk_find_unencodable(dtype, &largest, 1) < 1) largest *= 0.75F;
        for (int j = 0; j < N; j++) x[j] = base[j] / 2 * largest;
        round_trip(dtype, x, NULL, decoded, N);
        for (int j = 0; j < N; j++)
            assert_true(isfinite(decoded[j]) && fabsf(decoded[j] - x[j]) <= 0.5F * largest);
        for (int e = -149; e < -20; e += 3) {
            for (int j = 0; j < N; j++) x[j] = ldexpf(base[j], e);
            round_trip(dtype, x, NULL, decoded, N);
            for (int j = 0; j < N; j++)
                assert_true(fabsf(decoded[j] - x[j]) <= fmaxf(0.8F * ldexpf(1, e), 0x1p-21F));
        }
    }
}

static void test_unencodable(void **state) {
    (void)state;
    float x[200];
    fill_random(x, WK_COUNT(x), 1);
    for (size_t i = 0; i < WK_COUNT(types); i++) {
        const wick_dtype dtype = types[i].dtype;
        assert_int_equal(wk_find_unencodable(dtype, x, 200), 200);
        const float bad[] = {NAN, INFINITY, -INFINITY};
        for (size_t k = 0; k < WK_COUNT(bad); k++) {
            float y[200];
            memcpy(y, x, sizeof y);
            y[199] = bad[k];
            assert_int_equal(wk_find_unencodable(dtype, y, 200), 199);
            y[70] = bad[k];
            assert_int_equal(wk_find_unencodable(dtype, y, 200), 70);
        }
    }
    const float large[] = {65519.0F, 65520.0F};
    assert_int_equal(wk_find_unencodable(WICK_F16, large, 2), 1);
    const float larger[] = {8 * 65504.0F, -9 * 65504.0F};
    assert_int_equal(wk_find_unencodable(WICK_Q4_0, larger, 2), 1);
    assert_false(wk_can_encode(WICK_IQ1_S));
    assert_false(wk_can_encode(WICK_I32));
    assert_true(wk_can_encode(WICK_F32));
}

/* What matters more gets a smaller error, at the cost of the rest; channels that do not matter at
 * all are encoded as if they did. */
static void test_importance(void **state) {
    (void)state;
    float x[N], w[N], plain[N], weighted[N];
    fill_random(x, N, 3);
    for (size_t i = 0; i < WK_COUNT(types); i++) {
        const wick_dtype dtype = types[i].dtype;
        for (int j = 0; j < N; j++) w[j] = j % 4 == 0 ? 1e4F : 1e-2F;
        round_trip(dtype, x, NULL, plain, N);
        round_trip(dtype, x, w, weighted, N);
        assert_true(error_of(x, weighted, w, N) <= error_of(x, plain, w, N) * 1.0001);
        if (wk_dtype_is_block(dtype) && dtype != WICK_MXFP4)
            assert_true(error_of(x, weighted, w, N) < 0.95 * error_of(x, plain, w, N));
        memset(w, 0, sizeof w);
        round_trip(dtype, x, w, weighted, N);
        assert_memory_equal(weighted, plain, sizeof plain);
    }
}

/* When two elements of a block alone matter, a scale and a minimum give both exactly, except for
 * their own rounding to f16: 2^-11 of the minimum (up to 2) and of the distance from it (up to 4).
 */
static void test_two_that_matter(void **state) {
    (void)state;
    static const wick_dtype dtypes[] = {WICK_Q4_1, WICK_Q5_1};
    float x[N], w[N], decoded[N];
    fill_random(x, N, 7);
    for (int j = 0; j < N; j++) w[j] = j % 16 == 3 ? 1 : 0;
    for (size_t i = 0; i < WK_COUNT(dtypes); i++) {
        round_trip(dtypes[i], x, w, decoded, N);
        for (int j = 3; j < N; j += 16) assert_true(fabsf(decoded[j] - x[j]) < 0.004F);
    }
}

/* The error falls with the bits: of a normal distribution, as a share of its deviation. No figure
 * leaves room for a search that tries one scale less. */
static void test_rates(void **state) {
    (void)state;
    static const struct {
        wick_dtype dtype;
        double most;
    } rates[] = {
        {WICK_Q8_0, 0.00453},   {WICK_Q6_K, 0.01575},   {WICK_Q5_K, 0.03313},  {WICK_Q5_1, 0.03248},
        {WICK_Q5_0, 0.03793},   {WICK_Q4_K, 0.06742},   {WICK_Q4_1, 0.06720},  {WICK_Q4_0, 0.07665},
        {WICK_IQ4_NL, 0.07210}, {WICK_IQ4_XS, 0.07268}, {WICK_MXFP4, 0.10995}, {WICK_Q3_K, 0.13827},
        {WICK_Q2_K, 0.25508},
    };
    static float x[64 * N], decoded[64 * N];
    fill_random(x, WK_COUNT(x), 11);
    const double total = error_of(x, decoded, NULL, WK_COUNT(x)); /* decoded is 0 */
    for (size_t i = 0; i < WK_COUNT(rates); i++) {
        round_trip(rates[i].dtype, x, NULL, decoded, WK_COUNT(x));
        const double share = sqrt(error_of(x, decoded, NULL, WK_COUNT(x)) / total);
        assert_true(share < rates[i].most);
    }
}

static float nearest_whole(float x) { return roundf(x); }

/* Of steps that are as good the first, so that an encoding is the same everywhere. */
static void test_equal_steps(void **state) {
    (void)state;
    static const float x[4] = {0, 1, 2, 3}, w[4] = {1, 1, 1, 1}, minimum[WK_TRIES] = {0};
    const wk_group group = {.x = x, .w = w, .n = 4, .nearest = nearest_whole, .peak = 3};
    float step[WK_TRIES], least = -1;
    for (int first = 0; first < WK_TRIES - 1; first++) {
        for (int t = 0; t < WK_TRIES; t++) step[t] = t < first ? 0.75F : t == first ? 1 : 0.5F;
        assert_int_equal(wk_choose_step(group, step, minimum, &least), first);
        assert_true(least == 0);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_quick),      cmocka_unit_test(test_reference_errors),
        cmocka_unit_test(test_zeros),      cmocka_unit_test(test_constants),
        cmocka_unit_test(test_extremes),   cmocka_unit_test(test_unencodable),
        cmocka_unit_test(test_importance), cmocka_unit_test(test_two_that_matter),
        cmocka_unit_test(test_rates),      cmocka_unit_test(test_equal_steps),
    };
    return cmocka_run_group_tests_name("encode", tests, NULL, NULL);
}
