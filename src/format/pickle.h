/* format/pickle.h: the pickles that torch.save writes: read as data, nothing in them is run. */
#ifndef WK_FORMAT_PICKLE_H
#define WK_FORMAT_PICKLE_H

#include "core/arena.h"
#include "core/status.h"
#include "core/str.h"

typedef enum wk_pickled_kind {
    WK_PICKLED_NONE,
    WK_PICKLED_BOOL,
    WK_PICKLED_INTEGER,
    WK_PICKLED_REAL,
    WK_PICKLED_TEXT,
    WK_PICKLED_TUPLE,
    WK_PICKLED_LIST,
    WK_PICKLED_DICT,   /* OrderedDict, too */
    WK_PICKLED_GLOBAL, /* the name of a class or function: "torch.FloatStorage" */
    WK_PICKLED_CALL,   /* a global, and the tuple that it would be called with: two items */
    WK_PICKLED_ID,     /* what lies outside the pickle: one item, that names it */
} wk_pickled_kind;

typedef struct wk_pickled wk_pickled;

typedef struct wk_pickled_item {
    wk_pickled *key; /* of a dict, else NULL */
    wk_pickled *value;
    struct wk_pickled_item *next;
} wk_pickled_item;

/* A value may be the item of several others, or of itself. */
struct wk_pickled {
    wk_pickled_kind kind;
    int64_t integer; /* and bool */
    double real;
    wk_str text; /* of the pickle's bytes; of a global in the arena */
    size_t n_items;
    wk_pickled_item *items, *last;
};

/* The value of the pickle bytes[0, size), protocol 2 to 5, which must stay: with numbers, texts,
 * tuples, lists, dicts and the names that PyTorch has for the parts of tensors. The arena gives at
 * most about 200 bytes for each of the pickle's. WICK_ERR_FORMAT with the byte and the reason,
 * WICK_ERR_UNSUPPORTED: an opcode or a name that no such pickle needs; WICK_ERR_OUT_OF_MEMORY. */
wick_status wk_pickle_parse(wk_heap *heap, wk_arena *arena, const void *bytes, size_t size,
                            const wk_pickled **out, wick_error *err);

#endif
