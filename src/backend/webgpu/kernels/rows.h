/* backend/webgpu/kernels/rows.h: kernels that compute something of each row: the elements that the
 * last dimensions of x hold. Goes with wgsl/rows.wgsl.
 *
 * How many threads share a row, and in which order they sum, follows from the row's length and the
 * strides alone: a row gives the same bits in a batch of any size. */
#ifndef WK_BACKEND_WEBGPU_KERNELS_ROWS_H
#define WK_BACKEND_WEBGPU_KERNELS_ROWS_H

#include "backend/webgpu/kernels/webgpu_kernel.h"

/* The constants of a source of rows begin with THREADS, LANES and COLUMNS, which are set here. */
enum {
    WK_ROWS_CONSTANTS = 3,
    WK_ROWS_SOURCE = 2,  /* operand number of the first source of a chain */
    WK_ROWS_TUNINGS = 3, /* rows of a workgroup; every kernel of this kind has them */
};

typedef struct wk_rows_dim {
    uint32_t extent, in_y, in_x, in_z; /* strides; 0 in a y or z that does not have it */
} wk_rows_dim;

/* The last dimension is the innermost one in x. */
typedef struct wk_rows_walk {
    int rank;
    wk_rows_dim dim[WICK_MAX_RANK];
} wk_rows_walk;

typedef struct wk_rows {
    uint32_t n_rows, n;      /* n: elements of a row */
    uint32_t n_all;          /* the same, before they became the results of parts */
    uint32_t part, n_parts;  /* workgroups that share a row take `part` elements each */
    uint32_t threads, lanes; /* of a workgroup, and of those the ones that share a row */
    bool is_alone;           /* a workgroup has one row, in every tuning */
    bool by_columns;         /* neighbouring rows lie side by side: so do their threads */
    wk_rows_walk kept, reduced;
    /* Of chains, whose sources are operands 2 and more: their parameters, as bits; NULL: others. */
    const uint32_t *scalars; /* [WK_CHAIN_SCALARS] */
} wk_rows;

/* Rows of x over the dimensions from n_kept on; y has the first n_kept ones, or all. */
wk_rows wk_rows_of(const wk_view *y, const wk_view *x, int n_kept);
/* The same with a second destination, of y's shape. */
wk_rows wk_rows_of_two(const wk_view *y, const wk_view *z, const wk_view *x, int n_kept);
/* Splits long rows. Only for kernels that can put parts together. */
void wk_rows_split(wk_rows *rows);
/* The results of the parts as the elements of rows: y as before. */
wk_rows wk_rows_of_parts(const wk_rows *rows);

/* Of a reduction: one dispatch from the results of parts to y. rows: wk_rows_of_parts. part: its
 * elements. */
wick_status wk_rows_join(wk_encoder *e, const wk_op *reduce, const wk_rows *rows, const wk_view *y,
                         const wk_view *parts, uint32_t part);
/* The parameters of reduce.wgsl. */
void wk_rows_own(const wk_op *reduce, const wk_rows *rows, uint32_t part, uint32_t own[4]);

/* What the bits of elements are, as KIND says it to sources. */
typedef enum wk_rows_kind {
    WK_KIND_FLOAT,
    WK_KIND_SIGNED,
    WK_KIND_UNSIGNED,
    WK_KIND_BOOL,
    WK_KIND_NONE, /* 64 bits, or blocks */
} wk_rows_kind;
wk_rows_kind wk_rows_kind_of(wick_dtype dtype);

/* Whether 32 bits count all elements of x. */
bool wk_rows_are_countable(const wk_view *x);

/* Runs a source whose operands (at most 4, y and x first) are bound and whose own constants are
 * set. own: parameters, as bits. */
wick_status wk_rows_run(wk_encoder *e, wk_dispatch *d, const wk_rows *rows, const uint32_t own[4]);

/* Sorts the rows of x, u32 [.., n]: pairs of an element and its place in the row, stable, in
 * pairs[*at]; the other one is used meanwhile. Both have room for a pair for each element of x. */
wick_status wk_rows_sort(wk_encoder *e, const wk_view *x, const wk_view pairs[2], int *at);

#endif
