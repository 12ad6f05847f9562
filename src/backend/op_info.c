/* backend/op_info.c: what every op has in common: its table entry, what is checked alike, its
 * description in words. */
#include "backend/op.h"

#include "core/dtype.h"
#include "core/shape.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

/* --- The table --- */

static const wk_op_info infos[] = {
#define OUT(text) {.name = text, .access = WK_WRITE}
#define INOUT(text) {.name = text, .access = WK_READ_WRITE}
#define IN(text) {.name = text, .access = WK_READ}
#define OPT(text) {.name = text, .access = WK_READ, .is_optional = true}
#define WEIGHT(text) {.name = text, .access = WK_READ, .is_weight = true}
#define INDEX(text) {.name = text, .access = WK_READ, .is_index = true}
#define BATCH(text) {.name = text, .access = WK_READ, .is_index = true, .is_batch = true}
#define WK_OP(op_code, text, check_fn, decompose_fn, in_place, dst, src, ...)                      \
    [WK_OP_##op_code] = {.name = text,                                                             \
                         .n_dst = dst,                                                             \
                         .n_src = src,                                                             \
                         .is_in_place_allowed = in_place,                                          \
                         .operands = {__VA_ARGS__},                                                \
                         .decompose = decompose_fn},
#include "backend/op.def"
#undef WK_OP
#define ANY IN("tensor")
    [WK_OP_CUSTOM] = {.name = "kernel", .operands = {ANY, ANY, ANY, ANY, ANY, ANY, ANY, ANY}},
#undef ANY
};

const wk_op_info *wk_op_get_info(wk_opcode code) {
    assert((size_t)code < WK_COUNT(infos));
    return &infos[code];
}

const wk_operand_info *wk_op_operand(const wk_op *op, int i) {
    static const wk_operand_info read = IN("tensor"), written = OUT("result");
    static const wk_operand_info of_kernel = INOUT("tensor");
    if (op->code != WK_OP_CUSTOM && op->code != WK_OP_CHAIN)
        return &wk_op_get_info(op->code)->operands[i];
    if (i >= op->n_dst) return &read;
    return op->code == WK_OP_CUSTOM ? &of_kernel : &written;
}

#undef OUT
#undef INOUT
#undef IN
#undef OPT
#undef WEIGHT
#undef INDEX
#undef BATCH

bool wk_op_may_fault(wk_opcode code) {
    for (const wk_operand_info *o = wk_op_get_info(code)->operands; o->access != 0; o++)
        if (o->is_index) return true;
    return false;
}

int wk_op_table(wk_opcode code) {
    const wk_operand_info *const operands = wk_op_get_info(code)->operands;
    int i = 0;
    while (!operands[i].is_weight) i++;
    return i;
}

const wk_batch_layout *wk_op_batch(const wk_op *op, int *operand) {
    for (int i = 0; i < op->n_dst + op->n_src; i++) {
        if (!wk_op_operand(op, i)->is_batch) continue;
        *operand = i;
        return &op->p.batch;
    }
    return NULL;
}

/* --- Checks for every op alike --- */

static wick_status check_operand(const wk_op *op, int i, const wk_operand_info *info,
                                 wick_error *err) {
    const wk_view *const view = &op->view[i];
    const char *const name = wk_op_name(op);
    if (view->buf && wk_view_is_plain(view, i < op->n_dst)) return WICK_OK;
    if (!view->buf) {
        const bool is_blank = view->rank == 0 && view->dtype == WICK_F32 && view->layout == 0;
        if (info->is_optional && is_blank) return WICK_OK;
        return wk_fail(err, WICK_ERR_ARGUMENT, "%s: operand %s is missing", name, info->name);
    }
    if (!wk_view_is_well_formed(view, info->is_weight))
        return wk_fail(err, WICK_ERR_SHAPE, "%s: %s has impossible extents, strides or layout",
                       name, info->name);
    if (!wk_view_is_aligned(view))
        return wk_fail(err, WICK_ERR_INTERNAL, "%s: %s lies between elements", name, info->name);
    if (i < op->n_dst && !wk_view_is_writable(view))
        return wk_fail(err, WICK_ERR_ARGUMENT,
                       "%s: elements of %s share memory (a broadcast view?), it cannot be written",
                       name, info->name);
    uint64_t begin, end;
    wk_view_range(view, &begin, &end);
    if (end > view->buf->size)
        return wk_fail(err, WICK_ERR_INTERNAL, "%s: %s reaches byte %llu of a buffer of %llu", name,
                       info->name, (unsigned long long)end, (unsigned long long)view->buf->size);
    return WICK_OK;
}

static wick_status check_aliasing(const wk_op *op, const wk_op_info *info, wick_error *err) {
    for (int d = 0; d < op->n_dst; d++) {
        for (int i = d + 1; i < op->n_dst + op->n_src; i++) {
            if (!wk_view_overlaps(&op->view[d], &op->view[i])) continue;
            const bool in_place = info->is_in_place_allowed && i >= op->n_dst &&
                                  !wk_op_operand(op, i)->is_optional &&
                                  wk_view_same(&op->view[d], &op->view[i]);
            if (!in_place)
                return wk_fail(err, WICK_ERR_ARGUMENT, "%s: %s overlaps %s", wk_op_name(op),
                               wk_op_operand(op, d)->name, wk_op_operand(op, i)->name);
        }
    }
    return WICK_OK;
}

static bool has_its_operands(const wk_op *op, const wk_op_info *info) {
    if (op->code == WK_OP_CUSTOM)
        return op->n_dst > 0 && op->n_dst + op->n_src <= WICK_KERNEL_MAX_BUFFERS;
    if (op->code == WK_OP_CHAIN)
        return op->n_dst > 0 && op->n_dst <= WK_CHAIN_RESULTS &&
               op->n_dst + op->n_src <= WK_CHAIN_OPERANDS;
    return op->n_dst == info->n_dst && op->n_src == info->n_src;
}

wick_status wk_op_check(const wk_op *op, wick_error *err) {
    const wk_op_info *const info = wk_op_get_info(op->code);
    if (!has_its_operands(op, info))
        return wk_fail(err, WICK_ERR_INTERNAL, "%s: has %d + %d operands", info->name, op->n_dst,
                       op->n_src);
    for (int i = 0; i < op->n_dst + op->n_src; i++)
        WK_TRY(check_operand(op, i, wk_op_operand(op, i), err));
    WK_TRY(check_aliasing(op, info, err));
    return wk_op_check_rule(op, err);
}

/* --- In words --- */

char *wk_op_text(const wk_op *op, char *buf, size_t size) {
    size_t used = (size_t)snprintf(buf, size, "%s", wk_op_name(op));
    for (int i = 0; i < op->n_dst + op->n_src; i++) {
        const wk_view *const view = &op->view[i];
        if (!view->buf || used >= size) continue;
        const wick_shape shape = wick_shape_of(view->rank, view->extent);
        char extents[96];
        const int n =
            snprintf(buf + used, size - used, " %s %s%s", wk_op_operand(op, i)->name,
                     wick_dtype_name(view->dtype), wk_shape_text(&shape, extents, sizeof extents));
        used += (size_t)n;
    }
    return buf;
}
