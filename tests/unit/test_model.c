/* Models from headers: what is right is described, what is wrong is refused with the key's or
 * tensor's name, and nothing is believed before it was checked. */
#include "model/model.h"
#include "format/gguf_parse.h"
#include "model/rope.h"
#include "model/weight_table.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "checked_heap.h"
#include "small_model.h"

#include <math.h>

static checked_heap checked;

typedef struct made {
    wk_gguf_parser *parser;
    wk_model *model; /* NULL on failure */
    wick_status status;
    wick_error error;
} made;

/* Sizes of tensors are not checked against a file's, as in a stream. */
static made make(const small_model *small) {
    static gguf_bytes file;
    small_write(small, false, &file);
    made out = {.model = NULL};
    assert_int_equal(wk_gguf_parser_make(&checked.heap, WICK_SIZE_UNKNOWN, &out.parser, &out.error),
                     WICK_OK);
    if (wk_gguf_parser_feed(out.parser, file.data, file.size, NULL, &out.error) != WICK_OK)
        fail_msg("%s", out.error.message);
    out.status =
        wk_model_make(&checked.heap, wk_gguf_parser_result(out.parser), &out.model, &out.error);
    assert_true((out.status == WICK_OK) == (out.model != NULL));
    assert_int_equal(out.error.status, out.status);
    return out;
}

static void drop(made *it) {
    wk_model_free(it->model);
    wk_gguf_parser_free(it->parser);
}

static int begin(void **state) {
    (void)state;
    checked_heap_init(&checked, UINT64_MAX);
    return 0;
}

static int end(void **state) {
    (void)state;
    return checked_heap_is_clean(&checked) ? 0 : -1;
}

/* The sentence must hold text. */
static void expect(const small_model *small, wick_status status, const char *text) {
    made it = make(small);
    if (it.status != status || strstr(it.error.message, text) == NULL)
        fail_msg("expected status %d and '%s', got %d: %s", (int)status, text, (int)it.status,
                 it.error.message);
    drop(&it);
}

static void test_defaults(void **state) {
    (void)state;
    const small_model small = small_model_make();
    made it = make(&small);
    assert_int_equal(it.status, WICK_OK);
    const wk_hparams *const hparams = wk_model_hparams(it.model);
    assert_string_equal(hparams->architecture, "llama");
    assert_string_equal(hparams->name, "small");
    assert_int_equal(hparams->n_layers, SMALL_LAYERS);
    assert_int_equal(hparams->n_embd, SMALL_EMBD);
    assert_int_equal(hparams->n_vocab, SMALL_VOCAB);
    assert_int_equal(hparams->head_dim, 4);
    assert_int_equal(hparams->head_dim_v, 4);
    assert_int_equal(hparams->n_ropes, 1);
    assert_int_equal(hparams->rope[0].n_pairs, 2);
    assert_true(hparams->rope[0].magnitude == 1.0);
    assert_true(fabs(hparams->rope[0].frequency[1] - 0.01) < 1e-15);
    assert_int_equal(wk_state_bytes(it.model, 0, &(wk_cache_desc){3, 16, WICK_F16, 0, 1}),
                     3 * 16 * 8 * 2 * SMALL_LAYERS);
    assert_true(wk_model_activation_bytes(it.model, 2) ==
                2 * wk_model_activation_bytes(it.model, 1));

    float cosines[4], sines[4];
    wk_rope_rows(&hparams->rope[0], (wk_rope_positions){(const uint32_t[]){0, 100}, 2, 16}, cosines,
                 sines);
    assert_true(cosines[0] == 1.0F && cosines[1] == 1.0F && sines[0] == 0.0F && sines[1] == 0.0F);
    assert_true(cosines[2] == (float)cos(100.0) && sines[3] == (float)sin(1.0));
    drop(&it);
}

/* Each layer is in one stage; the table in the first, the output in the last. */
static void test_stages(void **state) {
    (void)state;
    small_model small = small_model_make();
    made it = make(&small);
    const wk_placement placement = {.stages = {{.first = 0, .count = 1}, {.first = 1, .count = 1}},
                                    .n_stages = 2};
    static const struct {
        const char *name;
        bool is_in[2];
    } tensors[] = {{"token_embd.weight", {true, true}}, /* tied */
                   {"output_norm.weight", {false, true}},
                   {"blk.0.attn_q.weight", {true, false}},
                   {"blk.1.attn_q.weight", {false, true}}};
    wk_model_place(it.model, &placement);
    for (size_t i = 0; i < sizeof tensors / sizeof *tensors; i++) {
        const wick_file_tensor *const tensor =
            wk_gguf_find_tensor(wk_gguf_parser_result(it.parser), tensors[i].name);
        assert_non_null(tensor);
        for (uint32_t s = 0; s < 2; s++)
            assert_int_equal(wk_model_weight_uses(it.model, tensor, s) != 0, tensors[i].is_in[s]);
    }
    drop(&it);
}

static void test_uses(void **state) {
    (void)state;
    small_model small = small_model_make();
    small_add_tensor(&small, "rope_freqs.weight", 2, 0);
    for (int is_tied = 1; is_tied >= 0; is_tied--) {
        made it = make(&small);
        assert_int_equal(it.status, WICK_OK);
        const wk_gguf *const gguf = wk_gguf_parser_result(it.parser);
        const wick_file_tensor *const embedding = wk_gguf_find_tensor(gguf, "token_embd.weight");
        const uint32_t uses = WK_USE_EMBEDDING | (is_tied ? (uint32_t)WK_USE_LINEAR : 0);
        assert_int_equal(wk_model_weight_uses(it.model, embedding, 0), uses);
        assert_null(wk_model_host_weight(it.model, embedding));
        const wick_file_tensor *const divisors = wk_gguf_find_tensor(gguf, "rope_freqs.weight");
        assert_int_equal(wk_model_weight_uses(it.model, divisors, 0), 0);
        assert_non_null(wk_model_host_weight(it.model, divisors));
        drop(&it);
        small_add_tensor(&small, "output.weight", SMALL_VOCAB, SMALL_EMBD);
    }
}

static void test_required_keys(void **state) {
    (void)state;
    static const char *const keys[] = {
        "general.architecture",
        "llama.block_count",
        "llama.context_length",
        "llama.embedding_length",
        "llama.feed_forward_length",
        "llama.attention.head_count",
        "llama.attention.layer_norm_rms_epsilon",
    };
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        small_model small = small_model_make();
        small_remove(&small, keys[i]);
        expect(&small, WICK_ERR_FORMAT, keys[i]);
    }
    small_model small = small_model_make();
    small_remove(&small, "llama.attention.head_count_kv");
    expect(&small, WICK_ERR_FORMAT, "attn_k.weight"); /* as many as query heads */
    small_remove(&small, "general.name");
    small_set_u32(&small, "llama.attention.head_count_kv", 1);
    expect(&small, WICK_OK, "");
}

/* Keys whose value is a number, those that may be absent included. */
static const char *const numeric_keys[] = {
    "llama.block_count",
    "llama.context_length",
    "llama.embedding_length",
    "llama.feed_forward_length",
    "llama.attention.head_count",
    "llama.attention.head_count_kv",
    "llama.attention.key_length",
    "llama.attention.value_length",
    "llama.attention.sliding_window",
    "llama.attention.layer_norm_rms_epsilon",
    "llama.rope.dimension_count",
    "llama.rope.freq_base",
    "llama.rope.scaling.factor",
    "llama.rope.scale_linear",
    "llama.expert_count",
};

static void test_wrong_types(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof numeric_keys / sizeof numeric_keys[0]; i++) {
        small_model small = small_model_make();
        small_set_text(&small, numeric_keys[i], "8");
        expect(&small, WICK_ERR_FORMAT, numeric_keys[i]);
        small_set(&small, numeric_keys[i], WICK_VALUE_BOOL, 1);
        expect(&small, WICK_ERR_FORMAT, numeric_keys[i]);
    }
    static const char *const texts[] = {"general.architecture", "general.name",
                                        "llama.rope.scaling.type"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        small_model small = small_model_make();
        small_set_u32(&small, texts[i], 8);
        expect(&small, WICK_ERR_FORMAT, texts[i]);
    }
}

/* Nothing but a status may come of any number in any key. */
static void test_extreme_numbers(void **state) {
    (void)state;
    static const uint64_t numbers[] = {0,         1,          3,         7,          1000,
                                       1U << 22,  INT32_MAX,  1U << 31,  UINT32_MAX, 1ULL << 32,
                                       INT64_MAX, 1ULL << 63, UINT64_MAX};
    for (size_t i = 0; i < sizeof numeric_keys / sizeof numeric_keys[0]; i++) {
        for (size_t n = 0; n < sizeof numbers / sizeof numbers[0]; n++) {
            static const wick_value_type types[] = {WICK_VALUE_U64, WICK_VALUE_I64, WICK_VALUE_F64,
                                                    WICK_VALUE_U32, WICK_VALUE_I32, WICK_VALUE_F32};
            for (size_t t = 0; t < sizeof types / sizeof types[0]; t++) {
                small_model small = small_model_make();
                small_set(&small, numeric_keys[i], types[t], numbers[n]);
                made it = make(&small);
                assert_true(it.status == WICK_OK || it.error.message[0] != '\0');
                drop(&it);
            }
        }
    }
}

static void test_contradictions(void **state) {
    (void)state;
    static const struct {
        const char *key;
        uint32_t number;
        const char *text;
    } cases[] = {
        {"llama.block_count", 0, "llama.block_count"},
        {"llama.block_count", 1U << 31, "'llama.block_count' is 2147483648"},
        {"llama.block_count", 1, "'blk.1.attn_norm.weight' is not known"},
        {"llama.block_count", 3, "no tensor 'blk.2.attn_norm.weight'"},
        {"llama.embedding_length", 0, "llama.embedding_length"},
        {"llama.embedding_length", 9, "'llama.attention.key_length' is missing"},
        {"llama.embedding_length", 16,
         "'token_embd.weight' has the shape [6, 8], but must have "
         "[6, 16]"},
        {"llama.attention.head_count", 0, "llama.attention.head_count"},
        {"llama.attention.head_count_kv", 0, "llama.attention.head_count_kv"},
        {"llama.attention.head_count_kv", 3, "llama.attention.head_count_kv"},
        {"llama.attention.key_length", 0, "llama.attention.key_length"},
        {"llama.attention.key_length", 1U << 22, "too much for heads"},
        {"llama.rope.dimension_count", 0, "llama.rope.dimension_count"},
        {"llama.rope.dimension_count", 3, "must be even"},
        {"llama.rope.dimension_count", 6, "from 2 to 4"},
        {"llama.expert_count", 4, "llama.expert_used_count"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        small_model small = small_model_make();
        small_set_u32(&small, cases[i].key, cases[i].number);
        made it = make(&small);
        assert_true(it.status == WICK_ERR_FORMAT || it.status == WICK_ERR_UNSUPPORTED);
        if (strstr(it.error.message, cases[i].text) == NULL)
            fail_msg("'%s' lacks '%s'", it.error.message, cases[i].text);
        drop(&it);
    }
    small_model small = small_model_make();
    small_set_u32(&small, "llama.attention.head_count", 3);
    small_set_u32(&small, "llama.attention.head_count_kv", 2);
    small_set_u32(&small, "llama.attention.key_length", 4);
    expect(&small, WICK_ERR_FORMAT, "no multiple of 2 heads");
}

static void test_arrays(void **state) {
    (void)state;
    small_model small = small_model_make();
    small_entry *const heads = small_find(&small, "llama.attention.head_count_kv");
    *heads = (small_entry){.type = WICK_VALUE_ARRAY, .number = 1, .n = SMALL_LAYERS};
    snprintf(heads->key, sizeof heads->key, "llama.attention.head_count_kv");
    expect(&small, WICK_OK, "");
    heads->n = 3;
    expect(&small, WICK_ERR_FORMAT, "has 3 elements for 2 blocks");
    heads->n = 0;
    expect(&small, WICK_ERR_FORMAT, "has 0 elements for 2 blocks");
}

static void test_rope_scaling(void **state) {
    (void)state;
    small_model small = small_model_make();
    small_set_f32(&small, "llama.rope.scale_linear", 4.0F);
    made it = make(&small);
    assert_true(wk_model_hparams(it.model)->rope[0].frequency[0] == 0.25);
    drop(&it);

    small_set_text(&small, "llama.rope.scaling.type", "none");
    it = make(&small);
    assert_true(wk_model_hparams(it.model)->rope[0].frequency[0] == 1.0);
    drop(&it);

    small_set_f32(&small, "llama.rope.scaling.factor", 0.0F); /* none */
    it = make(&small);
    assert_true(wk_model_hparams(it.model)->rope[0].frequency[0] == 1.0);
    drop(&it);
    small_set_f32(&small, "llama.rope.scaling.factor", -1.0F);
    expect(&small, WICK_ERR_FORMAT, "'llama.rope.scaling.factor' is -1");
    small_set_f32(&small, "llama.rope.scaling.factor", NAN);
    expect(&small, WICK_ERR_FORMAT, "'llama.rope.scaling.factor' is not finite");
    small_set_f32(&small, "llama.rope.scaling.factor", 4.0F);
    small_set_text(&small, "llama.rope.scaling.type", "dynamic");
    expect(&small, WICK_ERR_UNSUPPORTED, "'dynamic'");

    small_set_text(&small, "llama.rope.scaling.type", "yarn");
    it = make(&small); /* where the file does not say it, the context is the original one */
    assert_int_equal(wk_model_hparams(it.model)->rope[0].original_context, 16);
    drop(&it);
    small_set_u32(&small, "llama.rope.scaling.original_context_length", 0);
    expect(&small, WICK_ERR_FORMAT, "llama.rope.scaling.original_context_length");
    small_set_u32(&small, "llama.rope.scaling.original_context_length", 32);
    small_set_f32(&small, "llama.rope.scaling.attn_factor", 2.0F);
    it = make(&small);
    assert_true(fabs(wk_model_hparams(it.model)->rope[0].magnitude - 2.0 * (1.0 + 0.1 * log(4.0))) <
                1e-15);
    drop(&it);
    small_set_f32(&small, "llama.rope.scaling.yarn_ext_factor", 0.5F);
    expect(&small, WICK_ERR_UNSUPPORTED, "yarn_ext_factor");
}

static void test_tensors(void **state) {
    (void)state;
    const small_model whole = small_model_make();
    for (int i = 0; i < whole.n_tensors; i++) {
        const char *const name = whole.tensors[i].name;
        small_model small = whole;
        small_remove_tensor(&small, name);
        expect(&small, WICK_ERR_FORMAT, name);

        small = whole;
        small.tensors[i].extents[0]++;
        expect(&small, WICK_ERR_FORMAT, name);

        small = whole;
        small.tensors[i].type = 26; /* i32 */
        expect(&small, WICK_ERR_UNSUPPORTED, name);
    }
    small_model small = whole;
    small_find_tensor(&small, "blk.0.attn_q.weight")->extents[0] = 256;
    small_find_tensor(&small, "blk.0.attn_q.weight")->type = 13;
    expect(&small, WICK_ERR_FORMAT, "has the shape [8, 256], but must have [8, 8]");

    static const char *const unknown[] = {"blk.0.attn_q_norm.weight",
                                          "blk.2.attn_norm.weight",
                                          "blk.00.attn_norm.weight",
                                          "blk..attn_norm.weight",
                                          "blk.99999999999999999999.attn_norm.weight",
                                          "blk.0",
                                          "blk.",
                                          "",
                                          "output_norm.weight "};
    for (size_t i = 0; i < sizeof unknown / sizeof unknown[0]; i++) {
        small = whole;
        small_add_tensor(&small, unknown[i], 8, 0);
        expect(&small, WICK_ERR_UNSUPPORTED, "is not known in a model");
    }
    small = whole;
    small_add_tensor(&small, "rope_freqs.weight", 3, 0);
    expect(&small, WICK_ERR_FORMAT, "rope_freqs.weight");
}

static void test_families(void **state) {
    (void)state;
    small_model small = small_model_make();
    small_set_text(&small, "general.architecture", "transmogrifier");
    expect(&small, WICK_ERR_UNSUPPORTED, "'transmogrifier'");
    small_set_text(&small, "general.architecture", "");
    expect(&small, WICK_ERR_UNSUPPORTED, "''");
}

/* Every allocation fails once; nothing leaks. */
static void test_no_memory(void **state) {
    (void)state;
    small_model small = small_model_make();
    small_add_tensor(&small, "rope_freqs.weight", 2, 0);
    static gguf_bytes file;
    small_write(&small, false, &file);
    bool is_enough = false;
    for (uint64_t n = 0; !is_enough; n++) {
        checked_heap poor;
        checked_heap_init(&poor, n);
        wk_gguf_parser *parser = NULL;
        wk_model *model = NULL;
        wick_error error = {.status = WICK_OK};
        wick_status status = wk_gguf_parser_make(&poor.heap, WICK_SIZE_UNKNOWN, &parser, &error);
        if (status == WICK_OK)
            status = wk_gguf_parser_feed(parser, file.data, file.size, NULL, &error);
        if (status == WICK_OK)
            status = wk_model_make(&poor.heap, wk_gguf_parser_result(parser), &model, &error);
        is_enough = status == WICK_OK;
        assert_true(is_enough || status == WICK_ERR_OUT_OF_MEMORY);
        wk_model_free(model);
        wk_gguf_parser_free(parser);
        assert_true(checked_heap_is_clean(&poor));
    }
}

/* A name means a weight of the model as a whole, and in its one spelling. */
static void test_names(void **state) {
    (void)state;
    static const struct {
        const char *name;
        bool is_known, is_bias;
    } names[] = {
        {"token_embd.weight", true, false},
        {"output_norm.weight", true, false},
        {"blk.0.attn_q.weight", true, false},
        {"blk.1.ffn_down.weight", true, false},
        {"blk.1.attn_q.bias", true, true},
        {"blk.0.attn_qx.bias", false, false}, /* longer, and shorter */
        {"blk.0.attn_.bias", false, false},
        {"blk.0.attn_qx.weight", false, false},
        {"blk.0.attn_norm.bias", false, false}, /* RMSNorm has none */
        {"blk.2.attn_q.weight", false, false},
        {"blk.00.attn_q.weight", false, false},
        {"blk.0.attn_q", false, false},
        {"blk.0.", false, false},
        {"blk.attn_q.weight", false, false},
        {"attn_q.weight", false, false},
        {"blk.0.token_embd.weight", false, false},
        {"", false, false},
    };
    const small_model small = small_model_make();
    made it = make(&small);
    for (size_t i = 0; i < WK_COUNT(names); i++) {
        const char *const name = names[i].name;
        const wk_weight_place at = wk_weight_find(it.model, (wick_string){name, strlen(name)});
        if ((at.id != 0) != names[i].is_known || (at.id != 0 && at.is_bias != names[i].is_bias))
            fail_msg("'%s': weight %d, bias %d", name, at.id, at.is_bias);
    }
    drop(&it);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_defaults),       cmocka_unit_test(test_uses),
        cmocka_unit_test(test_stages),         cmocka_unit_test(test_required_keys),
        cmocka_unit_test(test_wrong_types),    cmocka_unit_test(test_extreme_numbers),
        cmocka_unit_test(test_contradictions), cmocka_unit_test(test_arrays),
        cmocka_unit_test(test_rope_scaling),   cmocka_unit_test(test_tensors),
        cmocka_unit_test(test_families),       cmocka_unit_test(test_names),
        cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
