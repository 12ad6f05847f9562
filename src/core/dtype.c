/* core/dtype.c: the table of data types. */
#include "core/dtype.h"

#include "core/compiler.h"

/* name, elements of a block, its bytes, GGML's number of the type (-1: not in GGUF), class */
const wk_dtype_info wk_dtypes[] = {
    [WICK_F32] = {"f32", 1, 4, 0, WK_CLASS_FLOAT},
    [WICK_F16] = {"f16", 1, 2, 1, WK_CLASS_FLOAT},
    [WICK_BF16] = {"bf16", 1, 2, 30, WK_CLASS_FLOAT},
    [WICK_F64] = {"f64", 1, 8, 28, WK_CLASS_FLOAT},
    [WICK_I64] = {"i64", 1, 8, 27, WK_CLASS_INTEGER},
    [WICK_I32] = {"i32", 1, 4, 26, WK_CLASS_INTEGER},
    [WICK_I16] = {"i16", 1, 2, 25, WK_CLASS_INTEGER},
    [WICK_I8] = {"i8", 1, 1, 24, WK_CLASS_INTEGER},
    [WICK_U32] = {"u32", 1, 4, -1, WK_CLASS_INTEGER},
    [WICK_U8] = {"u8", 1, 1, -1, WK_CLASS_INTEGER},
    [WICK_BOOL] = {"bool", 1, 1, -1, WK_CLASS_BOOL},
    [WICK_Q4_0] = {"q4_0", 32, 18, 2, WK_CLASS_BLOCK},
    [WICK_Q4_1] = {"q4_1", 32, 20, 3, WK_CLASS_BLOCK},
    [WICK_Q5_0] = {"q5_0", 32, 22, 6, WK_CLASS_BLOCK},
    [WICK_Q5_1] = {"q5_1", 32, 24, 7, WK_CLASS_BLOCK},
    [WICK_Q8_0] = {"q8_0", 32, 34, 8, WK_CLASS_BLOCK},
    [WICK_Q8_1] = {"q8_1", 32, 36, 9, WK_CLASS_BLOCK},
    [WICK_Q2_K] = {"q2_k", 256, 84, 10, WK_CLASS_BLOCK},
    [WICK_Q3_K] = {"q3_k", 256, 110, 11, WK_CLASS_BLOCK},
    [WICK_Q4_K] = {"q4_k", 256, 144, 12, WK_CLASS_BLOCK},
    [WICK_Q5_K] = {"q5_k", 256, 176, 13, WK_CLASS_BLOCK},
    [WICK_Q6_K] = {"q6_k", 256, 210, 14, WK_CLASS_BLOCK},
    [WICK_Q8_K] = {"q8_k", 256, 292, 15, WK_CLASS_BLOCK},
    [WICK_IQ2_XXS] = {"iq2_xxs", 256, 66, 16, WK_CLASS_BLOCK},
    [WICK_IQ2_XS] = {"iq2_xs", 256, 74, 17, WK_CLASS_BLOCK},
    [WICK_IQ3_XXS] = {"iq3_xxs", 256, 98, 18, WK_CLASS_BLOCK},
    [WICK_IQ1_S] = {"iq1_s", 256, 50, 19, WK_CLASS_BLOCK},
    [WICK_IQ4_NL] = {"iq4_nl", 32, 18, 20, WK_CLASS_BLOCK},
    [WICK_IQ3_S] = {"iq3_s", 256, 110, 21, WK_CLASS_BLOCK},
    [WICK_IQ2_S] = {"iq2_s", 256, 82, 22, WK_CLASS_BLOCK},
    [WICK_IQ4_XS] = {"iq4_xs", 256, 136, 23, WK_CLASS_BLOCK},
    [WICK_IQ1_M] = {"iq1_m", 256, 56, 29, WK_CLASS_BLOCK},
    [WICK_TQ1_0] = {"tq1_0", 256, 54, 34, WK_CLASS_BLOCK},
    [WICK_TQ2_0] = {"tq2_0", 256, 66, 35, WK_CLASS_BLOCK},
    [WICK_MXFP4] = {"mxfp4", 32, 17, 39, WK_CLASS_BLOCK},
    [WICK_NVFP4] = {"nvfp4", 64, 36, 40, WK_CLASS_BLOCK},
    [WICK_Q1_0] = {"q1_0", 128, 18, 41, WK_CLASS_BLOCK},
    [WICK_Q2_0] = {"q2_0", 64, 18, 42, WK_CLASS_BLOCK},
    [WICK_F8_E4M3] = {"f8_e4m3", 1, 1, -1, WK_CLASS_STORED},
    [WICK_F8_E5M2] = {"f8_e5m2", 1, 1, -1, WK_CLASS_STORED},
};

_Static_assert(WK_COUNT(wk_dtypes) == WICK_DTYPE_COUNT_, "every dtype has its row");

static bool is_valid(wick_dtype dtype) { return (unsigned)dtype < WICK_DTYPE_COUNT_; }

const char *wick_dtype_name(wick_dtype dtype) {
    return is_valid(dtype) ? wk_dtypes[dtype].name : "unknown";
}

bool wk_dtype_from_ggml(uint32_t ggml_type, wick_dtype *dtype) {
    for (int i = 0; i < WICK_DTYPE_COUNT_; i++) {
        if (wk_dtypes[i].ggml_type < 0 || (uint32_t)wk_dtypes[i].ggml_type != ggml_type) continue;
        *dtype = (wick_dtype)i;
        return true;
    }
    return false;
}

bool wk_dtype_bytes(wick_dtype dtype, int64_t n, uint64_t *bytes) {
    const wk_dtype_info *const info = wk_dtype_get(dtype);
    if (n < 0) return false;
    uint64_t n_blocks = (uint64_t)n;
    if (info->block_elements > 1) {
        if (n % info->block_elements != 0) return false;
        n_blocks /= (uint64_t)info->block_elements;
    }
    if (n > INT32_MAX && n_blocks > UINT64_MAX / (uint64_t)info->block_bytes) return false;
    *bytes = n_blocks * (uint64_t)info->block_bytes;
    return true;
}
