/* model/layer_spec.h: what one layer computes: all that the forward pass knows of a model.
 *
 * A layer is a sequence mixer and a channel mixer, each a branch beside the residual stream x with
 * norms round it (wk_norm_site):
 *
 *   x = residual_norm(x + residual_scale * output_norm(mixer(input_norm(x)))), one mixer after the
 *   other; or, in parallel, x = x + residual_scale * (branch(x) + branch(x)), where the channel
 *   mixer without an input norm of its own takes what the sequence mixer takes.
 *
 * With has_state_space a state space reads the same rows as the sequence mixer, and its result is
 * added to the mixer's before the output norm. A bias is added, and a scale multiplied, where the
 * file has one. */
#ifndef WK_MODEL_LAYER_SPEC_H
#define WK_MODEL_LAYER_SPEC_H

#include <stdbool.h>
#include <stdint.h>

/* Ids of weights, of the model and of its layers; 0 is none. */
enum {
    WK_NO_MODEL_WEIGHT,
#define WK_MODEL_WEIGHT(id, ...) WK_##id,
#define WK_LAYER_WEIGHT(id, ...)
#include "model/weights.def"
#undef WK_MODEL_WEIGHT
#undef WK_LAYER_WEIGHT
    WK_MODEL_WEIGHT_COUNT,
};

typedef enum wk_layer_weight {
    WK_NO_LAYER_WEIGHT,
#define WK_MODEL_WEIGHT(id, ...)
#define WK_LAYER_WEIGHT(id, ...) WK_##id,
#include "model/weights.def"
#undef WK_MODEL_WEIGHT
#undef WK_LAYER_WEIGHT
    WK_LAYER_WEIGHT_COUNT,
} wk_layer_weight;

typedef enum wk_norm_kind {
    WK_NORM_RMS,         /* Zhang and Sennrich, 2019 */
    WK_NORM_LAYER,       /* Ba et al., 2016 */
    WK_NORM_LAYER_PLAIN, /* without weights */
} wk_norm_kind;

/* Where a layer norms. INNER: what the last matrix of the branch multiplies. RESIDUAL: the stream
 * itself, once the branch was added. */
typedef enum wk_norm_site {
    WK_MIXER_INPUT,
    WK_MIXER_INNER, /* of attention alone */
    WK_MIXER_OUTPUT,
    WK_MIXER_RESIDUAL,
    WK_CHANNELS_INPUT,
    WK_CHANNELS_INNER, /* of the MLP alone */
    WK_CHANNELS_OUTPUT,
    WK_CHANNELS_RESIDUAL,
    WK_NORM_SITE_COUNT,
} wk_norm_site;

typedef enum wk_mixer_kind {
    WK_MIXER_ATTENTION,
    WK_MIXER_LATENT,
    WK_MIXER_CONVOLUTION,
    WK_MIXER_STATE_SPACE,
    WK_MIXER_DELTA_NET,
    WK_MIXER_NONE,
} wk_mixer_kind;

typedef enum wk_channels_kind {
    WK_CHANNELS_MLP,
    WK_CHANNELS_EXPERTS,
    WK_CHANNELS_NONE,
} wk_channels_kind;

typedef enum wk_qk_norm {
    WK_QK_NORM_NONE,
    WK_QK_NORM_HEAD,     /* every head, with the same weight [d] */
    WK_QK_NORM_OWN,      /* every head, each with its own of the weights [h, d] */
    WK_QK_NORM_CHANNELS, /* all heads at once, weight [h * d] */
    WK_QK_NORM_PLAIN,    /* every head, RMSNorm without a weight */
} wk_qk_norm;

typedef enum wk_activation {
    WK_ACTIVATION_SILU,
    WK_ACTIVATION_GELU, /* by tanh */
    WK_ACTIVATION_GELU_ERF,
    WK_ACTIVATION_RELU,
    WK_ACTIVATION_RELU_SQUARED,
    WK_ACTIVATION_SILU_CLAMPED, /* gpt-oss's, of gate and up together */
    WK_ACTIVATION_XIELU,        /* Apertus's, of an MLP without a gate, see wk_mlp_spec */
} wk_activation;

#define WK_NO_ROPE UINT32_MAX

/* Multi-head attention with grouped heads, over the cache of keys and values. */
typedef struct wk_attention_spec {
    uint32_t n_heads_q, n_heads_kv;
    uint32_t head_dim, head_dim_v; /* channels of a head's query and key, of its value */
    bool is_fused;                 /* q, k and v are rows of one weight: the file decides */
    wk_qk_norm qk_norm;
    bool is_normed_after_rope;
    float clamp;              /* c > 0: q, k and v are kept within [-c, c] as they are projected */
    float value_scale;        /* s > 0: the output is multiplied by it */
    bool has_v_norm;          /* RMSNorm of each head of v, without a weight */
    bool has_output_gate;     /* q has a gate after each head: its sigmoid times the output */
    bool has_gate_weight;     /* such a gate has a weight of its own */
    uint32_t rope;            /* index into wk_hparams.rope, or WK_NO_ROPE */
    uint32_t query_rope;      /* of queries that have one of their own; 0: none */
    bool is_rope_interleaved; /* pairs (2i, 2i + 1), else halves (i, i + n / 2) */
    bool is_bidirectional;    /* keys after the query are seen, too */
    float scale;              /* of the scores */
    float softcap;            /* c > 0: scores become c tanh(score / c) */
    /* Keys that a query sees, its own counted; 0: all. Bidirectional: to either side. */
    int32_t window;
    float alibi_bias;  /* see wk_alibi_slopes; 0: none */
    bool has_sinks;    /* a score of each head that has no value (Xiao et al., 2024) */
    bool is_v_k;       /* values are made of the rows that keys are made of */
    bool is_kv_shared; /* keys and values are those of an earlier layer: */
    uint32_t kv_layer; /* that one, else the layer itself */
} wk_attention_spec;

/* Latent attention, absorbed (DeepSeek-AI, 2024): one key of [latent, rotated] channels serves all
 * heads, and its latent part is the value. Queries are mapped to the latent space, what they see is
 * mapped out of it, head by head. wk_attention_spec says what lies in the cache: n_heads_kv is 1,
 * head_dim is latent and rotated channels together, head_dim_v the latent ones.
 *
 * Expanded, each head has a key of [plain, rotated] channels and a value, made of the latent ones;
 * these lie in the cache: n_heads_kv is n_heads_q, head_dim_v is n_values. */
typedef struct wk_latent_spec {
    bool is_expanded;
    uint32_t n_latent;
    uint32_t q_rank; /* of the matrix that makes queries, in two factors; 0: it is one matrix */
    uint32_t n_rotated, n_plain; /* channels of a head's query with and without rotation */
    uint32_t n_values;           /* of a head, mapped out */
} wk_latent_spec;

/* Mixers that carry a state from token to token: a causal convolution, followed by the scan of a
 * state space or a delta net (backend/op.def has both). */
typedef struct wk_recurrent_spec {
    uint32_t n_taps, n_channels; /* tokens that the convolution spans, and its channels */
    uint32_t n_heads, head_dim;  /* of the scan; 0: there is none */
    uint32_t n_groups;           /* of b and c, or query and key, that heads share */
    uint32_t n_numbers;          /* that each of the channels keeps */
    uint32_t step_rank;          /* of each channel's step; 0: a step for each head instead */
    bool has_norms;              /* RMSNorm of those, of b and of c */
    bool has_norm_weights;       /* each of these norms has a weight */
    bool is_tiled;               /* head i is of group i mod n_groups, else neighbours share one */
    bool is_fused;               /* the gates of the delta net are one weight: the file decides */
    bool is_unnormed;            /* what Mamba 2 gives is not normed: the file decides */
} wk_recurrent_spec;

/* down(activation(gate(x)) * up(x)), or without a gate down(activation(up(x))). */
typedef struct wk_mlp_spec {
    uint32_t n_ff; /* channels in between */
    bool is_gated;
    bool is_fused; /* rows of up: those of gate, then its own: the file decides */
    wk_activation activation;
    /* xIELU: slope * x, and above 0 above * x^2, else below * (e^x - 1 - x). */
    double above, below, slope;
} wk_mlp_spec;

/* What the router's logits become. */
typedef enum wk_gating {
    WK_GATING_SOFTMAX,
    WK_GATING_SIGMOID,
    WK_GATING_SOFTMAX_OF_CHOSEN, /* chosen by the logits; then of those that were */
} wk_gating;

/* n_used of n_experts gated feed-forward parts for each row, weighed and added up. */
typedef struct wk_experts_spec {
    uint32_t n_experts, n_used;
    uint32_t n_ff, n_ff_shared;       /* channels of each, of the shared ones together; 0: none */
    uint32_t n_groups, n_groups_used; /* of experts, and those that a row uses; 1: no groups */
    wk_gating gating;
    bool has_selection_bias; /* added to choose, not to weigh */
    bool is_normalized;      /* weights are divided by their sum, */
    float scale;             /* and multiplied by this */
    bool is_input_weighted;  /* weights multiply what goes in */
    bool is_routed_early;    /* the router reads what the layer begins with, without a norm */
    bool is_shared_gated;    /* the shared ones by a sigmoid of their own */
    bool is_mean;            /* of what the chosen give together and what the shared ones give */
    bool is_fused;           /* gate and up are rows of one weight: the file decides, */
    bool is_shared_fused;    /* also of the shared ones */
    bool is_ungated;         /* down(activation(up(x))), those that see every row, too */
    wk_activation activation;
} wk_experts_spec;

typedef struct wk_layer_spec {
    wk_layer_weight norms[WK_NORM_SITE_COUNT]; /* WK_NO_LAYER_WEIGHT: none there */
    bool is_head;                              /* see wk_model_use_head */
    bool is_parallel;
    bool has_own_input;    /* see wk_hparams.n_embd_layer */
    bool has_output_scale; /* x is multiplied at the very end */
    float residual_scale;
    wk_mixer_kind mixer;
    bool has_state_space; /* beside the attention: both take the same rows and are added up */
    wk_attention_spec attention;
    wk_latent_spec latent;
    wk_recurrent_spec recurrent;
    wk_channels_kind channels;
    wk_mlp_spec mlp;
    wk_experts_spec experts;
} wk_layer_spec;

#endif
