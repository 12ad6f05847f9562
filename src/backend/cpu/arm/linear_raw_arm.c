/* arm/linear_raw_arm.c: linear over raw blocks, with the kernels for panels of 64-bit ARM. */
#include "backend/cpu/simd/linear_raw.h"

#include "sys/cpu_features.h"

RAW_KERNEL(raw_fast_i8mm, WK_CPU_NEON | WK_CPU_I8MM, true)
RAW_KERNEL(raw_fast_dotprod, WK_CPU_NEON | WK_CPU_DOTPROD, true)
RAW_KERNEL(raw_neon, WK_CPU_NEON, false)
