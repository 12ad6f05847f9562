/* model/model_struct.h: the inside of a model, for the files of this folder. */
#ifndef WK_MODEL_MODEL_STRUCT_H
#define WK_MODEL_MODEL_STRUCT_H

#include "model/layer_spec.h"
#include "model/model.h"
#include "ops/cached.h"

/* A layer as the mixers see it. Weights by wk_layer_weight; bias[i] is what the file has beside
 * weight[i]. NULL: optional and absent. */
typedef struct wk_layer {
    wk_layer_spec spec;
    wick_tensor *weight[WK_LAYER_WEIGHT_COUNT], *bias[WK_LAYER_WEIGHT_COUNT];
    wk_factors *factors;     /* of some of them; NULL: none */
    struct wk_stack *stacks; /* adapters.c: of those that adapters change */
} wk_layer;

/* Weights outside of the layers, of one stage. */
typedef struct wk_stage_weights {
    wick_tensor *weight[WK_MODEL_WEIGHT_COUNT], *bias[WK_MODEL_WEIGHT_COUNT];
    wk_weight_store store; /* while the weights are loaded */
} wk_stage_weights;

static inline bool wk_layer_has_state_space(const wk_layer_spec *spec) {
    return spec->mixer == WK_MIXER_STATE_SPACE || spec->has_state_space;
}

/* It carries a state from token to token. */
static inline bool wk_layer_is_recurrent(const wk_layer_spec *spec) {
    return spec->mixer == WK_MIXER_CONVOLUTION || wk_layer_has_state_space(spec) ||
           spec->mixer == WK_MIXER_DELTA_NET;
}

/* Its keys and values are needed only as far back as its window. */
static inline bool wk_layer_forgets(const wk_layer_spec *spec) {
    return spec->mixer == WK_MIXER_ATTENTION && spec->attention.window > 0 &&
           !spec->attention.is_bidirectional;
}

struct wk_model {
    wk_heap *heap;
    wk_arena arena;
    const wk_gguf *gguf;
    wk_hparams hparams;
    wk_layer *layers; /* [n_layers], and the prediction head */
    bool has_head;
    wk_stage_weights stage_weights[WK_MAX_STAGES];
    wk_placement placement;
    float *rope_divisors[WK_ROPE_DIVISORS_COUNT]; /* [n_pairs], NULL: the file has none */
    bool is_in_place;                             /* weights are for WK_USE_IN_PLACE, too */
    wk_adapter *adapters;
    uint32_t n_stackings; /* see wk_model_adapters_version */
};

/* The head counted, where there is one: it belongs to the last stage. */
static inline uint32_t wk_model_layers(const wk_model *model) {
    return model->hparams.n_layers + model->has_head;
}

/* The layer after the last one of a stage. */
static inline uint32_t wk_stage_end(const wk_model *model, uint32_t stage) {
    const wk_placement *const placement = &model->placement;
    const bool has_head = model->has_head && stage + 1 == placement->n_stages;
    return placement->stages[stage].first + placement->stages[stage].count + has_head;
}

/* What a layer keeps between batches. NULL: its mixer keeps no such thing. */
typedef struct wk_layer_cache {
    wick_tensor *k, *v;
    wick_tensor *inputs, *numbers; /* states of causal_conv and of scan, a slot for a sequence */
} wk_layer_cache;

struct wk_state {
    wk_heap *heap;
    uint32_t stage, first, n_layers;
    bool has_window_blocks;  /* layers with a window have blocks of their own */
    wk_layer_cache layers[]; /* [n_layers], from layer first on */
};

/* What a pass without a state has in its place, for as long as it lasts. */
typedef struct wk_mask {
    wick_tensor *seen; /* u8; NULL: not made yet */
    int32_t window;
} wk_mask;
typedef struct wk_whole {
    uint32_t first;
    wk_mask masks[2]; /* of bidirectional layers without a window, and with one */
    wk_kv_rows kv[];  /* keys and values of the rows, from layer first on */
} wk_whole;

/* The forward pass of a batch, as its parts see it. */
typedef struct wk_pass {
    const wk_model *model;
    const wk_state *state; /* NULL: whole */
    wk_whole *whole;
    const wk_batch *batch;
    const wk_stage_weights *weights; /* of the stage */
    wick_tensor *layer_inputs;       /* [rows, n_layers, n_embd_layer]; NULL: there are none */
    wick_tensor *adapters;           /* u32 [rows, batch->n_adapters], their numbers */
} wk_pass;

/* Which of several forms a layer's tensors have in the file (is_fused). */
void wk_model_find_forms(const wk_model *model, uint32_t layer, wk_layer_spec *spec);
/* Finds every weight among the tensors of the file and checks them all; makes rope_divisors. */
wick_status wk_model_check_weights(wk_model *model, wick_error *err);

/* The model's norm. NULL x, as everywhere: NULL. */
wick_tensor *wk_norm(const wk_model *model, wick_tensor *x, wick_tensor *weight, wick_tensor *bias);
/* That of a layer at this site, if it has one there. */
wick_tensor *wk_norm_at(const wk_pass *pass, const wk_layer *layer, wk_norm_site site,
                        wick_tensor *x);
/* x [.., n] through weight [m, n] and its bias, and as adapters change it: [.., m]. */
wick_tensor *wk_project(const wk_pass *pass, const wk_layer *layer, wk_layer_weight weight,
                        wick_tensor *x);

/* factors.c: those that desc names, without tensors; the caller owns them. */
wick_status wk_factors_make(const wk_model *model, const wk_factors_desc *desc, wk_factors **out,
                            wick_error *err);
void wk_factors_free(wk_heap *heap, wk_factors *factors);
wick_device *wk_layer_device(const wk_model *model, uint32_t layer);
/* factors.c: y, of x through weight, and what the factors of that weight add. */
wick_tensor *wk_adapt(const wk_layer *layer, wk_layer_weight weight, wick_tensor *x,
                      wick_tensor *y);
void wk_layer_drop_factors(const wk_layer *layer);
/* Those that were dropped. On failure their device holds the sentence. */
wick_status wk_model_renew_factors(const wk_model *model);
void wk_model_free_factors(wk_model *model);
/* adapters.c: the same by what each row of the batch chooses. */
wick_tensor *wk_adapt_rows(const wk_pass *pass, const wk_layer *layer, wk_layer_weight weight,
                           wick_tensor *x, wick_tensor *y);
void wk_layer_drop_stacks(const wk_layer *layer);
void wk_model_free_adapters(wk_model *model);

/* x * scale; 1: x. */
wick_tensor *wk_scaled(wick_tensor *x, float scale);
wick_tensor *wk_activate(wk_activation activation, wick_tensor *x);
/* activation(gate) * up */
wick_tensor *wk_activate_gated(wk_activation activation, wick_tensor *gate, wick_tensor *up);
/* The same of [.., 2 * n]: n channels of gate, then n of up. */
wick_tensor *wk_activate_both(wk_activation activation, wick_tensor *both, int64_t n);
/* layer_inputs.c: a pass's layer_inputs from the embedded tokens x [rows, n_embd] and their ids. */
wick_tensor *wk_layer_inputs_make(const wk_pass *pass, wick_tensor *ids, wick_tensor *x);
/* x [rows, n_embd] + what it and the layer's own input give. */
wick_tensor *wk_layer_inputs_add(const wk_pass *pass, uint32_t layer, wick_tensor *x);

/* Biases per key of distance [n_heads], the sharpest first: 2^(-most i / n), i = 1 to n, where n
 * heads are a power of two; of other counts, those of the lower power and then every second one of
 * the higher (ALiBi: Press et al., 2022). */
wick_tensor *wk_alibi_slopes(wick_device *device, uint32_t n_heads, float most);

/* attend.c: keys [rows, n_heads_kv, head_dim] and values of a layer's rows, for its queries and
 * those of later layers that share them. */
wick_status wk_keep(const wk_pass *pass, uint32_t layer, wk_kv_rows fresh);
/* What queries q [rows, n_heads_q, head_dim] see: [rows, n_heads_q, head_dim_v]; slopes and sinks
 * [n_heads_q] or NULL. */
typedef struct wk_queries {
    wick_tensor *q, *slopes, *sinks;
} wk_queries;
wick_tensor *wk_attend(const wk_pass *pass, uint32_t layer, const wk_queries *of);

/* Sequence mixers: normed rows [rows, n_embd] to what is added to the stream. */
wick_tensor *wk_mixer_attention(const wk_pass *pass, uint32_t layer, wick_tensor *x);
wick_tensor *wk_mixer_latent(const wk_pass *pass, uint32_t layer, wick_tensor *x);
wick_tensor *wk_mixer_convolution(const wk_pass *pass, uint32_t layer, wick_tensor *x);
wick_tensor *wk_mixer_state_space(const wk_pass *pass, uint32_t layer, wick_tensor *x);
wick_tensor *wk_mixer_delta_net(const wk_pass *pass, uint32_t layer, wick_tensor *x);
/* Channel mixers likewise. */
wick_tensor *wk_mlp(const wk_pass *pass, const wk_layer *layer, wick_tensor *x);
/* begin: what the layer began with. */
wick_tensor *wk_experts(const wk_pass *pass, const wk_layer *layer, wick_tensor *x,
                        wick_tensor *begin);

#endif
