/* backend/cpu/ref/ref.h: what the reference kernels share: rows of strided views, read and written
 * as float64 or int64, so that no op is written once for each dtype.
 *
 * cpu/ref is the specification: plain loops, sums in float64 (integers in their own type), rounded
 * once to the output's dtype. */
#ifndef WK_BACKEND_CPU_REF_REF_H
#define WK_BACKEND_CPU_REF_REF_H

#include "backend/cpu/cpu_kernel.h"

/* Elements of a chunk that elementwise kernels keep on the stack. */
enum { WK_REF_CHUNK = 256 };

/* One row of a view: its elements along the last dimension (one element for rank 0). */
typedef struct wk_ref_row {
    unsigned char *data;
    wick_dtype dtype;
    int64_t stride; /* elements */
    int64_t n;
} wk_ref_row;

/* Rows of a view: the product of all extents but the last; 0 where rows are empty. */
int64_t wk_ref_n_rows(const wk_view *view);
/* Row index of that count, row-major. */
wk_ref_row wk_ref_row_at(const wk_view *view, int64_t index);
/* The same for a view of a known rank: row [at[0], at[1], ...] without the last dimension. */
wk_ref_row wk_ref_row_of(const wk_view *view, const int64_t *at);

/* Elements [begin, begin + n) of a row, also of blocks. Loads of integers as float64 round above
 * 2^53. */
void wk_ref_load(const wk_ref_row *row, int64_t begin, int64_t n, double *dst);
void wk_ref_load_integer(const wk_ref_row *row, int64_t begin, int64_t n, int64_t *dst);
/* To a float dtype: rounds once to nearest even. To an integer: truncates, saturates, NaN is 0. To
 * bool: what is not zero is 1. To the block types of caches: whole blocks, by wk_encode_quickly. */
void wk_ref_store(const wk_ref_row *row, int64_t begin, int64_t n, const double *src);
/* To a float dtype: rounds once to nearest even. To a narrower integer: keeps the low bits. */
void wk_ref_store_integer(const wk_ref_row *row, int64_t begin, int64_t n, const int64_t *src);

/* First element of a row of a single one, as every index and mask is read. */
int64_t wk_ref_integer_at(const wk_ref_row *row, int64_t i);

/* Sum of products in float64. */
double wk_ref_dot(const double *a, const double *b, int64_t n);
/* cap tanh(logit / cap); cap 0: the logit. */
double wk_ref_softcap(double logit, float cap);
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
size_t wk_ref_row_bytes(const wk_op *op);

#endif
