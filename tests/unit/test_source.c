/* Sources: files, memory and pushed bytes give the same bytes, and the reader's window over them.
 */
#include <wick/source.h>

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "fixture_file.h"
#include "source/reader.h"

#include <string.h>

enum { SIZE = 10000 };
static unsigned char bytes[SIZE];
static char path[1024];

static int begin(void **state) {
    (void)state;
    for (size_t i = 0; i < SIZE; i++) bytes[i] = (unsigned char)(i * 7 + i / 256);
    const char *const build = getenv("WICK_BUILD_DIR");
    snprintf(path, sizeof path, "%s/test_source.bin", build != NULL ? build : ".");
    FILE *const out = fopen(path, "wb");
    if (out == NULL || fwrite(bytes, 1, SIZE, out) != SIZE) return -1;
    return fclose(out);
}

static int end(void **state) {
    (void)state;
    return remove(path);
}

static void check_reads(wick_source *source) {
    static const size_t places[][2] = {{0, SIZE}, {0, 0}, {5, 17}, {SIZE - 1, 1}, {4096, 4096}};
    static unsigned char found[SIZE];
    wick_error error = {.status = WICK_OK};
    size_t got;
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        const size_t at = places[i][0], size = places[i][1];
        assert_int_equal(source->read_at(source, at, size, found, &error), WICK_OK);
        assert_int_equal(source->poll(source, &got, &error), WICK_OK);
        assert_int_equal(got, size);
        assert_memory_equal(found, bytes + at, size);
        assert_memory_equal(source->map(source, at, size), bytes + at, size);
    }
    /* Fewer at the end, none beyond. */
    assert_int_equal(source->read_at(source, SIZE - 3, 10, found, &error), WICK_OK);
    assert_int_equal(source->poll(source, &got, &error), WICK_OK);
    assert_int_equal(got, 3);
    assert_int_equal(source->read_at(source, UINT64_MAX, 10, found, &error), WICK_OK);
    assert_int_equal(source->poll(source, &got, &error), WICK_OK);
    assert_int_equal(got, 0);
    assert_null(source->map(source, SIZE - 3, 4));
    assert_null(source->map(source, UINT64_MAX, 2));
}

static void test_file(void **state) {
    (void)state;
    wick_source source;
    wick_error error = {.status = WICK_OK};
    assert_int_equal(wick_source_file(path, &source, &error), WICK_OK);
    assert_int_equal(source.size, SIZE);
    assert_false(source.is_sequential);
    assert_non_null(source.map);
    check_reads(&source);
    source.drop(&source, 0, SIZE);
    assert_memory_equal(source.map(&source, 0, SIZE), bytes, SIZE);
    source.close(&source);

    assert_int_equal(wick_source_file("/nonexistent/model.gguf", &source, &error),
                     WICK_ERR_NOT_FOUND);
    assert_non_null(strstr(error.message, "/nonexistent/model.gguf"));
    assert_int_equal(wick_source_file(NULL, &source, NULL), WICK_ERR_ARGUMENT);
}

static void test_memory(void **state) {
    (void)state;
    wick_source source = wick_source_memory(bytes, SIZE);
    check_reads(&source);
    source.close(&source);
    source = wick_source_memory(NULL, 0);
    assert_null(source.map(&source, 0, 0));
    source.close(&source);
}

/* --- Pushed bytes --- */

static void test_push(void **state) {
    (void)state;
    wick_source source;
    wick_push_source *push;
    wick_error error = {.status = WICK_OK};
    unsigned char found[100];
    size_t got;
    assert_int_equal(wick_source_push_make(WICK_SIZE_UNKNOWN, &source, &push), WICK_OK);
    assert_true(source.is_sequential);
    assert_null(source.map);
    assert_int_equal(source.read_at(&source, 0, 10, found, &error), WICK_OK);
    assert_int_equal(source.poll(&source, &got, &error), WICK_PENDING);
    assert_int_equal(wick_source_push(push, bytes, 4), WICK_OK);
    assert_int_equal(wick_source_push(push, bytes + 4, 0), WICK_OK);
    assert_int_equal(source.poll(&source, &got, &error), WICK_PENDING);
    assert_int_equal(wick_source_push(push, bytes + 4, 20), WICK_OK);
    assert_int_equal(source.poll(&source, &got, &error), WICK_OK);
    assert_int_equal(got, 10);
    assert_memory_equal(found, bytes, 10);
    assert_int_equal(source.read_at(&source, 9, 1, found, &error), WICK_ERR_ARGUMENT);
    assert_int_equal(source.read_at(&source, 10, 100, found, NULL), WICK_OK);
    wick_source_push_finish(push);
    assert_int_equal(source.poll(&source, &got, NULL), WICK_OK);
    assert_int_equal(got, 14);
    assert_memory_equal(found, bytes + 10, 14);
    source.close(&source);
}

static void test_push_sizes(void **state) {
    (void)state;
    wick_source source;
    wick_push_source *push;
    wick_error error = {.status = WICK_OK};
    unsigned char found[10];
    size_t got;
    assert_int_equal(wick_source_push_make(10, &source, &push), WICK_OK);
    assert_int_equal(wick_source_push(push, bytes, 11), WICK_ERR_ARGUMENT);
    assert_int_equal(wick_source_push(push, bytes, 8), WICK_OK);
    assert_int_equal(wick_source_push(push, NULL, 1), WICK_ERR_ARGUMENT);
    wick_source_push_finish(push);
    assert_int_equal(source.read_at(&source, 0, 10, found, &error), WICK_OK);
    assert_int_equal(source.poll(&source, &got, &error), WICK_ERR_IO);
    assert_string_equal(error.message, "the stream ended after 8 of 10 bytes");
    source.close(&source);

    /* Closed before the pusher knows. */
    assert_int_equal(wick_source_push_make(10, &source, &push), WICK_OK);
    assert_int_equal(wick_source_push(push, bytes, 8), WICK_OK);
    source.close(&source);
    assert_int_equal(wick_source_push(push, bytes, 1), WICK_ERR_CANCELLED);
    wick_source_push_finish(push);
    wick_source_push_finish(NULL);
}

/* --- The reader --- */

/* Asks again until it is there; pushes step bytes each time it has to wait. */
static wick_status get(wk_reader *reader, wick_push_source *push, size_t step, size_t *pushed,
                       uint64_t offset, size_t size, size_t *got, const unsigned char **out) {
    for (;;) {
        const wick_status status = wk_reader_get(reader, offset, size, out, got, NULL);
        if (status != WICK_PENDING) return status;
        const size_t left = SIZE - *pushed, n = step < left ? step : left;
        assert_int_equal(wick_source_push(push, bytes + *pushed, n), WICK_OK);
        *pushed += n;
    }
}

static void check_reader(wick_source *source, wick_push_source *push, size_t step) {
    static const size_t places[][2] = {{0, 100},  {0, 200},    {50, 100}, {150, 3000},
                                       {151, 10}, {3000, 500}, {9000, 10}};
    wk_heap heap;
    wk_heap_init(&heap, NULL);
    for (int use_map = 0; use_map <= (source->is_sequential ? 0 : 1); use_map++) {
        wk_reader reader;
        wk_reader_init(&reader, &heap, source, use_map != 0);
        size_t pushed = 0, got;
        const unsigned char *found;
        for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
            const size_t at = places[i][0], size = places[i][1];
            assert_int_equal(get(&reader, push, step, &pushed, at, size, &got, &found), WICK_OK);
            assert_int_equal(got, size);
            assert_memory_equal(found, bytes + at, size);
        }
        while (push != NULL && pushed < SIZE) {
            wick_source_push(push, bytes + pushed, 1);
            pushed++;
        }
        if (push != NULL) wick_source_push_finish(push);
        assert_int_equal(wk_reader_get(&reader, 9990, 100, &found, &got, NULL), WICK_OK);
        assert_int_equal(got, 10);
        assert_memory_equal(found, bytes + 9990, 10);
        assert_int_equal(wk_reader_get(&reader, 20000, 100, &found, &got, NULL), WICK_OK);
        assert_int_equal(got, 0);
        assert_int_equal(wk_reader_get(&reader, 30000, 100, &found, &got, NULL), WICK_OK);
        assert_int_equal(got, 0);
        wk_reader_release(&reader);
    }
    assert_int_equal(heap.live_bytes, 0);
}

static void test_reader(void **state) {
    (void)state;
    wick_source source = wick_source_memory(bytes, SIZE);
    check_reader(&source, NULL, 0);
    assert_int_equal(wick_source_file(path, &source, NULL), WICK_OK);
    check_reader(&source, NULL, 0);
    source.close(&source);
    static const size_t steps[] = {1, 7, 64, 1000, SIZE};
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        wick_push_source *push;
        assert_int_equal(wick_source_push_make(i % 2 ? SIZE : WICK_SIZE_UNKNOWN, &source, &push),
                         WICK_OK);
        check_reader(&source, push, steps[i]);
        source.close(&source);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_file),   cmocka_unit_test(test_memory),
        cmocka_unit_test(test_push),   cmocka_unit_test(test_push_sizes),
        cmocka_unit_test(test_reader),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
