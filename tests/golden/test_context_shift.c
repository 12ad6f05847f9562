/* Texts longer than their context: what stays is computed like a text of its own, in every family.
 */
#include "golden/families.h"

#include <wick/wick.h>

enum { MOST_CONTEXT = 150, N_KEEP = 10, N_PROMPT = 40, N_LONG = 250, N_TOKENS = 210 };

static wick_device_desc chosen; /* backend AUTO: the CPU */
static uint32_t context;

static void fail_with(const wick_session *session) {
    wick_error error = {0};
    (void)wick_session_error(session, &error);
    fail_msg("%s", error.message);
}

static wick_session *open_session(wick_model *model, bool shifts) {
    const wick_session_desc desc = {.context_length = context,
                                    .chunk_length = 16,
                                    .max_tokens = shifts ? N_TOKENS : 0,
                                    .ignore_end = true,
                                    .context_shift = shifts,
                                    .n_keep = shifts ? N_KEEP : 0,
                                    .n_logprobs = 1,
                                    .no_reuse = !shifts};
    wick_session *session;
    wick_error error = {0};
    if (wick_session_open(model, &desc, &session, &error) != WICK_OK) fail_msg("%s", error.message);
    return session;
}

/* False: the text has ended. */
static bool next_token(wick_session *session, wick_logprob *out, wick_end_reason *reason) {
    wick_event event;
    do {
        if (wick_session_next(session, &event) != WICK_OK) fail_with(session);
    } while (event.kind == WICK_EVENT_PROMPT);
    if (event.kind == WICK_EVENT_TOKEN) *out = event.logprobs[0];
    *reason = event.reason;
    return event.kind == WICK_EVENT_TOKEN;
}

/* What a full context keeps: its first tokens and the newer half of the others; of the older half
 * whole blocks of 64 go, where there is one. */
static uint32_t cut(uint32_t *ids) {
    const uint32_t half = (context - N_KEEP) / 2, n = half > 64 ? 64 : half;
    memmove(ids + N_KEEP, ids + N_KEEP + n, (context - N_KEEP - n) * sizeof *ids);
    return context - n;
}

/* The session, which holds the n ids, generates what sessions without a shift give for what it
 * holds at each time. */
static void check_text(wick_model *model, wick_session *session, uint32_t *ids, uint32_t n) {
    wick_session *alone = open_session(model, false);
    wick_logprob found, want;
    wick_end_reason reason;
    uint32_t n_told = 0, n_shifts = 0;
    if (wick_session_append_tokens(alone, ids, n) != WICK_OK) fail_with(alone);
    while (next_token(session, &found, &reason)) {
        while (!next_token(alone, &want, &reason)) {
            assert_int_equal(reason, WICK_END_CONTEXT_FULL);
            assert_int_equal(n, context);
            n = cut(ids);
            n_shifts++;
            wick_session_reset(alone);
            if (wick_session_append_tokens(alone, ids, n) != WICK_OK) fail_with(alone);
        }
        assert_int_equal(found.id, want.id);
        assert_memory_equal(&found.logprob, &want.logprob, sizeof want.logprob);
        ids[n++] = found.id;
        n_told++;
    }
    assert_int_equal(reason, WICK_END_MAX_TOKENS);
    assert_int_equal(n_told, N_TOKENS);
    assert_true(n_shifts >= 2);
    size_t n_now;
    assert_memory_equal(wick_session_tokens(session, &n_now), ids, n * sizeof *ids);
    assert_int_equal(n_now, n);
    wick_session_close(alone);
}

static void check_model(wick_model *model) {
    wick_model_info info;
    wick_model_get_info(model, &info);
    uint32_t given[N_LONG], ids[MOST_CONTEXT];
    for (uint32_t i = 0; i < N_LONG; i++) given[i] = (i * 37 + i / 7 + 11) % info.n_vocab;
    memcpy(ids, given, N_PROMPT * sizeof *ids);
    wick_session *const session = open_session(model, true);
    if (wick_session_append_tokens(session, given, N_PROMPT) != WICK_OK) fail_with(session);
    check_text(model, session, ids, N_PROMPT);
    /* A prompt that does not fit, on its own and after others, leaves a quarter of the context. */
    const uint32_t most = context - (context - N_KEEP) / 4;
    wick_session_reset(session);
    for (uint32_t first = 0; first < 90; first += 80) {
        wick_session_reset(session);
        if (wick_session_append_tokens(session, given, first) != WICK_OK ||
            wick_session_append_tokens(session, given + first, N_LONG - first) != WICK_OK)
            fail_with(session);
        memcpy(ids, given, N_KEEP * sizeof *ids);
        memcpy(ids + N_KEEP, given + N_LONG - (most - N_KEEP), (most - N_KEEP) * sizeof *ids);
        check_text(model, session, ids, most);
    }
    wick_session_close(session);
}

static void test_fixture(void **state) {
    const fixture *const of = *state;
    if (of->is_encoder) return; /* an encoder generates nothing */
    wick_device *device;
    wick_model *model;
    wick_error error = {0};
    wick_device_desc desc = chosen;
    if (desc.backend == WICK_BACKEND_AUTO) desc.backend = WICK_BACKEND_CPU;
    assert_int_equal(wick_device_open(&desc, &device, NULL), WICK_OK);
    if (wick_model_open(device, of->path, NULL, &model, &error) != WICK_OK)
        fail_msg("%s", error.message);
    wick_model_info info;
    wick_model_get_info(model, &info);
    context = has_position_table(info.architecture) ? 96 : MOST_CONTEXT;
    check_model(model);
    static const wick_session_desc refused[] = {
        {.context_shift = true, .n_keep = 96, .context_length = 96},
        {.context_shift = true, .context_length = 96, .logits = WICK_LOGITS_ALL}};
    for (size_t i = 0; i < WK_COUNT(refused); i++) {
        wick_session *session;
        assert_int_equal(wick_session_open(model, &refused[i], &session, &error), WICK_ERR_VALUE);
        assert_null(session);
    }
    wick_model_close(model);
    wick_device_close(device);
}

int main(int argc, char **argv) {
    chosen.strict = true; /* of WebGPU: no operation may fall back */
    if (!parse_device(argc, argv, &chosen)) return 2;
    return test_some_fixtures("context shift", test_fixture, tests_all() ? 1 : 3);
}
