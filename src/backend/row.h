/* backend/row.h: rows of strided views in host memory, whose elements are read and written as
 * float64 or int64, whatever their dtype. */
#ifndef WK_BACKEND_ROW_H
#define WK_BACKEND_ROW_H

#include "backend/op.h"

/* One row of a view: its elements along the last dimension (one element for rank 0). */
typedef struct wk_row {
    unsigned char *data;
    wick_dtype dtype;
    int64_t stride; /* elements */
    int64_t n;
} wk_row;

/* Rows of a view: the product of all extents but the last; 0 where rows are empty. */
int64_t wk_row_count(const wk_view *view);
/* Row index of that count, row-major. */
wk_row wk_row_at(const wk_view *view, int64_t index);
/* The same for a view of a known rank: row [at[0], at[1], ...] without the last dimension. */
wk_row wk_row_of(const wk_view *view, const int64_t *at);

/* Elements [begin, begin + n) of a row, also of blocks. Loads of integers as float64 round above
 * 2^53. */
void wk_row_load(const wk_row *row, int64_t begin, int64_t n, double *dst);
void wk_row_load_integer(const wk_row *row, int64_t begin, int64_t n, int64_t *dst);
/* To a float dtype: rounds once to nearest even. To an integer: truncates, saturates, NaN is 0. To
 * bool: what is not zero is 1. To the block types of caches: whole blocks, by wk_encode_quickly. */
void wk_row_store(const wk_row *row, int64_t begin, int64_t n, const double *src);
/* To a float dtype: rounds once to nearest even. To a narrower integer: keeps the low bits. */
void wk_row_store_integer(const wk_row *row, int64_t begin, int64_t n, const int64_t *src);

/* First element of a row of a single one, as every index and mask is read. */
int64_t wk_row_integer_at(const wk_row *row, int64_t i);

#endif
