/* usage: webgpu_shortlist [--backend webgpu] [options of webgpu_options.h]
 * A GPU gives back the best of the logits only, where the choice of a token needs no others: the
 * tokens are those of whole rows, and whoever wants the whole row later gets it. */
#include "golden/generation.h"
#include "llm/shortlist.h"
#include "tensor/device.h"
#include "webgpu_options.h"

#include <stdio.h>
#include <unistd.h>

enum { N_TOKENS = 24, MOST_TOKENS = 64 };

static wick_device_desc chosen = {.backend = WICK_BACKEND_WEBGPU, .strict = true};
static wick_device *device;
static wick_model *model;

static int set_up(void **state) {
    (void)state;
    char path[1024];
    snprintf(path, sizeof path, "%s/stories260K.gguf", getenv("WICK_TEST_DATA"));
    model = open_model(path, &chosen, &device);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    wick_model_close(model);
    give_back_device(device);
    return 0;
}

static wick_session *open_session(const wick_session_desc *desc) {
    wick_session *session;
    wick_error error = {0};
    if (wick_session_open(model, desc, &session, &error) != WICK_OK) fail_msg("%s", error.message);
    return session;
}

/* Goes on until there are n more tokens or the text ends; how many there were. */
static uint32_t go_on(wick_session *session, uint32_t n, uint32_t *tokens) {
    wick_event event = {0};
    for (uint32_t i = 0; i < n; i++) {
        do {
            if (wick_session_next(session, &event) != WICK_OK) fail_with_error(session);
            if (event.kind == WICK_EVENT_END) return i;
        } while (event.kind != WICK_EVENT_TOKEN);
        tokens[i] = event.token;
    }
    return n;
}

/* From a prompt; bytes_read: for each token. */
static uint32_t generate(const wick_session_desc *desc, uint32_t *tokens, uint64_t *bytes_read) {
    wick_session *const session = open_session(desc);
    assert_int_equal(wick_session_append_text(session, "Once upon a time"), WICK_OK);
    wick_device_stats before, after;
    wick_device_get_stats(device, &before);
    const uint32_t n = go_on(session, N_TOKENS, tokens);
    wick_device_get_stats(device, &after);
    *bytes_read = (after.bytes_read - before.bytes_read) / n;
    wick_session_close(session);
    return n;
}

static void test_same_tokens(void **state) {
    (void)state;
    static const wick_sampler_desc samplers[] = {
        {.temperature = 0},
        {.repeat_penalty = 1.2F, .frequency_penalty = 0.1F},
        {.temperature = 1, .top_k = 40, .top_p = 0.95F, .min_p = 0.01F, .seed = 3},
        {.temperature = 1.5F, .top_k = 50, .typical_p = 0.9F, .repeat_penalty = 1.1F, .seed = 4},
        {.temperature = 2, .top_k = 128, .xtc_probability = 0.5F, .seed = 5},
    };
    wick_model_info info;
    wick_model_get_info(model, &info);
    for (size_t i = 0; i < sizeof samplers / sizeof *samplers; i++) {
        uint32_t tokens[N_TOKENS], wanted[N_TOKENS];
        uint64_t n_short, n_whole;
        wick_session_desc desc = {
            .sampler = samplers[i], .ignore_end = true, .speculate = WICK_SPECULATE_NONE};
        assert_int_equal(generate(&desc, tokens, &n_short), N_TOKENS);
        desc.n_logprobs = 1; /* takes the whole row */
        assert_int_equal(generate(&desc, wanted, &n_whole), N_TOKENS);
        assert_memory_equal(tokens, wanted, sizeof tokens);
        assert_int_equal(n_short, WK_SHORTLIST_WORDS * sizeof(float));
        assert_int_equal(n_whole, info.n_vocab * sizeof(float));
    }
}

/* A session whose next token could be chosen from its shortlist at once. */
static wick_session *prepare(uint32_t *tokens) {
    wick_session *const session = open_session(&(wick_session_desc){.ignore_end = true});
    assert_int_equal(wick_session_append_text(session, "Once upon a time"), WICK_OK);
    assert_int_equal(go_on(session, 3, tokens), 3);
    wick_status status;
    while ((status = wick_session_prepare(session)) == WICK_PENDING) wick_pause(device);
    assert_int_equal(status, WICK_OK);
    return session;
}

/* Draws from the whole row, of which nearly all is as likely as the best. */
static const wick_session_desc wide = {.ignore_end = true,
                                       .sampler = {.temperature = 20, .seed = 4}};

static void check_wide(wick_session *session) {
    uint32_t tokens[MOST_TOKENS], wanted[MOST_TOKENS];
    assert_int_equal(wick_session_configure(session, &wide, NULL), WICK_OK);
    assert_int_equal(go_on(session, N_TOKENS, tokens), N_TOKENS);
    wick_session_close(session);

    wick_session *const other = open_session(&(wick_session_desc){.ignore_end = true});
    assert_int_equal(wick_session_append_text(other, "Once upon a time"), WICK_OK);
    assert_int_equal(go_on(other, 3, wanted), 3);
    assert_int_equal(wick_session_configure(other, &wide, NULL), WICK_OK);
    assert_int_equal(go_on(other, N_TOKENS, wanted), N_TOKENS);
    wick_session_close(other);
    assert_memory_equal(tokens, wanted, N_TOKENS * sizeof *tokens);
}

static void test_configured_behind_a_shortlist(void **state) {
    (void)state;
    uint32_t tokens[MOST_TOKENS];
    check_wide(prepare(tokens));
}

static wick_status take_bytes(void *user, const void *bytes, size_t size, wick_error *error) {
    (void)user, (void)bytes, (void)size, (void)error;
    return WICK_OK;
}

/* A row that failed to come for the sake of a saving is asked for again. */
static void test_row_fails_once(void **state) {
    (void)state;
    uint32_t tokens[MOST_TOKENS];
    wick_session *const session = prepare(tokens);
    wick_session_saving *saving;
    assert_int_equal(wick_session_save_start(session, take_bytes, NULL, &saving, NULL), WICK_OK);
    assert_int_equal(wick_session_save_poll(saving), WICK_PENDING);
    const wick_error reason = {.status = WICK_ERR_DEVICE, .message = "as if refused"};
    wk_fault_spoil_buffer(device, device->buffers, &reason); /* the newest one is the read's */
    wick_status status;
    while ((status = wick_session_save_poll(saving)) == WICK_PENDING) wick_pause(device);
    assert_int_equal(status, WICK_ERR_DEVICE);
    assert_int_equal(wick_session_save_finish(saving, NULL), status);
    assert_int_equal(wick_device_error(device, NULL), WICK_OK);
    check_wide(session);
}

/* The rest of the row is on its way when the session is reset. */
static void test_reset_meanwhile(void **state) {
    (void)state;
    uint32_t tokens[MOST_TOKENS], wanted[MOST_TOKENS];
    wick_session *const session = prepare(wanted);
    wick_event event;
    assert_int_equal(wick_session_configure(session, &wide, NULL), WICK_OK);
    assert_int_equal(wick_session_step(session, &event), WICK_OK);
    wick_session_reset(session);
    assert_int_equal(
        wick_session_configure(session, &(wick_session_desc){.ignore_end = true}, NULL), WICK_OK);
    assert_int_equal(wick_session_append_text(session, "Once upon a time"), WICK_OK);
    assert_int_equal(go_on(session, 3, tokens), 3);
    wick_session_close(session);
    assert_memory_equal(tokens, wanted, 3 * sizeof *tokens);
}

/* What is saved together with a shortlist has the whole row. */
static void test_saved_behind_a_shortlist(void **state) {
    (void)state;
    char path[64];
    snprintf(path, sizeof path, "webgpu_shortlist.%ld.session", (long)getpid());
    uint32_t tokens[MOST_TOKENS], wanted[MOST_TOKENS];
    wick_session *const session = prepare(tokens);
    wick_error error = {0};
    if (wick_session_save(session, path, &error) != WICK_OK) fail_msg("%s", error.message);
    assert_int_equal(wick_session_configure(session, &wide, NULL), WICK_OK);
    assert_int_equal(go_on(session, N_TOKENS, wanted), N_TOKENS);
    wick_session_close(session);

    wick_session *const loaded = open_session(&wide);
    if (wick_session_load(loaded, path, &error) != WICK_OK) fail_msg("%s", error.message);
    assert_int_equal(go_on(loaded, N_TOKENS, tokens), N_TOKENS);
    wick_session_close(loaded);
    remove(path);
    assert_memory_equal(tokens, wanted, N_TOKENS * sizeof *tokens);
}

int main(int argc, char **argv) {
    if (!parse_device(argc, argv, &chosen)) return 2;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_tokens),
        cmocka_unit_test(test_configured_behind_a_shortlist),
        cmocka_unit_test(test_row_fails_once),
        cmocka_unit_test(test_reset_meanwhile),
        cmocka_unit_test(test_saved_behind_a_shortlist),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
