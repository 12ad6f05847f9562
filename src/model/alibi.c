/* model/alibi.c: attention with linear biases (Press et al., 2022). */
#include "model/model_struct.h"

#include <wick/ops.h>

/* 2^(-rate i), i = first, first + step, ...: n of them. */
static wick_tensor *powers(wick_device *device, double rate, double first, double step,
                           uint32_t n) {
    const double log_2 = 0.69314718055994530942;
    wick_tensor *const i = wick_arange(device, WICK_F32, first, first + step * n, step);
    return wick_exp(wick_affine(i, -rate * log_2, 0.0));
}

wick_tensor *wk_alibi_slopes(wick_device *device, uint32_t n_heads, float most) {
    uint32_t n = 1;
    while (2 * n <= n_heads) n *= 2;
    const double rate = (double)most / n;
    wick_tensor *const slopes = powers(device, rate, 1.0, 1.0, n);
    if (n == n_heads) return slopes;
    wick_tensor *const all[] = {slopes, powers(device, rate / 2.0, 1.0, 2.0, n_heads - n)};
    return wick_cat(all, 2, 0);
}
