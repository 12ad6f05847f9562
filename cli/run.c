/* run.c: `wick run`: continues a text. Standard output holds the continuation alone. */
#define _POSIX_C_SOURCE 200809L

#include "cli.h"
#include "engine.h"
#include "input.h"
#include "interrupt.h"
#include "statistics.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct run_options {
    cli_engine_options engine; /* first, see engine.h */
    const char *model;
    const char *prompt, *file, *tokens; /* at most one */
    uint32_t max_tokens, context_length, chunk_length;
    int cache; /* wick_cache */
    wick_sampler_desc sampler;
    cli_texts stop;
    bool ignore_end, special, print_ids, quiet;
} run_options;

static_assert(offsetof(run_options, engine) == 0, "offsets of cli_engine_group");
static_assert(WICK_CACHE_AUTO == 0 && WICK_CACHE_F32 == 1 && WICK_CACHE_F16 == 2,
              "words of --cache");

static const char default_prompt[] = "Once upon a time"; /* of the model inside the command */

static void set_defaults(void *given) {
    run_options *const o = given;
    o->engine.math = WICK_MATH_FAST;
    o->sampler = (wick_sampler_desc){
        .temperature = 0.8F, .top_k = 40, .top_p = 0.95F, .repeat_penalty = 1, .repeat_last = 64};
    o->chunk_length = 512;
}

#define FIELD(member) .offset = offsetof(run_options, member)
