/* convert/hf_family.h: what a model is called at Hugging Face and what in GGUF: architecture,
 * tensors, and which numbers it has. */
#ifndef WK_CONVERT_HF_FAMILY_H
#define WK_CONVERT_HF_FAMILY_H

#include "core/json.h"

/* What happens to a tensor on the way. */
typedef enum wk_hf_change {
    WK_HF_AS_IT_IS,
    WK_HF_PERMUTE_Q, /* rotary pairs (i, i + dim / 2) of each head become neighbours */
    WK_HF_PERMUTE_K,
    WK_HF_REGROUP_QKV, /* rows of q, k and v lie together by head of keys; each kind's become one */
    WK_HF_ADD_ONE,
    WK_HF_TRANSPOSE,    /* [in, out] in the checkpoint */
    WK_HF_SQUEEZE,      /* [channels, 1, taps] in the checkpoint */
    WK_HF_NEGATIVE_EXP, /* the logarithm in the checkpoint; a vector becomes a column */
    WK_HF_COLUMN,
    WK_HF_GROUPS, /* a vector becomes a row for each group of a state space */
    WK_HF_LEFT_OUT,
} wk_hf_change;

typedef enum wk_hf_trait {
    WK_HF_ENCODER = 1 << 0,
    WK_HF_LAYER_NORM = 1 << 1, /* else RMSNorm */
    WK_HF_GELU = 1 << 2,       /* by tanh; */
    WK_HF_GELU_ERF = 1 << 9,   /* exact; else SiLU */
    WK_HF_PERMUTED_HEADS =
        1 << 3, /* rotary pairs are neighbours in GGUF, halves in the checkpoint */
    WK_HF_NORMS_FROM_ZERO = 1 << 4, /* norms multiply by 1 + weight */
    WK_HF_TRANSPOSED = 1 << 5,
    WK_HF_GROUPED_QKV = 1 << 6,
    WK_HF_ROPE_DIMENSION = 1 << 7, /* is written even where all of a head is rotated */
    WK_HF_WINDOWS = 1 << 8,        /* of attention, by layer */
    WK_HF_WINDOW_ROPE = 1 << 10,   /* layers with a window rotate otherwise */
    WK_HF_FOURTH_UNROTATED = 1 << 11,
    WK_HF_LEARNED_POSITIONS = 1 << 12, /* nothing rotates */
    WK_HF_WARM_QUERIES = 1 << 13,      /* queries grow with their position */
    WK_HF_XIELU = 1 << 14,
    WK_HF_RELU_SQUARED = 1 << 15,
    WK_HF_LATENT = 1 << 16,     /* numbers say how wide heads are */
    WK_HF_HEAD_STEPS = 1 << 17, /* of Mamba 2 */
    WK_HF_SCALED = 1 << 18,     /* multipliers become part of weights */
    WK_HF_SOME_ATTENTION = 1 << 19,
    WK_HF_BLOCKS = 1 << 20,        /* each layer is a mixer or an MLP; */
    WK_HF_EXPERT_BLOCKS = 1 << 21, /* the latter have experts */
} wk_hf_trait;

/* The name of a tensor without ".weight" and ".bias"; with $ at its end the whole name. %: the
 * number of the layer; #: that of a part of the tensor: an expert or a head. Lists of rules and of
 * numbers end with an empty one. */
typedef struct wk_hf_rule {
    const char *checkpoint, *gguf;
} wk_hf_rule;

typedef enum wk_hf_kind {
    WK_HF_U32,
    WK_HF_F32,
    WK_HF_BOOL,
    WK_HF_CAP,          /* null: 0, which is none */
    WK_HF_INVERSE_ROOT, /* 1 / sqrt(x) */
    WK_HF_OF_TWO,       /* product or sum of two keys, which have * or + between them */
    WK_HF_STEP_RANK,    /* "auto" is a 16th of the channels */
    WK_HF_UNLIMITED,    /* [0, infinity]; nothing is written */
    WK_HF_GATING,       /* "sigmoid" or "softmax", which is that of the chosen */
    WK_HF_LEADING,      /* how many items of a list are "dense", which all others follow */
    WK_HF_TRUE,         /* it must be true; gguf NULL: nothing is written */
    WK_HF_CONSTANT,     /* config is the number itself, not a key */
} wk_hf_kind;
/* A key of config.json, or several that mean the same with | between them, and that of GGUF. */
typedef struct wk_hf_number {
    const char *config, *gguf;
    wk_hf_kind kind;
    bool is_optional; /* null or not there: nothing is written */
} wk_hf_number;

/* Keys that need no converting, several with | between them and * for any characters; those inside
 * an object are "rope_scaling.truncate". value: the only one that Wick computes, as text
 * (hf_unread.c); NULL: results do not depend on it. Lists end with an empty one. */
typedef struct wk_hf_fixed {
    const char *keys, *value;
} wk_hf_fixed;

typedef struct wk_hf_family {
    const char *model_type, *architecture;
    uint32_t traits;             /* wk_hf_trait */
    const wk_hf_rule *rules;     /* before those of all decoders; NULL: no others */
    const wk_hf_number *numbers; /* beside those of all; NULL: no others */
    const wk_hf_fixed *fixed;    /* the same */
} wk_hf_family;

/* Whether text is one of keys, which have | between them and may have * for any characters. */
bool wk_hf_is_named(const char *keys, wk_str text);

/* By model_type of config.json, and the first that its layers fit. WICK_ERR_UNSUPPORTED names it
 * and lists what is known. */
wick_status wk_hf_family_find(const wk_json *config, const wk_hf_family **out, wick_error *err);

/* By the architecture in GGUF: the first family of those that share its names. NULL: none. */
const wk_hf_family *wk_hf_family_of(const char *architecture);

enum { WK_HF_NAME = 96 };
typedef struct wk_hf_place {
    char name[WK_HF_NAME]; /* in GGUF */
    wk_hf_change change;
    bool is_part;  /* of several that are stacked */
    uint32_t part; /* else 0 */
} wk_hf_place;
/* What becomes of a tensor of the checkpoint. False: not known. */
bool wk_hf_rename(const wk_hf_family *family, wk_str name, wk_hf_place *out);

#endif
