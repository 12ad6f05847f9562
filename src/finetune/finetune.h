/* finetune/finetune.h: the inside of a training, for the files of this folder. */
#ifndef WK_FINETUNE_FINETUNE_H
#define WK_FINETUNE_FINETUNE_H

#include "finetune/examples.h"

#include <wick/train.h>

typedef enum wk_finetune_phase {
    WK_FINETUNE_MEASURING, /* the held-out examples */
    WK_FINETUNE_LEARNING,
    WK_FINETUNE_STORING, /* a checkpoint is due */
    WK_FINETUNE_DONE,
} wk_finetune_phase;

struct wick_finetune {
    wk_heap heap;
    wk_arena arena; /* of all arrays and names */
    wick_model *model;
    wick_device *device; /* the model's */
    uint32_t generation; /* of the device that holds what follows */
    const wick_examples *examples;
    wick_finetune_desc desc; /* without zeros that mean something else; checkpoint copied */
    wk_factors **factors;    /* [n_factors] of the model */
    size_t n_factors;
    /* [2 n_factors] a and b of each: */
    wick_tensor **params;
    wick_tensor **sums; /* of gradients, of the step that is under way; NULL: none yet */
    const char **names; /* "blk.0.attn_q.weight.lora_a" */
    wick_optimizer *optimizer;
    struct {
        const char **names;
        wick_tensor **tensors;
        size_t n;
    } stored; /* in checkpoints: the factors, then the optimizer's states */

    size_t n_trained, n_held; /* examples: the first ones, the last ones */
    uint32_t *order;          /* [n_trained] of the epoch */
    uint64_t epoch;           /* UINT64_MAX: none yet */
    uint64_t step, n_tokens;

    wk_finetune_phase phase;
    size_t at, next;       /* of the batch, or of the held-out examples: done, computed next */
    uint64_t n_learned;    /* tokens of those done and under way */
    double loss;           /* sum over those done */
    wick_reading *reading; /* of the loss of what is under way */
    wick_error failure;    /* of a slice, which is final */
};

/* checkpoint.c */
wick_status wk_finetune_load(wick_finetune *f, wick_error *err);

#endif
