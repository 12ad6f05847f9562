/* Decoding of weights: against the reference decoder's output, bit for bit, and by hand. */
#include "quant/block.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "core/half.h"
#include "checked_heap.h"
#include "fixture_file.h"
#include "format/gguf_parse.h"

#include <string.h>

/* What can be decoded and is not float32, with its name in quant_vectors.gguf. */
static const struct {
    wick_dtype dtype;
    const char *name;
} types[] = {
    {WICK_F16, "f16"},   {WICK_BF16, "bf16"}, {WICK_Q4_0, "q4_0"}, {WICK_Q4_1, "q4_1"},
    {WICK_Q8_0, "q8_0"}, {WICK_Q4_K, "q4_K"}, {WICK_Q6_K, "q6_K"},
};

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
        check_type(wk_gguf_parser_result(parser), &file, types[i].dtype, types[i].name);
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

static void test_others_are_refused(void **state) {
    (void)state;
    for (int i = 0; i < WICK_DTYPE_COUNT_; i++) {
        bool is_decoded = i == WICK_F32;
        for (size_t j = 0; j < WK_COUNT(types); j++)
            is_decoded = is_decoded || types[j].dtype == (wick_dtype)i;
        assert_int_equal(wk_decoder((wick_dtype)i) != NULL, is_decoded);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reference_vectors), cmocka_unit_test(test_floats),
        cmocka_unit_test(test_every_f16),         cmocka_unit_test(test_small_blocks),
        cmocka_unit_test(test_k_blocks),          cmocka_unit_test(test_others_are_refused),
    };
    return cmocka_run_group_tests_name("decode", tests, NULL, NULL);
}
