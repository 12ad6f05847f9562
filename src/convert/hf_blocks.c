/* convert/hf_blocks.c: see hf_blocks.h. */
#include "convert/hf_blocks.h"

#include "convert/hf_keys.h"
#include "convert/hf_kinds.h"
#include "core/compiler.h"
#include "core/status.h"

#include <string.h>

static const char list_keys[] = "layers_block_type|layer_types",
                  text_key[] = "hybrid_override_pattern";

static wick_status read_list(const wk_json *list, wk_arena *arena, wk_str *out, wick_error *err) {
    static const char *const names[][2] = {{"mamba|linear_attention", "M"},
                                           {"attention|full_attention", "*"},
                                           {"mlp", "-"},
                                           {"moe", "E"}};
    char *const text = wk_arena_array(arena, list->count + 1, sizeof *text);
    if (text == NULL) return wk_fail_memory(err, list->count, "the layers of a model");
    size_t n = 0;
    for (const wk_json *item = list->child; item != NULL; item = item->next) {
        size_t i = 0;
        while (i < WK_COUNT(names) && !wk_hf_is_named(names[i][0], item->string)) i++;
        if (i == WK_COUNT(names))
            return wk_fail(err, WICK_ERR_UNSUPPORTED,
                           "config.json: layers of the type '%s' cannot be converted yet",
                           wk_str_show(item->string).text);
        text[n++] = names[i][1][0];
    }
    *out = (wk_str){text, n};
    return WICK_OK;
}

wick_status wk_hf_read_blocks(wk_json *config, wk_arena *arena, wk_str *out, wick_error *err) {
    const wk_json *const list = wk_hf_find(config, list_keys);
    const wk_json *const text = wk_hf_get(config, text_key);
    *out = (wk_str){.text = NULL};
    if (wk_hf_is_text(text)) *out = text->string;
    if (wk_hf_is_text(text) || list == NULL) return WICK_OK;
    if (list->kind != WK_JSON_ARRAY)
        return wk_fail(err, WICK_ERR_FORMAT, "config.json: 'layers_block_type' is not a list");
    return read_list(list, arena, out, err);
}

/* As Nemotron-H has them, or in periods (Jamba). */
static wick_status find_blocks(const wk_hf_family *family, wk_json *config, wk_arena *arena,
                               wk_str *out, wick_error *err) {
    uint32_t n = 0, period = 0, offset = 0;
    WK_TRY(wk_hf_read_u32(config, "num_hidden_layers", &n, err));
    if (family->traits & WK_HF_BLOCKS) {
        WK_TRY(wk_hf_read_blocks(config, arena, out, err));
        size_t n_known = 0;
        while (n_known < out->size && memchr("M*-E", out->text[n_known], 4)) n_known++;
        if (out->text != NULL && out->size == n && n_known == n) return WICK_OK;
        return wk_fail(err, WICK_ERR_FORMAT,
                       "config.json: '%s' is missing, or not M, *, - or E for each layer",
                       text_key);
    }
    WK_TRY(wk_hf_read_u32(config, "attn_layer_period", &period, err));
    WK_TRY(wk_hf_read_u32(config, "attn_layer_offset", &offset, err));
    if (period == 0) return wk_fail(err, WICK_ERR_FORMAT, "config.json: 'attn_layer_period' is 0");
    char *const text = wk_arena_array(arena, (size_t)n + 1, sizeof *text);
    if (text == NULL) return wk_fail_memory(err, n, "the layers of a model");
    for (uint32_t i = 0; i < n; i++) text[i] = i % period == offset ? '*' : 'M';
    *out = (wk_str){text, n};
    return WICK_OK;
}

static wick_status add_list(wk_str blocks, char kind, uint32_t number, const char *key,
                            wk_value_list *values, wick_error *err) {
    uint32_t *const numbers = wk_arena_array(values->arena, blocks.size, sizeof *numbers);
    if (numbers == NULL) return wk_fail_memory(err, blocks.size, "the layers of a model");
    for (size_t i = 0; i < blocks.size; i++) numbers[i] = blocks.text[i] == kind ? number : 0;
    wk_value_list_array(values, key, WICK_VALUE_U32, numbers, blocks.size);
    return WICK_OK;
}

wick_status wk_hf_add_blocks(const wk_hf_family *family, wk_json *config, wk_value_list *values,
                             wick_error *err) {
    wk_str blocks = {0};
    uint32_t n_ff = 0;
    WK_TRY(find_blocks(family, config, values->arena, &blocks, err));
    WK_TRY(add_list(blocks, '*', wk_hf_read_heads(config).n_kv, ".attention.head_count_kv", values,
                    err));
    if (!(family->traits & WK_HF_BLOCKS)) return WICK_OK;
    const bool has_experts = memchr(blocks.text, 'E', blocks.size) != NULL;
    if (has_experts && memchr(blocks.text, '-', blocks.size) != NULL)
        return wk_fail(err, WICK_ERR_UNSUPPORTED,
                       "config.json: a model that has layers with experts and layers with an MLP"
                       " cannot be converted");
    const char *const key = has_experts ? "moe_intermediate_size" : "intermediate_size";
    WK_TRY(wk_hf_read_u32(config, key, &n_ff, err));
    return add_list(blocks, has_experts ? 'E' : '-', n_ff, ".feed_forward_length", values, err);
}
