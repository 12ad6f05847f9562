/* convert/merging.h: adapters whose products become part of a model's weights as its file is
 * written: W + scale alpha / rank B A. */
#ifndef WK_CONVERT_MERGING_H
#define WK_CONVERT_MERGING_H

#include "core/alloc.h"
#include "format/gguf.h"

#include <wick/convert.h>

typedef struct wk_merging wk_merging;

/* Reads the adapters of the model with this header. */
wick_status wk_merging_open(wk_heap *heap, const wk_gguf *gguf, const wick_merge *adapters,
                            size_t n, wk_merging **out, wick_error *err);
/* NULL is allowed. */
void wk_merging_close(wk_merging *merging);
/* The tensor that wk_merging_add is for next. False: no adapter changes it. */
bool wk_merging_begin(wk_merging *merging, const wick_file_tensor *tensor);
/* Adds what they add to values [n], elements first, first + 1, ... of the tensor. By any thread. */
void wk_merging_add(const wk_merging *merging, int64_t first, int64_t n, float *values);

#endif
