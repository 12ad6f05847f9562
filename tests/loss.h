/* tests/loss.h: a text of stories260K on a device that is lost on the way: what the tests of a lost
 * device share. */
#ifndef LOSS_H
#define LOSS_H

#include "checked_heap.h"

#include "tensor/device.h"

#include <wick/wick.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_TEXT = 8192 };

/* What a session gave: the same bytes each time. */
typedef struct told {
    char text[MAX_TEXT];
    size_t size;
    uint32_t n_tokens;
    wick_end_reason reason;
} told;

static inline const char *stories_path(void) {
    static char path[1024];
    snprintf(path, sizeof path, "%s/stories260K.gguf", getenv("WICK_TEST_DATA"));
    return path;
}

static inline void hear(told *it, const wick_event *event) {
    if (event->kind != WICK_EVENT_TOKEN && event->kind != WICK_EVENT_END) return;
    if (it->size + event->text_size <= MAX_TEXT)
        memcpy(it->text + it->size, event->text, event->text_size);
    it->size += event->text_size;
    it->n_tokens += event->kind == WICK_EVENT_TOKEN;
    it->reason = event->reason;
}

/* Greedy, with all that a sampler may remember of the text, and on a device that runs ahead. */
static const wick_session_desc tellers[] = {
    {.context_length = 256,
     .max_tokens = 200,
     .ignore_end = true,
     .speculate = WICK_SPECULATE_NONE},
    {.context_length = 256,
     .max_tokens = 200,
     .ignore_end = true,
     .chunk_length = 4,
     .n_logprobs = 2,
     .sampler = {.temperature = 0.9F,
                 .top_k = 50,
                 .top_p = 0.95F,
                 .repeat_penalty = 1.1F,
                 .dry_multiplier = 0.8F,
                 .xtc_probability = 0.3F,
                 .seed = 7}},
    {.context_length = 256,
     .max_tokens = 200,
     .ignore_end = true,
     .sampler = {.temperature = 0.8F, .mirostat_tau = 3, .seed = 11}},
    {.context_length = 256,
     .max_tokens = 200,
     .ignore_end = true,
     .sampler = {.temperature = 0.8F, .top_k = 40, .seed = 13},
     .speculate = WICK_SPECULATE_AHEAD},
};
enum { N_TELLERS = sizeof tellers / sizeof *tellers };

static const char prompt[] = "Once upon a time, there was a little girl named Lily";

#endif
