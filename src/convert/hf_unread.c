/* convert/hf_unread.c: see hf_unread.h. */
#include "convert/hf_unread.h"

#include "core/status.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- Keys of all families ---- */

static const wk_hf_fixed of_all[] = {
    /* What the family is found by; names, and where the files come from. */
    {"model_type", NULL},
    {"architectures|auto_map|transformers_version|_name_or_path|name_or_path|_commit_hash", NULL},
    {"torch_dtype|dtype|custom_pipelines|tokenizer_class|unsloth_*|transformers.js_config", NULL},
    {"is_llama_config|model_max_length|max_sequence_length|xla_device", NULL},
    /* Training. */
    {"*dropout*|*_pdrop|initializer_*|gradient_checkpointing|neftune_noise_alpha", NULL},
    {"*router_aux_loss_coef|output_router_logits|router_jitter_noise|loss_type", NULL},
    /* How other programs compute and what they return; pretraining_tp splits a matrix. */
    {"use_cache|cache_implementation|pretraining_tp|chunk_size_feed_forward|torchscript", NULL},
    {"use_bfloat16|_attn_implementation*|attn_implementation|*flash_attn*|use_return_dict", NULL},
    {"reorder_and_upcast_attn|*attention_softmax_in_fp32|return_dict*|output_attentions", NULL},
    {"output_hidden_states|output_scores|output_past", NULL},
    /* Heads for other tasks. */
    {"summary_*|id2label|label2id|num_labels|_num_labels|problem_type", NULL},
    {"task_specific_params|finetuning_task|tf_legacy_loss", NULL},
    /* How texts are generated: a matter of whoever runs the model. */
    {"*_token_id|max_length|min_length|max_new_tokens|do_sample|early_stopping|prefix", NULL},
    {"num_beams|num_beam_groups|diversity_penalty|temperature|top_k|top_p|typical_p", NULL},
    {"repetition_penalty|length_penalty|*no_repeat_ngram_size|bad_words_ids", NULL},
    {"num_return_sequences|*suppress_tokens|remove_invalid_values", NULL},
    {"exponential_decay_length_penalty", NULL},
    /* The tensors say it: one that is not known is refused by its name. */
    {"attention_bias|mlp_bias|use_bias|bias|qkv_bias|use_qkv_bias|attention_qkv_bias", NULL},
    {"lm_head_bias|use_qk_norm|qk_layernorm|attention_out_bias", NULL},
    /* What Wick computes, too. */
    {"is_encoder_decoder|is_decoder|add_cross_attention|tie_encoder_decoder", "false"},
    {"use_sliding_window|use_bidirectional_attention|alibi|rope_interleaved|use_mrope", "false"},
    {"pruned_heads", "{}"},
    {"layer_types", "[full_attention ...]"},
    {"rope_*.truncate", "true"},
    {"rope_*.attn_factor", NULL}, /* transformers reads attention_factor */
    {"rope_parameters.sliding_attention.rope_type", "default"},
    {"rope_parameters.sliding_attention.type", "default"},
    {.keys = NULL},
};

/* ---- Values as text ---- */

typedef struct shown {
    char text[120];
} shown;

static shown show(const wk_json *item);

/* [], [x ...] of items that are all x, or [...]. */
static shown show_list(const wk_json *list) {
    if (list->child == NULL) return (shown){"[]"};
    if (list->child->count > 0) return (shown){"[...]"}; /* a list or an object itself */
    const shown first = show(list->child);
    for (const wk_json *item = list->child; item != NULL; item = item->next)
        if (strcmp(show(item).text, first.text) != 0) return (shown){"[...]"};
    shown out;
    snprintf(out.text, sizeof out.text, "[%.*s ...]", (int)sizeof out.text - 8, first.text);
    return out;
}

static shown show(const wk_json *item) {
    shown out = {""};
    switch (item->kind) {
    case WK_JSON_NULL: return (shown){"null"};
    case WK_JSON_BOOL: return item->boolean ? (shown){"true"} : (shown){"false"};
    case WK_JSON_NUMBER:
        if (item->is_integer)
            snprintf(out.text, sizeof out.text, "%" PRId64, item->integer);
        else
            snprintf(out.text, sizeof out.text, "%g", item->number);
        return out;
    case WK_JSON_STRING:
        snprintf(out.text, sizeof out.text, "%s", wk_str_show(item->string).text);
        return out;
    case WK_JSON_ARRAY: return show_list(item);
    case WK_JSON_OBJECT: break;
    }
    return item->child == NULL ? (shown){"{}"} : (shown){"{...}"};
}

/* ---- Looking ---- */

/* Of an object whose name and a dot are prefix. */
typedef struct place {
    const wk_hf_family *family;
    const char *prefix;
    wick_error *err;
} place;

static bool is_fixed(const wk_hf_fixed *list, wk_str path, const wk_json *item) {
    for (; list != NULL && list->keys != NULL; list++)
        if (wk_hf_is_named(list->keys, path))
            return list->value == NULL || strcmp(list->value, show(item).text) == 0;
    return false;
}

/* Objects that were read are looked into: they are nested as deep as what reads them looks. */
static wick_status check_members(const place *at, const wk_json *object) {
    for (const wk_json *item = object->child; item != NULL; item = item->next) {
        char text[160];
        snprintf(text, sizeof text, "%s%s", at->prefix, wk_str_show(item->key).text);
        const wk_str path = wk_str_of(text);
        if (item->kind == WK_JSON_NULL || is_fixed(at->family->fixed, path, item) ||
            is_fixed(of_all, path, item))
            continue;
        if (!item->is_read)
            return wk_fail(at->err, WICK_ERR_UNSUPPORTED,
                           "config.json: '%s' is %s: '%s' models with this setting cannot be"
                           " converted (if it does not change what the model computes, remove it)",
                           text, show(item).text, at->family->model_type);
        if (item->kind != WK_JSON_OBJECT) continue;
        char prefix[sizeof text + 1];
        snprintf(prefix, sizeof prefix, "%s.", text);
        WK_TRY(check_members(&(place){at->family, prefix, at->err}, item));
    }
    return WICK_OK;
}

wick_status wk_hf_refuse_unread(const wk_hf_family *family, const wk_json *config,
                                wick_error *err) {
    return check_members(&(place){family, "", err}, config);
}
