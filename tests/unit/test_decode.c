/* Decoding of weights: against the reference decoder's output, bit for bit, and by hand. */
#include "quant/block.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "core/dtype.h"
#include "core/half.h"
#include "checked_heap.h"
#include "fixture_file.h"
#include "format/gguf_parse.h"
#include "quant/decode.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* The types of quant_vectors.gguf. */
static const wick_dtype types[] = {
    WICK_F16,     WICK_BF16,  WICK_Q4_0,   WICK_Q4_1,  WICK_Q5_0,  WICK_Q5_1,    WICK_Q8_0,
    WICK_Q2_K,    WICK_Q3_K,  WICK_Q4_K,   WICK_Q5_K,  WICK_Q6_K,  WICK_IQ2_XXS, WICK_IQ2_XS,
    WICK_IQ3_XXS, WICK_IQ1_S, WICK_IQ4_NL, WICK_IQ3_S, WICK_IQ2_S, WICK_IQ4_XS,  WICK_IQ1_M,
    WICK_TQ1_0,   WICK_TQ2_0, WICK_MXFP4,  WICK_NVFP4, WICK_Q1_0,  WICK_Q2_0,
};

/* The name in the file: as ours, except for the K of q2_K to q6_K. */
static const char *name_in_file(wick_dtype dtype) {
    switch (dtype) {
    case WICK_Q2_K: return "q2_K";
    case WICK_Q3_K: return "q3_K";
    case WICK_Q4_K: return "q4_K";
    case WICK_Q5_K: return "q5_K";
    case WICK_Q6_K: return "q6_K";
    default: return wick_dtype_name(dtype);
    }
}

static void check_type(const wk_gguf *gguf, const fixture_file *file, wick_dtype dtype,
                       const char *blocks_name) {
    char name[32];
    const wick_file_tensor *const blocks = wk_gguf_find_tensor(gguf, blocks_name);
    snprintf(name, sizeof name, "%s.f32", blocks_name);
    const wick_file_tensor *const expected = wk_gguf_find_tensor(gguf, name);
    assert_non_null(blocks);
    assert_non_null(expected);
    assert_int_equal(blocks->dtype, dtype);

    float *const decoded = malloc(expected->size);
    assert_non_null(decoded);
    wk_decoder(dtype)(file->data + blocks->offset, decoded, (int64_t)(expected->size / 4));
    assert_memory_equal(decoded, file->data + expected->offset, expected->size);

    /* Once more from an odd address: blocks in a file are not aligned. */
    uint8_t *const shifted = malloc(blocks->size + 1);
    assert_non_null(shifted);
    memcpy(shifted + 1, file->data + blocks->offset, blocks->size);
    memset(decoded, 0, expected->size);
    wk_decoder(dtype)(shifted + 1, decoded, (int64_t)(expected->size / 4));
    assert_memory_equal(decoded, file->data + expected->offset, expected->size);
    free(shifted);
    free(decoded);
}

static void test_reference_vectors(void **state) {
    (void)state;
    fixture_file file;
    if (!fixture_read("WICK_SHARED_DATA", "quant/quant_vectors.gguf", &file)) skip();
    checked_heap checked;
    checked_heap_init(&checked, UINT64_MAX);
    wk_gguf_parser *parser = NULL;
    assert_int_equal(wk_gguf_parser_make(&checked.heap, file.size, &parser, NULL), WICK_OK);
    assert_int_equal(wk_gguf_parser_feed(parser, file.data, file.size, NULL, NULL), WICK_OK);
    for (size_t i = 0; i < WK_COUNT(types); i++)
        check_type(wk_gguf_parser_result(parser), &file, types[i], name_in_file(types[i]));
    wk_gguf_parser_free(parser);
    assert_true(checked_heap_is_clean(&checked));
    free(file.data);
}

static void test_floats(void **state) {
    (void)state;
    float out[4];
    const uint16_t f16[4] = {0x3c00, 0xc000, 0x0001, 0x7c00};
    wk_decoder(WICK_F16)(f16, out, 4);
    assert_true(out[0] == 1.0f && out[1] == -2.0f && out[2] == 0x1p-24f && out[3] > 3.4e38f);
    const uint16_t bf16[2] = {0x3f80, 0xc040};
    wk_decoder(WICK_BF16)(bf16, out, 2);
    assert_true(out[0] == 1.0f && out[1] == -3.0f);
    const float f32[2] = {0.1f, -7.0f};
    wk_decoder(WICK_F32)(f32, out, 2);
    assert_true(out[0] == 0.1f && out[1] == -7.0f);
    wk_decoder(WICK_F32)(f32, out, 0);
    assert_true(out[0] == 0.1f);
}

static void test_every_f16(void **state) {
    (void)state;
    static uint16_t halves[1 << 16];
    static float out[1 << 16];
    for (size_t i = 0; i < WK_COUNT(halves); i++) halves[i] = (uint16_t)i;
    wk_decoder(WICK_F16)(halves, out, WK_COUNT(halves));
    for (size_t i = 0; i < WK_COUNT(halves); i++)
        assert_int_equal(wk_f32_bits(out[i]), wk_f32_bits(wk_f16_to_f32(halves[i])));
}

/* Blocks of known content: scale 0.5 (and minimum 0.25 where there is one). */
static void test_small_blocks(void **state) {
    (void)state;
    float out[64];
    uint8_t q4_0[18] = {0x00, 0x38};
    q4_0[2] = 0xf0;  /* element 0: 0 - 8, element 16: 15 - 8 */
    q4_0[17] = 0x9a; /* element 15: 10 - 8, element 31: 9 - 8 */
    wk_decoder(WICK_Q4_0)(q4_0, out, 32);
    assert_true(out[0] == -4.0f && out[16] == 3.5f && out[15] == 1.0f && out[31] == 0.5f);

    uint8_t q4_1[40] = {0x00, 0x38, 0x00, 0x34};
    q4_1[4] = 0x2f;
    q4_1[20 + 1] = 0x3c; /* second block: scale 1, minimum 0 */
    q4_1[20 + 19] = 0x70;
    wk_decoder(WICK_Q4_1)(q4_1, out, 64);
    assert_true(out[0] == 7.75f && out[16] == 1.25f && out[1] == 0.25f);
    assert_true(out[32 + 31] == 7.0f && out[32 + 15] == 0.0f);

    uint8_t q8_0[34] = {0x00, 0x38, 0x80, 0x7f};
    wk_decoder(WICK_Q8_0)(q8_0, out, 32);
    assert_true(out[0] == -64.0f && out[1] == 63.5f && out[31] == 0.0f);
}

static void test_k_blocks(void **state) {
    (void)state;
    float out[256];
    uint8_t q4_k[144] = {0x00, 0x3c, 0x00, 0x3c};                /* d = dmin = 1 */
    q4_k[4] = 3, q4_k[8] = 2;                                    /* sub-block 0: 3 q - 2 */
    q4_k[4 + 3] = 0x40, q4_k[4 + 7] = 0x80, q4_k[4 + 11] = 0x51; /* 7: (16 + 1) q - (32 + 5) */
    q4_k[16] = 0x04;
    q4_k[143] = 0xf0;
    wk_decoder(WICK_Q4_K)(q4_k, out, 256);
    assert_true(out[0] == 10.0f && out[1] == -2.0f && out[32] == 0.0f);
    assert_true(out[255] == 17.0f * 15.0f - 37.0f && out[254] == -37.0f);

    uint8_t q6_k[210] = {0};
    q6_k[209] = 0x3c;                   /* d = 1 */
    q6_k[192] = 2, q6_k[207] = 0xff;    /* scales 2 and -1 */
    q6_k[0] = 0x07, q6_k[128] = 0x01;   /* element 0: 7 + 16 - 32 */
    q6_k[127] = 0xf0, q6_k[191] = 0xc0; /* element 255: 15 + 48 - 32 */
    wk_decoder(WICK_Q6_K)(q6_k, out, 256);
    assert_true(out[0] == -18.0f && out[1] == -64.0f && out[16] == 0.0f);
    assert_true(out[255] == -31.0f && out[254] == 32.0f);
}

/* Scales and bits of the types that no real file is needed for. */
static void test_other_blocks(void **state) {
    (void)state;
    float out[256];
    uint8_t q8_1[36] = {0x00, 0x38, 0xff, 0xff, 0x80, 0x7f}; /* the sum is not looked at */
    wk_decoder(WICK_Q8_1)(q8_1, out, 32);
    assert_true(out[0] == -64.0f && out[1] == 63.5f && out[31] == 0.0f);

    uint8_t q8_k[292] = {0x00, 0x00, 0x40, 0x40}; /* d = 3 */
    q8_k[4] = 0x80, q8_k[259] = 5, q8_k[260] = 0xff;
    wk_decoder(WICK_Q8_K)(q8_k, out, 256);
    assert_true(out[0] == -384.0f && out[1] == 0.0f && out[255] == 15.0f);

    uint8_t mxfp4[17] = {127, 0x91}; /* 2^0 */
    wk_decoder(WICK_MXFP4)(mxfp4, out, 32);
    assert_true(out[0] == 0.5f && out[16] == -0.5f && out[1] == 0.0f);
    mxfp4[0] = 0; /* 2^-127 */
    mxfp4[1] = 0x7f;
    wk_decoder(WICK_MXFP4)(mxfp4, out, 32);
    assert_true(out[0] == -6 * 0x1p-127f && out[16] == 6 * 0x1p-127f);
    mxfp4[0] = 1;
    wk_decoder(WICK_MXFP4)(mxfp4, out, 32);
    assert_true(out[0] == -6 * 0x1p-126f);

    uint8_t nvfp4[36] = {0x38, 0x01, 0x7f, 0x7e}; /* 1, 2^-9, NaN as 0, 448 */
    for (size_t i = 4; i < sizeof nvfp4; i++) nvfp4[i] = 0x2f;
    wk_decoder(WICK_NVFP4)(nvfp4, out, 64);
    assert_true(out[0] == -6.0f && out[8] == 1.0f && out[16] == -6 * 0x1p-9f);
    assert_true(out[32] == 0.0f && out[48] == -6 * 448.0f && out[63] == 448.0f);
}

static uint64_t fnv_1a(uint64_t hash, uint32_t word) {
    for (int i = 0; i < 4; i++) hash = (hash ^ (word >> 8 * i & 255)) * UINT64_C(0x100000001b3);
    return hash;
}

/* Random bytes reach every entry of every grid, every scale and every sign. The sums were made with
 * ggml's decoders; NaN (a scale of random bits may be one) counts without its bits. */
static void test_random_blocks(void **state) {
    (void)state;
    enum { N_BLOCKS = 1024, MAX_BYTES = 292, MAX_ELEMENTS = 256 };
    static const uint64_t expected[WICK_DTYPE_COUNT_] = {
        [WICK_Q4_0] = UINT64_C(0x977b75ef80765d53),    [WICK_Q4_1] = UINT64_C(0x53ab4344abbe9aca),
        [WICK_Q5_0] = UINT64_C(0x023a8fdd115caf84),    [WICK_Q5_1] = UINT64_C(0x639ee195acef00bf),
        [WICK_Q8_0] = UINT64_C(0xf092429e9f0dc8b9),    [WICK_Q8_1] = UINT64_C(0x82c0d301080c4f4b),
        [WICK_Q2_K] = UINT64_C(0x9a12676e5f56090e),    [WICK_Q3_K] = UINT64_C(0x9a97c09d8c14d18d),
        [WICK_Q4_K] = UINT64_C(0xe254eb153d190fab),    [WICK_Q5_K] = UINT64_C(0xfa4e32726a187aee),
        [WICK_Q6_K] = UINT64_C(0x471f35ab97b980dd),    [WICK_Q8_K] = UINT64_C(0x866dc3d598febf17),
        [WICK_IQ2_XXS] = UINT64_C(0xd44c04f28b4e35f8), [WICK_IQ2_XS] = UINT64_C(0xab66e95f65a36ebf),
        [WICK_IQ3_XXS] = UINT64_C(0x456c26e4d79e2cc0), [WICK_IQ1_S] = UINT64_C(0x448d1520356d2d46),
        [WICK_IQ4_NL] = UINT64_C(0x5c0b1e9458afb825),  [WICK_IQ3_S] = UINT64_C(0xd6460853395b5027),
        [WICK_IQ2_S] = UINT64_C(0x2ad92c449cc33b0b),   [WICK_IQ4_XS] = UINT64_C(0xa2126c59f88a950c),
        [WICK_IQ1_M] = UINT64_C(0x9aff612255763729),   [WICK_TQ1_0] = UINT64_C(0x0cb725a877be2869),
        [WICK_TQ2_0] = UINT64_C(0xf262a26373374005),   [WICK_MXFP4] = UINT64_C(0xf4c3cd0986b972ca),
        [WICK_NVFP4] = UINT64_C(0x75f7e539fbe14e9a),   [WICK_Q1_0] = UINT64_C(0x22e07b59053eac25),
        [WICK_Q2_0] = UINT64_C(0x5aa3bde4190f5d46),
    };
    static uint8_t blocks[N_BLOCKS * MAX_BYTES];
    static float out[N_BLOCKS * MAX_ELEMENTS];
    uint32_t random = 1;
    for (size_t i = 0; i < sizeof blocks; i++) {
        random = random * 1664525 + 1013904223;
        blocks[i] = (uint8_t)(random >> 24);
    }
    for (wick_dtype dtype = WICK_Q4_0; dtype <= WICK_Q2_0; dtype++) {
        const int64_t n = (int64_t)wk_dtype_get(dtype)->block_elements * N_BLOCKS;
        wk_decoder(dtype)(blocks, out, n);
        uint64_t hash = UINT64_C(0xcbf29ce484222325);
        for (int64_t i = 0; i < n; i++)
            hash = fnv_1a(hash, isnan(out[i]) ? 0x7fc00000 : wk_f32_bits(out[i]));
        if (hash != expected[dtype]) fail_msg("%s: 0x%016" PRIx64, wick_dtype_name(dtype), hash);
    }
}

/* A row is read block by block: the list of the decoders has the sizes of the table of types. */
static void test_block_sizes(void **state) {
    (void)state;
#define CHECK_SIZE(dtype, name, elements, bytes)                                                   \
    assert_string_equal(wick_dtype_name(dtype), #name);                                            \
    assert_int_equal(wk_dtype_get(dtype)->block_elements, elements);                               \
    assert_int_equal(wk_dtype_get(dtype)->block_bytes, bytes);
    WK_BLOCK_TYPES(CHECK_SIZE)
}

static void test_who_is_decoded(void **state) {
    (void)state;
    for (wick_dtype i = 0; i < WICK_DTYPE_COUNT_; i++) {
        const bool is_small_float = i == WICK_F32 || i == WICK_F16 || i == WICK_BF16;
        assert_int_equal(wk_decoder(i) != NULL, is_small_float || wk_dtype_is_block(i));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reference_vectors), cmocka_unit_test(test_floats),
        cmocka_unit_test(test_every_f16),         cmocka_unit_test(test_small_blocks),
        cmocka_unit_test(test_k_blocks),          cmocka_unit_test(test_other_blocks),
        cmocka_unit_test(test_random_blocks),     cmocka_unit_test(test_block_sizes),
        cmocka_unit_test(test_who_is_decoded),
    };
    return cmocka_run_group_tests_name("decode", tests, NULL, NULL);
}
