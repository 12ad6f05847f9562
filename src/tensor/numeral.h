/* tensor/numeral.h: numbers as equal columns of text, by the rules of NumPy's array2string: the
 * fewest digits that tell a value from its neighbours in its dtype, at most 8 decimals, and powers
 * of ten where the magnitudes differ too much. Independent of the locale. */
#ifndef WK_TENSOR_NUMERAL_H
#define WK_TENSOR_NUMERAL_H

#include <wick/tensor.h>

enum { WK_NUMERAL_SIZE = 64 };

typedef struct wk_numerals {
    wick_dtype dtype;
    bool is_scientific; /* floats only, as the members below */
    int n_whole;        /* columns before the point, a sign among them */
    int n_decimals;     /* columns after it */
    int n_exponent;     /* digits of the exponent */
    int width;          /* characters of every number */
} wk_numerals;

/* The columns that n elements (dense; no block type) need. */
wk_numerals wk_numerals_fit(wick_dtype dtype, const void *data, int64_t n);
/* One of them, padded with spaces on both sides, terminated. */
void wk_numeral_write(const wk_numerals *numerals, const void *data, int64_t element,
                      char text[WK_NUMERAL_SIZE]);

#endif
