/* model/families.h: the one table of families: who can describe which architecture. */
#ifndef WK_MODEL_FAMILIES_H
#define WK_MODEL_FAMILIES_H

#include "model/hparams.h"

typedef struct wk_family {
    const char *architecture; /* general.architecture */
    wk_norm_kind norm;
    /* Fills layers[hparams->n_layers] and the rest of hparams (wk_hparams_read has done what all
     * families share) from the metadata. */
    wick_status (*describe)(const wk_metadata *meta, wk_hparams *hparams, wk_layer_spec *layers);
} wk_family;

/* WICK_ERR_UNSUPPORTED names the architecture and those that are known. */
wick_status wk_family_find(wk_str architecture, const wk_family **out, wick_error *err);

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
/* and n_ff. */
wick_status wk_family_read_ff(const wk_metadata *meta, const wk_hparams *hparams,
                              wk_layer_spec *layers);

/* family_experts.c: what the file does not say of experts, or not always. */
typedef struct wk_experts_desc {
    wk_gating gating;
    wk_activation activation;
    uint32_t n_shared; /* experts that see every row */
    bool is_normalized, is_shared_gated, is_input_weighted;
} wk_experts_desc;
/* Layers that the keys say have experts instead of an MLP get them; n_ff must be known. */
wick_status wk_family_read_experts(const wk_metadata *meta, const wk_hparams *hparams,
                                   const wk_experts_desc *desc, wk_layer_spec *layers);

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

extern const wk_family wk_family_llama, wk_family_qwen2, wk_family_qwen3;
extern const wk_family wk_family_qwen2moe, wk_family_qwen3moe, wk_family_gpt_oss,
    wk_family_minimax_m2, wk_family_llama4, wk_family_deepseek2;
extern const wk_family wk_family_lfm2, wk_family_mamba, wk_family_mamba2, wk_family_nemotron_h,
    wk_family_qwen35;

#endif
