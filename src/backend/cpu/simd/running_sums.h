/* simd/running_sums.h: running sums of a vector, where the instruction set gains nothing by a form
 * of its own; included by vector_simd_*.h. */
#ifndef WK_SIMD_RUNNING_SUMS_H
#define WK_SIMD_RUNNING_SUMS_H

/* The sums of *before and lanes 0 ... i in float64, eight by eight, these by halves: pairs, then
 * fours, then all; *before becomes the last. */
WK_INLINE v16 v16_running_sums(v16 a, double *before) {
    float lanes[16];
    v16_store(lanes, a);
    for (float *x = lanes; x < lanes + 16; x += 8) {
        double sums[8];
        for (int i = 0; i < 8; i += 4) {
            const double first = (double)x[i], third = (double)x[i + 2];
            const double two = first + (double)x[i + 1];
            sums[i] = first;
            sums[i + 1] = two;
            sums[i + 2] = third + two;
            sums[i + 3] = third + (double)x[i + 3] + two;
        }
        for (int i = 4; i < 8; i++) sums[i] += sums[3];
        for (int i = 0; i < 8; i++) x[i] = (float)(*before + sums[i]);
        *before += sums[7];
    }
    return v16_load(lanes);
}

#endif
