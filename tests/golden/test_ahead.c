/* usage: test_ahead [--backend webgpu --webgpu-lib LIBRARY ...]
 *
 * A device that draws tokens and computes on, before the sampler has chosen, changes no text:
 * of several families and kinds of choice, where it guesses wrong, where nothing comes of a row of
 * logits, and where a session does something else in between. */
#define _POSIX_C_SOURCE 200809L
#include "golden/going_back.h"

#include "backend/null/null.h"
#include "llm/session_struct.h"
#include "tensor/device.h"

#include <unistd.h>

enum { MOST_TOKENS = 200, N_TEXT = 2048 };

typedef struct story {
    uint32_t tokens[MOST_TOKENS], n;
    char text[N_TEXT];
    size_t size;
    wick_end_reason reason;
    wick_session_stats stats;
    uint64_t n_reads;
} story;

static const uint32_t prompt[] = {310, 261, 290, 278};

static wick_device_desc apart(void) {
    if (chosen.backend == WICK_BACKEND_WEBGPU) return chosen;
    return (wick_device_desc){.backend = WICK_BACKEND_NULL,
                              .null_flags = WICK_NULL_LATE | WICK_NULL_OUT_OF_ORDER};
}

static wick_model *open_stories(wick_device **device) {
    const wick_device_desc desc = apart();
    char path[1024];
    snprintf(path, sizeof path, "%s/stories260K.gguf", getenv("WICK_TEST_DATA"));
    return open_model(path, &desc, device);
}

static wick_session *open_session(wick_model *model, const wick_session_desc *desc) {
    wick_session *session;
    wick_error error = {0};
    if (wick_session_open(model, desc, &session, &error) != WICK_OK) fail_msg("%s", error.message);
    return session;
}

/* Up to n tokens more, or the end. */
static void go_on(wick_session *session, uint32_t n, story *out) {
    wick_event event = {.kind = WICK_EVENT_PENDING};
    const uint32_t end = out->n + n;
    while (out->n < end && event.kind != WICK_EVENT_END) {
        if (wick_session_next(session, &event) != WICK_OK) fail_with_error(session);
        assert_true(out->size + event.text_size < N_TEXT && out->n < MOST_TOKENS);
        memcpy(out->text + out->size, event.text, event.text_size);
        out->size += event.text_size;
        if (event.kind == WICK_EVENT_TOKEN) out->tokens[out->n++] = event.token;
        if (event.kind == WICK_EVENT_END) out->reason = event.reason;
    }
    wick_session_get_stats(session, &out->stats);
}

static void tell(wick_model *model, wick_device *device, const wick_session_desc *desc,
                 story *out) {
    wick_session *const session = open_session(model, desc);
    wick_device_stats before, after;
    *out = (story){.n = 0};
    assert_int_equal(wick_session_append_tokens(session, prompt, WK_COUNT(prompt)), WICK_OK);
    wick_device_get_stats(device, &before);
    go_on(session, MOST_TOKENS, out);
    wick_device_get_stats(device, &after);
    out->n_reads = after.n_reads - before.n_reads;
    wick_session_close(session);
}

static void expect_same(const story *got, const story *want) {
    assert_int_equal(got->n, want->n);
    assert_memory_equal(got->tokens, want->tokens, want->n * sizeof *want->tokens);
    assert_int_equal(got->size, want->size);
    assert_memory_equal(got->text, want->text, want->size);
    assert_int_equal(got->reason, want->reason);
    assert_int_equal(got->stats.n_generated, want->stats.n_generated);
    assert_int_equal(got->stats.n_context, want->stats.n_context);
}

/* With and without; got: of the former. */
static void compare(wick_model *model, wick_device *device, wick_session_desc desc, story *got) {
    static story want;
    desc.speculate = WICK_SPECULATE_NONE;
    tell(model, device, &desc, &want);
    assert_int_equal(want.stats.n_drafted, 0);
    desc.speculate = WICK_SPECULATE_AHEAD;
    tell(model, device, &desc, got);
    expect_same(got, &want);
    desc.speculate = WICK_SPECULATE_AUTO;
    static story also;
    tell(model, device, &desc, &also);
    expect_same(&also, &want);
}

/* --- Kinds of choice --- */

static const char *const stops[] = {"the end", " she said"};

static const wick_session_desc right[] = {
    {.max_tokens = 60},
    {.max_tokens = 60, .sampler = {.top_k = 200}}, /* of no use without a temperature */
    {.context_length = 48, .ignore_end = true},    /* to the end of the context */
    {.context_length = 64, .context_shift = true, .ignore_end = true, .max_tokens = 150},
    {.max_tokens = 120, .stop = stops, .n_stop = 2},
    {.max_tokens = 60, .sampler = {.temperature = 0.8F, .top_k = 40, .seed = 3}},
    {.max_tokens = 60, .sampler = {.temperature = 1.5F, .top_k = 128, .top_p = 0.9F, .seed = 4}},
    {.max_tokens = 60, .sampler = {.temperature = 2, .top_k = 60, .min_p = 0.1F, .seed = 5}},
};

/* A device knows nothing of penalties, nor of these filters. */
static const wick_session_desc wrong[] = {
    {.max_tokens = 60, .sampler = {.repeat_penalty = 1.3F, .repeat_last = 32}},
    {.max_tokens = 60, .sampler = {.temperature = 1.5F, .top_k = 90, .typical_p = 0.6F, .seed = 6}},
    {.max_tokens = 60,
     .chunk_length = 3,
     .sampler = {.temperature = 1,
                 .top_k = 40,
                 .xtc_probability = 0.5F,
                 .xtc_threshold = 0.1F,
                 .seed = 7}},
};

static void test_choices(void **state) {
    (void)state;
    static story got;
    wick_device *device;
    wick_model *const model = open_stories(&device);
    for (size_t i = 0; i < WK_COUNT(right); i++) {
        compare(model, device, right[i], &got);
        assert_true(got.stats.n_accepted > got.n / 2);
        assert_true(got.stats.n_accepted + WK_MOST_STEPS > got.stats.n_drafted);
        assert_true(got.n_reads < got.n / 2);
    }
    for (size_t i = 0; i < WK_COUNT(wrong); i++) {
        compare(model, device, wrong[i], &got);
        assert_true(got.stats.n_accepted > 0 && got.stats.n_drafted > got.stats.n_accepted);
    }
    /* No more than the text has room for. */
    for (uint32_t n = 1; n <= 2 * WK_MOST_STEPS + 1; n++) {
        compare(model, device, (wick_session_desc){.max_tokens = n, .ignore_end = true}, &got);
        assert_int_equal(got.n, n);
        assert_int_equal(got.stats.n_drafted, got.stats.n_accepted);
    }
    wick_model_close(model);
    give_back_device(device);
}

/* Choices that may need all logits do not run ahead, nor does a device whose memory is at hand. */
static void test_not_ahead(void **state) {
    (void)state;
    static const wick_session_desc others[] = {
        {.max_tokens = 12, .n_logprobs = 1},
        {.max_tokens = 12, .sampler = {.temperature = 1, .top_k = 129, .seed = 3}},
        {.max_tokens = 12, .sampler = {.grammar = "root ::= [a-z ]+"}},
    };
    static story got;
    wick_device *device;
    wick_model *model = open_stories(&device);
    for (size_t i = 0; i < WK_COUNT(others); i++) {
        compare(model, device, others[i], &got);
        assert_int_equal(got.stats.n_drafted, 0);
    }
    wick_model_close(model);
    give_back_device(device);
    char path[1024];
    snprintf(path, sizeof path, "%s/stories260K.gguf", getenv("WICK_TEST_DATA"));
    model = open_model(path, &(wick_device_desc){.backend = WICK_BACKEND_CPU}, &device);
    compare(model, device, right[0], &got);
    assert_int_equal(got.stats.n_drafted, 0);
    wick_model_close(model);
    give_back_device(device);
}

/* --- Families --- */

static void test_families(void **state) {
    (void)state;
    static const char *const names[] = {"llama", "gemma3", "qwen35", "mamba2", "granite-hybrid"};
    for (size_t i = 0; i < WK_COUNT(names); i++) {
        static story got;
        char path[1024];
        wick_device *device;
        make_path(names[i], path, sizeof path);
        const wick_device_desc desc = apart();
        wick_model *const model = open_model(path, &desc, &device);
        wick_session_desc of = {.context_length = 128, .max_tokens = 60, .ignore_end = true};
        compare(model, device, of, &got);
        assert_int_equal(got.stats.n_drafted, got.stats.n_accepted);
        of.sampler = (wick_sampler_desc){.frequency_penalty = 1, .repeat_last = 32};
        compare(model, device, of, &got);
        assert_true(got.stats.n_drafted > got.stats.n_accepted);
        wick_model_close(model);
        give_back_device(device);
    }
}

/* --- Logits that say nothing --- */

/* A copy of the stories in which the logit of token 20 is never a number. */
static void write_without_number(const char *path) {
    char from[1024];
    snprintf(from, sizeof from, "%s/stories260K.gguf", getenv("WICK_TEST_DATA"));
    wick_file *file;
    assert_int_equal(wick_file_open(from, &file, NULL), WICK_OK);
    size_t i = 0;
    while (strcmp(wick_file_get_tensor(file, i)->name.text, "token_embd.weight") != 0) i++;
    const wick_file_tensor *const tensor = wick_file_get_tensor(file, i);
    const size_t row = tensor->size / (size_t)tensor->shape.extent[0];
    const float none = NAN;
    FILE *const in = fopen(from, "rb"), *const out = fopen(path, "wb");
    for (int c = fgetc(in); c != EOF; c = fgetc(in)) fputc(c, out);
    assert_int_equal(fseek(out, (long)(tensor->offset + 20 * row), SEEK_SET), 0);
    assert_int_equal(fwrite(&none, sizeof none, 1, out), 1);
    fclose(in);
    fclose(out);
    wick_file_close(file);
}

/* It then goes on token by token. */
static void test_without_number(void **state) {
    (void)state;
    static story got;
    char path[64];
    wick_device *device;
    const wick_device_desc desc = apart();
    snprintf(path, sizeof path, "/tmp/wick_ahead_%ld.gguf", (long)getpid());
    write_without_number(path);
    wick_model *const model = open_model(path, &desc, &device);
    compare(model, device, right[0], &got);
    assert_int_equal(got.stats.n_drafted, 0);
    assert_int_equal(got.n, 60);
    wick_model_close(model);
    give_back_device(device);
    (void)unlink(path);
}

/* --- In between --- */

/* A fork wants the logits of its last token whole, a second session waits for the device, and
 * tokens take the place of guesses. */
static void test_in_between(void **state) {
    (void)state;
    static const wick_session_desc plain = {.ignore_end = true, .speculate = WICK_SPECULATE_NONE};
    static const wick_session_desc ahead = {.ignore_end = true, .speculate = WICK_SPECULATE_AHEAD};
    static story got[2], want;
    wick_device *device;
    wick_model *const model = open_stories(&device);
    for (uint32_t n = 1; n <= WK_MOST_STEPS + 1; n++) {
        wick_session *const first = open_session(model, &ahead);
        wick_session *second;
        got[0] = got[1] = want = (story){.n = 0};
        assert_int_equal(wick_session_append_tokens(first, prompt, WK_COUNT(prompt)), WICK_OK);
        go_on(first, n, &got[0]);
        assert_int_equal(wick_session_fork(first, &ahead, &second, NULL), WICK_OK);
        for (uint32_t i = 0; i < 20; i++)
            for (int s = 0; s < 2; s++) go_on(s == 0 ? first : second, 1, &got[s]);
        assert_true(n == 1 || got[0].stats.n_drafted >= WK_MOST_STEPS - 1);
        assert_int_equal(wick_session_append_tokens(first, prompt, 2), WICK_OK);
        wick_session_close(second);
        go_on(first, 20, &got[0]);

        wick_session *const alone = open_session(model, &plain);
        assert_int_equal(wick_session_append_tokens(alone, prompt, WK_COUNT(prompt)), WICK_OK);
        go_on(alone, n + 20, &want);
        assert_memory_equal(got[1].tokens, want.tokens + n, 20 * sizeof *want.tokens);
        assert_int_equal(wick_session_append_tokens(alone, prompt, 2), WICK_OK);
        go_on(alone, 20, &want);
        assert_int_equal(got[0].n, want.n);
        assert_memory_equal(got[0].tokens, want.tokens, want.n * sizeof *want.tokens);
        wick_session_close(alone);
        wick_session_close(first);
    }
    wick_model_close(model);
    give_back_device(device);
}

/* After a loss all that a session with guesses has computed is found in the cache, where another
 * one has computed the same text again. Its guesses then come back while a third one has a prompt
 * to read, and are left out. */
static void test_found_again(void **state) {
    (void)state;
    enum { N_FIRST = 70, N_SECOND = 140, N_REST = 24 };
    static story got[3], want[3];
    wick_device *device;
    if (chosen.backend == WICK_BACKEND_WEBGPU) {
        print_message("only the null device can be lost on demand\n");
        skip();
    }
    wick_model *const model = open_stories(&device);
    wick_session *sessions[3], *alone;
    static const uint32_t other[] = {290, 310, 278, 261, 300, 270, 310, 290, 261, 305};
    for (int i = 0; i < 3; i++) {
        wick_session_desc desc = {.ignore_end = true, .speculate = WICK_SPECULATE_NONE};
        const uint32_t n = i == 2 ? WK_COUNT(other) : WK_COUNT(prompt);
        alone = open_session(model, &desc);
        got[i] = want[i] = (story){.n = 0};
        assert_int_equal(wick_session_append_tokens(alone, i == 2 ? other : prompt, n), WICK_OK);
        go_on(alone, N_SECOND + WK_MOST_STEPS + N_REST, &want[i]);
        wick_session_close(alone);
        if (i == 0) desc.speculate = WICK_SPECULATE_AHEAD;
        sessions[i] = open_session(model, &desc);
        if (i == 2) continue;
        assert_int_equal(wick_session_append_tokens(sessions[i], prompt, n), WICK_OK);
    }
    go_on(sessions[1], N_SECOND, &got[1]);
    while (got[0].n < N_FIRST || !sessions[0]->has_logits || sessions[0]->n_ahead == 0)
        go_on(sessions[0], 1, &got[0]);
    assert_true(got[0].n < N_FIRST + WK_MOST_STEPS);
    wk_null_lose_after(device->handle, 1);
    go_on(sessions[1], 3, &got[1]);
    assert_true(sessions[0]->has_logits); /* it still has tokens to choose */
    assert_int_equal(wick_session_append_tokens(sessions[2], other, WK_COUNT(other)), WICK_OK);
    go_on(sessions[0], WK_MOST_STEPS, &got[0]);
    for (uint32_t n = 0; n < N_REST; n++)
        for (int i = 0; i < 3; i++) go_on(sessions[i], 1, &got[i]);
    for (int i = 0; i < 3; i++) {
        assert_memory_equal(got[i].tokens, want[i].tokens, got[i].n * sizeof *want[i].tokens);
        wick_session_close(sessions[i]);
    }
    wick_model_close(model);
    give_back_device(device);
}

/* The sampler becomes one that may need any logit, at each place of a batch. */
static void test_configured(void **state) {
    (void)state;
    static const wick_session_desc wide = {.ignore_end = true,
                                           .sampler = {.temperature = 3, .seed = 9}};
    static story got, want;
    wick_device *device;
    wick_model *const model = open_stories(&device);
    for (uint32_t n = 1; n <= WK_MOST_STEPS + 1; n++) {
        for (int i = 0; i < 2; i++) {
            story *const told = i == 0 ? &want : &got;
            const wick_session_desc desc = {.ignore_end = true,
                                            .speculate = i == 0 ? WICK_SPECULATE_NONE
                                                                : WICK_SPECULATE_AHEAD};
            wick_session *const session = open_session(model, &desc);
            *told = (story){.n = 0};
            assert_int_equal(wick_session_append_tokens(session, prompt, WK_COUNT(prompt)),
                             WICK_OK);
            go_on(session, n, told);
            assert_int_equal(wick_session_configure(session, &wide, NULL), WICK_OK);
            go_on(session, 20, told);
            wick_session_close(session);
        }
        assert_int_equal(got.n, want.n);
        assert_memory_equal(got.tokens, want.tokens, want.n * sizeof *want.tokens);
    }
    wick_model_close(model);
    give_back_device(device);
}

/* --- Prefixes --- */

static wick_status drop(void *user, const void *bytes, size_t size, wick_error *error) {
    (void)user, (void)bytes, (void)size, (void)error;
    return WICK_OK;
}

static void save_prefixes(wick_model *model) {
    wick_prefixes *prefixes;
    assert_int_equal(wick_prefixes_save_start(model, drop, NULL, &prefixes, NULL), WICK_OK);
    while (wick_prefixes_poll(prefixes) == WICK_PENDING) continue;
    assert_int_equal(wick_prefixes_finish(prefixes, NULL), WICK_OK);
}

/* Prefixes are saved while guesses wait to be looked at, of any kind: they do not belong to what
 * others may find. The text is computed again and again, from what was found of it. */
static void check_prefixes(wick_model *model, wick_speculate speculate) {
    static story got, want;
    const wick_session_desc plain = {.ignore_end = true, .speculate = WICK_SPECULATE_NONE};
    wick_session_desc desc = plain;
    desc.speculate = speculate;
    wick_session *session = open_session(model, &plain);
    want = (story){.n = 0};
    assert_int_equal(wick_session_append_tokens(session, prompt, WK_COUNT(prompt)), WICK_OK);
    go_on(session, MOST_TOKENS, &want);
    wick_session_close(session);
    session = open_session(model, &desc);
    uint32_t n_saved = 0;
    for (uint32_t n = 0; n < MOST_TOKENS; n += 50) {
        wick_session_reset(session);
        assert_int_equal(wick_session_append_tokens(session, prompt, WK_COUNT(prompt)), WICK_OK);
        if (n > 0) assert_int_equal(wick_session_append_tokens(session, want.tokens, n), WICK_OK);
        got = (story){.n = 0};
        while (n + got.n < MOST_TOKENS) {
            go_on(session, 1, &got);
            if (session->n_ahead == 0) continue;
            n_saved++;
            save_prefixes(model);
        }
        assert_memory_equal(got.tokens, want.tokens + n, got.n * sizeof *want.tokens);
    }
    assert_true(n_saved > 10);
    wick_session_close(session);
}

static void test_prefixes(void **state) {
    (void)state;
    wick_device *device;
    wick_model *const model = open_stories(&device);
    check_prefixes(model, WICK_SPECULATE_AHEAD);
    check_prefixes(model, WICK_SPECULATE_NGRAM);
    wick_model_close(model);
    give_back_device(device);
}

int main(int argc, char **argv) {
    chosen.strict = true; /* of WebGPU: no operation may fall back */
    if (!parse_device(argc, argv, &chosen)) return 2;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_choices),    cmocka_unit_test(test_not_ahead),
        cmocka_unit_test(test_families),   cmocka_unit_test(test_without_number),
        cmocka_unit_test(test_in_between), cmocka_unit_test(test_prefixes),
        cmocka_unit_test(test_configured), cmocka_unit_test(test_found_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
