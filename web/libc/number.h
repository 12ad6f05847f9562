/* number.h: natural numbers of up to LIMBS * 32 bits, for exact conversions between decimal and
 * binary. Nothing overflows: the largest number that a conversion makes is 10^1145 * 2^56. */
#ifndef WICK_LIBC_NUMBER_H
#define WICK_LIBC_NUMBER_H

#include <stdint.h>

enum { NUMBER_LIMBS = 160 };

typedef struct number {
    int n; /* limbs in use, least significant first; the highest is not 0 */
    uint32_t limbs[NUMBER_LIMBS];
} number;

void number_set(number *x, uint64_t value);
/* x = x * factor + term */
void number_multiply(number *x, uint32_t factor, uint32_t term);
/* x = x * 10^exponent */
void number_times_ten_to(number *x, int exponent);
/* x = x * 2^bits */
void number_shift(number *x, int bits);
/* x = x / divisor; returns the rest */
uint32_t number_divide(number *x, uint32_t divisor);
/* Negative, 0 or positive, as a - b is. */
int number_compare(const number *a, const number *b);

#endif
