/* model/mixer_attention.c: self-attention (Vaswani et al., 2017; grouped heads: Ainslie et al.,
 * 2023; rotary embedding: Su et al., 2021). */
#include "model/model_struct.h"

#include <wick/ops.h>

/* Rows of one head each are normed alike, [rows, heads, dim]. */
static wick_tensor *norm_heads(const wk_pass *pass, const wk_layer *layer, wk_layer_weight norm,
                               wick_tensor *x) {
    wick_tensor *const weight = layer->weight[norm];
    switch (layer->spec.attention.qk_norm) {
    case WK_QK_NORM_NONE: return x;
    case WK_QK_NORM_HEAD: return wk_norm(pass->model, x, weight, NULL);
    case WK_QK_NORM_OWN: return wick_mul(wk_norm(pass->model, x, NULL, NULL), weight);
    case WK_QK_NORM_CHANNELS: {
        wick_tensor *const rows = wick_flatten(x, 1, 2);
        wick_tensor *const normed = wk_norm(pass->model, rows, weight, NULL);
        return x != NULL ? wick_reshape(normed, wick_tensor_shape(x)) : NULL;
    }
    case WK_QK_NORM_PLAIN: return wick_rms_norm(x, NULL, pass->model->hparams.norm_eps);
    }
    return NULL;
}

/* Heads of q or k [rows, heads, dim] as they are compared. */
static wick_tensor *prepare_heads(const wk_pass *pass, const wk_layer *layer, wk_layer_weight norm,
                                  wick_tensor *x) {
    const wk_attention_spec *const spec = &layer->spec.attention;
    const bool is_query = norm == WK_ATTN_Q_NORM;
    const uint32_t rope = is_query && spec->query_rope > 0 ? spec->query_rope : spec->rope;
    if (!spec->is_normed_after_rope) x = norm_heads(pass, layer, norm, x);
    if (rope != WK_NO_ROPE)
        x = wick_rope_table(x, pass->batch->cos[rope], pass->batch->sin[rope],
                            spec->is_rope_interleaved, WICK_ROPE_BTHD);
    return spec->is_normed_after_rope ? norm_heads(pass, layer, norm, x) : x;
}

/* Rows of x through the projection of q, k or v, as heads [rows, n_heads, dim]. fused: all three
 * side by side, of which these begin at channel first; NULL: each has a weight of its own. */
typedef struct projection {
    wk_layer_weight weight;
    int64_t first;
    uint32_t n_heads, dim;
} projection;

static wick_tensor *project_heads(const wk_pass *pass, const wk_layer *layer, wick_tensor *fused,
                                  wick_tensor *x, projection to) {
    const int64_t n = (int64_t)to.n_heads * to.dim;
    const double clamp = (double)layer->spec.attention.clamp;
    wick_tensor *rows = layer->spec.attention.is_fused ? wick_narrow(fused, 1, to.first, n)
                                                       : wk_project(pass, layer, to.weight, x);
    if (clamp > 0.0) rows = wick_clamp(rows, -clamp, clamp);
    return wick_reshape(rows, WICK_SHAPE(-1, to.n_heads, to.dim));
}

/* Keys and values of the rows. */
static wk_kv_rows make_kv(const wk_pass *pass, const wk_layer *layer, wick_tensor *fused,
                          wick_tensor *x) {
    const wk_attention_spec *const spec = &layer->spec.attention;
    const int64_t n_q = (int64_t)spec->n_heads_q * spec->head_dim;
    const int64_t n_k = (int64_t)spec->n_heads_kv * spec->head_dim;
    const projection k = {WK_ATTN_K, n_q, spec->n_heads_kv, spec->head_dim};
    const projection v = {WK_ATTN_V, n_q + n_k, spec->n_heads_kv, spec->head_dim_v};
    wick_tensor *const keys = project_heads(pass, layer, fused, x, k);
    wk_kv_rows fresh = {.v = spec->is_v_k ? keys : project_heads(pass, layer, fused, x, v)};
    fresh.k = prepare_heads(pass, layer, WK_ATTN_K_NORM, keys);
    if (spec->has_v_norm) fresh.v = wick_rms_norm(fresh.v, NULL, pass->model->hparams.norm_eps);
    return fresh;
}

wick_tensor *wk_mixer_attention(const wk_pass *pass, uint32_t index, wick_tensor *x) {
    const wk_layer *const layer = &pass->model->layers[index];
    const wk_attention_spec *const spec = &layer->spec.attention;
    const uint32_t n_parts = spec->has_output_gate ? 2 : 1; /* of a head: query, gate */
    const projection to_q = {WK_ATTN_Q, 0, spec->n_heads_q, n_parts * spec->head_dim};

    wick_tensor *const fused = spec->is_fused ? wk_project(pass, layer, WK_ATTN_QKV, x) : NULL;
    wick_tensor *const heads = project_heads(pass, layer, fused, x, to_q);
    wick_tensor *const q =
        prepare_heads(pass, layer, WK_ATTN_Q_NORM, wick_narrow(heads, 2, 0, spec->head_dim));
    if (!spec->is_kv_shared && wk_keep(pass, index, make_kv(pass, layer, fused, x)) != WICK_OK)
        return NULL;
    const bool has_slopes = q != NULL && spec->alibi_bias > 0.0F;
    const wk_queries queries = {
        .q = q,
        .slopes = has_slopes
                      ? wk_alibi_slopes(wick_tensor_device(q), spec->n_heads_q, spec->alibi_bias)
                      : NULL,
        .sinks = spec->has_sinks ? layer->weight[WK_ATTN_SINKS] : NULL,
    };
    wick_tensor *y = wk_attend(pass, index, &queries);
    if (spec->has_output_gate)
        y = wick_mul(y, wick_sigmoid(wick_narrow(heads, 2, spec->head_dim, spec->head_dim_v)));
    const int64_t n_values = (int64_t)spec->n_heads_q * spec->head_dim_v;
    y = wick_reshape(y, WICK_SHAPE(-1, n_values));
    if (spec->value_scale > 0.0F) y = wk_scaled(y, spec->value_scale);
    if (spec->has_gate_weight)
        y = wick_mul(y, wick_sigmoid(wk_project(pass, layer, WK_ATTN_GATE, x)));
    y = wk_norm_at(pass, layer, WK_MIXER_INNER, y);
    return wk_project(pass, layer, WK_ATTN_OUTPUT, y);
}
