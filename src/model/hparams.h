/* model/hparams.h: hyper-parameters: what all families share of a model's numbers. */
#ifndef WK_MODEL_HPARAMS_H
#define WK_MODEL_HPARAMS_H

#include "model/layer_spec.h"
#include "model/metadata.h"

/* Far above every model there is; keeps products of two extents within 64 bits. */
enum { WK_MAX_CHANNELS = 1 << 22, WK_MAX_VOCABULARY = 1 << 24 };

enum { WK_MAX_ROPES = 2 };

/* Tables of the file that rotary frequencies are divided by, see rope.h. */
enum {
    WK_ROPE_DIVISORS,       /* for contexts of any length */
    WK_ROPE_DIVISORS_LONG,  /* for contexts longer than wk_rope.original_context */
    WK_ROPE_DIVISORS_SHORT, /* for others; after LONG, which divides the undivided frequencies */
    WK_ROPE_DIVISORS_COUNT
};

/* Where a rotary embedding's numbers are. */
typedef struct wk_rope_desc {
    uint32_t head_dim;          /* of the layers that use it */
    const char *dimensions_key; /* NULL: "rope.dimension_count" */
    const char *base_key;       /* NULL: "rope.freq_base" */
    double default_base;        /* 0: rope.freq_base, and 10000 without that */
    bool is_plain;              /* neither the rope.scaling.* keys nor divisors are meant for it */
    bool is_ramp_exact;         /* the borders of YaRN's ramp may lie between two pairs */
} wk_rope_desc;

/* Angles: position * frequency. */
typedef struct wk_rope {
    wk_rope_desc desc;
    uint32_t n_pairs;        /* half of the rotated dimensions */
    const double *frequency; /* [n_pairs], scaling included */
    /* [n_pairs] for contexts of more than original_context tokens; NULL: as for all others */
    const double *long_frequency;
    uint32_t original_context;
    double magnitude; /* cos and sin are multiplied by it (YaRN), */
    /* and by 1 + warmth * ln(1 + floor(position / original_context)) (Mistral's models). */
    double warmth;
} wk_rope;

/* The key pooling_type. */
typedef enum wk_pooling {
    WK_POOLING_NONE,
    WK_POOLING_MEAN,
    WK_POOLING_CLS,
    WK_POOLING_LAST,
    WK_POOLING_RANK, /* a classifier's score */
    WK_POOLING_UNSAID,
} wk_pooling;

/* Biases of layers: of queries, keys and values; of all matrices; of all norms. */
enum { WK_BIASES_QKV = 1, WK_BIASES_MATRICES = 2, WK_BIASES_NORMS = 4 };

/* What the metadata says, checked. */
typedef struct wk_hparams {
    char architecture[64], name[128];
    uint32_t n_layers, n_embd, n_vocab, context_length;
    uint32_t most_context;   /* longer ones would be computed otherwise; 0: none would */
    uint32_t n_layers_ahead; /* after n_layers in the file: prediction heads, see wk_model_guess */
    /* The most of any layer; each has its own in its spec. */
    uint32_t n_heads_q, n_heads_kv, head_dim, head_dim_v;
    bool is_recurrent; /* some layer's state cannot go back to an earlier token */
    uint32_t window;   /* the largest one past which a layer drops its keys; 0: none */
    wk_norm_kind norm;
    uint32_t biases; /* WK_BIASES_*: that no file of the family is without */
    float norm_eps;
    uint32_t n_ropes;
    wk_rope rope[WK_MAX_ROPES];
    uint32_t short_context; /* longer contexts have divisors of their own; 0: none has */

    bool is_bidirectional; /* some layer sees all of the text: an encoder */
    wk_pooling pooling;    /* how the states of a text become one, by the file */
    uint32_t n_labels;     /* scores of a text by the classifier; 0: there is none */

    /* Embedded tokens: table rows * embedding_scale, + a learned row for the position, + one for
     * the type of token (always the first), and embedding_norm of it all. */
    float embedding_scale;
    uint32_t n_positions, n_token_types; /* rows of those tables; 0: there are none */
    int embedding_norm, output_norm;     /* ids of model weights, or WK_NO_MODEL_WEIGHT */
    /* Channels of an input that each layer has of its own, made of the token and its embedding; 0:
     * there is none. */
    uint32_t n_embd_layer;
    /* Logits: products with the output matrix * logit_scale, then c tanh(logit / c), c > 0. */
    float logit_scale, logit_softcap;
} wk_hparams;

/* Fills what all families share; a family says the rest: hparams->norm must be known before, and
 * is kept. meta->architecture must be hparams->architecture. */
wick_status wk_hparams_read(const wk_metadata *meta, wk_hparams *hparams);

#endif
