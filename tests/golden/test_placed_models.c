/* usage: test_placed_models [--backend NAME] [options of webgpu_options.h]
 * Models of many kinds of layers in every division between the CPU and a device, which may be taken
 * away on the way: the tokens stay the same. The null backend, if not told otherwise. */
#include "golden/generation.h"
#include "golden/model_path.h"

#include "amount.h"
#include "backend/null/null.h"
#include "backend/webgpu/webgpu.h"
#include "tensor/device.h"
#include "webgpu_options.h"

enum { N_PROMPT = 20, N_NEW = 12, LOST_EACH = 4 };

/* Keys that layers share and inputs of each layer, states beside keys, states alone, experts. */
static const char *const models[] = {"gemma4", "qwen35",  "granite-hybrid",
                                     "mamba2", "gpt-oss", "falcon-h1"};

static wick_device_desc chosen = {
    .backend = WICK_BACKEND_NULL, .null_flags = WICK_NULL_LATE, .strict = true};

/* false: only some implementations of WebGPU can. */
static bool lose(wick_device *device) {
    if (chosen.backend == WICK_BACKEND_WEBGPU) return wk_webgpu_lose(device->handle);
    wk_null_lose_after(device->handle, 7);
    return true;
}

/* Greedy tokens after a prompt in chunks; has_losses: the device goes now and then. false: it
 * cannot be taken away. */
static bool generate(wick_model *model, bool has_losses, uint32_t out[N_NEW]) {
    const wick_session_desc desc = {
        .max_tokens = N_NEW, .ignore_end = true, .chunk_length = 8, .context_length = 64};
    wick_device *const device = wick_model_device(model);
    uint32_t prompt[N_PROMPT], n_out = 0;
    bool is_possible = true;
    wick_session *session;
    wick_event event;
    for (uint32_t i = 0; i < N_PROMPT; i++) prompt[i] = (i * 37 + 11) % 300;
    assert_int_equal(wick_session_open(model, &desc, &session, NULL), WICK_OK);
    assert_int_equal(wick_session_append_tokens(session, prompt, N_PROMPT), WICK_OK);
    do {
        if (wick_session_next(session, &event) != WICK_OK) fail_with_error(session);
        if (event.kind != WICK_EVENT_TOKEN) continue;
        out[n_out++] = event.token;
        if (has_losses && n_out % LOST_EACH == 1) is_possible = lose(device);
    } while (event.kind != WICK_EVENT_END && is_possible);
    assert_true(n_out == N_NEW || !is_possible);
    wick_session_close(session);
    return is_possible;
}

static void check_tokens(const char *name, uint32_t host_layers, const uint32_t *found,
                         const uint32_t *want) {
    for (uint32_t i = 0; i < N_NEW; i++)
        if (found[i] != want[i])
            fail_msg("%s, %u layers on the CPU: token %u is %u, not %u", name, host_layers, i,
                     found[i], want[i]);
}

/* With this many layers on the device; 0: on the CPU alone. false: it cannot be taken away. */
static bool check_division(const char *name, uint32_t device_layers, const uint32_t *want) {
    char path[1024];
    wick_device *device = NULL;
    wick_model *model = NULL;
    wick_error error = {0};
    wick_model_info info;
    wick_device_stats stats;
    uint32_t tokens[N_NEW];
    const wick_model_desc desc = {.device_layers = (int32_t)device_layers};
    make_path(name, path, sizeof path);
    if (borrow_device(&chosen, &device, &error) != WICK_OK ||
        wick_model_open(device, path, &desc, &model, &error) != WICK_OK)
        fail_msg("%s: %s", path, error.message);
    wick_model_get_info(model, &info);
    (void)generate(model, false, tokens);
    check_tokens(name, info.host_layers, tokens, want);
    const bool can_lose = generate(model, true, tokens);
    if (can_lose) check_tokens(name, info.host_layers, tokens, want);
    wick_device_get_stats(device, &stats);
    assert_true(!can_lose || info.host_layers == info.n_layers || stats.n_losses > 0);
    wick_model_close(model);
    give_back_device(device);
    return can_lose;
}

static void test_divisions(void **state) {
    (void)state;
    /* Drivers in software compile shaders for seconds, so `make test` takes every third model. */
    const size_t step = chosen.backend == WICK_BACKEND_WEBGPU && !tests_all() ? 3 : 1;
    for (size_t m = 0; m < WK_COUNT(models); m += step) {
        char path[1024];
        uint32_t want[N_NEW];
        wick_device *cpu;
        wick_model_info info;
        make_path(models[m], path, sizeof path);
        wick_model *const whole =
            open_model(path, &(wick_device_desc){.backend = WICK_BACKEND_CPU}, &cpu);
        wick_model_get_info(whole, &info);
        (void)generate(whole, false, want);
        wick_model_close(whole);
        give_back_device(cpu);
        /* Compiling what one more division needs takes drivers in software seconds. */
        const uint32_t least = chosen.backend == WICK_BACKEND_WEBGPU ? info.n_layers - 1 : 1;
        for (uint32_t n = least; n <= info.n_layers; n++)
            if (!check_division(models[m], n, want)) print_message("nothing was lost\n");
    }
}

int main(int argc, char **argv) {
    if (!parse_device(argc, argv, &chosen)) return 2;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_divisions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
