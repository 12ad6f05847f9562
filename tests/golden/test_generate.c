/* Generation against fixtures of other implementations: token for token, on every instruction set,
 * with any chunking; and what must hold beside it: equal bits, no allocation while decoding. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/json.h"
#include "core/half.h"
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

static bool load_json(fixture *f, const char *folder, const char *name) {
    char path[1024];
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

static uint32_t *ids_of(fixture *f, const wk_json *array, uint32_t *n) {
    *n = (uint32_t)array->count;
    uint32_t *const ids = wk_arena_array(&f->arena, array->count, sizeof *ids);
    uint32_t i = 0;
    for (const wk_json *item = array->child; item; item = item->next)
        ids[i++] = (uint32_t)item->integer;
    return ids;
}

/* --- Running --- */

static wick_model *open_model(const char *path, const wick_device_desc *desc,
                              wick_device **device) {
    wick_error error = {0};
    wick_model *model = NULL;
    if (wick_device_open(desc, device, &error) != WICK_OK ||
        wick_model_open(*device, path, NULL, &model, &error) != WICK_OK)
        fail_msg("%s: %s", path, error.message);
    return model;
}

static void fail_with_sticky(wick_device *device) {
    wick_error error = {0};
    (void)wick_device_error(device, &error);
    fail_msg("%s", error.message);
}

/* Greedy tokens after a prompt; compares with want. */
static void check_greedy(wick_model *model, wick_session_desc desc, const uint32_t *prompt,
                         uint32_t n_prompt, const uint32_t *want, uint32_t n_want) {
    wick_session *session;
    wick_error error = {0};
    desc.max_tokens = n_want;
    if (wick_session_open(model, &desc, &session, &error) != WICK_OK) fail_msg("%s", error.message);
    if (wick_session_append_tokens(session, prompt, n_prompt) != WICK_OK)
        fail_with_sticky(wick_model_device(model));
    wick_event event;
    do {
        if (wick_session_next(session, &event) != WICK_OK)
            fail_with_sticky(wick_model_device(model));
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

static bool has_isa(wick_isa isa) {
    const uint32_t features = wk_cpu_features();
    if (isa == WICK_ISA_AVX2) return features & WK_CPU_AVX2;
    if (isa == WICK_ISA_AVX512)
        return (features & WK_CPU_AVX512) && (features & WK_CPU_AVX512_VNNI);
    return true;
}

static const char *stories_path(char *path, size_t size) {
    snprintf(path, size, "%s/stories260K.gguf", getenv("WICK_TEST_DATA"));
    return path;
}

static void test_stories_greedy(void **state) {
    (void)state;
    static const uint32_t chunks[] = {0, 1, 3, 4, 64};
    char path[1024];
    fixture f;
    assert_true(load_json(&f, getenv("WICK_TEST_DATA"), "stories260K.greedy.json"));
    uint32_t n_prompt, n_want;
    const uint32_t *const prompt = ids_of(&f, wk_json_get(f.root, "prompt_tokens"), &n_prompt);
    const uint32_t *const want = ids_of(&f, wk_json_get(f.root, "tokens"), &n_want);
    for (size_t i = 0; i < sizeof isas / sizeof *isas; i++) {
        if (!has_isa(isas[i])) {
            print_message("this processor lacks instruction set %d\n", (int)isas[i]);
            continue;
        }
        for (int threads = 1; threads <= 2; threads++) {
            wick_device *device;
            const wick_device_desc desc = {
                .backend = WICK_BACKEND_CPU, .isa = isas[i], .n_threads = threads};
            wick_model *const model = open_model(stories_path(path, sizeof path), &desc, &device);
            for (size_t c = 0; c < sizeof chunks / sizeof *chunks; c++)
                check_greedy(model, (wick_session_desc){.chunk_length = chunks[c]}, prompt,
                             n_prompt, want, n_want);
            wick_model_close(model);
            wick_device_close(device);
        }
    }
    wk_arena_release(&f.arena);
}

static void test_stories_on_the_null_backend(void **state) {
    (void)state;
    static const wick_device_desc descs[] = {
        {.backend = WICK_BACKEND_NULL, .null_flags = WICK_NULL_LATE | WICK_NULL_OUT_OF_ORDER},
        {.backend = WICK_BACKEND_NULL, .null_flags = WICK_NULL_NO_FUSED},
        {.backend = WICK_BACKEND_NULL, .null_flags = WICK_NULL_NO_KERNELS},
        {.backend = WICK_BACKEND_CPU, .verify = true},
    };
    char path[1024];
    fixture f;
    assert_true(load_json(&f, getenv("WICK_TEST_DATA"), "stories260K.greedy.json"));
    uint32_t n_prompt, n_want;
    const uint32_t *const prompt = ids_of(&f, wk_json_get(f.root, "prompt_tokens"), &n_prompt);
    const uint32_t *const want = ids_of(&f, wk_json_get(f.root, "tokens"), &n_want);
    for (size_t i = 0; i < sizeof descs / sizeof *descs; i++) {
        wick_device *device;
        wick_model *const model = open_model(stories_path(path, sizeof path), &descs[i], &device);
        check_greedy(model, (wick_session_desc){.chunk_length = 4}, prompt, n_prompt, want, 40);
        wick_device_stats stats;
        wick_device_get_stats(device, &stats);
        assert_true((stats.n_fallbacks > 0) == !!(descs[i].null_flags & WICK_NULL_NO_KERNELS));
        wick_model_close(model);
        wick_device_close(device);
    }
    assert_true(n_want >= 40);
    wk_arena_release(&f.arena);
}

/* All logits of a sequence, [n, n_vocab], malloc'ed. */
static float *all_logits(wick_model *model, uint32_t chunk, const uint32_t *ids, uint32_t n) {
    wick_session *session;
    wick_model_info info;
    wick_model_get_info(model, &info);
    const wick_session_desc desc = {
        .context_length = n, .chunk_length = chunk, .logits = WICK_LOGITS_ALL};
    assert_int_equal(wick_session_open(model, &desc, &session, NULL), WICK_OK);
    assert_int_equal(wick_session_append_tokens(session, ids, n), WICK_OK);
    float *const rows = malloc((size_t)n * info.n_vocab * sizeof *rows);
    assert_non_null(rows);
    uint32_t seen = 0;
    wick_event event;
    do {
        if (wick_session_next(session, &event) != WICK_OK)
            fail_with_sticky(wick_model_device(model));
        if (event.kind != WICK_EVENT_LOGITS) continue;
        assert_int_equal(event.position, seen);
        memcpy(rows + (size_t)seen++ * info.n_vocab, event.logits, info.n_vocab * sizeof *rows);
    } while (event.kind != WICK_EVENT_END);
    assert_int_equal(event.reason, WICK_END_PROMPT);
    assert_int_equal(seen, n);
    wick_session_close(session);
    return rows;
}

/* Exact mode: a chunked prefill gives the bits of single steps, whatever the chunk. */
static void check_same_bits(const char *path, const uint32_t *ids, uint32_t n) {
    static const uint32_t chunks[] = {2, 5, 16, 64, 512};
    for (size_t i = 0; i < sizeof isas / sizeof *isas; i++) {
        if (!has_isa(isas[i])) continue;
        wick_device *device;
        const wick_device_desc desc = {.backend = WICK_BACKEND_CPU, .isa = isas[i]};
        wick_model *const model = open_model(path, &desc, &device);
        wick_model_info info;
        wick_model_get_info(model, &info);
        float *const single = all_logits(model, 1, ids, n);
        for (size_t c = 0; c < sizeof chunks / sizeof *chunks; c++) {
            if (isas[i] == WICK_ISA_REF && info.n_vocab > 10000) continue; /* minutes */
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
        wick_device_close(device);
    }
}

static void test_stories_same_bits(void **state) {
    (void)state;
    char path[1024];
    fixture f;
    assert_true(load_json(&f, getenv("WICK_TEST_DATA"), "stories260K.greedy.json"));
    uint32_t n;
    const uint32_t *const ids = ids_of(&f, wk_json_get(f.root, "tokens"), &n);
    check_same_bits(stories_path(path, sizeof path), ids, n < 150 ? n : 150);
    wk_arena_release(&f.arena);
}

/* Whatever the sampler does. */
static void check_no_allocation(wick_math math, bool with_mirostat) {
    char path[1024];
    wick_device *device;
    const wick_device_desc desc = {.backend = WICK_BACKEND_CPU, .n_threads = 2, .math = math};
    wick_model *const model = open_model(stories_path(path, sizeof path), &desc, &device);
    wick_session *session;
    const char *const stop[] = {"never in a story"};
    const wick_logit_bias bias = {2, -INFINITY}; /* the end token: it must go on */
    const wick_session_desc with = {.stop = stop,
                                    .n_stop = 1,
                                    .n_logprobs = 5,
                                    .sampler = {.temperature = 0.8f,
                                                .top_k = 40,
                                                .typical_p = 0.95f,
                                                .top_p = 0.95f,
                                                .min_p = 0.01f,
                                                .repeat_penalty = 1.1f,
                                                .frequency_penalty = 0.1f,
                                                .presence_penalty = 0.1f,
                                                .bias = &bias,
                                                .n_bias = 1,
                                                .dry_multiplier = 0.8f,
                                                .xtc_probability = 0.5f,
                                                .mirostat_tau = with_mirostat ? 5 : 0},
                                    .max_tokens = 100};
    assert_int_equal(wick_session_open(model, &with, &session, NULL), WICK_OK);
    assert_int_equal(wick_session_append_text(session, "Once upon a time"), WICK_OK);
    wick_event event = {0};
    wick_device_stats before = {0}, after;
    for (int i = 0; i < 100 && event.kind != WICK_EVENT_END; i++) {
        assert_int_equal(wick_session_next(session, &event), WICK_OK);
        if (i == 4) wick_device_get_stats(device, &before);
    }
    wick_device_get_stats(device, &after);
    assert_true(before.n_allocations > 0);
    assert_int_equal(after.n_allocations, before.n_allocations);
    wick_session_close(session);
    wick_model_close(model);
    wick_device_close(device);
}

static void test_decode_does_not_allocate(void **state) {
    (void)state;
    for (wick_math math = WICK_MATH_EXACT; math <= WICK_MATH_FAST; math++) {
        check_no_allocation(math, false);
        check_no_allocation(math, true);
    }
}

/* --- The real model --- */

static bool real_model(fixture *f) {
    const char *const model = getenv("WICK_REAL_MODEL"), *const data = getenv("WICK_SHARED_DATA");
    if (!model || !data) {
        print_message("%s is not set\n", model ? "WICK_SHARED_DATA" : "WICK_REAL_MODEL");
        return false;
    }
    char folder[1024];
    snprintf(folder, sizeof folder, "%s/real", data);
    return load_json(f, folder, "smollm2-135m-instruct-q4_1.json");
}

static void test_smollm2_greedy(void **state) {
    (void)state;
    fixture f;
    if (!real_model(&f)) skip();
    for (int threads = 1; threads <= 2; threads++) {
        wick_device *device;
        const wick_device_desc desc = {.backend = WICK_BACKEND_CPU, .n_threads = threads};
        wick_model *const model = open_model(getenv("WICK_REAL_MODEL"), &desc, &device);
        const wk_json *const all = wk_json_get(f.root, "greedy");
        for (const wk_json *g = all->child; g; g = g->next) {
            uint32_t n_prompt, n_want;
            const uint32_t *const prompt = ids_of(&f, wk_json_get(g, "prompt_tokens"), &n_prompt);
            const uint32_t *const want = ids_of(&f, wk_json_get(g, "tokens"), &n_want);
            check_greedy(model, (wick_session_desc){0}, prompt, n_prompt, want, n_want);
        }
        wick_model_close(model);
        wick_device_close(device);
    }
    wk_arena_release(&f.arena);
}

static void test_smollm2_same_bits(void **state) {
    (void)state;
    fixture f;
    if (!real_model(&f)) skip();
    uint32_t n;
    const uint32_t *const ids = ids_of(&f, wk_json_get(wk_json_get(f.root, "nll"), "tokens"), &n);
    check_same_bits(getenv("WICK_REAL_MODEL"), ids, 40);
    wk_arena_release(&f.arena);
}

/* Rows of the reference's npy, float32, whose positions are listed beside it. */
static void test_smollm2_logits(void **state) {
    (void)state;
    fixture f;
    if (!real_model(&f)) skip();
    char path[1024];
    wk_file *file;
    snprintf(path, sizeof path, "%s/real/smollm2-135m-instruct-q4_1.logits.npy",
             getenv("WICK_SHARED_DATA"));
    assert_int_equal(wk_file_open(&f.heap, path, &file, NULL), WICK_OK);
    uint32_t n, n_rows;
    const uint32_t *const ids = ids_of(&f, wk_json_get(wk_json_get(f.root, "nll"), "tokens"), &n);
    const uint32_t *const rows = ids_of(&f, wk_json_get(f.root, "logits_positions"), &n_rows);
    wick_device *device;
    const wick_device_desc desc = {.backend = WICK_BACKEND_CPU};
    wick_model *const model = open_model(getenv("WICK_REAL_MODEL"), &desc, &device);
    wick_model_info info;
    wick_model_get_info(model, &info);
    float *const got = all_logits(model, 0, ids, n);
    float *const want = malloc(info.n_vocab * sizeof *want);
    const uint64_t bytes = info.n_vocab * sizeof *want;
    const uint64_t data = wk_file_size(file) - n_rows * bytes;
    double worst = 0;
    for (uint32_t r = 0; r < n_rows; r++) {
        assert_int_equal(wk_file_read_at(file, data + r * bytes, want, bytes, NULL), WICK_OK);
        for (uint32_t i = 0; i < info.n_vocab; i++)
            worst = fmax(worst,
                         fabs((double)want[i] - (double)got[(size_t)rows[r] * info.n_vocab + i]));
    }
    print_message("largest difference of a logit: %.2g\n", worst);
    assert_true(worst <= 2e-3);
    free(want);
    free(got);
    wick_model_close(model);
    wick_device_close(device);
    wk_file_close(&f.heap, file);
    wk_arena_release(&f.arena);
}

/* Negative log-likelihood of each next token of a text, and its mean's exponential. */
static void check_nll(wick_math math, double most_rms, double most_relative) {
    fixture f;
    if (!real_model(&f)) skip();
    const wk_json *const reference = wk_json_get(f.root, "nll");
    uint32_t n;
    const uint32_t *const ids = ids_of(&f, wk_json_get(reference, "tokens"), &n);
    wick_device *device;
    const wick_device_desc desc = {.backend = WICK_BACKEND_CPU, .math = math};
    wick_model *const model = open_model(getenv("WICK_REAL_MODEL"), &desc, &device);
    wick_model_info info;
    wick_model_get_info(model, &info);
    float *const logits = all_logits(model, 0, ids, n);
    double total = 0, square = 0;
    const wk_json *want = wk_json_get(reference, "nll_per_token")->child;
    for (uint32_t i = 0; i + 1 < n; i++, want = want->next) {
        const float *const row = logits + (size_t)i * info.n_vocab;
        double sum = 0;
        float most = row[0];
        for (uint32_t k = 1; k < info.n_vocab; k++) most = fmaxf(most, row[k]);
        for (uint32_t k = 0; k < info.n_vocab; k++) sum += exp((double)row[k] - (double)most);
        const double nll = (double)most + log(sum) - (double)row[ids[i + 1]];
        total += nll;
        square += (nll - want->number) * (nll - want->number);
    }
    const double rms = sqrt(square / (n - 1)), perplexity = exp(total / (n - 1));
    const double relative = fabs(perplexity / wk_json_get(reference, "perplexity")->number - 1);
    print_message("perplexity %.4f, off by %.1e; rms difference per token %.5f\n", perplexity,
                  relative, rms);
    assert_true(rms <= most_rms);
    assert_true(relative <= most_relative);
    free(logits);
    wick_model_close(model);
    wick_device_close(device);
    wk_arena_release(&f.arena);
}

static void test_smollm2_nll_exact(void **state) {
    (void)state;
    check_nll(WICK_MATH_EXACT, 5e-4, 1e-4);
}

/* Half of what eight-bit activations cost elsewhere: see docs/numerics.md. */
static void test_smollm2_nll_fast(void **state) {
    (void)state;
    check_nll(WICK_MATH_FAST, 0.045, 4e-3);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stories_greedy),
        cmocka_unit_test(test_stories_on_the_null_backend),
        cmocka_unit_test(test_stories_same_bits),
        cmocka_unit_test(test_decode_does_not_allocate),
        cmocka_unit_test(test_smollm2_greedy),
        cmocka_unit_test(test_smollm2_same_bits),
        cmocka_unit_test(test_smollm2_logits),
        cmocka_unit_test(test_smollm2_nll_exact),
        cmocka_unit_test(test_smollm2_nll_fast),
    };
    return cmocka_run_group_tests_name("generate", tests, NULL, NULL);
}
