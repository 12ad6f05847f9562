/* quant/levels.h: the uneven scales of 4-bit numbers, rising, as decoders and encoders need them.
 */
#ifndef WK_QUANT_LEVELS_H
#define WK_QUANT_LEVELS_H

#include <stdint.h>

/* iq4_nl and iq4_xs. */
static const int8_t wk_iq4_levels[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                         1,    13,   25,  38,  53,  69,  89,  113};

/* mxfp4 and nvfp4: twice the magnitude of a 4-bit float (E2M1); the fourth bit is the sign.
 * Negative zero is left out. */
static const int8_t wk_twice_e2m1[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

#endif
