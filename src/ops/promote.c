/* ops/promote.c: the dtype of results of two operands of different dtypes. */
#include "ops/operand.h"

#include "core/dtype.h"

static bool is_of(wick_dtype dtype, wk_dtype_class class) {
    return wk_dtype_get(dtype)->dtype_class == class;
}

static wick_dtype of_floats(wick_dtype a, wick_dtype b) {
    if (a == WICK_F64 || b == WICK_F64) return WICK_F64;
    return WICK_F32; /* also what f16 and bf16 have in common */
}

static bool is_unsigned(wick_dtype dtype) { return dtype == WICK_U8 || dtype == WICK_U32; }

/* The narrowest one that has all numbers of both. */
static wick_dtype of_integers(wick_dtype a, wick_dtype b) {
    static const wick_dtype has_both[] = {[1] = WICK_I16, [2] = WICK_I32, [4] = WICK_I64};
    const int bytes_a = wk_dtype_get(a)->block_bytes, bytes_b = wk_dtype_get(b)->block_bytes;
    const wick_dtype wide = bytes_a > bytes_b ? a : b, other = wide == a ? b : a;
    if (is_unsigned(a) == is_unsigned(b)) return wide;
    if (!is_unsigned(wide) && bytes_a != bytes_b) return wide;
    return has_both[wk_dtype_get(is_unsigned(wide) ? wide : other)->block_bytes];
}

bool wk_operands_promote(const char *op, const wick_tensor *x, const wick_tensor *y,
                         wick_dtype *out) {
    const wick_dtype a = x->view.dtype, b = y->view.dtype;
    if (!wk_dtype_is_scalar(a) || !wk_dtype_is_scalar(b)) {
        wk_operand_refuse(op, x->device, wk_dtype_is_scalar(a) ? b : a);
        return false;
    }
    if (a == b || is_of(b, WK_CLASS_BOOL)) {
        *out = a;
    } else if (is_of(a, WK_CLASS_BOOL)) {
        *out = b;
    } else if (wk_dtype_is_float(a) && wk_dtype_is_float(b)) {
        *out = of_floats(a, b);
    } else if (wk_dtype_is_float(a) || wk_dtype_is_float(b)) {
        *out = wk_dtype_is_float(a) ? a : b;
    } else {
        *out = of_integers(a, b);
    }
    return true;
}

wick_tensor *wk_promoted(wick_tensor *x, wick_dtype dtype) {
    return !x || x->view.dtype == dtype ? x : wk_dense_copy(x, dtype);
}

wick_dtype wk_wide_dtype(wick_dtype dtype) {
    return dtype == WICK_F16 || dtype == WICK_BF16 ? WICK_F32 : dtype;
}

wick_tensor *wk_widened(wick_tensor *x) {
    return x ? wk_promoted(x, wk_wide_dtype(x->view.dtype)) : NULL;
}
