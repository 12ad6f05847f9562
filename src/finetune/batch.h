/* finetune/batch.h: the loss of some examples, as operations that are queued. */
#ifndef WK_FINETUNE_BATCH_H
#define WK_FINETUNE_BATCH_H

#include "finetune/examples.h"

/* The sum of -log p, in nats, of all tokens of n examples that are learned, a scalar f32, which
 * belongs to the innermost scope; NULL: the model's device holds the sentence. The model lies on
 * one device. */
wick_tensor *wk_examples_loss(const wick_model *model, const wk_example *examples, size_t n,
                              uint32_t context_length);

#endif
