/* wick/array.h: operations on tensors that arrange, repeat, choose and find their elements; part of
 * wick/ops.h, whose conventions hold. What copies takes all dtypes but block types. */
#ifndef WICK_ARRAY_H
#define WICK_ARRAY_H

#include <wick/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- Order and running sums --- */

/* y[i] is the sum (product) of elements 0 to i along dim; numbers. */
WICK_API wick_tensor *wick_cumsum(wick_tensor *x, int dim);
WICK_API wick_tensor *wick_cumprod(wick_tensor *x, int dim);
/* u32 indices that sort x along dim: from the smallest up, or from the largest down. Of equal ones
 * (-0 and 0 are) the first comes first in both; NaN counts as the largest of all. */
WICK_API wick_tensor *wick_argsort(wick_tensor *x, int dim, bool descending);
/* The values in that order, and the indices in *indices (NULL: not wanted), owned as the result. */
WICK_API wick_tensor *wick_sort(wick_tensor *x, int dim, bool descending, wick_tensor **indices);

/* --- Creation --- */

/* count numbers from start to end (inclusive) in even steps; floats. */
WICK_API wick_tensor *wick_linspace(wick_device *device, wick_dtype dtype, double start, double end,
                                    int64_t count);
/* base to the powers of these numbers. */
WICK_API wick_tensor *wick_logspace(wick_device *device, wick_dtype dtype, double start, double end,
                                    int64_t count, double base);
/* With the shape, the dtype and the device of x. */
WICK_API wick_tensor *wick_full_like(wick_tensor *x, double value);
WICK_API wick_tensor *wick_zeros_like(wick_tensor *x);
WICK_API wick_tensor *wick_ones_like(wick_tensor *x);
WICK_API wick_tensor *wick_empty_like(wick_tensor *x);
/* [.., classes] of dtype: 1 at index [..], else 0. One that is out of range is reported as by
 * wick_gather. WICK_ERR_VALUE: classes < 1. */
WICK_API wick_tensor *wick_one_hot(wick_tensor *index, int64_t classes, wick_dtype dtype);

/* --- Views: no data moves --- */

/* The last two dims change places. */
WICK_API wick_tensor *wick_matrix_transpose(wick_tensor *x);
/* Dims from [n] go to the places to [n] of the result, the others keep their order. */
WICK_API wick_tensor *wick_movedim(wick_tensor *x, int n, const int *from, const int *to);
/* Removes those of dims [n_dims] (NULL: of all) whose extent is 1. */
WICK_API wick_tensor *wick_squeeze_dims(wick_tensor *x, int n_dims, const int *dims);
/* Cuts dim into parts of the given sizes [count], out [count]. Returns count, 0 on failure.
 * WICK_ERR_SHAPE: the sizes do not add up to the extent. */
WICK_API size_t wick_split(wick_tensor *x, size_t count, const int64_t *sizes, int dim,
                           wick_tensor **out);
/* Each element of dim alone, without dim: out [extent]. Returns the extent, 0 on failure. */
WICK_API size_t wick_unstack(wick_tensor *x, int dim, wick_tensor **out);
/* Windows of size elements along dim, step apart, in a new last dim; dim counts the windows. */
WICK_API wick_tensor *wick_unfold(wick_tensor *x, int dim, int64_t size, int64_t step);
/* Elements (i, i + offset) of dim0 and dim1, which go, in a new last dim. */
WICK_API wick_tensor *wick_diagonal(wick_tensor *x, int64_t offset, int dim0, int dim1);

typedef enum wick_meshgrid_indexing {
    WICK_MESHGRID_IJ, /* element (i, j, k, ..) has x[0][i], x[1][j], x[2][k], .. */
    WICK_MESHGRID_XY, /* x[0][j], x[1][i], x[2][k], .. */
} wick_meshgrid_indexing;
/* The coordinates x [count] (vectors) of the points of a grid, all of its shape, into out [count].
 * Returns count, 0 on failure. */
WICK_API size_t wick_meshgrid(wick_tensor *const *x, size_t count, wick_meshgrid_indexing indexing,
                              wick_tensor **out);

/* --- Copies --- */

/* x beside itself: repeats [n] for the last n dims, n >= the rank of x (for tile any n: the dims
 * before them are not repeated). WICK_ERR_VALUE: one is negative. */
WICK_API wick_tensor *wick_repeat(wick_tensor *x, int n, const int64_t *repeats);
WICK_API wick_tensor *wick_tile(wick_tensor *x, int n, const int64_t *repeats);
/* Each element of dim count times, one after another. */
WICK_API wick_tensor *wick_repeat_interleave(wick_tensor *x, int64_t count, int dim);
/* Elements of dims [n] move up by shifts [n], those at the end come first. dims NULL and n 1: of
 * all elements in row-major order. */
WICK_API wick_tensor *wick_roll(wick_tensor *x, int n, const int64_t *shifts, const int *dims);
/* The elements of dims [n_dims] in reverse; dims NULL: of all dims. */
WICK_API wick_tensor *wick_flip(wick_tensor *x, int n_dims, const int *dims);

/* Example: [1, 2, 3] with two before and one after it. */
typedef enum wick_pad_mode {
    WICK_PAD_CONSTANT,  /* v v 1 2 3 v */
    WICK_PAD_REFLECT,   /* 3 2 1 2 3 2 */
    WICK_PAD_REPLICATE, /* 1 1 1 2 3 3 */
    WICK_PAD_CIRCULAR,  /* 2 3 1 2 3 1 */
} wick_pad_mode;
/* before and after have an entry for each dim; a negative one cuts elements off. value is of
 * WICK_PAD_CONSTANT only. WICK_ERR_SHAPE: there is less to cut off or, at an end, to repeat. */
WICK_API wick_tensor *wick_pad(wick_tensor *x, const int64_t *before, const int64_t *after,
                               wick_pad_mode mode, double value);
/* A copy of x with src at elements start [d] to stop [d] - 1 of each dim d; src has exactly the
 * shape of that part. */
WICK_API wick_tensor *wick_slice_assign(wick_tensor *x, const int64_t *start, const int64_t *stop,
                                        wick_tensor *src);
/* A copy of x with src at elements start, start + 1, ... of dim; in the other dims src has the
 * extents of x. */
WICK_API wick_tensor *wick_slice_scatter(wick_tensor *x, wick_tensor *src, int dim, int64_t start);
/* x [n]: a square matrix of zeros with x on a diagonal, which lies `offset` to the right of the
 * main one. x [m, n]: that diagonal of x, a view. */
WICK_API wick_tensor *wick_diag(wick_tensor *x, int64_t offset);
/* x[i + 1] - x[i] along dim, n times over. Numbers. */
WICK_API wick_tensor *wick_diff(wick_tensor *x, int n, int dim);
/* value where mask (u8 or bool) is not zero, else x; they broadcast. */
WICK_API wick_tensor *wick_masked_fill(wick_tensor *x, wick_tensor *mask, double value);

/* --- Images and windows --- */

/* x [n, c, h, w] (or without n): its windows as columns, [n, c kh kw, positions] (Chellapilla,
 * Puri, Simard, 2006). kernel, padding (with zeros), stride and dilation have 2 entries, for h and
 * w; NULL: 0, 1 and 1. */
WICK_API wick_tensor *wick_im2col(wick_tensor *x, const int64_t kernel[2], const int64_t *padding,
                                  const int64_t *stride, const int64_t *dilation);
/* The adjoint: x [n, c kh kw, positions], added up to images of size [h, w]. Numbers. */
WICK_API wick_tensor *wick_col2im(wick_tensor *x, const int64_t size[2], const int64_t kernel[2],
                                  const int64_t *padding, const int64_t *stride,
                                  const int64_t *dilation);
/* The adjoint of wick_unfold: windows x [.., size], of which dim has the number, added up to a dim
 * of that extent. Numbers. */
WICK_API wick_tensor *wick_fold(wick_tensor *x, int dim, int64_t extent, int64_t step);
/* [.., c r r, h, w] to [.., c, h r, w r] with r = factor, and back (Shi et al., 2016). */
WICK_API wick_tensor *wick_pixel_shuffle(wick_tensor *x, int64_t factor);
WICK_API wick_tensor *wick_pixel_unshuffle(wick_tensor *x, int64_t factor);
/* x [n, c, ..]: channel i of c / groups of group g becomes channel i groups + g (Zhang et al.,
 * 2018). */
WICK_API wick_tensor *wick_channel_shuffle(wick_tensor *x, int64_t groups);

/* --- By index: integers from 0; one that is out of range is reported by the next read of the
 * result or poll (WICK_ERR_INDEX). Those of u32, u8 and, on the CPU, i64 are taken as they are,
 * others copied to i64 --- */

/* y has the shape of index: along dim element i is element index[i] of x, elsewhere the same one.
 * In the other dims index is no larger than x. */
WICK_API wick_tensor *wick_gather(wick_tensor *x, int dim, wick_tensor *index);
/* The same where the other dims broadcast by NumPy's rule. */
WICK_API wick_tensor *wick_take_along_dim(wick_tensor *x, int dim, wick_tensor *index);
/* Slices of x along dim, index [m]. */
WICK_API wick_tensor *wick_index_select(wick_tensor *x, int dim, wick_tensor *index);

/* What becomes of an element and of a source that meets it. */
typedef enum wick_scatter_fn {
    WICK_SCATTER_SET, /* of several sources the last one along dim stays */
    WICK_SCATTER_ADD,
    WICK_SCATTER_MUL, /* numbers, as those that follow; all are taken in their order along dim */
    WICK_SCATTER_MAX, /* NaN where either is NaN */
    WICK_SCATTER_MIN,
} wick_scatter_fn;
/* A copy of x in which, along dim, source i meets element index[i]; src has the shape of index or
 * more, and index is in no other dim larger than x. */
WICK_API wick_tensor *wick_scatter(wick_tensor *x, int dim, wick_tensor *index, wick_tensor *src,
                                   wick_scatter_fn fn);
WICK_API wick_tensor *wick_scatter_add(wick_tensor *x, int dim, wick_tensor *index,
                                       wick_tensor *src);
/* A copy of x to whose slices index [m] along dim the slices of src are added. */
WICK_API wick_tensor *wick_index_add(wick_tensor *x, int dim, wick_tensor *index, wick_tensor *src);

/* The same in x itself, which is returned, not a new reference; index_copy sets slices. What x is
 * refused for is what other operations in place refuse (in_place.h). */
WICK_API wick_tensor *wick_scatter_in_place(wick_tensor *x, int dim, wick_tensor *index,
                                            wick_tensor *src, wick_scatter_fn fn);
WICK_API wick_tensor *wick_index_add_in_place(wick_tensor *x, int dim, wick_tensor *index,
                                              wick_tensor *src);
WICK_API wick_tensor *wick_index_copy_in_place(wick_tensor *x, int dim, wick_tensor *index,
                                               wick_tensor *src);
/* index [.., k]: places in the first k dims of x. gather_nd: x's slices there, [.., the other dims
 * of x]; scatter_nd: a copy of x that meets src, of that shape, there (ONNX GatherND, ScatterND).
 */
WICK_API wick_tensor *wick_gather_nd(wick_tensor *x, wick_tensor *index);
WICK_API wick_tensor *wick_scatter_nd(wick_tensor *x, wick_tensor *index, wick_tensor *src,
                                      wick_scatter_fn fn);

/* --- Searching --- */

/* Elements of x, counted in row-major order, in the shape of index. */
WICK_API wick_tensor *wick_take(wick_tensor *x, wick_tensor *index);
/* u8: where elements of x are among those of set, of any shape. NaN is not. Numbers. */
WICK_API wick_tensor *wick_isin(wick_tensor *x, wick_tensor *set);
/* u32: how many elements of sorted [.., n] (ascending) are less than each of values [.., m], or
 * with right: less or equal. sorted of rank 1 is searched for values of any shape. For NaN: all n.
 * Numbers. */
WICK_API wick_tensor *wick_searchsorted(wick_tensor *sorted, wick_tensor *values, bool right);

/* --- Results whose length depends on the data ---
 *
 * count is that length where the caller knows it. With count < 0 the function computes and reads
 * it: that blocks; native only. With a count that is too large the read of the result fails
 * (WICK_ERR_INDEX); wick_nonzero gives indices out of range instead. */

/* u32 [count, rank]: the indices of the elements that are not zero, in row-major order. */
WICK_API wick_tensor *wick_nonzero(wick_tensor *x, int64_t count);
/* [count]: elements of x where mask (u8 or bool) is not zero, in row-major order; they broadcast.
 */
WICK_API wick_tensor *wick_masked_select(wick_tensor *x, wick_tensor *mask, int64_t count);
/* [count]: the different values of x in ascending order; every NaN is different from all others.
 * Further results, u32, owned as the first one (NULL: not wanted):
 *   indices [count]  the first element with that value, counted in row-major order
 *   inverse          of the shape of x: for each element which of the values it has
 *   counts [count]   how many elements have that value */
WICK_API wick_tensor *wick_unique(wick_tensor *x, int64_t count, wick_tensor **indices,
                                  wick_tensor **inverse, wick_tensor **counts);
/* inverse alone, which never blocks. Its maximum is count - 1. */
WICK_API wick_tensor *wick_unique_inverse(wick_tensor *x);

/* --- Products --- */

/* The sum of a b: of two vectors of one length, or along dim of tensors that have one extent there
 * and broadcast in the other dims. Numbers. */
WICK_API wick_tensor *wick_dot(wick_tensor *a, wick_tensor *b);
WICK_API wick_tensor *wick_vecdot(wick_tensor *a, wick_tensor *b, int dim);
/* m [m, n] v [n]: [m]. */
WICK_API wick_tensor *wick_mv(wick_tensor *m, wick_tensor *v);
/* a [m], b [n]: all products, [m, n]. */
WICK_API wick_tensor *wick_outer(wick_tensor *a, wick_tensor *b);
/* Vectors of 3 along dim; the others broadcast. */
WICK_API wick_tensor *wick_cross(wick_tensor *a, wick_tensor *b, int dim);
/* The sum of a b over dims_a [n] of a and dims_b [n] of b, in pairs of one extent: the other dims
 * of a, then those of b; floats. */
WICK_API wick_tensor *wick_tensordot(wick_tensor *a, wick_tensor *b, int n, const int *dims_a,
                                     const int *dims_b);
/* The Kronecker product of a and b, both of one rank, 3 at most: element i p + j of each dim, p of
 * b there, is a[i] b[j]. */
WICK_API wick_tensor *wick_kron(wick_tensor *a, wick_tensor *b);
/* Products of 1 to WICK_EINSUM_MAX tensors, summed over the labels that the result does not have:
 * "bik,kj->bij" is a matrix product of batches, "ii->i" a diagonal, "ij->" the sum. Labels are
 * letters; "..." stands for the dims that have none, which broadcast. Without "->" the result has
 * the labels that occur once, in the order of the alphabet. Floats.
 * WICK_ERR_VALUE: the text; WICK_ERR_SHAPE: extents that differ, or more than WICK_MAX_RANK dims
 * in an intermediate result. */
#define WICK_EINSUM_MAX 8
WICK_API wick_tensor *wick_einsum(const char *text, wick_tensor *const *x, size_t count);
/* x [variables, observations] or [observations]: covariances of the variables, [variables,
 * variables] or, of a single one, a scalar: sums of products divided by observations - correction;
 * and these divided by both deviations, so from -1 to 1. Floats. */
WICK_API wick_tensor *wick_cov(wick_tensor *x, double correction);
WICK_API wick_tensor *wick_corrcoef(wick_tensor *x);
/* The discrete Fourier transform along dim of x [.., 1] (real) or [.., 2] (real and imaginary
 * part): [.., 2]. dim has `length` elements (0: as x), cut off or zero-padded; onesided: the
 * first length / 2 + 1 of the result, which is all of a real x. inverse: divided by length. Floats.
 * A prime factor of length above 128 takes memory for as many roots squared (Cooley, Tukey, 1965).
 * WICK_ERR_VALUE: length < 0, or 0 where dim is empty, or inverse and onesided; WICK_ERR_DIM: dim
 * is the last one. */
WICK_API wick_tensor *wick_dft(wick_tensor *x, int dim, int64_t length, bool inverse,
                               bool onesided);
/* The sum of diagonal `offset` (0: the main one, > 0: above it) of the last two dims. Numbers. */
WICK_API wick_tensor *wick_trace(wick_tensor *x, int64_t offset);

#ifdef __cplusplus
}
#endif

#endif
