/* ops/operand.h: what every operation does with its operands: check them, make the result, queue.
 *
 * The checks write the sentence to the device and return false; op is the operation's name. */
#ifndef WK_OPS_OPERAND_H
#define WK_OPS_OPERAND_H

#include "tensor/tensor.h"

/* Room for the text of a shape in a message. */
enum { WK_SHAPE_TEXT = 160 };

/* All n operands are there and on one device. A NULL operand fails without a message: the
 * failure that made it NULL has left one. */
bool wk_operands_present(const char *op, wick_tensor *const *operands, size_t n);
bool wk_operand_is_float(const char *op, const wick_tensor *x);
/* An integer or a float that is not for storage alone. */
bool wk_operand_is_number(const char *op, const wick_tensor *x);
bool wk_operands_same_dtype(const char *op, const wick_tensor *a, const wick_tensor *b);
/* The dtype of a result of both: that of the array API standard (2024.12, type promotion), and
 * the float's where only one is a float. False: one is of a type that is not computed with. */
bool wk_operands_promote(const char *op, const wick_tensor *a, const wick_tensor *b,
                         wick_dtype *out);
/* The shape of a result of both, element by element. */
bool wk_operands_broadcast(const char *op, const wick_tensor *a, const wick_tensor *b,
                           wick_shape *shape);
/* Which dims of x are among dims [n_dims], once each; dims NULL: all. */
bool wk_operand_dims(const char *op, const wick_tensor *x, int n_dims, const int *dims,
                     bool is_named[WICK_MAX_RANK]);
/* WICK_ERR_DTYPE: the operation takes no such dtype. */
void wk_operand_refuse(const char *op, wick_device *device, wick_dtype dtype);
/* x is of a scalar type and strided. */
bool wk_operand_is_scalars(const char *op, const wick_tensor *x);
/* Resolves a dim that counts from the end; WICK_ERR_DIM when it is out of range. */
bool wk_operand_dim(const char *op, const wick_tensor *x, int dim, int *out);
/* Elements can be addressed by strides: not a weight in a compute layout. */
bool wk_operand_is_strided(const char *op, const wick_tensor *x);
/* x may be a destination: strided, no block type, no element named twice. */
bool wk_operand_is_writable(const char *op, const wick_tensor *x);

/* It chooses elements: u8 or bool. */
bool wk_operand_is_mask(const char *op, const wick_tensor *mask);

/* x may be the weight of a product or a lookup, [n, k] (rank 2) or [experts, n, k]: of a float or
 * block type, in any layout. */
bool wk_operand_is_weight(const char *op, const wick_tensor *x, int rank);

/* Tensors of dtype can be made: it exists and is not a block type; one that is also for storage
 * alone can be copied and cast to, which is all that storable asks for. */
bool wk_dtype_is_storable(const char *op, wick_device *device, wick_dtype dtype);
bool wk_dtype_is_writable(const char *op, wick_device *device, wick_dtype dtype);

bool wk_tensor_is_empty(const wick_tensor *x);

/* Queues the call that computes y, unless y is empty. Returns y, or NULL after releasing it. y NULL
 * gives NULL. */
wick_tensor *wk_queue_result(wk_call *call, wick_tensor *y);

/* A dense tensor of dtype with the contents of x, always a copy. */
wick_tensor *wk_dense_copy(wick_tensor *x, wick_dtype dtype);
/* y, or a copy of it where it shows the memory of x: what is not a view of x never shares it. NULL
 * gives NULL. */
wick_tensor *wk_fresh(wick_tensor *y, const wick_tensor *x);
/* x, or a copy of dtype; NULL gives NULL. */
wick_tensor *wk_promoted(wick_tensor *x, wick_dtype dtype);
/* What sums of dtype are computed in: f32 for 16-bit floats. */
wick_dtype wk_wide_dtype(wick_dtype dtype);
/* x, or a copy of its wide dtype, in which chains of operations compute. */
wick_tensor *wk_widened(wick_tensor *x);
/* Queues dst = src, converted: the views have one shape, each in the memory of its tensor. Goes
 * through a temporary where both lie in one buffer. */
wick_status wk_queue_copy(wick_tensor *dst, const wk_view *dst_view, wick_tensor *src,
                          const wk_view *src_view);
/* Queues a fill of dst, which is not empty, with a number rounded to its dtype. */
wick_status wk_queue_fill(wick_tensor *dst, double value);
/* As a cast would convert it: truncated and saturated for integers, NaN is 0. */
int64_t wk_integer_of(wick_dtype dtype, double value);

#endif
