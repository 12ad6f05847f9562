/* convert/hf_text.c: see hf_text.h. */
#include "convert/hf_text.h"

#include "convert/hf_keys.h"
#include "convert/hf_kinds.h"
#include "convert/hf_unread.h"
#include "core/compiler.h"
#include "core/status.h"

#include <string.h>

/* Of the whole model, beside text_config: pictures, and how they meet the text. */
static const wk_hf_fixed fixed[] = {
    {"text_config|vision_config|vision_feature_layer|spatial_merge_size|mm_tokens_per_image", NULL},
    {"multimodal_projector_bias|projector_hidden_act|*_token_index|image_token_id", NULL},
    {.keys = NULL},
};
static const wk_hf_family wholes[] = {
    {.model_type = "mistral3", .fixed = fixed},
    {.model_type = "gemma3", .fixed = fixed},
};

/* Whether output and embedding are one matrix is a matter of the whole. */
static wick_status take_tie(wk_json *config, wk_json *text, wk_arena *arena, wick_error *err) {
    static const char key[] = "tie_word_embeddings";
    const wk_json *const whole = wk_hf_get(config, key);
    if (whole == NULL || whole->kind != WK_JSON_BOOL) return WICK_OK;
    const char *const value = whole->boolean ? "true" : "false";
    wk_json *item = NULL;
    WK_TRY(wk_json_parse(arena, value, strlen(value), &item, err));
    item->key = wk_str_of(key);
    wk_json_append(text, item); /* of several the last one counts */
    return WICK_OK;
}

wick_status wk_hf_take_text(wk_json **config, wk_arena *arena, wick_error *err) {
    const wk_json *const type = wk_json_get(*config, "model_type");
    wk_json *const text = wk_hf_get(*config, "text_config");
    if (text == NULL) return WICK_OK;
    text->is_read = false;
    for (size_t i = 0; i < WK_COUNT(wholes); i++) {
        const bool is_it = wk_hf_is_text(type) && wk_str_is(type->string, wholes[i].model_type);
        if (!is_it || text->kind != WK_JSON_OBJECT) continue;
        WK_TRY(take_tie(*config, text, arena, err));
        WK_TRY(wk_hf_refuse_unread(&wholes[i], *config, err));
        *config = text;
        return WICK_OK;
    }
    return WICK_OK;
}
