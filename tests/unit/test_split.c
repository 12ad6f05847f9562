/* Split files: their names, one source over the parts, and parts that do not belong together. */
#include "source/split.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "checked_heap.h"
#include "gguf_bytes.h"
#include "llm/llm.h"
#include "source/header.h"

#include <stdio.h>
#include <string.h>

static void test_names(void **state) {
    (void)state;
    size_t stem;
    uint32_t part, n_parts;
    assert_true(wk_split_parse_name("a/b-00002-of-00013.gguf", &stem, &part, &n_parts));
    assert_true(stem == 3 && part == 2 && n_parts == 13);
    assert_true(wk_split_parse_name("-99999-of-99999.gguf", &stem, &part, &n_parts));
    assert_true(stem == 0 && part == 99999 && n_parts == 99999);
    static const char *const others[] = {
        "",
        "b.gguf",
        "-of-.gguf",
        "b-0002-of-00013.gguf",
        "b-00002-of-00013.ggu",
        "b-00002-of-0001x.gguf",
        "b-00000-of-00013.gguf",
        "b-00014-of-00013.gguf",
    };
    for (size_t i = 0; i < WK_COUNT(others); i++)
        assert_false(wk_split_parse_name(others[i], &stem, &part, &n_parts));
    wk_heap heap;
    wk_heap_init(&heap, NULL);
    wk_strbuf name;
    wk_strbuf_init(&name, &heap);
    wk_split_name(&name, (wk_str){"x/yz", 3}, 2, 13);
    assert_string_equal(name.data, "x/y-00002-of-00013.gguf");
    wk_strbuf_release(&name);
}

/* ---- Joining ---- */

enum { N = 3 };
static const char *const names[N] = {"one", "two", "three"};
static gguf_bytes files[N];

/* What a case changes. */
typedef struct variant {
    uint64_t no, count, n_tensors; /* of the second part */
    const char *tensor, *name;     /* of the second part */
    uint64_t n_all;                /* tensors of all parts */
    const char *words;             /* of the refusal */
    bool has_other_type;           /* its number is i32, not u32 */
} variant;

static const variant right = {1, 3, 4, "b", "model", 4, NULL, false};

static void put_numbers(gguf_bytes *file, uint64_t no, uint64_t count, uint64_t n_tensors) {
    put_key(file, "split.no", WICK_VALUE_U16);
    put_bytes(file, &no, 2);
    put_key(file, "split.count", WICK_VALUE_U16);
    put_bytes(file, &count, 2);
    put_key(file, "split.tensors.count", WICK_VALUE_I32);
    put_u32(file, (uint32_t)n_tensors);
}

/* Three parts: "a" and an empty "z"; "b"; "c" at alignment 8. */
static void make_parts(const variant *v) {
    static const uint64_t five[] = {5}, none[] = {0};
    put_start(&files[0], 3, 2, 5);
    put_key(&files[0], "general.name", WICK_VALUE_STRING);
    put_text(&files[0], "model");
    put_key(&files[0], "number", WICK_VALUE_U32);
    put_u32(&files[0], 7);
    put_numbers(&files[0], 0, 3, v->n_all);
    put_tensor(&files[0], "a", 1, five, 0, 0);
    put_tensor(&files[0], "z", 1, none, 0, 0);
    put_data(&files[0], 32, 20);

    put_start(&files[1], 2, 1, 5);
    put_key(&files[1], "general.name", WICK_VALUE_STRING);
    put_text(&files[1], v->name);
    put_key(&files[1], "number", v->has_other_type ? WICK_VALUE_I32 : WICK_VALUE_U32);
    put_u32(&files[1], 7);
    put_numbers(&files[1], v->no, v->count, v->n_tensors);
    put_tensor(&files[1], v->tensor, 1, five, 0, 64);
    put_data(&files[1], 32, 84);

    put_start(&files[2], 1, 1, 4);
    put_key(&files[2], "general.alignment", WICK_VALUE_U32);
    put_u32(&files[2], 8);
    put_numbers(&files[2], 2, 3, v->n_all);
    put_tensor(&files[2], "c", 1, five, 0, 8);
    put_data(&files[2], 8, 28);
    for (int i = 0; i < N; i++) { /* the last 20 bytes are the tensor's */
        for (size_t k = 0; k < 20; k++)
            files[i].data[files[i].size - 20 + k] = (uint8_t)(10 * i + (int)k + 1);
    }
}

static wick_status join(const wick_allocator *hook, const int *order, size_t n, wick_source *source,
                        wick_error *error) {
    wick_source parts[N];
    const char *ordered[N];
    for (size_t i = 0; i < n; i++) {
        parts[i] = wick_source_memory(files[order[i]].data, files[order[i]].size);
        ordered[i] = names[order[i]];
    }
    *error = (wick_error){.status = WICK_OK};
    return wk_split_join(hook, parts, ordered, n, source, error);
}

static const int in_order[N] = {0, 1, 2};

/* Any range, read in any way, holds the same bytes; mappings show them, too. */
static void check_ranges(wick_source *source, const uint8_t *whole) {
    uint8_t found[1024];
    size_t got;
    for (size_t at = 0; at <= source->size; at += 3) {
        for (size_t size = 1; size < 200; size += 37) {
            const size_t left = (size_t)source->size - at, n = size < left ? size : left;
            assert_int_equal(source->read_at(source, at, size, found, NULL), WICK_OK);
            assert_int_equal(source->poll(source, &got, NULL), WICK_OK);
            assert_int_equal(got, n);
            assert_memory_equal(found, whole + at, n);
            const void *const mapped = source->map(source, at, size);
            if (mapped != NULL) assert_memory_equal(mapped, whole + at, size);
            source->drop(source, at, size);
        }
    }
}

static void test_join(void **state) {
    (void)state;
    make_parts(&right);
    wick_source source;
    wick_error error;
    assert_int_equal(join(NULL, in_order, N, &source, &error), WICK_OK);
    uint8_t whole[1024];
    assert_true(source.size <= sizeof whole);
    size_t got;
    assert_int_equal(source.read_at(&source, 0, sizeof whole, whole, NULL), WICK_OK);
    assert_int_equal(source.poll(&source, &got, NULL), WICK_OK);
    assert_int_equal(got, source.size);
    check_ranges(&source, whole);

    wk_heap heap;
    wk_heap_init(&heap, NULL);
    wk_gguf_parser *parser;
    assert_int_equal(wk_read_header(&heap, &source, &parser, &error), WICK_OK);
    const wk_gguf *const gguf = wk_gguf_parser_result(parser);
    assert_int_equal(gguf->n_values, 2);
    assert_string_equal(wk_gguf_find(gguf, "general.name")->string.text, "model");
    assert_int_equal(gguf->n_tensors, 4);
    static const char *const tensors[N] = {"a", "b", "c"};
    for (int i = 0; i < N; i++) {
        const wick_file_tensor *const tensor = wk_gguf_find_tensor(gguf, tensors[i]);
        const uint8_t *const data = files[i].data + files[i].size - 20;
        assert_memory_equal(whole + tensor->offset, data, 20);
        assert_ptr_equal(source.map(&source, tensor->offset, 20), data);
        assert_null(source.map(&source, tensor->offset, 21));
    }
    assert_int_equal(wk_split_check_whole(gguf, &error), WICK_OK);
    wk_gguf_parser_free(parser);
    source.close(&source);
}

static void check_refused(const int *order, size_t n, wick_status status, const char *words) {
    wick_source source;
    wick_error error;
    checked_heap checked;
    checked_heap_init(&checked, UINT64_MAX);
    assert_int_equal(join(&checked.heap.hook, order, n, &source, &error), status);
    if (strstr(error.message, words) == NULL) fail_msg("'%s' lacks '%s'", error.message, words);
    assert_int_equal(checked.n_live, 0);
}

static void test_refused(void **state) {
    (void)state;
    static const variant wrong[] = {
        {2, 3, 4, "b", "model", 4, "'two' stands where part 2 belongs, but it is part 3", false},
        {1, 4, 4, "b", "model", 4, "'two' is of a model of 4 parts, but there are 3", false},
        {1, 3, 5, "b", "model", 4, "parts of different models: one of 4 tensors, one of 5", false},
        {1, 3, 4, "b", "other", 4, "parts of different models: 'general.name' is not the same",
         false},
        {1, 3, 4, "a", "model", 4, "'one' and 'two' both have the tensor 'a'", false},
        {1, 3, 7, "b", "model", 7, "the parts have 4 tensors, but the model 'one' begins has 7",
         false},
        {1, 3, 4, "b", "model", 4, "parts of different models: 'number' is not the same", true},
    };
    for (size_t i = 0; i < WK_COUNT(wrong); i++) {
        make_parts(&wrong[i]);
        check_refused(in_order, N, WICK_ERR_FORMAT, wrong[i].words);
    }
    make_parts(&right);
    check_refused((const int[]){0, 2, 1}, N, WICK_ERR_FORMAT, "'three' stands where part 2");
    check_refused((const int[]){1, 0, 2}, N, WICK_ERR_FORMAT, "'two' stands where part 1");
    check_refused(in_order, 2, WICK_ERR_FORMAT, "of 3 parts, but there are 2");
    put_start(&files[1], 3, 0, 0);
    check_refused(in_order, N, WICK_ERR_FORMAT, "'two' is not part of a split model");
    files[1].size = 20;
    check_refused(in_order, N, WICK_ERR_FORMAT, "'two': byte 20: the file ends inside");
}

static void test_short_memory(void **state) {
    (void)state;
    make_parts(&right);
    wick_status status = WICK_ERR_OUT_OF_MEMORY;
    uint64_t n = 0;
    for (; status != WICK_OK; n++) {
        checked_heap checked;
        checked_heap_init(&checked, n);
        wick_source source;
        wick_error error;
        status = join(&checked.heap.hook, in_order, N, &source, &error);
        assert_true(status == WICK_OK || status == WICK_ERR_OUT_OF_MEMORY);
        assert_int_equal(status, error.status);
        if (status == WICK_OK) source.close(&source);
        assert_int_equal(checked.n_live, 0);
        assert_int_equal(checked.n_wrong_sizes, 0);
    }
    assert_true(n > 20);
}

static void test_arguments(void **state) {
    (void)state;
    static const char *const path = "/nonexistent/m-00002-of-00003.gguf";
    const char *const none[] = {path, NULL};
    wick_source source;
    wick_error error = {.status = WICK_OK};
    assert_int_equal(wick_source_files(NULL, 1, &source, NULL), WICK_ERR_ARGUMENT);
    assert_int_equal(wick_source_files(&path, 0, &source, NULL), WICK_ERR_ARGUMENT);
    assert_int_equal(wick_source_files(&path, 1, NULL, NULL), WICK_ERR_ARGUMENT);
    assert_int_equal(wick_source_files(none, 2, &source, NULL), WICK_ERR_ARGUMENT);
    assert_int_equal(wick_source_files(&path, 1, &source, &error), WICK_ERR_NOT_FOUND);
    assert_non_null(strstr(error.message, "part 1 of 3 of the model is missing: "));
    assert_non_null(strstr(error.message, "'/nonexistent/m-00001-of-00003.gguf'"));
}

/* ---- Parts that do not answer at once ---- */

typedef struct slow_part {
    wick_source inner;
    int n_polls; /* of the read under way */
    int n_open;  /* 1 until it is closed */
} slow_part;

static wick_status slow_read_at(wick_source *source, uint64_t offset, size_t size, void *dst,
                                wick_error *error) {
    slow_part *const slow = source->user;
    slow->n_polls = 0;
    return slow->inner.read_at(&slow->inner, offset, size, dst, error);
}

static wick_status slow_poll(wick_source *source, size_t *got, wick_error *error) {
    slow_part *const slow = source->user;
    return ++slow->n_polls < 3 ? WICK_PENDING : slow->inner.poll(&slow->inner, got, error);
}

static void slow_close(wick_source *source) { ((slow_part *)source->user)->n_open--; }

static void make_slow(slow_part slow[N], wick_source parts[N]) {
    make_parts(&right);
    for (int i = 0; i < N; i++) {
        slow[i] = (slow_part){wick_source_memory(files[i].data, files[i].size), 0, 1};
        parts[i] = (wick_source){.user = &slow[i],
                                 .size = files[i].size,
                                 .read_at = slow_read_at,
                                 .poll = slow_poll,
                                 .close = slow_close};
    }
}

static void check_closed(const slow_part slow[N]) {
    for (int i = 0; i < N; i++) assert_int_equal(slow[i].n_open, 0);
}

/* Polls until the end, which must not come at once. */
static wick_status poll_read(wick_source *source, size_t *got, wick_error *error) {
    assert_int_equal(source->poll(source, got, error), WICK_PENDING);
    wick_status status;
    do status = source->poll(source, got, error);
    while (status == WICK_PENDING);
    return status;
}

static void test_slow_parts(void **state) {
    (void)state;
    slow_part slow[N];
    wick_source parts[N], source, at_once;
    make_slow(slow, parts);
    wick_error error;
    assert_int_equal(join(NULL, in_order, N, &at_once, &error), WICK_OK);
    wick_source_joining *joining;
    assert_int_equal(wick_source_join_start(parts, names, N, &joining, &error), WICK_OK);
    int n_polls = 0;
    while (wick_source_join_poll(joining) == WICK_PENDING) n_polls++;
    assert_true(n_polls >= 2 * N);
    assert_int_equal(wick_source_join_finish(joining, &source, &error), WICK_OK);
    assert_true(source.size == at_once.size && source.map == NULL && !source.is_sequential);
    uint8_t whole[1024], found[1024];
    size_t got;
    assert_int_equal(at_once.read_at(&at_once, 0, sizeof whole, whole, &error), WICK_OK);
    assert_int_equal(at_once.poll(&at_once, &got, &error), WICK_OK);
    for (int i = 0; i < 2; i++) { /* one that was given up is followed by another */
        assert_int_equal(source.read_at(&source, 0, sizeof found, found, &error), WICK_OK);
        assert_int_equal(source.poll(&source, &got, &error), WICK_PENDING);
    }
    assert_int_equal(source.read_at(&source, 0, sizeof found, found, &error), WICK_OK);
    assert_int_equal(poll_read(&source, &got, &error), WICK_OK);
    assert_int_equal(got, source.size);
    assert_memory_equal(found, whole, got);

    slow[2].inner.size -= 5; /* a file that was cut meanwhile */
    assert_int_equal(source.read_at(&source, 0, sizeof found, found, &error), WICK_OK);
    assert_int_equal(poll_read(&source, &got, &error), WICK_ERR_IO);
    assert_non_null(strstr(error.message, "5 bytes"));
    source.close(&source);
    at_once.close(&at_once);
    check_closed(slow);
}

static void test_given_up(void **state) {
    (void)state;
    slow_part slow[N];
    wick_source parts[N], source;
    wick_source_joining *joining;
    for (int n_polls = 0; n_polls < 8; n_polls++) {
        make_slow(slow, parts);
        wick_error error = {.status = WICK_OK};
        assert_int_equal(wick_source_join_start(parts, names, N, &joining, &error), WICK_OK);
        for (int i = 0; i < n_polls; i++)
            assert_int_equal(wick_source_join_poll(joining), WICK_PENDING);
        assert_int_equal(wick_source_join_finish(joining, &source, &error), WICK_ERR_CANCELLED);
        assert_null(source.close);
        check_closed(slow);
    }
}

static void test_start_refused(void **state) {
    (void)state;
    slow_part slow[N];
    wick_source parts[N], source;
    wick_source_joining *joining;
    wick_error error = {.status = WICK_OK};
    make_slow(slow, parts);
    parts[1].is_sequential = true;
    assert_int_equal(wick_source_join_start(parts, names, N, &joining, &error),
                     WICK_ERR_UNSUPPORTED);
    assert_null(joining);
    check_closed(slow);
    make_slow(slow, parts);
    parts[1].poll = NULL;
    assert_int_equal(wick_source_join_start(parts, names, N, &joining, NULL), WICK_ERR_ARGUMENT);
    check_closed(slow);
    make_slow(slow, parts);
    assert_int_equal(wick_source_join_start(parts, NULL, N, &joining, NULL), WICK_ERR_ARGUMENT);
    check_closed(slow);
    assert_int_equal(wick_source_join_start(NULL, names, N, &joining, NULL), WICK_ERR_ARGUMENT);
    assert_int_equal(wick_source_join_start(parts, names, 0, &joining, NULL), WICK_ERR_ARGUMENT);
    assert_int_equal(wick_source_join_poll(NULL), WICK_ERR_ARGUMENT);
    assert_int_equal(wick_source_join_finish(NULL, &source, NULL), WICK_ERR_ARGUMENT);
    make_slow(slow, parts);
    assert_int_equal(wick_source_join_start(parts, names, N, &joining, NULL), WICK_OK);
    while (wick_source_join_poll(joining) == WICK_PENDING) continue;
    assert_int_equal(wick_source_join_finish(joining, NULL, NULL), WICK_ERR_ARGUMENT);
    check_closed(slow);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),     cmocka_unit_test(test_join),
        cmocka_unit_test(test_refused),   cmocka_unit_test(test_short_memory),
        cmocka_unit_test(test_arguments), cmocka_unit_test(test_slow_parts),
        cmocka_unit_test(test_given_up),  cmocka_unit_test(test_start_refused),
    };
    return cmocka_run_group_tests_name("split", tests, NULL, NULL);
}
