/* backend/webgpu/kernels/panel_wgsl.h: weights as WGSL sees them: which text decodes a layout, and
 * the constants that make it the layout's own. */
#ifndef WK_BACKEND_WEBGPU_KERNELS_PANEL_WGSL_H
#define WK_BACKEND_WEBGPU_KERNELS_PANEL_WGSL_H

#include "backend/webgpu/kernels/webgpu_kernel.h"

/* X(name) of the constants of wgsl/panel.wgsl: the first ones of a source with weights. */
#define WK_PANEL_CONSTANTS(X)                                                                      \
    X(LAYOUT)                                                                                      \
    X(CODE)                                                                                        \
    X(BITS)                                                                                        \
    X(LOWER)                                                                                       \
    X(BIAS)                                                                                        \
    X(LEVELS)                                                                                      \
    X(SCALE)                                                                                       \
    X(HEAD_BLOCKS)                                                                                 \
    X(HEAD_VECTORS)                                                                                \
    X(SCALE_VECTORS)                                                                               \
    X(BLOCK_VECTORS)                                                                               \
    X(ENTRIES)                                                                                     \
    X(UPPER_BYTES)                                                                                 \
    X(UPPER_STEP)                                                                                  \
    X(UPPER_MASK)                                                                                  \
    X(HAS_SIGNS)                                                                                   \
    X(HAS_DOWN)                                                                                    \
    X(UNITS)                                                                                       \
    X(GRID)

/* As members of wk_source.constants. */
#define WK_PANEL_CONSTANT_NAME(name) #name,

enum {
#define WK_PANEL_CONSTANT_INDEX(name) WK_PANEL_##name,
    WK_PANEL_CONSTANTS(WK_PANEL_CONSTANT_INDEX)
#undef WK_PANEL_CONSTANT_INDEX
        WK_PANEL_CONSTANT_COUNT
};

/* The texts that decode weights: panel.wgsl, panel_float.wgsl, raw.wgsl. */
typedef enum wk_weight_text {
    WK_WEIGHT_QUANTS,
    WK_WEIGHT_FLOATS,
    WK_WEIGHT_RAW, /* any strides */
    WK_WEIGHT_TEXT_COUNT,
} wk_weight_text;

wk_weight_text wk_weight_text_of(const wk_view *weight);
/* Whether a program can read it: all panels, and raw rows of floats but f64. */
bool wk_weight_is_readable(const wk_view *weight);

/* Whether quants of its panels become bytes without a table of grids. */
bool wk_weight_has_bytes(const wk_view *weight);

/* Binds operand `weight` of a begun dispatch and operand `tables`, and sets the constants. spare: a
 * view for `tables` where the layout needs none. */
wick_status wk_weight_bind(wk_encoder *e, wk_dispatch *d, int weight, int tables,
                           const wk_view *view, const wk_view *spare);
/* The parameters weight, panel_stride, weight_row, weight_element, tables, in this order, once the
 * dispatch is placed. */
void wk_weight_params(wk_dispatch *d, int weight, int tables);

#endif
