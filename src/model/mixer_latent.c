/* model/mixer_latent.c: latent attention (DeepSeek-AI, 2024), absorbed: the matrix
 * that would make keys of the latent vectors maps queries into their space instead. */
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
    wick_tensor *const plain = by_head(layer, WK_LATENT_K_B, wick_narrow(q, 2, 0, n_plain));
    return join(plain, rotate(pass, spec, wick_narrow(q, 2, n_plain, n_rotated)));
}

/* [rows, 1, ..] each. */
static wk_kv_rows make_keys(const wk_pass *pass, const wk_layer *layer, wick_tensor *x) {
    const wk_attention_spec *const spec = &layer->spec.attention;
    const int64_t n_latent = spec->head_dim_v, n_rotated = layer->spec.latent.n_rotated;
    wick_tensor *const both = wick_unsqueeze(wk_project(pass, layer, WK_LATENT_KV_A, x), 1);
    wick_tensor *const latent = wk_norm(pass->model, wick_narrow(both, 2, 0, n_latent),
                                        layer->weight[WK_LATENT_KV_A_NORM], NULL);
    wick_tensor *const rotated = rotate(pass, spec, wick_narrow(both, 2, n_latent, n_rotated));
    return (wk_kv_rows){.k = join(latent, rotated), .v = latent};
}

wick_tensor *wk_mixer_latent(const wk_pass *pass, uint32_t index, wick_tensor *x) {
    const wk_layer *const layer = &pass->model->layers[index];
    const wk_attention_spec *const spec = &layer->spec.attention;
    const wk_queries queries = {.q = make_queries(pass, layer, x)};
    if (wk_keep(pass, index, make_keys(pass, layer, x)) != WICK_OK) return NULL;
    wick_tensor *const y = wk_attend(pass, index, &queries);
    const int64_t n_values = (int64_t)spec->n_heads_q * layer->spec.latent.n_values;
    wick_tensor *const values = by_head(layer, WK_LATENT_V_B, y);
    return wk_project(pass, layer, WK_LATENT_OUTPUT,
                      wick_reshape(values, WICK_SHAPE(-1, n_values)));
}
