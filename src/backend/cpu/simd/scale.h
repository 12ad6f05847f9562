/* simd/scale.h: products with powers of two, where there is no instruction for them; included by
 * simd_*.h. */
#ifndef WK_SIMD_SCALE_H
#define WK_SIMD_SCALE_H

/* a 2^n for whole n in -126 ... 127, */
WK_INLINE v16 v16_scale(v16 a, v16 n) { return v16_mul(a, v16_exp2_whole(n)); }
/* and in -252 ... 254, rounded once: in two factors, since one alone would overflow or vanish
 * before the product does. */
WK_INLINE v16 v16_scale_far(v16 a, v16 n) {
    const v16 first = v16_round(v16_mul(n, v16_set(0.5F)));
    return v16_scale(v16_scale(a, first), v16_sub(n, first));
}

#endif
