/* model/mixer_latent.c: latent attention (DeepSeek-AI, 2024), absorbed: the matrix that would make
 * keys of the latent vectors maps queries into their space instead; or expanded: each head's keys
 * and values are made of them. */
#include "model/model_struct.h"

#include <wick/ops.h>

/* x [rows, heads, n] by each head's matrix of weight [heads, m, n]: [rows, heads, m]. */
static wick_tensor *by_head(const wk_layer *layer, wk_layer_weight weight, wick_tensor *x) {
    if (x == NULL) return NULL;
    const wick_shape shape = wick_tensor_shape(x);
    wick_tensor *const heads =
        wick_arange(wick_tensor_device(x), WICK_U32, 0, (double)shape.extent[1], 1);
    wick_tensor *const ids = wick_expand(heads, WICK_SHAPE(shape.extent[0], shape.extent[1]));
    return wick_linear_experts(x, layer->weight[weight], NULL, ids);
}

static wick_tensor *rotate(const wk_pass *pass, const wk_attention_spec *spec, wick_tensor *x) {
    return wick_rope_table(x, pass->batch->cos[spec->rope], pass->batch->sin[spec->rope],
                           spec->is_rope_interleaved, WICK_ROPE_BTHD);
}

static wick_tensor *join(wick_tensor *latent, wick_tensor *rotated) {
    return wick_cat((wick_tensor *[]){latent, rotated}, 2, 2);
}

/* [rows, heads, latent + rotated] */
static wick_tensor *make_queries(const wk_pass *pass, const wk_layer *layer, wick_tensor *x) {
    const wk_attention_spec *const spec = &layer->spec.attention;
    const int64_t n_plain = layer->spec.latent.n_plain, n_rotated = layer->spec.latent.n_rotated;
    wick_tensor *q;
    if (layer->spec.latent.q_rank > 0) {
        q = wk_norm(pass->model, wk_project(pass, layer, WK_LATENT_Q_A, x),
                    layer->weight[WK_LATENT_Q_A_NORM], NULL);
        q = wk_project(pass, layer, WK_LATENT_Q_B, q);
    } else {
        q = wk_project(pass, layer, WK_LATENT_Q, x);
    }
    q = wick_reshape(q, WICK_SHAPE(-1, spec->n_heads_q, n_plain + n_rotated));
    wick_tensor *plain = wick_narrow(q, 2, 0, n_plain);
    if (!layer->spec.latent.is_expanded) plain = by_head(layer, WK_LATENT_K_B, plain);
    return join(plain, rotate(pass, spec, wick_narrow(q, 2, n_plain, n_rotated)));
}

/* Of one latent vector for all heads, [rows, 1, ..] each, a key and a value for each. */
static wk_kv_rows expand(const wk_pass *pass, const wk_layer *layer, wick_tensor *latent,
                         wick_tensor *rotated) {
    const wk_latent_spec *const spec = &layer->spec.latent;
    const int64_t n_heads = layer->spec.attention.n_heads_q, n_plain = spec->n_plain;
    wick_tensor *const rows = wk_project(pass, layer, WK_LATENT_KV_B, wick_squeeze(latent, 1));
    wick_tensor *const heads =
        wick_reshape(rows, WICK_SHAPE(-1, n_heads, n_plain + spec->n_values));
    const int64_t n_rows = pass->batch->layout.n_rows;
    wick_tensor *const shared = wick_expand(rotated, WICK_SHAPE(n_rows, n_heads, spec->n_rotated));
    return (wk_kv_rows){.k = join(wick_narrow(heads, 2, 0, n_plain), shared),
                        .v = wick_narrow(heads, 2, n_plain, spec->n_values)};
}

/* [rows, 1, ..] each; expanded [rows, heads, ..]. */
static wk_kv_rows make_keys(const wk_pass *pass, const wk_layer *layer, wick_tensor *x) {
    const wk_attention_spec *const spec = &layer->spec.attention;
    const int64_t n_latent = layer->spec.latent.n_latent;
    const int64_t n_rotated = layer->spec.latent.n_rotated;
    wick_tensor *const both = wick_unsqueeze(wk_project(pass, layer, WK_LATENT_KV_A, x), 1);
    wick_tensor *const latent = wk_norm(pass->model, wick_narrow(both, 2, 0, n_latent),
                                        layer->weight[WK_LATENT_KV_A_NORM], NULL);
    wick_tensor *const rotated = rotate(pass, spec, wick_narrow(both, 2, n_latent, n_rotated));
    if (layer->spec.latent.is_expanded) return expand(pass, layer, latent, rotated);
    return (wk_kv_rows){.k = join(latent, rotated), .v = latent};
}

wick_tensor *wk_mixer_latent(const wk_pass *pass, uint32_t index, wick_tensor *x) {
    const wk_layer *const layer = &pass->model->layers[index];
    const wk_attention_spec *const spec = &layer->spec.attention;
    const wk_queries queries = {.q = make_queries(pass, layer, x)};
    if (wk_keep(pass, index, make_keys(pass, layer, x)) != WICK_OK) return NULL;
    wick_tensor *y = wk_attend(pass, index, &queries);
    const int64_t n_values = (int64_t)spec->n_heads_q * layer->spec.latent.n_values;
    if (!layer->spec.latent.is_expanded) y = by_head(layer, WK_LATENT_V_B, y);
    return wk_project(pass, layer, WK_LATENT_OUTPUT, wick_reshape(y, WICK_SHAPE(-1, n_values)));
}
