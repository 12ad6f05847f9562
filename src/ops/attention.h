/* ops/attention.h: attention with heads after rows, as a model's projections give them. Not public.
 */
#ifndef WK_OPS_ATTENTION_H
#define WK_OPS_ATTENTION_H

#include <wick/ops.h>

/* As wick_attention: q [b, t, h, d], k [b, s, g, d], v [b, s, g, e]: a new tensor [b, t, h, e]. */
wick_tensor *wk_attention_bthd(wick_tensor *q, wick_tensor *k, wick_tensor *v,
                               const wick_attention_desc *desc);

#endif
