/* llm/snapshots.h: what layers with a window and recurrent layers keep of a text after its first n
 * tokens, in host memory. Their tensors hold the end of a text alone; with a snapshot a text that
 * begins with the same tokens goes on from there:
 *
 *   tokens      0 ......... 512 ......... 1024 .... 1300
 *   tree        blocks of attention that looks at everything (prefix_tree.h)
 *   snapshots                ^              ^         ^
 *
 * The snapshot that was used longest ago makes room for the next one. */
#ifndef WK_LLM_SNAPSHOTS_H
#define WK_LLM_SNAPSHOTS_H

#include "llm/llm.h"

typedef struct wk_runner wk_runner;
typedef struct wk_sequence wk_sequence;
typedef struct wk_snapshot wk_snapshot;

typedef struct wk_snapshots {
    wk_snapshot *first;
    uint64_t bytes, clock; /* of all */
} wk_snapshots;

struct wk_snapshot {
    wk_snapshot *next;
    uint64_t key;   /* of the weights, as in prefix_tree.h */
    uint64_t used;  /* when, by the list's clock */
    uint32_t n;     /* tokens */
    uint32_t begin; /* the first position of layers with a window */
    uint32_t *ids;  /* [n] */
    /* Stage by stage: the blocks of positions begin to n - 1 of layers with a window, then the slot
     * of recurrent layers. */
    unsigned char *bytes;
    size_t sizes[WK_MAX_STAGES];
    wick_reading *readings[WK_MAX_STAGES]; /* NULL: the stage's bytes are here */
};

/* Begins to read one of the tokens ids that the sequence has in the cache; reading goes on with
 * later batches. Where there is no memory for it, or one already, nothing happens. */
void wk_snapshot_take(wk_sequence *sequence, const uint32_t *ids);
/* Without bytes. NULL: there is no memory for it. */
wk_snapshot *wk_snapshot_add(wk_runner *runner, uint64_t key, const uint32_t *ids, uint32_t n,
                             uint32_t begin);
/* The first position that the token at n sees in a layer with such a window (0: none). */
static inline uint32_t wk_window_begin(uint32_t window, uint32_t n) {
    return window > 0 && n >= window ? n - window + 1 : 0;
}
/* Bytes of one. */
size_t wk_snapshot_size(const wk_runner *runner, uint32_t n, uint32_t begin);
/* Whether it has been read. */
bool wk_snapshot_is_here(const wk_runner *runner, const wk_snapshot *snapshot);
/* Goes on with what is being read. */
void wk_snapshots_poll(wk_runner *runner);
/* The longest one of a beginning of ids [n], of more than n_before tokens; NULL: there is none. */
wk_snapshot *wk_snapshot_find(wk_runner *runner, uint64_t key, const uint32_t *ids, uint32_t n,
                              uint32_t n_before);
/* Into the blocks and the slot of a sequence that has room for its tokens. On failure the device
 * holds the sentence. */
wick_status wk_snapshot_restore(wk_sequence *sequence, const wk_snapshot *snapshot);
void wk_snapshots_drop(wk_runner *runner);

#endif
