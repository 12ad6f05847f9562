/* Text of web/libc beside the system's: snprintf and strtod give the same bytes and bits for
 * random and edge values; integers, strings and sorting do, too. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "random_bits.h"

int web_atoi(const char *text);
void *web_memchr(const void *bytes, int byte, size_t n);
int web_memcmp(const void *a, const void *b, size_t n);
void *web_memcpy(void *restrict to, const void *restrict from, size_t n);
void *web_memmove(void *to, const void *from, size_t n);
void *web_memset(void *to, int byte, size_t n);
void web_qsort(void *items, size_t n, size_t size, int (*compare)(const void *, const void *));
int web_snprintf(char *out, size_t capacity, const char *format, ...);
char *web_strcat(char *restrict to, const char *restrict from);
char *web_strchr(const char *text, int c);
int web_strcmp(const char *a, const char *b);
size_t web_strcspn(const char *text, const char *set);
size_t web_strlen(const char *text);
int web_strncmp(const char *a, const char *b, size_t n);
size_t web_strnlen(const char *text, size_t limit);
char *web_strpbrk(const char *text, const char *set);
char *web_strrchr(const char *text, int c);
size_t web_strspn(const char *text, const char *set);
char *web_strstr(const char *text, const char *part);
double web_strtod(const char *text, char **end);
long web_strtol(const char *text, char **end, int base);
unsigned long web_strtoul(const char *text, char **end, int base);

enum { ROOM = 1600 };

static int random_below(int n) { return (int)(random_bits() % (uint64_t)n); }

/* Any double, one of ordinary size, or one half-way between integers. */
static double random_double(void) {
    const uint64_t bits = random_bits();
    double x;
    memcpy(&x, &bits, sizeof x);
    switch (random_below(4)) {
    case 0: return (double)random_below(1 << 30) * 0x1p-30 * pow(10, random_below(40) - 20);
    case 1: return fabs(x) < 1e15 ? rint(x) + 0.5 : x;
    default: return x;
    }
}

/* --- Printing --- */

/* The same text, the same size, and nothing past what there is room for. The format is a
 * literal of the caller's in the checks of the compiler, so a macro. */
#define CHECK_PRINT(...)                                                                           \
    do {                                                                                           \
        char want[ROOM], got[ROOM];                                                                \
        const int n_want = snprintf(want, sizeof want, __VA_ARGS__);                               \
        const int n_got = web_snprintf(got, sizeof got, __VA_ARGS__);                              \
        assert_string_equal(got, want);                                                            \
        assert_int_equal(n_got, n_want);                                                           \
    } while (0)

static void test_prints_floats_exactly(void **state) {
    (void)state;
    for (int i = 0; i < 10000; i++) {
        const double x = random_double();
        const int p = random_below(30);
        CHECK_PRINT("%.*g|%.*e|%#.*g|%+.*g", p, x, p, x, p, x, p, x);
        CHECK_PRINT("% 025.*g|%-30.*e|%.*G|%g|%e", p, x, p, x, p, x, x, x);
        if (fabs(x) < 1e30) CHECK_PRINT("%.*f|%030.*f|%f|%#.0f|%.0f", p, x, p, x, x, x, x);
    }
    const double edges[] = {0.0,  -0.0,   1.0,     0.5,    1.5,     2.5,      9.5,
                            99.5, 1e300,  5e-324,  1e22,   1e23,    INFINITY, -INFINITY,
                            NAN,  999999, 9999995, 0.0001, 0.00001, 1e-5,     123456789};
    for (size_t i = 0; i < sizeof edges / sizeof *edges; i++) {
        const double x = edges[i];
        CHECK_PRINT("%g|%e|%f|%G|%E|%F", x, x, x, x, x, x);
        CHECK_PRINT("%+g|% g|%08g|%-8g|%#g|%.0e|%.3g|%5.1f", x, x, x, x, x, x, x, x);
    }
}

static void test_prints_integers(void **state) {
    (void)state;
    const int values[] = {0, 1, -1, 42, -42, INT32_MAX, INT32_MIN, 255, 70000};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        const int x = values[i];
        const unsigned u = (unsigned)x;
        CHECK_PRINT("%d|%5d|%-5d|%05d|%+d|% d|%.3d|%8.3d|%.0d", x, x, x, x, x, x, x, x, x);
        CHECK_PRINT("%x|%#x|%X|%o|%#o|%u|%08x|%-12u|", u, u, u, u, u, u, u, u);
        CHECK_PRINT("%lld|%zu|%td|%ld|%llu", (long long)x * 1048576, (size_t)u, (ptrdiff_t)x,
                    (long)x, (unsigned long long)u << 32);
        CHECK_PRINT("%hhd|%hu|%i", (signed char)x, (unsigned short)u, x);
        CHECK_PRINT("%*d|%-*d|%.*d", 7, x, 7, x, 4, x);
    }
}

static void test_prints_texts_as_room_allows(void **state) {
    (void)state;
    CHECK_PRINT("%s|%10s|%-6s|%.2s|%c|%%|%.*s", "abcdefgh", "x", "y", "zzz", 'q', 3, "abcdef");
    for (size_t room = 0; room < 12; room++) {
        char got[16];
        memset(got, '#', sizeof got);
        assert_int_equal(web_snprintf(got, room, "%s-%d", "abcd", 12345), 10);
        assert_memory_equal(got + room, "################", sizeof got - room);
        const size_t kept = room == 0 ? 0 : room - 1 < 10 ? room - 1 : 10;
        assert_memory_equal(got, "abcd-12345", kept);
        if (room > 0) assert_int_equal(got[kept], 0);
    }
    assert_int_equal(web_snprintf(NULL, 0, "%s", "abc"), 3);
}

/* --- Numbers from text --- */

static void check_strtod(const char *text) {
    char *end_got, *end_want;
    const double got = web_strtod(text, &end_got), want = strtod(text, &end_want);
    const bool is_same =
        (isnan(got) && isnan(want)) || (got == want && !signbit(got) == !signbit(want));
    if (!is_same || end_got != end_want) fail_msg("strtod('%s') is %a, not %a", text, got, want);
}

static void test_strtod_rounds_correctly(void **state) {
    (void)state;
    const char *const edges[] = {"",
                                 "abc",
                                 "+",
                                 "-.",
                                 "1e",
                                 "1e+",
                                 ".5",
                                 "5.",
                                 "  12",
                                 "inf",
                                 "-Infinity",
                                 "nan",
                                 "infin",
                                 "1e400",
                                 "-1e-400",
                                 "4.9e-324",
                                 "2.4703282292062327e-324",
                                 "2.4703282292062328e-324",
                                 "1.7976931348623158e308",
                                 "1.7976931348623159e308",
                                 "0e999999999999",
                                 "1e99999999999999",
                                 "00000000000000000000000000000000000000001.5",
                                 "9007199254740993",
                                 "-0",
                                 "0.e5",
                                 "1.e5x",
                                 "0.000000000000000000000000000000000000000000000000001",
                                 "123456789012345678901234567890e-10"};
    for (size_t i = 0; i < sizeof edges / sizeof *edges; i++) check_strtod(edges[i]);
    char text[ROOM];
    for (int i = 0; i < 10000; i++) {
        const double x = random_double();
        snprintf(text, sizeof text, "%.*g", random_below(30), x);
        check_strtod(text);
        snprintf(text, sizeof text, "%.*fe%d", random_below(20), fmod(x, 1e9),
                 random_below(60) - 30);
        check_strtod(text);
    }
}

/* Halfway between two doubles, and a much later digit that decides. */
static void test_strtod_decides_half_way_cases(void **state) {
    (void)state;
    char text[ROOM];
    for (int i = 0; i < 1000; i++) {
        uint64_t bits = random_bits() >> 1;
        if (i % 2) bits >>= 11; /* subnormal */
        double x;
        memcpy(&x, &bits, sizeof x);
        if (!(x < 1e308)) continue;
        const long double between = ((long double)x + (long double)nextafter(x, INFINITY)) / 2;
        snprintf(text, sizeof text, "%.1100Le", between);
        check_strtod(text);
        strchr(text, 'e')[-1] = '1';
        check_strtod(text);
    }
}

static void test_reads_integers(void **state) {
    (void)state;
    const char *const texts[] = {"",
                                 "0",
                                 "7",
                                 " -12x",
                                 "+99",
                                 "0x1F",
                                 "0xg",
                                 "ff",
                                 "FFz",
                                 "-",
                                 "x",
                                 "08",
                                 "2147483647",
                                 "-2147483648",
                                 "4294967295",
                                 "9223372036854775807",
                                 "9223372036854775808",
                                 "-9223372036854775809",
                                 "18446744073709551615",
                                 "99999999999999999999",
                                 "-1"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        for (int base = 10; base <= 16; base += 6) {
            char *end_got, *end_want;
            assert_int_equal(web_strtol(texts[i], &end_got, base),
                             strtol(texts[i], &end_want, base));
            assert_ptr_equal(end_got, end_want);
            if (texts[i][0] == '-') continue; /* below what it can hold: only saturated */
            assert_int_equal(web_strtoul(texts[i], &end_got, base),
                             strtoul(texts[i], &end_want, base));
            assert_ptr_equal(end_got, end_want);
        }
    }
    assert_int_equal(web_atoi(" -42 "), -42);
}

/* --- Strings and sorting --- */

static int sign_of(int x) { return (x > 0) - (x < 0); }

/* Of few letters, so that parts are found. */
static void random_text(char *out, int most) {
    const int n = random_below(most);
    for (int i = 0; i < n; i++) out[i] = (char)("ab\x80"[random_below(3)]);
    out[n] = 0;
}

static void test_strings(void **state) {
    (void)state;
    for (int i = 0; i < 20000; i++) {
        char a[24], b[6], c[32] = "x", d[32] = "x";
        random_text(a, 20);
        random_text(b, 5);
        const char letter = "ab\x80\0"[random_below(4)];
        const size_t n = (size_t)random_below(24);
        assert_int_equal(web_strlen(a), strlen(a));
        assert_int_equal(web_strnlen(a, n), n < strlen(a) ? n : strlen(a));
        assert_int_equal(sign_of(web_strcmp(a, b)), sign_of(strcmp(a, b)));
        assert_int_equal(sign_of(web_strncmp(a, b, n)), sign_of(strncmp(a, b, n)));
        assert_int_equal(sign_of(web_memcmp(a, b, strlen(b) < strlen(a) ? strlen(b) : strlen(a))),
                         sign_of(memcmp(a, b, strlen(b) < strlen(a) ? strlen(b) : strlen(a))));
        assert_ptr_equal(web_memchr(a, letter, strlen(a)), memchr(a, letter, strlen(a)));
        assert_ptr_equal(web_strchr(a, letter), strchr(a, letter));
        assert_ptr_equal(web_strrchr(a, letter), strrchr(a, letter));
        assert_ptr_equal(web_strstr(a, b), strstr(a, b));
        assert_ptr_equal(web_strpbrk(a, b), strpbrk(a, b));
        assert_int_equal(web_strspn(a, b), strspn(a, b));
        assert_int_equal(web_strcspn(a, b), strcspn(a, b));
        assert_ptr_equal(web_strcat(c, a), c);
        assert_string_equal(c, strcat(d, a));
        web_memmove(c + 1, c, 20);
        memmove(d + 1, d, 20);
        assert_string_equal(c, d);
        assert_memory_equal(web_memset(c, letter, 5), memset(d, letter, 5), 5);
        assert_memory_equal(web_memcpy(c, b, sizeof b), b, sizeof b);
    }
}

typedef struct item {
    int key;
    char tail[9]; /* swapped with it */
} item;

static int compare_items(const void *a, const void *b) {
    const item *const x = a, *const y = b;
    return (x->key > y->key) - (x->key < y->key);
}

static void test_sorts(void **state) {
    (void)state;
    for (int n = 0; n < 200; n++) {
        item items[200];
        int count[20] = {0};
        for (int i = 0; i < n; i++) {
            items[i].key = random_below(20);
            snprintf(items[i].tail, sizeof items[i].tail, "%d", items[i].key);
            count[items[i].key]++;
        }
        web_qsort(items, (size_t)n, sizeof *items, compare_items);
        for (int i = 0; i < n; i++) {
            assert_true(i == 0 || items[i - 1].key <= items[i].key);
            assert_int_equal(atoi(items[i].tail), items[i].key);
            count[items[i].key]--;
        }
        for (int i = 0; i < 20; i++) assert_int_equal(count[i], 0);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_prints_floats_exactly),
        cmocka_unit_test(test_prints_integers),
        cmocka_unit_test(test_prints_texts_as_room_allows),
        cmocka_unit_test(test_strtod_rounds_correctly),
        cmocka_unit_test(test_strtod_decides_half_way_cases),
        cmocka_unit_test(test_reads_integers),
        cmocka_unit_test(test_strings),
        cmocka_unit_test(test_sorts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
