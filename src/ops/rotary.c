/* ops/rotary.c: rotary position embedding, from positions or from tables. The kernels see x as
 * [batch, time, heads, dim] regardless of its layout. */
#include <wick/ops.h>

#include "core/shape.h"
#include "ops/indices.h"
#include "ops/operand.h"
#include "ops/view.h"

#include <inttypes.h>
#include <math.h>

/* [b, h, t, d] becomes [b, t, h, d]; rank 3 gets a batch of 1 first. */
static void token_major(const wick_tensor *x, wick_rope_layout layout, wk_view *out) {
    *out = x->view;
    if (out->rank == 3) wk_view_insert(out, 0, out);
    if (layout == WICK_ROPE_BHTD) wk_view_permute(out, (const int[]){0, 2, 1, 3}, out);
}

/* One row of a table for each [batch, time] of x: [time, ..] is repeated over the batch. */
static bool over_batch(const char *op, const wick_tensor *table, const wk_view *view,
                       const wick_shape *shape, wk_view *out) {
    if (table->view.rank <= shape->rank && table->view.rank >= shape->rank - 1 &&
        wk_view_expand(view, shape, out)) {
        return true;
    }
    const wick_shape from = wk_tensor_shape_of(table);
    char text[2][WK_SHAPE_TEXT];
    wk_device_fail(table->device, WICK_ERR_SHAPE, "%s: %s does not fit %s", op,
                   wk_shape_text(&from, text[0], sizeof text[0]),
                   wk_shape_text(shape, text[1], sizeof text[1]));
    return false;
}

static wick_rope_desc rope_defaults(const wick_rope_desc *desc, const wick_tensor *x) {
    wick_rope_desc resolved = {0};
    if (desc) resolved = *desc;
    if (resolved.rotary_dim == 0 && x->view.extent[x->view.rank - 1] <= INT32_MAX) {
        resolved.rotary_dim = (int)x->view.extent[x->view.rank - 1];
    }
    if (resolved.theta == 0) resolved.theta = 10000;
    if (resolved.scale_factor == 0) resolved.scale_factor = 1;
    return resolved;
}

static bool check_rope(const wick_tensor *x, const wick_tensor *positions,
                       const wick_rope_desc *desc) {
    if (!wk_operand_is_float("rope", x) || !wk_operand_is_strided("rope", x)) return false;
    const int64_t dim = x->view.extent[3];
    if (desc->rotary_dim < 0 || desc->rotary_dim % 2 != 0 || desc->rotary_dim > dim) {
        wk_device_fail(x->device, WICK_ERR_VALUE,
                       "rope: rotary_dim %d is not even or exceeds the last dim of %" PRId64,
                       desc->rotary_dim, dim);
        return false;
    }
    if (!(desc->theta > 0) || !(desc->scale_factor > 0) || isinf(desc->theta) ||
        isinf(desc->scale_factor)) {
        wk_device_fail(x->device, WICK_ERR_VALUE, "rope: theta %g, scale_factor %g", desc->theta,
                       desc->scale_factor);
        return false;
    }
    if (!positions) return true;
    return wk_operand_is_index("rope", positions);
}

/* Positions offset, offset + 1, ...; NULL on failure. */
static wick_tensor *make_positions(wick_tensor *x, int64_t n_times, int64_t offset) {
    if (offset < 0 || offset > (int64_t)UINT32_MAX - n_times) {
        wk_device_fail(x->device, WICK_ERR_VALUE, "rope: offset %" PRId64 " is out of range",
                       offset);
        return NULL;
    }
    return wick_arange(x->device, WICK_U32, (double)offset, (double)(offset + n_times), 1);
}

wick_tensor *wick_rope(wick_tensor *x, wick_tensor *positions, const wick_rope_desc *desc) {
    if (!wk_operands_present("rope", (wick_tensor *[]){x, positions}, positions ? 2 : 1)) {
        return NULL;
    }
    if (x->view.rank != 4) {
        wk_device_fail(x->device, WICK_ERR_SHAPE, "rope: x has rank %d, not 4", x->view.rank);
        return NULL;
    }
    const wick_rope_desc d = rope_defaults(desc, x);
    if (!check_rope(x, positions, &d)) return NULL;
    wk_view view_x, view_y, view_positions;
    token_major(x, d.layout, &view_x);
    const wick_shape times = {.rank = 2, .extent = {view_x.extent[0], view_x.extent[1]}};
    const wick_scope scope = wk_operation_begin(x->device, "rope");
    wick_tensor *const rows =
        positions ? wk_as_index(positions) : make_positions(x, times.extent[1], d.offset);
    wick_tensor *y = NULL;
    if (rows && over_batch("rope", rows, &rows->view, &times, &view_positions)) {
        const wick_shape shape = wk_tensor_shape_of(x);
        y = wk_tensor_new(x->device, x->view.dtype, &shape);
    }
    if (y) {
        token_major(y, d.layout, &view_y);
        wk_call call;
        wk_call_begin(&call, WK_OP_ROPE, "rope");
        wk_call_add(&call, y, &view_y);
        wk_call_add(&call, x, &view_x);
        wk_call_add(&call, rows, &view_positions);
        call.op.p.rope.theta = d.theta;
        call.op.p.rope.scale_factor = d.scale_factor;
        call.op.p.rope.rotary_dim = d.rotary_dim;
        call.op.p.rope.interleaved = d.interleaved;
        y = wk_queue_result(&call, y);
    }
    return wick_scope_result(scope, y);
}

static bool check_rope_table(const wick_tensor *x, const wick_tensor *cos, const wick_tensor *sin) {
    const wick_tensor *const all[] = {x, cos, sin};
    for (size_t i = 0; i < WK_COUNT(all); i++) {
        if (!wk_operand_is_float("rope_table", all[i])) return false;
        if (!wk_operand_is_strided("rope_table", all[i])) return false;
    }
    if (!wk_operands_same_dtype("rope_table", cos, sin)) return false;
    const wick_shape shape_x = wk_tensor_shape_of(x);
    const wick_shape shape_cos = wk_tensor_shape_of(cos), shape_sin = wk_tensor_shape_of(sin);
    const bool has_rank = (shape_x.rank == 3 || shape_x.rank == 4) && shape_cos.rank >= 2;
    if (has_rank && wk_shape_equal(&shape_cos, &shape_sin) &&
        shape_cos.extent[shape_cos.rank - 1] <= shape_x.extent[shape_x.rank - 1] / 2) {
        return true;
    }
    char text[3][WK_SHAPE_TEXT];
    wk_device_fail(x->device, WICK_ERR_SHAPE, "rope_table: cos %s and sin %s do not fit x %s",
                   wk_shape_text(&shape_cos, text[0], sizeof text[0]),
                   wk_shape_text(&shape_sin, text[1], sizeof text[1]),
                   wk_shape_text(&shape_x, text[2], sizeof text[2]));
    return false;
}

/* A table as the kernels want it: f32 or, of f64 for x of f64, as it is; repeated over the batch.
 * *temp: a converted copy or NULL. */
static bool make_table(wick_tensor *table, wick_dtype of_x, const wick_shape *shape,
                       wick_tensor **temp, wk_view *view) {
    *temp = NULL;
    const bool is_wide = table->view.dtype == WICK_F64 && of_x == WICK_F64;
    if (table->view.dtype != WICK_F32 && !is_wide) {
        *temp = wk_dense_copy(table, WICK_F32);
        if (!*temp) return false;
    }
    return over_batch("rope_table", table, *temp ? &(*temp)->view : &table->view, shape, view);
}

wick_tensor *wick_rope_table(wick_tensor *x, wick_tensor *cos, wick_tensor *sin, bool interleaved,
                             wick_rope_layout layout) {
    if (!wk_operands_present("rope_table", (wick_tensor *[]){x, cos, sin}, 3)) return NULL;
    if (!check_rope_table(x, cos, sin)) return NULL;
    wk_view view_x, view_y, view_cos, view_sin;
    token_major(x, layout, &view_x);
    const wick_shape table = {
        .rank = 3,
        .extent = {view_x.extent[0], view_x.extent[1], cos->view.extent[cos->view.rank - 1]}};
    const wick_scope scope = wk_operation_begin(x->device, "rope_table");
    wick_tensor *temp_cos = NULL, *temp_sin = NULL, *y = NULL;
    if (make_table(cos, x->view.dtype, &table, &temp_cos, &view_cos) &&
        make_table(sin, x->view.dtype, &table, &temp_sin, &view_sin)) {
        const wick_shape shape = wk_tensor_shape_of(x);
        y = wk_tensor_new(x->device, x->view.dtype, &shape);
    }
    if (y) {
        token_major(y, layout, &view_y);
        wk_call call;
        wk_call_begin(&call, WK_OP_ROPE_TABLE, "rope_table");
        wk_call_add(&call, y, &view_y);
        wk_call_add(&call, x, &view_x);
        wk_call_add(&call, temp_cos ? temp_cos : cos, &view_cos);
        wk_call_add(&call, temp_sin ? temp_sin : sin, &view_sin);
        call.op.p.rope_table.interleaved = interleaved;
        y = wk_queue_result(&call, y);
    }
    return wick_scope_result(scope, y);
}
