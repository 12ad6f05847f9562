/* tests/op_bindings_array.h: bindings of what moves, repeats, finds and joins elements. Included by
 * op_bindings.h, whose helpers it uses. */
#ifndef OP_BINDINGS_ARRAY_H
#define OP_BINDINGS_ARRAY_H

/* Attributes that are lists of integers. */
enum { MAX_LIST = 16 };
typedef struct int_list {
    size_t n;
    int64_t at[MAX_LIST];
} int_list;

/* --- By index and in order --- */

static inline wick_tensor *run_gather(const test_case *c) {
    return wick_gather(operand(c, "x", 0), dim(c, "dim"), operand(c, "index", 1));
}
static inline wick_tensor *run_take_along_dim(const test_case *c) {
    return wick_take_along_dim(operand(c, "x", 0), dim(c, "dim"), operand(c, "index", 1));
}
static inline wick_tensor *run_index_select(const test_case *c) {
    return wick_index_select(operand(c, "x", 0), dim(c, "dim"), operand(c, "index", 1));
}
static inline wick_tensor *run_scatter(const test_case *c) {
    return wick_scatter(operand(c, "x", 0), dim(c, "dim"), operand(c, "index", 1),
                        operand(c, "src", 2), WICK_SCATTER_SET);
}
static inline wick_tensor *run_scatter_add(const test_case *c) {
    return wick_scatter_add(operand(c, "x", 0), dim(c, "dim"), operand(c, "index", 1),
                            operand(c, "src", 2));
}
/* A copy of x, its indexed elements met by those of src: PyTorch's names of the functions. */
static inline wick_tensor *run_scatter_reduce(const test_case *c) {
    const wick_scatter_fn fn = attr_is(c, "reduce", "sum")    ? WICK_SCATTER_ADD
                               : attr_is(c, "reduce", "prod") ? WICK_SCATTER_MUL
                               : attr_is(c, "reduce", "amax") ? WICK_SCATTER_MAX
                               : attr_is(c, "reduce", "amin") ? WICK_SCATTER_MIN
                                                              : (wick_scatter_fn)-1;
    return wick_scatter(operand(c, "x", 0), dim(c, "dim"), operand(c, "index", 1),
                        operand(c, "src", 2), fn);
}
static inline wick_tensor *run_index_add(const test_case *c) {
    return wick_index_add(operand(c, "x", 0), dim(c, "dim"), operand(c, "index", 1),
                          operand(c, "src", 2));
}
static inline wick_tensor *run_cumsum(const test_case *c) {
    return wick_cumsum(c->input[0], dim(c, "dim"));
}
static inline wick_tensor *run_cumprod(const test_case *c) {
    return wick_cumprod(c->input[0], dim(c, "dim"));
}
static inline wick_tensor *run_argsort(const test_case *c) {
    return wick_argsort(c->input[0], dim(c, "dim"), flag(c, "descending"));
}
static inline wick_tensor *run_sort(const test_case *c) {
    return wick_sort(c->input[0], dim(c, "dim"), flag(c, "descending"), c->more);
}

static inline wick_tensor *run_top_k(const test_case *c) {
    return wick_top_k(c->input[0], integer(c, "k"), has_attr(c, "dim") ? dim(c, "dim") : -1,
                      c->more);
}
static inline wick_tensor *run_gather_nd(const test_case *c) {
    return wick_gather_nd(operand(c, "x", 0), operand(c, "index", 1));
}
static inline wick_tensor *run_scatter_nd(const test_case *c) {
    return wick_scatter_nd(operand(c, "x", 0), operand(c, "index", 1), operand(c, "src", 2),
                           WICK_SCATTER_SET);
}

/* A number alone is a list of one. */
static inline int_list list_attr(const test_case *c, const char *name) {
    int_list list = {0};
    const wk_json *const value = wk_json_get(c->attrs, name);
    if (value == NULL) return list;
    if (value->kind != WK_JSON_ARRAY) {
        list.at[list.n++] = value->integer;
        return list;
    }
    for (const wk_json *e = value->child; e != NULL && list.n < MAX_LIST; e = e->next) {
        list.at[list.n++] = e->integer;
    }
    return list;
}

/* The first of two names that the case has. */
static inline const char *either(const test_case *c, const char *a, const char *b) {
    return has_attr(c, a) ? a : b;
}

static inline int to_dims(const int_list *list, int dims[MAX_LIST]) {
    for (size_t i = 0; i < list->n; i++) dims[i] = (int)list->at[i];
    return (int)list->n;
}

/* One number stands for both axes. */
static inline void pair_attr(const test_case *c, const char *name, int64_t fallback,
                             int64_t pair[2]) {
    const int_list list = list_attr(c, name);
    pair[0] = list.n > 0 ? list.at[0] : fallback;
    pair[1] = list.n > 1 ? list.at[1] : pair[0];
}

static inline int64_t integer_or(const test_case *c, const char *name, int64_t fallback) {
    return has_attr(c, name) ? integer(c, name) : fallback;
}

/* Several outputs, the first one returned. */
static inline wick_tensor *give_parts(const test_case *c, wick_tensor *const *parts, size_t n) {
    for (size_t i = 1; i < n && i < MAX_OUTPUTS; i++) c->more[i - 1] = parts[i];
    return n > 0 ? parts[0] : NULL;
}

/* --- Repeating and rearranging --- */

static inline wick_tensor *run_repeat(const test_case *c) {
    const int_list repeats = list_attr(c, "repeats");
    return wick_repeat(c->input[0], (int)repeats.n, repeats.at);
}
static inline wick_tensor *run_tile(const test_case *c) {
    const int_list repeats = list_attr(c, either(c, "repeats", "dims"));
    return wick_tile(c->input[0], (int)repeats.n, repeats.at);
}
static inline wick_tensor *run_repeat_interleave(const test_case *c) {
    return wick_repeat_interleave(c->input[0], integer(c, "repeats"), dim(c, "dim"));
}
static inline wick_tensor *run_roll(const test_case *c) {
    int dims[MAX_LIST];
    const int_list shifts = list_attr(c, either(c, "shift", "shifts"));
    const int_list named = list_attr(c, either(c, "dim", "dims"));
    (void)to_dims(&named, dims);
    return wick_roll(c->input[0], (int)shifts.n, shifts.at, named.n > 0 ? dims : NULL);
}
static inline wick_tensor *run_flip(const test_case *c) {
    dim_list list;
    list_dims(c, &list);
    return wick_flip(c->input[0], list.n, list.dims);
}
static inline wick_tensor *run_movedim(const test_case *c) {
    int from[MAX_LIST], to[MAX_LIST];
    const int_list source = list_attr(c, "source"), target = list_attr(c, "destination");
    (void)to_dims(&target, to);
    return wick_movedim(c->input[0], to_dims(&source, from), from, to);
}
static inline wick_tensor *run_matrix_transpose(const test_case *c) {
    return wick_matrix_transpose(c->input[0]);
}
static inline wick_tensor *run_split(const test_case *c) {
    wick_tensor *parts[MAX_LIST] = {NULL};
    const int_list sizes = list_attr(c, either(c, "sizes", "split_sizes"));
    return give_parts(c, parts, wick_split(c->input[0], sizes.n, sizes.at, dim(c, "dim"), parts));
}
static inline wick_tensor *run_unstack(const test_case *c) {
    wick_tensor *parts[64] = {NULL};
    return give_parts(c, parts, wick_unstack(c->input[0], dim(c, "dim"), parts));
}
static inline wick_tensor *run_meshgrid(const test_case *c) {
    wick_tensor *parts[MAX_INPUTS] = {NULL};
    const wick_meshgrid_indexing indexing =
        attr_is(c, "indexing", "xy") ? WICK_MESHGRID_XY : WICK_MESHGRID_IJ;
    return give_parts(c, parts, wick_meshgrid(c->input, c->n_inputs, indexing, parts));
}

/* --- Borders, parts, windows --- */

static inline wick_tensor *pad_one(const test_case *c, wick_pad_mode mode) {
    int64_t before[WICK_MAX_RANK] = {0}, after[WICK_MAX_RANK] = {0};
    const int rank = wick_tensor_shape(c->input[0]).rank;
    const int named = dim(c, "dim"), d = named < 0 ? named + rank : named;
    if (d < 0 || d >= rank) return wick_narrow(c->input[0], named, 0, 0); /* refused */
    before[d] = integer(c, "left");
    after[d] = integer(c, "right");
    return wick_pad(c->input[0], before, after, mode, 0);
}
static inline wick_tensor *run_pad_with_zeros(const test_case *c) {
    return pad_one(c, WICK_PAD_CONSTANT);
}
static inline wick_tensor *run_pad_with_same(const test_case *c) {
    return pad_one(c, WICK_PAD_REPLICATE);
}
/* pads as PyTorch lists them: before and after of the last dim, then of the one before it. */
static inline wick_tensor *run_pad(const test_case *c) {
    int64_t before[WICK_MAX_RANK] = {0}, after[WICK_MAX_RANK] = {0};
    const int rank = wick_tensor_shape(c->input[0]).rank;
    const int_list pads = list_attr(c, either(c, "pad", "pads"));
    for (size_t i = 0; i + 1 < pads.n && (int)(i / 2) < rank; i += 2) {
        before[rank - 1 - (int)(i / 2)] = pads.at[i];
        after[rank - 1 - (int)(i / 2)] = pads.at[i + 1];
    }
    wick_pad_mode mode = WICK_PAD_CONSTANT;
    if (attr_is(c, "mode", "reflect")) mode = WICK_PAD_REFLECT;
    if (attr_is(c, "mode", "replicate") || attr_is(c, "mode", "edge")) mode = WICK_PAD_REPLICATE;
    if (attr_is(c, "mode", "circular") || attr_is(c, "mode", "wrap")) mode = WICK_PAD_CIRCULAR;
    return wick_pad(c->input[0], before, after, mode, attr(c, "value"));
}
static inline wick_tensor *run_slice_assign(const test_case *c) {
    int64_t start[WICK_MAX_RANK] = {0}, stop[WICK_MAX_RANK] = {0};
    const wk_json *const ranges = wk_json_get(c->attrs, "ranges");
    int i = 0;
    for (const wk_json *e = ranges->child; e != NULL && i < WICK_MAX_RANK; e = e->next, i++) {
        start[i] = shape_of(e).extent[0];
        stop[i] = shape_of(e).extent[1];
    }
    return wick_slice_assign(operand(c, "x", 0), start, stop, operand(c, "src", 1));
}
static inline wick_tensor *run_slice_scatter(const test_case *c) {
    return wick_slice_scatter(operand(c, "x", 0), operand(c, "src", 1), dim(c, "dim"),
                              integer(c, "start"));
}
static inline wick_tensor *run_unfold(const test_case *c) {
    return wick_unfold(c->input[0], dim(c, "dim"), integer(c, "size"), integer(c, "step"));
}
static inline wick_tensor *run_im2col(const test_case *c) {
    int64_t kernel[2], padding[2], stride[2], dilation[2];
    pair_attr(c, "kernel", 1, kernel);
    pair_attr(c, "padding", 0, padding);
    pair_attr(c, "stride", 1, stride);
    pair_attr(c, "dilation", 1, dilation);
    return wick_im2col(c->input[0], kernel, padding, stride, dilation);
}
static inline wick_tensor *run_col2im(const test_case *c) {
    int64_t size[2], kernel[2], padding[2], stride[2], dilation[2];
    pair_attr(c, either(c, "size", "output_size"), 0, size);
    pair_attr(c, "kernel", 1, kernel);
    pair_attr(c, "padding", 0, padding);
    pair_attr(c, "stride", 1, stride);
    pair_attr(c, "dilation", 1, dilation);
    return wick_col2im(c->input[0], size, kernel, padding, stride, dilation);
}
static inline wick_tensor *run_pixel_shuffle(const test_case *c) {
    return wick_pixel_shuffle(c->input[0], integer(c, "factor"));
}
static inline wick_tensor *run_pixel_unshuffle(const test_case *c) {
    return wick_pixel_unshuffle(c->input[0], integer(c, "factor"));
}
static inline wick_tensor *run_channel_shuffle(const test_case *c) {
    return wick_channel_shuffle(c->input[0], integer(c, "groups"));
}
static inline wick_tensor *run_diagonal(const test_case *c) {
    return wick_diagonal(c->input[0], integer(c, "offset"), (int)integer_or(c, "dim1", 0),
                         (int)integer_or(c, "dim2", 1));
}
static inline wick_tensor *run_diag(const test_case *c) {
    return wick_diag(c->input[0], integer(c, "diagonal"));
}
static inline wick_tensor *run_dft(const test_case *c) {
    return wick_dft(c->input[0], dim(c, "dim"), integer(c, "length"), flag(c, "inverse"),
                    flag(c, "onesided"));
}
static inline wick_tensor *run_trace(const test_case *c) {
    return wick_trace(c->input[0], integer(c, "offset"));
}
static inline wick_tensor *run_diff(const test_case *c) {
    return wick_diff(c->input[0], (int)integer_or(c, "n", 1), (int)integer_or(c, "dim", -1));
}

/* --- Values --- */

static inline wick_tensor *run_masked_fill(const test_case *c) {
    return wick_masked_fill(operand(c, "x", 0), operand(c, "mask", 1), attr(c, "value"));
}
static inline wick_tensor *run_one_hot(const test_case *c) {
    const wick_dtype dtype = has_attr(c, "dtype") ? attr_dtype(c, "dtype") : WICK_I64;
    return wick_one_hot(c->input[0], integer(c, either(c, "classes", "num_classes")), dtype);
}
static inline wick_tensor *run_linspace(const test_case *c) {
    return wick_linspace(c->device, attr_dtype(c, "dtype"), attr(c, "start"), attr(c, "end"),
                         integer(c, "steps"));
}
static inline wick_tensor *run_logspace(const test_case *c) {
    return wick_logspace(c->device, attr_dtype(c, "dtype"), attr(c, "start"), attr(c, "end"),
                         integer(c, "steps"), attr_or(c, "base", 10));
}
static inline wick_tensor *run_lerp(const test_case *c) {
    return wick_lerp(c->input[0], c->input[1], operand(c, "weight", 2));
}
static inline wick_tensor *run_nan_to_num(const test_case *c) {
    return wick_nan_to_num(c->input[0], attr(c, "nan"), attr(c, "posinf"), attr(c, "neginf"));
}
static inline wick_tensor *run_full_like(const test_case *c) {
    return wick_full_like(c->input[0], attr(c, "value"));
}
static inline wick_tensor *run_zeros_like(const test_case *c) {
    return wick_zeros_like(c->input[0]);
}
static inline wick_tensor *run_ones_like(const test_case *c) { return wick_ones_like(c->input[0]); }

/* --- Products --- */

static inline wick_tensor *run_dot(const test_case *c) {
    return wick_dot(c->input[0], c->input[1]);
}
static inline wick_tensor *run_mv(const test_case *c) {
    return wick_mv(operand(c, "m", 0), operand(c, "v", 1));
}
static inline wick_tensor *run_outer(const test_case *c) {
    return wick_outer(c->input[0], c->input[1]);
}
static inline wick_tensor *run_vecdot(const test_case *c) {
    return wick_vecdot(c->input[0], c->input[1], (int)integer_or(c, "dim", -1));
}
static inline wick_tensor *run_cross(const test_case *c) {
    return wick_cross(c->input[0], c->input[1], (int)integer_or(c, "dim", -1));
}
static inline wick_tensor *run_tensordot(const test_case *c) {
    int a[MAX_LIST], b[MAX_LIST];
    const int_list dims_a = list_attr(c, "dims_a"), dims_b = list_attr(c, "dims_b");
    (void)to_dims(&dims_b, b);
    return wick_tensordot(c->input[0], c->input[1], to_dims(&dims_a, a), a, b);
}

static inline wick_tensor *run_einsum(const test_case *c) {
    const wk_json *const text = wk_json_get(c->attrs, "equation");
    char equation[64];
    if (text == NULL || text->string.size >= sizeof equation) return NULL;
    memcpy(equation, text->string.text, text->string.size);
    equation[text->string.size] = '\0';
    return wick_einsum(equation, c->input, c->n_inputs);
}
static inline wick_tensor *run_kron(const test_case *c) {
    return wick_kron(c->input[0], c->input[1]);
}
static inline wick_tensor *run_cov(const test_case *c) {
    return wick_cov(c->input[0], attr_or(c, "correction", 1));
}
static inline wick_tensor *run_corrcoef(const test_case *c) { return wick_corrcoef(c->input[0]); }

/* --- Searching --- */

static inline wick_tensor *run_searchsorted(const test_case *c) {
    return wick_searchsorted(c->input[0], c->input[1], flag(c, "right"));
}
static inline wick_tensor *run_bucketize(const test_case *c) {
    return wick_searchsorted(operand(c, "boundaries", 1), operand(c, "x", 0), flag(c, "right"));
}
static inline wick_tensor *run_nonzero(const test_case *c) { return wick_nonzero(c->input[0], -1); }
static inline wick_tensor *run_masked_select(const test_case *c) {
    return wick_masked_select(operand(c, "x", 0), operand(c, "mask", 1), -1);
}
/* Outputs: the values, then the inverse and the counts, where they are asked for. */
static inline wick_tensor *run_unique(const test_case *c) {
    wick_tensor *inverse, *counts;
    const bool has_inverse = flag(c, "return_inverse"), has_counts = flag(c, "return_counts");
    wick_tensor *const values = wick_unique(c->input[0], -1, NULL, has_inverse ? &inverse : NULL,
                                            has_counts ? &counts : NULL);
    size_t n = 0;
    if (has_inverse) c->more[n++] = inverse;
    if (has_counts) c->more[n++] = counts;
    return values;
}
static inline wick_tensor *run_isin(const test_case *c) {
    return wick_isin(c->input[0], c->input[1]);
}
static inline wick_tensor *run_take(const test_case *c) {
    return wick_take(operand(c, "x", 0), operand(c, "index", 1));
}

#define ARRAY_BINDINGS                                                                             \
    {"repeat", run_repeat}, {"tile", run_tile}, {"repeat_interleave", run_repeat_interleave},      \
        {"roll", run_roll}, {"flip", run_flip}, {"movedim", run_movedim},                          \
        {"moveaxis", run_movedim}, {"matrix_transpose", run_matrix_transpose},                     \
        {"split", run_split}, {"unstack", run_unstack}, {"unbind", run_unstack},                   \
        {"meshgrid", run_meshgrid}, {"pad_with_zeros", run_pad_with_zeros},                        \
        {"pad_with_same", run_pad_with_same}, {"pad", run_pad},                                    \
        {"slice_assign", run_slice_assign}, {"slice_scatter", run_slice_scatter},                  \
        {"unfold", run_unfold}, {"im2col", run_im2col}, {"col2im", run_col2im},                    \
        {"fold", run_col2im}, {"pixel_shuffle", run_pixel_shuffle},                                \
        {"pixel_unshuffle", run_pixel_unshuffle}, {"channel_shuffle", run_channel_shuffle},        \
        {"diagonal", run_diagonal}, {"diag", run_diag}, {"trace", run_trace}, {"dft", run_dft},    \
        {"diff", run_diff}, {"masked_fill", run_masked_fill}, {"one_hot", run_one_hot},            \
        {"linspace", run_linspace}, {"full_like", run_full_like}, {"zeros_like", run_zeros_like},  \
        {"ones_like", run_ones_like}, {"dot", run_dot}, {"mv", run_mv}, {"outer", run_outer},      \
        {"vecdot", run_vecdot}, {"cross", run_cross}, {"tensordot", run_tensordot},                \
        {"searchsorted", run_searchsorted}, {"bucketize", run_bucketize},                          \
        {"nonzero", run_nonzero}, {"argwhere", run_nonzero}, {"masked_select", run_masked_select}, \
        {"unique", run_unique}, {"isin", run_isin}, {"top_k", run_top_k}, {"topk", run_top_k},     \
        {"gather_nd", run_gather_nd}, {"scatter_nd", run_scatter_nd}, {"einsum", run_einsum},      \
        {"kron", run_kron}, {"cov", run_cov}, {"corrcoef", run_corrcoef},                          \
        {"logspace", run_logspace}, {"lerp", run_lerp}, {"nan_to_num", run_nan_to_num},            \
        {"bmm", run_matmul}, {"mm", run_matmul}, {"amax", run_max}, {"amin", run_min}, {           \
        "take", run_take                                                                           \
    }

#endif
