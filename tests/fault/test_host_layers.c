/* A model whose first layers run on the CPU, beside a device that has no room for them: the text is
 * the same wherever the layers are, however the device answers, and whenever it is lost. On the
 * null backend. */
#include "golden/generation.h"

#include "backend/null/null.h"
#include "llm/llm.h"
#include "llm/placing.h"
#include "loss.h"

enum { LAYERS = 5 }; /* of stories260K */

typedef struct place {
    checked_heap heap;
    wick_device *device;
    wick_model *model;
    wick_model_info info;
} place;

static wick_status try_open(place *p, wick_device_desc desc, const wick_model_desc *model_desc,
                            wick_error *error) {
    checked_heap_init(&p->heap, UINT64_MAX);
    desc.backend = WICK_BACKEND_NULL;
    desc.n_threads = 1;
    desc.allocator = p->heap.heap.hook;
    assert_int_equal(wick_device_open(&desc, &p->device, NULL), WICK_OK);
    const wick_status status =
        wick_model_open(p->device, stories_path(), model_desc, &p->model, error);
    wick_model_get_info(p->model, &p->info);
    return status;
}

static void open_place(place *p, wick_device_desc desc, wick_model_desc model_desc) {
    wick_error error = {.status = WICK_OK};
    if (try_open(p, desc, &model_desc, &error) != WICK_OK) fail_msg("%s", error.message);
    assert_int_equal(wick_device_error(p->device, NULL), WICK_OK);
    assert_true((p->info.host_layers > 0) == (wick_model_host(p->model) != NULL));
}

/* However it was placed, and loaded again after a loss, the model is the one that sessions are
 * saved with. */
static void close_place(place *p) {
    static uint64_t weights_checksum;
    if (p->model != NULL) {
        if (weights_checksum == 0) weights_checksum = p->model->weights_checksum;
        assert_true(p->model->weights_checksum == weights_checksum);
    }
    wick_model_close(p->model);
    wick_device_close(p->device);
    assert_int_equal(p->heap.n_live, 0);
    assert_int_equal(p->heap.n_wrong_sizes, 0);
}

static wick_device_stats stats_of(const wick_device *device) {
    wick_device_stats stats;
    wick_device_get_stats(device, &stats);
    return stats;
}

/* The text of a teller; every: tokens between two losses of the device, 0: none. */
static void tell(place *p, const wick_session_desc *desc, uint32_t every, told *it) {
    wick_session *session;
    wick_error error = {.status = WICK_OK};
    wick_event event;
    uint32_t next = every;
    *it = (told){.size = 0};
    if (wick_session_open(p->model, desc, &session, &error) != WICK_OK)
        fail_msg("%s", error.message);
    assert_int_equal(wick_session_append_text(session, prompt), WICK_OK);
    do {
        if (wick_session_next(session, &event) != WICK_OK) fail_with_error(session);
        hear(it, &event);
        if (every == 0 || it->n_tokens < next) continue;
        wk_null_lose_after(p->device->handle, 1 + next * 7 % 60);
        next += every;
    } while (event.kind != WICK_EVENT_END);
    wick_session_close(session);
}

static const told *wanted(size_t teller) {
    static told all[N_TELLERS];
    if (all[teller].n_tokens > 0) return &all[teller];
    place p;
    open_place(&p, (wick_device_desc){.n_threads = 1}, (wick_model_desc){.no_map = false});
    assert_int_equal(p.info.host_layers, 0);
    tell(&p, &tellers[teller], 0, &all[teller]);
    close_place(&p);
    return &all[teller];
}

static void check_same(const told *got, const told *want) {
    if (got->size != want->size || memcmp(got->text, want->text, want->size) != 0)
        fail_msg("it goes '%.*s', not '%.*s'", (int)got->size, got->text, (int)want->size,
                 want->text);
    assert_int_equal(got->n_tokens, want->n_tokens);
}

/* --- Asked for --- */

/* This many layers of the device, by the number that stands in the desc. */
static uint32_t on_host(int32_t device_layers) {
    if (device_layers == WICK_NO_LAYERS) return LAYERS;
    return device_layers < LAYERS ? LAYERS - (uint32_t)device_layers : 0;
}

static void test_fixture(void **state) {
    (void)state;
    static const uint32_t chunks[] = {0, 1, 3};
    fixture f;
    uint32_t n_prompt, n_want;
    assert_true(load_json(&f, getenv("WICK_TEST_DATA"), "stories260K.greedy.json"));
    const uint32_t *const ids = ids_of(&f, wk_json_get(f.root, "prompt_tokens"), &n_prompt);
    const uint32_t *const want = ids_of(&f, wk_json_get(f.root, "tokens"), &n_want);
    for (int32_t n = WICK_NO_LAYERS; n <= LAYERS + 1; n++) {
        if (n == 0) continue;
        place p;
        open_place(&p, (wick_device_desc){.null_flags = WICK_NULL_LATE | WICK_NULL_OUT_OF_ORDER},
                   (wick_model_desc){.device_layers = n, .no_map = n % 2 != 0});
        assert_int_equal(p.info.host_layers, on_host(n));
        assert_int_equal(p.info.bytes_needed, 0);
        const uint32_t chunk = chunks[(n + 1) % 3];
        check_greedy(p.model, (wick_session_desc){.chunk_length = chunk}, ids, n_prompt, want,
                     n_want);
        assert_int_equal(stats_of(p.device).n_fallbacks, 0);
        assert_true((stats_of(p.device).n_ops > 0) == (n != WICK_NO_LAYERS));
        close_place(&p);
    }
    wk_arena_release(&f.arena);
}

static void test_tellers(void **state) {
    (void)state;
    for (size_t teller = 0; teller < N_TELLERS; teller++) {
        place p;
        told got;
        open_place(&p, (wick_device_desc){.n_threads = 1}, (wick_model_desc){.device_layers = 2});
        tell(&p, &tellers[teller], 0, &got);
        check_same(&got, wanted(teller));
        close_place(&p);
    }
}

/* The logits of every row, which are the device's last stage's alone. */
static void test_all_logits(void **state) {
    (void)state;
    enum { TOKENS = 20 };
    uint32_t ids[TOKENS];
    for (uint32_t i = 0; i < TOKENS; i++) ids[i] = 300 + i;
    place p;
    open_place(&p, (wick_device_desc){.n_threads = 1}, (wick_model_desc){.no_map = false});
    float *const whole = all_logits(p.model, 8, ids, TOKENS);
    close_place(&p);
    open_place(&p, (wick_device_desc){.n_threads = 1}, (wick_model_desc){.device_layers = 3});
    float *const split = all_logits(p.model, 8, ids, TOKENS);
    assert_memory_equal(split, whole, (size_t)TOKENS * p.info.n_vocab * sizeof *whole);
    close_place(&p);
    free(whole);
    free(split);
}

/* A token is one upload, one submit and one read of each, and nothing is allocated. */
static void test_steps(void **state) {
    (void)state;
    enum { WARM = 8, STEPS = 20 };
    place p;
    wick_session *session;
    open_place(&p, (wick_device_desc){.n_threads = 1}, (wick_model_desc){.device_layers = 2});
    const wick_session_desc desc = {.max_tokens = WARM + STEPS, .ignore_end = true};
    assert_int_equal(wick_session_open(p.model, &desc, &session, NULL), WICK_OK);
    assert_int_equal(wick_session_append_text(session, prompt), WICK_OK);
    const wick_device *const host = wick_model_host(p.model);
    wick_device_stats device_before = {0}, host_before = {0};
    wick_event event = {.kind = WICK_EVENT_PENDING};
    for (uint32_t n = 0; event.kind != WICK_EVENT_END;) {
        assert_int_equal(wick_session_next(session, &event), WICK_OK);
        if (event.kind != WICK_EVENT_TOKEN || ++n != WARM) continue;
        device_before = stats_of(p.device);
        host_before = stats_of(host);
    }
    const wick_device_stats device_after = stats_of(p.device), host_after = stats_of(host);
    assert_in_range(device_after.n_reads - device_before.n_reads, STEPS - 1, STEPS);
    assert_in_range(host_after.n_reads - host_before.n_reads, STEPS - 1, STEPS);
    assert_int_equal(host_after.n_allocations, host_before.n_allocations);
    assert_int_equal(host_after.n_fallbacks + device_after.n_fallbacks, 0);
    wick_session_close(session);
    close_place(&p);
}

static void test_unknown_numbers(void **state) {
    (void)state;
    static const wick_model_desc wrong[] = {{.device_layers = -2}, {.device_layers = INT32_MIN}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        place p;
        wick_error error = {.status = WICK_OK};
        assert_int_equal(try_open(&p, (wick_device_desc){0}, &wrong[i], &error), WICK_ERR_VALUE);
        assert_true(strlen(error.message) > 10);
        close_place(&p);
    }
}

/* --- As many as fit --- */

static const wick_session_desc short_teller = {
    .context_length = 256, .chunk_length = 16, .max_tokens = 20, .ignore_end = true};
static const wick_model_desc fitting = {.sessions = &short_teller};

static void check_short(place *p) {
    told got;
    tell(p, &short_teller, 0, &got);
    assert_int_equal(got.n_tokens, 20);
    assert_memory_equal(got.text, wanted(0)->text, got.size);
}

/* However little memory the device has, the model runs, with more layers on it the more it has. */
static void test_limits(void **state) {
    (void)state;
    uint32_t last = LAYERS, n_kinds = 0;
    for (uint64_t limit = 64 << 10; limit < 6 << 20; limit += 128 << 10) {
        place p;
        open_place(&p, (wick_device_desc){.null_memory = limit}, fitting);
        assert_true(p.info.host_layers <= last);
        n_kinds += p.info.host_layers < last;
        last = p.info.host_layers;
        assert_true((p.info.bytes_needed > p.info.bytes_available) == (last > 0));
        if (last > 0) assert_int_equal(p.info.bytes_available, limit);
        check_short(&p);
        assert_true(stats_of(p.device).buffer_peak_bytes <= limit);
        close_place(&p);
    }
    assert_int_equal(last, 0);
    assert_int_equal(n_kinds, LAYERS);
}

/* Memory that is missing after all, at any tensor. */
static void test_refused(void **state) {
    (void)state;
    uint32_t n_split = 0, most = 0;
    for (uint32_t n = 1; n < 60; n++) {
        place p;
        open_place(&p, (wick_device_desc){.null_refused = n}, fitting);
        n_split += p.info.host_layers > 0;
        if (p.info.host_layers > most) most = p.info.host_layers;
        if (n % 5 == 0) check_short(&p);
        const bool is_over = p.info.host_layers == 0;
        close_place(&p);
        if (is_over) break;
    }
    assert_true(n_split > 30 && n_split < 59);
    assert_int_equal(most, LAYERS);
}

/* Each time that memory runs out the device gets a layer less, and none after four choices. */
static void test_choices(void **state) {
    (void)state;
    static const uint32_t device_layers[] = {LAYERS, LAYERS - 1, LAYERS - 2, LAYERS - 3, 0};
    place p;
    open_place(&p, (wick_device_desc){.null_memory = 64 << 20}, fitting);
    wk_placing placing = wk_placing_of(&fitting);
    wk_placing_choose(&placing, p.model);
    for (size_t i = 0; i < sizeof device_layers / sizeof *device_layers; i++) {
        if (i > 0) wk_placing_choose_again(&placing, p.model, 64 << 20);
        assert_int_equal(placing.device_layers, device_layers[i]);
        assert_int_equal(p.model->info.host_layers, LAYERS - device_layers[i]);
        assert_int_equal(wk_placing_is_free(&placing, p.model), device_layers[i] > 0);
    }
    p.model->info = p.info;
    close_place(&p);
}

/* A stream cannot be read again; where the device says what it has, it need not. */
static void test_stream(void **state) {
    (void)state;
    for (int is_known = 0; is_known < 2; is_known++) {
        place p = {.model = NULL};
        checked_heap_init(&p.heap, UINT64_MAX);
        const wick_device_desc desc = {.backend = WICK_BACKEND_NULL,
                                       .n_threads = 1,
                                       .null_memory = is_known ? 1 << 20 : 0,
                                       .null_refused = is_known ? 0 : 20,
                                       .allocator = p.heap.heap.hook};
        wick_source source;
        wick_push_source *push;
        wick_model_loading *loading;
        wick_error error = {.status = WICK_OK};
        static char bytes[2 << 20];
        FILE *const file = fopen(stories_path(), "rb");
        const size_t n = fread(bytes, 1, sizeof bytes, file);
        fclose(file);
        assert_int_equal(wick_device_open(&desc, &p.device, NULL), WICK_OK);
        assert_int_equal(wick_source_push_make(WICK_SIZE_UNKNOWN, &source, &push), WICK_OK);
        assert_int_equal(wick_source_push(push, bytes, n), WICK_OK);
        wick_source_push_finish(push);
        assert_int_equal(wick_model_open_start(p.device, source, &fitting, &loading, &error),
                         WICK_OK);
        while (wick_model_open_poll(loading, NULL) == WICK_PENDING) continue;
        const wick_status status = wick_model_open_finish(loading, &p.model, &error);
        assert_int_equal(status, is_known ? WICK_OK : WICK_ERR_OUT_OF_MEMORY);
        if (is_known) {
            wick_model_get_info(p.model, &p.info);
            assert_in_range(p.info.host_layers, 1, LAYERS - 1);
            check_short(&p);
        } else {
            assert_true(error.bytes_requested > 0);
        }
        close_place(&p);
    }
}

/* More than was announced: refused with the numbers, and the model is as good as before. */
static void test_long_context(void **state) {
    (void)state;
    place p;
    wick_session *session;
    wick_error error = {.status = WICK_OK};
    open_place(&p, (wick_device_desc){.null_memory = 1 << 20}, fitting);
    const wick_session_desc endless = {.context_length = 100000};
    assert_int_equal(wick_session_open(p.model, &endless, &session, &error),
                     WICK_ERR_OUT_OF_MEMORY);
    assert_true(error.bytes_requested > error.bytes_available && error.bytes_available > 0);
    check_short(&p);
    close_place(&p);
}

/* --- Lost --- */

static void test_loss(void **state) {
    (void)state;
    for (uint32_t i = 0; i < 6; i++) {
        place p;
        told got;
        open_place(&p, (wick_device_desc){.null_flags = i % 2 ? WICK_NULL_LATE : 0},
                   (wick_model_desc){.device_layers = 1 + (int32_t)(i % LAYERS)});
        const wick_device *const host = wick_model_host(p.model);
        tell(&p, &tellers[i % 3], 10, &got);
        check_same(&got, wanted(i % 3));
        assert_true(stats_of(p.device).n_losses > 10);
        wick_model_info now;
        wick_model_get_info(p.model, &now);
        assert_int_equal(now.weight_bytes, p.info.weight_bytes);
        assert_int_equal(now.host_weight_bytes, p.info.host_weight_bytes);
        if (host) assert_int_equal(stats_of(host).n_losses, 0);
        close_place(&p);
    }
}

/* Every call of the device may be its last, from the beginning of the loading on. */
static void test_loss_anywhere(void **state) {
    (void)state;
    for (uint32_t n = 1; n < 400; n += n < 80 ? 3 : 17) {
        place p;
        wick_error error = {.status = WICK_OK};
        told got;
        checked_heap_init(&p.heap, UINT64_MAX);
        const wick_device_desc desc = {.backend = WICK_BACKEND_NULL,
                                       .n_threads = 1,
                                       .null_lose_after = n,
                                       .allocator = p.heap.heap.hook};
        assert_int_equal(wick_device_open(&desc, &p.device, NULL), WICK_OK);
        p.device->desc.null_lose_after = 0; /* the next opening stays */
        if (wick_model_open(p.device, stories_path(), &(wick_model_desc){.device_layers = 3},
                            &p.model, &error) != WICK_OK)
            fail_msg("%s", error.message);
        tell(&p, &short_teller, 0, &got);
        assert_memory_equal(got.text, wanted(0)->text, got.size);
        assert_int_equal(stats_of(p.device).n_losses, 1);
        close_place(&p);
    }
}

/* --- The host's errors --- */

/* Memory that fails anywhere, the host's as well: a status and a sentence, and nothing leaks. */
static void test_poor_host(void **state) {
    (void)state;
    bool is_enough = false;
    uint64_t n = 0;
    for (; !is_enough; n++) {
        checked_heap poor;
        checked_heap_init(&poor, n);
        const wick_device_desc desc = {
            .backend = WICK_BACKEND_NULL, .n_threads = 1, .allocator = poor.heap.hook};
        const wick_model_desc split = {.device_layers = 2};
        wick_device *device = NULL;
        wick_model *model = NULL;
        wick_session *session = NULL;
        wick_error error = {.status = WICK_OK};
        wick_event event = {.kind = WICK_EVENT_PENDING};
        wick_status status = wick_device_open(&desc, &device, &error);
        if (status == WICK_OK)
            status = wick_model_open(device, stories_path(), &split, &model, &error);
        if (status == WICK_OK) status = wick_session_open(model, &short_teller, &session, &error);
        if (status == WICK_OK) {
            status = wick_session_append_text(session, prompt);
            for (int i = 0; i < 4 && status == WICK_OK; i += event.kind == WICK_EVENT_TOKEN)
                status = wick_session_next(session, &event);
            if (status != WICK_OK) (void)wick_session_error(session, &error);
        }
        is_enough = status == WICK_OK;
        if (!is_enough && (status != WICK_ERR_OUT_OF_MEMORY || error.status != status))
            fail_msg("allocation %u: %d, %s", (unsigned)n, (int)status, error.message);
        wick_session_close(session);
        wick_model_close(model);
        wick_device_close(device);
        assert_int_equal(poor.n_live, 0);
        assert_int_equal(poor.n_wrong_sizes, 0);
    }
    print_message("%u allocations\n", (unsigned)n);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fixture),
        cmocka_unit_test(test_tellers),
        cmocka_unit_test(test_all_logits),
        cmocka_unit_test(test_steps),
        cmocka_unit_test(test_unknown_numbers),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_choices),
        cmocka_unit_test(test_stream),
        cmocka_unit_test(test_long_context),
        cmocka_unit_test(test_loss),
        cmocka_unit_test(test_loss_anywhere),
        cmocka_unit_test(test_poor_host),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
