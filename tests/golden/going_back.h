/* golden/going_back.h: sessions of models that keep less than everything: the same bits whatever
 * the chunk, on the device that the options ask for, and tokens that change. */
#ifndef WK_TESTS_GOLDEN_GOING_BACK_H
#define WK_TESTS_GOLDEN_GOING_BACK_H

#include "golden/generation.h"
#include "golden/model_path.h"

#include "webgpu_options.h"

/* What the options ask for; WICK_BACKEND_AUTO: the CPU. */
static wick_device_desc chosen;

static inline wick_device_desc device_desc(void) {
    if (chosen.backend == WICK_BACKEND_WEBGPU) return chosen;
    return (wick_device_desc){.backend = WICK_BACKEND_CPU};
}

/* On the CPU by every instruction set. */
static inline void check_chunks(const char *path, const uint32_t *ids, uint32_t n) {
    static const uint32_t chunks[] = {3, 16, 512};
    if (chosen.backend != WICK_BACKEND_WEBGPU) {
        check_same_bits(path, ids, n);
        return;
    }
    wick_device *device;
    wick_model *const model = open_model(path, &chosen, &device);
    wick_model_info info;
    wick_model_get_info(model, &info);
    float *const want = all_logits(model, 1, ids, n);
    for (size_t c = 0; c < WK_COUNT(chunks); c++) {
        float *const found = all_logits(model, chunks[c], ids, n);
        assert_memory_equal(found, want, (size_t)n * info.n_vocab * sizeof *want);
        free(found);
    }
    free(want);
    wick_model_close(model);
    give_back_device(device);
}

/* Greedy tokens that follow the session's. */
static inline void generate(wick_session *session, uint32_t *out, uint32_t n) {
    uint32_t n_out = 0;
    wick_event event;
    do {
        if (wick_session_next(session, &event) != WICK_OK) fail_with_error(session);
        if (event.kind == WICK_EVENT_TOKEN) out[n_out++] = event.token;
    } while (event.kind != WICK_EVENT_END);
    assert_int_equal(n_out, n);
}

static inline uint64_t n_reused(const wick_session *session) {
    wick_session_stats stats;
    wick_session_get_stats(session, &stats);
    return stats.n_reused;
}

static inline void sync_and_compare(wick_model *model, wick_session *session, const uint32_t *ids,
                                    uint32_t n, uint64_t reused) {
    enum { N_NEW = 4 };
    const wick_session_desc desc = {
        .context_length = n + N_NEW, .max_tokens = N_NEW, .ignore_end = true};
    uint32_t want[N_NEW], found[N_NEW];
    wick_session *fresh;
    assert_int_equal(wick_session_open(model, &desc, &fresh, NULL), WICK_OK);
    assert_int_equal(wick_session_append_tokens(fresh, ids, n), WICK_OK);
    generate(fresh, want, N_NEW);
    wick_session_close(fresh);
    const uint64_t before = n_reused(session);
    assert_int_equal(wick_session_sync_tokens(session, ids, n), WICK_OK);
    assert_int_equal(n_reused(session) - before, reused);
    generate(session, found, N_NEW);
    assert_memory_equal(found, want, sizeof want);
}

#endif
