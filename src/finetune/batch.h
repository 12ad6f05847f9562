/* finetune/batch.h: examples as a batch of the model's, and its loss. */
#ifndef WK_FINETUNE_BATCH_H
#define WK_FINETUNE_BATCH_H

#include "finetune/examples.h"

#include <wick/grad.h>

typedef struct wk_loss_batch wk_loss_batch;

/* Neighbouring layers of a batch whose forward pass runs again when a tape goes back through it. */
typedef struct wk_layer_segment {
    const wk_loss_batch *batch;
    uint32_t first, count;
} wk_layer_segment;

struct wk_loss_batch {
    const wick_model *model;
    wk_batch batch;
    wick_tensor *targets; /* u32 [n_outputs]: the token after each row that has an output */
};

/* Puts n examples on the model's device: all its layers are on that one. The tensors belong to the
 * innermost scope. False: the device holds the sentence. */
bool wk_loss_batch_make(const wick_model *model, const wk_example *examples, size_t n,
                        uint32_t context_length, wk_loss_batch *out);
/* The sum of -log p, in nats, of all tokens that are learned, a scalar f32 of the innermost scope;
 * NULL: the device holds the sentence. */
wick_tensor *wk_loss_batch_sum(const wk_loss_batch *batch);
/* The same, recorded by a tape that keeps only what stands between segments, which together are all
 * layers. Batch and segments stay until the tape ends. */
wick_tensor *wk_loss_batch_sum_by_segments(const wk_loss_batch *batch, wick_tape *tape,
                                           wk_layer_segment *segments, size_t n_segments);

/* The most segments that the layers make, since layers that share keys and values are in one:
 * writes at most n_layers of them. */
size_t wk_layer_segments(const wick_model *model, wk_layer_segment *segments);

#endif
