/* model/weight_kind.h: the words of weights.def, for weight_table.c, which says what weights there
 * are, and weight_shape.c, which says what shape each has. */
#ifndef WK_MODEL_WEIGHT_KIND_H
#define WK_MODEL_WEIGHT_KIND_H

#include "model/weight_table.h"

/* What a model or a layer has by its description, see layer_has. */
typedef enum wk_weight_part {
    ALWAYS,
    NORM, /* where a site names this weight */
    POSITIONS,
    TYPES,
    CLASSIFIER_HEAD,
    LAYER_INPUTS,
    OWN_INPUT,
    OUTPUT_SCALE,
    ATTENTION,
    FUSED_QKV,
    SEPARATE_Q,
    SEPARATE_K,
    SEPARATE_V,
    Q_NORM_WEIGHT,
    K_NORM_WEIGHT,
    SINKS,
    GATE_WEIGHT,
    LATENT,
    LATENT_WHOLE_Q,
    LATENT_FACTORS,
    LATENT_ABSORBED,
    LATENT_EXPANDED,
    CONVOLUTION,
    STATE_SPACE,
    DELTA_NET,
    SCAN, /* the state space and the delta net */
    CHANNEL_STEPS,
    STEP_NORMS,
    SCAN_NORM,
    HEAD_STEPS,
    FUSED_GATES,
    SEPARATE_GATES,
    MLP,
    SEPARATE_GATE,
    EXPERTS,
    SEPARATE_EXPERTS,
    SEPARATE_EXPERT_GATES,
    FUSED_EXPERTS,
    SHARED_EXPERTS,
    SHARED_EXPERT_GATES,
    SHARED_GATE,
    PREDICTION,
} wk_weight_part;

typedef enum wk_weight_presence { NEEDED, OPTIONAL } wk_weight_presence;

/* Stages that have a weight of the model. */
typedef enum wk_weight_stages {
    ALL, /* of layers: the one that has the layer */
    /* the first, each whose layers have inputs of their own, and that of a prediction head; without
     * an output matrix also the last, as that matrix */
    TABLE,
    EITHER_END, /* the first or the last: where it norms */
    FIRST,
    LAST,
    EACH,
} wk_weight_stages;

typedef enum wk_weight_extent {
    END, /* of the list */
    VOCAB,
    EMBD,
    EMBD_TWICE,
    POSITION,
    TYPE,
    LABELS,
    ONE,
    LAYER_INPUT,
    LAYERS_INPUTS, /* of all layers */
    Q,
    K,
    V,
    QKV,
    HEADS, /* all values that are attended to */
    Q_NORMS,
    Q_NORM,
    K_NORMS,
    K_NORM,
    HEADS_Q,
    Q_RANK,
    LATENT_RANK,
    LATENT_KV,  /* latent and rotated channels */
    LATENT_QS,  /* channels of all queries */
    LATENT_KVS, /* plain channels and values of all heads */
    LATENT_PLAIN,
    LATENT_VALUE,
    LATENT_VALUES, /* of all heads */
    CONV_INPUTS,
    CONV_CHANNELS,
    CONV_TAPS,
    SCAN_HEADS,
    INNER, /* channels of all heads */
    STEP_RANK,
    SSM_INPUTS,
    SSM_STEP_B_C,
    SSM_RATES,
    SSM_RATE,
    SSM_D,
    SSM_NORMS,
    SSM_NORM,
    SSM_GATES,
    FF,
    FF_UP,
    EXPERT,
    EXPERT_FF,
    EXPERT_GATE_UP,
    SHARED_FF,
    SHARED_UP,
} wk_weight_extent;

enum { MAX_EXTENTS = 4 };

typedef struct wk_weight_kind {
    const char *name;
    wk_weight_part part;
    wk_weight_presence presence;
    wk_weight_stages stages;
    uint32_t uses;
    wk_weight_extent extents[MAX_EXTENTS];
} wk_weight_kind;

/* By id. */
const wk_weight_kind *wk_weight_kind_at(const wk_weight_place *at);

#endif
