/* model/layer_spec.h: what one layer computes: all that the forward pass knows of a model.
 *
 * x = x + output(attention(rope(q), rope(k), v)) of norm(x), then x = x + mlp(norm(x)). Norms are
 * RMSNorm before each mixer; a bias is added where the file has one. */
#ifndef WK_MODEL_LAYER_SPEC_H
#define WK_MODEL_LAYER_SPEC_H

#include <stdbool.h>
#include <stdint.h>

typedef struct wk_layer_spec {
    struct {
        bool has_qk_norm;         /* RMSNorm of each head of q and k, before the rotation */
        uint32_t rope;            /* index into wk_hparams.rope */
        bool is_rope_interleaved; /* pairs (2i, 2i + 1), else halves (i, i + n / 2) */
        float scale;              /* of the scores */
        int32_t window;           /* keys that a query sees, its own counted; 0: all */
    } attention;
    struct {
        uint32_t n_ff; /* channels between gate, up and down of the SwiGLU */
    } mlp;
} wk_layer_spec;

#endif
