/* ops/grid_sample.c: images at the places of a grid (Jaderberg et al., 2015). */
#include "core/shape.h"
#include "ops/sample.h"

static const char name[] = "grid_sample";

static bool check_modes(const wick_tensor *x, wick_resize_mode mode, wick_pad_mode padding) {
    if ((unsigned)mode <= WICK_RESIZE_CUBIC && (unsigned)padding <= WICK_PAD_REPLICATE) return true;
    wk_device_fail(x->device, WICK_ERR_VALUE, "%s: there is no mode %d with padding %d", name,
                   (int)mode, (int)padding);
    return false;
}

static bool check(wick_tensor *x, wick_tensor *grid) {
    if (!wk_operands_are_floats(name, (wick_tensor *[]){x, grid}, 2, 2) ||
        !wk_operand_rank(name, "x", x, 4, 5))
        return false;
    const int rank = x->view.rank;
    bool fits = grid->view.rank == rank && grid->view.extent[0] == x->view.extent[0] &&
                grid->view.extent[rank - 1] == rank - 2;
    for (int d = 2; d < rank; d++) fits = fits && x->view.extent[d] > 0;
    if (fits && wick_tensor_size(x) < UINT32_MAX) return true;
    const wick_shape of_x = wk_tensor_shape_of(x), of_grid = wk_tensor_shape_of(grid);
    char text[2][WK_SHAPE_TEXT];
    wk_device_fail(x->device, WICK_ERR_SHAPE, "%s: grid %s does not fit x %s", name,
                   wk_shape_text(&of_grid, text[0], sizeof text[0]),
                   wk_shape_text(&of_x, text[1], sizeof text[1]));
    return false;
}

/* Column i of the grid's places, -1 to 1, as numbers of elements: [n, places]. */
static wick_tensor *places(wick_tensor *grid, int i, int64_t extent, bool align_corners) {
    if (!grid) return NULL;
    wick_tensor *const column = wick_narrow(grid, grid->view.rank - 1, i, 1);
    const double half = (double)(align_corners ? extent - 1 : extent) / 2;
    return wick_affine(wick_flatten(column, 1, -1), half, (double)(extent - 1) / 2);
}

wick_tensor *wick_grid_sample(wick_tensor *x, wick_tensor *grid, wick_resize_mode mode,
                              wick_pad_mode padding, bool align_corners) {
    if (!x || !check_modes(x, mode, padding) || !check(x, grid)) return NULL;
    const int n_dims = x->view.rank - 2;
    const wick_scope scope = wk_operation_begin(x->device, "grid_sample");
    wick_tensor *const wide = wk_widened(grid);
    wk_sampling s = {.x = wick_flatten(wk_widened(x), 2, -1), .n_dims = n_dims};
    wick_shape shape = wick_shape_of(x->view.rank, x->view.extent);
    s.n_places = 1;
    for (int d = 0; d < n_dims; d++) {
        shape.extent[2 + d] = grid->view.extent[1 + d];
        s.n_places *= grid->view.extent[1 + d];
        s.extent[d] = x->view.extent[2 + d];
        const wk_tap_rule rule = {s.extent[d], mode, padding, align_corners};
        s.n_taps = wk_make_taps(&rule, places(wide, n_dims - 1 - d, s.extent[d], align_corners),
                                s.taps[d]);
    }
    wick_tensor *const y = wick_reshape(wk_sample(&s), shape);
    return wick_scope_result(scope, wk_promoted(y, x->view.dtype));
}
