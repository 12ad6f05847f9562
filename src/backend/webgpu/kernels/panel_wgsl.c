/* backend/webgpu/kernels/panel_wgsl.c: see panel_wgsl.h. The tables of levels and grids lie in one
 * buffer of the device: as constants of a text every thread might get a copy of its own. */
#include "backend/webgpu/kernels/panel_wgsl.h"

#include "core/compiler.h"
#include "quant/panel.h"

#include <string.h>

/* --- Tables, in words: the levels as floats, then the grids, two entries each --- */

enum {
    LEVELS = 16, /* of a kind */
    ALL_LEVELS = WK_LEVELS_COUNT_ * LEVELS,
};

typedef struct grid_table {
    const uint16_t *grid;
    int entries;
} grid_table;

static const grid_table grids[] = {{wk_iq2_xxs_grid, 256}, {wk_iq2_xs_grid, 512},
                                   {wk_iq2_s_grid, 1024},  {wk_iq3_xxs_grid, 256},
                                   {wk_iq3_s_grid, 512},   {wk_iq1_grid, 2048}};
enum { ALL_WORDS = ALL_LEVELS + (256 + 512 + 1024 + 256 + 512 + 2048) / 2 };

static void write_tables(uint32_t *words) {
    for (int i = 0; i < ALL_LEVELS; i++) {
        const float level = (float)wk_panel_levels_table[i / LEVELS][i % LEVELS] - 128;
        memcpy(&words[i], &level, sizeof level);
    }
    words += ALL_LEVELS;
    for (size_t t = 0; t < WK_COUNT(grids); t++)
        for (int i = 0; i < grids[t].entries; i += 2)
            *words++ = grids[t].grid[i] | (uint32_t)grids[t].grid[i + 1] << 16;
}

static int grid_at(const uint16_t *grid) {
    int at = ALL_LEVELS;
    for (size_t t = 0; grids[t].grid != grid; t++) at += grids[t].entries / 2;
    return at;
}

/* --- Weights --- */

wk_weight_text wk_weight_text_of(const wk_view *weight) {
    if (weight->layout == WK_LAYOUT_RAW) return WK_WEIGHT_RAW;
    return wk_panel_get((wk_layout)weight->layout)->bits > 0 ? WK_WEIGHT_QUANTS : WK_WEIGHT_FLOATS;
}

bool wk_weight_is_readable(const wk_view *weight) {
    return weight->layout != WK_LAYOUT_RAW || wk_webgpu_is_float(weight->dtype);
}

bool wk_weight_has_bytes(const wk_view *weight) {
    const wk_panel_format *const format = wk_panel_get((wk_layout)weight->layout);
    return format->bits > 0 && format->code == WK_CODE_BITS;
}

static void set_constants(wk_layout layout, int32_t *constants) {
    enum { VECTOR = 16 };
    const wk_panel_format *const format = wk_panel_get(layout);
    constants[WK_PANEL_LAYOUT] = (int32_t)layout;
    if (format->bits == 0) return;
    const bool is_linear = format->levels == WK_LEVELS_LINEAR;
    constants[WK_PANEL_CODE] = (int32_t)format->code;
    constants[WK_PANEL_BITS] = format->bits;
    constants[WK_PANEL_LOWER] = wk_panel_lower_bits(format->bits);
    constants[WK_PANEL_BIAS] = is_linear ? format->bias : 0; /* the table's levels are without it */
    constants[WK_PANEL_LEVELS] = is_linear ? -1 : (int32_t)format->levels * LEVELS;
    constants[WK_PANEL_SCALE] = (int32_t)format->scale;
    constants[WK_PANEL_HEAD_BLOCKS] = format->head_blocks;
    constants[WK_PANEL_HEAD_VECTORS] = wk_panel_head_bytes(layout) / VECTOR;
    constants[WK_PANEL_SCALE_VECTORS] = wk_panel_scale_bytes(layout) / VECTOR;
    constants[WK_PANEL_BLOCK_VECTORS] = wk_panel_block_bytes(layout) / VECTOR;
    constants[WK_PANEL_UNITS] = 1;
    constants[WK_PANEL_GRID] = -1;
    if (format->code != WK_CODE_GRID) return;
    const wk_panel_grid *const grid = wk_panel_get_grid(layout);
    constants[WK_PANEL_ENTRIES] = grid->entries;
    constants[WK_PANEL_UPPER_BYTES] = grid->upper_bytes;
    constants[WK_PANEL_UPPER_STEP] = grid->upper_step;
    constants[WK_PANEL_UPPER_MASK] = (int32_t)grid->upper_mask;
    constants[WK_PANEL_HAS_SIGNS] = grid->has_signs;
    constants[WK_PANEL_HAS_DOWN] = format->levels == WK_LEVELS_IQ1;
    constants[WK_PANEL_UNITS] = (int32_t)(1 / grid->unit);
    constants[WK_PANEL_GRID] = grid_at(grid->grid);
}

wick_status wk_weight_bind(wk_encoder *e, wk_dispatch *d, int weight, int tables,
                           const wk_view *view, const wk_view *spare) {
    const wk_view *words = spare;
    const wk_layout layout = (wk_layout)view->layout;
    set_constants(layout, d->program.constants);
    if (wk_panel_get(layout)->levels != WK_LEVELS_LINEAR)
        WK_TRY(wk_encoder_tables(e, ALL_WORDS, write_tables, &words));
    if (layout != WK_LAYOUT_RAW && view->offset % 16 != 0)
        return wk_encoder_refuse(e, "panels must begin at a multiple of 16 bytes");
    wk_dispatch_bind(d, weight, view, layout == WK_LAYOUT_RAW ? WK_FORM_ELEMENTS : WK_FORM_VECTORS,
                     false);
    wk_dispatch_bind(d, tables, words, WK_FORM_WORDS, false);
    return WICK_OK;
}

void wk_weight_params(wk_dispatch *d, int weight, int tables) {
    const wk_view *const view = &d->views[weight];
    const bool is_raw = view->layout == WK_LAYOUT_RAW;
    const int64_t k = view->extent[view->rank - 1];
    wk_dispatch_u32(d, d->first[weight]);
    wk_dispatch_u32(d, is_raw ? 0 : (uint32_t)(wk_panel_bytes((wk_layout)view->layout, k) / 16));
    wk_dispatch_u32(d, is_raw ? (uint32_t)view->stride[view->rank - 2] : 0);
    wk_dispatch_u32(d, is_raw ? (uint32_t)view->stride[view->rank - 1] : 0);
    wk_dispatch_u32(d, d->first[tables]);
}
