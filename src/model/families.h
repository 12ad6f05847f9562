/* model/families.h: the one table of families: who can describe which architecture. */
#ifndef WK_MODEL_FAMILIES_H
#define WK_MODEL_FAMILIES_H

#include "model/hparams.h"

typedef struct wk_family {
    const char *architecture; /* general.architecture */
    wk_norm_kind norm;
    uint32_t biases; /* as in wk_hparams */
    /* Fills layers[hparams->n_layers] and the rest of hparams (wk_hparams_read has done what all
     * families share) from the metadata. */
    wick_status (*describe)(const wk_metadata *meta, wk_hparams *hparams, wk_layer_spec *layers);
} wk_family;

/* WICK_ERR_UNSUPPORTED names the architecture. */
wick_status wk_family_find(wk_str architecture, const wk_family **out, wick_error *err);
/* Calls describe, and reads what the files of any family may say. */
wick_status wk_family_describe(const wk_family *family, const wk_metadata *meta,
                               wk_hparams *hparams, wk_layer_spec *layers);

/* The layers that most decoders are made of, from the keys that these families share: a norm before
 * each mixer, rotary embedding of halves, no window, no norm of q and k, SwiGLU; n_ropes becomes 1.
 * A family then changes what it does otherwise. */
wick_status wk_family_describe_dense(const wk_metadata *meta, wk_hparams *hparams,
                                     wk_layer_spec *layers);

/* Parts of it. layers [n_layers] of plain attention and SwiGLU without any number: */
void wk_family_default_layers(const wk_hparams *hparams, wk_layer_spec *layers);
/* heads, their widths and the scale, for each layer of attention; */
wick_status wk_family_read_heads(const wk_metadata *meta, const wk_hparams *hparams,
                                 wk_layer_spec *layers);
/* and n_ff. least: 0 where a layer may have no MLP, else 1. */
wick_status wk_family_read_ff(const wk_metadata *meta, const wk_hparams *hparams,
                              wk_layer_spec *layers, uint32_t least);

/* family_experts.c: what the file does not say of experts, or not always. */
typedef struct wk_experts_desc {
    wk_gating gating;
    wk_activation activation;
    uint32_t n_shared; /* experts that see every row */
    bool is_normalized, is_shared_gated, is_input_weighted, is_ungated, is_routed_early, is_mean;
    /* Where the file gives no lengths, the chosen experts share that of the MLP, and the gated
     * expert that sees every row has it. */
    bool is_length_shared;
} wk_experts_desc;
/* Layers that the keys say have experts instead of an MLP get them; n_ff must be known. */
wick_status wk_family_read_experts(const wk_metadata *meta, const wk_hparams *hparams,
                                   const wk_experts_desc *desc, wk_layer_spec *layers);

/* A layer among all of the file. */
wk_layer_index wk_family_layer(const wk_hparams *hparams, uint32_t layer);

/* Layers without heads of keys and values have the other mixer. */
wick_status wk_family_find_attention(const wk_metadata *meta, const wk_hparams *hparams,
                                     wk_layer_spec *layers, wk_mixer_kind other);
/* The rotary embedding of the layers of attention, whose heads are known, if there are any. */
wick_status wk_family_add_rope(const wk_metadata *meta, wk_hparams *hparams,
                               const wk_layer_spec *layers);
/* n_taps of a convolution. */
wick_status wk_family_read_taps(const wk_metadata *meta, const char *suffix,
                                wk_recurrent_spec *out);
/* All sizes of a scan whose heads each have a step (Mamba 2, gated delta nets). */
wick_status wk_family_read_scan(const wk_metadata *meta, wk_recurrent_spec *out);

/* Pairs (2i, 2i + 1) in every layer. */
void wk_family_interleave_ropes(const wk_hparams *hparams, wk_layer_spec *layers);
/* RMSNorm of each head of q and k, with the same weight. */
void wk_family_norm_heads(const wk_hparams *hparams, wk_layer_spec *layers);
/* What q, k and v are kept within, where the file says so. */
wick_status wk_family_read_clamp(const wk_metadata *meta, const wk_hparams *hparams,
                                 wk_layer_spec *layers);
/* Limits the context to `length`: beyond it the family computes in a way that is not supported. */
void wk_family_end_context(wk_hparams *hparams, uint32_t length);
/* Where some layers have a window, the others know no positions. */
void wk_family_drop_far_ropes(const wk_hparams *hparams, wk_layer_spec *layers);
/* No positions at all. */
void wk_family_drop_ropes(wk_hparams *hparams, wk_layer_spec *layers);
/* Granite's: multipliers of embedding, residual, scores and logits; ropes, where the file says that
 * there are any, interleaved. */
wick_status wk_family_read_multipliers(const wk_metadata *meta, wk_hparams *hparams,
                                       wk_layer_spec *layers);
/* An MLP without a gate in every layer. */
void wk_family_drop_gates(const wk_hparams *hparams, wk_layer_spec *layers,
                          wk_activation activation);
/* Positions as a table of embeddings, no rotation; n_positions is what the file has. */
wick_status wk_family_learn_positions(const wk_metadata *meta, wk_hparams *hparams,
                                      wk_layer_spec *layers);

/* Rows of a table [n, ..] of the file, or of [..], which is one, at most INT32_MAX; 0: there is no
 * such table. */
uint32_t wk_family_table_rows(const wk_metadata *meta, const char *name);
/* Biases by distance instead of positions, see wk_alibi_slopes. */
void wk_family_use_alibi(wk_hparams *hparams, wk_layer_spec *layers, float most);

/* c of a cap or clamp, not below 0; 0: there is none. */
wick_status wk_family_read_cap(const wk_metadata *meta, const char *suffix, double fallback,
                               float *out);

/* Layers with a window: where attention.sliding_window_pattern says so, an array of bools or a
 * period; without it of every `period` layers all but the last (or first) one; 0: all. */
typedef struct wk_window_rule {
    uint32_t period;
    bool is_first_global;
    /* attention.sliding_window must be there, without a period the pattern, too; */
    bool is_needed;
    uint32_t window; /* else, where it is missing; 0: none, as there */
} wk_window_rule;
wick_status wk_family_read_windows(const wk_metadata *meta, const wk_hparams *hparams,
                                   wk_layer_spec *layers, wk_window_rule rule);
/* Layers with a window have a rotary embedding of their own, without scaling, of the base
 * rope.freq_base_swa; where that key is missing, of base, or of the other layers' (0). */
wick_status wk_family_add_window_rope(const wk_metadata *meta, wk_hparams *hparams,
                                      wk_layer_spec *layers, double base);

/* All that there are, each a constant in families/. */
#define WK_FAMILIES(X)                                                                             \
    X(llama)                                                                                       \
    X(internlm2)                                                                                   \
    X(smollm3)                                                                                     \
    X(mistral3)                                                                                    \
    X(maincoder)                                                                                   \
    X(deci)                                                                                        \
    X(bitnet)                                                                                      \
    X(baichuan)                                                                                    \
    X(xverse)                                                                                      \
    X(ernie4_5)                                                                                    \
    X(arcee)                                                                                       \
    X(granite)                                                                                     \
    X(granitemoe)                                                                                  \
    X(granite_swa)                                                                                 \
    X(minicpm)                                                                                     \
    X(minicpm3)                                                                                    \
    X(qwen)                                                                                        \
    X(qwen2)                                                                                       \
    X(qwen3)                                                                                       \
    X(qwen2vl)                                                                                     \
    X(qwen3vl)                                                                                     \
    X(qwen2moe)                                                                                    \
    X(qwen3moe)                                                                                    \
    X(qwen3vlmoe)                                                                                  \
    X(gpt_oss)                                                                                     \
    X(minimax_m2)                                                                                  \
    X(llama4)                                                                                      \
    X(deepseek2)                                                                                   \
    X(mistral4)                                                                                    \
    X(deepseek)                                                                                    \
    X(bailingmoe)                                                                                  \
    X(bailingmoe2)                                                                                 \
    X(ernie4_5_moe)                                                                                \
    X(olmoe)                                                                                       \
    X(dots1)                                                                                       \
    X(hunyuan_moe)                                                                                 \
    X(glm4moe)                                                                                     \
    X(afmoe)                                                                                       \
    X(smallthinker)                                                                                \
    X(mimo2)                                                                                       \
    X(dbrx)                                                                                        \
    X(gemma)                                                                                       \
    X(gemma2)                                                                                      \
    X(gemma3)                                                                                      \
    X(gemma_embedding)                                                                             \
    X(gemma4)                                                                                      \
    X(exaone)                                                                                      \
    X(exaone4)                                                                                     \
    X(exaone_moe)                                                                                  \
    X(olmo)                                                                                        \
    X(apertus)                                                                                     \
    X(mellum)                                                                                      \
    X(hunyuan_dense)                                                                               \
    X(hunyuan_vl)                                                                                  \
    X(olmo2)                                                                                       \
    X(phi2)                                                                                        \
    X(phi3)                                                                                        \
    X(phimoe)                                                                                      \
    X(glm4)                                                                                        \
    X(chatglm)                                                                                     \
    X(command_r)                                                                                   \
    X(cohere2)                                                                                     \
    X(cohere2moe)                                                                                  \
    X(stablelm)                                                                                    \
    X(plamo)                                                                                       \
    X(paddleocr)                                                                                   \
    X(pangu_embedded)                                                                              \
    X(seed_oss)                                                                                    \
    X(openelm)                                                                                     \
    X(starcoder)                                                                                   \
    X(starcoder2)                                                                                  \
    X(gpt2)                                                                                        \
    X(gptneox)                                                                                     \
    X(codeshell)                                                                                   \
    X(nemotron)                                                                                    \
    X(jais)                                                                                        \
    X(jais2)                                                                                       \
    X(orion)                                                                                       \
    X(bloom)                                                                                       \
    X(refact)                                                                                      \
    X(mpt)                                                                                         \
    X(falcon)                                                                                      \
    X(bert)                                                                                        \
    X(nomic_bert)                                                                                  \
    X(modern_bert)                                                                                 \
    X(eurobert)                                                                                    \
    X(jina_bert_v3)                                                                                \
    X(nomic_bert_moe)                                                                              \
    X(llama_embed)                                                                                 \
    X(granite_hybrid)                                                                              \
    X(lfm2)                                                                                        \
    X(lfm2moe)                                                                                     \
    X(mamba)                                                                                       \
    X(mamba2)                                                                                      \
    X(jamba)                                                                                       \
    X(falcon_h1)                                                                                   \
    X(nemotron_h)                                                                                  \
    X(nemotron_h_moe)                                                                              \
    X(qwen3next)                                                                                   \
    X(qwen35)                                                                                      \
    X(qwen35moe)

#define WK_FAMILY_DECLARE(name) extern const wk_family wk_family_##name;
WK_FAMILIES(WK_FAMILY_DECLARE)
#undef WK_FAMILY_DECLARE

#endif
