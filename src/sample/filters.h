/* sample/filters.h: what cuts the candidates down: top_k, typical_p, top_p, min_p, XTC. */
#ifndef WK_SAMPLE_FILTERS_H
#define WK_SAMPLE_FILTERS_H

#include "core/rng.h"
#include "sample/candidates.h"

#include <wick/session.h>

/* Fills list from logits [n] and applies the filters of desc in this order. At least one candidate
 * stays. best: the largest logit, a finite number. rng: XTC's. */
void wk_filter(const wick_sampler_desc *desc, const float *logits, size_t n, float best,
               wk_candidates *list, wk_rng *rng);

#endif
