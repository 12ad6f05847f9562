/* model/state_parts.h: the parts of a state, for code that copies it: tensors as they lie on their
 * device, and rows by position, which do not depend on the device and its blocks. */
#ifndef WK_MODEL_STATE_PARTS_H
#define WK_MODEL_STATE_PARTS_H

#include "model/model.h"

enum { WK_STATE_PARTS = 4 }; /* of a layer: keys, values, the two of a recurrent one */

/* Keys and values: in memory a block is [n_heads][n_cells][block_size] cells; as rows,
 * [block_size][n_heads][n_cells]. */
typedef struct wk_state_part {
    wick_tensor *tensor; /* the state's; NULL: there is no such part */
    bool has_window;     /* keys and values older than it are dropped */
    bool is_whole;       /* a recurrent state: a block is a slot and one row, the same in memory */
    bool is_transposed;  /* as the tensor is seen: its last two dimensions, against memory */
    uint32_t n_blocks, block_size, n_heads, n_cells, cell_bytes;
} wk_state_part;

/* Part `which` of a layer of the state's stage. */
wk_state_part wk_state_part_of(const wk_model *model, const wk_state *state, uint32_t layer,
                               uint32_t which);
size_t wk_state_row_bytes(const wk_state_part *part);
/* Blocks [first, first + n) as they lie: a tensor of the scope that is open. NULL: the device holds
 * the sentence. */
wick_tensor *wk_state_blocks(const wk_state_part *part, uint32_t first, uint32_t n);

/* n blocks as they lie to rows, or back. */
void wk_state_reorder(const wk_state_part *part, uint32_t n, unsigned char *blocks,
                      unsigned char *rows, bool to_rows);

#endif
