/* Memory that runs out, anywhere: for every n the n-th allocation of a whole run fails, alone or
 * with all that follow. Then the status is WICK_ERR_OUT_OF_MEMORY with a sentence, nothing leaks,
 * and where memory is there again the same device does the whole run. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "amount.h"
#include "checked_heap.h"

#include <wick/wick.h>

#include <stdio.h>
#include <string.h>

enum { N_TOKENS = 8, MAX_OUTCOME = 64 };

/* What a run gives: the same bits each time. */
typedef struct outcome {
    uint32_t words[MAX_OUTCOME];
    size_t n;
} outcome;

/* A run on a device, from nothing to nothing. A failure's sentence goes to error. */
typedef wick_status (*scenario)(wick_device *device, outcome *out, wick_error *error);

static wick_status keep_step(const wick_session *session, wick_status status, wick_error *error) {
    return status == WICK_OK ? WICK_OK : wick_session_error(session, error);
}

/* What the device says is the reason; status is what came of it. */
static wick_status keep(wick_device *device, wick_status status, wick_error *error) {
    return status == WICK_OK ? WICK_OK : wick_device_error(device, error);
}

/* --- Text --- */

static const char *model_path(void) {
    static char path[1024];
    snprintf(path, sizeof path, "%s/stories260K.gguf", getenv("WICK_TEST_DATA"));
    return path;
}

static wick_status say(wick_session *session, outcome *out) {
    wick_event event;
    do {
        const wick_status status = wick_session_next(session, &event);
        if (status != WICK_OK) return status;
        if (event.kind == WICK_EVENT_TOKEN) out->words[out->n++] = event.token;
    } while (event.kind != WICK_EVENT_END);
    return WICK_OK;
}

static wick_status generate(wick_device *device, const wick_session_desc *desc, outcome *out,
                            wick_error *error) {
    wick_model *model = NULL;
    wick_session *session = NULL;
    wick_status status = wick_model_open(device, model_path(), NULL, &model, error);
    if (status == WICK_OK) status = wick_session_open(model, desc, &session, error);
    if (status == WICK_OK)
        status = keep_step(session, wick_session_append_text(session, "Once upon a time"), error);
    if (status == WICK_OK) status = keep_step(session, say(session, out), error);
    wick_session_close(session);
    wick_model_close(model);
    return status;
}

static wick_status generate_greedy(wick_device *device, outcome *out, wick_error *error) {
    const wick_session_desc desc = {.context_length = 64, .max_tokens = N_TOKENS};
    return generate(device, &desc, out, error);
}

static const wick_logit_bias biases[] = {{.id = 432, .bias = -1}, {.id = 300, .bias = 1}};
static const char *const breakers[] = {"\n", "!", "the end"};
static const char *const stops[] = {"never said", "nor this"};

static wick_status generate_filtered(wick_device *device, outcome *out, wick_error *error) {
    const wick_session_desc desc = {
        .context_length = 64,
        .chunk_length = 2,
        .max_tokens = N_TOKENS,
        .stop = stops,
        .n_stop = 2,
        .n_logprobs = 5,
        .sampler = {.temperature = 0.9F,
                    .top_k = 50,
                    .typical_p = 0.95F,
                    .top_p = 0.95F,
                    .min_p = 0.01F,
                    .repeat_penalty = 1.1F,
                    .frequency_penalty = 0.1F,
                    .presence_penalty = 0.1F,
                    .bias = biases,
                    .n_bias = 2,
                    .dry_multiplier = 0.8F,
                    .dry_breakers = breakers,
                    .n_dry_breakers = 3,
                    .xtc_probability = 0.5F,
                    .seed = 7},
    };
    return generate(device, &desc, out, error);
}

static wick_status generate_mirostat(wick_device *device, outcome *out, wick_error *error) {
    const wick_session_desc desc = {
        .context_length = 64,
        .max_tokens = N_TOKENS,
        .sampler = {.temperature = 0.8F, .mirostat_tau = 3, .seed = 7},
    };
    return generate(device, &desc, out, error);
}

/* --- Tokens --- */

static wick_status tokenize(wick_device *device, outcome *out, wick_error *error) {
    wick_model *model = NULL;
    wick_status status = wick_model_open(device, model_path(), NULL, &model, error);
    if (status != WICK_OK) return status;
    static const char text[] = "One day, a little girl named Lily found a needle.";
    status = wick_tokenize(wick_model_tokenizer(model), text, sizeof text - 1,
                           WICK_TOKENIZE_ADD_BEGIN, out->words, MAX_OUTCOME, &out->n);
    if (status != WICK_OK) *error = (wick_error){.status = status, .message = "tokenize has none"};
    wick_model_close(model);
    return status;
}

/* --- Tensors --- */

static wick_status compute(wick_device *device, outcome *out, wick_error *error) {
    float numbers[16 * 16];
    for (int i = 0; i < 16 * 16; i++) numbers[i] = (float)(i % 13) - 6;
    const wick_scope scope = wick_scope_begin(device);
    wick_tensor *const a =
        wick_tensor_from_data(device, WICK_F32, WICK_SHAPE(16, 16), numbers, sizeof numbers);
    wick_tensor *const b = wick_transpose(a, 0, 1);
    wick_tensor *const c = wick_softmax(wick_matmul(wick_add(a, b), wick_contiguous(b)), -1);
    wick_tensor *const sums = wick_sum(wick_mul(c, a), 1, (const int[]){1}, false);
    out->n = 16;
    const wick_status status =
        keep(device, wick_read(sums, out->words, 16 * sizeof *out->words), error);
    wick_scope_end(scope);
    return status;
}

/* Operations that make tables on the host: of more than 256 weights, and of roots of unity. */
static wick_status compute_tables(wick_device *device, outcome *out, wick_error *error) {
    static const float numbers[4] = {1, -2, 3, 0.5F};
    const int64_t size = 300;
    const wick_scope scope = wick_scope_begin(device);
    wick_tensor *const x =
        wick_tensor_from_data(device, WICK_F32, WICK_SHAPE(1, 4), numbers, sizeof numbers);
    wick_tensor *const wide = wick_resize(x, 1, &size, WICK_RESIZE_CUBIC, false);
    wick_tensor *const waves =
        wick_dft(wick_reshape(wide, WICK_SHAPE(10, 30, 1)), 1, 0, false, true);
    wick_tensor *const sums = wick_sum(waves, 1, (const int[]){0}, false);
    out->n = 32;
    const wick_status status =
        keep(device, wick_read(sums, out->words, 32 * sizeof *out->words), error);
    wick_scope_end(scope);
    return status;
}

/* --- Failing --- */

static wick_backend backend = WICK_BACKEND_CPU;

/* One run in which allocation n fails; once: alone, and then the run is repeated on the same
 * device. False: there was none of that number. */
static bool fail_at(scenario run, uint64_t n, bool once, int n_threads, const outcome *want) {
    checked_heap poor;
    checked_heap_init(&poor, n);
    poor.refuses_once = once;
    const wick_device_desc desc = {
        .backend = backend, .n_threads = n_threads, .allocator = poor.heap.hook};
    wick_device *device = NULL;
    wick_error error = {.status = WICK_OK};
    outcome got = {.n = 0};
    wick_status status = wick_device_open(&desc, &device, &error);
    if (status == WICK_OK) status = run(device, &got, &error);
    const bool was_refused = poor.n_refused > 0;
    if (status == WICK_OK) {
        assert_memory_equal(&got, want, sizeof got);
    } else {
        if (status != WICK_ERR_OUT_OF_MEMORY || error.status != status || !error.message[0])
            fail_msg("allocation %u: status %d, %d: '%s'", (unsigned)n, (int)status,
                     (int)error.status, error.message);
        assert_true(was_refused);
    }
    poor.n_allowed = UINT64_MAX;
    if (status != WICK_OK && device && once) {
        (void)wick_device_error(device, NULL);
        outcome again = {.n = 0};
        wick_error none = {.status = WICK_OK};
        if (run(device, &again, &none) != WICK_OK)
            fail_msg("allocation %u: and then: %s", (unsigned)n, none.message);
        assert_memory_equal(&again, want, sizeof again);
    }
    wick_device_close(device);
    assert_int_equal(poor.n_live, 0);
    assert_int_equal(poor.n_wrong_sizes, 0);
    return was_refused;
}

/* thorough: each allocation alone as well, after which everything works again. */
static void fail_everywhere(scenario run, int n_threads, bool thorough) {
    wick_device *device = NULL;
    wick_error error = {.status = WICK_OK};
    const wick_device_desc desc = {.backend = backend, .n_threads = n_threads};
    outcome want = {.n = 0};
    assert_int_equal(wick_device_open(&desc, &device, &error), WICK_OK);
    if (run(device, &want, &error) != WICK_OK) fail_msg("%s", error.message);
    wick_device_close(device);
    assert_true(want.n > 0);
    const uint64_t step = failing_step();
    uint64_t n = 0;
    while (fail_at(run, n, false, n_threads, &want)) n += step;
    assert_true(n > 5);
    print_message("%u allocations\n", (unsigned)n);
    for (uint64_t i = 0; thorough && i < n; i += step)
        (void)fail_at(run, i, true, n_threads, &want);
}

static void test_greedy(void **state) {
    (void)state;
    fail_everywhere(generate_greedy, 1, true);
}

static void test_two_threads(void **state) {
    (void)state;
    fail_everywhere(generate_greedy, 2, false);
}

static void test_filters(void **state) {
    (void)state;
    fail_everywhere(generate_filtered, 1, true);
}

static void test_mirostat(void **state) {
    (void)state;
    fail_everywhere(generate_mirostat, 1, false);
}

static void test_tokenize(void **state) {
    (void)state;
    fail_everywhere(tokenize, 1, true);
}

static void test_tensors(void **state) {
    (void)state;
    fail_everywhere(compute, 1, true);
    fail_everywhere(compute, 2, true);
    fail_everywhere(compute_tables, 1, true);
}

static void test_null_device(void **state) {
    (void)state;
    backend = WICK_BACKEND_NULL;
    fail_everywhere(generate_greedy, 1, false);
    fail_everywhere(compute, 1, true);
    backend = WICK_BACKEND_CPU;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tensors),     cmocka_unit_test(test_greedy),
        cmocka_unit_test(test_filters),     cmocka_unit_test(test_mirostat),
        cmocka_unit_test(test_tokenize),    cmocka_unit_test(test_two_threads),
        cmocka_unit_test(test_null_device),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
