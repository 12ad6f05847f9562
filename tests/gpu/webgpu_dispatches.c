/* usage: webgpu_dispatches [--backend webgpu] [options of webgpu_options.h] How many dispatches a
 * generated token takes, by family (tensor/join.c), in the form that drivers in software take and
 * in that of GPUs, by packed dot products; and that ops of a plan give the same bits together as
 * one by one. Needs WICK_SHARED_DATA. */
#include "gpu_bench.h"
#include "golden/real_model.h"
#include "webgpu_options.h"

#include <unistd.h>

static wick_device_desc chosen = {.backend = WICK_BACKEND_WEBGPU, .strict = true};

enum { WARM = 2, STEPS = 4, TOKENS = 24 };

/* What a token takes: of products of floats, and of integers where the device has packed dot
 * products. is_quick: also in `make test`. shape: random weights of these sizes; NULL: the fixture
 * of that name with weights of q8_0. */
typedef struct family {
    const char *name;
    uint32_t floats, integers;
    bool is_quick;
    const model_shape *shape;
} family;

#define SHAPE(architecture, embd, layers, heads, heads_kv, dim, ff, head_norms)                    \
    &(const model_shape) {                                                                         \
        "", architecture, embd, layers, heads, heads_kv, dim, ff, 512, true, head_norms,           \
            WICK_Q4_0, WICK_Q8_0                                                                   \
    }
static const family families[] = {
    {"llama", 22, 22, true, NULL},
    {"gemma3", 56, 56, false, NULL},
    {"gpt-oss", 31, 34, false, NULL},
    {"mamba", 30, 30, false, NULL},
    {"qwen3moe", 23, 25, false, NULL},
    {"smollm2-135m", 22, 22, true, SHAPE("llama", 576, 2, 9, 3, 64, 1536, false)},
    {"qwen3-0.6b", 22, 22, false, SHAPE("qwen3", 1024, 2, 16, 8, 128, 3072, true)},
    {"llama-3-8b", 22, 24, false, SHAPE("llama", 4096, 2, 32, 8, 128, 14336, false)},
};

/* Of bench/gpu. */
void check(wick_status status, const wick_error *error) {
    if (status != WICK_OK) fail_msg("%s", error->message);
}

static void quantize(const char *name, char *path, size_t size) {
    char from[1024];
    const char *const folder = getenv("TMPDIR");
    wick_quantizing *quantizing;
    wick_error error = {0};
    snprintf(from, sizeof from, "%s/families/%s.gguf", getenv("WICK_SHARED_DATA"), name);
    snprintf(path, size, "%s/wick_dispatches_%ld_%s.gguf", folder ? folder : "/tmp", (long)getpid(),
             name);
    const wick_quantize_desc desc = {.type = "q8_0", .n_threads = 1, .replace = true};
    check(wick_quantize_start(from, path, &desc, &quantizing, &error), &error);
    wick_status status;
    while ((status = wick_quantize_poll(quantizing, NULL, &error)) == WICK_PENDING) {
    }
    check(status, &error);
    check(wick_quantize_finish(quantizing, true, &error), &error);
}

static wick_model *open_random(const model_shape *shape, const wick_device_desc *desc,
                               wick_device **device) {
    wick_error error = {0};
    wick_model_loading *loading;
    wick_model *model;
    check(borrow_device(desc, device, &error), &error);
    check(wick_model_open_start(*device, make_random_model(shape), NULL, &loading, &error), &error);
    while (wick_model_open_poll(loading, NULL) == WICK_PENDING) wick_pause(*device);
    check(wick_model_open_finish(loading, &model, &error), &error);
    return model;
}

static wick_model *open_family(const family *f, wick_device_desc desc, wick_device **device) {
    if (f->shape != NULL) return open_random(f->shape, &desc, device);
    char path[1024];
    quantize(f->name, path, sizeof path);
    wick_model *const model = open_model(path, &desc, device);
    (void)unlink(path);
    return model;
}

static double dispatches_per_token(const family *f, wick_device_desc desc) {
    wick_device *device;
    wick_model *const model = open_family(f, desc, &device);
    wick_session *session;
    const wick_session_desc of_session = {
        .max_tokens = WARM + STEPS, .ignore_end = true, .speculate = WICK_SPECULATE_NONE};
    assert_int_equal(wick_session_open(model, &of_session, &session, NULL), WICK_OK);
    static const uint32_t prompt[] = {5, 12, 19};
    assert_int_equal(wick_session_append_tokens(session, prompt, 3), WICK_OK);
    wick_device_stats before = {0}, after;
    wick_event event = {0};
    for (uint32_t n = 0; event.kind != WICK_EVENT_END;) {
        assert_int_equal(wick_session_next(session, &event), WICK_OK);
        if (event.kind == WICK_EVENT_TOKEN && ++n == WARM) wick_device_get_stats(device, &before);
    }
    wick_device_get_stats(device, &after);
    assert_int_equal(after.n_fallbacks, 0);
    wick_session_close(session);
    wick_model_close(model);
    give_back_device(device);
    return (double)(after.n_dispatches - before.n_dispatches) / STEPS;
}

static wick_device_desc in_form(bool by_integers) {
    wick_device_desc desc = chosen;
    desc.math = WICK_MATH_FAST;
    desc.webgpu.submit_us = 10000000; /* nothing is cut because the driver is slow */
    if (by_integers)
        desc.webgpu.as_gpu = true;
    else
        desc.webgpu.without |= WICK_WEBGPU_DOT4;
    return desc;
}

static void test_dispatches(void **state) {
    (void)state;
    int n_wrong = 0;
    for (size_t i = 0; i < sizeof families / sizeof *families; i++) {
        const family *const f = &families[i];
        if (!(f->is_quick && f->shape) && !tests_all()) continue;
        const double floats = dispatches_per_token(f, in_form(false));
        const double integers = dispatches_per_token(f, in_form(true));
        print_message("%s: %.2f and %.2f dispatches a token\n", f->name, floats, integers);
        n_wrong += floats != f->floats || integers != f->integers;
    }
    assert_int_equal(n_wrong, 0);
}

/* All logits of ids, [TOKENS, n_vocab], malloc'ed. */
static float *logits_of(wick_model *model, uint32_t chunk, size_t n_vocab) {
    uint32_t ids[TOKENS];
    for (uint32_t i = 0; i < TOKENS; i++) ids[i] = (5 + 7 * i) % 200;
    const wick_session_desc desc = {
        .context_length = TOKENS, .chunk_length = chunk, .logits = WICK_LOGITS_ALL};
    kept_rows kept = {malloc(TOKENS * n_vocab * sizeof(float)), n_vocab};
    wick_session *session;
    wick_event event = {0};
    assert_non_null(kept.rows);
    assert_int_equal(wick_session_open(model, &desc, &session, NULL), WICK_OK);
    assert_int_equal(wick_session_append_tokens(session, ids, TOKENS), WICK_OK);
    while (event.kind != WICK_EVENT_END) {
        if (wick_session_next(session, &event) != WICK_OK) fail_with_error(session);
        if (event.kind == WICK_EVENT_LOGITS) keep_row(&kept, event.position, event.logits);
    }
    wick_session_close(session);
    return kept.rows;
}

static void compare_bits(const family *f, wick_device_desc desc) {
    static const uint32_t chunks[] = {1, 24};
    wick_device_desc apart = desc;
    apart.fusion = WICK_FUSION_OFF;
    wick_device *devices[2];
    wick_model *const together = open_family(f, desc, &devices[0]);
    wick_model *const one_by_one = open_family(f, apart, &devices[1]);
    wick_model_info info;
    wick_model_get_info(together, &info);
    for (size_t c = 0; c < sizeof chunks / sizeof *chunks; c++) {
        float *const a = logits_of(together, chunks[c], info.n_vocab);
        float *const b = logits_of(one_by_one, chunks[c], info.n_vocab);
        if (memcmp(a, b, TOKENS * (size_t)info.n_vocab * sizeof *a) != 0)
            fail_msg("%s in chunks of %u: other bits", f->name, (unsigned)chunks[c]);
        free(a);
        free(b);
    }
    wick_model_close(together);
    wick_model_close(one_by_one);
    give_back_device(devices[0]);
    give_back_device(devices[1]);
}

/* In chunks of one row and of several: with and without fusion, exact and by integers. */
static void test_same_bits(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof families / sizeof *families; i++) {
        if (families[i].shape || (!families[i].is_quick && !tests_all())) continue;
        if (tests_all()) compare_bits(&families[i], chosen);
        compare_bits(&families[i], in_form(true));
    }
}

int main(int argc, char **argv) {
    if (!getenv("WICK_SHARED_DATA")) {
        printf("skipped: WICK_SHARED_DATA is not set\n");
        return 77;
    }
    if (!parse_device(argc, argv, &chosen)) return 2;
    static const struct CMUnitTest tests[] = {cmocka_unit_test(test_dispatches),
                                              cmocka_unit_test(test_same_bits)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
