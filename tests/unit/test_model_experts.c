/* Headers of models with experts, latent attention and recurrent layers: what does not fit is
 * refused with the key's or tensor's name. */
#include "model/model_struct.h"

#include "format/gguf_parse.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "checked_heap.h"
#include "small_model.h"

#include <wick/ops.h>

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

/* The model is refused with a sentence that holds text. */
static void expect(const small_model *small, const char *text) {
    static gguf_bytes file;
    wk_gguf_parser *parser;
    wk_model *model;
    wick_error error = {.status = WICK_OK};
    small_write(small, false, &file);
    assert_int_equal(wk_gguf_parser_make(&checked.heap, WICK_SIZE_UNKNOWN, &parser, &error),
                     WICK_OK);
    assert_int_equal(wk_gguf_parser_feed(parser, file.data, file.size, NULL, &error), WICK_OK);
    const wick_status status =
        wk_model_make(&checked.heap, wk_gguf_parser_result(parser), &model, &error);
    if (status == WICK_OK || strstr(error.message, text) == NULL)
        fail_msg("expected '%s', got %d: %s", text, (int)status, error.message);
    wk_model_free(model);
    wk_gguf_parser_free(parser);
}

static void set(small_model *model, const char *architecture, const char *suffix, uint32_t number) {
    char key[64];
    snprintf(key, sizeof key, "%s.%s", architecture, suffix);
    small_set_u32(model, key, number);
}

static void keys_of_experts(void **state) {
    static const struct {
        const char *suffix;
        uint32_t number;
        const char *text;
    } cases[] = {
        {"expert_used_count", 0, "llama.expert_used_count"},
        {"expert_used_count", 7, "llama.expert_used_count"},
        {"expert_feed_forward_length", 0, "llama.expert_feed_forward_length"},
        {"expert_gating_func", 4, "llama.expert_gating_func"},
        {"expert_group_count", 4, "which does not fit the number of experts"},
        {"expert_shared_count", 65536, "llama.expert_shared_count"},
        {"interleave_moe_layer_step", 0, "llama.interleave_moe_layer_step"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        small_model small = small_model_make();
        set(&small, "llama", "expert_count", 6);
        set(&small, "llama", "expert_used_count", 2);
        set(&small, "llama", "expert_feed_forward_length", 1024);
        set(&small, "llama", cases[i].suffix, cases[i].number);
        expect(&small, cases[i].text);
    }
    small_model few = small_model_make();
    set(&few, "llama", "expert_count", 6);
    set(&few, "llama", "expert_used_count", 3);
    set(&few, "llama", "expert_group_count", 3);
    set(&few, "llama", "expert_group_used_count", 1);
    expect(&few, "llama.expert_group_used_count");
    small_remove(&few, "llama.expert_used_count");
    expect(&few, "llama.expert_used_count");
}

/* A layer without experts needs an MLP with channels. */
static void neither_experts_nor_channels(void **state) {
    (void)state;
    small_model small = small_model_of("qwen3next");
    set(&small, "qwen3next", "ssm.conv_kernel", 4);
    set(&small, "qwen3next", "ssm.inner_size", 32);
    set(&small, "qwen3next", "ssm.time_step_rank", 4);
    set(&small, "qwen3next", "ssm.group_count", 2);
    set(&small, "qwen3next", "ssm.state_size", 16);
    set(&small, "qwen3next", "expert_count", 0);
    expect(&small, "block 0 has no experts, and its MLP has no channels");
    small_model odd = small_model_of("qwen"); /* which counts gate and up together */
    set(&odd, "qwen", "feed_forward_length", 1);
    expect(&odd, "block 0 has no experts, and its MLP has no channels");
}

/* Queries that have gates lie in a matrix of their own. */
static void fused_queries_with_gates(void **state) {
    (void)state;
    small_model small = small_model_of("qwen35");
    set(&small, "qwen35", "ssm.conv_kernel", 4);
    set(&small, "qwen35", "ssm.inner_size", 32);
    set(&small, "qwen35", "ssm.time_step_rank", 4);
    set(&small, "qwen35", "ssm.group_count", 2);
    set(&small, "qwen35", "ssm.state_size", 16);
    set(&small, "qwen35", "full_attention_interval", 1);
    strcpy(small_find_tensor(&small, "blk.0.attn_q.weight")->name, "blk.0.attn_qkv.weight");
    expect(&small, "'blk.0.attn_qkv.weight' is not known");
}

/* As converters wrote them in 2023: a tensor for each expert. */
static void tensors_of_single_experts(void **state) {
    (void)state;
    small_model small = small_model_make();
    set(&small, "llama", "expert_count", 2);
    set(&small, "llama", "expert_used_count", 1);
    expect(&small, "blk.0.ffn_gate.weight"); /* of no use beside experts */
    for (int i = 0; i < SMALL_LAYERS; i++) {
        static const char *const names[] = {"gate", "up", "down"};
        for (size_t j = 0; j < sizeof names / sizeof *names; j++) {
            char name[64];
            snprintf(name, sizeof name, "blk.%d.ffn_%s.weight", i, names[j]);
            small_remove_tensor(&small, name);
        }
    }
    expect(&small, "ffn_gate_inp.weight");
    small_add_tensor(&small, "blk.0.ffn_gate.0.weight", SMALL_FF, SMALL_EMBD);
    expect(&small, "blk.0.ffn_gate.0.weight");
}

static void keys_of_latent_attention(void **state) {
    static const char arch[] = "deepseek2";
    static const struct {
        const char *suffix;
        uint32_t number;
    } keys[] = {{"attention.key_length_mla", 4}, {"attention.value_length_mla", 4},
                {"attention.kv_lora_rank", 6},   {"rope.dimension_count", 2},
                {"attention.key_length", 8},     {"attention.value_length", 6}};
    (void)state;
    small_model whole = small_model_of(arch);
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        set(&whole, arch, keys[i].suffix, keys[i].number);
    expect(&whole, "blk.0.attn_k.weight"); /* the keys are right, the tensors are Llama's */
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        small_model small = whole;
        char key[64];
        snprintf(key, sizeof key, "%s.%s", arch, keys[i].suffix);
        small_remove(&small, key);
        expect(&small, key);
        small = whole;
        small_set_u32(&small, key, keys[i].number == 4 ? 1 : keys[i].number + 1);
        expect(&small, i == 1   ? "attn_k" /* the keys are right */
                       : i == 3 ? "must be even"
                       : i == 0 ? "attention.key_length_mla"
                                : "latent space");
    }
}

static void keys_of_recurrent_layers(void **state) {
    static const struct {
        const char *suffix;
        uint32_t number, wrong;
        const char *text; /* NULL: the key's */
    } keys[] = {{"ssm.conv_kernel", 4, 1, NULL},
                {"ssm.conv_kernel", 4, 17, NULL},
                {"ssm.inner_size", 32, 30, "no multiple of 4"},
                {"ssm.time_step_rank", 4, 0, NULL},
                {"ssm.group_count", 2, 3, "no multiple of 3"},
                {"ssm.state_size", 16, 1025, NULL}};
    static const char *const architectures[] = {"mamba2", "qwen35"};
    (void)state;
    for (size_t a = 0; a < sizeof architectures / sizeof *architectures; a++) {
        const char *const arch = architectures[a];
        small_model whole = small_model_of(arch);
        for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
            set(&whole, arch, keys[i].suffix, keys[i].number);
        expect(&whole, "blk.0."); /* the keys are right, the tensors are Llama's */
        for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
            small_model small = whole;
            char key[64];
            snprintf(key, sizeof key, "%s.%s", arch, keys[i].suffix);
            small_remove(&small, key);
            expect(&small, key);
            small = whole;
            small_set_u32(&small, key, keys[i].wrong);
            expect(&small, keys[i].text != NULL ? keys[i].text : key);
        }
    }
    small_model mamba = small_model_of("mamba");
    expect(&mamba, "mamba.ssm.conv_kernel");
    small_model lfm2 = small_model_of("lfm2");
    expect(&lfm2, "lfm2.shortconv.l_cache");
    small_model gated = small_model_of("qwen35");
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        set(&gated, "qwen35", keys[i].suffix, keys[i].number);
    set(&gated, "qwen35", "attention.recurrent_layers", 1);
    expect(&gated, "must be an array of bools");
    small_remove(&gated, "qwen35.attention.recurrent_layers");
    set(&gated, "qwen35", "full_attention_interval", 1);
    set(&gated, "qwen35", "attention.key_length", 8);
    set(&gated, "qwen35", "attention.value_length", 6);
    expect(&gated, "qwen35.attention.value_length");
}

static wick_tensor *floats(wick_device *device, wick_shape shape, const float *from, size_t n) {
    return wick_tensor_from_data(device, WICK_F32, shape, from, n * sizeof *from);
}

/* The expert that a router with these logits chooses: expert e gives e + 1 times a constant. */
static uint32_t chosen(const wk_experts_spec *spec, const float logits[6]) {
    enum { N = 6 };
    static float one[N * N];
    float diagonal[N * N] = {0}, down[N * N], y[N], zeros[N] = {0};
    wick_device *device;
    const wick_device_desc desc = {.backend = WICK_BACKEND_CPU, .isa = WICK_ISA_REF};
    assert_int_equal(wick_device_open(&desc, &device, NULL), WICK_OK);
    const wick_scope scope = wick_scope_begin(device);
    for (size_t i = 0; i < N * N; i++) {
        one[i] = 1;
        down[i] = (float)(i / N + 1);
    }
    for (size_t i = 0; i < N; i++) diagonal[i * N + i] = 1;
    wk_layer layer = {.spec.experts = *spec};
    layer.weight[WK_FFN_GATE_INP] = floats(device, WICK_SHAPE(N, N), diagonal, N * N);
    layer.weight[WK_EXP_PROBS_BIAS] = floats(device, WICK_SHAPE(N), zeros, N);
    layer.weight[WK_FFN_GATE_EXPS] = floats(device, WICK_SHAPE(N, 1, N), one, N * N);
    layer.weight[WK_FFN_UP_EXPS] = floats(device, WICK_SHAPE(N, 1, N), one, N * N);
    layer.weight[WK_FFN_DOWN_EXPS] = floats(device, WICK_SHAPE(N, N, 1), down, N * N);
    wick_tensor *const x = floats(device, WICK_SHAPE(1, N), logits, N);
    const wk_batch batch = {.n_adapters = 0};
    const wk_pass pass = {.batch = &batch};
    assert_int_equal(wick_read(wk_experts(&pass, &layer, x, x), y, sizeof y), WICK_OK);
    wick_scope_end(scope);
    wick_device_close(device);
    double sum = 0;
    for (size_t i = 0; i < N; i++) sum += (double)logits[i];
    return (uint32_t)lround((double)y[0] / (sum * sum / (1 + exp(-sum)))) - 1;
}

/* One of three groups of two experts counts by its best expert; with a selection bias by both. */
static void best_groups(void **state) {
    static const float one_is_best[6] = {5, -9, 4.5F, 4.9F, 0, 1};
    wk_experts_spec spec = {.n_experts = 6,
                            .n_used = 1,
                            .n_ff = 1,
                            .n_groups = 3,
                            .n_groups_used = 1,
                            .gating = WK_GATING_SOFTMAX,
                            .is_normalized = true,
                            .scale = 1};
    (void)state;
    assert_int_equal(chosen(&spec, one_is_best), 0);
    spec.gating = WK_GATING_SIGMOID;
    spec.has_selection_bias = true;
    assert_int_equal(chosen(&spec, one_is_best), 3);
    spec.n_groups_used = 2;
    assert_int_equal(chosen(&spec, one_is_best), 3); /* of groups 1 and 2 */
    spec.n_groups_used = 3;
    assert_int_equal(chosen(&spec, one_is_best), 0);
}

/* Shared experts keep gate, up and their product beside those of the chosen ones. */
static void activations_of_shared_experts(void **state) {
    enum { EMBD = 8, FF = 1000, SHARED = 500, ROWS = 3 };
    wk_layer layer = {.spec = {.mixer = WK_MIXER_NONE, .channels = WK_CHANNELS_EXPERTS}};
    wk_model model = {.hparams = {.n_layers = 1, .n_embd = EMBD}, .layers = &layer};
    (void)state;
    layer.spec.experts = (wk_experts_spec){.n_experts = 4, .n_used = 2, .n_ff = FF, .n_groups = 1};
    const uint64_t without = wk_model_activation_bytes(&model, ROWS);
    layer.spec.experts.n_ff_shared = SHARED;
    const uint64_t with = wk_model_activation_bytes(&model, ROWS);
    assert_int_equal(with - without, 3 * SHARED * ROWS * sizeof(float));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(keys_of_experts, begin, end),
        cmocka_unit_test_setup_teardown(tensors_of_single_experts, begin, end),
        cmocka_unit_test_setup_teardown(neither_experts_nor_channels, begin, end),
        cmocka_unit_test_setup_teardown(fused_queries_with_gates, begin, end),
        cmocka_unit_test_setup_teardown(keys_of_latent_attention, begin, end),
        cmocka_unit_test_setup_teardown(keys_of_recurrent_layers, begin, end),
        cmocka_unit_test(best_groups),
        cmocka_unit_test(activations_of_shared_experts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
