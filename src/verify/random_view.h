/* verify/random_view.h: random extents, strides and types of operands. */
#ifndef WK_VERIFY_RANDOM_VIEW_H
#define WK_VERIFY_RANDOM_VIEW_H

#include "verify/case.h"

enum { WK_CASE_ELEMENTS = 20000 }; /* of an elementwise operand, at most */

static inline int64_t wk_at_least_one(int64_t n) { return n > 0 ? n : 1; }

/* 1 ... most, or sometimes 0; vector widths and their neighbours more often. */
int64_t wk_case_extent(wk_case *c, int64_t most);
/* Returns the rank. Leading dimensions small, the last one up to 1600. */
int wk_case_shape(wk_case *c, int least_rank, int64_t extent[WICK_MAX_RANK]);
/* Shrinks the extents in turn until their product is small enough for the reference; k stays a
 * multiple of block. */
void wk_case_limit(wk_case *c, int64_t *a, int64_t *b, int64_t *k, int64_t block);

/* Strides of a view whose extents are set. Plain layouts keep the last dimension dense, as blocks
 * must. */
void wk_case_place(wk_case *c, wk_view *view, bool is_source);
/* Operand i, whose strides are to be set. */
wk_view *wk_case_operand(wk_case *c, int i, wick_dtype dtype, int rank, const int64_t *extent);
/* Both, and that in half of the cases. */
wk_view *wk_case_add(wk_case *c, int i, wick_dtype dtype, int rank, const int64_t *extent);
void wk_case_add_optional(wk_case *c, int i, wick_dtype dtype, int rank, const int64_t *extent);
/* Sometimes destination 0 is the very view of operand i. */
void wk_case_maybe_in_place(wk_case *c, int i);

wick_dtype wk_case_float(wk_case *c);
wick_dtype wk_case_integer(wk_case *c);
/* Any type but those of blocks. */
wick_dtype wk_case_scalar(wk_case *c);
wick_dtype wk_case_index(wk_case *c);

#endif
