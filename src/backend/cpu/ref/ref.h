/* backend/cpu/ref/ref.h: what the reference kernels share. They read and write rows as float64 or
 * int64 (backend/row.h), so that no op is written once for each dtype.
 *
 * cpu/ref is the specification: plain loops, sums in float64 (integers in their own type), rounded
 * once to the output's dtype. */
#ifndef WK_BACKEND_CPU_REF_REF_H
#define WK_BACKEND_CPU_REF_REF_H

#include "backend/cpu/cpu_kernel.h"
#include "backend/row.h"

/* Elements of a chunk that elementwise kernels keep on the stack. */
enum { WK_REF_CHUNK = 256 };

/* Sum of products in float64. */
double wk_ref_dot(const double *a, const double *b, int64_t n);
/* cap tanh(logit / cap); cap 0: the logit. */
double wk_ref_softcap(double logit, double cap);
/* Element head of an operand [heads]. */
double wk_ref_of_head(const wk_view *view, int64_t head);
/* Turns logits into weights that sum to 1; -infinity has weight 0. sink (may be NULL) is one more
 * logit, without a value. All weights are 0 where no logit is above -infinity. */
void wk_ref_attention_weights(double *logits, int64_t n, const double *sink);

/* Every operand has a float dtype (f32 f16 bf16 f64); absent ones are all zero bytes, which is f32.
 */
bool wk_ref_is_float(const wk_op *op);
/* Items of kernels that work on the rows of the first destination. */
int64_t wk_ref_dst_rows(const wk_op *op, int phase);
/* Worker scratch for one row of the first destination in float64. */
uint64_t wk_ref_row_bytes(const wk_op *op);

/* elementwise.c. The remainder has the sign of b; a zero too. */
double wk_ref_remainder(double a, double b);
double wk_ref_floor_divide(double a, double b);

#endif
