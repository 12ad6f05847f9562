/* ops/compose.h: what operations that are made of others have in common.
 *
 * Such an operation checks all operands first, so that it is refused by its own name and before
 * anything is queued. The functions here give NULL for NULL, as the public ones do; what they make
 * belongs to the innermost scope. */
#ifndef WK_OPS_COMPOSE_H
#define WK_OPS_COMPOSE_H

#include "ops/operand.h"

/* The operands that are there (the first n_required must be) are on one device, strided, and floats
 * of one dtype. */
bool wk_operands_are_floats(const char *op, wick_tensor *const *operands, size_t n_required,
                            size_t n);
/* x has one of these ranks. */
bool wk_operand_rank(const char *op, const char *name, const wick_tensor *x, int least, int most);
/* vector (may be NULL) is [n]. */
bool wk_operand_is_vector(const char *op, const char *name, const wick_tensor *vector, int64_t n);
/* a and b have one shape. */
bool wk_operands_same_shape(const char *op, const wick_tensor *a, const wick_tensor *b);

/* y, or a view of it where it is x itself, which is not the operation's to give away. */
wick_tensor *wk_own(wick_tensor *y, const wick_tensor *x);
/* dst += x in place, x broadcast to its shape; both of one dtype. Returns dst. */
wick_tensor *wk_add_to(wick_tensor *dst, wick_tensor *x);
/* x with elements of value around its own: before[i] and after[i] of them along dim first + i, n
 * dims in all; x itself where there are none. */
wick_tensor *wk_padded(wick_tensor *x, int first, int n, const int64_t *before,
                       const int64_t *after, double value);
/* The view of dim's pieces of size elements, dilation apart, that begin step apart; the place in a
 * piece is a new last dim. All of them must be there, and the rank below WICK_MAX_RANK. */
wick_tensor *wk_windows(wick_tensor *x, int dim, int64_t size, int64_t step, int64_t dilation);
/* Elements start, start + step, ... of dim, n of them, which must be there. */
wick_tensor *wk_every(wick_tensor *x, int dim, int64_t start, int64_t step, int64_t n);
/* vector [n] as [n, 1, ..], to be broadcast along a dim that `after` others follow. */
wick_tensor *wk_along(wick_tensor *vector, int after);
/* s^(1 / p), s >= 0, p > 0; where s is 0 its gradient is 0 (it has none there, and infinity
 * times 0 would be NaN). */
wick_tensor *wk_root(wick_tensor *s, double p);
/* max(sqrt(sum of x^2 along dim), eps), which x keeps with an extent of 1. */
wick_tensor *wk_norm_along(wick_tensor *x, int dim, double eps);
/* Numbers of the host, [n], rounded to dtype. */
wick_tensor *wk_host_floats(wick_device *device, wick_dtype dtype, int64_t n, const double *data);

#endif
