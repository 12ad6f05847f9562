/* Zip archives and pickles that lie: refused with a sentence, whatever they hold. */
#include "format/archive.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "checked_heap.h"
#include "amount.h"
#include "fixture_file.h"
#include "format/inflate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct entry {
    const char *name;
    const void *bytes;
    size_t size;
} entry;

/* Offsets in an archive of the helper below. */
typedef struct made {
    wk_heap heap;
    wk_strbuf buf;
    uint64_t headers[4], directory;
} made;

static void make(made *m, const entry *entries, size_t n) {
    wk_zip_entry described[4];
    assert_true(n <= WK_COUNT(described));
    wk_heap_init(&m->heap, NULL);
    wk_strbuf_init(&m->buf, &m->heap);
    for (size_t i = 0; i < n; i++) {
        described[i] = (wk_zip_entry){.name = {entries[i].name, strlen(entries[i].name)},
                                      .size = entries[i].size,
                                      .checksum = wk_crc32(0, entries[i].bytes, entries[i].size)};
        m->headers[i] = m->buf.size;
        wk_zip_local_header(&m->buf, m->buf.size, &described[i]);
        assert_int_equal(described[i].offset % 64, 0);
        assert_int_equal(described[i].offset, m->buf.size);
        wk_strbuf_append(&m->buf, entries[i].bytes, entries[i].size);
    }
    m->directory = m->buf.size;
    wk_zip_directory(&m->buf, m->buf.size, described, m->headers, n);
    assert_false(m->buf.failed);
}

/* Opens the archive and unpacks all that it has; the sentence goes to error. */
static wick_status open_all(const void *bytes, size_t size, wk_heap *heap, size_t *n_tensors,
                            wick_error *error) {
    wk_arena arena;
    wk_archive archive;
    *error = (wick_error){.status = WICK_OK};
    wk_arena_init(&arena, heap, 0);
    wick_status status = wk_archive_parse(heap, &arena, bytes, size, &archive, error);
    assert_true(status == error->status);
    if (status == WICK_OK) {
        *n_tensors = archive.n_tensors;
        for (size_t i = 0; i < archive.n_tensors && status == WICK_OK; i++) {
            const size_t n = (size_t)archive.tensors[i].size;
            const uint8_t *data;
            if (n > 1 << 20) continue;
            unsigned char *const to = malloc(n + 1);
            assert_non_null(to);
            to[n] = 77;
            status = wk_archive_data(&archive, i, &data, error);
            if (status == WICK_OK && data != NULL)
                memcpy(to, data, n);
            else if (status == WICK_OK)
                status = wk_archive_unpack(heap, &archive, i, to, error);
            assert_int_equal(to[n], 77);
            free(to);
        }
        wk_archive_release(&archive);
    }
    wk_arena_release(&arena);
    assert_int_equal(heap->live_bytes, 0);
    return status;
}

static void check_refused(const void *bytes, size_t size, wick_status status, const char *words) {
    wk_heap heap;
    wick_error error;
    size_t n_tensors;
    wk_heap_init(&heap, NULL);
    const wick_status found = open_all(bytes, size, &heap, &n_tensors, &error);
    if (found != status) fail_msg("%d, not %d: '%s'", found, status, error.message);
    if (strstr(error.message, words) == NULL) fail_msg("'%s' lacks '%s'", error.message, words);
}

/* ---- Zip ---- */

enum { CENTRAL = 46 }; /* bytes of an entry of the directory, without name and extra field */

static const char one_array[] = "\x93NUMPY\1\0\74\0{'descr': '|u1', 'fortran_order': False, "
                                "'shape': (3,)}    \n\1\2\3";

typedef struct tampering {
    bool is_directory; /* of entry 1, else from the end of the archive back */
    int64_t at;
    const char *bytes;
    size_t size;
    wick_status status;
    const char *words;
} tampering;

static void test_zip(void **state) {
    (void)state;
    const entry two[] = {{"a.npy", one_array, sizeof one_array - 1},
                         {"b.npy", one_array, sizeof one_array - 1}};
    made m;
    make(&m, two, 2);
    wk_heap heap;
    wick_error error;
    size_t n_tensors;
    wk_heap_init(&heap, NULL);
    if (open_all(m.buf.data, m.buf.size, &heap, &n_tensors, &error) != WICK_OK)
        fail_msg("%s", error.message);
    assert_int_equal(n_tensors, 2);
    const int64_t second = CENTRAL + 5 + 28;
    static const char ones[8] = "\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF";
    const tampering cases[] = {
        {true, second + 46, "a", 1, WICK_ERR_FORMAT, "does not begin there"},
        {true, second + 8, "\1", 1, WICK_ERR_UNSUPPORTED, "'b.npy' of the archive is encrypted"},
        {true, second + 10, "\x0C", 1, WICK_ERR_UNSUPPORTED, "method 12"},
        {true, second + 16, "\0\0\0\0", 4, WICK_ERR_FORMAT, "'b.npy' does not have its checksum"},
        {true, second + 55, ones, 8, WICK_ERR_FORMAT, "cannot unpack to"},
        {true, second + 63, ones, 8, WICK_ERR_FORMAT, "does not end before the directory"},
        {true, second + 71, ones, 8, WICK_ERR_FORMAT, "does not begin there"},
        {true, second + 71, "\0\0\0\0\0\0\0\0", 8, WICK_ERR_FORMAT, "does not begin there"},
        {true, second, "x", 1, WICK_ERR_FORMAT, "lacks an entry here"},
        {true, second + 28, "\xFF\xFF", 2, WICK_ERR_FORMAT, "lacks an entry here"},
        {true, second + 51, "\2", 1, WICK_ERR_FORMAT, "does not begin there"}, /* no 64-bit sizes */
        {true, second + 53, "\4", 1, WICK_ERR_FORMAT, "lacks its 64-bit sizes"},
        {false, 22, "x", 1, WICK_ERR_FORMAT, "no directory at its end"},
        {false, 22 - 4, "\1", 1, WICK_ERR_UNSUPPORTED, "several parts"},
        {false, 42 - 8, ones, 8, WICK_ERR_FORMAT, "64-bit end record is not where"},
        {false, 98 - 32, ones, 8, WICK_ERR_FORMAT, "cannot have"},
        {false, 98 - 40, ones, 8, WICK_ERR_FORMAT, "does not lie before its end"},
        {false, 98 - 48, ones, 8, WICK_ERR_FORMAT, "does not lie before its end"},
    };
    for (size_t i = 0; i < WK_COUNT(cases); i++) {
        char *const copy = malloc(m.buf.size);
        assert_non_null(copy);
        memcpy(copy, m.buf.data, m.buf.size);
        const size_t at = cases[i].is_directory ? (size_t)m.directory + (size_t)cases[i].at
                                                : m.buf.size - (size_t)cases[i].at;
        memcpy(copy + at, cases[i].bytes, cases[i].size);
        check_refused(copy, m.buf.size, cases[i].status, cases[i].words);
        free(copy);
    }
    wk_strbuf_release(&m.buf);

    make(&m, two, 2);
    wk_strbuf_append(&m.buf, "", 1); /* which the end record does not count */
    check_refused(m.buf.data, m.buf.size, WICK_ERR_FORMAT, "end");
    wk_strbuf_release(&m.buf);
    const entry twice[] = {two[0], two[0]};
    make(&m, twice, 2);
    check_refused(m.buf.data, m.buf.size, WICK_ERR_FORMAT, "two entries of the archive");
    wk_strbuf_release(&m.buf);
    make(&m, &(entry){"readme", "abc", 3}, 1);
    check_refused(m.buf.data, m.buf.size, WICK_ERR_FORMAT, "neither .npy arrays nor");
    wk_strbuf_release(&m.buf);
    make(&m, &(entry){"a.npy", "abc", 3}, 1);
    check_refused(m.buf.data, m.buf.size, WICK_ERR_FORMAT, "'a.npy': byte 0: not an npy file");
    wk_strbuf_release(&m.buf);
}

/* An entry inside the bytes of another one, of the same name as its local header. */
static void test_overlap(void **state) {
    (void)state;
    made inner, outer;
    make(&inner, &(entry){"b.npy", one_array, sizeof one_array - 1}, 1);
    const entry two[] = {{"a.npy", inner.buf.data, inner.directory},
                         {"b.npy", one_array, sizeof one_array - 1}};
    make(&outer, two, 2);
    /* The local header of the second one is looked for where the first one holds a copy. */
    char *const place = outer.buf.data + outer.directory + CENTRAL + 5 + 28 + 71;
    const uint64_t copy = outer.headers[0] + 64;
    memcpy(place, &copy, sizeof copy);
    check_refused(outer.buf.data, outer.buf.size, WICK_ERR_FORMAT,
                  "'a.npy' and 'b.npy' share bytes");
    wk_strbuf_release(&inner.buf);
    wk_strbuf_release(&outer.buf);
}

/* Cut anywhere, or with any byte changed: a sentence or tensors, and no memory is lost. */
static void test_damage(void **state) {
    (void)state;
    static const char *const names[] = {"archives/deflated.npz", "archives/state.pt",
                                        "archives/deflated.pt", "archives/protocol5.pt"};
    for (size_t k = 0; k < WK_COUNT(names); k++) {
        fixture_file file;
        if (!fixture_read("WICK_TEST_DATA", names[k], &file)) skip();
        for (size_t i = 0; i < file.size; i++) {
            wk_heap heap;
            wick_error error;
            size_t n_tensors;
            wk_heap_init(&heap, NULL);
            uint8_t *const cut = malloc(i > 0 ? i : 1);
            assert_non_null(cut);
            memcpy(cut, file.data, i);
            assert_int_equal(open_all(cut, i, &heap, &n_tensors, &error), WICK_ERR_FORMAT);
            free(cut);
            const uint8_t was = file.data[i];
            const unsigned step = tests_all() ? 3 : 8; /* or one bit of each byte */
            for (unsigned bit = tests_all() ? 0 : i % 8; bit < 8; bit += step) {
                file.data[i] = (uint8_t)(was ^ 1U << bit);
                const wick_status status =
                    open_all(file.data, file.size, &heap, &n_tensors, &error);
                assert_true(status == WICK_OK || status == WICK_ERR_FORMAT ||
                            status == WICK_ERR_UNSUPPORTED);
                assert_true((status == WICK_OK) == (error.message[0] == '\0'));
            }
            file.data[i] = was;
        }
        free(file.data);
    }
}

/* ---- Pickles ---- */

static void check_pickle(const char *pickle, size_t size, wick_status status, const char *words) {
    static const float storage[6] = {0, 1, 2, 3, 4, 5};
    const entry parts[] = {{"m/data.pkl", pickle, size}, {"m/data/0", storage, sizeof storage}};
    made m;
    make(&m, parts, 2);
    check_refused(m.buf.data, m.buf.size, status, words);
    wk_strbuf_release(&m.buf);
}

#define PICKLE(text, status, words) check_pickle(text, sizeof text - 1, status, words)
#define STORAGE(class, key) "(X\7\0\0\0storagec" class "\nX\1\0\0\0" key "X\3\0\0\0cpuK\6tQ"
#define TENSOR(storage, first, size, stride)                                                       \
    "ctorch._utils\n_rebuild_tensor_v2\n(" storage first "(" size "t(" stride "ttR"
#define FLOATS STORAGE("torch\nFloatStorage", "0")

static void test_pickles(void **state) {
    (void)state;
    const wick_status bad = WICK_ERR_FORMAT, other = WICK_ERR_UNSUPPORTED;
    PICKLE("", bad, "ends without its last opcode");
    PICKLE("\x80\2N", bad, "ends without its last opcode");
    PICKLE(".", bad, "does not leave one value");
    PICKLE("(.", bad, "does not leave one value");
    PICKLE("NN.", bad, "does not leave one value");
    PICKLE("cos\nsystem\n(X\1\0\0\0atR.", other, "wants the Python object 'os.system'");
    PICKLE("X\2\0\0\0osX\6\0\0\0system\x93.", other, "wants the Python object 'os.system'");
    PICKLE("i\n\n.", other, "opcode 0x69");
    PICKLE("X\xFF\xFF\xFF\xFF.", bad, "longer than the pickle");
    PICKLE("\x8D\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF.", bad, "longer than the pickle");
    PICKLE("\x8A\x09\1\1\1\1\1\1\1\1\1.", bad, "more than 64 bits");
    PICKLE("r\xFF\xFF\xFF\xFF.", bad, "stack is too short");
    PICKLE("Nr\xFF\xFF\xFF\xFF.", bad, "not the next one");
    PICKLE("h\0.", bad, "no value");
    PICKLE("t.", bad, "no mark");
    PICKLE("(u.", bad, "neither a list nor a dict");
    PICKLE("}(Nu.", bad, "a key without a value");
    PICKLE("Na.", bad, "not a list");
    PICKLE("NNs.", bad, "not a dict");
    PICKLE("NNR.", bad, "a call needs a name");
    PICKLE("NNb.", bad, "attributes");
    PICKLE("(\x85.", bad, "too short");
    PICKLE("Q.", bad, "too short");
    PICKLE("]q\0h\0a.", bad, "share so much");
    PICKLE("]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa.", bad, "deeper");
    PICKLE("]q\0(h\0h\0e.", bad, "share so much");
    PICKLE("}(NctorchSize\ntorch\n", other, "Python object");
    PICKLE(TENSOR(FLOATS, "K\0", "K\7", "K\1") ".", bad, "beyond the end of its storage");
    PICKLE(TENSOR(FLOATS, "K\6", "K\1", "K\1") ".", bad, "beyond the end of its storage");
    PICKLE(TENSOR(FLOATS, "K\1", "K\2K\3", "K\3K\1") ".", bad, "beyond the end of its storage");
    PICKLE(TENSOR(FLOATS, "J\xFF\xFF\xFF\xFF", "K\1", "K\1") ".", bad, "offset");
    PICKLE(TENSOR(FLOATS, "K\0", "J\xFF\xFF\xFF\xFF", "K\1") ".", bad, "an extent or a stride");
    PICKLE(TENSOR(FLOATS, "K\0", "K\2", "\x8A\x08\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x7F") ".", bad,
           "beyond the end of its storage");
    PICKLE(TENSOR(FLOATS, "K\0", "\x8A\x08\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x7F", "K\0") ".", bad,
           "too many elements");
    PICKLE(TENSOR(FLOATS, "K\0", "K\1K\1", "K\1") ".", bad, "a stride for each");
    PICKLE(TENSOR(FLOATS, "K\0", "K\1K\1K\1K\1K\1K\1K\1", "") ".", other, "7 dimensions");
    PICKLE(TENSOR(STORAGE("torch\nFloatStorage", "1"), "K\0", "", "") ".", bad, "lacks");
    PICKLE(TENSOR(STORAGE("torch\nComplexFloatStorage", "0"), "K\0", "", "") ".", other,
           "'torch.ComplexFloatStorage', which Wick does not have");
    PICKLE(TENSOR("N", "K\0", "", "") ".", bad, "no storage");
    PICKLE("}(X\3\0\0\0a.b" TENSOR(FLOATS, "K\0", "",
                                   "") "X\1\0\0\0a}X\1\0\0\0b" TENSOR(FLOATS, "K\0", "", "") "su.",
           bad, "two tensors have the name 'a.b'");
    PICKLE("ctorch._utils\n_rebuild_parameter\n(" TENSOR(FLOATS, "K\6", "K\1", "K\1") "tR.", bad,
           "beyond the end of its storage");
    PICKLE("ctorch._utils\n_rebuild_parameter\n(tR.", bad, "lacks arguments");
    PICKLE("}N" TENSOR(FLOATS, "K\0", "", "") "s.", bad, "neither a text nor an integer");
}

/* Lists of ten times the list before: 10^20 items. */
static void test_memo_bomb(void **state) {
    (void)state;
    char pickle[1024];
    size_t n = 0;
    memcpy(pickle, "]q\0", 3);
    n += 3;
    for (int i = 0; i < 20; i++) {
        pickle[n++] = ']';
        pickle[n++] = 'q';
        pickle[n++] = (char)(i + 1);
        pickle[n++] = '(';
        for (int k = 0; k < 10; k++) {
            pickle[n++] = 'h';
            pickle[n++] = (char)i;
        }
        pickle[n++] = 'e';
    }
    pickle[n++] = 't'; /* all of them: the last is an item, too */
    memmove(pickle + 1, pickle, n);
    pickle[0] = '(';
    pickle[n + 1] = '.';
    check_pickle(pickle, n + 2, WICK_ERR_FORMAT, "share so much");
}

/* A key of 30,000 bytes for each of 2,000 empty lists: the memo has it once. */
static void test_long_key_bomb(void **state) {
    (void)state;
    enum { KEY = 30000, ITEMS = 2000 };
    static char pickle[KEY + 4 * ITEMS + 16];
    size_t n = 0;
    memcpy(pickle, "}(X\x30\x75\0\0", 7); /* 30,000 */
    memset(pickle + 7, 'k', KEY);
    n = 7 + KEY;
    memcpy(pickle + n, "q\0]", 3);
    n += 3;
    for (int i = 1; i < ITEMS; i++, n += 3) memcpy(pickle + n, "h\0]", 3);
    memcpy(pickle + n, "u.", 2);
    check_pickle(pickle, n + 2, WICK_ERR_FORMAT, "share so much");
}

/* A dict with one key of n bytes, of a tensor or of a dict with the key "b" of one. */
static size_t pickle_name(char *pickle, size_t n, bool is_nested) {
    static const char tensor[] = TENSOR(FLOATS, "K\0", "K\1", "K\1");
    char *to = pickle;
    const unsigned char size[4] = {(unsigned char)n, (unsigned char)(n >> 8),
                                   (unsigned char)(n >> 16)};
    if (is_nested) to = (char *)memcpy(to, "}X\1\0\0\0b", 7) + 7;
    to = (char *)memcpy(to, "}X", 2) + 2;
    to = (char *)memcpy(to, size, 4) + 4;
    to = (char *)memset(to, 'k', n) + n;
    to = (char *)memcpy(to, tensor, sizeof tensor - 1) + sizeof tensor - 1;
    to = (char *)memcpy(to, "ss.", 3) + 3;
    if (!is_nested) memcpy(--to - 1, ".", 1);
    return (size_t)(to - pickle);
}

static void test_long_names(void **state) {
    (void)state;
    static char pickle[40000];
    static const struct {
        size_t n;
        bool is_nested, is_refused;
    } cases[] = {
        {32768, false, false}, {32769, false, true}, {32766, true, false}, {32767, true, true}};
    for (size_t i = 0; i < WK_COUNT(cases); i++) {
        const size_t size = pickle_name(pickle, cases[i].n, cases[i].is_nested);
        if (cases[i].is_refused)
            check_pickle(pickle, size, WICK_ERR_FORMAT, "a name of more than 32768 bytes");
        else
            check_pickle(pickle, size, WICK_OK, "");
    }
}

/* ---- Deflate ---- */

static void test_inflate(void **state) {
    (void)state;
    static const struct {
        const char *bytes;
        size_t size, n;
        const char *words; /* NULL: it is sound */
    } cases[] = {
        {"\x4B\x4C\x4A\x06\x00", 5, 3, NULL}, /* fixed codes: abc */
        {"\x01\x03\x00\xFC\xFF"
         "abc",
         8, 3, NULL},
        {"\x4B\x4C\x4A\x06\x00", 5, 2, "more bytes than were announced"},
        {"\x4B\x4C\x4A\x06\x00", 5, 4, "fewer bytes than were announced"},
        {"\x4B\x4C\x4A\x06\x00\x00", 6, 3, "bytes follow its end"},
        {"\x4B\x4C\x4A", 3, 3, "ends too early"},
        {"", 0, 3, "ends too early"},
        {"\x07", 1, 3, "a kind that does not exist"},
        {"\x01\x03\x00\xFC\xFE"
         "abc",
         8, 3, "wrong length"},
        {"\x01\x04\x00\xFB\xFF"
         "abc",
         8, 4, "ends too early"},
        {"\x03\x02", 2, 3, "begins before the data"}, /* a match first */
        {"\xFD\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF", 11, 3, "more codes than"},
        {"\x05\xE0\x93\x24\x49\x92\x24\x49\x92\x00\x00\x00", 12, 3, "more codes of a length"},
    };
    for (size_t i = 0; i < WK_COUNT(cases); i++) {
        wk_heap heap;
        uint8_t out[5] = {0};
        wick_error error = {.status = WICK_OK};
        wk_heap_init(&heap, NULL);
        out[cases[i].n] = 77;
        const wick_status status = wk_inflate(&heap, (const uint8_t *)cases[i].bytes, cases[i].size,
                                              out, cases[i].n, false, &error);
        if (cases[i].words == NULL) {
            if (status != WICK_OK) fail_msg("%d: %s", (int)i, error.message);
            assert_memory_equal(out, "abc", 3);
        } else if (status != WICK_ERR_FORMAT || strstr(error.message, cases[i].words) == NULL) {
            fail_msg("%d: '%s' lacks '%s'", (int)i, error.message, cases[i].words);
        }
        assert_int_equal(out[cases[i].n], 77);
        assert_int_equal(heap.live_bytes, 0);
    }
}

static void test_crc32(void **state) {
    (void)state;
    static const char text[] = "123456789123456789";
    assert_int_equal(wk_crc32(0, text, 9), 0xCBF43926);
    for (size_t i = 0; i <= 18; i++)
        assert_int_equal(wk_crc32(wk_crc32(0, text, i), text + i, 18 - i), wk_crc32(0, text, 18));
}

/* ---- Memory ---- */

static void test_memory_runs_out(void **state) {
    (void)state;
    static const char *const names[] = {"archives/deflated.npz", "archives/checkpoint.pt",
                                        "archives/deflated.pt"};
    for (size_t k = 0; k < WK_COUNT(names); k++) {
        fixture_file file;
        if (!fixture_read("WICK_TEST_DATA", names[k], &file)) skip();
        wick_status status = WICK_ERR_OUT_OF_MEMORY;
        for (uint64_t n = 0; status != WICK_OK; n++) {
            checked_heap checked;
            wick_error error;
            size_t n_tensors;
            checked_heap_init(&checked, n);
            status = open_all(file.data, file.size, &checked.heap, &n_tensors, &error);
            assert_true(status == WICK_OK || status == WICK_ERR_OUT_OF_MEMORY);
            assert_true(checked_heap_is_clean(&checked));
        }
        free(file.data);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_zip),        cmocka_unit_test(test_overlap),
        cmocka_unit_test(test_damage),     cmocka_unit_test(test_pickles),
        cmocka_unit_test(test_memo_bomb),  cmocka_unit_test(test_long_key_bomb),
        cmocka_unit_test(test_long_names), cmocka_unit_test(test_inflate),
        cmocka_unit_test(test_crc32),      cmocka_unit_test(test_memory_runs_out),
    };
    return cmocka_run_group_tests_name("archive_hostile", tests, NULL, NULL);
}
