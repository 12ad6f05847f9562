/* grammar/stacks.h: where a text stands in a grammar, as a set of stacks of instructions, and
 * what each byte makes of it.
 *
 * A grammar may be read in several ways at once, so there are several stacks. A set of stacks is
 * kept as its tops, rising, each with the set of stacks below it; equal sets are one object, so the
 * stacks of an ambiguous grammar share what they have in common (the graph-structured stack of
 * Tomita, 1987), and what a byte makes of a set is worked out once (a lazy deterministic
 * automaton).
 *
 * Below a stack's last instruction stands its base: base 0 is the end of the text. The others stand
 * for stacks that were cut off (wk_stacks_cut), so that places which differ only there look alike.
 */
#ifndef WK_GRAMMAR_STACKS_H
#define WK_GRAMMAR_STACKS_H

#include "core/arena.h"
#include "grammar/program.h"

typedef struct wk_stacks wk_stacks;
typedef struct wk_mask wk_mask;

/* at: an instruction, or WK_STACK_BASE + the number of a base; then below is NULL. */
typedef struct wk_stack_top {
    uint32_t at;
    wk_stacks *below;
} wk_stack_top;

#define WK_STACK_BASE ((uint32_t)1 << 30)
enum { WK_STACKS_MOST_CUT = 32 };

struct wk_stacks {
    uint64_t hash;
    uint32_t n;
    uint32_t depth;   /* of the deepest stack */
    wk_stacks *moved; /* to another store, while that is filled */
    /* Of places in a text; all others only lie below them. */
    wk_stacks **next; /* [n_classes] NULL: not worked out yet */
    wk_mask *mask;    /* mask.c; NULL: not worked out yet */
    bool has_tokens;  /* an instruction TOKEN is on top */
    bool reads;       /* BYTE is */
    bool is_alive;    /* either, or the end of the text: a text may get here */
    bool has_cut;     /* a base other than 0 is on top */
    wk_stack_top tops[];
};

/* What two sets came to that were united lately. */
enum { WK_STACKS_UNIONS = 4096 };
typedef struct wk_stacks_union {
    const wk_stacks *a, *b;
    wk_stacks *both;
} wk_stacks_union;

typedef struct wk_stacks_store {
    const wk_program *program;
    wk_heap *heap;
    wk_arena arena; /* of sets and masks */
    wk_stacks **slots;
    size_t n_slots, n_sets;
    wk_stacks *empty; /* no stack: the text is none of the grammar */
    wk_stacks *start;

    wk_stacks_union *unions; /* [WK_STACKS_UNIONS] */

    /* The set that is being made. */
    wk_stacks **below;  /* [program->n] of each instruction; NULL: not in the set */
    uint32_t *waiting;  /* [program->n] instructions to be followed */
    bool *is_waiting;   /* [program->n] */
    uint32_t *found;    /* [program->n] those that below has something for */
    wk_stack_top *tops; /* [program->n + 1 + WK_STACKS_MOST_CUT] the result */
    bool has_base[1 + WK_STACKS_MOST_CUT];
    uint32_t n_waiting, n_found, n_steps;
    wick_status failed; /* OUT_OF_MEMORY; VALUE: the grammar is too ambiguous */
} wk_stacks_store;

wick_status wk_stacks_store_make(wk_heap *heap, const wk_program *program, wk_stacks_store *out,
                                 wick_error *err);
void wk_stacks_store_free(wk_stacks_store *store);
/* Bytes of all sets and masks. */
size_t wk_stacks_store_size(const wk_stacks_store *store);
/* Forgets all but set, and returns what it is now. NULL on failure: the store is as it was. */
wk_stacks *wk_stacks_store_forget(wk_stacks_store *store, wk_stacks *set);

/* The functions below return NULL on failure; store->failed says why. */

/* The set after a byte of that class; it is kept in set->next. */
wk_stacks *wk_stacks_read(wk_stacks_store *store, wk_stacks *set, uint32_t byte_class);
/* The set after the token: only TOKEN instructions read it. */
wk_stacks *wk_stacks_read_token(wk_stacks_store *store, const wk_stacks *set, uint32_t id);
/* The stacks of both. */
wk_stacks *wk_stacks_join(wk_stacks_store *store, wk_stacks *a, wk_stacks *b);
/* What follows where stacks that were cut off are read on. */
wk_stacks *wk_stacks_resume(wk_stacks_store *store, const wk_stacks *set);
typedef struct wk_stacks_rest {
    wk_stacks *sets[WK_STACKS_MOST_CUT]; /* [n] what base i + 1 stands for */
    uint32_t n;
} wk_stacks_rest;
/* The set with only depth instructions of each stack left. The empty set: more than
 * WK_STACKS_MOST_CUT different rests would be cut off. */
wk_stacks *wk_stacks_cut(wk_stacks_store *store, const wk_stacks *set, uint32_t depth,
                         wk_stacks_rest *rest);
bool wk_stacks_may_end(const wk_stacks *set);

#endif
