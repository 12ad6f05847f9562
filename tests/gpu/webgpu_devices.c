/* usage: webgpu_devices [--backend webgpu] [options of webgpu_options.h]
 * Two WebGPU devices and the CPU at once: a balancer shares sessions out, which compute
 * alternately; each gives the tokens of the fixture. Devices that are closed leave nothing behind.
 */
#include "golden/generation.h"
#include "webgpu_options.h"

#include <dirent.h>

enum { N = 3, TOKENS = 40 };

static wick_device_desc chosen = {.backend = WICK_BACKEND_WEBGPU, .strict = true};

typedef struct place {
    wick_device *device;
    wick_model *model;
} place;

/* Memory of the two GPUs: the second has more. */
static void open_places(place *places) {
    static const uint64_t max_bytes[] = {48 << 20, 96 << 20};
    char path[1024];
    snprintf(path, sizeof path, "%s/stories260K.gguf", getenv("WICK_TEST_DATA"));
    for (int i = 0; i < N; i++) {
        wick_device_desc desc = chosen;
        if (i < 2)
            desc.webgpu.pool.max_bytes = max_bytes[i];
        else
            desc = (wick_device_desc){.backend = WICK_BACKEND_CPU};
        places[i].model = open_model(path, &desc, &places[i].device);
    }
}

static void close_places(const place *places) {
    for (int i = 0; i < N; i++) {
        wick_device_stats stats;
        wick_model_close(places[i].model);
        wick_device_get_stats(places[i].device, &stats);
        assert_int_equal(stats.n_fallbacks, 0);
        give_back_device(places[i].device);
    }
}

static wick_balancer *balance(const place *places, size_t n, wick_balance by) {
    wick_model *models[N];
    wick_balancer *balancer;
    for (size_t i = 0; i < n; i++) models[i] = places[i].model;
    assert_int_equal(
        wick_balancer_make(models, n, &(wick_balancer_desc){.balance = by}, &balancer, NULL),
        WICK_OK);
    return balancer;
}

static void test_at_once(void **state) {
    (void)state;
    fixture f;
    place places[N];
    wick_session *sessions[N];
    uint32_t n_prompt, n_want, n_open = N;
    assert_true(load_json(&f, getenv("WICK_TEST_DATA"), "stories260K.greedy.json"));
    const uint32_t *const prompt = ids_of(&f, wk_json_get(f.root, "prompt_tokens"), &n_prompt);
    const uint32_t *const want = ids_of(&f, wk_json_get(f.root, "tokens"), &n_want);
    assert_true(n_want >= TOKENS);
    open_places(places);
    wick_balancer *const balancer = balance(places, N, WICK_BALANCE_LOAD);
    const wick_session_desc desc = {.max_tokens = TOKENS};
    for (int i = 0; i < N; i++) {
        assert_int_equal(wick_balancer_open_session(balancer, &desc, &sessions[i], NULL), WICK_OK);
        assert_int_equal(wick_session_append_tokens(sessions[i], prompt, n_prompt), WICK_OK);
    }
    wick_event events[N] = {0};
    while (n_open > 0)
        for (int i = 0; i < N; i++) {
            if (events[i].kind == WICK_EVENT_END) continue;
            assert_int_equal(wick_session_step(sessions[i], &events[i]), WICK_OK);
            if (events[i].kind == WICK_EVENT_END) n_open--;
            if (events[i].kind == WICK_EVENT_PENDING) wick_pause(places[i].device);
        }
    wick_replica replicas[N];
    assert_int_equal(wick_balancer_replicas(balancer, replicas, N), N);
    for (int i = 0; i < N; i++) {
        size_t n;
        const uint32_t *const tokens = wick_session_tokens(sessions[i], &n);
        assert_int_equal(n, n_prompt + TOKENS);
        assert_memory_equal(tokens + n_prompt, want, TOKENS * sizeof *want);
        assert_ptr_equal(replicas[i].model, places[i].model);
        assert_int_equal(replicas[i].usage.n_sessions, 1);
        assert_int_equal(replicas[i].usage.n_generated, TOKENS);
        wick_session_close(sessions[i]);
    }
    wick_balancer_free(balancer);
    close_places(places);
    wk_arena_release(&f.arena);
}

static void test_by_memory(void **state) {
    (void)state;
    place places[N];
    wick_session *first, *second;
    wick_replica replicas[2];
    open_places(places);
    wick_balancer *const balancer = balance(places, 2, WICK_BALANCE_MEMORY);
    const wick_session_desc small = {.context_length = 64};
    assert_int_equal(wick_balancer_open_session(balancer, &small, &first, NULL), WICK_OK);
    assert_int_equal(wick_balancer_open_session(balancer, &small, &second, NULL), WICK_OK);
    (void)wick_balancer_replicas(balancer, replicas, 2);
    assert_int_equal(replicas[1].usage.n_sessions, 2);
    assert_true(replicas[1].memory_available > replicas[0].memory_available);
    wick_session_close(first);
    wick_session_close(second);
    wick_balancer_free(balancer);
    close_places(places);
}

/* -1: the system does not say. */
static int count_open_files(void) {
    DIR *const dir = opendir("/proc/self/fd");
    int n = 0;
    if (!dir) return -1;
    while (readdir(dir)) n++;
    closedir(dir);
    return n;
}

/* A device that is closed leaves nothing of the implementation behind. llvmpipe has a file open for
 * each instance of Vulkan. */
static void test_closed_for_good(void **state) {
    (void)state;
    int n_files = 0;
    for (int i = 0; i < 4; i++) {
        wick_device *device = NULL;
        wick_error err = {0};
        if (wick_device_open(&chosen, &device, &err) != WICK_OK) fail_msg("%s", err.message);
        wick_device_close(device);
        if (i == 0) n_files = count_open_files();
    }
    assert_int_equal(count_open_files(), n_files);
}

int main(int argc, char **argv) {
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_at_once),
        cmocka_unit_test(test_by_memory),
        cmocka_unit_test(test_closed_for_good),
    };
    if (!parse_device(argc, argv, &chosen)) return 2;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
