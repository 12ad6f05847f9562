/* Loading: every source gives the same weights; every file that ends too early, and every step that
 * fails, ends in a status, with everything given back. */
#include "llm/llm.h"

#include <wick/ops.h>
#include <wick/session.h>

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "amount.h"
#include "checked_heap.h"
#include "core/checksum.h"
#include "fixture_file.h"
#include "model/model_struct.h"
#include "small_model.h"

#include <math.h>

typedef enum way { WAY_MEMORY, WAY_READ, WAY_FILE, WAY_PUSH, WAY_STREAM, WAY_COUNT } way;

static wick_device *device;
static char path[1024];
static gguf_bytes small_file;
static size_t header_size; /* of small_file */

static int begin(void **state) {
    (void)state;
    const char *const build = getenv("WICK_BUILD_DIR");
    snprintf(path, sizeof path, "%s/test_load.gguf", build != NULL ? build : ".");
    small_model small = small_model_make();
    small_add_tensor(&small, "rope_freqs.weight", 2, 0);
    small_write(&small, false, &small_file);
    header_size = small_file.size;
    small_write(&small, true, &small_file);
    const wick_device_desc desc = {.backend = WICK_BACKEND_CPU, .n_threads = 1};
    return wick_device_open(&desc, &device, NULL) == WICK_OK ? 0 : -1;
}

static int end(void **state) {
    (void)state;
    wick_device_stats stats;
    wick_device_get_stats(device, &stats);
    wick_device_close(device);
    remove(path);
    return stats.buffer_bytes == 0 ? 0 : -1;
}

static void write_path(const uint8_t *data, size_t size) {
    FILE *const out = fopen(path, "wb");
    assert_non_null(out);
    assert_int_equal(fwrite(data, 1, size, out), size);
    assert_int_equal(fclose(out), 0);
}

/* Polls to the end, pushing chunk bytes whenever the loading waits for them; a stream whose size
 * no one knows just ends. */
static wick_status drive(wick_model_loading *loading, wick_push_source *push, const uint8_t *data,
                         size_t size, size_t chunk) {
    wick_progress progress = {0}, last = {0};
    size_t pushed = 0;
    wick_status status;
    while ((status = wick_model_open_poll(loading, &progress)) == WICK_PENDING) {
        assert_true(progress.done >= last.done);
        assert_true(progress.total == 0 || progress.done <= progress.total);
        last = progress;
        if (push == NULL) continue;
        const size_t left = size - pushed, n = chunk < left ? chunk : left;
        if (n == 0)
            wick_source_push_finish(push), push = NULL;
        else
            assert_int_equal(wick_source_push(push, data + pushed, n), WICK_OK);
        pushed += n;
    }
    if (push != NULL) wick_source_push_finish(push);
    if (status == WICK_OK) assert_true(progress.done == progress.total);
    return status;
}

static wick_status load(way by, const uint8_t *data, size_t size, size_t chunk, wick_model **model,
                        wick_error *error) {
    wick_source source;
    wick_push_source *push = NULL;
    const wick_model_desc desc = {.no_map = by == WAY_READ};
    wick_model_loading *loading;
    *error = (wick_error){.status = WICK_OK};
    *model = NULL;
    if (by == WAY_FILE) {
        write_path(data, size);
        assert_int_equal(wick_source_file(path, &source, error), WICK_OK);
    } else if (by == WAY_PUSH || by == WAY_STREAM) {
        const uint64_t known = by == WAY_PUSH ? size : WICK_SIZE_UNKNOWN;
        assert_int_equal(wick_source_push_make(known, &source, &push), WICK_OK);
    } else {
        source = wick_source_memory(data, size);
    }
    const wick_status started = wick_model_open_start(device, source, &desc, &loading, error);
    if (started != WICK_OK) {
        wick_source_push_finish(push);
        return started;
    }
    const wick_status polled = drive(loading, push, data, size, chunk);
    const wick_status finished = wick_model_open_finish(loading, model, error);
    assert_int_equal(finished, polled);
    assert_int_equal(error->status, finished);
    assert_true(finished == WICK_OK || error->message[0] != '\0');
    assert_true((finished == WICK_OK) == (*model != NULL));
    return finished;
}

/* An f32 weight decodes to the file's very bytes, regardless of its layout. */
static void check_weight(wick_tensor *weight, const wick_model *model, const char *name,
                         const uint8_t *data) {
    static uint8_t found[1 << 20];
    const wick_file_tensor *const tensor = wk_gguf_find_tensor(model->gguf, name);
    if (tensor == NULL) {
        assert_null(weight);
        return;
    }
    assert_true(tensor->size <= sizeof found);
    const wick_scope scope = wick_scope_begin(device);
    if (tensor->shape.rank == 2) {
        wick_tensor *const ids =
            wick_arange(device, WICK_U32, 0.0, (double)tensor->shape.extent[0], 1.0);
        weight = wick_embedding(weight, ids);
    }
    assert_int_equal(wick_read(weight, found, (size_t)tensor->size), WICK_OK);
    wick_scope_end(scope);
    assert_memory_equal(found, data + tensor->offset, (size_t)tensor->size);
}

static bool is_name_of_earlier(const char *const names[], int w) {
    for (int i = 1; i < w; i++)
        if (strcmp(names[i], names[w]) == 0) return true;
    return false;
}

static void check_weights(const wick_model *model, const uint8_t *data) {
#define WK_MODEL_WEIGHT(...)
#define WK_LAYER_WEIGHT(id, name, ...) name,
    static const char *const names[] = {
        NULL,
#include "model/weights.def"
    };
#undef WK_MODEL_WEIGHT
#undef WK_LAYER_WEIGHT
    const wk_model *const net = model->model;
    wick_tensor *const *const weight = net->stage_weights[0].weight;
    check_weight(weight[WK_TOKEN_EMBEDDING], model, "token_embd.weight", data);
    check_weight(weight[WK_OUTPUT_NORM], model, "output_norm.weight", data);
    assert_null(weight[WK_OUTPUT]);
    for (uint32_t i = 0; i < model->info.n_layers; i++) {
        for (int w = 1; w < WK_LAYER_WEIGHT_COUNT; w++) {
            char name[64];
            if (is_name_of_earlier(names, w)) continue; /* for mixers that these models lack */
            snprintf(name, sizeof name, "blk.%u.%s", (unsigned)i, names[w]);
            check_weight(net->layers[i].weight[w], model, name, data);
        }
    }
}

static const size_t chunks[] = {1, 7, 64, 4096, 65536};

static void test_small(void **state) {
    (void)state;
    for (int by = 0; by < WAY_COUNT; by++) {
        for (size_t c = 0; c < WK_COUNT(chunks); c++) {
            wick_model *model;
            wick_error error;
            if (load((way)by, small_file.data, small_file.size, chunks[c], &model, &error) !=
                WICK_OK)
                fail_msg("way %d: %s", by, error.message);
            check_weights(model, small_file.data);
            assert_int_equal(model->info.file_bytes, small_file.size);
            assert_string_equal(model->info.name, "small");
            assert_string_equal(model->info.types, "f32 21");
            assert_int_equal(wick_tokenizer_size(wick_model_tokenizer(model)), SMALL_VOCAB);
            assert_ptr_equal(wick_model_device(model), device);
            /* 1 and 0.01, divided by the first two values of rope_freqs.weight. */
            const wk_hparams *const hparams = wk_model_hparams(model->model);
            const wick_file_tensor *const divisors =
                wk_gguf_find_tensor(model->gguf, "rope_freqs.weight");
            float first;
            memcpy(&first, small_file.data + divisors->offset, sizeof first);
            assert_true(fabs(hparams->rope[0].frequency[0] - 1.0 / (double)first) < 1e-15);
            wick_model_close(model);
        }
    }
}

static void test_stories(void **state) {
    (void)state;
    fixture_file file;
    if (!fixture_read("WICK_TEST_DATA", "stories260K.gguf", &file)) skip();
    for (int by = 0; by < WAY_COUNT; by++) {
        wick_model *model;
        wick_error error;
        if (load((way)by, file.data, file.size, 100000, &model, &error) != WICK_OK)
            fail_msg("way %d: %s", by, error.message);
        check_weights(model, file.data);
        wick_model_info info;
        wick_model_get_info(model, &info);
        assert_string_equal(info.name, "stories260K");
        assert_string_equal(info.architecture, "llama");
        assert_string_equal(info.types, "f32 47");
        assert_int_equal(info.n_layers, 5);
        assert_int_equal(info.n_vocab, 512);
        assert_int_equal(info.n_parameters, 260032);
        assert_true(info.weight_bytes >= 4 * info.n_parameters);
        wick_model_close(model);
    }
    free(file.data);
}

/* --- The checksum of the weights --- */

/* One for each model, however its bytes come and wherever they go: in place, or into a layout. */
static void test_weights_checksum(void **state) {
    (void)state;
    static const wick_isa isas[] = {WICK_ISA_REF, WICK_ISA_AUTO};
    wick_device *const usual = device;
    fixture_file file;
    if (!fixture_read("WICK_TEST_DATA", "stories260K.gguf", &file)) skip();
    uint64_t checksum = 0;
    for (size_t i = 0; i < WK_COUNT(isas); i++) {
        const wick_device_desc desc = {.backend = WICK_BACKEND_CPU, .n_threads = 1, .isa = isas[i]};
        assert_int_equal(wick_device_open(&desc, &device, NULL), WICK_OK);
        for (int by = 0; by < WAY_COUNT; by++) {
            wick_model *model;
            wick_error error;
            assert_int_equal(load((way)by, file.data, file.size, 777, &model, &error), WICK_OK);
            if (i == 0 && by == WAY_MEMORY) {
                assert_true(model->has_weights_in_place);
                checksum = model->weights_checksum;
            }
            assert_true(model->weights_checksum == checksum);
            wick_model_close(model);
        }
        wick_device_close(device);
    }
    device = usual;
    free(file.data);
}

/* The pieces do not matter; of a long tensor the first bytes and 512 of every 33 KiB count. */
static void test_sample(void **state) {
    (void)state;
    enum { LONG = 1 << 20 };
    static uint8_t bytes[LONG];
    static const size_t sizes[] = {0, 1, 16383, 16384, 16385, 40000, LONG};
    for (size_t i = 0; i < LONG; i++) bytes[i] = (uint8_t)(i * 7 + i / 256);
    for (size_t i = 0; i < WK_COUNT(sizes); i++) {
        const size_t size = sizes[i];
        const uint64_t whole = wk_checksum_sample(WK_CHECKSUM_BEGIN, size, 0, bytes, size);
        for (size_t piece = 1; piece < size; piece = 3 * piece + 1) {
            uint64_t sum = WK_CHECKSUM_BEGIN;
            for (size_t at = 0; at < size; at += piece)
                sum = wk_checksum_sample(sum, size, at, bytes + at,
                                         piece < size - at ? piece : size - at);
            assert_true(sum == whole);
        }
        size_t n_seen = 0;
        for (size_t at = 0; at < size; at += size > 20000 ? 256 : 97) {
            bytes[at] ^= 1;
            const bool is_seen =
                wk_checksum_sample(WK_CHECKSUM_BEGIN, size, 0, bytes, size) != whole;
            bytes[at] ^= 1;
            n_seen += is_seen;
            if (at == 0 || size <= 16384) assert_true(is_seen);
        }
        if (size == LONG) assert_in_range(n_seen, 62, 66); /* two of each of 32 runs */
    }
}

static void check_cut(way by, const uint8_t *data, size_t size, size_t chunk) {
    uint8_t *const cut = malloc(size > 0 ? size : 1); /* exact, for the sanitizer */
    if (size > 0) memcpy(cut, data, size);
    wick_model *model;
    wick_error error;
    const wick_status status = load(by, cut, size, chunk, &model, &error);
    if (status != WICK_ERR_FORMAT && status != WICK_ERR_IO)
        fail_msg("way %d cut at %zu: status %d, %s", (int)by, size, (int)status, error.message);
    free(cut);
}

static void test_truncated_anywhere(void **state) {
    (void)state;
    for (size_t size = 0; size < small_file.size; size += case_step(3, 7)) {
        check_cut(WAY_MEMORY, small_file.data, size, 0);
        check_cut(WAY_READ, small_file.data, size, 0);
        check_cut(WAY_STREAM, small_file.data, size, 64);
        check_cut(WAY_PUSH, small_file.data, size, size % 100 + 1);
        if (size % 50 == 0) check_cut(WAY_FILE, small_file.data, size, 0);
    }
}

static void test_truncated_stories(void **state) {
    (void)state;
    fixture_file file;
    if (!fixture_read("WICK_TEST_DATA", "stories260K.gguf", &file)) skip();
    for (size_t size = 0; size < file.size; size += 1024) {
        check_cut(WAY_MEMORY, file.data, size, 0);
        if (size % 16384 == 0) check_cut(WAY_FILE, file.data, size, 0);
        if (size % 16384 == 0) check_cut(WAY_STREAM, file.data, size, 10000);
    }
    free(file.data);
}

/* Every field of the header, wherever it begins, gets every unpleasant number. */
static void test_spoilt_header(void **state) {
    (void)state;
    static const uint64_t numbers[] = {0, 1, 1ULL << 31, 1ULL << 63};
    static gguf_bytes spoilt;
    for (size_t at = 0; at + 8 <= header_size; at += case_step(3, 3)) {
        for (size_t n = 0; n < 2 * WK_COUNT(numbers); n++) {
            spoilt = small_file;
            memcpy(spoilt.data + at, &numbers[n / 2], n % 2 == 0 ? 4 : 8);
            wick_model *model;
            wick_error error;
            (void)load(at % 2 == 0 ? WAY_MEMORY : WAY_STREAM, spoilt.data, spoilt.size, 65536,
                       &model, &error);
            wick_model_close(model);
        }
    }
}

/* --- Sources that are not as they should be --- */

/* Memory that is slow, and strict about the order in which it is read. */
typedef struct slow {
    const uint8_t *data;
    uint64_t size, next; /* offset that must be read next */
    uint64_t fails_at;   /* reads from there on fail */
    size_t got;
    uint32_t n_polls, n_closed;
    bool is_reading;
    void *dst; /* of the read that is under way */
} slow;

static wick_status slow_read_at(wick_source *source, uint64_t offset, size_t size, void *dst,
                                wick_error *error) {
    slow *const it = source->user;
    (void)error;
    assert_false(it->is_reading);
    assert_true(source->is_sequential ? offset == it->next : offset >= it->next);
    it->is_reading = true;
    if (offset + size > it->fails_at) return WICK_ERR_IO;
    const uint64_t left = offset < it->size ? it->size - offset : 0;
    it->got = size < left ? size : (size_t)left;
    if (it->got > 0) memcpy(dst, it->data + offset, it->got);
    it->dst = dst;
    it->next = offset + it->got;
    return WICK_OK;
}

static wick_status slow_poll(wick_source *source, size_t *got, wick_error *error) {
    slow *const it = source->user;
    (void)error;
    assert_true(it->is_reading);
    if (++it->n_polls % 3 != 0) return WICK_PENDING;
    it->is_reading = false;
    *got = it->got;
    return WICK_OK;
}

/* A read that no one waits for any more may write up to here. */
static void slow_close(wick_source *source) {
    slow *const it = source->user;
    if (it->is_reading && it->got > 0 && it->fails_at == UINT64_MAX) memset(it->dst, 0, it->got);
    it->n_closed++;
}

static wick_source slow_source(slow *it, bool is_sequential, bool is_size_known) {
    *it = (slow){.data = small_file.data, .size = small_file.size, .fails_at = UINT64_MAX};
    return (wick_source){.user = it,
                         .size = is_size_known ? it->size : WICK_SIZE_UNKNOWN,
                         .is_sequential = is_sequential,
                         .read_at = slow_read_at,
                         .poll = slow_poll,
                         .close = slow_close};
}

static void test_slow(void **state) {
    (void)state;
    for (int kind = 0; kind < 4; kind++) {
        slow it;
        wick_model_loading *loading;
        wick_model *model;
        const wick_source source = slow_source(&it, (kind & 1) != 0, (kind & 2) != 0);
        assert_int_equal(wick_model_open_start(device, source, NULL, &loading, NULL), WICK_OK);
        while (wick_model_open_poll(loading, NULL) == WICK_PENDING) continue;
        assert_int_equal(wick_model_open_finish(loading, &model, NULL), WICK_OK);
        assert_int_equal(it.n_closed, 1);
        check_weights(model, small_file.data);
        wick_model_close(model);
        assert_int_equal(it.n_closed, 1);
    }
}

static void test_failing(void **state) {
    (void)state;
    for (uint64_t at = 0; at < small_file.size; at += 100) {
        slow it;
        wick_model_loading *loading;
        wick_model *model;
        wick_error error = {.status = WICK_OK};
        const wick_source source = slow_source(&it, at % 200 == 0, true);
        it.fails_at = at;
        assert_int_equal(wick_model_open_start(device, source, NULL, &loading, NULL), WICK_OK);
        while (wick_model_open_poll(loading, NULL) == WICK_PENDING) continue;
        assert_int_equal(wick_model_open_poll(loading, NULL), WICK_ERR_IO);
        assert_int_equal(wick_model_open_finish(loading, &model, &error), WICK_ERR_IO);
        assert_string_equal(error.message, "reading the model failed");
        assert_null(model);
        assert_int_equal(it.n_closed, 1);
    }
}

static void test_cancelled(void **state) {
    (void)state;
    for (int n_polls = 0; n_polls < 3; n_polls++) {
        slow it;
        wick_model_loading *loading;
        wick_model *model;
        wick_error error = {.status = WICK_OK};
        const wick_source source = slow_source(&it, true, false);
        assert_int_equal(wick_model_open_start(device, source, NULL, &loading, NULL), WICK_OK);
        for (int i = 0; i < n_polls; i++)
            assert_int_equal(wick_model_open_poll(loading, NULL), WICK_PENDING);
        assert_int_equal(wick_model_open_finish(loading, &model, &error), WICK_ERR_CANCELLED);
        assert_null(model);
        assert_int_equal(it.n_closed, 1);
    }
}

static void test_arguments(void **state) {
    (void)state;
    slow it;
    wick_model_loading *loading;
    wick_model *model;
    wick_error error = {.status = WICK_OK};
    wick_source source = slow_source(&it, false, true);
    assert_int_equal(wick_model_open_start(NULL, source, NULL, &loading, &error),
                     WICK_ERR_ARGUMENT);
    assert_int_equal(it.n_closed, 1);
    source.poll = NULL;
    assert_int_equal(wick_model_open_start(device, source, NULL, &loading, &error),
                     WICK_ERR_ARGUMENT);
    assert_int_equal(it.n_closed, 2);
    assert_int_equal(wick_model_open(device, NULL, NULL, &model, NULL), WICK_ERR_ARGUMENT);
    /* What has no mapping cannot be computed with in place. */
    const wick_model_desc low = {.low_memory = true}, read = {.low_memory = true, .no_map = true};
    error = (wick_error){.status = WICK_OK};
    assert_int_equal(
        wick_model_open_start(device, slow_source(&it, false, true), &low, &loading, &error),
        WICK_ERR_UNSUPPORTED);
    assert_non_null(strstr(error.message, "this source cannot be mapped"));
    error = (wick_error){.status = WICK_OK};
    assert_int_equal(wick_model_open(device, "CMakeLists.txt", &read, &model, &error),
                     WICK_ERR_VALUE);
    error = (wick_error){.status = WICK_OK};
    assert_int_equal(wick_model_open(device, "/nonexistent.gguf", NULL, &model, &error),
                     WICK_ERR_NOT_FOUND);
    error = (wick_error){.status = WICK_OK};
    assert_int_equal(wick_model_open(device, "CMakeLists.txt", NULL, &model, &error),
                     WICK_ERR_FORMAT);
    assert_non_null(strstr(error.message, "'CMakeLists.txt': byte 0: "));
    wick_model_close(NULL);
}

/* --- Memory that runs out --- */

static void test_no_memory(void **state) {
    (void)state;
    bool is_enough = false;
    for (uint64_t n = 0; !is_enough; n++) {
        checked_heap poor;
        checked_heap_init(&poor, UINT64_MAX);
        const wick_device_desc desc = {
            .backend = WICK_BACKEND_CPU, .n_threads = 1, .allocator = poor.heap.hook};
        wick_device *own;
        assert_int_equal(wick_device_open(&desc, &own, NULL), WICK_OK);
        poor.n_allowed = n;
        slow it;
        wick_model_loading *loading;
        wick_model *model = NULL;
        wick_error error = {.status = WICK_OK};
        const wick_source source = slow_source(&it, true, false);
        wick_status status = wick_model_open_start(own, source, NULL, &loading, &error);
        if (status == WICK_OK) {
            while (wick_model_open_poll(loading, NULL) == WICK_PENDING) continue;
            status = wick_model_open_finish(loading, &model, &error);
        }
        is_enough = status == WICK_OK;
        if (!is_enough && status != WICK_ERR_OUT_OF_MEMORY)
            fail_msg("allocation %u: status %d, %s", (unsigned)n, (int)status, error.message);
        assert_int_equal(it.n_closed, 1);
        wick_model_close(model);
        wick_device_close(own);
        assert_int_equal(poor.n_live, 0);
        assert_int_equal(poor.n_wrong_sizes, 0);
    }
}

static void test_no_memory_for_cache(void **state) {
    (void)state;
    checked_heap poor;
    checked_heap_init(&poor, UINT64_MAX);
    const wick_device_desc desc = {
        .backend = WICK_BACKEND_CPU, .n_threads = 1, .allocator = poor.heap.hook};
    wick_device *own;
    wick_model *model;
    assert_int_equal(wick_device_open(&desc, &own, NULL), WICK_OK);
    write_path(small_file.data, small_file.size);
    assert_int_equal(wick_model_open(own, path, NULL, &model, NULL), WICK_OK);
    bool is_enough = false;
    for (uint64_t n = 0; !is_enough; n++) {
        poor.n_allowed = n;
        wk_state *cache;
        wick_error error;
        const wick_status status =
            wk_state_make(model->model, 0, &(wk_cache_desc){3, 16, WICK_F16, 0, 1}, &cache);
        is_enough = status == WICK_OK;
        assert_int_equal(wick_device_error(own, &error), status);
        assert_true(is_enough || (status == WICK_ERR_OUT_OF_MEMORY && cache == NULL));
        wk_state_free(cache);
    }
    poor.n_allowed = UINT64_MAX;
    wick_model_close(model);
    wick_device_close(own);
    assert_int_equal(poor.n_live, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_small),
        cmocka_unit_test(test_stories),
        cmocka_unit_test(test_weights_checksum),
        cmocka_unit_test(test_sample),
        cmocka_unit_test(test_truncated_anywhere),
        cmocka_unit_test(test_truncated_stories),
        cmocka_unit_test(test_spoilt_header),
        cmocka_unit_test(test_slow),
        cmocka_unit_test(test_failing),
        cmocka_unit_test(test_cancelled),
        cmocka_unit_test(test_arguments),
        cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_no_memory_for_cache),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
