/* bench/quantize.c: megabytes of float32 weights that one thread encodes in a second, and the
 * root-mean-square error of the result, for each type.
 *
 * usage: quantize [TYPE...] */
#define _POSIX_C_SOURCE 200809L /* clock_gettime */

#include "core/rng.h"
#include "quant/block.h"
#include "quant/encode.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { N = 1 << 20 };

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static void measure(wick_dtype dtype, const float *source, uint8_t *blocks, float *decoded) {
    double seconds = 0, square = 0;
    int runs = 0;
    while (seconds < 1) {
        const double begin = now();
        wk_encode(dtype, source, NULL, blocks, N);
        seconds += now() - begin;
        runs++;
    }
    wk_decoder(dtype)(blocks, decoded, N);
    for (int i = 0; i < N; i++) {
        const double e = (double)source[i] - (double)decoded[i];
        square += e * e;
    }
    printf("%-8s %8.0f MB/s   rms error %.6f\n", wick_dtype_name(dtype),
           4e-6 * (double)N * runs / seconds, sqrt(square / (double)N));
}

static bool is_asked_for(const char *name, char **names, int n) {
    for (int i = 0; i < n; i++)
        if (strcmp(name, names[i]) == 0) return true;
    return n == 0;
}

int main(int argc, char **argv) {
    float *const source = malloc(2 * N * sizeof *source);
    uint8_t *const blocks = malloc(N * sizeof *source);
    if (source == NULL || blocks == NULL) return 1;
    /* Normally distributed, by pairs (Box and Muller, 1958). */
    wk_rng rng = {.seed = 1};
    for (int i = 0; i < N; i += 2) {
        const double radius = sqrt(-2 * log(1 - (double)wk_rng_uniform(&rng)));
        const double angle = 6.283185307179586 * (double)wk_rng_uniform(&rng);
        source[i] = (float)(radius * cos(angle));
        source[i + 1] = (float)(radius * sin(angle));
    }
    for (int i = 0; i < WICK_DTYPE_COUNT_; i++) {
        const wick_dtype dtype = (wick_dtype)i;
        if (wk_can_encode(dtype) && is_asked_for(wick_dtype_name(dtype), argv + 1, argc - 1))
            measure(dtype, source, blocks, source + N);
    }
    free(blocks);
    free(source);
    return 0;
}
