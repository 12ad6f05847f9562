/* backend/webgpu/segment.c: ops cut into pieces. An operand that is larger than a block lies in
 * several, of which a kernel can be given one: the op is cut along dimensions that its elements are
 * independent in, until each operand of each piece lies in one block. In the same way an op that
 * would hold the GPU for too long becomes several. */
#include "backend/webgpu/segment.h"

#include "backend/webgpu/cache.h"
#include "backend/webgpu/choice.h"
#include "backend/webgpu/encoder.h"
#include "backend/webgpu/memory.h"
#include "backend/webgpu/pace.h"
#include "backend/webgpu/profile.h"
#include "backend/webgpu/recorder.h"
#include "backend/webgpu/submit.h"
#include "backend/webgpu/webgpu_state.h"
#include "core/dtype.h"

#include <assert.h>

/* Those of an op that the kernel can serve. */
static void list_cuts(const wk_op *op, const wk_webgpu_kernel *kernel, wk_cuts *list) {
    wk_op_cuts(op, list);
    int n = 0;
    for (int k = 0; k < list->n; k++)
        if (kernel->takes_rows || !list->of[k].is_of_table) list->of[n++] = list->of[k];
    list->n = n;
}

/* --- Pieces --- */

/* Elements of a weight in panels, along its first dimension, that lie together: the rows of a
 * panel; each of several matrices has whole panels. */
static int64_t rows_of_panels(const wk_view *weight) {
    assert(weight->rank == 2 || weight->rank == 3);
    return weight->rank == 2 ? WK_PANEL_ROWS : 1;
}

/* Their bytes. */
static uint64_t bytes_of_panels(const wk_view *weight) {
    const int64_t n = weight->rank == 2 ? 1 : weight->extent[1] / WK_PANEL_ROWS;
    return (uint64_t)(n *
                      wk_panel_bytes((wk_layout)weight->layout, weight->extent[weight->rank - 1]));
}

/* How many elements along a cut belong together. */
static int64_t unit_of(const wk_op *op, const wk_cut *c) {
    for (int i = 0; i < op->n_dst + op->n_src; i++)
        if (c->dim[i] != WK_UNCUT && op->view[i].layout != WK_LAYOUT_RAW)
            return rows_of_panels(&op->view[i]);
    return 1;
}

static int64_t extent_of(const wk_op *op, const wk_cut *c) {
    for (int i = 0; i < op->n_dst + op->n_src; i++)
        if (c->dim[i] != WK_UNCUT && op->view[i].buf) return op->view[i].extent[c->dim[i]];
    return 0;
}

static bool can_cut(const wk_op *op, const wk_cut *c) { return extent_of(op, c) > unit_of(op, c); }

/* Bytes from one element along dimension d to the next; of a panel's rows: on the average. */
static uint64_t step_of(const wk_view *view, int d) {
    if (view->layout != WK_LAYOUT_RAW)
        return bytes_of_panels(view) / (uint64_t)rows_of_panels(view);
    const wk_dtype_info *const info = wk_dtype_get(view->dtype);
    return (uint64_t)view->stride[d] * (uint64_t)info->block_bytes / (uint64_t)info->block_elements;
}

/* Elements [from, from + n) along dimension d. */
static wk_view piece_of(const wk_view *view, int d, int64_t from, int64_t n) {
    assert(d >= 0 && d < view->rank && n > 0 && from >= 0 && n <= view->extent[d] - from);
    assert(view->layout == WK_LAYOUT_RAW || from % rows_of_panels(view) == 0);
    wk_view piece = *view;
    piece.extent[d] = n;
    piece.offset += view->layout == WK_LAYOUT_RAW
                        ? (uint64_t)from * step_of(view, d)
                        : (uint64_t)(from / rows_of_panels(view)) * bytes_of_panels(view);
    return piece;
}

static bool is_in_one_block(const wk_view *view) {
    if (((const wk_webgpu_buffer *)(const void *)view->buf)->n_pieces == 1) return true;
    uint64_t begin, end, at;
    wk_view_range(view, &begin, &end);
    return begin == end || wk_webgpu_locate(view->buf, begin, end - begin, &at);
}

/* The first operand that lies in several blocks; -1: none. */
static int find_torn(const wk_op *op) {
    for (int i = 0; i < op->n_dst + op->n_src; i++)
        if (op->view[i].buf && !is_in_one_block(&op->view[i])) return i;
    return -1;
}

/* The largest number of units from `from` on that lie in one block, at least one. */
static int64_t most_in_block(const wk_view *view, int d, int64_t from, int64_t unit) {
    assert(unit > 0 && from < view->extent[d]);
    int64_t least = 1, most = (view->extent[d] - from + unit - 1) / unit;
    while (least < most) {
        const int64_t middle = least + (most - least + 1) / 2, rest = view->extent[d] - from;
        const int64_t n = middle * unit < rest ? middle * unit : rest;
        const wk_view piece = piece_of(view, d, from, n);
        if (is_in_one_block(&piece))
            least = middle;
        else
            most = middle - 1;
    }
    return least * unit;
}

/* The cut along which operand i has its largest steps. */
static const wk_cut *best_cut(const wk_op *op, const wk_cuts *list, int i) {
    const wk_cut *best = NULL;
    uint64_t largest = 0;
    for (int k = 0; k < list->n; k++) {
        const wk_cut *const c = &list->of[k];
        if (c->dim[i] == WK_UNCUT || !can_cut(op, c)) continue;
        const uint64_t step = step_of(&op->view[i], c->dim[i]);
        if (step <= largest) continue;
        largest = step;
        best = c;
    }
    return best;
}

/* The cut with the most elements that shares out what is written, or the batch. */
static const wk_cut *longest_cut(const wk_op *op, const wk_cuts *list) {
    const wk_cut *best = NULL;
    for (int k = 0; k < list->n; k++)
        if ((list->of[k].dim[0] != WK_UNCUT || list->of[k].has_rows) && can_cut(op, &list->of[k]) &&
            (!best || extent_of(op, &list->of[k]) > extent_of(op, best)))
            best = &list->of[k];
    return best;
}

/* --- Encoding --- */

typedef struct work {
    wk_backend_device *dev;
    wk_recorder *recorder;
    const wk_webgpu_kernel *kernel;
    uint32_t first_row, n_rows; /* see wk_encoder */
    wick_error *err;
} work;

static wk_view fault_slot(const wk_backend_device *dev, uint32_t slot) {
    wk_view view = dev->fault;
    view.offset += slot * sizeof(uint32_t);
    view.extent[0] = 1;
    return view;
}

static wick_status encode_one(const work *w, const wk_op *op, const wk_cost *cost,
                              double estimate) {
    wk_backend_device *const dev = w->dev;
    const wk_webgpu_kernel *kernel = w->kernel;
    const bool is_joint = wk_opcode_ops(kernel->base.code) > 1;
    if (!is_joint && !wk_kernel_takes(&kernel->base, op)) /* it took the whole op, not this piece */
        kernel = wk_choice_find(dev, op);
    if (!kernel)
        return wk_fail(w->err, WICK_ERR_UNSUPPORTED, "%s has no kernel for a piece of its operands",
                       wk_op_get_info(op->code)->name);
    wk_encoder e = {.dev = dev,
                    .recorder = w->recorder,
                    .kernel = kernel,
                    .code = op->code,
                    .fault = fault_slot(w->dev, op->fault_slot),
                    .tuning = wk_choice_tuning(dev, kernel, op),
                    .first_row = w->first_row,
                    .n_rows = w->n_rows,
                    .err = w->err};
    const bool is_open = w->recorder == &dev->recorder;
    /* Between the pieces of an op that cannot be waited for, a submit becomes longer instead. */
    if (is_open && wk_pace_is_full(dev, estimate) && wk_cache_wait(dev, dev->recorder.n_pipelines))
        WK_TRY(wk_webgpu_flush(dev, w->err));
    const uint64_t recording = dev->recording;
    const size_t n_before = w->recorder->n_commands;
    const uint32_t n_timed = dev->profile.n_timed;
    const wick_status status = wk_encoder_end(&e, kernel->encode(&e, op));
    if (status != WICK_OK) {
        /* Blocks that its commands name may be given back at once. */
        if (dev->recording == recording) {
            w->recorder->n_commands = n_before;
            dev->profile.n_timed = n_timed;
        }
        return status;
    }
    if (!is_open) return wk_recorder_mark(dev, w->recorder, estimate, w->err);
    wk_profile_op(dev, kernel, cost);
    wk_pace_add(dev, estimate);
    return WICK_OK;
}

static wick_status encode_pieces(const work *w, const wk_op *op);

/* Rows [from, from + n) of the batch; its sequences are all there. */
static void narrow_batch(wk_batch_layout *batch, int64_t from, int64_t n) {
    assert(from >= 0 && n > 0 && from + n <= batch->n_rows);
    uint32_t *const of_rows[] = {&batch->ids, &batch->positions, &batch->sequences, &batch->slots};
    for (size_t i = 0; i < WK_COUNT(of_rows); i++) *of_rows[i] += (uint32_t)from;
    batch->n_rows = (uint32_t)n;
}

/* The op on elements [from, from + n) along the cut. */
static wick_status encode_piece(const work *w, const wk_op *op, const wk_cut *c, int64_t from,
                                int64_t n) {
    wk_op piece = *op;
    work of = *w;
    for (int i = 0; i < op->n_dst + op->n_src; i++)
        if (c->dim[i] != WK_UNCUT && op->view[i].buf)
            piece.view[i] = piece_of(&op->view[i], c->dim[i], from, n);
    if (c->is_of_table) {
        if (w->n_rows == 0) of.n_rows = (uint32_t)op->view[wk_op_table(op->code)].extent[0];
        of.first_row += (uint32_t)from;
    }
    if (c->has_rows) narrow_batch(&piece.p.batch, from, n);
    if (op->code == WK_OP_RANDOM)
        piece.p.random.first += (uint64_t)(from * (wk_view_count(&piece.view[0]) / n));
    return encode_pieces(&of, &piece);
}

/* --- Operands in several blocks --- */

/* A dense copy of the operand, where one can be made and fits a block: its view, without a buffer,
 * and its bytes; 0: none can be made. A copy is made in pieces itself, not of a copy. */
static bool can_gather(const work *w, const wk_op *op, int i, wk_view *copy, uint64_t *bytes) {
    const wk_view *const view = &op->view[i];
    const wick_shape shape = wick_shape_of(view->rank, view->extent);
    *bytes = 0;
    return op->code != WK_OP_COPY && i >= op->n_dst && view->layout == WK_LAYOUT_RAW &&
           !wk_dtype_is_block(view->dtype) && wk_view_dense(view->dtype, &shape, copy, bytes) &&
           *bytes <= w->dev->block_bytes;
}

/* Of an op that was given: a plan's recorder keeps what its commands name. */
static wick_status end_temp(const work *w, wk_buffer *temp, wick_status status) {
    const bool is_held = status == WICK_OK && w->recorder != &w->dev->recorder;
    if (is_held) status = wk_recorder_hold(w->dev, w->recorder, temp, w->err);
    if (!is_held || status != WICK_OK) wk_webgpu_free(w->dev, temp);
    return status;
}

/* The op on a copy of operand i. */
static wick_status encode_gathered(const work *w, const wk_op *op, int i, const wk_view *to,
                                   uint64_t bytes) {
    wk_backend_device *const dev = w->dev;
    wk_op copy = {.code = WK_OP_COPY, .n_dst = 1, .n_src = 1, .view = {*to, op->view[i]}};
    wk_op gathered = *op;
    WK_TRY(wk_webgpu_temp(dev, bytes, &copy.view[0].buf, w->err));
    gathered.view[i] = copy.view[0];
    work of = *w;
    of.kernel = wk_choice_find(dev, &copy);
    wick_status status = of.kernel
                             ? encode_pieces(&of, &copy)
                             : wk_fail(w->err, WICK_ERR_UNSUPPORTED,
                                       "there is no kernel to copy %s", wick_dtype_name(to->dtype));
    if (status == WICK_OK) status = encode_pieces(w, &gathered);
    return end_temp(w, copy.view[0].buf, status);
}

/* --- Sums and extremes of elements in several blocks --- */

/* Whether x, in several blocks, comes to one number that follows from those of its parts. */
static bool can_share_out(const wk_op *op) {
    const wk_reduce_fn fn = op->p.reduce.fn;
    return op->code == WK_OP_REDUCE && wk_view_count(wk_dst(op, 0)) == 1 &&
           (fn == WK_REDUCE_SUM || fn == WK_REDUCE_MEAN || fn == WK_REDUCE_MAX ||
            fn == WK_REDUCE_MIN);
}

/* Of the numbers of the parts: sums are not to be rounded to fewer bits than the kernel adds in. */
static wick_dtype dtype_of_parts(const wk_op *op) {
    const wick_dtype dtype = wk_src(op, 0)->dtype;
    if (op->p.reduce.fn == WK_REDUCE_MAX || op->p.reduce.fn == WK_REDUCE_MIN) return dtype;
    if (wk_dtype_is_float(dtype)) return WICK_F32;
    return dtype == WICK_U32 || dtype == WICK_U8 ? WICK_U32 : WICK_I32;
}

static int longest_step(const wk_view *x) {
    int best = WK_UNCUT;
    for (int d = 0; d < x->rank; d++)
        if (x->extent[d] > 1 && (best == WK_UNCUT || step_of(x, d) > step_of(x, best))) best = d;
    return best;
}

/* Elements along d from `from` on whose bytes lie in one block; of elements that do not, one. */
static int64_t part_in_block(const wk_view *x, int d, int64_t from) {
    const wk_view least = piece_of(x, d, from, 1);
    return is_in_one_block(&least) ? most_in_block(x, d, from, 1) : 1;
}

/* The number of parts along d; encodes each to its number in parts where that has a buffer. */
static wick_status encode_parts(const work *w, const wk_op *op, int d, const wk_view *parts,
                                int64_t *n_parts) {
    const wk_view *const x = wk_src(op, 0);
    wk_op part = *op;
    if (op->p.reduce.fn == WK_REDUCE_MEAN) part.p.reduce.fn = WK_REDUCE_SUM;
    *n_parts = 0;
    for (int64_t from = 0, n; from < x->extent[d]; from += n) {
        n = part_in_block(x, d, from);
        part.view[0].buf = parts->buf;
        part.view[0].dtype = parts->dtype;
        part.view[0].offset =
            (uint64_t)*n_parts * (uint64_t)wk_dtype_get(parts->dtype)->block_bytes;
        part.view[1] = piece_of(x, d, from, n);
        if (parts->buf) WK_TRY(encode_pieces(w, &part));
        ++*n_parts;
    }
    return WICK_OK;
}

/* A number of each part, and then that of these. A mean divides by all elements, not by parts. */
static wick_status encode_shared_out(const work *w, const wk_op *op, int d) {
    assert(d != WK_UNCUT && wk_dst(op, 0)->rank < WICK_MAX_RANK);
    wk_view parts = {.dtype = dtype_of_parts(op)};
    int64_t n_parts;
    uint64_t bytes;
    WK_TRY(encode_parts(w, op, d, &parts, &n_parts));
    wk_op joined = *op;
    wick_shape shape = wick_shape_of(wk_dst(op, 0)->rank, wk_dst(op, 0)->extent);
    shape.extent[shape.rank++] = n_parts; /* x has a dimension more than y */
    (void)wk_view_dense(parts.dtype, &shape, &parts, &bytes);
    WK_TRY(wk_webgpu_temp(w->dev, bytes, &parts.buf, w->err));
    joined.view[1] = parts;
    if (op->p.reduce.fn == WK_REDUCE_MEAN)
        joined.p.reduce.correction = (double)(n_parts - wk_view_count(wk_src(op, 0)));
    wick_status status = encode_parts(w, op, d, &parts, &n_parts);
    if (status == WICK_OK) status = encode_pieces(w, &joined);
    return end_temp(w, parts.buf, status);
}

static wick_status refuse(const work *w, const wk_op *op, int torn) {
    const wk_op_info *const info = wk_op_get_info(op->code);
    return wk_fail(w->err, WICK_ERR_UNSUPPORTED,
                   "%s: %s is of a tensor of %llu bytes, which lies in pieces of at most %llu on "
                   "this device, and the operation cannot be cut there",
                   info->name, info->operands[torn].name,
                   (unsigned long long)op->view[torn].buf->size,
                   (unsigned long long)w->dev->block_bytes);
}

/* Cut where its blocks end; what lies across their ends however small it is, is copied. */
static wick_status encode_torn(const work *w, const wk_op *op, const wk_cuts *list, int torn) {
    const wk_view *const view = &op->view[torn];
    const wk_cut *const c = best_cut(op, list, torn);
    const int64_t extent = c ? extent_of(op, c) : 0, unit = c ? unit_of(op, c) : 1;
    const wk_view least = c ? piece_of(view, c->dim[torn], 0, unit) : *view;
    const bool has_ends = is_in_one_block(&least);
    wk_view dense;
    uint64_t bytes = 0;
    if (!has_ends && can_gather(w, op, torn, &dense, &bytes))
        return encode_gathered(w, op, torn, &dense, bytes);
    if (!c && can_share_out(op) && torn == 1) return encode_shared_out(w, op, longest_step(view));
    if (!c) return refuse(w, op, torn);
    /* Else parts that can be copied, or be cut once more. */
    const bool is_copied = !has_ends && bytes > 0;
    const uint64_t n_parts = bytes / w->dev->block_bytes + 1;
    int64_t part = extent / (int64_t)n_parts / unit * unit;
    if (part == 0) part = unit;
    for (int64_t from = 0; from < extent;) {
        const int64_t most = is_copied ? part : most_in_block(view, c->dim[torn], from, unit);
        const int64_t n = most < extent - from ? most : extent - from;
        WK_TRY(encode_piece(w, op, c, from, n));
        from += n;
    }
    return WICK_OK;
}

/* --- Ops that take long, or much memory --- */

/* Elements along the cut of each of n parts, as many as workgroups compute together. */
static int64_t part_of(const wk_op *op, const wk_cut *c, int64_t n_parts) {
    assert(n_parts > 0);
    enum { ROWS = 64 };
    const int64_t n = (extent_of(op, c) + n_parts - 1) / n_parts;
    return n > ROWS || unit_of(op, c) > 1 ? (n + ROWS - 1) / ROWS * ROWS : n;
}

static wick_status encode_long(const work *w, const wk_op *op, const wk_cut *c, int64_t n) {
    const int64_t extent = extent_of(op, c);
    for (int64_t from = 0; from < extent; from += n)
        WK_TRY(encode_piece(w, op, c, from, n < extent - from ? n : extent - from));
    return WICK_OK;
}

/* How many parts an op must be cut into, for each to take its time and to find its memory. */
static int64_t parts_of(const work *w, const wk_op *op, double estimate) {
    const int64_t in_time = wk_pace_parts(w->dev, estimate);
    const uint64_t temp = w->kernel->temp_bytes ? w->kernel->temp_bytes(op) : 0;
    const uint64_t block = w->dev->block_bytes;
    const int64_t in_memory = (int64_t)((temp + block - 1) / block);
    return in_time > in_memory ? in_time : in_memory;
}

static wick_status encode_pieces(const work *w, const wk_op *op) {
    const int torn = find_torn(op);
    const wk_cost cost = wk_op_cost(op, NULL);
    const double estimate = wk_pace_estimate(op, &cost);
    const int64_t n_parts = parts_of(w, op, estimate);
    if (torn < 0 && n_parts == 1) return encode_one(w, op, &cost, estimate);
    wk_cuts list;
    list_cuts(op, w->kernel, &list);
    if (torn >= 0) return encode_torn(w, op, &list, torn);
    const wk_cut *const c = longest_cut(op, &list);
    const int64_t n = c ? part_of(op, c, n_parts) : 0;
    return c && n < extent_of(op, c) ? encode_long(w, op, c, n)
                                     : encode_one(w, op, &cost, estimate);
}

/* Ops in a row by one kernel, where none has to be cut; else each by its own. */
static wick_status encode_joint(const work *w, const wk_op *ops) {
    const size_t n = wk_opcode_ops(w->kernel->base.code);
    double estimate = 0;
    bool is_whole = true;
    for (size_t i = 0; i < n; i++) {
        const wk_cost cost = wk_op_cost(&ops[i], NULL);
        estimate += wk_pace_estimate(&ops[i], &cost);
        is_whole = is_whole && find_torn(&ops[i]) < 0;
    }
    if (is_whole && parts_of(w, ops, estimate) == 1) {
        const wk_cost none = {0};
        const wick_status status = encode_one(w, ops, &none, estimate);
        if (status != WICK_ERR_UNSUPPORTED) return status;
        *w->err = (wick_error){0}; /* of too many buffers, say */
    }
    for (size_t i = 0; i < n; i++) {
        work one = *w;
        one.kernel = wk_choice_find(w->dev, &ops[i]);
        if (!one.kernel)
            return wk_fail(w->err, WICK_ERR_UNSUPPORTED, "%s has no kernel any more",
                           wk_op_get_info(ops[i].code)->name);
        WK_TRY(encode_pieces(&one, &ops[i]));
    }
    return WICK_OK;
}

wick_status wk_segment_encode(wk_backend_device *dev, wk_recorder *recorder,
                              const wk_webgpu_kernel *kernel, const wk_op *op, wick_error *err) {
    const work w = {.dev = dev, .recorder = recorder, .kernel = kernel, .err = err};
    if (wk_view_count(&op->view[0]) == 0) return WICK_OK; /* nothing to write */
    if (wk_opcode_ops(kernel->base.code) > 1) return encode_joint(&w, op);
    return encode_pieces(&w, op);
}

wick_status wk_webgpu_encode(wk_backend_device *dev, const wk_kernel *kernel, const wk_op *op,
                             wick_error *err) {
    /* A full recording is submitted first: not before it is compiled. */
    if (wk_pace_is_full(dev, 0) && !wk_cache_wait(dev, dev->recorder.n_pipelines))
        return WICK_PENDING;
    const wick_status status = wk_segment_encode(
        dev, &dev->recorder, (const wk_webgpu_kernel *)(const void *)kernel, op, err);
    if (status != WICK_PENDING) dev->stats.n_ops++;
    return status;
}
