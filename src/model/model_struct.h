/* model/model_struct.h: the inside of a model, for the files of this folder. */
#ifndef WK_MODEL_MODEL_STRUCT_H
#define WK_MODEL_MODEL_STRUCT_H

#include "model/layer_spec.h"
#include "model/model.h"

/* X(name, in the file, rows, channels, presence, uses): weights [rows, channels], vectors [rows]
 * where channels is NONE. Rows and channels name extents, presence says which models have it, see
 * weights.c. */
#define WK_MODEL_WEIGHTS(X)                                                                        \
    X(TOKEN_EMBEDDING, "token_embd.weight", VOCAB, EMBD, NEEDED, WK_USE_EMBEDDING)                 \
    X(OUTPUT_NORM, "output_norm.weight", EMBD, NONE, NEEDED, WK_USE_OTHER)                         \
    X(OUTPUT, "output.weight", VOCAB, EMBD, OPTIONAL, WK_USE_LINEAR)

/* Of every block: "blk.N." in front. */
#define WK_LAYER_WEIGHTS(X)                                                                        \
    X(ATTN_NORM, "attn_norm.weight", EMBD, NONE, NEEDED, WK_USE_OTHER)                             \
    X(ATTN_Q, "attn_q.weight", Q, EMBD, NEEDED, WK_USE_LINEAR)                                     \
    X(ATTN_Q_BIAS, "attn_q.bias", Q, NONE, OPTIONAL, WK_USE_OTHER)                                 \
    X(ATTN_Q_NORM, "attn_q_norm.weight", HEAD, NONE, QK_NORM, WK_USE_OTHER)                        \
    X(ATTN_K, "attn_k.weight", K, EMBD, NEEDED, WK_USE_LINEAR)                                     \
    X(ATTN_K_BIAS, "attn_k.bias", K, NONE, OPTIONAL, WK_USE_OTHER)                                 \
    X(ATTN_K_NORM, "attn_k_norm.weight", HEAD, NONE, QK_NORM, WK_USE_OTHER)                        \
    X(ATTN_V, "attn_v.weight", V, EMBD, NEEDED, WK_USE_LINEAR)                                     \
    X(ATTN_V_BIAS, "attn_v.bias", V, NONE, OPTIONAL, WK_USE_OTHER)                                 \
    X(ATTN_OUTPUT, "attn_output.weight", EMBD, HEADS, NEEDED, WK_USE_LINEAR)                       \
    X(ATTN_OUTPUT_BIAS, "attn_output.bias", EMBD, NONE, OPTIONAL, WK_USE_OTHER)                    \
    X(FFN_NORM, "ffn_norm.weight", EMBD, NONE, NEEDED, WK_USE_OTHER)                               \
    X(FFN_GATE, "ffn_gate.weight", FF, EMBD, NEEDED, WK_USE_LINEAR)                                \
    X(FFN_GATE_BIAS, "ffn_gate.bias", FF, NONE, OPTIONAL, WK_USE_OTHER)                            \
    X(FFN_UP, "ffn_up.weight", FF, EMBD, NEEDED, WK_USE_LINEAR)                                    \
    X(FFN_UP_BIAS, "ffn_up.bias", FF, NONE, OPTIONAL, WK_USE_OTHER)                                \
    X(FFN_DOWN, "ffn_down.weight", EMBD, FF, NEEDED, WK_USE_LINEAR)                                \
    X(FFN_DOWN_BIAS, "ffn_down.bias", EMBD, NONE, OPTIONAL, WK_USE_OTHER)

enum {
#define WK_MODEL_WEIGHT_ID(name, ...) WK_##name,
    WK_MODEL_WEIGHTS(WK_MODEL_WEIGHT_ID) WK_MODEL_WEIGHT_COUNT,
};

enum {
    WK_LAYER_WEIGHTS(WK_MODEL_WEIGHT_ID) WK_LAYER_WEIGHT_COUNT,
#undef WK_MODEL_WEIGHT_ID
};

/* A layer as the mixers see it. */
typedef struct wk_layer {
    wk_layer_spec spec;
    wick_tensor *weight[WK_LAYER_WEIGHT_COUNT]; /* NULL: optional and absent */
} wk_layer;

struct wk_model {
    wk_heap *heap;
    wk_arena arena;
    const wk_gguf *gguf;
    wk_hparams hparams;
    wk_layer *layers; /* [n_layers] */
    wick_tensor *weight[WK_MODEL_WEIGHT_COUNT];
    wk_placement placement;
    wk_weight_store stores[WK_MAX_STAGES]; /* of stages, while their weights are loaded */
    float *rope_divisors;                  /* [n_pairs], NULL: the file has none */
};

/* Keys and values of one layer, see wk_state. */
typedef struct wk_layer_cache {
    wick_tensor *k, *v;
} wk_layer_cache;

struct wk_state {
    wk_heap *heap;
    uint32_t first, n_layers;
    wk_layer_cache layers[]; /* [n_layers], from layer first on */
};

/* Finds every weight among the tensors of the file and checks them all; makes rope_divisors. */
wick_status wk_model_check_weights(wk_model *model, wick_error *err);

/* Self-attention of one layer: hidden [rows, n_embd] to what is added to it. */
wick_tensor *wk_mixer_attention(const wk_model *model, const wk_layer *layer,
                                const wk_layer_cache *cache, const wk_batch *batch,
                                wick_tensor *hidden);
/* Likewise the gated feed-forward part. */
wick_tensor *wk_mlp(const wk_model *model, const wk_layer *layer, wick_tensor *hidden);

#endif
