/* finetune/examples.h: the inside of examples. */
#ifndef WK_FINETUNE_EXAMPLES_H
#define WK_FINETUNE_EXAMPLES_H

#include "llm/llm.h"

#include <wick/chat.h>
#include <wick/finetune.h>

typedef struct wk_example {
    const uint32_t *ids;
    const uint8_t *is_learned; /* 1: yes; never of the first token */
    uint32_t n, n_learned;     /* n: 2 or more */
} wk_example;

typedef struct wk_example_place {
    size_t first;
    uint32_t n, n_learned;
} wk_example_place;

struct wick_examples {
    wk_heap heap;
    const wick_model *model;
    uint32_t context_length;
    uint32_t *ids;       /* [n_ids] of [capacity] of all examples */
    uint8_t *is_learned; /* likewise */
    size_t n_ids, capacity;
    wk_example_place *places; /* [n] of [n_places] */
    size_t n, n_places;
    wick_examples_info info;
    wick_template *template; /* NULL: not needed yet */
};

wk_example wk_example_at(const wick_examples *examples, size_t i);
/* Of all that training depends on. */
uint64_t wk_examples_checksum(const wick_examples *examples);

#endif
