/* backend/op.c: the rules of op.def: the shapes and dtypes that each op takes. */
#include "backend/op.h"

#include "core/dtype.h"
#include "core/shape.h"
#include "quant/encode.h"

#include <assert.h>
#include <math.h>
#include <string.h>

static wick_status wrong(wick_error *err, wick_status status, const wk_op *op, const char *rule) {
    char text[320];
    return wk_fail(err, status, "%s: %s", wk_op_text(op, text, sizeof text), rule);
}

static bool is_index(wick_dtype dtype) {
    return dtype == WICK_U32 || dtype == WICK_I64 || dtype == WICK_U8;
}

static wick_status check_elementwise(const wk_op *op, wick_error *err) {
    for (int i = 1; i < op->n_dst + op->n_src; i++) {
        if (!wk_view_same_shape(&op->view[0], &op->view[i]))
            return wrong(err, WICK_ERR_SHAPE, op, "operands must have one shape");
        if (op->view[i].dtype != op->view[0].dtype)
            return wrong(err, WICK_ERR_DTYPE, op, "operands must have one dtype");
    }
    if (wk_dtype_is_block(op->view[0].dtype))
        return wrong(err, WICK_ERR_DTYPE, op, "block types are weights only");
    if (!wk_dtype_is_scalar(op->view[0].dtype))
        return wrong(err, WICK_ERR_DTYPE, op, "8-bit floats are for storage only");
    return WICK_OK;
}

static bool is_integer(wick_dtype dtype) {
    return wk_dtype_get(dtype)->dtype_class == WK_CLASS_INTEGER;
}

static bool is_number(wick_dtype dtype) { return wk_dtype_is_float(dtype) || is_integer(dtype); }

static wick_status check_takes(const wk_op *op, bool takes, wick_error *err) {
    return takes ? WICK_OK : wrong(err, WICK_ERR_DTYPE, op, "takes no such dtype");
}

static wick_status no_function(const wk_op *op, wick_error *err) {
    return wrong(err, WICK_ERR_VALUE, op, "there is no such function");
}

static wick_status check_unary(const wk_op *op, wick_error *err) {
    if ((unsigned)op->p.unary.fn >= WK_UNARY_COUNT_) return no_function(op, err);
    WK_TRY(check_elementwise(op, err));
    return check_takes(op, wk_unary_takes(op->p.unary.fn, wk_src(op, 0)->dtype), err);
}

static wick_status check_binary(const wk_op *op, wick_error *err) {
    if ((unsigned)op->p.binary >= WK_BINARY_COUNT_) return no_function(op, err);
    WK_TRY(check_elementwise(op, err));
    return check_takes(op, wk_binary_takes(op->p.binary, wk_src(op, 0)->dtype), err);
}

static wick_status check_floats(const wk_op *op, wick_error *err) {
    WK_TRY(check_elementwise(op, err));
    return check_takes(op, wk_dtype_is_float(wk_src(op, 0)->dtype), err);
}

static wick_status check_gated(const wk_op *op, wick_error *err) {
    if ((unsigned)op->p.gated.fn >= WK_GATED_COUNT_) return no_function(op, err);
    return check_floats(op, err);
}

static wick_status check_compare(const wk_op *op, wick_error *err) {
    if ((unsigned)op->p.compare >= WK_COMPARE_COUNT_) return no_function(op, err);
    const wk_view *const y = wk_dst(op, 0), *const a = wk_src(op, 0), *const b = wk_src(op, 1);
    if (!wk_view_same_shape(y, a) || !wk_view_same_shape(y, b))
        return wrong(err, WICK_ERR_SHAPE, op, "operands must have one shape");
    if (y->dtype != WICK_U8 || a->dtype != b->dtype || !wk_dtype_is_scalar(a->dtype))
        return wrong(err, WICK_ERR_DTYPE, op, "must be u8 of two operands of one scalar dtype");
    return WICK_OK;
}

static wick_status check_where(const wk_op *op, wick_error *err) {
    const wk_view *const y = wk_dst(op, 0), *const cond = wk_src(op, 0);
    if (cond->dtype != WICK_U8 && cond->dtype != WICK_BOOL && cond->dtype != WICK_I64)
        return wrong(err, WICK_ERR_DTYPE, op, "cond must be u8, bool or i64");
    for (int i = 0; i < op->n_src; i++) {
        if (!wk_view_same_shape(y, wk_src(op, i)))
            return wrong(err, WICK_ERR_SHAPE, op, "operands must have one shape");
        if (i > 0 && (wk_src(op, i)->dtype != y->dtype || !wk_dtype_is_scalar(y->dtype)))
            return wrong(err, WICK_ERR_DTYPE, op, "operands must have one scalar dtype");
    }
    return WICK_OK;
}

static bool is_index_of(wk_reduce_fn fn) {
    return fn == WK_REDUCE_ARGMAX || fn == WK_REDUCE_ARGMIN;
}

/* Whether the dimensions that y does not have hold an element. */
static bool reduces_something(const wk_view *x, int kept) {
    for (int i = kept; i < x->rank; i++)
        if (x->extent[i] == 0) return false;
    return true;
}

/* For ops whose indices are u32. */
static wick_status check_row_indices(const wk_op *op, const wk_view *x, wick_error *err) {
    if (x->extent[x->rank - 1] <= UINT32_MAX) return WICK_OK;
    return wrong(err, WICK_ERR_SHAPE, op, "u32 does not count the elements of a row");
}

static wick_status check_reduce(const wk_op *op, wick_error *err) {
    const wk_view *const y = wk_dst(op, 0), *const x = wk_src(op, 0);
    const wk_reduce_fn fn = op->p.reduce.fn;
    if ((unsigned)fn >= WK_REDUCE_COUNT_) return no_function(op, err);
    if (y->rank > x->rank || (is_index_of(fn) && y->rank + 1 != x->rank))
        return wrong(err, WICK_ERR_SHAPE, op, "y must be x without its last dimensions");
    for (int i = 0; i < y->rank; i++)
        if (x->extent[i] != y->extent[i])
            return wrong(err, WICK_ERR_SHAPE, op, "y must be x without its last dimensions");
    const bool allows_none =
        fn == WK_REDUCE_SUM || fn == WK_REDUCE_MEAN || fn == WK_REDUCE_VAR || fn == WK_REDUCE_PROD;
    if (!allows_none && !reduces_something(x, y->rank))
        return wrong(err, WICK_ERR_SHAPE, op, "nothing to choose from in an empty dimension");
    if (is_index_of(fn)) {
        if (y->dtype != WICK_U32 || !wk_dtype_is_scalar(x->dtype))
            return wrong(err, WICK_ERR_DTYPE, op, "y must be u32, x of a scalar type");
        return check_row_indices(op, x, err);
    }
    if (y->dtype != x->dtype) return wrong(err, WICK_ERR_DTYPE, op, "operands must have one dtype");
    const bool takes_it = is_integer(x->dtype) && wk_reduce_takes_integers(fn);
    return check_takes(op, takes_it || wk_dtype_is_float(x->dtype), err);
}

static wick_status check_copy(const wk_op *op, wick_error *err) {
    if (!wk_view_same_shape(wk_dst(op, 0), wk_src(op, 0)))
        return wrong(err, WICK_ERR_SHAPE, op, "operands must have one shape");
    if (wk_dtype_is_block(wk_dst(op, 0)->dtype))
        return wrong(err, WICK_ERR_DTYPE, op, "cannot write a block type");
    return WICK_OK;
}

static wick_status check_arange(const wk_op *op, wick_error *err) {
    if (wk_dst(op, 0)->rank != 1) return wrong(err, WICK_ERR_SHAPE, op, "y must have rank 1");
    return WICK_OK;
}

static wick_status check_random(const wk_op *op, wick_error *err) {
    const wk_view *const y = wk_dst(op, 0), *const state = wk_src(op, 0);
    wk_random_scaling scaling;
    if ((unsigned)op->p.random.fn >= WK_RANDOM_COUNT_) return no_function(op, err);
    const bool is_bits = op->p.random.fn == WK_RANDOM_BITS;
    if (is_bits ? y->dtype != WICK_U32 : !wk_dtype_is_float(y->dtype))
        return wrong(err, WICK_ERR_DTYPE, op, is_bits ? "makes u32" : "makes floats");
    if (state->rank != 1 || state->extent[0] != 4 || state->dtype != WICK_U32 ||
        !wk_view_is_dense(state))
        return wrong(err, WICK_ERR_SHAPE, op, "state must be [4] u32, dense");
    if (!is_bits && !wk_random_scale(y->dtype, &op->p, &scaling))
        return wrong(err, WICK_ERR_VALUE, op, "y's dtype has no numbers of this distribution");
    return WICK_OK;
}

static wick_status check_top_k(const wk_op *op, wick_error *err) {
    const wk_view *const values = wk_dst(op, 0), *const indices = wk_dst(op, 1),
                         *const x = wk_src(op, 0);
    const int last = x->rank - 1;
    if (x->rank < 1 || values->rank != x->rank || !wk_view_same_shape(values, indices) ||
        values->extent[last] > x->extent[last])
        return wrong(err, WICK_ERR_SHAPE, op, "must be x [.., n], values and indices [.., k <= n]");
    for (int i = 0; i < last; i++)
        if (values->extent[i] != x->extent[i])
            return wrong(err, WICK_ERR_SHAPE, op, "leading dimensions must be equal");
    WK_TRY(check_row_indices(op, x, err));
    if (indices->dtype != WICK_U32 || values->dtype != x->dtype || !wk_dtype_is_float(x->dtype))
        return wrong(err, WICK_ERR_DTYPE, op,
                     "x and values must have one float dtype, indices u32");
    return WICK_OK;
}

static wick_status check_draw(const wk_op *op, wick_error *err) {
    const wk_view *const y = wk_dst(op, 0), *const x = wk_src(op, 0), *const ids = wk_src(op, 1);
    if (y->rank != 1 || y->extent[0] != 1 || x->rank != 1 || !wk_view_same_shape(x, ids) ||
        op->p.draw.k == 0 || op->p.draw.k > x->extent[0])
        return wrong(err, WICK_ERR_SHAPE, op, "must be x and ids [n >= k], k > 0, y [1]");
    if (y->dtype != WICK_U32 || ids->dtype != WICK_U32 || x->dtype != WICK_F32)
        return wrong(err, WICK_ERR_DTYPE, op, "x must be f32, y and ids u32");
    return WICK_OK;
}

/* y and index of one shape, which x has in all dimensions but the last. */
static bool fits_rows(const wk_view *y, const wk_view *index, const wk_view *x) {
    if (x->rank < 1 || x->rank != y->rank || !wk_view_same_shape(y, index)) return false;
    return memcmp(x->extent, y->extent, sizeof x->extent[0] * (size_t)(x->rank - 1)) == 0;
}

static wick_status check_gather(const wk_op *op, wick_error *err) {
    const wk_view *const y = wk_dst(op, 0), *const x = wk_src(op, 0), *const index = wk_src(op, 1);
    if (!fits_rows(y, index, x))
        return wrong(err, WICK_ERR_SHAPE, op, "must be x [.., n], index and y [.., m]");
    if (y->dtype != x->dtype || !wk_dtype_is_scalar(x->dtype))
        return wrong(err, WICK_ERR_DTYPE, op, "operands must have one scalar dtype");
    if (is_index(index->dtype)) return WICK_OK;
    return wrong(err, WICK_ERR_DTYPE, op, "index must be u32, i64 or u8");
}

static wick_status check_scatter(const wk_op *op, wick_error *err) {
    const wk_view *const y = wk_dst(op, 0), *const src = wk_src(op, 0),
                         *const index = wk_src(op, 1);
    if ((unsigned)op->p.scatter >= WK_SCATTER_COUNT_) return no_function(op, err);
    if (!fits_rows(src, index, y))
        return wrong(err, WICK_ERR_SHAPE, op, "must be y [.., n], index and src [.., m]");
    if (!is_index(index->dtype))
        return wrong(err, WICK_ERR_DTYPE, op, "index must be u32, i64 or u8");
    if (y->dtype != src->dtype || !wk_dtype_is_scalar(y->dtype))
        return wrong(err, WICK_ERR_DTYPE, op, "operands must have one scalar dtype");
    return check_takes(op, op->p.scatter == WK_SCATTER_SET || is_number(y->dtype), err);
}

static wick_status check_cumulate(const wk_op *op, wick_error *err) {
    if ((unsigned)op->p.cumulate >= WK_CUMULATE_COUNT_) return no_function(op, err);
    WK_TRY(check_elementwise(op, err));
    if (op->view[0].rank < 1) return wrong(err, WICK_ERR_SHAPE, op, "the rank must be 1 or more");
    return check_takes(op, is_number(op->view[0].dtype), err);
}

static wick_status check_argsort(const wk_op *op, wick_error *err) {
    const wk_view *const indices = wk_dst(op, 0), *const x = wk_src(op, 0);
    if (x->rank < 1 || !wk_view_same_shape(indices, x))
        return wrong(err, WICK_ERR_SHAPE, op, "operands must have one shape of rank 1 or more");
    WK_TRY(check_row_indices(op, x, err));
    if (indices->dtype == WICK_U32 && wk_dtype_is_scalar(x->dtype)) return WICK_OK;
    return wrong(err, WICK_ERR_DTYPE, op, "indices must be u32, x of a scalar type");
}

/* x, and the vectors of its last dimension that scale or shift it. */
static wick_status check_norm(const wk_op *op, wick_error *err) {
    const wk_view *const y = wk_dst(op, 0), *const x = wk_src(op, 0);
    if (x->rank < 1 || !wk_view_same_shape(y, x))
        return wrong(err, WICK_ERR_SHAPE, op, "operands must have one shape of rank 1 or more");
    if (y->dtype != x->dtype || !wk_dtype_is_float(x->dtype))
        return wrong(err, WICK_ERR_DTYPE, op, "operands must have one float dtype");
    for (int i = 1; i < op->n_src; i++) {
        const wk_view *const w = wk_src(op, i);
        if (!w->buf) continue;
        if (w->rank != 1 || w->extent[0] != x->extent[x->rank - 1])
            return wrong(err, WICK_ERR_SHAPE, op, "weight and bias must have x's last dimension");
        if (w->dtype != x->dtype && w->dtype != WICK_F32)
            return wrong(err, WICK_ERR_DTYPE, op, "weight and bias must be of x's dtype or f32");
    }
    return WICK_OK;
}

static wick_status check_rope(const wk_op *op, wick_error *err) {
    const wk_view *const y = wk_dst(op, 0), *const x = wk_src(op, 0), *const p = wk_src(op, 1);
    if (x->rank != 4 || !wk_view_same_shape(y, x) || y->dtype != x->dtype)
        return wrong(err, WICK_ERR_SHAPE, op, "y and x must be [b, t, h, d] alike");
    if (p->rank != 2 || p->extent[0] != x->extent[0] || p->extent[1] != x->extent[1])
        return wrong(err, WICK_ERR_SHAPE, op, "positions must be [b, t]");
    if (!is_index(p->dtype)) return wrong(err, WICK_ERR_DTYPE, op, "index must be u32, i64 or u8");
    const int r = op->p.rope.rotary_dim;
    if (r < 0 || r % 2 != 0 || r > x->extent[3])
        return wrong(err, WICK_ERR_VALUE, op, "rotary_dim must be even and at most d");
    return WICK_OK;
}

static wick_status check_rope_table(const wk_op *op, wick_error *err) {
    const wk_view *const y = wk_dst(op, 0), *const x = wk_src(op, 0);
    if (x->rank != 4 || !wk_view_same_shape(y, x) || y->dtype != x->dtype)
        return wrong(err, WICK_ERR_SHAPE, op, "y and x must be [b, t, h, d] alike");
    for (int i = 1; i <= 2; i++) {
        const wk_view *const table = wk_src(op, i);
        if (table->rank != 3 || table->extent[0] != x->extent[0] ||
            table->extent[1] != x->extent[1] || table->extent[2] * 2 > x->extent[3] ||
            table->extent[2] != wk_src(op, 1)->extent[2])
            return wrong(err, WICK_ERR_SHAPE, op, "cos and sin must be [b, t, r / 2], r <= d");
        if (!wk_dtype_is_float(table->dtype))
            return wrong(err, WICK_ERR_DTYPE, op, "cos and sin must be floats");
    }
    return WICK_OK;
}

static wick_status check_matmul(const wk_op *op, wick_error *err) {
    const wk_view *const c = wk_dst(op, 0), *const a = wk_src(op, 0), *const b = wk_src(op, 1);
    const int r = c->rank;
    if (r < 2 || a->rank != r || b->rank != r || a->extent[r - 1] != b->extent[r - 2] ||
        c->extent[r - 2] != a->extent[r - 2] || c->extent[r - 1] != b->extent[r - 1])
        return wrong(err, WICK_ERR_SHAPE, op, "must be [.., m, k] x [.., k, n] = [.., m, n]");
    for (int i = 0; i < r - 2; i++)
        if (a->extent[i] != c->extent[i] || b->extent[i] != c->extent[i])
            return wrong(err, WICK_ERR_SHAPE, op, "leading dimensions must be equal");
    if (a->dtype != b->dtype || a->dtype != c->dtype || !wk_dtype_is_float(a->dtype))
        return wrong(err, WICK_ERR_DTYPE, op, "operands must have one float dtype");
    return WICK_OK;
}

/* Every kernel decodes rows of blocks as they lie in a file. */
static wick_status check_weight(const wk_op *op, const wk_view *w, wick_error *err) {
    if (!wk_dtype_is_block(w->dtype) || w->layout != WK_LAYOUT_RAW || wk_view_is_dense(w))
        return WICK_OK;
    return wrong(err, WICK_ERR_UNSUPPORTED, op, "a weight of a block type must be dense");
}

/* What both products with weights ask for. */
static wick_status check_product(const wk_op *op, wick_error *err) {
    const wk_view *const y = wk_dst(op, 0), *const x = wk_src(op, 0), *const w = wk_src(op, 1);
    if (x->dtype != y->dtype || !wk_dtype_is_float(x->dtype))
        return wrong(err, WICK_ERR_DTYPE, op, "operands must have one float dtype");
    if (!wk_dtype_is_float(w->dtype) && !wk_dtype_is_block(w->dtype))
        return wrong(err, WICK_ERR_DTYPE, op, "weight must be of a float or block type");
    return check_weight(op, w, err);
}

static wick_status check_linear_experts(const wk_op *op, wick_error *err) {
    const wk_view *const y = wk_dst(op, 0), *const x = wk_src(op, 0), *const w = wk_src(op, 1),
                         *const bias = wk_src(op, 2), *const ids = wk_src(op, 3);
    if (y->rank != 3 || x->rank != 3 || w->rank != 3 || ids->rank != 2 ||
        y->extent[0] != x->extent[0] || y->extent[1] != x->extent[1] ||
        ids->extent[0] != x->extent[0] || ids->extent[1] != x->extent[1] ||
        x->extent[2] != w->extent[2] || y->extent[2] != w->extent[1])
        return wrong(err, WICK_ERR_SHAPE, op,
                     "must be x [m, u, k], weight [experts, n, k], ids [m, u], y [m, u, n]");
    if (bias->buf &&
        (bias->rank != 2 || bias->extent[0] != w->extent[0] || bias->extent[1] != w->extent[1]))
        return wrong(err, WICK_ERR_SHAPE, op, "bias must be [experts, n]");
    if (ids->dtype != WICK_U32) return wrong(err, WICK_ERR_DTYPE, op, "ids must be u32");
    if (wk_view_rows(y) > INT32_MAX || w->extent[0] > INT32_MAX)
        return wrong(err, WICK_ERR_SHAPE, op, "32 bits do not count the rows");
    return check_product(op, err);
}

static wick_status check_linear(const wk_op *op, wick_error *err) {
    const wk_view *const y = wk_dst(op, 0), *const x = wk_src(op, 0), *const w = wk_src(op, 1),
                         *const bias = wk_src(op, 2);
    if (y->rank != 2 || x->rank != 2 || w->rank != 2 || y->extent[0] != x->extent[0] ||
        x->extent[1] != w->extent[1] || y->extent[1] != w->extent[0])
        return wrong(err, WICK_ERR_SHAPE, op, "must be x [m, k], weight [n, k], y [m, n]");
    if (bias->buf && (bias->rank != 1 || bias->extent[0] != w->extent[0]))
        return wrong(err, WICK_ERR_SHAPE, op, "bias must be [n]");
    return check_product(op, err);
}

static wick_status check_embedding(const wk_op *op, wick_error *err) {
    const wk_view *const y = wk_dst(op, 0), *const w = wk_src(op, 0), *const ids = wk_src(op, 1);
    if (y->rank != 2 || w->rank != 2 || ids->rank != 1 || y->extent[0] != ids->extent[0] ||
        y->extent[1] != w->extent[1])
        return wrong(err, WICK_ERR_SHAPE, op, "must be weight [n, k], ids [m], y [m, k]");
    if (!is_index(ids->dtype))
        return wrong(err, WICK_ERR_DTYPE, op, "index must be u32, i64 or u8");
    return check_weight(op, w, err);
}

/* Optional [b, h, t, s] operand. */
static bool fits_scores(const wk_view *v, const wk_view *q, const wk_view *k) {
    return !v->buf ||
           (v->rank == 4 && v->extent[0] == q->extent[0] && v->extent[1] == q->extent[1] &&
            v->extent[2] == q->extent[2] && v->extent[3] == k->extent[2]);
}

static bool fits_heads(const wk_view *v, int64_t heads) {
    return !v->buf || (v->rank == 1 && v->extent[0] == heads);
}

static wick_status check_attention(const wk_op *op, wick_error *err) {
    const wk_view *const y = wk_dst(op, 0), *const q = wk_src(op, 0), *const k = wk_src(op, 1),
                         *const v = wk_src(op, 2);
    if (y->rank != 4 || q->rank != 4 || k->rank != 4 || v->rank != 4)
        return wrong(err, WICK_ERR_SHAPE, op, "q, k, v and y must have rank 4");
    if (q->extent[0] != k->extent[0] || k->extent[0] != v->extent[0] ||
        q->extent[3] != k->extent[3] || k->extent[1] != v->extent[1] ||
        k->extent[2] != v->extent[2] || y->extent[0] != q->extent[0] ||
        y->extent[1] != q->extent[1] || y->extent[2] != q->extent[2] ||
        y->extent[3] != v->extent[3])
        return wrong(err, WICK_ERR_SHAPE, op,
                     "must be q [b, h, t, d], k [b, g, s, d], v [b, g, s, e], y [b, h, t, e]");
    if (k->extent[1] == 0 ? q->extent[1] != 0 : q->extent[1] % k->extent[1] != 0)
        return wrong(err, WICK_ERR_SHAPE, op, "query heads must be a multiple of key heads");
    if (!fits_scores(wk_src(op, 3), q, k) || !fits_scores(wk_src(op, 4), q, k) ||
        !fits_heads(wk_src(op, 5), q->extent[1]) || !fits_heads(wk_src(op, 6), q->extent[1]))
        return wrong(err, WICK_ERR_SHAPE, op,
                     "mask and bias must be [b, h, t, s], sinks and slopes [h]");
    if (q->dtype != k->dtype || k->dtype != v->dtype || y->dtype != q->dtype ||
        !wk_dtype_is_float(q->dtype))
        return wrong(err, WICK_ERR_DTYPE, op, "operands must have one float dtype");
    if (wk_src(op, 3)->buf && wk_src(op, 3)->dtype != WICK_U8 && wk_src(op, 3)->dtype != WICK_BOOL)
        return wrong(err, WICK_ERR_DTYPE, op, "mask must be u8 or bool");
    return WICK_OK;
}

/* Whether every section of the descriptor lies inside it. */
static bool has_sections(const wk_batch_layout *b) {
    const uint64_t section[][2] = {
        {b->ids, b->n_rows},         {b->positions, b->n_rows},
        {b->sequences, b->n_rows},   {b->slots, b->n_rows},
        {b->outputs, b->n_outputs},  {b->lengths, b->n_sequences},
        {b->states, b->n_sequences}, {b->tables, (uint64_t)b->n_sequences * b->n_blocks},
    };
    for (size_t i = 0; i < WK_COUNT(section); i++)
        if (section[i][0] > b->n_words || section[i][1] > b->n_words - section[i][0]) return false;
    return true;
}

static wick_status check_batch(const wk_op *op, const wk_view *batch, const wk_batch_layout *layout,
                               wick_error *err) {
    if (batch->rank == 1 && batch->extent[0] == (int64_t)layout->n_words &&
        batch->dtype == WICK_U32 && wk_view_is_dense(batch) && has_sections(layout))
        return WICK_OK;
    return wrong(err, WICK_ERR_SHAPE, op, "batch must be [n_words] u32 with all its sections");
}

static bool is_cache_dtype(wick_dtype dtype) {
    return dtype == WICK_F32 || dtype == WICK_F16 || wk_can_encode_quickly(dtype);
}

/* Caches [blocks, g, block_size, d], and the descriptor. */
static wick_status check_cache(const wk_op *op, const wk_view *k, const wk_view *v,
                               const wk_view *batch, wick_error *err) {
    const wk_batch_layout *const layout = &op->p.cached.batch;
    if (k->rank != 4 || v->rank != 4 || k->extent[0] != v->extent[0] ||
        k->extent[1] != v->extent[1] || k->extent[2] != v->extent[2] ||
        k->extent[2] != (int64_t)layout->block_size)
        return wrong(err, WICK_ERR_SHAPE, op, "caches must be [blocks, g, block_size, d]");
    if (k->dtype != v->dtype || !is_cache_dtype(k->dtype))
        return wrong(err, WICK_ERR_DTYPE, op, "caches must be f32, f16, q8_0 or q4_0");
    return check_batch(op, batch, layout, err);
}

static wick_status check_attention_cached(const wk_op *op, wick_error *err) {
    const wk_view *const y = wk_dst(op, 0), *const q = wk_src(op, 0), *const k = wk_src(op, 1),
                         *const v = wk_src(op, 2);
    WK_TRY(check_cache(op, k, v, wk_src(op, 3), err));
    if (q->rank != 3 || y->rank != 3 || q->extent[0] != (int64_t)op->p.cached.batch.n_rows ||
        y->extent[0] != q->extent[0] || y->extent[1] != q->extent[1] ||
        q->extent[2] != k->extent[3] || y->extent[2] != v->extent[3])
        return wrong(err, WICK_ERR_SHAPE, op, "must be q [rows, h, d], y [rows, h, e]");
    if (k->extent[1] == 0 || q->extent[1] % k->extent[1] != 0)
        return wrong(err, WICK_ERR_SHAPE, op, "query heads must be a multiple of key heads");
    if (!fits_heads(wk_src(op, 4), q->extent[1]) || !fits_heads(wk_src(op, 5), q->extent[1]))
        return wrong(err, WICK_ERR_SHAPE, op, "sinks and slopes must be [h]");
    if (q->dtype != WICK_F32 || y->dtype != WICK_F32)
        return wrong(err, WICK_ERR_DTYPE, op, "takes f32");
    return WICK_OK;
}

static wick_status check_kv_append(const wk_op *op, wick_error *err) {
    WK_TRY(check_cache(op, wk_dst(op, 0), wk_dst(op, 1), wk_src(op, 2), err));
    for (int i = 0; i < 2; i++) {
        const wk_view *const cache = wk_dst(op, i), *const fresh = wk_src(op, i);
        if (fresh->rank != 3 || fresh->extent[0] != (int64_t)op->p.cached.batch.n_rows ||
            fresh->extent[1] != cache->extent[1] || fresh->extent[2] != cache->extent[3])
            return wrong(err, WICK_ERR_SHAPE, op, "k and v must be [rows, g, d]");
        if (fresh->dtype != WICK_F32) return wrong(err, WICK_ERR_DTYPE, op, "takes f32");
    }
    return WICK_OK;
}

static bool is_matrix(const wk_view *view, int64_t n_rows, int64_t n) {
    return view->rank == 2 && view->extent[0] == n_rows && view->extent[1] == n;
}

/* view [any, m, n] */
static bool are_matrices(const wk_view *view, int64_t m, int64_t n) {
    return view->rank == 3 && view->extent[1] == m && view->extent[2] == n;
}

/* All but the batch descriptor, which comes last. */
static bool is_all_f32(const wk_op *op) {
    for (int i = 0; i < op->n_dst + op->n_src - 1; i++)
        if (op->view[i].dtype != WICK_F32) return false;
    return true;
}

static wick_status check_causal_conv(const wk_op *op, wick_error *err) {
    const wk_batch_layout *const layout = &op->p.conv.batch;
    const wk_view *const x = wk_src(op, 0), *const weight = wk_src(op, 1),
                         *const bias = wk_src(op, 2);
    const wk_view *const y = wk_dst(op, 0), *const state = wk_dst(op, 1);
    const int64_t n_rows = layout->n_rows, n = x->extent[1], k = weight->extent[1];
    WK_TRY(check_batch(op, wk_src(op, 3), layout, err));
    if (!is_matrix(x, n_rows, n) || !is_matrix(y, n_rows, n) || !is_matrix(weight, n, k) || k < 2 ||
        !are_matrices(state, k - 1, n) || !fits_heads(bias, n))
        return wrong(err, WICK_ERR_SHAPE, op,
                     "must be x and y [rows, c], weight [c, k], bias [c], state [slots, k - 1, c]");
    if (!is_all_f32(op)) return wrong(err, WICK_ERR_DTYPE, op, "takes f32");
    return WICK_OK;
}

static wick_status check_scan(const wk_op *op, wick_error *err) {
    const wk_batch_layout *const layout = &op->p.scan.batch;
    if ((unsigned)op->p.scan.fn >= WK_SCAN_COUNT_) return no_function(op, err);
    const wk_view *const x = wk_src(op, 0), *const gate = wk_src(op, 2), *const bc = wk_src(op, 3);
    const wk_view *const state = wk_dst(op, 1);
    WK_TRY(check_batch(op, wk_src(op, 4), layout, err));
    if (x->rank != 3 || x->extent[0] != (int64_t)layout->n_rows ||
        !wk_view_same_shape(x, wk_dst(op, 0)) || !wk_view_same_shape(x, wk_src(op, 1)))
        return wrong(err, WICK_ERR_SHAPE, op, "x, y and step must be [rows, h, p]");
    const int64_t n_heads = x->extent[1], p = x->extent[2], n = bc->extent[3];
    if (bc->rank != 4 || bc->extent[0] != x->extent[0] || bc->extent[1] != 2 || bc->extent[2] < 1 ||
        n_heads % bc->extent[2] != 0 || state->rank != 4 || state->extent[1] != n_heads ||
        state->extent[2] != n || state->extent[3] != p)
        return wrong(err, WICK_ERR_SHAPE, op,
                     "must be bc [rows, 2, g, n] and state [slots, h, n, p], h a multiple of g");
    const bool is_selective = op->p.scan.fn == WK_SCAN_SELECTIVE;
    if (is_selective ? !are_matrices(gate, p, n) || gate->extent[0] != n_heads
                     : !wk_view_same_shape(gate, x))
        return wrong(err, WICK_ERR_SHAPE, op,
                     "gate must be [h, p, n], or [rows, h, p] of the delta rule");
    if (!is_all_f32(op)) return wrong(err, WICK_ERR_DTYPE, op, "takes f32");
    return WICK_OK;
}

/* Kernels lay x out with its padding, and lines in whole strides: as many elements as an operand
 * may have, so that they need not look out for overflows. */
static bool can_lay_out(const wk_window_shape *w, const wk_view *x) {
    double n = (double)x->extent[0] * (double)x->extent[1];
    for (int d = 0; d < WK_WINDOW_DIMS; d++)
        n *= (double)(w->before[d] + x->extent[2 + d] + w->after[d]) +
             (d == WK_WINDOW_DIMS - 1 ? (double)w->stride[d] : 0);
    return n <= (double)WK_MOST_ELEMENTS;
}

/* y [.., od, oh, ow] are windows of x [.., d, h, w], which is small enough with its padding. */
static bool has_windows(const wk_window_shape *w, const wk_view *y, const wk_view *x) {
    const int64_t most = INT32_MAX, widest = INT64_MAX / 4; /* so that no sum overflows */
    if (x->rank != WK_WINDOW_RANK || y->rank != WK_WINDOW_RANK) return false;
    for (int d = 0; d < WK_WINDOW_DIMS; d++) {
        if (w->kernel[d] < 1 || w->stride[d] < 1 || w->dilation[d] < 1 || w->kernel[d] > most ||
            w->stride[d] > most || w->dilation[d] > most || w->before[d] < 0 || w->after[d] < 0 ||
            w->before[d] > widest || w->after[d] > widest)
            return false;
        const int64_t padded = x->extent[2 + d] + w->before[d] + w->after[d];
        const int64_t room = padded - (w->dilation[d] * (w->kernel[d] - 1) + 1);
        if (room < 0 || y->extent[2 + d] != room / w->stride[d] + 1) return false;
    }
    return can_lay_out(w, x);
}

static wick_status check_pool(const wk_op *op, wick_error *err) {
    const wk_view *const y = wk_dst(op, 0), *const x = wk_src(op, 0);
    if ((unsigned)op->p.pool.fn >= WK_WINDOW_COUNT_) return no_function(op, err);
    if (!has_windows(&op->p.pool.windows, y, x) || y->extent[0] != x->extent[0] ||
        y->extent[1] != x->extent[1])
        return wrong(err, WICK_ERR_SHAPE, op, "y must be the windows of x [n, c, d, h, w]");
    if (y->dtype != x->dtype) return wrong(err, WICK_ERR_DTYPE, op, "operands must have one dtype");
    const bool takes_it =
        op->p.pool.fn == WK_WINDOW_MAX ? is_number(x->dtype) : wk_dtype_is_float(x->dtype);
    return check_takes(op, takes_it, err);
}

static wick_status check_convolution(const wk_op *op, wick_error *err) {
    const wk_view *const y = wk_dst(op, 0), *const x = wk_src(op, 0);
    const wk_view *const weight = wk_src(op, 1), *const bias = wk_src(op, 2);
    const int64_t m = y->extent[1], c = weight->extent[1];
    const bool has_groups = weight->rank == WK_WINDOW_RANK && c > 0 && x->extent[1] % c == 0 &&
                            x->extent[1] > 0 && m % (x->extent[1] / c) == 0;
    bool fits = has_windows(&op->p.windows, y, x) && has_groups && weight->extent[0] == m &&
                y->extent[0] == x->extent[0];
    for (int d = 0; fits && d < WK_WINDOW_DIMS; d++)
        fits = weight->extent[2 + d] == op->p.windows.kernel[d];
    if (!fits || (bias->buf && (bias->rank != 1 || bias->extent[0] != m)))
        return wrong(err, WICK_ERR_SHAPE, op, "y must be the windows of x [n, c, d, h, w]");
    if (x->dtype != y->dtype || weight->dtype != y->dtype || (bias->buf && bias->dtype != y->dtype))
        return wrong(err, WICK_ERR_DTYPE, op, "operands must have one dtype");
    return check_takes(op, wk_dtype_is_float(x->dtype), err);
}

/* As a kernel of the user's is bound: bytes from somewhere on. */
static wick_status check_custom(const wk_op *op, wick_error *err) {
    for (int i = 0; i < op->n_dst + op->n_src; i++)
        if (!wk_view_is_dense(&op->view[i]) || wk_view_count(&op->view[i]) == 0)
            return wrong(err, WICK_ERR_SHAPE, op, "tensors must be dense and not empty");
    return WICK_OK;
}

/* --- Functions --- */

bool wk_unary_is_of_f32(const wk_op *op) {
    const float a = (float)op->p.unary.a;
    return op->p.unary.fn != WK_UNARY_POW || (double)a == op->p.unary.a || floorf(a) != a;
}

bool wk_unary_takes(wk_unary_fn fn, wick_dtype dtype) {
    if (!is_integer(dtype)) return wk_dtype_is_float(dtype) && fn != WK_UNARY_NOT;
    switch (fn) {
    case WK_UNARY_NOT:
    case WK_UNARY_ABS:
    case WK_UNARY_NEG:
    case WK_UNARY_SQR:
    case WK_UNARY_SIGN:
    case WK_UNARY_RELU:
    case WK_UNARY_AFFINE:
    case WK_UNARY_CLAMP: return true;
    default: return false;
    }
}

bool wk_binary_takes(wk_binary_fn fn, wick_dtype dtype) {
    if (!is_integer(dtype)) return wk_dtype_is_float(dtype) && fn < WK_BINARY_AND;
    return fn != WK_BINARY_POW && (fn < WK_BINARY_ATAN2 || fn >= WK_BINARY_AND);
}

bool wk_reduce_takes_integers(wk_reduce_fn fn) {
    return fn != WK_REDUCE_MEAN && fn != WK_REDUCE_VAR;
}

/* --- By opcode --- */

wick_status wk_op_check_rule(const wk_op *op, wick_error *err) {
    static wick_status (*const rules[])(const wk_op *, wick_error *) = {
#define WK_OP(op_code, text, rule, ...) [WK_OP_##op_code] = rule,
#include "backend/op.def"
#undef WK_OP
        [WK_OP_CUSTOM] = check_custom,
    };
    assert((size_t)op->code < WK_COUNT(rules));
    return rules[op->code] != NULL ? rules[op->code](op, err) : WICK_OK;
}
