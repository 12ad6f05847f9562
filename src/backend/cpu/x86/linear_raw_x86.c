/* x86/linear_raw_x86.c: linear over raw blocks, with the kernels for panels of AVX2 and AVX-512. */
#include "backend/cpu/simd/linear_raw.h"

#include "sys/cpu_features.h"

RAW_KERNEL(raw_fast_avx512, WK_CPU_AVX512, true)
RAW_KERNEL(raw_fast_avx2, WK_CPU_AVX2, true)
RAW_KERNEL(raw_avx512, WK_CPU_AVX512, false)
RAW_KERNEL(raw_avx2, WK_CPU_AVX2, false)
