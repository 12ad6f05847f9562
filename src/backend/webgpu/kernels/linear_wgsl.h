/* backend/webgpu/kernels/linear_wgsl.h: the rows of linear and linear_experts as their programs see
 * them: columns, in tiles; one weight multiplies all columns of a tile. Rows of linear are columns
 * in the same order. Those of linear_experts are a tile each where they are few, else they are
 * sorted by expert first (wgsl/linear_experts.wgsl). */
#ifndef WK_BACKEND_WEBGPU_KERNELS_LINEAR_WGSL_H
#define WK_BACKEND_WEBGPU_KERNELS_LINEAR_WGSL_H

#include "backend/webgpu/kernels/webgpu_kernel.h"

typedef enum wk_linear_kind {
    WK_LINEAR_ROWS,
    WK_LINEAR_EACH,
    WK_LINEAR_SORTED,
    WK_LINEAR_KINDS,
} wk_linear_kind;

wk_linear_kind wk_linear_kind_of(const wk_op *op);

/* Columns that share a weight, on the average. */
int64_t wk_linear_columns(const wk_op *op);

/* Rows of x: those of u follow each other at step, the next u at stride. Rows of y that share
 * theirs have one. */
typedef struct wk_linear_x {
    int64_t n, u, stride, step;
} wk_linear_x;

wk_linear_x wk_linear_x_of(const wk_op *op);
/* x without what repeats its rows: [m, k] where all u share one. */
wk_view wk_linear_rows(const wk_op *op);
/* How they lie once they follow each other. */
wk_linear_x wk_linear_x_packed(const wk_op *op, int64_t stride);

/* The tiles of an op. */
typedef struct wk_linear_tiles {
    wk_linear_kind kind;
    int64_t columns, n; /* of a tile, at most; tiles */
    wk_view index;      /* SORTED: see wgsl/linear_sort.wgsl */
} wk_linear_tiles;

/* The operands of their sources. */
#define WK_LINEAR_OPERANDS {"y", "x", "weight", "bias", "tables", "index", "fault"}
enum {
    WK_LINEAR_Y,
    WK_LINEAR_X,
    WK_LINEAR_WEIGHT,
    WK_LINEAR_BIAS,
    WK_LINEAR_TABLES,
    WK_LINEAR_INDEX,
    WK_LINEAR_FAULT
};

/* Of WK_OPS_GATED: whether the product's weight is two halves of whole panels, its rows plain ones,
 * and gated a function of these halves of y. */
bool wk_linear_is_gated(const wk_op *ops);
/* Of WK_OPS_EXPERTS_GATED: whether the second product's weight and bias lie after the first's in
 * their buffers. */
bool wk_linear_are_gated_experts(const wk_op *ops);
/* A product, and what becomes of it. */
typedef struct wk_linear_job {
    wk_op op;             /* the product, with the y that is written at last */
    const wk_op *gated;   /* what its sums go through, or NULL */
    const wk_op *up;      /* the product for the second operand of that; NULL: its second half */
    wk_view weight, bias; /* of the product, up to those of `up` */
} wk_linear_job;
/* ops: a product; the ops of WK_OPS_GATED, of WK_OPS_EXPERTS_GATED. */
wk_linear_job wk_linear_job_of(const wk_op *ops, size_t n);
/* The constant GATED, and the parameters from alpha to second_row. */
int32_t wk_linear_gated_constant(const wk_linear_job *job);
void wk_linear_gated_params(wk_dispatch *d, const wk_linear_job *job);

/* Sorts the rows where they must be. */
wick_status wk_linear_make_tiles(wk_encoder *e, const wk_op *op, int64_t columns,
                                 wk_linear_tiles *out);
/* Binds INDEX and FAULT where the kind has them. */
void wk_linear_bind(wk_encoder *e, wk_dispatch *d, const wk_op *op, const wk_linear_tiles *tiles);
/* The parameters from u on (wgsl/linear.wgsl), once the dispatch is placed; x: as its program
 * counts it. */
void wk_linear_params(const wk_encoder *e, wk_dispatch *d, const wk_op *op,
                      const wk_linear_tiles *tiles, const wk_linear_x *x);

#endif
