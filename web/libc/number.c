/* number.c: see number.h. */
#include "number.h"

static void push(number *x, uint32_t limb) {
    if (x->n == NUMBER_LIMBS) __builtin_trap();
    x->limbs[x->n++] = limb;
}

void number_set(number *x, uint64_t value) {
    x->n = 0;
    for (; value > 0; value >>= 32) push(x, (uint32_t)value);
}

void number_multiply(number *x, uint32_t factor, uint32_t term) {
    uint64_t carry = term;
    for (int i = 0; i < x->n; i++) {
        carry += (uint64_t)x->limbs[i] * factor;
        x->limbs[i] = (uint32_t)carry;
        carry >>= 32;
    }
    if (carry > 0) push(x, (uint32_t)carry);
}

void number_times_ten_to(number *x, int exponent) {
    enum { MOST = 13 }; /* 5^13 is the largest power in 32 bits */
    static const uint32_t powers[MOST + 1] = {1,       5,        25,        125,       625,
                                              3125,    15625,    78125,     390625,    1953125,
                                              9765625, 48828125, 244140625, 1220703125};
    number_shift(x, exponent);
    for (; exponent > MOST; exponent -= MOST) number_multiply(x, powers[MOST], 0);
    number_multiply(x, powers[exponent], 0);
}

void number_shift(number *x, int bits) {
    const int whole = bits / 32, part = bits % 32;
    if (x->n == 0 || bits == 0) return;
    for (int i = 0; i < whole; i++) push(x, 0);
    for (int i = x->n - 1; i >= 0; i--) x->limbs[i] = i >= whole ? x->limbs[i - whole] : 0;
    if (part > 0) number_multiply(x, UINT32_C(1) << part, 0);
}

uint32_t number_divide(number *x, uint32_t divisor) {
    uint64_t rest = 0;
    for (int i = x->n - 1; i >= 0; i--) {
        rest = rest << 32 | x->limbs[i];
        x->limbs[i] = (uint32_t)(rest / divisor);
        rest %= divisor;
    }
    while (x->n > 0 && x->limbs[x->n - 1] == 0) x->n--;
    return (uint32_t)rest;
}

int number_compare(const number *a, const number *b) {
    if (a->n != b->n) return a->n < b->n ? -1 : 1;
    for (int i = a->n - 1; i >= 0; i--) {
        if (a->limbs[i] != b->limbs[i]) return a->limbs[i] < b->limbs[i] ? -1 : 1;
    }
    return 0;
}
