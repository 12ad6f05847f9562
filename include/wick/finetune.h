/* wick/finetune.h: fine-tuning: low-rank adapters (LoRA: Hu et al., 2021) of a language model whose
 * layers are attention and MLPs, trained from its full or quantized weights, which stay as they
 * are. What blocks, and files, are native only. */
#ifndef WICK_FINETUNE_H
#define WICK_FINETUNE_H

#include <wick/model.h>
#include <wick/train.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- What is learned from ---- */

/* Texts as tokens of a model, in order, each with at least one token that is learned: one whose
 * probability, given those before it, is to rise. */
typedef struct wick_examples wick_examples;

/* The model must outlive them. context_length: most tokens of an example, 2 or more
 * (WICK_ERR_VALUE). */
WICK_API wick_status wick_examples_make(const wick_model *model, uint32_t context_length,
                                        wick_examples **examples, wick_error *error);
/* NULL is allowed. */
WICK_API void wick_examples_free(wick_examples *examples);
/* A long text, cut into examples of context_length tokens, each after the begin token where the
 * model wants one; all of its tokens are learned, and what is left at the end is an example, too.
 */
WICK_API wick_status wick_examples_add_text(wick_examples *examples, const char *text, size_t size,
                                            wick_error *error);
/* One JSON object, an example:
 *
 *   {"text": T}                      all of T is learned, and the end of the text
 *   {"prompt": P, "completion": C}   C and the end of the text are learned
 *   {"messages": [..]}               a conversation as the model's template has it: what the
 *                                    assistant says is learned
 *
 * An example that is longer than context_length is cut off there; it is left out where nothing that
 * is learned remains (wick_examples_info). WICK_ERR_FORMAT: it is none of these;
 * WICK_ERR_NOT_FOUND: the model has no template. */
WICK_API wick_status wick_examples_add_json(wick_examples *examples, const char *text, size_t size,
                                            wick_error *error);
/* One object in each line; blank lines are passed over. Failures name the line. */
WICK_API wick_status wick_examples_add_json_lines(wick_examples *examples, const char *text,
                                                  size_t size, wick_error *error);

typedef struct wick_examples_info {
    uint64_t n_examples, n_tokens, n_learned; /* n_learned: of the tokens */
    uint64_t n_cut, n_left_out;               /* examples that were too long */
} wick_examples_info;
WICK_API void wick_examples_get_info(const wick_examples *examples, wick_examples_info *info);

/* ---- Training ---- */

/* Matrices that an adapter changes. One that holds several (a fused attn_qkv, an ffn_up with the
 * gate in it) is changed where any of them is asked for. */
typedef enum wick_finetune_target {
    WICK_TARGET_Q = 1 << 0,
    WICK_TARGET_K = 1 << 1,
    WICK_TARGET_V = 1 << 2,
    WICK_TARGET_O = 1 << 3, /* the output of attention */
    WICK_TARGET_GATE = 1 << 4,
    WICK_TARGET_UP = 1 << 5,
    WICK_TARGET_DOWN = 1 << 6,
    WICK_TARGET_IN = 1 << 7,  /* before a causal convolution or a scan */
    WICK_TARGET_OUT = 1 << 8, /* after it */
    WICK_TARGET_ALL = (1 << 9) - 1,
} wick_finetune_target;

/* Zero: default. */
typedef struct wick_finetune_desc {
    uint32_t rank;        /* of the factors of each change; 8 */
    float alpha;          /* changes are scaled by alpha / rank; 16 */
    bool rank_stabilized; /* by alpha / sqrt(rank) (Kalajdzievski, 2023); the file says alpha
                                times sqrt(rank), so that readers need not know */
    uint32_t targets;     /* wick_finetune_target bits; 0: all */
    double dropout;       /* in a step this share of what each pair of factors reads is left out at
                             random, the rest scaled by 1 / (1 - dropout); below 1 */
    double rate;          /* of AdamW; 1e-4 */
    wick_schedule_kind schedule; /* of the rate, which falls to 0 at the last step */
    uint64_t warmup;             /* steps in which the rate rises, see wick_schedule */
    double decay;                /* weight decay of AdamW */
    double max_norm;             /* gradients are clipped to this norm; 1 */
    uint64_t steps;              /* as many as epochs have */
    uint32_t epochs;             /* passes over the examples; 1 */
    uint32_t batch;              /* examples of a step, whose gradients are added up; 8 */
    bool recompute;  /* layers are computed a second time for their gradients: less memory, about a
                        third more time, the same numbers */
    double held_out; /* this share of the examples, the last ones, is not learned from but measured:
                        before the first step, every eval_every steps and after the last step; at
                        least one if it is not 0; below 1 */
    uint64_t eval_every; /* 0: as every */
    uint64_t seed;       /* of the order of the examples, of dropout, and of where factors begin */
    /* The state of the training goes to this file after every `every` steps (0: none) and after the
     * last step, whole or not at all. NULL: nowhere. */
    const char *checkpoint;
    uint64_t every;
    bool resume; /* go on from checkpoint, with the same numbers, as if nothing had happened */
    const void
        *state; /* or from these bytes of WICK_FINETUNE_STATE, which are copied; NULL: none */
    size_t state_size;
} wick_finetune_desc;

typedef enum wick_finetune_event_kind {
    WICK_FINETUNE_WORKING,
    WICK_FINETUNE_STEP,       /* step of steps is done: its loss, before the step */
    WICK_FINETUNE_HELD_OUT,   /* loss and perplexity of the held-out examples after step */
    WICK_FINETUNE_CHECKPOINT, /* it is written */
    WICK_FINETUNE_RESTORED,   /* the device was lost and is back: the steps after step come again */
    WICK_FINETUNE_END,
} wick_finetune_event_kind;

typedef struct wick_finetune_event {
    wick_finetune_event_kind kind;
    uint64_t step, steps;
    uint64_t n_tokens;       /* read by all steps, those before a resume too, padding aside */
    double loss, perplexity; /* nats for each learned token, and exp of it */
    double rate;             /* of the step */
} wick_finetune_event;

typedef struct wick_finetune wick_finetune;

/* Adapters for matrices of attention, of MLPs and of recurrent mixers, of mixtures of experts those
 * that see every row; they change nothing at first, and the model computes with them until finish.
 * Model and examples must outlive it; all of the model's layers are on one device, and it has no
 * sessions, nor gets one (WICK_ERR_STATE). Blocks. WICK_ERR_VALUE: desc, or there are no examples;
 * WICK_ERR_UNSUPPORTED: the model has none of the targets, or is an encoder; WICK_ERR_MISMATCH: the
 * checkpoint is of another model, data or description (steps, rate, schedule and checkpoint file
 * may differ); WICK_ERR_NOT_FOUND, WICK_ERR_IO, WICK_ERR_FORMAT: it cannot be read, or not be
 * written. */
WICK_API wick_status wick_finetune_start(wick_model *model, const wick_examples *examples,
                                         const wick_finetune_desc *desc, wick_finetune **finetune,
                                         wick_error *error);
/* A slice of the work: WICK_PENDING until all steps are done. On the CPU a slice is the gradient of
 * up to 512 tokens, or of one example. A device that is lost comes back, and the training goes on
 * from its last checkpoint, or from its beginning. WICK_ERR_UNSUPPORTED: an operation of the model
 * has no gradient; WICK_ERR_VALUE: the loss is not a number; WICK_ERR_DEVICE_LOST: the device stays
 * lost. A failure to compute is final; a failure to write a checkpoint is not: the next poll tries
 * again. event may be NULL. */
WICK_API wick_status wick_finetune_poll(wick_finetune *finetune, wick_finetune_event *event,
                                        wick_error *error);
/* Between steps and within them: what a later start with resume goes on from, without the part of
 * a step that is not complete. WICK_ERR_STATE: desc names no checkpoint, or a poll has failed, or
 * the device has been lost. Blocks. */
WICK_API wick_status wick_finetune_checkpoint(wick_finetune *finetune, wick_error *error);
/* The adapter as a GGUF file as llama.cpp has them, f32, for wick_model_add_adapter; an existing
 * file is replaced. Blocks. */
WICK_API wick_status wick_finetune_save(wick_finetune *finetune, const char *path,
                                        wick_error *error);
/* What a training is saved as. */
typedef enum wick_finetune_file {
    WICK_FINETUNE_ADAPTER, /* as wick_finetune_save */
    WICK_FINETUNE_STATE,   /* as wick_finetune_checkpoint, for wick_finetune_desc.state */
} wick_finetune_file;
/* The bytes of such a file as they would be at the call of start, in steps that never block; the
 * training may go on meanwhile. poll: WICK_PENDING until they are there; they are then the
 * training's, until the next call that is given it. A state that was saved so is what a
 * training goes on from where the device is lost, as from a checkpoint. start gives up what is
 * being saved. WICK_ERR_STATE: the device was lost and is not back, a poll has failed (STATE
 * alone), or nothing is being saved; WICK_ERR_DEVICE_LOST: meanwhile. */
WICK_API wick_status wick_finetune_save_start(wick_finetune *finetune, wick_finetune_file file,
                                              wick_error *error);
WICK_API wick_status wick_finetune_save_poll(wick_finetune *finetune, const void **bytes,
                                             size_t *size, wick_error *error);
/* The model is as it was. Waits for the device; in a page that is done before
 * (wick_poll). NULL is allowed. */
WICK_API void wick_finetune_finish(wick_finetune *finetune);

#ifdef __cplusplus
}
#endif

#endif
