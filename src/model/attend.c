/* model/attend.c: the keys and values that queries meet: those of the cache, or without a state
 * those of the rows themselves, whole texts from their beginning. */
#include "model/model_struct.h"
#include "ops/attention.h"
#include "ops/cached.h"

#include <wick/ops.h>

#include <assert.h>

/* --- Over the cache --- */

/* The batch as the cache of this layer has it. */
static wk_batch_layout lay_out(const wk_pass *pass, const wk_layer *layer) {
    wk_batch_layout layout = pass->batch->layout;
    if (!pass->state->has_window_blocks || !wk_layer_forgets(&layer->spec)) return layout;
    layout.slots = pass->batch->window_slots;
    layout.tables = pass->batch->window_tables;
    return layout;
}

static const wk_layer_cache *cache_of(const wk_pass *pass, uint32_t layer) {
    assert(layer >= pass->state->first && layer - pass->state->first < pass->state->n_layers);
    return &pass->state->layers[layer - pass->state->first];
}

static wick_tensor *attend_cached(const wk_pass *pass, const wk_attention_spec *spec,
                                  const wk_queries *of) {
    const wk_layer_cache *const cache = cache_of(pass, spec->kv_layer);
    const wk_params params = {
        .cached = {.scale = spec->scale,
                   .softcap = spec->softcap,
                   .window = spec->window,
                   .is_bidirectional = spec->is_bidirectional,
                   .batch = lay_out(pass, &pass->model->layers[spec->kv_layer])},
    };
    const wk_kv_seen seen = {cache->k, cache->v, of->slopes, of->sinks};
    return wk_attention_cached(of->q, &seen, pass->batch->descriptor, &params);
}

/* --- Over the rows --- */

/* A section of the descriptor, [b, 1, 1, s]. */
static wick_tensor *section_of(const wk_pass *pass, uint32_t first) {
    const wk_batch_layout *const layout = &pass->batch->layout;
    return wick_reshape(wick_narrow(pass->batch->descriptor, 0, first, layout->n_rows),
                        WICK_SHAPE(layout->n_sequences, 1, 1, -1));
}

/* Which keys the queries of bidirectional layers see, u8. Causal layers need no mask: padding comes
 * after its text, so that only other padding rows see it.
 *
 * Without a window [b, 1, 1, s]: rows that are not padding. With one [b, 1, t, s]: rows at
 * positions up to window - 1 after the query's, where padding counts as the last position of all;
 * the op itself hides keys that are too far before the query. */
static wick_tensor *make_mask(const wk_pass *pass, int32_t window) {
    const wk_batch_layout *const layout = &pass->batch->layout;
    wick_tensor *const last =
        wick_full(wick_tensor_device(pass->batch->descriptor), WICK_U32, WICK_SCALAR, WK_NO_ROW);
    wick_tensor *const is_row = wick_ne(section_of(pass, layout->sequences), last);
    if (window == 0) return is_row;
    wick_tensor *const at = section_of(pass, layout->positions);
    wick_tensor *const end = wick_affine(wick_transpose(at, 2, 3), 1, window);
    return wick_lt(wick_where(is_row, at, last), end);
}

/* Made for the first layer that wants it; those of a model have one window, if any. */
static wick_tensor *mask_of(const wk_pass *pass, const wk_attention_spec *spec) {
    wk_mask *const mask = &pass->whole->masks[spec->window > 0];
    if (mask->seen == NULL || mask->window != spec->window)
        *mask = (wk_mask){make_mask(pass, spec->window), spec->window};
    return mask->seen;
}

/* [rows, heads, dim] as [b, t, heads, dim]. */
static wick_tensor *by_text(const wk_pass *pass, wick_tensor *x) {
    if (x == NULL) return NULL;
    const wick_shape shape = wick_tensor_shape(x);
    return wick_reshape(
        x, WICK_SHAPE(pass->batch->layout.n_sequences, -1, shape.extent[1], shape.extent[2]));
}

static wick_tensor *attend_rows(const wk_pass *pass, const wk_attention_spec *spec,
                                const wk_queries *of) {
    const wk_kv_rows *const seen = &pass->whole->kv[spec->kv_layer - pass->whole->first];
    const wick_attention_desc desc = {.scale = (double)spec->scale,
                                      .softcap = (double)spec->softcap,
                                      .window = spec->window,
                                      .causal = !spec->is_bidirectional,
                                      .mask = spec->is_bidirectional ? mask_of(pass, spec) : NULL,
                                      .sinks = of->sinks,
                                      .slopes = of->slopes};
    if (spec->is_bidirectional && desc.mask == NULL) return NULL;
    wick_tensor *const y = wk_attention_bthd(by_text(pass, of->q), by_text(pass, seen->k),
                                             by_text(pass, seen->v), &desc);
    return wick_flatten(y, 0, 1);
}

/* --- Either --- */

wick_status wk_keep(const wk_pass *pass, uint32_t layer, wk_kv_rows fresh) {
    if (pass->state == NULL) {
        pass->whole->kv[layer - pass->whole->first] = fresh;
        return fresh.k != NULL && fresh.v != NULL ? WICK_OK : WICK_ERR_ARGUMENT;
    }
    const wk_params params = {.cached.batch = lay_out(pass, &pass->model->layers[layer])};
    const wk_layer_cache *const cache = cache_of(pass, layer);
    return wk_kv_append_cached(cache->k, cache->v, fresh, pass->batch->descriptor, &params);
}

wick_tensor *wk_attend(const wk_pass *pass, uint32_t layer, const wk_queries *of) {
    const wk_attention_spec *const spec = &pass->model->layers[layer].spec.attention;
    return pass->state != NULL ? attend_cached(pass, spec, of) : attend_rows(pass, spec, of);
}
