/* wick/finetune.h: fine-tuning: low-rank adapters (LoRA: Hu et al., 2021) of a language model whose
 * layers are attention and MLPs, trained from its full or quantized weights, which stay as they
 * are. What blocks, and checkpoints, are native only. */
#ifndef WICK_FINETUNE_H
#define WICK_FINETUNE_H

#include <wick/model.h>

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

/* Zero: default. */
typedef struct wick_finetune_desc {
    uint32_t rank;   /* of the factors of each change; 8 */
    float alpha;     /* changes are scaled by alpha / rank; 16 */
    double rate;     /* of AdamW; 1e-4 */
    double decay;    /* weight decay of AdamW */
    double max_norm; /* gradients are clipped to this norm; 1 */
    uint64_t steps;  /* as many as epochs have */
    uint32_t epochs; /* passes over the examples; 1 */
    uint32_t batch;  /* examples of a step; 8 */
    double held_out; /* this share of the examples, the last ones, is not learned from but measured;
                        at least one if it is not 0; below 1 */
    uint64_t seed;   /* of the order of the examples, and of where the factors begin */
    /* The state of the training goes to this file after every `every` steps (0: when asked), whole
     * or not at all; NULL: nowhere. Held-out examples are measured before the first step, before
     * each of these, and after the last step. */
    const char *checkpoint;
    uint64_t every;
    bool resume; /* go on from checkpoint, with the same numbers, as if nothing had happened */
} wick_finetune_desc;

typedef enum wick_finetune_event_kind {
    WICK_FINETUNE_WORKING,
    WICK_FINETUNE_STEP,       /* step of steps is done: its loss, before the step */
    WICK_FINETUNE_HELD_OUT,   /* loss and perplexity of the held-out examples after step */
    WICK_FINETUNE_CHECKPOINT, /* it is written */
    WICK_FINETUNE_END,
} wick_finetune_event_kind;

typedef struct wick_finetune_event {
    wick_finetune_event_kind kind;
    uint64_t step, steps, n_tokens; /* n_tokens: read by all steps since start, padding aside */
    double loss, perplexity;        /* nats for each learned token, and exp of it */
} wick_finetune_event;

typedef struct wick_finetune wick_finetune;

/* Adapters for all matrices of attention and of MLPs, which change nothing at first; the model
 * computes with them until finish. Model and examples must outlive it; all of the model's layers
 * are on one device, and it has no sessions, nor gets one (WICK_ERR_STATE). WICK_ERR_VALUE: desc,
 * or there are no examples; WICK_ERR_UNSUPPORTED: the model has no such layers, or is an encoder;
 * WICK_ERR_MISMATCH: the checkpoint is of another model, data or description (steps, rate and
 * checkpoint file may differ); WICK_ERR_NOT_FOUND, WICK_ERR_FORMAT: the checkpoint. */
WICK_API wick_status wick_finetune_start(wick_model *model, const wick_examples *examples,
                                         const wick_finetune_desc *desc, wick_finetune **finetune,
                                         wick_error *error);
/* A slice of the work: WICK_PENDING until all steps are done. On the CPU a slice is the gradient of
 * up to 512 tokens, or of one example. WICK_ERR_UNSUPPORTED: an operation of the model has no
 * gradient; WICK_ERR_VALUE: the loss is not a number; WICK_ERR_DEVICE_LOST. A failure of what is
 * computed is final. event may be NULL. */
WICK_API wick_status wick_finetune_poll(wick_finetune *finetune, wick_finetune_event *event,
                                        wick_error *error);
/* Between steps and within them: what a later start with resume goes on from, without the part of
 * a step that is not complete. WICK_ERR_STATE: desc names no checkpoint, or a poll has failed.
 * Blocks. */
WICK_API wick_status wick_finetune_checkpoint(wick_finetune *finetune, wick_error *error);
/* The adapter as a GGUF file as llama.cpp has them, f32, for wick_model_add_adapter; an existing
 * file is replaced. Blocks. */
WICK_API wick_status wick_finetune_save(wick_finetune *finetune, const char *path,
                                        wick_error *error);
/* What is in that file, to be read without blocking: tensor i, f32, and its name, which live until
 * finish. NULL where there are fewer; name may be NULL. */
WICK_API wick_tensor *wick_finetune_tensor(const wick_finetune *finetune, size_t i,
                                           const char **name);
/* The model is as it was. Waits for the device; in a page that is done before
 * (wick_poll). NULL is allowed. */
WICK_API void wick_finetune_finish(wick_finetune *finetune);

#ifdef __cplusplus
}
#endif

#endif
