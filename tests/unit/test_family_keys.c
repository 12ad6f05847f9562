/* What families make of keys that say little: numbers that a file leaves out, switches, and names
 * of functions. */
#include "unit/described.h"

#include <math.h>

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
        snprintf(key, sizeof key, "%s.attention.sliding_window", architectures[i]);
        small_set_u32(&small, key, 4);
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
    small_set_f32(&small, "mpt.attention.max_alibi_bias", 8.0F);
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
    widths->n = 3; /* without the one ahead */
    describe_well(&small, &found);
    drop(&found);
    for (widths->n = 2; widths->n <= 5; widths->n += 3)
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

static void assert_close(double is, double wanted) {
    if (!(fabs(is - wanted) <= 1e-12 * fabs(wanted))) fail_msg("%.17g, not %.17g", is, wanted);
}

/* Sets the number of layers; the file must have as many tensors. */
static void set_layers(small_model *small, const char *architecture, uint32_t n) {
    set_u32(small, architecture, "block_count", n);
    for (uint32_t i = 0; small->n_tensors < (int)n; i++) {
        char name[16];
        snprintf(name, sizeof name, "more.%u", i);
        small_add_tensor(small, name, 4, 0);
    }
}

/* A base of their own: scaled like the other one's; in Gemma 3 not scaled. */
static void base_of_windows(void **state) {
    static const char *const architectures[] = {"exaone4", "gpt-oss", "gemma2", "gemma3"};
    (void)state;
    for (size_t a = 0; a < WK_COUNT(architectures); a++) {
        const bool is_gemma3 = a == 3;
        const char *const architecture = architectures[a];
        char key[64];
        description found, usual;
        small_model small = small_model_of(architecture);
        set_layers(&small, architecture, 6);
        set_u32(&small, architecture, "attention.sliding_window", 4);
        set_u32(&small, architecture, "expert_count", 4);
        set_u32(&small, architecture, "expert_used_count", 2);
        set_u32(&small, architecture, "expert_feed_forward_length", 8);
        snprintf(key, sizeof key, "%s.rope.scaling.factor", architecture);
        small_set_f32(&small, key, 2.0F);
        describe_well(&small, &usual);
        snprintf(key, sizeof key, "%s.rope.freq_base_swa", architecture);
        small_set_f32(&small, key, 400.0F);
        describe_well(&small, &found);
        assert_int_equal(usual.hparams.n_ropes, is_gemma3 ? 2 : 1);
        assert_int_equal(found.hparams.n_ropes, 2);
        for (int i = 0; i < 6; i++) {
            const wk_attention_spec *const attention = &found.layers[i].attention;
            const uint32_t before = usual.layers[i].attention.rope;
            assert_int_equal(attention->rope, attention->window > 0 ? 1 : before);
        }
        const wk_rope *const rope = &found.hparams.rope[1];
        assert_int_equal(rope->n_pairs, usual.hparams.rope[0].n_pairs);
        const double factor = is_gemma3 ? 1.0 : 2.0;
        assert_true(rope->frequency[0] == 1.0 / factor);
        assert_close(rope->frequency[1], pow(400.0, -1.0 / rope->n_pairs) / factor);
        drop(&found);
        drop(&usual);
    }
}

/* alpha^(d / (d - 2)) times the base, d being the dimensions that are rotated; 0 is none. */
static void alpha_of_hunyuan(void **state) {
    (void)state;
    for (int alpha = 0; alpha <= 3; alpha += 3) {
        description found;
        small_model small = small_model_of("hunyuan-dense");
        small_set_f32(&small, "hunyuan-dense.rope.freq_base", 100.0F);
        small_set_f32(&small, "hunyuan-dense.rope.scaling.alpha", (float)alpha);
        describe_well(&small, &found);
        const uint32_t n = found.hparams.rope[0].n_pairs;
        assert_true(n > 1);
        const double base = alpha > 0 ? 100.0 * pow(alpha, 2.0 * n / (2.0 * n - 2.0)) : 100.0;
        assert_close(found.hparams.rope[0].frequency[1], pow(base, -1.0 / n));
        drop(&found);
    }
}

/* MiniCPM rotates; the key is only for Granite. */
static void rope_of_minicpm(void **state) {
    static const char *const architectures[] = {"granite", "minicpm"};
    (void)state;
    for (size_t a = 0; a < WK_COUNT(architectures); a++) {
        description found;
        char key[64];
        small_model small = small_model_of(architectures[a]);
        snprintf(key, sizeof key, "%s.rope.scaling.finetuned", architectures[a]);
        small_set(&small, key, WICK_VALUE_BOOL, 0);
        describe_well(&small, &found);
        assert_int_equal(found.hparams.n_ropes, a);
        assert_true(found.layers[0].attention.is_rope_interleaved);
        drop(&found);
    }
}

/* What has no value that all models share must be there. */
static void needed_keys(void **state) {
    (void)state;
    small_model gpt_oss = small_model_of("gpt-oss"), mpt = small_model_of("mpt");
    expect_refused(&gpt_oss, "gpt-oss.attention.sliding_window");
    small_set_f32(&mpt, "mpt.attention.layer_norm_epsilon", 1e-5F);
    expect_refused(&mpt, "mpt.attention.max_alibi_bias");
}

/* Files of the first Qwen 1.5 MoE have the length of an MLP alone. */
static void lengths_of_qwen_experts(void **state) {
    static const char *const architectures[] = {"qwen2moe", "qwen3moe", "llama"};
    static const uint32_t own[] = {3, 3, SMALL_FF}, shared[] = {SMALL_FF, 0, 0};
    (void)state;
    for (size_t a = 0; a < WK_COUNT(architectures); a++) {
        description found;
        small_model small = small_model_of(architectures[a]);
        set_u32(&small, architectures[a], "expert_count", 6);
        set_u32(&small, architectures[a], "expert_used_count", SMALL_FF / 3);
        describe_well(&small, &found);
        assert_int_equal(found.layers[0].experts.n_ff, own[a]);
        assert_int_equal(found.layers[0].experts.n_ff_shared, shared[a]);
        drop(&found);
        set_u32(&small, architectures[a], "expert_feed_forward_length", 5);
        set_u32(&small, architectures[a], "expert_shared_feed_forward_length", 7);
        describe_well(&small, &found);
        assert_int_equal(found.layers[0].experts.n_ff, 5);
        assert_int_equal(found.layers[0].experts.n_ff_shared, 7);
        drop(&found);
    }
}

static void window_of_lfm2(void **state) {
    (void)state;
    for (uint32_t window = 0; window < 5; window += 4) {
        description found;
        small_model small = small_model_of("lfm2");
        set_u32(&small, "lfm2", "shortconv.l_cache", 3);
        set_u32(&small, "lfm2", "attention.sliding_window", window);
        describe_well(&small, &found);
        assert_int_equal(found.layers[0].attention.window, window);
        drop(&found);
    }
}

/* EXAONE 4 32B has 64 layers, and files that do not name its window. */
static void window_of_exaone4(void **state) {
    (void)state;
    for (uint32_t n = 63; n <= 65; n++) {
        description found;
        small_model small = small_model_of("exaone4");
        set_layers(&small, "exaone4", n);
        describe_well(&small, &found);
        assert_int_equal(found.layers[0].attention.window, n == 64 ? 4096 : 0);
        assert_int_equal(found.layers[3].attention.window, 0);
        assert_int_equal(found.layers[3].attention.rope, n == 64 ? WK_NO_ROPE : 0);
        drop(&found);
    }
}

/* A multiplier of 0 is none. */
static void multipliers_of_0(void **state) {
    static const char *const keys[] = {"embedding_scale", "residual_scale", "attention.scale",
                                       "logit_scale"};
    static const char *const architectures[] = {"granite", "command-r"};
    (void)state;
    for (size_t i = 0; i < WK_COUNT(architectures); i++) {
        description usual, found;
        small_model small = small_model_of(architectures[i]);
        small_set_f32(&small, "command-r.attention.layer_norm_epsilon", 1e-5F);
        describe_well(&small, &usual);
        for (size_t k = 0; k < WK_COUNT(keys); k++) {
            char key[64];
            snprintf(key, sizeof key, "%s.%s", architectures[i], keys[k]);
            small_set_f32(&small, key, 0.0F);
        }
        describe_well(&small, &found);
        assert_true(found.hparams.embedding_scale == usual.hparams.embedding_scale);
        assert_true(found.hparams.logit_scale == usual.hparams.logit_scale);
        assert_true(found.layers[0].residual_scale == usual.layers[0].residual_scale);
        assert_true(found.layers[0].attention.scale == usual.layers[0].attention.scale);
        drop(&found);
        drop(&usual);
    }
}

/* GLM-4 rotates neighbours; with sections, for images, halves. */
static void sections_of_glm4(void **state) {
    (void)state;
    for (int has_sections = 0; has_sections < 2; has_sections++) {
        description found;
        small_model small = small_model_of("glm4");
        if (has_sections) small_set_u32(&small, "glm4.rope.dimension_sections", 2);
        describe_well(&small, &found);
        assert_int_equal(found.layers[0].attention.is_rope_interleaved, !has_sections);
        drop(&found);
    }
}

/* Files of GLM-4.7-Flash without the key: 47 layers, 48 with the head. */
static void gating_of_glm_flash(void **state) {
    (void)state;
    for (uint32_t n = 46; n <= 49; n++) {
        description found;
        small_model small = small_model_of("deepseek2");
        small_find_tensor(&small, "token_embd.weight")->extents[1] = 154880;
        set_layers(&small, "deepseek2", n);
        set_u32(&small, "deepseek2", "attention.key_length_mla", 4);
        set_u32(&small, "deepseek2", "attention.value_length_mla", 4);
        set_u32(&small, "deepseek2", "attention.kv_lora_rank", 6);
        set_u32(&small, "deepseek2", "attention.key_length", 8);
        set_u32(&small, "deepseek2", "attention.value_length", 6);
        set_u32(&small, "deepseek2", "rope.dimension_count", 2);
        set_u32(&small, "deepseek2", "expert_count", 4);
        set_u32(&small, "deepseek2", "expert_used_count", 2);
        describe_well(&small, &found);
        assert_int_equal(found.layers[1].experts.gating,
                         n == 47 || n == 48 ? WK_GATING_SIGMOID : WK_GATING_SOFTMAX);
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

/* Queries of Ministral 3 are longer from the original context on, and again at its multiples. */
static void warm_queries(void **state) {
    (void)state;
    description found;
    small_model small = small_model_of("mistral3");
    describe_well(&small, &found);
    assert_int_equal(found.hparams.n_ropes, 1);
    assert_int_equal(found.layers[0].attention.query_rope, 0);
    drop(&found);
    small_set_f32(&small, "mistral3.attention.temperature_scale", 0.5F);
    small_set_u32(&small, "mistral3.rope.scaling.original_context_length", 10);
    describe_well(&small, &found);
    assert_int_equal(found.hparams.n_ropes, 2);
    assert_int_equal(found.layers[0].attention.rope, 0);
    assert_int_equal(found.layers[0].attention.query_rope, 1);
    static const uint32_t positions[] = {0, 9, 10, 11, 19, 20};
    static const double lengths[] = {1, 1, 1.34657359, 1.34657359, 1.34657359, 1.54930614};
    enum { N = WK_COUNT(positions), MOST_PAIRS = 8 };
    for (int i = 0; i < 2; i++) {
        float cos_rows[N * MOST_PAIRS], sin_rows[N * MOST_PAIRS];
        const wk_rope *const rope = &found.hparams.rope[i];
        assert_in_range(rope->n_pairs, 1, MOST_PAIRS);
        wk_rope_rows(rope, (wk_rope_positions){positions, N, 64}, cos_rows, sin_rows);
        for (size_t at = 0; at < N * rope->n_pairs; at++) {
            const double length = hypot((double)cos_rows[at], (double)sin_rows[at]);
            assert_true(fabs(length - (i == 1 ? lengths[at / rope->n_pairs] : 1.0)) < 1e-6);
        }
    }
    drop(&found);
    small_set_u32(&small, "mistral3.rope.dimension_count", 2); /* a part of each head */
    expect_refused(&small, "mistral3.attention.temperature_scale");
    small = small_model_of("mistral3");
    small_set_f32(&small, "mistral3.attention.temperature_scale", -0.5F);
    expect_refused(&small, "mistral3.attention.temperature_scale");
}

/* Where queries would get longer is the end of the context. */
static void end_of_mistral4(void **state) {
    (void)state;
    static const struct {
        const char *key;
        uint32_t value;
    } keys[] = {{"attention.key_length_mla", 6}, {"attention.value_length_mla", 4},
                {"attention.kv_lora_rank", 8},   {"rope.dimension_count", 2},
                {"attention.head_count_kv", 1},  {"attention.key_length", 10},
                {"attention.value_length", 8},   {"context_length", 100}};
    small_model small = small_model_of("mistral4");
    for (size_t i = 0; i < WK_COUNT(keys); i++) {
        char key[64];
        snprintf(key, sizeof key, "mistral4.%s", keys[i].key);
        small_set_u32(&small, key, keys[i].value);
    }
    for (uint32_t length = 99; length <= 101; length++) {
        description found;
        small_set_u32(&small, "mistral4.attention.temperature_length", length);
        small_set_f32(&small, "mistral4.attention.temperature_scale", length == 101 ? 0.0F : 0.1F);
        describe_well(&small, &found);
        assert_int_equal(found.hparams.context_length, length < 100 ? 99 : 100);
        assert_int_equal(found.hparams.most_context, length == 101 ? 0 : length);
        drop(&found);
    }
    small_set_f32(&small, "mistral4.attention.temperature_scale", 0.1F);
    small_set_u32(&small, "mistral4.attention.temperature_length", 0);
    expect_refused(&small, "mistral4.attention.temperature_length");
}

static void numbers_of_apertus(void **state) {
    (void)state;
    static const char *const keys[] = {"xielu.alpha_p", "xielu.alpha_n", "xielu.beta"};
    description found;
    small_model small = small_model_of("apertus");
    for (size_t i = 0; i < WK_COUNT(keys); i++) {
        expect_refused(&small, keys[i]);
        small_set_f32(&small, keys[i], 0.0F);
    }
    describe_well(&small, &found);
    assert_true(fabs(found.layers[0].mlp.above - log(2.0)) < 1e-9); /* softplus(0) */
    assert_true(fabs(found.layers[0].mlp.below - log(2.0)) < 1e-9);
    drop(&found);
    small_set_f32(&small, "xielu.beta", (float)INFINITY);
    expect_refused(&small, "xielu.beta");
    small_set_u32(&small, "xielu.beta", 1);
    expect_refused(&small, "xielu.beta");
}

/* YaRN lengthens by 1 + 0.1 ln 4, of which a multiplier of 1 takes all back. */
static void yarn_of_mistral3(void **state) {
    (void)state;
    for (int multiplier = 0; multiplier < 2; multiplier++) {
        description found;
        small_model small = small_model_of("mistral3");
        small_set_text(&small, "mistral3.rope.scaling.type", "yarn");
        small_set_f32(&small, "mistral3.rope.scaling.factor", 4.0F);
        small_set_u32(&small, "mistral3.rope.scaling.original_context_length", 4096);
        small_set_f32(&small, "mistral3.rope.scaling.yarn_log_multiplier", (float)multiplier);
        describe_well(&small, &found);
        const double want = multiplier ? 1.0 : 1.0 + 0.1 * log(4.0);
        assert_true(fabs(found.hparams.rope[0].magnitude - want) < 1e-9);
        drop(&found);
    }
}

/* Families whose files always say which layers have windows, and how large these are. */
static void needed_windows(void **state) {
    (void)state;
    static const char *const names[] = {"cohere2moe", "granite_swa", "mimo2"};
    for (size_t i = 0; i < WK_COUNT(names); i++) {
        small_model small = small_model_of(names[i]);
        expect_refused(&small, "attention.sliding_window'");
        set_u32(&small, names[i], "attention.sliding_window", 48);
        if (strcmp(names[i], "mimo2") == 0) {
            expect_refused(&small, "mimo2.attention.sliding_window_pattern");
            continue;
        }
        description found;
        describe_well(&small, &found);
        assert_int_equal(found.layers[0].attention.window, 0);
        assert_int_equal(found.layers[1].attention.window, 48);
        drop(&found);
    }
}

/* Values as wide as the share of the model's channels that a head has, where no key says it. */
static void latent_of_minicpm3(void **state) {
    (void)state;
    static const char *const keys[] = {"attention.q_lora_rank", "attention.kv_lora_rank",
                                       "rope.dimension_count"};
    description found;
    small_model small = small_model_of("minicpm3");
    set_u32(&small, "minicpm3", "attention.key_length", 6);
    small_remove(&small, "minicpm3.rope.dimension_count");
    for (size_t i = 0; i < WK_COUNT(keys); i++) {
        expect_refused(&small, keys[i]);
        set_u32(&small, "minicpm3", keys[i], 4);
    }
    describe_well(&small, &found);
    const wk_latent_spec *const latent = &found.layers[0].latent;
    const wk_attention_spec *const attention = &found.layers[0].attention;
    assert_true(latent->is_expanded && latent->n_plain == 2 && latent->n_rotated == 4);
    assert_int_equal(attention->n_heads_kv, attention->n_heads_q);
    assert_int_equal(attention->head_dim_v * attention->n_heads_q, SMALL_EMBD);
    drop(&found);
    set_u32(&small, "minicpm3", "rope.dimension_count", 6);
    expect_refused(&small, "rope.dimension_count");
}

int main(void) {
    const struct CMUnitTest tests[] = {
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
        cmocka_unit_test_setup_teardown(window_of_exaone4, begin, end),
        cmocka_unit_test_setup_teardown(base_of_windows, begin, end),
        cmocka_unit_test_setup_teardown(alpha_of_hunyuan, begin, end),
        cmocka_unit_test_setup_teardown(rope_of_minicpm, begin, end),
        cmocka_unit_test_setup_teardown(needed_keys, begin, end),
        cmocka_unit_test_setup_teardown(window_of_lfm2, begin, end),
        cmocka_unit_test_setup_teardown(lengths_of_qwen_experts, begin, end),
        cmocka_unit_test_setup_teardown(multipliers_of_0, begin, end),
        cmocka_unit_test_setup_teardown(sections_of_glm4, begin, end),
        cmocka_unit_test_setup_teardown(gating_of_glm_flash, begin, end),
        cmocka_unit_test_setup_teardown(norms_of_command_r, begin, end),
        cmocka_unit_test_setup_teardown(warm_queries, begin, end),
        cmocka_unit_test_setup_teardown(end_of_mistral4, begin, end),
        cmocka_unit_test_setup_teardown(numbers_of_apertus, begin, end),
        cmocka_unit_test_setup_teardown(yarn_of_mistral3, begin, end),
        cmocka_unit_test_setup_teardown(needed_windows, begin, end),
        cmocka_unit_test_setup_teardown(latent_of_minicpm3, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
