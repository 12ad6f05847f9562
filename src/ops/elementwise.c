/* ops/elementwise.c: functions of each element alone: of one tensor, of two, comparisons, choice.
 */
#include <wick/ops.h>

#include "core/dtype.h"
#include "core/shape.h"
#include "ops/operand.h"
#include "ops/view.h"

#include <math.h>

/* --- Of one tensor --- */

/* What a function takes of floats and integers, in words. */
static bool refuse_dtype(const char *op, wick_device *device, wick_dtype dtype, bool takes_floats,
                         bool takes_integers) {
    wk_device_fail(device, WICK_ERR_DTYPE, "%s: takes %s, not %s", op,
                   !takes_integers ? "a float type"
                   : takes_floats  ? "numbers"
                                   : "an integer type",
                   wick_dtype_name(dtype));
    return false;
}

static bool takes_unary(const char *op, const wick_tensor *x, wk_unary_fn fn) {
    const wick_dtype dtype = x->view.dtype;
    return wk_unary_takes(fn, dtype) ||
           refuse_dtype(op, x->device, dtype, wk_unary_takes(fn, WICK_F32),
                        wk_unary_takes(fn, WICK_I32));
}

static wk_call call_unary(const char *op, wick_tensor *y, wick_tensor *x, wk_unary_fn fn, double a,
                          double b) {
    wk_call call;
    wk_call_begin(&call, WK_OP_UNARY, op);
    wk_call_add(&call, y, NULL);
    wk_call_add(&call, x, NULL);
    call.op.p.unary.fn = fn;
    call.op.p.unary.a = a;
    call.op.p.unary.b = b;
    return call;
}

static wick_tensor *unary(const char *op, wick_tensor *x, wk_unary_fn fn, double a, double b) {
    if (!x || !takes_unary(op, x, fn)) return NULL;
    if (!wk_operand_is_strided(op, x)) return NULL;
    const wick_shape shape = wk_tensor_shape_of(x);
    wick_tensor *const y = wk_tensor_new(x->device, x->view.dtype, &shape);
    wk_call call = call_unary(op, y, x, fn, a, b);
    return wk_queue_result(&call, y);
}

static wick_tensor *unary_in_place(const char *op, wick_tensor *x, wk_unary_fn fn, double a,
                                   double b) {
    if (!x || !takes_unary(op, x, fn) || !wk_operand_is_writable(op, x)) return NULL;
    wk_call call = call_unary(op, x, x, fn, a, b);
    return wk_tensor_is_empty(x) || wk_call_queue(x->device, &call) == WICK_OK ? x : NULL;
}

/* X(name, FUNCTION): those without parameters. */
#define UNARY(X)                                                                                   \
    X(abs, ABS)                                                                                    \
    X(neg, NEG)                                                                                    \
    X(sqr, SQR)                                                                                    \
    X(sign, SIGN)                                                                                  \
    X(relu, RELU)                                                                                  \
    X(exp, EXP)                                                                                    \
    X(log, LOG)                                                                                    \
    X(sin, SIN)                                                                                    \
    X(cos, COS)                                                                                    \
    X(recip, RECIP)                                                                                \
    X(sqrt, SQRT)                                                                                  \
    X(erf, ERF)                                                                                    \
    X(tanh, TANH)                                                                                  \
    X(sigmoid, SIGMOID)                                                                            \
    X(floor, FLOOR)                                                                                \
    X(ceil, CEIL)                                                                                  \
    X(round, ROUND)                                                                                \
    X(silu, SILU)                                                                                  \
    X(gelu, GELU)                                                                                  \
    X(gelu_erf, GELU_ERF)                                                                          \
    X(quick_gelu, GELU_QUICK)                                                                      \
    X(softplus, SOFTPLUS)                                                                          \
    X(mish, MISH)                                                                                  \
    X(hard_sigmoid, HARD_SIGMOID)                                                                  \
    X(hard_swish, HARD_SWISH)                                                                      \
    X(tan, TAN)                                                                                    \
    X(asin, ASIN)                                                                                  \
    X(acos, ACOS)                                                                                  \
    X(atan, ATAN)                                                                                  \
    X(sinh, SINH)                                                                                  \
    X(cosh, COSH)                                                                                  \
    X(asinh, ASINH)                                                                                \
    X(acosh, ACOSH)                                                                                \
    X(atanh, ATANH)                                                                                \
    X(expm1, EXPM1)                                                                                \
    X(exp2, EXP2)                                                                                  \
    X(log1p, LOG1P)                                                                                \
    X(log2, LOG2)                                                                                  \
    X(log10, LOG10)                                                                                \
    X(rsqrt, RSQRT)                                                                                \
    X(trunc, TRUNC)

#define DEFINE(name, function)                                                                     \
    wick_tensor *wick_##name(wick_tensor *x) { return unary(#name, x, WK_UNARY_##function, 0, 0); }
UNARY(DEFINE)
#undef DEFINE

wick_tensor *wick_bitwise_not(wick_tensor *x) {
    if (!x || x->view.dtype != WICK_BOOL) return unary("bitwise_not", x, WK_UNARY_NOT, 0, 0);
    const wick_scope scope = wk_operation_begin(x->device, "bitwise_not");
    return wick_scope_result(scope, wick_cast(wick_logical_not(x), WICK_BOOL));
}

wick_tensor *wick_relu6(wick_tensor *x) { return unary("relu6", x, WK_UNARY_CLAMP, 0, 6); }

wick_tensor *wick_relu_squared(wick_tensor *x) {
    wick_tensor *const positive = unary("relu_squared", x, WK_UNARY_RELU, 0, 0);
    wick_tensor *const y = unary("relu_squared", positive, WK_UNARY_SQR, 0, 0);
    wick_release(positive);
    return y;
}

wick_tensor *wick_elu(wick_tensor *x, double alpha) {
    return unary("elu", x, WK_UNARY_ELU, alpha, 0);
}

wick_tensor *wick_leaky_relu(wick_tensor *x, double slope) {
    return unary("leaky_relu", x, WK_UNARY_LEAKY_RELU, slope, 0);
}

wick_tensor *wick_powf(wick_tensor *x, double exponent) {
    return unary("powf", x, WK_UNARY_POW, exponent, 0);
}

wick_tensor *wick_affine(wick_tensor *x, double mul, double add) {
    return unary("affine", x, WK_UNARY_AFFINE, mul, add);
}

/* Bounds of integers become the nearest that the type holds; NaN is refused. */
static wick_tensor *clamp(const char *op, wick_tensor *x, double min, double max,
                          wick_tensor *(*apply)(const char *op, wick_tensor *x, wk_unary_fn fn,
                                                double a, double b)) {
    if (!x) return NULL;
    if (isnan(min) || isnan(max)) {
        wk_device_fail(x->device, WICK_ERR_VALUE, "%s: the bounds are %g and %g", op, min, max);
        return NULL;
    }
    if (min > max) min = max;
    if (!wk_dtype_is_float(x->view.dtype)) {
        min = (double)wk_integer_of(x->view.dtype, min);
        max = (double)wk_integer_of(x->view.dtype, max);
    }
    return apply(op, x, WK_UNARY_CLAMP, min, max);
}

wick_tensor *wick_clamp(wick_tensor *x, double min, double max) {
    return clamp("clamp", x, min, max, unary);
}

wick_tensor *wick_clamp_in_place(wick_tensor *x, double min, double max) {
    return clamp("clamp_in_place", x, min, max, unary_in_place);
}

wick_tensor *wick_affine_in_place(wick_tensor *x, double mul, double add) {
    return unary_in_place("affine_in_place", x, WK_UNARY_AFFINE, mul, add);
}

#define DEFINE(name, function)                                                                     \
    wick_tensor *wick_##name##_in_place(wick_tensor *x) {                                          \
        return unary_in_place(#name "_in_place", x, WK_UNARY_##function, 0, 0);                    \
    }
DEFINE(abs, ABS)
DEFINE(neg, NEG)
DEFINE(sqr, SQR)
DEFINE(relu, RELU)
DEFINE(exp, EXP)
DEFINE(log, LOG)
DEFINE(sqrt, SQRT)
DEFINE(tanh, TANH)
DEFINE(sigmoid, SIGMOID)
DEFINE(silu, SILU)
DEFINE(gelu, GELU)
DEFINE(floor, FLOOR)
DEFINE(ceil, CEIL)
DEFINE(round, ROUND)
#undef DEFINE

/* --- Of two tensors --- */

/* A function of two tensors, which computes in dtype. */
typedef struct function {
    wk_opcode code; /* BINARY or COMPARE */
    union {
        wk_binary_fn binary;
        wk_compare_fn compare;
    };
    wick_dtype dtype;
} function;

/* Of a and b of its dtype, which broadcast to the shape. */
static wick_tensor *queue_two(const char *op, const function *f, const wick_shape *shape,
                              wick_tensor *a, wick_tensor *b) {
    const bool is_compare = f->code == WK_OP_COMPARE;
    wick_tensor *const y = wk_tensor_new(a->device, is_compare ? WICK_U8 : f->dtype, shape);
    wk_call call;
    wk_call_begin(&call, f->code, op);
    wk_call_add(&call, y, NULL);
    wk_view_expand(&a->view, shape, wk_call_add(&call, a, NULL));
    wk_view_expand(&b->view, shape, wk_call_add(&call, b, NULL));
    if (is_compare)
        call.op.p.compare = f->compare;
    else
        call.op.p.binary = f->binary;
    return wk_queue_result(&call, y);
}

static wick_tensor *of_two(const char *op, const function *f, wick_tensor *a, wick_tensor *b) {
    wick_shape shape;
    if (!wk_operand_is_strided(op, a) || !wk_operand_is_strided(op, b)) return NULL;
    if (!wk_operands_broadcast(op, a, b, &shape)) return NULL;
    if (a->view.dtype == f->dtype && b->view.dtype == f->dtype)
        return queue_two(op, f, &shape, a, b);
    const wick_scope scope = wk_operation_begin(a->device, op);
    wick_tensor *const left = wk_promoted(a, f->dtype), *const right = wk_promoted(b, f->dtype);
    if (!left || !right) return wick_scope_result(scope, NULL);
    return wick_scope_result(scope, queue_two(op, f, &shape, left, right));
}

static wick_tensor *binary(const char *op, wk_binary_fn fn, wick_tensor *a, wick_tensor *b) {
    wick_dtype dtype;
    if (!wk_operands_present(op, (wick_tensor *[]){a, b}, 2)) return NULL;
    if (!wk_operands_promote(op, a, b, &dtype)) return NULL;
    if (!wk_binary_takes(fn, dtype)) {
        (void)refuse_dtype(op, a->device, dtype, wk_binary_takes(fn, WICK_F32),
                           wk_binary_takes(fn, WICK_I32));
        return NULL;
    }
    const function f = {.code = WK_OP_BINARY, .binary = fn, .dtype = dtype};
    return of_two(op, &f, a, b);
}

static bool check_in_place(const char *op, wk_binary_fn fn, const wick_tensor *x,
                           const wick_tensor *b) {
    wick_dtype dtype;
    if (!wk_operand_is_writable(op, x) || !wk_operand_is_strided(op, b)) return false;
    if (!wk_operands_promote(op, x, b, &dtype)) return false;
    if (!wk_binary_takes(fn, dtype))
        return refuse_dtype(op, x->device, dtype, wk_binary_takes(fn, WICK_F32),
                            wk_binary_takes(fn, WICK_I32));
    if (dtype == x->view.dtype) return true;
    wk_device_fail(x->device, WICK_ERR_DTYPE, "%s: the result is %s, which %s cannot hold", op,
                   wick_dtype_name(dtype), wick_dtype_name(x->view.dtype));
    return false;
}

static wick_tensor *binary_in_place(const char *op, wk_binary_fn fn, wick_tensor *x,
                                    wick_tensor *b) {
    if (!wk_operands_present(op, (wick_tensor *[]){x, b}, 2)) return NULL;
    if (!check_in_place(op, fn, x, b)) return NULL;
    const wick_shape to = wk_tensor_shape_of(x), from = wk_tensor_shape_of(b);
    wk_view view;
    if (!wk_view_expand(&b->view, &to, &view)) {
        char text[2][WK_SHAPE_TEXT];
        wk_device_fail(x->device, WICK_ERR_SHAPE, "%s: %s does not broadcast to %s", op,
                       wk_shape_text(&from, text[0], sizeof text[0]),
                       wk_shape_text(&to, text[1], sizeof text[1]));
        return NULL;
    }
    if (wk_tensor_is_empty(x)) return x;
    const wick_scope scope = wk_operation_begin(x->device, op);
    const bool is_shared = b->view.buf == x->view.buf;
    wick_tensor *const right =
        is_shared ? wk_dense_copy(b, x->view.dtype) : wk_promoted(b, x->view.dtype);
    wick_status status = right ? WICK_OK : WICK_ERR_OUT_OF_MEMORY;
    if (right) {
        wk_view_expand(&right->view, &to, &view);
        wk_call call;
        wk_call_begin(&call, WK_OP_BINARY, op);
        wk_call_add(&call, x, NULL);
        wk_call_add(&call, x, NULL);
        wk_call_add(&call, right, &view);
        call.op.p.binary = fn;
        status = wk_call_queue(x->device, &call);
    }
    wick_scope_end(scope);
    return status == WICK_OK ? x : NULL;
}

#define DEFINE(name, function)                                                                     \
    wick_tensor *wick_##name##_in_place(wick_tensor *x, wick_tensor *b) {                          \
        return binary_in_place(#name "_in_place", WK_BINARY_##function, x, b);                     \
    }
DEFINE(add, ADD)
DEFINE(sub, SUB)
DEFINE(mul, MUL)
DEFINE(div, DIV)
DEFINE(maximum, MAXIMUM)
DEFINE(minimum, MINIMUM)
#undef DEFINE

static wick_tensor *compare(const char *op, wk_compare_fn fn, wick_tensor *a, wick_tensor *b) {
    wick_dtype dtype;
    if (!wk_operands_present(op, (wick_tensor *[]){a, b}, 2)) return NULL;
    if (!wk_operands_promote(op, a, b, &dtype)) return NULL;
    const function f = {.code = WK_OP_COMPARE, .compare = fn, .dtype = dtype};
    return of_two(op, &f, a, b);
}

/* Of two bools by logical, which is the same. */
static wick_tensor *bitwise(const char *op, wk_binary_fn fn,
                            wick_tensor *(*logical)(wick_tensor *a, wick_tensor *b), wick_tensor *a,
                            wick_tensor *b) {
    wick_shape shape;
    if (!a || !b || a->view.dtype != WICK_BOOL || b->view.dtype != WICK_BOOL)
        return binary(op, fn, a, b);
    if (!wk_operands_present(op, (wick_tensor *[]){a, b}, 2) ||
        !wk_operands_broadcast(op, a, b, &shape))
        return NULL;
    const wick_scope scope = wk_operation_begin(a->device, op);
    return wick_scope_result(scope, wick_cast(logical(a, b), WICK_BOOL));
}

/* X(name, kind, FUNCTION). */
#define OF_TWO(X)                                                                                  \
    X(add, binary, WK_BINARY_ADD)                                                                  \
    X(sub, binary, WK_BINARY_SUB)                                                                  \
    X(mul, binary, WK_BINARY_MUL)                                                                  \
    X(div, binary, WK_BINARY_DIV)                                                                  \
    X(pow, binary, WK_BINARY_POW)                                                                  \
    X(maximum, binary, WK_BINARY_MAXIMUM)                                                          \
    X(minimum, binary, WK_BINARY_MINIMUM)                                                          \
    X(remainder, binary, WK_BINARY_REMAINDER)                                                      \
    X(fmod, binary, WK_BINARY_FMOD)                                                                \
    X(floor_divide, binary, WK_BINARY_FLOOR_DIVIDE)                                                \
    X(atan2, binary, WK_BINARY_ATAN2)                                                              \
    X(hypot, binary, WK_BINARY_HYPOT)                                                              \
    X(copysign, binary, WK_BINARY_COPYSIGN)                                                        \
    X(nextafter, binary, WK_BINARY_NEXTAFTER)                                                      \
    X(logaddexp, binary, WK_BINARY_LOGADDEXP)                                                      \
    X(bitwise_left_shift, binary, WK_BINARY_SHIFT_LEFT)                                            \
    X(bitwise_right_shift, binary, WK_BINARY_SHIFT_RIGHT)                                          \
    X(eq, compare, WK_COMPARE_EQ)                                                                  \
    X(ne, compare, WK_COMPARE_NE)                                                                  \
    X(lt, compare, WK_COMPARE_LT)                                                                  \
    X(le, compare, WK_COMPARE_LE)                                                                  \
    X(gt, compare, WK_COMPARE_GT)                                                                  \
    X(ge, compare, WK_COMPARE_GE)

#define DEFINE(name, kind, function)                                                               \
    wick_tensor *wick_##name(wick_tensor *a, wick_tensor *b) { return kind(#name, function, a, b); }
OF_TWO(DEFINE)
#undef DEFINE

#define DEFINE(name, function)                                                                     \
    wick_tensor *wick_bitwise_##name(wick_tensor *a, wick_tensor *b) {                             \
        return bitwise("bitwise_" #name, function, wick_logical_##name, a, b);                     \
    }
DEFINE(and, WK_BINARY_AND)
DEFINE(or, WK_BINARY_OR)
DEFINE(xor, WK_BINARY_XOR)
#undef DEFINE

/* --- Choice --- */

static bool check_where(const wick_tensor *cond, const wick_tensor *a, const wick_tensor *b) {
    const wick_dtype dtype = cond->view.dtype;
    if (dtype != WICK_U8 && dtype != WICK_BOOL && dtype != WICK_I64) {
        wk_device_fail(cond->device, WICK_ERR_DTYPE, "where: cond is u8, bool or i64, not %s",
                       wick_dtype_name(dtype));
        return false;
    }
    return wk_operand_is_scalars("where", a) && wk_operand_is_scalars("where", b);
}

wick_tensor *wick_where(wick_tensor *cond, wick_tensor *a, wick_tensor *b) {
    wick_tensor *operands[] = {cond, a, b};
    if (!wk_operands_present("where", operands, WK_COUNT(operands))) return NULL;
    wick_shape values;
    if (!check_where(cond, a, b) || !wk_operands_broadcast("where", a, b, &values)) return NULL;
    const wick_shape shape_cond = wk_tensor_shape_of(cond);
    wick_shape shape;
    if (!wk_shape_broadcast(&shape_cond, &values, &shape)) {
        char text[2][WK_SHAPE_TEXT];
        wk_device_fail(cond->device, WICK_ERR_SHAPE, "where: cond %s does not broadcast with %s",
                       wk_shape_text(&shape_cond, text[0], sizeof text[0]),
                       wk_shape_text(&values, text[1], sizeof text[1]));
        return NULL;
    }
    wick_dtype dtype;
    if (!wk_operands_promote("where", a, b, &dtype)) return NULL;
    const wick_scope scope = wk_operation_begin(a->device, "where");
    for (int i = 1; i < 3; i++) operands[i] = wk_promoted(operands[i], dtype);
    if (!operands[1] || !operands[2]) return wick_scope_result(scope, NULL);
    wick_tensor *const y = wk_tensor_new(cond->device, dtype, &shape);
    wk_view views[WK_COUNT(operands)];
    wk_call call;
    wk_call_begin(&call, WK_OP_WHERE, "where");
    wk_call_add(&call, y, NULL);
    for (size_t i = 0; i < WK_COUNT(operands); i++) {
        wk_view_expand(&operands[i]->view, &shape, &views[i]);
        wk_call_add(&call, operands[i], &views[i]);
    }
    return wick_scope_result(scope, wk_queue_result(&call, y));
}
