/* quant/iq_tables.h: the grids of ggml's iq types: the groups of 8 or 4 magnitudes that a code
 * stands for.
 *
 * An entry packs indices into the grid's set of magnitudes, the first element in the lowest bits:
 *   iq2  8 of 2 bits: 8, 25, 43
 *   iq3  4 of 3 bits: 4, 12, 20, 28, 36, 44, 52, 62 (xxs) or 1, 3 ... 15 (s)
 *   iq1  8 of 2 bits: -1, 0, 1 (for iq1_s and iq1_m)
 *
 * A zero follows the last entry, so that 32 bits can be read at every entry. */
#ifndef WK_QUANT_IQ_TABLES_H
#define WK_QUANT_IQ_TABLES_H

#include <stdint.h>

extern const uint16_t wk_iq2_xxs_grid[256 + 1];
extern const uint16_t wk_iq2_xs_grid[512 + 1];
extern const uint16_t wk_iq2_s_grid[1024 + 1];
extern const uint16_t wk_iq3_xxs_grid[256 + 1];
extern const uint16_t wk_iq3_s_grid[512 + 1];
extern const uint16_t wk_iq1_grid[2048 + 1];

#endif
