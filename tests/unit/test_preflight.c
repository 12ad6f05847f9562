/* What a model will need, predicted from its header. */
#include "llm/llm.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "fixture_file.h"
#include "small_model.h"
#include "source/file.h"

static wick_device *device;
static char path[1024];

static int begin(void **state) {
    (void)state;
    const char *const build = getenv("WICK_BUILD_DIR");
    snprintf(path, sizeof path, "%s/test_preflight.gguf", build != NULL ? build : ".");
    const wick_device_desc desc = {.backend = WICK_BACKEND_CPU, .isa = WICK_ISA_REF};
    return wick_device_open(&desc, &device, NULL) == WICK_OK ? 0 : -1;
}

static int end(void **state) {
    (void)state;
    wick_device_close(device);
    remove(path);
    return 0;
}

static wick_file *write_small(const small_model *small) {
    static gguf_bytes bytes;
    small_write(small, true, &bytes);
    FILE *const out = fopen(path, "wb");
    assert_non_null(out);
    assert_int_equal(fwrite(bytes.data, 1, bytes.size, out), bytes.size);
    assert_int_equal(fclose(out), 0);
    wick_file *file;
    assert_int_equal(wick_file_open(path, &file, NULL), WICK_OK);
    return file;
}

static void test_small(void **state) {
    (void)state;
    const small_model small = small_model_make();
    wick_file *const file = write_small(&small);
    uint64_t weights = 0;
    for (int i = 0; i < small.n_tensors; i++)
        weights += small_tensor_count(&small.tensors[i]) * sizeof(float);

    wick_prediction p;
    assert_int_equal(wick_predict(file, device, NULL, &p, NULL), WICK_OK);
    assert_int_equal(p.context_length, 16);
    assert_int_equal(p.weight_bytes, weights);
    /* One block: keys and values of one head of 4 channels. */
    assert_int_equal(p.cache_bytes, SMALL_LAYERS * WK_BLOCK_SIZE * 8 * sizeof(float));
    assert_true(p.activation_bytes >= 16 * SMALL_FF * sizeof(float));
    assert_true(p.total_bytes > p.weight_bytes + p.cache_bytes + p.activation_bytes);

    wick_prediction longer;
    assert_int_equal(wick_predict(file, device,
                                  &(wick_session_desc){.context_length = WK_BLOCK_SIZE + 1},
                                  &longer, NULL),
                     WICK_OK);
    assert_int_equal(longer.context_length, WK_BLOCK_SIZE + 1);
    assert_int_equal(longer.cache_bytes, 2 * p.cache_bytes);
    assert_true(longer.activation_bytes > p.activation_bytes);
    wick_device_set_math(device, WICK_MATH_FAST);
    assert_int_equal(wick_predict(file, device,
                                  &(wick_session_desc){.context_length = WK_BLOCK_SIZE + 1},
                                  &longer, NULL),
                     WICK_OK);
    wick_device_set_math(device, WICK_MATH_EXACT);
    assert_int_equal(longer.cache_bytes, p.cache_bytes);
    wick_file_close(file);
}

/* Blocks that n positions lie in at most, wherever the first one begins. */
static uint32_t blocks_touched(uint32_t n) {
    uint32_t most = 0;
    for (uint32_t first = 0; first < WK_BLOCK_SIZE; first++) {
        const uint32_t n_blocks = (first + n - 1) / WK_BLOCK_SIZE + 1;
        most = n_blocks > most ? n_blocks : most;
    }
    return most;
}

static void test_blocks(void **state) {
    (void)state;
    for (uint32_t length = 1; length <= 3 * WK_BLOCK_SIZE + 1; length++) {
        const wk_runner_desc session = {.context_length = length, .chunk_length = 5};
        const wk_cache_desc cache = wk_cache_describe(&(wk_hparams){.window = 0}, &session);
        assert_int_equal(cache.n_blocks, (length - 1) / WK_BLOCK_SIZE + 1);
        assert_int_equal(cache.n_window_blocks, 0);
    }
    /* A chunk of 5 tokens sees its window of the first one, and itself. */
    for (uint32_t window = 1; window <= 3 * WK_BLOCK_SIZE; window++) {
        const uint32_t n = blocks_touched(window + 4);
        for (uint32_t n_blocks = n - 1; n_blocks <= n + 1; n_blocks++) {
            const wk_runner_desc session = {.context_length = n_blocks * WK_BLOCK_SIZE,
                                            .chunk_length = 5};
            const wk_cache_desc cache =
                wk_cache_describe(&(wk_hparams){.window = window}, &session);
            assert_int_equal(cache.n_window_blocks, n_blocks < n ? n_blocks : n);
        }
    }
}

/* With long divisors the original context is not left unless another is asked for. */
static void test_default_of_longrope(void **state) {
    (void)state;
    static const struct {
        bool has_long;
        uint32_t original, expected;
    } cases[] = {{true, 40, 40}, {true, 999, 999}, {true, 1001, 1000}, {false, 40, 1000}};
    for (size_t i = 0; i < WK_COUNT(cases); i++) {
        small_model small = small_model_make();
        small_set_u32(&small, "llama.context_length", 1000);
        small_set_u32(&small, "llama.rope.scaling.original_context_length", cases[i].original);
        if (cases[i].has_long) small_add_tensor(&small, "rope_factors_long.weight", 2, 0);
        wick_file *const file = write_small(&small);
        wick_prediction p;
        assert_int_equal(wick_predict(file, device, NULL, &p, NULL), WICK_OK);
        assert_int_equal(p.context_length, cases[i].expected);
        const wick_session_desc asked = {.context_length = 900};
        assert_int_equal(wick_predict(file, device, &asked, &p, NULL), WICK_OK);
        assert_int_equal(p.context_length, 900);
        wick_file_close(file);
    }
}

/* What two contexts differ in: caches, the rows of a chunk, and what attention kernels keep for
 * each span of 128 keys, in plans of fewer rows and fewer keys, too; of all that an eighth more,
 * since a pool rounds up. */
static void test_needed_bytes(void **state) {
    (void)state;
    static const uint32_t lengths[] = {1, 63, 64, 65, 127, 128, 129, 255, 256, 257};
    enum { CHUNK = 4, HEADS = 2, HEAD = 4, PLANS = 4 };
    small_model small = small_model_make();
    small_set_u32(&small, "llama.context_length", 1000);
    wick_file *const file = write_small(&small);
    wk_heap heap;
    wk_model *made;
    uint64_t weights = 0;
    wk_heap_init(&heap, NULL);
    assert_int_equal(wk_model_make(&heap, wk_file_gguf(file), &made, NULL), WICK_OK);
    for (size_t i = 0; i < WK_COUNT(lengths); i++) {
        const wick_session_desc desc = {.context_length = lengths[i], .chunk_length = CHUNK};
        wick_prediction p;
        assert_int_equal(wick_predict(file, device, &desc, &p, NULL), WICK_OK);
        const uint64_t n_spans = (lengths[i] + 127) / 128;
        const uint64_t spans = PLANS * CHUNK * HEADS * n_spans * (HEAD + 2) * sizeof(float);
        const uint64_t others = p.cache_bytes + p.activation_bytes + spans;
        const wk_runner_desc session = wk_runner_describe(made, WICK_MATH_EXACT, 0, &desc);
        const uint64_t needed =
            wk_bytes_needed(made, wk_file_gguf(file), device, SMALL_LAYERS, &session);
        if (i == 0) weights = needed - others - others / 8;
        assert_int_equal(needed, weights + others + others / 8);
    }
    assert_true(weights > 0);
    wk_model_free(made);
    wick_file_close(file);
}

/* A cache of blocks takes less, of heads that are whole blocks. */
static void test_cache_types(void **state) {
    (void)state;
    small_model small = small_model_make();
    wick_file *file = write_small(&small);
    wick_session_desc desc = {.cache = WICK_CACHE_Q8_0};
    wick_prediction p;
    wick_error error = {.status = WICK_OK};
    assert_int_equal(wick_predict(file, device, &desc, &p, &error), WICK_ERR_UNSUPPORTED);
    assert_non_null(strstr(error.message, "a cache of q8_0 takes heads of a multiple of 32"));
    wick_file_close(file);
}

static void test_context(void **state) {
    (void)state;
    small_model small = small_model_make();
    small_set_u32(&small, "llama.context_length", 100000);
    wick_file *const file = write_small(&small);
    wick_prediction p;
    assert_int_equal(wick_predict(file, device, NULL, &p, NULL), WICK_OK);
    assert_int_equal(p.context_length, WK_DEFAULT_CONTEXT_KNOWN);
    /* No sum may wrap round. */
    wick_prediction most;
    assert_int_equal(
        wick_predict(file, device, &(wick_session_desc){.context_length = UINT32_MAX}, &most, NULL),
        WICK_OK);
    assert_true(most.cache_bytes >= (uint64_t)UINT32_MAX * SMALL_LAYERS * 8 * sizeof(float));
    assert_true(most.total_bytes > most.cache_bytes);
    wick_file_close(file);
}

static wick_prediction predict_on(const wick_file *file, uint64_t memory, uint32_t context) {
    const wick_device_desc desc = {
        .backend = WICK_BACKEND_NULL, .n_threads = 1, .null_memory = memory};
    wick_device *null;
    wick_prediction p;
    assert_int_equal(wick_device_open(&desc, &null, NULL), WICK_OK);
    assert_int_equal(
        wick_predict(file, null, &(wick_session_desc){.context_length = context}, &p, NULL),
        WICK_OK);
    wick_device_close(null);
    assert_int_equal(p.available_bytes, memory);
    return p;
}

/* The default is the model's, at most 16,384 tokens and a quarter of the free memory. */
static void test_default_context(void **state) {
    (void)state;
    static const uint32_t lengths[] = {100, WK_DEFAULT_CONTEXT_KNOWN - 1, WK_DEFAULT_CONTEXT_KNOWN,
                                       WK_DEFAULT_CONTEXT_KNOWN + 1};
    small_model small = small_model_make();
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        small_set_u32(&small, "llama.context_length", lengths[i]);
        wick_file *const file = write_small(&small);
        const uint32_t expected =
            lengths[i] < WK_DEFAULT_CONTEXT_KNOWN ? lengths[i] : WK_DEFAULT_CONTEXT_KNOWN;
        assert_int_equal(predict_on(file, 1 << 30, 0).context_length, expected);
        wick_file_close(file);
    }
    small_set_u32(&small, "llama.context_length", 1000);
    wick_file *const file = write_small(&small);
    const uint64_t block = predict_on(file, 1 << 30, WK_BLOCK_SIZE).cache_bytes;
    uint64_t before = 0;
    for (uint32_t n = 6; n <= 8; n++) {
        /* The least memory for so long a context, of more than the weights take. */
        uint64_t too_little = 64 << 10, enough = 1 << 20;
        while (enough - too_little > 1) {
            const uint64_t middle = (enough + too_little) / 2;
            const bool fits = predict_on(file, middle, 0).context_length >= n * WK_BLOCK_SIZE;
            *(fits ? &enough : &too_little) = middle;
        }
        assert_int_equal(predict_on(file, enough - 1, 0).context_length, (n - 1) * WK_BLOCK_SIZE);
        assert_int_equal(predict_on(file, enough, 0).context_length, n * WK_BLOCK_SIZE);
        assert_int_equal(predict_on(file, enough, 0).cache_bytes, n * block);
        if (before > 0) assert_int_equal(enough - before, 4 * block);
        before = enough;
    }
    /* Never none; and where nothing is known of the memory, as much as was always safe. */
    assert_int_equal(predict_on(file, 1, 0).context_length, WK_BLOCK_SIZE);
    wick_file_close(file);
    small_set_u32(&small, "llama.context_length", 100000);
    wick_file *const longer = write_small(&small);
    wk_heap heap;
    wk_model *made;
    wk_heap_init(&heap, NULL);
    assert_int_equal(wk_model_make(&heap, wk_file_gguf(longer), &made, NULL), WICK_OK);
    assert_int_equal(wk_runner_describe(made, WICK_MATH_EXACT, 0, NULL).context_length,
                     WK_DEFAULT_CONTEXT);
    wk_model_free(made);
    wick_file_close(longer);
}

/* What a device has room for: the more memory, the more layers; the fewer tokens, too. */
static void test_room(void **state) {
    (void)state;
    small_model small = small_model_make();
    small_set_u32(&small, "llama.context_length", 1000);
    wick_file *const file = write_small(&small);
    uint32_t layers = 0, length = 0;
    for (uint64_t memory = 1 << 10; memory <= 16 << 20; memory *= 2) {
        const wick_prediction p = predict_on(file, memory, WK_BLOCK_SIZE);
        assert_int_equal(p.n_layers, SMALL_LAYERS);
        assert_in_range(p.device_layers, layers, SMALL_LAYERS);
        assert_in_range(p.whole_context_length, length, 1000);
        /* All layers fit exactly where a context of this length lets them. */
        assert_true((p.device_layers == SMALL_LAYERS) == (p.whole_context_length >= WK_BLOCK_SIZE));
        layers = p.device_layers;
        length = p.whole_context_length;
        if (length == 0 || length == 1000) continue;
        assert_int_equal(predict_on(file, memory, length).device_layers, SMALL_LAYERS);
        assert_true(predict_on(file, memory, length + 1).device_layers < SMALL_LAYERS);
    }
    assert_int_equal(layers, SMALL_LAYERS);
    assert_int_equal(length, 1000);
    wick_file_close(file);
}

/* The CPU itself keeps all. */
static void test_room_of_cpu(void **state) {
    (void)state;
    const small_model small = small_model_make();
    wick_file *const file = write_small(&small);
    wick_prediction p;
    assert_int_equal(wick_predict(file, device, NULL, &p, NULL), WICK_OK);
    assert_int_equal(p.device_layers, SMALL_LAYERS);
    assert_true(p.available_bytes == 0 || p.whole_context_length == 16);
    wick_file_close(file);
}

static void test_refused(void **state) {
    (void)state;
    small_model small = small_model_make();
    wick_prediction p;
    wick_error error = {.status = WICK_OK};
    assert_int_equal(wick_predict(NULL, device, NULL, &p, &error), WICK_ERR_ARGUMENT);
    small_set_text(&small, "general.architecture", "transmogrifier");
    wick_file *file = write_small(&small);
    error = (wick_error){.status = WICK_OK};
    assert_int_equal(wick_predict(file, device, NULL, &p, &error), WICK_ERR_UNSUPPORTED);
    assert_non_null(strstr(error.message, "transmogrifier"));
    wick_file_close(file);
}

/* The status of opening the file at path on a device under a limit of memory. */
static wick_status open_by(wick_device *on, const wick_model_desc *desc, wick_error *error) {
    wick_model *model;
    *error = (wick_error){.status = WICK_OK};
    const wick_status status = wick_model_open(on, path, desc, &model, error);
    wick_model_close(model);
    return status;
}

static wick_status open_within(wick_device *on, uint64_t limit, wick_error *error) {
    return open_by(on, &(wick_model_desc){.memory_limit = limit}, error);
}

/* A model that needs a byte more than it may take is refused before its weights are read. */
static void test_limit(void **state) {
    (void)state;
    const small_model small = small_model_make();
    wick_file *const file = write_small(&small);
    wick_prediction p;
    wick_error error;
    assert_int_equal(wick_predict(file, device, NULL, &p, NULL), WICK_OK);
    wick_file_close(file);
    assert_int_equal(open_within(device, p.total_bytes + 1, &error), WICK_OK);
    assert_int_equal(open_within(device, p.total_bytes, &error), WICK_OK);
    assert_int_equal(open_within(device, 0, &error), WICK_OK);
    assert_int_equal(open_within(device, p.total_bytes - 1, &error), WICK_ERR_OUT_OF_MEMORY);
    assert_int_equal(error.bytes_requested, p.total_bytes);
    assert_int_equal(error.bytes_available, p.total_bytes - 1);
    char words[128];
    snprintf(words, sizeof words,
             "the model needs %s with a context of 16 tokens, but the limit is %s: ",
             wk_show_size(p.total_bytes, true).text, wk_show_size(p.total_bytes - 1, false).text);
    assert_non_null(strstr(error.message, words));
    assert_non_null(strstr(error.message, "choose a shorter context"));
    assert_int_equal(open_within(device, p.weight_bytes, &error), WICK_ERR_OUT_OF_MEMORY);
    assert_non_null(strstr(error.message, "choose a smaller model"));
    /* Of which a part is on the CPU: the limit is of both together. */
    const wick_device_desc desc = {
        .backend = WICK_BACKEND_NULL, .n_threads = 1, .null_memory = p.total_bytes / 8};
    wick_device *null;
    assert_int_equal(wick_device_open(&desc, &null, NULL), WICK_OK);
    assert_int_equal(open_within(null, UINT64_MAX, &error), WICK_OK);
    assert_int_equal(open_within(null, 1, &error), WICK_ERR_OUT_OF_MEMORY);
    const uint64_t needed = error.bytes_requested; /* both have the embeddings */
    assert_in_range(needed, p.total_bytes, p.total_bytes + p.weight_bytes);
    assert_int_equal(open_within(null, needed, &error), WICK_OK);
    assert_int_equal(open_within(null, needed - 1, &error), WICK_ERR_OUT_OF_MEMORY);
    wick_device_close(null);
}

/* With the weights in the file, only what is beside it counts. */
static void test_low_memory(void **state) {
    (void)state;
    const small_model small = small_model_make();
    wick_file *const file = write_small(&small);
    const wick_device_desc desc = {.backend = WICK_BACKEND_CPU, .n_threads = 1};
    wick_device *fast;
    wick_prediction p, raw;
    wick_error error;
    assert_int_equal(wick_device_open(&desc, &fast, NULL), WICK_OK);
    assert_int_equal(wick_predict(file, fast, NULL, &p, NULL), WICK_OK);
    assert_int_equal(wick_predict(file, device, NULL, &raw, NULL), WICK_OK);
    wick_file_close(file);
    assert_in_range(p.low_bytes, p.total_bytes - p.weight_bytes, p.total_bytes - 1);
    wick_model_desc low = {.low_memory = true, .memory_limit = p.low_bytes};
    assert_int_equal(open_by(fast, &low, &error), WICK_OK);
    low.memory_limit--;
    assert_int_equal(open_by(fast, &low, &error), WICK_ERR_OUT_OF_MEMORY);
    assert_int_equal(error.bytes_requested, p.low_bytes);
    low = (wick_model_desc){.memory_limit = p.low_bytes};
    assert_int_equal(open_by(fast, &low, &error), WICK_ERR_OUT_OF_MEMORY);
    wick_device_close(fast);

    /* A device with memory of its own has a copy of the rows. */
    const wick_device_desc other = {.backend = WICK_BACKEND_NULL, .n_threads = 1};
    assert_int_equal(wick_device_open(&other, &fast, NULL), WICK_OK);
    low = (wick_model_desc){.low_memory = true, .memory_limit = raw.total_bytes - 1};
    assert_int_equal(open_by(fast, &low, &error), WICK_ERR_OUT_OF_MEMORY);
    assert_in_range(error.bytes_requested, raw.total_bytes, raw.total_bytes + p.weight_bytes);
    wick_device_close(fast);
}

/* The weights of a loaded model are what was predicted for them. */
static void test_real(void **state) {
    (void)state;
    const char *const real = getenv("WICK_REAL_MODEL");
    FILE *const there = real != NULL ? fopen(real, "rb") : NULL;
    if (there == NULL) {
        print_message("the model that WICK_REAL_MODEL names is not there\n");
        skip();
    }
    fclose(there);
    wick_device *fast;
    wick_file *file;
    wick_model *model;
    wick_prediction p;
    wick_model_info info;
    wick_device_stats stats;
    const wick_device_desc desc = {.backend = WICK_BACKEND_CPU};
    assert_int_equal(wick_device_open(&desc, &fast, NULL), WICK_OK);
    assert_int_equal(wick_file_open(real, &file, NULL), WICK_OK);
    wick_prediction small;
    const wick_session_desc q8_0 = {.cache = WICK_CACHE_Q8_0}, q4_0 = {.cache = WICK_CACHE_Q4_0};
    assert_int_equal(wick_predict(file, fast, &q8_0, &small, NULL), WICK_OK);
    const uint64_t blocks = small.cache_bytes / 34;
    assert_int_equal(small.cache_bytes, blocks * 34);
    assert_int_equal(wick_predict(file, fast, &q4_0, &small, NULL), WICK_OK);
    assert_int_equal(small.cache_bytes, blocks * 18);
    assert_int_equal(wick_predict(file, fast, NULL, &p, NULL), WICK_OK);
    assert_int_equal(p.cache_bytes, blocks * 32 * sizeof(float));
    wick_file_close(file);
    assert_int_equal(wick_model_open(fast, real, &(wick_model_desc){.no_map = true}, &model, NULL),
                     WICK_OK);
    wick_model_get_info(model, &info);
    assert_int_equal(info.weight_bytes, p.weight_bytes);
    wick_device_get_stats(fast, &stats);
    assert_int_equal(stats.buffer_bytes, p.weight_bytes);
    wick_model_close(model);
    wick_device_close(fast);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_small),           cmocka_unit_test(test_cache_types),
        cmocka_unit_test(test_context),         cmocka_unit_test(test_room),
        cmocka_unit_test(test_default_context), cmocka_unit_test(test_room_of_cpu),
        cmocka_unit_test(test_refused),         cmocka_unit_test(test_real),
        cmocka_unit_test(test_blocks),          cmocka_unit_test(test_default_of_longrope),
        cmocka_unit_test(test_needed_bytes),    cmocka_unit_test(test_limit),
        cmocka_unit_test(test_low_memory),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
