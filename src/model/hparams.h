/* model/hparams.h: hyper-parameters: what all families share of a model's numbers. */
#ifndef WK_MODEL_HPARAMS_H
#define WK_MODEL_HPARAMS_H

#include "model/metadata.h"

/* Far above every model there is; keeps products of two extents within 64 bits. */
enum { WK_MAX_CHANNELS = 1 << 22, WK_MAX_VOCABULARY = 1 << 24 };

enum { WK_MAX_ROPES = 2 };

/* What the metadata says, checked. Angles of the rotary embedding: position * frequency. */
typedef struct wk_hparams {
    char architecture[64], name[128];
    uint32_t n_layers, n_embd, n_vocab, n_heads_q, n_heads_kv, context_length;
    uint32_t head_dim, head_dim_v; /* channels of a head's query and key, of its value */
    float norm_eps;
    uint32_t n_ropes;
    struct {
        uint32_t n_pairs;        /* half of the rotated dimensions */
        const double *frequency; /* [n_pairs], scaling included */
        double magnitude;        /* cos and sin are multiplied by it (YaRN) */
    } rope[WK_MAX_ROPES];
} wk_hparams;

/* Fills everything but the ropes (rope.h). meta->architecture must be hparams->architecture. */
wick_status wk_hparams_read(const wk_metadata *meta, wk_hparams *hparams);

#endif
