/* sample/stop: where a text ends and how much of it is held back, fed in pieces of any size. */
#define _POSIX_C_SOURCE 200809L /* strnlen */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "checked_heap.h"
#include "core/compiler.h"
#include "sample/stop.h"

#include <string.h>

/* Feeds pieces of `step` bytes until the text ends; what went out into out, and the number of bytes
 * that were fed when it stopped (0: it did not). */
static size_t feed(wk_stop *stop, const char *text, size_t step, char *out) {
    size_t n_out = 0;
    for (size_t at = 0, size; text[at] != '\0'; at += size) {
        bool stopped;
        size = strnlen(text + at, step);
        const size_t n = wk_stop_feed(stop, text + at, size, false, &stopped);
        memcpy(out + n_out, stop->held, n);
        out[n_out += n] = '\0';
        if (stopped) return at + size;
        wk_stop_release(stop, n);
    }
    return 0;
}

/* Byte by byte a text stops at the last byte of the string, not after it; in larger pieces with the
 * piece that has this byte. */
static void test_places(void **state) {
    (void)state;
    static const char *const strings[] = {"abcd", "bc!", "x"};
    static const struct {
        const char *text, *out;
        size_t n_fed; /* until it stops; 0: it does not */
    } cases[] = {
        {"__abcd", "__", 6},    {"__abcd__", "__", 6}, {"abcabcd", "abc", 7}, {"abc!d", "a", 4},
        {"__abcx", "__abc", 6}, {"x", "", 1},          {"abce", "abce", 0},   {"__abc", "__", 0},
    };
    for (size_t i = 0; i < WK_COUNT(cases); i++) {
        for (size_t step = 1; step <= 8; step++) {
            checked_heap heap;
            wk_stop stop;
            char out[16] = "";
            checked_heap_init(&heap, UINT64_MAX);
            assert_int_equal(
                wk_stop_make(&heap.heap, strings, WK_COUNT(strings), step, &stop, NULL), WICK_OK);
            const size_t n_fed = feed(&stop, cases[i].text, step, out), want = cases[i].n_fed;
            const size_t whole = (want + step - 1) / step * step, size = strlen(cases[i].text);
            assert_int_equal(n_fed, whole < size ? whole : want > 0 ? size : 0);
            assert_string_equal(out, cases[i].out);
            wk_stop_free(&heap.heap, &stop);
            assert_true(checked_heap_is_clean(&heap));
        }
    }
}

/* A piece comes while almost the whole of the longest string is held, which is not the last one. */
static void test_room(void **state) {
    (void)state;
    static const char *const strings[] = {"abcdefgh", "x"};
    wk_heap heap;
    wk_stop stop;
    wk_heap_init(&heap, NULL);
    for (size_t most = 1; most <= 3; most++) {
        assert_int_equal(wk_stop_make(&heap, strings, 2, most, &stop, NULL), WICK_OK);
        assert_true(stop.capacity >= strlen(strings[0]) - 1 + most);
        wk_stop_free(&heap, &stop);
    }
}

/* At the end of a text nothing becomes a match any more: not what would hold back a later one. */
static void test_end(void **state) {
    (void)state;
    static const char *const strings[] = {". She@", " She"};
    for (int is_end = 0; is_end < 2; is_end++) {
        checked_heap heap;
        wk_stop stop;
        bool stopped;
        checked_heap_init(&heap, UINT64_MAX);
        assert_int_equal(wk_stop_make(&heap.heap, strings, WK_COUNT(strings), 8, &stop, NULL),
                         WICK_OK);
        assert_int_equal(wk_stop_feed(&stop, "y. She", 6, is_end, &stopped), is_end ? 2 : 1);
        assert_int_equal(stopped, is_end);
        if (is_end) assert_int_equal(stop.found, 1);
        wk_stop_free(&heap.heap, &stop);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_places), cmocka_unit_test(test_end),
                                       cmocka_unit_test(test_room)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
