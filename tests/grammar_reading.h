/* tests/grammar_reading.h: a grammar that texts are read by, byte for byte, without a vocabulary.
 */
#ifndef GRAMMAR_READING_H
#define GRAMMAR_READING_H

#include "grammar/gbnf.h"
#include "grammar/program.h"
#include "grammar/stacks.h"

typedef struct reading {
    wk_heap *heap; /* NULL: own */
    wk_heap own;
    wk_arena arena;
    wk_rules rules;
    wk_program program;
    wk_stacks_store store;
} reading;

/* Of rules that have been read. Everything is freed on failure. */
static inline wick_status start_reading(reading *r, wick_status status, wick_error *error) {
    if (status == WICK_OK) status = wk_program_make(r->heap, &r->rules, &r->program, error);
    if (status == WICK_OK) {
        status = wk_stacks_store_make(r->heap, &r->program, &r->store, error);
        if (status != WICK_OK) wk_program_free(&r->program);
    }
    if (status != WICK_OK) wk_arena_release(&r->arena);
    return status;
}

static inline void begin_reading(reading *r, wk_heap *heap) {
    *r = (reading){.heap = heap};
    if (!heap) wk_heap_init(&r->own, NULL);
    if (!heap) r->heap = &r->own;
    wk_arena_init(&r->arena, r->heap, 0);
    r->rules.arena = &r->arena;
}

/* r->heap: where from. */
static inline wick_status open_reading(reading *r, wk_str gbnf, wick_error *error) {
    begin_reading(r, r->heap);
    return start_reading(r, wk_gbnf_parse(&r->rules, NULL, gbnf, error), error);
}

static inline wick_status try_gbnf(reading *r, wk_str gbnf, wick_error *error) {
    r->heap = NULL;
    return open_reading(r, gbnf, error);
}

static inline void close_reading(reading *r) {
    wk_stacks_store_free(&r->store);
    wk_program_free(&r->program);
    wk_arena_release(&r->arena);
}

/* NULL: the store has failed. */
static inline wk_stacks *read_byte(reading *r, wk_stacks *at, uint8_t byte) {
    const uint32_t byte_class = r->program.class_of[byte];
    wk_stacks *const known = at->next[byte_class];
    return known ? known : wk_stacks_read(&r->store, at, byte_class);
}

/* Whether the whole text is one of the grammar. */
static inline bool reads(reading *r, wk_str text) {
    wk_stacks *at = r->store.start;
    for (size_t i = 0; i < text.size && at; i++) at = read_byte(r, at, (uint8_t)text.text[i]);
    return at && wk_stacks_may_end(at);
}

#endif
