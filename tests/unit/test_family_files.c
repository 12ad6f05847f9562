/* Whole files whose tensors are written otherwise than usual, or not all of them. */
#include "unit/described.h"

static wick_status make(const small_model *small, wk_gguf_parser **parser, wk_model **model,
                        wick_error *error) {
    *parser = parse(small);
    return wk_model_make(&checked.heap, wk_gguf_parser_result(*parser), model, error);
}

static void direction(void **state) {
    (void)state;
    wk_gguf_parser *parser;
    wk_model *model;
    wick_error error = {.status = WICK_OK};
    small_model small = small_model_make();
    small_set(&small, "llama.attention.causal", WICK_VALUE_BOOL, 0);
    assert_int_equal(make(&small, &parser, &model, &error), WICK_OK);
    assert_true(wk_model_hparams(model)->is_bidirectional);
    wk_model_free(model);
    wk_gguf_parser_free(parser);

    small = small_model_of("mamba");
    small_set_u32(&small, "mamba.ssm.conv_kernel", 4);
    small_set_u32(&small, "mamba.ssm.inner_size", 16);
    small_set_u32(&small, "mamba.ssm.time_step_rank", 2);
    small_set_u32(&small, "mamba.ssm.state_size", 4);
    small_set(&small, "mamba.attention.causal", WICK_VALUE_BOOL, 0);
    assert_int_equal(make(&small, &parser, &model, &error), WICK_ERR_UNSUPPORTED);
    assert_non_null(strstr(error.message, "mamba.attention.causal"));
    wk_gguf_parser_free(parser);
}

/* Programs that write files again drop the slowest extent where it is 1. */
static void dropped_extents(void **state) {
    (void)state;
    wk_gguf_parser *parser;
    wk_model *model;
    wick_error error = {.status = WICK_OK};
    small_model small = small_model_make();
    small_set_u32(&small, "llama.attention.key_length", 1);
    small_set_u32(&small, "llama.attention.value_length", 1);
    expect_refused(&small, "llama.rope.dimension_count");
    small = small_model_make();
    small_set_u32(&small, "llama.feed_forward_length", 1);
    for (int i = 0; i < SMALL_LAYERS; i++) {
        static const char *const names[] = {"gate", "up"};
        for (size_t j = 0; j < WK_COUNT(names); j++) {
            char name[64];
            snprintf(name, sizeof name, "blk.%d.ffn_%s.weight", i, names[j]);
            small_find_tensor(&small, name)->rank = 1; /* [1, SMALL_EMBD] */
        }
        char name[64];
        snprintf(name, sizeof name, "blk.%d.ffn_down.weight", i);
        small_find_tensor(&small, name)->extents[0] = 1;
    }
    assert_int_equal(make(&small, &parser, &model, &error), WICK_OK);
    wk_model_free(model);
    wk_gguf_parser_free(parser);
}

/* Keys and values of a layer that sees those of another one are left alone. */
static void superseded_weights(void **state) {
    (void)state;
    wk_gguf_parser *parser;
    wk_model *model;
    wick_error error = {.status = WICK_OK};
    small_model small = small_model_of("gemma4");
    small_set_u32(&small, "gemma4.attention.shared_kv_layers", 1);
    for (int i = 0; i < SMALL_LAYERS; i++) {
        static const char *const norms[] = {"post_attention_norm", "post_ffw_norm"};
        static const char *const heads[] = {"attn_q_norm", "attn_k_norm"};
        for (size_t j = 0; j < WK_COUNT(norms); j++) {
            char name[64];
            snprintf(name, sizeof name, "blk.%d.%s.weight", i, norms[j]);
            small_add_tensor(&small, name, SMALL_EMBD, 0);
            snprintf(name, sizeof name, "blk.%d.%s.weight", i, heads[j]);
            small_add_tensor(&small, name, 4, 0);
        }
    }
    const wick_status status = make(&small, &parser, &model, &error);
    if (status != WICK_OK) fail_msg("%s", error.message);
    assert_true(model->layers[1].spec.attention.is_kv_shared);
    wk_model_free(model);
    wk_gguf_parser_free(parser);
    small_add_tensor(&small, "blk.1.attn_kv.weight", 4, 0);
    assert_int_equal(make(&small, &parser, &model, &error), WICK_ERR_UNSUPPORTED);
    wk_gguf_parser_free(parser);
}

static void refuses(const small_model *small, const char *missing) {
    wk_gguf_parser *parser;
    wk_model *model;
    wick_error error = {.status = WICK_OK};
    assert_int_equal(make(small, &parser, &model, &error), WICK_ERR_FORMAT);
    assert_non_null(strstr(error.message, missing));
    wk_gguf_parser_free(parser);
}

static void takes(const small_model *small) {
    wk_gguf_parser *parser;
    wk_model *model;
    wick_error error = {.status = WICK_OK};
    assert_int_equal(make(small, &parser, &model, &error), WICK_OK);
    wk_model_free(model);
    wk_gguf_parser_free(parser);
}

/* What one layer has, its like have, too. */
static void biases_of_some_layers(void **state) {
    (void)state;
    small_model small = small_model_make();
    small_add_tensor(&small, "blk.1.ffn_up.bias", SMALL_FF, 0);
    refuses(&small, "'blk.0.ffn_up.bias'");
    small_add_tensor(&small, "blk.0.ffn_up.bias", SMALL_FF, 0);
    takes(&small);
    small = small_model_of("command-r");
    small_set_f32(&small, "command-r.attention.layer_norm_epsilon", 1e-5F);
    small_set_f32(&small, "command-r.logit_scale", 1.0F);
    for (int i = 0; i < SMALL_LAYERS; i++) {
        char name[64];
        snprintf(name, sizeof name, "blk.%d.ffn_norm.weight", i);
        small_remove_tensor(&small, name);
    }
    takes(&small);
    small_add_tensor(&small, "output_norm.bias", SMALL_EMBD, 0);
    refuses(&small, "'blk.0.attn_norm.bias'");
}

/* And what a family has in all of its files. */
static void biases_of_families(void **state) {
    (void)state;
    static const char letters[] = "qkv";
    small_model small = small_model_of("qwen2");
    for (int i = 0; i < 3 * SMALL_LAYERS; i++) {
        char name[64];
        snprintf(name, sizeof name, "blk.%d.attn_%c.bias", i / 3, letters[i % 3]);
        refuses(&small, name);
        small_add_tensor(&small, name, i % 3 == 0 ? SMALL_EMBD : SMALL_EMBD / 2, 0);
    }
    takes(&small);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(direction, begin, end),
        cmocka_unit_test_setup_teardown(dropped_extents, begin, end),
        cmocka_unit_test_setup_teardown(superseded_weights, begin, end),
        cmocka_unit_test_setup_teardown(biases_of_some_layers, begin, end),
        cmocka_unit_test_setup_teardown(biases_of_families, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
