/* finetune/finetune.h: the inside of a training, for the files of this folder. */
#ifndef WK_FINETUNE_FINETUNE_H
#define WK_FINETUNE_FINETUNE_H

#include "core/str.h"
#include "finetune/batch.h"
#include "format/gguf_parse.h"

#include <wick/file.h>

typedef enum wk_finetune_phase {
    WK_FINETUNE_MEASURING, /* the held-out examples */
    WK_FINETUNE_LEARNING,
    WK_FINETUNE_STORING,   /* a checkpoint is due */
    WK_FINETUNE_RESTORING, /* the device was lost */
    WK_FINETUNE_DONE,
} wk_finetune_phase;

enum { WK_FINETUNE_VALUES = 15 }; /* of a file, at most */

/* A file in memory that is being made. */
typedef struct wk_finetune_saving {
    bool is_state;
    size_t n, next;          /* the first n of stored; those before next are in bytes */
    wick_reading **readings; /* [n] */
    wk_gguf_parser *header;  /* which says where they go */
    wk_strbuf bytes;
} wk_finetune_saving;

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
    wick_tensor **sums; /* of the gradients of the step that is under way; NULL: none yet */
    const char **names; /* "blk.0.attn_q.weight.lora_a" */
    wick_optimizer *optimizer;
    struct {
        const char **names;
        wick_tensor **tensors;
        size_t n;
    } stored;            /* in checkpoints: the factors, then the optimizer's states */
    bool has_checkpoint; /* the file is of this training */
    wk_strbuf kept;      /* the state that was saved to memory since; empty: none */
    wk_finetune_saving saving;
    wk_layer_segment *segments; /* with desc.recompute [n_segments]; NULL: it is off */
    size_t n_segments;

    size_t n_trained, n_held; /* examples: the first ones, the last ones */
    uint32_t *order;          /* [n_trained] of the epoch */
    uint64_t epoch;           /* UINT64_MAX: none yet */
    uint64_t step, n_tokens;

    wk_finetune_phase phase;
    size_t at, next;       /* of the batch, or of the held-out examples: done, computed next */
    uint64_t n_targets;    /* tokens that the batch learns */
    uint64_t n_learned;    /* of the examples done and under way */
    double loss;           /* sum over those done */
    wick_reading *reading; /* of the loss of those under way */
    wick_error failure;    /* of a slice, which is final */
};

/* start.c: after the model is back on a new device: makes the rest again, as it was in the
 * checkpoint or at the beginning. A failure leaves its sentence in f->failure. */
wick_status wk_finetune_begin_again(wick_finetune *f);
/* start.c: releases what the device holds, except for the factors, which are the model's. */
void wk_finetune_drop(wick_finetune *f);

/* finetune.c */
void wk_finetune_enter(wick_finetune *f, wk_finetune_phase phase);
/* To the next step, or to the end. */
void wk_finetune_go_on(wick_finetune *f);
/* Tokens that the steps before this one have read. */
uint64_t wk_finetune_tokens_before(wick_finetune *f);

/* checkpoint.c */
/* From what is kept, or from the file. */
wick_status wk_finetune_load(wick_finetune *f, wick_error *err);
/* Whether what the file would hold is there to be read. */
wick_status wk_finetune_check_present(const wick_finetune *f, wick_finetune_file file,
                                      wick_error *err);
/* How many values such a file has. */
size_t wk_finetune_values(const wick_finetune *f, wick_finetune_file file,
                          wick_value values[WK_FINETUNE_VALUES]);

/* saving.c: gives up what is being saved. */
void wk_finetune_drop_saving(wick_finetune *f);

#endif
