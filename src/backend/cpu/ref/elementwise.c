/* backend/cpu/ref/elementwise.c: functions of two elements, comparisons and choice. */
#include "backend/cpu/ref/ref.h"

#include "core/dtype.h"

#include <math.h>
#include <string.h>

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

/* Room for a part of two rows, as float64 or int64. */
typedef union chunk {
    double real[WK_REF_CHUNK];
    int64_t integer[WK_REF_CHUNK];
} chunk;

static void load(const wk_row *row, int64_t begin, int64_t n, chunk *to) {
    if (wk_dtype_is_float(row->dtype)) {
        wk_row_load(row, begin, n, to->real);
    } else {
        wk_row_load_integer(row, begin, n, to->integer);
    }
}

/* --- Binary --- */

double wk_ref_remainder(double a, double b) {
    const double rest = fmod(a, b);
    if (rest == 0) return copysign(0, b);
    return (rest < 0) == (b < 0) ? rest : rest + b; /* NaN stays */
}

/* a without its remainder is divided, so that the quotient is nearly whole already. */
double wk_ref_floor_divide(double a, double b) {
    if (b == 0) return a / b;
    const double rest = fmod(a, b), near = nearbyint((a - rest) / b);
    const double quotient = rest == 0 || (rest < 0) == (b < 0) ? near : near - 1;
    return quotient == 0 ? copysign(0, a / b) : quotient;
}

static double logaddexp(double a, double b) {
    if (a == b) return a + log(2); /* infinities too */
    return fmax(a, b) + log1p(exp(-fabs(a - b)));
}

/* The number of dtype that follows a on the way to b. */
static double next_after(wick_dtype dtype, double a, double b) {
    static const struct {
        int digits, least; /* of a significand; exponent of the least normal number */
    } kinds[] = {[WICK_F32] = {24, -126}, [WICK_F16] = {11, -14}, [WICK_BF16] = {8, -126}};
    if (dtype == WICK_F64 || a == b || isnan(a) || isnan(b)) return nextafter(a, b);
    int exponent;
    const double significand = frexp(a, &exponent);
    const bool is_toward_zero = a != 0 && (b < a) == (a > 0);
    if (isinf(a)) exponent = dtype == WICK_F16 ? 17 : 129;
    /* Below a power of two, and so below infinity, the numbers are twice as dense. */
    if (is_toward_zero && (isinf(a) || fabs(significand) == 0.5)) exponent--;
    if (a == 0 || exponent - 1 < kinds[dtype].least) exponent = kinds[dtype].least + 1;
    const double step = ldexp(1, exponent - kinds[dtype].digits);
    if (isinf(a)) return copysign(ldexp(1, exponent) - step, a);
    const double next = a + copysign(step, b - a);
    return next == 0 ? copysign(0, a) : next;
}

static double of_floats(wk_binary_fn fn, double a, double b) {
    switch (fn) {
    case WK_BINARY_ADD: return a + b;
    case WK_BINARY_MUL: return a * b;
    case WK_BINARY_SUB: return a - b;
    case WK_BINARY_DIV: return a / b;
    case WK_BINARY_POW: return pow(a, b);
    case WK_BINARY_MAXIMUM: return isnan(a) || a > b ? a : b;
    case WK_BINARY_MINIMUM: return isnan(a) || a < b ? a : b;
    case WK_BINARY_REMAINDER: return wk_ref_remainder(a, b);
    case WK_BINARY_FMOD: return fmod(a, b);
    case WK_BINARY_FLOOR_DIVIDE: return wk_ref_floor_divide(a, b);
    case WK_BINARY_ATAN2: return atan2(a, b);
    case WK_BINARY_HYPOT: return hypot(a, b);
    case WK_BINARY_COPYSIGN: return copysign(a, b);
    case WK_BINARY_LOGADDEXP: return logaddexp(a, b);
    default: return (double)NAN; /* accepts_binary lets no other through */
    }
}

/* Remainders: by -1 there is none, and the machine's division would overflow. */
static int64_t rest_of(int64_t a, int64_t b) { return b == 0 || b == -1 ? 0 : a % b; }

static int64_t quotient_of(int64_t a, int64_t b) {
    if (b == 0) return a;
    return b == -1 ? (int64_t)(0 - (uint64_t)a) : a / b;
}

/* Whether division that rounds down differs from one that truncates. */
static bool rounds_down(int64_t rest, int64_t b) { return rest != 0 && (rest < 0) != (b < 0); }

static int64_t shifted(int64_t a, int64_t b, bool is_left) {
    const bool is_far = b < 0 || b > 63;
    if (is_left) return is_far ? 0 : (int64_t)((uint64_t)a << b);
    const int64_t n = is_far ? 63 : b;
    return a < 0 ? ~(~a >> n) : a >> n;
}

/* Modulo 2^64; storing keeps the low bits, so every narrower integer wraps as well. */
static int64_t of_integers(wk_binary_fn fn, int64_t a, int64_t b) {
    switch (fn) {
    case WK_BINARY_ADD: return (int64_t)((uint64_t)a + (uint64_t)b);
    case WK_BINARY_MUL: return (int64_t)((uint64_t)a * (uint64_t)b);
    case WK_BINARY_SUB: return (int64_t)((uint64_t)a - (uint64_t)b);
    case WK_BINARY_DIV: return quotient_of(a, b);
    case WK_BINARY_MAXIMUM: return a > b ? a : b;
    case WK_BINARY_MINIMUM: return a < b ? a : b;
    case WK_BINARY_REMAINDER: return rest_of(a, b) + (rounds_down(rest_of(a, b), b) ? b : 0);
    case WK_BINARY_FMOD: return rest_of(a, b);
    case WK_BINARY_FLOOR_DIVIDE: return quotient_of(a, b) - rounds_down(rest_of(a, b), b);
    case WK_BINARY_AND: return a & b;
    case WK_BINARY_OR: return a | b;
    case WK_BINARY_XOR: return a ^ b;
    case WK_BINARY_SHIFT_LEFT: return shifted(a, b, true);
    case WK_BINARY_SHIFT_RIGHT: return shifted(a, b, false);
    default: return 0; /* wk_binary_takes lets no other through */
    }
}

static void binary_row(const wk_op *op, int64_t r) {
    const wk_row y = wk_row_at(wk_dst(op, 0), r);
    const wk_row left = wk_row_at(wk_src(op, 0), r);
    const wk_row right = wk_row_at(wk_src(op, 1), r);
    const wk_binary_fn fn = op->p.binary;
    chunk a, b;
    for (int64_t i = 0; i < y.n; i += WK_REF_CHUNK) {
        const int64_t n = least(WK_REF_CHUNK, y.n - i);
        load(&left, i, n, &a);
        load(&right, i, n, &b);
        if (wk_dtype_is_float(y.dtype)) {
            for (int64_t j = 0; j < n; j++)
                a.real[j] = fn == WK_BINARY_NEXTAFTER ? next_after(y.dtype, a.real[j], b.real[j])
                                                      : of_floats(fn, a.real[j], b.real[j]);
            wk_row_store(&y, i, n, a.real);
        } else {
            for (int64_t j = 0; j < n; j++)
                a.integer[j] = of_integers(fn, a.integer[j], b.integer[j]);
            wk_row_store_integer(&y, i, n, a.integer);
        }
    }
}

static void run_binary(const wk_cpu_run *run, int phase, int64_t begin, int64_t end) {
    (void)phase;
    for (int64_t r = begin; r < end; r++) binary_row(run->op, r);
}

static bool accepts_binary(const wk_op *op) {
    const wick_dtype dtype = wk_dst(op, 0)->dtype;
    return op->p.binary < WK_BINARY_COUNT_ && wk_src(op, 0)->dtype == dtype &&
           wk_src(op, 1)->dtype == dtype && wk_binary_takes(op->p.binary, dtype);
}

const wk_cpu_kernel wk_binary_ref = {
    .base.name = "binary_ref",
    .base.code = WK_OP_BINARY,
    .base.is_reference = true,
    .base.accepts = accepts_binary,
    .n_phases = 1,
    .items = wk_ref_dst_rows,
    .run = run_binary,
};

/* --- Compare: u8 --- */

static int64_t holds(wk_compare_fn fn, bool is_less, bool is_equal, bool is_greater) {
    switch (fn) {
    case WK_COMPARE_EQ: return is_equal;
    case WK_COMPARE_NE: return !is_equal;
    case WK_COMPARE_LT: return is_less;
    case WK_COMPARE_LE: return is_less || is_equal;
    case WK_COMPARE_GT: return is_greater;
    default: return is_greater || is_equal;
    }
}

static void compare_row(const wk_op *op, int64_t r) {
    const wk_row y = wk_row_at(wk_dst(op, 0), r);
    const wk_row left = wk_row_at(wk_src(op, 0), r);
    const wk_row right = wk_row_at(wk_src(op, 1), r);
    const bool is_float = wk_dtype_is_float(left.dtype);
    chunk a, b;
    int64_t result[WK_REF_CHUNK];
    for (int64_t i = 0; i < y.n; i += WK_REF_CHUNK) {
        const int64_t n = least(WK_REF_CHUNK, y.n - i);
        load(&left, i, n, &a);
        load(&right, i, n, &b);
        for (int64_t j = 0; j < n; j++) {
            const double d = a.real[j], e = b.real[j];
            const int64_t p = a.integer[j], q = b.integer[j];
            result[j] = is_float ? holds(op->p.compare, d < e, d == e, d > e)
                                 : holds(op->p.compare, p < q, p == q, p > q);
        }
        wk_row_store_integer(&y, i, n, result);
    }
}

static void run_compare(const wk_cpu_run *run, int phase, int64_t begin, int64_t end) {
    (void)phase;
    for (int64_t r = begin; r < end; r++) compare_row(run->op, r);
}

static bool accepts_compare(const wk_op *op) {
    const wick_dtype dtype = wk_src(op, 0)->dtype;
    return op->p.compare < WK_COMPARE_COUNT_ && wk_dtype_is_scalar(dtype) &&
           wk_src(op, 1)->dtype == dtype && wk_dst(op, 0)->dtype == WICK_U8;
}

const wk_cpu_kernel wk_compare_ref = {
    .base.name = "compare_ref",
    .base.code = WK_OP_COMPARE,
    .base.is_reference = true,
    .base.accepts = accepts_compare,
    .n_phases = 1,
    .items = wk_ref_dst_rows,
    .run = run_compare,
};

/* --- Where --- */

static void run_where(const wk_cpu_run *run, int phase, int64_t begin, int64_t end) {
    (void)phase;
    const wk_op *op = run->op;
    const size_t size = (size_t)wk_dtype_get(wk_dst(op, 0)->dtype)->block_bytes;
    for (int64_t r = begin; r < end; r++) {
        const wk_row y = wk_row_at(wk_dst(op, 0), r);
        const wk_row cond = wk_row_at(wk_src(op, 0), r);
        const wk_row a = wk_row_at(wk_src(op, 1), r);
        const wk_row b = wk_row_at(wk_src(op, 2), r);
        for (int64_t i = 0; i < y.n; i++) {
            const wk_row *from = wk_row_integer_at(&cond, i) != 0 ? &a : &b;
            memmove(y.data + (size_t)(i * y.stride) * size,
                    from->data + (size_t)(i * from->stride) * size, size);
        }
    }
}

static bool accepts_where(const wk_op *op) {
    const wick_dtype dtype = wk_dst(op, 0)->dtype, cond = wk_src(op, 0)->dtype;
    return (cond == WICK_U8 || cond == WICK_BOOL || cond == WICK_I64) &&
           wk_dtype_is_scalar(dtype) && wk_src(op, 1)->dtype == dtype &&
           wk_src(op, 2)->dtype == dtype;
}

const wk_cpu_kernel wk_where_ref = {
    .base.name = "where_ref",
    .base.code = WK_OP_WHERE,
    .base.is_reference = true,
    .base.accepts = accepts_where,
    .n_phases = 1,
    .items = wk_ref_dst_rows,
    .run = run_where,
};
