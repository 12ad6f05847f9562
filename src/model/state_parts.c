/* model/state_parts.c: see state_parts.h. */
#include "model/state_parts.h"

#include "core/dtype.h"
#include "model/model_struct.h"

#include <wick/ops.h>

#include <assert.h>
#include <string.h>

static wick_tensor *tensor_of(const wk_layer_cache *cache, uint32_t which) {
    wick_tensor *const tensors[WK_STATE_PARTS] = {cache->k, cache->v, cache->inputs,
                                                  cache->numbers};
    return tensors[which];
}

wk_state_part wk_state_part_of(const wk_model *model, const wk_state *state, uint32_t layer,
                               uint32_t which) {
    assert(which < WK_STATE_PARTS && layer >= state->first);
    assert(layer - state->first < state->n_layers);
    const wk_layer_cache *const cache = &state->layers[layer - state->first];
    wick_tensor *const tensor = tensor_of(cache, which);
    if (tensor == NULL) return (wk_state_part){.n_blocks = 0};
    wk_state_part part = {.tensor = tensor, .n_blocks = 1, .block_size = 1, .n_heads = 1};
    part.is_whole = tensor == cache->inputs || tensor == cache->numbers;
    if (part.is_whole) {
        part.n_cells = 1;
        part.n_blocks = (uint32_t)tensor->view.extent[0];
        part.cell_bytes = (uint32_t)(wick_tensor_bytes(tensor) / part.n_blocks);
        return part;
    }
    const wk_view *const view = &tensor->view;
    const wk_dtype_info *const info = wk_dtype_get(view->dtype);
    const uint32_t n = (uint32_t)view->extent[3];
    const uint32_t row_bytes =
        n / (uint32_t)info->block_elements * (uint32_t)info->block_bytes; /* of a head */
    part.has_window = wk_layer_forgets(&model->layers[layer].spec);
    part.is_transposed = !wk_view_is_dense(view);
    part.n_blocks = (uint32_t)view->extent[0];
    part.n_heads = (uint32_t)view->extent[1];
    part.block_size = (uint32_t)view->extent[2];
    part.n_cells = part.is_transposed ? n : 1;
    part.cell_bytes = row_bytes / part.n_cells;
    return part;
}

size_t wk_state_row_bytes(const wk_state_part *part) {
    return (size_t)part->n_heads * part->n_cells * part->cell_bytes;
}

wick_tensor *wk_state_blocks(const wk_state_part *part, uint32_t first, uint32_t n) {
    assert(n > 0 && first <= part->n_blocks && n <= part->n_blocks - first);
    wick_tensor *const lying =
        part->is_transposed ? wick_transpose(part->tensor, 2, 3) : part->tensor;
    return wick_narrow(lying, 0, first, n);
}

void wk_state_reorder(const wk_state_part *part, uint32_t n, unsigned char *blocks,
                      unsigned char *rows, bool to_rows) {
    const size_t size = part->cell_bytes, n_slots = part->block_size;
    const size_t n_columns = (size_t)part->n_heads * part->n_cells;
    for (size_t block = 0; block < n; block++) {
        for (size_t column = 0; column < n_columns; column++) {
            for (size_t slot = 0; slot < n_slots; slot++) {
                const size_t lies_at = (block * n_columns + column) * n_slots + slot;
                const size_t row_at = (block * n_slots + slot) * n_columns + column;
                unsigned char *const lying = blocks + lies_at * size;
                unsigned char *const row = rows + row_at * size;
                memcpy(to_rows ? row : lying, to_rows ? lying : row, size);
            }
        }
    }
}
