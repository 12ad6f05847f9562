/* sys/cpu_features.h: what the processor and the system allow. */
#ifndef WK_SYS_CPU_FEATURES_H
#define WK_SYS_CPU_FEATURES_H

#include <stddef.h>
#include <stdint.h>

enum {
    WK_CPU_AVX2 = 1,     /* with FMA and F16C */
    WK_CPU_AVX512 = 2,   /* F, BW, DQ, VL and VNNI: not every processor with AVX-512 has the last */
    WK_CPU_NEON = 4,     /* every 64-bit ARM */
    WK_CPU_DOTPROD = 8,  /* dot products of bytes */
    WK_CPU_I8MM = 16,    /* and 2 x 2 products of 8 bytes each, unsigned by signed ones too */
    WK_CPU_SIMD128 = 32, /* WebAssembly's fixed-width SIMD */
};

/* Bits above; register state that the system does not save is not reported. */
uint32_t wk_cpu_features(void);
/* Marketing name, "AMD EPYC 9B45"; where the system has none, "64-bit ARM processor" or "unknown
 * processor". */
void wk_cpu_name(char *name, size_t size);

#endif
