/* What families make of keys that say little: numbers that a file leaves out, switches, and names
 * of functions; and files whose tensors are written otherwise than usual. */
#include "model/families.h"

#include "core/status.h"
#include "format/gguf_parse.h"
#include "model/model_struct.h"
#include "model/rope.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "checked_heap.h"
#include "small_model.h"

#include <math.h>

static checked_heap checked;

static int begin(void **state) {
    (void)state;
    checked_heap_init(&checked, UINT64_MAX);
    return 0;
}

static int end(void **state) {
    (void)state;
    return checked_heap_is_clean(&checked) ? 0 : -1;
}

static wk_gguf_parser *parse(const small_model *small) {
    static gguf_bytes file;
    wk_gguf_parser *parser;
    wick_error error = {.status = WICK_OK};
    small_write(small, false, &file);
    assert_int_equal(wk_gguf_parser_make(&checked.heap, WICK_SIZE_UNKNOWN, &parser, &error),
                     WICK_OK);
    assert_int_equal(wk_gguf_parser_feed(parser, file.data, file.size, NULL, &error), WICK_OK);
    return parser;
}

/* What a family makes of a header, for any tensors. */
typedef struct description {
    wk_gguf_parser *parser;
    wk_arena arena;
    wk_hparams hparams;
    wk_layer_spec layers[40];
    wick_error error;
} description;

static wick_status describe(const small_model *small, description *out) {
    *out = (description){.parser = parse(small)};
    const wk_gguf *const gguf = wk_gguf_parser_result(out->parser);
    wk_str architecture;
    const wk_family *family;
    wk_arena_init(&out->arena, &checked.heap, 0);
    WK_TRY(wk_metadata_general(gguf, "general.architecture", true, &architecture, &out->error));
    WK_TRY(wk_family_find(architecture, &family, &out->error));
    const wk_metadata meta = {.gguf = gguf,
                              .arena = &out->arena,
                              .architecture = family->architecture,
                              .err = &out->error};
    out->hparams.norm = family->norm;
    WK_TRY(wk_hparams_read(&meta, &out->hparams));
    assert_true(out->hparams.n_layers <= WK_COUNT(out->layers));
    return family->describe(&meta, &out->hparams, out->layers);
}

static void drop(description *of) {
    wk_arena_release(&of->arena);
    wk_gguf_parser_free(of->parser);
}

static void describe_well(const small_model *small, description *out) {
    const wick_status status = describe(small, out);
    if (status != WICK_OK) fail_msg("%s", out->error.message);
}

static void expect_refused(const small_model *small, const char *text) {
    description found;
    const wick_status status = describe(small, &found);
    if (status == WICK_OK || strstr(found.error.message, text) == NULL)
        fail_msg("expected '%s', got %d: %s", text, (int)status, found.error.message);
    drop(&found);
}

static void first_gemma2_files(void **state) {
    (void)state;
    description found;
    small_model small = small_model_of("gemma2");
    describe_well(&small, &found);
    assert_int_equal(found.layers[0].attention.window, 4096);
    assert_int_equal(found.layers[1].attention.window, 0);
    assert_true(found.layers[0].attention.softcap == 50.0F);
    assert_true(found.hparams.logit_softcap == 30.0F);
    drop(&found);
    small_set_f32(&small, "gemma2.attn_logit_softcapping", -1.0F);
    expect_refused(&small, "gemma2.attn_logit_softcapping");
}

/* Of frequency i of a rope of the base; 2 pairs. */
static void check_base(const wk_rope *rope, double base) {
    assert_int_equal(rope->n_pairs, 2);
    assert_true(fabs(rope->frequency[1] - pow(base, -0.5)) < 1e-9);
}

static void bases_of_windows(void **state) {
    static const struct {
        const char *architecture;
        double base; /* of layers with a window, where the file says but one */
    } cases[] = {{"olmo2", 70000.0}, {"gemma3", 10000.0}, {"gemma4", 10000.0}};
    (void)state;
    for (size_t i = 0; i < WK_COUNT(cases); i++) {
        description found;
        char key[64];
        small_model small = small_model_of(cases[i].architecture);
        snprintf(key, sizeof key, "%s.attention.sliding_window", cases[i].architecture);
        small_set_u32(&small, key, 4);
        snprintf(key, sizeof key, "%s.attention.sliding_window_pattern", cases[i].architecture);
        small_set_u32(&small, key, 2);
        snprintf(key, sizeof key, "%s.rope.freq_base", cases[i].architecture);
        small_set_f32(&small, key, 70000.0F);
        describe_well(&small, &found);
        assert_int_equal(found.hparams.n_ropes, 2);
        check_base(&found.hparams.rope[found.layers[0].attention.rope], cases[i].base);
        check_base(&found.hparams.rope[found.layers[1].attention.rope], 70000.0);
        drop(&found);
    }
}

/* A rotary embedding for layers that are not there is none. */
static void gemma4_without_windows(void **state) {
    (void)state;
    description found;
    small_model small = small_model_of("gemma4");
    small_set_u32(&small, "gemma4.rope.dimension_count_swa", 64);
    describe_well(&small, &found);
    assert_int_equal(found.hparams.n_ropes, 1);
    assert_int_equal(found.layers[1].attention.rope, 0);
    drop(&found);
}

static void granite_without_positions(void **state) {
    (void)state;
    description found;
    small_model small = small_model_of("granite");
    describe_well(&small, &found);
    assert_int_equal(found.hparams.n_ropes, 1);
    assert_int_equal(found.layers[0].attention.rope, 0);
    drop(&found);
    small_set(&small, "granite.rope.scaling.finetuned", WICK_VALUE_BOOL, 0);
    describe_well(&small, &found);
    assert_int_equal(found.hparams.n_ropes, 0);
    assert_int_equal(found.layers[0].attention.rope, WK_NO_ROPE);
    drop(&found);
}

static void kinds_of_llama4(void **state) {
    (void)state;
    description found;
    small_model small = small_model_of("llama4");
    small_set_u32(&small, "llama4.block_count", 4);
    small_set_u32(&small, "llama4.context_length", 1 << 20);
    small_set_u32(&small, "llama4.expert_count", 16);
    small_set_u32(&small, "llama4.expert_used_count", 1);
    describe_well(&small, &found);
    assert_int_equal(found.layers[0].attention.qk_norm, WK_QK_NORM_PLAIN);
    assert_int_equal(found.layers[3].attention.rope, WK_NO_ROPE);
    assert_int_equal(found.hparams.context_length, 8192);
    drop(&found);
    small_set_u32(&small, "llama4.expert_count", 128);
    small_set_u32(&small, "llama4.attention.sliding_window", 0);
    describe_well(&small, &found);
    assert_int_equal(found.layers[0].attention.qk_norm, WK_QK_NORM_NONE);
    assert_int_equal(found.layers[3].attention.rope, 0);
    assert_int_equal(found.hparams.context_length, 1 << 20);
    drop(&found);
}

/* gpt-oss mixes where others would have whole pairs: the ramp ends at 4 ln(64 / 2 pi) / ln(1e4) =
 * 1.008, so that pair 1 is turned by nearly, but not quite a quarter of its frequency. */
static void ramp_of_gpt_oss(void **state) {
    static const char *const architectures[] = {"gpt-oss", "llama"};
    double frequency[2];
    (void)state;
    for (size_t i = 0; i < WK_COUNT(architectures); i++) {
        description found;
        char key[64];
        small_model small = small_model_of(architectures[i]);
        snprintf(key, sizeof key, "%s.attention.key_length", architectures[i]);
        small_set_u32(&small, key, 8);
        snprintf(key, sizeof key, "%s.rope.scaling.type", architectures[i]);
        small_set_text(&small, key, "yarn");
        snprintf(key, sizeof key, "%s.rope.scaling.factor", architectures[i]);
        small_set_f32(&small, key, 4.0F);
        snprintf(key, sizeof key, "%s.rope.scaling.original_context_length", architectures[i]);
        small_set_u32(&small, key, 64);
        snprintf(key, sizeof key, "%s.expert_count", architectures[i]);
        small_set_u32(&small, key, 0);
        describe_well(&small, &found);
        frequency[i] = found.hparams.rope[0].frequency[1];
        drop(&found);
    }
    const double plain = pow(1e4, -0.25),
                 end_of_ramp = 4.0 * log(64.0 / 6.283185307179586) / log(1e4);
    const double exact = 1.0 / end_of_ramp, whole = 1.0 / ceil(end_of_ramp);
    assert_true(fabs(frequency[0] - plain * (1.0 - 0.75 * exact)) < 1e-9);
    assert_true(fabs(frequency[1] - plain * (1.0 - 0.75 * whole)) < 1e-9);
}

/* The ramp's borders are whole pairs: of 4 pairs it begins at the floor of
 * 4 ln(4096 / (32 2 pi)) / ln(1e4) = 1.3 and ends at the ceiling of
 * 4 ln(4096 / 2 pi) / ln(1e4) = 2.8. */
static void ramp_of_yarn(void **state) {
    static const double kept[] = {1.0, 1.0, 0.5, 0.0}; /* share of the frequency without scaling */
    (void)state;
    description found;
    small_model small = small_model_make();
    small_set_u32(&small, "llama.attention.key_length", 8);
    small_set_text(&small, "llama.rope.scaling.type", "yarn");
    small_set_f32(&small, "llama.rope.scaling.factor", 4.0F);
    small_set_u32(&small, "llama.rope.scaling.original_context_length", 4096);
    describe_well(&small, &found);
    const wk_rope *const rope = &found.hparams.rope[0];
    assert_int_equal(rope->n_pairs, WK_COUNT(kept));
    for (size_t i = 0; i < WK_COUNT(kept); i++) {
        const double plain = pow(1e4, -0.25 * (double)i);
        assert_true(fabs(rope->frequency[i] / plain - (0.25 + 0.75 * kept[i])) < 1e-9);
    }
    drop(&found);
}

/* The long divisors are for contexts that are longer than the original one, not as long. */
static void border_of_long_divisors(void **state) {
    (void)state;
    static double one = 1.0;
    wk_rope rope = {.n_pairs = 1, .frequency = &one, .long_frequency = &one};
    rope.original_context = 4096;
    assert_false(wk_rope_is_long(&rope, 4095));
    assert_false(wk_rope_is_long(&rope, 4096));
    assert_true(wk_rope_is_long(&rope, 4097));
    rope.long_frequency = NULL;
    assert_false(wk_rope_is_long(&rope, 4097));
}

static void functions_of_modern_bert(void **state) {
    static const struct {
        const char *name;
        wk_activation activation;
    } cases[] = {{"gelu", WK_ACTIVATION_GELU_ERF},
                 {"gelu_pytorch_tanh", WK_ACTIVATION_GELU},
                 {"silu", WK_ACTIVATION_SILU},
                 {"relu", WK_ACTIVATION_RELU}};
    (void)state;
    description found;
    small_model small = small_model_of("modern-bert");
    describe_well(&small, &found);
    assert_int_equal(found.layers[0].mlp.activation, WK_ACTIVATION_GELU_ERF);
    drop(&found);
    for (size_t i = 0; i < WK_COUNT(cases); i++) {
        small_set_text(&small, "modern-bert.hidden_activation", cases[i].name);
        describe_well(&small, &found);
        assert_int_equal(found.layers[0].mlp.activation, cases[i].activation);
        drop(&found);
    }
    small_set_text(&small, "modern-bert.hidden_activation", "mish");
    expect_refused(&small, "'mish'");
}

static void clamp_of_mpt(void **state) {
    (void)state;
    description found;
    small_model small = small_model_of("mpt");
    small_set_f32(&small, "mpt.attention.clamp_kqv", 0.5F);
    describe_well(&small, &found);
    assert_true(found.layers[1].attention.clamp == 0.5F);
    drop(&found);
    small_set_f32(&small, "mpt.attention.clamp_kqv", -0.5F);
    expect_refused(&small, "mpt.attention.clamp_kqv");
}

/* Layers after the last are counted where the file has a number for each. */
static void layers_ahead(void **state) {
    (void)state;
    description found;
    small_model small = small_model_of("bailingmoe2");
    small_set_u32(&small, "bailingmoe2.block_count", 4);
    small_set_u32(&small, "bailingmoe2.nextn_predict_layers", 1);
    small_entry *const widths = small_find(&small, "bailingmoe2.feed_forward_length");
    widths->type = WICK_VALUE_ARRAY;
    widths->n = 4;
    describe_well(&small, &found);
    assert_int_equal(found.hparams.n_layers, 3);
    assert_int_equal(found.layers[2].mlp.n_ff, SMALL_FF);
    drop(&found);
    widths->n = 3;
    expect_refused(&small, "bailingmoe2.feed_forward_length");
    small_set_u32(&small, "bailingmoe2.nextn_predict_layers", 4);
    expect_refused(&small, "bailingmoe2.nextn_predict_layers");
}

static void set_u32(small_model *small, const char *architecture, const char *key,
                    uint32_t number) {
    char whole[64];
    snprintf(whole, sizeof whole, "%s.%s", architecture, key);
    small_set_u32(small, whole, number);
}

/* Of 4 experts in every layer but the first. */
static small_model mixture(const char *architecture) {
    small_model small = small_model_of(architecture);
    set_u32(&small, architecture, "block_count", 3);
    set_u32(&small, architecture, "expert_count", 4);
    set_u32(&small, architecture, "expert_used_count", 2);
    set_u32(&small, architecture, "leading_dense_block_count", 1);
    return small;
}

static void mixtures(void **state) {
    static const struct {
        const char *architecture;
        wk_gating gating;
        bool is_normalized;
        uint32_t n_ff_shared;
        wk_qk_norm qk_norm;
        bool is_interleaved, is_normed_after_rope;
    } cases[] = {
        {"deepseek", WK_GATING_SOFTMAX, false, 0, WK_QK_NORM_NONE, true, false},
        {"bailingmoe", WK_GATING_SOFTMAX, false, 0, WK_QK_NORM_NONE, true, false},
        {"ernie4_5-moe", WK_GATING_SOFTMAX, true, 0, WK_QK_NORM_NONE, true, false},
        {"olmoe", WK_GATING_SOFTMAX, false, 0, WK_QK_NORM_CHANNELS, false, false},
        {"bailingmoe2", WK_GATING_SIGMOID, false, 0, WK_QK_NORM_HEAD, false, false},
        {"dots1", WK_GATING_SIGMOID, false, 0, WK_QK_NORM_HEAD, false, false},
        {"hunyuan-moe", WK_GATING_SOFTMAX, true, SMALL_FF, WK_QK_NORM_HEAD, false, true},
        {"lfm2moe", WK_GATING_SIGMOID, true, 0, WK_QK_NORM_HEAD, false, false},
    };
    (void)state;
    for (size_t c = 0; c < WK_COUNT(cases); c++) {
        description found;
        small_model small = mixture(cases[c].architecture);
        small_set_u32(&small, "lfm2moe.shortconv.l_cache", 3);
        describe_well(&small, &found);
        for (int i = 0; i < 3; i++) {
            const wk_layer_spec *const layer = &found.layers[i];
            const wk_channels_kind kind = i == 0 ? WK_CHANNELS_MLP : WK_CHANNELS_EXPERTS;
            assert_int_equal(layer->channels, kind);
            assert_int_equal(layer->attention.qk_norm, cases[c].qk_norm);
            assert_int_equal(layer->attention.is_rope_interleaved, cases[c].is_interleaved);
            assert_int_equal(layer->attention.is_normed_after_rope, cases[c].is_normed_after_rope);
            if (i == 0) continue;
            assert_int_equal(layer->experts.gating, cases[c].gating);
            assert_int_equal(layer->experts.is_normalized, cases[c].is_normalized);
            assert_int_equal(layer->experts.n_ff_shared, cases[c].n_ff_shared);
            assert_int_equal(layer->experts.n_used, 2);
        }
        drop(&found);
    }
}

/* Its smaller models norm no heads. */
static void norms_of_glm(void **state) {
    (void)state;
    description found;
    small_model small = mixture("glm4moe");
    small_add_tensor(&small, "blk.0.attn_q_norm.weight", 4, 0);
    small_add_tensor(&small, "blk.2.attn_q_norm.weight", 4, 0);
    describe_well(&small, &found);
    for (int i = 0; i < 3; i++) {
        const wk_qk_norm norm = i == 1 ? WK_QK_NORM_NONE : WK_QK_NORM_HEAD;
        assert_int_equal(found.layers[i].attention.qk_norm, norm);
        assert_int_equal(found.layers[i].norms[WK_CHANNELS_INPUT], WK_POST_ATTENTION_NORM);
        assert_int_equal(found.layers[i].norms[WK_MIXER_INPUT], WK_ATTN_NORM);
    }
    assert_int_equal(found.layers[0].channels, WK_CHANNELS_MLP);
    assert_int_equal(found.layers[1].experts.gating, WK_GATING_SIGMOID);
    drop(&found);
}

/* Positions by a bias of the scores instead of a rotation; MLPs with and without gates. */
static void linear_biases(void **state) {
    static const struct {
        const char *architecture;
        uint32_t n_layers;
        float bias;
        bool is_gated;
        wk_activation activation;
    } cases[] = {
        {"bloom", 2, 8.0F, false, WK_ACTIVATION_GELU},
        {"refact", 2, 8.0F, true, WK_ACTIVATION_SILU},
        {"baichuan", 39, 0.0F, true, WK_ACTIVATION_SILU},
        {"baichuan", 40, 8.0F, true, WK_ACTIVATION_SILU},
        {"nemotron", 2, 0.0F, false, WK_ACTIVATION_RELU_SQUARED},
        {"arcee", 2, 0.0F, false, WK_ACTIVATION_RELU_SQUARED},
    };
    (void)state;
    for (size_t c = 0; c < WK_COUNT(cases); c++) {
        description found;
        const bool is_bloom = strcmp(cases[c].architecture, "bloom") == 0;
        small_model small = small_model_of(cases[c].architecture);
        set_u32(&small, cases[c].architecture, "block_count", cases[c].n_layers);
        for (int i = SMALL_LAYERS; small.n_tensors < (int)cases[c].n_layers; i++) {
            char name[64]; /* no file has fewer tensors than layers */
            snprintf(name, sizeof name, "blk.%d.attn_norm.weight", i);
            small_add_tensor(&small, name, SMALL_EMBD, 0);
        }
        small_set_f32(&small, "bloom.attention.layer_norm_epsilon", 1e-5F);
        small_set_f32(&small, "nemotron.attention.layer_norm_epsilon", 1e-5F);
        describe_well(&small, &found);
        for (uint32_t i = 0; i < cases[c].n_layers; i++) {
            const wk_layer_spec *const layer = &found.layers[i];
            assert_true(layer->attention.alibi_bias == cases[c].bias);
            assert_int_equal(layer->attention.rope, cases[c].bias > 0 ? WK_NO_ROPE : 0);
            assert_int_equal(layer->mlp.is_gated, cases[c].is_gated);
            assert_int_equal(layer->mlp.activation, cases[c].activation);
        }
        assert_int_equal(found.hparams.n_ropes, cases[c].bias > 0 ? 0 : 1);
        assert_int_equal(found.hparams.embedding_norm,
                         is_bloom ? WK_TOKEN_EMBEDDING_NORM : WK_NO_MODEL_WEIGHT);
        drop(&found);
    }
}

/* Layers without a window know no positions, where others have one. */
static void positions_of_windows(void **state) {
    static const struct {
        const char *architecture;
        uint32_t window;
    } cases[] = {{"cohere2", 4}, {"exaone4", 4}, {"exaone4", 0}};
    (void)state;
    for (size_t c = 0; c < WK_COUNT(cases); c++) {
        description found;
        small_model small = small_model_of(cases[c].architecture);
        small_set_f32(&small, "cohere2.attention.layer_norm_epsilon", 1e-5F);
        small_set_f32(&small, "cohere2.logit_scale", 0.25F);
        set_u32(&small, cases[c].architecture, "block_count", 5);
        set_u32(&small, cases[c].architecture, "attention.sliding_window", cases[c].window);
        describe_well(&small, &found);
        for (int i = 0; i < 5; i++) {
            const bool is_global = cases[c].window > 0 && i == 3;
            assert_int_equal(found.layers[i].attention.window, is_global ? 0 : cases[c].window);
            assert_int_equal(found.layers[i].attention.rope, is_global ? WK_NO_ROPE : 0);
            assert_int_equal(found.layers[i].is_parallel, c == 0);
        }
        assert_true(found.hparams.logit_scale == (c == 0 ? 0.25F : 1.0F));
        drop(&found);
    }
}

/* The larger model norms heads, each with its own weights. */
static void norms_of_command_r(void **state) {
    (void)state;
    description found;
    small_model small = small_model_of("command-r");
    small_set_f32(&small, "command-r.attention.layer_norm_epsilon", 1e-5F);
    small_add_tensor(&small, "blk.1.attn_q_norm.weight", 4, 2);
    describe_well(&small, &found);
    assert_int_equal(found.layers[0].attention.qk_norm, WK_QK_NORM_NONE);
    assert_int_equal(found.layers[1].attention.qk_norm, WK_QK_NORM_OWN);
    drop(&found);
    small = small_model_of("seed_oss");
    describe_well(&small, &found);
    for (int i = 0; i < SMALL_LAYERS; i++)
        assert_int_equal(found.layers[i].norms[WK_CHANNELS_INPUT], WK_POST_ATTENTION_NORM);
    drop(&found);
}

/* ---- Whole models ---- */

static wick_status make(const small_model *small, wk_gguf_parser **parser, wk_model **model,
                        wick_error *error) {
    *parser = parse(small);
    return wk_model_make(&checked.heap, wk_gguf_parser_result(*parser), model, error);
}

static void direction(void **state) {
    (void)state;
    wk_gguf_parser *parser;
    wk_model *model;
    wick_error error;
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
    wick_error error;
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
        cmocka_unit_test_setup_teardown(biases_of_some_layers, begin, end),
        cmocka_unit_test_setup_teardown(biases_of_families, begin, end),
        cmocka_unit_test_setup_teardown(first_gemma2_files, begin, end),
        cmocka_unit_test_setup_teardown(bases_of_windows, begin, end),
        cmocka_unit_test_setup_teardown(gemma4_without_windows, begin, end),
        cmocka_unit_test_setup_teardown(granite_without_positions, begin, end),
        cmocka_unit_test_setup_teardown(kinds_of_llama4, begin, end),
        cmocka_unit_test_setup_teardown(ramp_of_gpt_oss, begin, end),
        cmocka_unit_test_setup_teardown(ramp_of_yarn, begin, end),
        cmocka_unit_test(border_of_long_divisors),
        cmocka_unit_test_setup_teardown(functions_of_modern_bert, begin, end),
        cmocka_unit_test_setup_teardown(clamp_of_mpt, begin, end),
        cmocka_unit_test_setup_teardown(layers_ahead, begin, end),
        cmocka_unit_test_setup_teardown(mixtures, begin, end),
        cmocka_unit_test_setup_teardown(norms_of_glm, begin, end),
        cmocka_unit_test_setup_teardown(linear_biases, begin, end),
        cmocka_unit_test_setup_teardown(positions_of_windows, begin, end),
        cmocka_unit_test_setup_teardown(norms_of_command_r, begin, end),
        cmocka_unit_test_setup_teardown(direction, begin, end),
        cmocka_unit_test_setup_teardown(dropped_extents, begin, end),
        cmocka_unit_test_setup_teardown(superseded_weights, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
