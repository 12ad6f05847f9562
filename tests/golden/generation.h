/* golden/generation.h: fixtures of other implementations, and running a model against them. */
#ifndef WK_TESTS_GOLDEN_GENERATION_H
#define WK_TESTS_GOLDEN_GENERATION_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/json.h"
#include "core/half.h"
#include "kept_devices.h"
#include "sys/cpu_features.h"
#include "sys/file.h"

#include <wick/wick.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- Fixtures --- */

typedef struct fixture {
    wk_heap heap;
    wk_arena arena;
    wk_json *root;
} fixture;

static inline bool load_json(fixture *f, const char *folder, const char *name) {
    char path[1100];
    wk_heap_init(&f->heap, NULL);
    wk_arena_init(&f->arena, &f->heap, 0);
    snprintf(path, sizeof path, "%s/%s", folder, name);
    wk_file *file;
    wick_error error = {0};
    if (wk_file_open(&f->heap, path, &file, &error) != WICK_OK) {
        print_message("%s\n", error.message);
        return false;
    }
    const size_t size = (size_t)wk_file_size(file);
    char *const text = wk_arena_alloc(&f->arena, size);
    assert_int_equal(wk_file_read_at(file, 0, text, size, &error), WICK_OK);
    wk_file_close(&f->heap, file);
    assert_int_equal(wk_json_parse(&f->arena, text, size, &f->root, &error), WICK_OK);
    return true;
}

static inline uint32_t *ids_of(fixture *f, const wk_json *array, uint32_t *n) {
    *n = (uint32_t)array->count;
    uint32_t *const ids = wk_arena_array(&f->arena, array->count, sizeof *ids);
    uint32_t i = 0;
    for (const wk_json *item = array->child; item; item = item->next)
        ids[i++] = (uint32_t)item->integer;
    return ids;
}

/* --- Running --- */

static inline wick_model *open_model(const char *path, const wick_device_desc *desc,
                                     wick_device **device) {
    wick_error error = {0};
    wick_model *model = NULL;
    if (borrow_device(desc, device, &error) != WICK_OK ||
        wick_model_open(*device, path, NULL, &model, &error) != WICK_OK)
        fail_msg("%s: %s", path, error.message);
    return model;
}

static inline void fail_with_error(const wick_session *session) {
    wick_error error = {0};
    (void)wick_session_error(session, &error);
    fail_msg("%s", error.message);
}

/* Greedy tokens after a prompt; compares with want. */
static inline void check_greedy(wick_model *model, wick_session_desc desc, const uint32_t *prompt,
                                uint32_t n_prompt, const uint32_t *want, uint32_t n_want) {
    wick_session *session;
    wick_error error = {0};
    desc.max_tokens = n_want;
    if (wick_session_open(model, &desc, &session, &error) != WICK_OK) fail_msg("%s", error.message);
    if (wick_session_append_tokens(session, prompt, n_prompt) != WICK_OK) fail_with_error(session);
    wick_event event;
    do {
        if (wick_session_next(session, &event) != WICK_OK) fail_with_error(session);
    } while (event.kind != WICK_EVENT_END);
    size_t n;
    const uint32_t *const tokens = wick_session_tokens(session, &n);
    for (uint32_t i = 0; i < n_want && n_prompt + i < n; i++)
        if (tokens[n_prompt + i] != want[i])
            fail_msg("token %u of %u is %u, expected %u", i, n_want, tokens[n_prompt + i], want[i]);
    assert_int_equal(n, n_prompt + n_want);
    wick_session_close(session);
}

static const wick_isa isas[] = {WICK_ISA_REF, WICK_ISA_AVX2, WICK_ISA_AVX512};

static inline bool has_isa(wick_isa isa) {
    const uint32_t features = wk_cpu_features();
    if (isa == WICK_ISA_AVX2) return features & WK_CPU_AVX2;
    if (isa == WICK_ISA_AVX512) return features & WK_CPU_AVX512;
    return true;
}

/* Calls with the logits after each token of a sequence, [n_vocab]. */
static inline void each_logits(wick_model *model, uint32_t chunk, const uint32_t *ids, uint32_t n,
                               void (*call)(void *user, uint32_t position, const float *row),
                               void *user) {
    wick_session *session;
    const wick_session_desc desc = {
        .context_length = n, .chunk_length = chunk, .logits = WICK_LOGITS_ALL};
    assert_int_equal(wick_session_open(model, &desc, &session, NULL), WICK_OK);
    assert_int_equal(wick_session_append_tokens(session, ids, n), WICK_OK);
    uint32_t seen = 0;
    wick_event event;
    do {
        if (wick_session_next(session, &event) != WICK_OK) fail_with_error(session);
        if (event.kind != WICK_EVENT_LOGITS) continue;
        assert_int_equal(event.position, seen);
        call(user, seen++, event.logits);
    } while (event.kind != WICK_EVENT_END);
    assert_int_equal(event.reason, WICK_END_PROMPT);
    assert_int_equal(seen, n);
    wick_session_close(session);
}

typedef struct kept_rows {
    float *rows;
    size_t n_vocab;
} kept_rows;

static inline void keep_row(void *user, uint32_t position, const float *row) {
    const kept_rows *const kept = user;
    memcpy(kept->rows + position * kept->n_vocab, row, kept->n_vocab * sizeof *row);
}

/* All logits of a sequence, [n, n_vocab], malloc'ed. */
static inline float *all_logits(wick_model *model, uint32_t chunk, const uint32_t *ids,
                                uint32_t n) {
    wick_model_info info;
    wick_model_get_info(model, &info);
    kept_rows kept = {malloc((size_t)n * info.n_vocab * sizeof(float)), info.n_vocab};
    assert_non_null(kept.rows);
    each_logits(model, chunk, ids, n, keep_row, &kept);
    return kept.rows;
}

/* Exact mode: a chunked prefill gives the bits of single steps, regardless of the chunk. */
static inline void check_same_bits(const char *path, const uint32_t *ids, uint32_t n) {
    static const uint32_t chunks[] = {2, 5, 16, 64, 512};
    for (size_t i = 0; i < sizeof isas / sizeof *isas; i++) {
        if (!has_isa(isas[i])) continue;
        wick_device *device;
        const wick_device_desc desc = {.backend = WICK_BACKEND_CPU, .isa = isas[i]};
        wick_model *const model = open_model(path, &desc, &device);
        wick_model_info info;
        wick_model_get_info(model, &info);
        const bool takes_minutes = isas[i] == WICK_ISA_REF && info.n_vocab > 10000;
        float *const single = takes_minutes ? NULL : all_logits(model, 1, ids, n);
        for (size_t c = 0; c < sizeof chunks / sizeof *chunks && !takes_minutes; c++) {
            float *const chunked = all_logits(model, chunks[c], ids, n);
            const size_t count = (size_t)n * info.n_vocab;
            for (size_t k = 0; k < count; k++)
                if (wk_f32_bits(single[k]) != wk_f32_bits(chunked[k]))
                    fail_msg("isa %d, chunk %u: logit %zu of row %zu is %a, alone %a", (int)isas[i],
                             chunks[c], k % info.n_vocab, k / info.n_vocab, (double)chunked[k],
                             (double)single[k]);
            free(chunked);
        }
        free(single);
        wick_model_close(model);
        give_back_device(device);
    }
}

#endif
