/* llm/shortlist.c: see shortlist.h. */
#include "llm/shortlist.h"

#include <wick/ops.h>

#include <math.h>

enum { MOST_LOGITS = 1 << 24 }; /* up to here float32 holds every id */

bool wk_shortlist_fits(size_t n) { return n > WK_SHORTLIST && n <= MOST_LOGITS; }

wick_tensor *wk_shortlist_make(wick_tensor *logits) {
    wick_tensor *ids;
    wick_tensor *const best = wick_top_k(logits, WK_SHORTLIST, -1, &ids);
    /* One tensor is one read-back. */
    return wick_cat((wick_tensor *[]){best, wick_cast(ids, WICK_F32)}, 2, -1);
}

bool wk_shortlist_spread(const float *list, float *row, size_t n) {
    if (!(list[0] < INFINITY)) return false; /* NaN comes first */
    for (size_t i = 0; i < n; i++) row[i] = -INFINITY;
    for (size_t i = 0; i < WK_SHORTLIST; i++) {
        const float id = list[WK_SHORTLIST + i];
        if (!(id >= 0 && id < (float)n)) return false; /* what a device says is not trusted */
        row[(size_t)id] = list[i];
    }
    return true;
}
