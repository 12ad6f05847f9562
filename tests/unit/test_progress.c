/* Progress lines and bars of the command: what is written at which width, and the smoothed rate. */
#include "../../cli/bar.c"
#include "../../cli/progress_text.c"
#include "../../cli/text_out.c"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

enum { MIB = 1 << 20 };

static void expect(const cli_progress *line, uint64_t done, uint64_t total, size_t columns,
                   const char *expected) {
    char text[256];
    cli_progress_text(line, done, total, columns, text, sizeof text);
    assert_string_equal(text, expected);
}

static void test_figures(void **state) {
    (void)state;
    const cli_progress bytes = {.what = "loading", .rate = 10 * MIB};
    expect(&bytes, 50 * MIB, 200 * MIB, 60,
           "loading   25 %  50.0 of 200.0 MiB, 10.0 MiB/s, 0:15 left");
    expect(&bytes, 1000, 20 * MIB, 70,
           "loading    0 %  1000 bytes of 20.0 MiB, 10.0 MiB/s, 0:02 left");
    expect(&bytes, 50 * MIB, UINT64_MAX, 60, "loading  50.0 MiB, 10.0 MiB/s");
    expect(&bytes, 0, 0, 60, "loading");
    const cli_progress tokens = {
        .what = "reading", .unit = "tokens", .rate = 2.5, .note = "perplexity 8.12"};
    expect(&tokens, 512, 20512, 80,
           "reading    2 %  512 of 20512 tokens, 2.5/s, 2:13:20 left, perplexity 8.12");
    expect(&tokens, 20512, 20512, 80,
           "reading  100 %  20512 of 20512 tokens, 2.5/s, 0:00 left, perplexity 8.12");
    const cli_progress unknown = {.what = "reading", .unit = "tokens"};
    expect(&unknown, 1, 4, 80,
           "reading  \xE2\x96\x88\xE2\x96\x88\xE2\x96\x88\xE2\x96\x88            "
           "   25 %  1 of 4 tokens");
    const cli_progress slow = {.what = "reading", .unit = "tokens", .rate = 1e-9};
    expect(&slow, 1, 4, 40, "reading   25 %  1 of 4 tokens, 0.0/s");
}

/* Parts that have no room are left out as a whole; the last column stays free. */
static void test_narrow(void **state) {
    (void)state;
    const cli_progress line = {.what = "loading", .rate = 10 * MIB};
    static const char whole[] = "loading   25 %  50.0 of 200.0 MiB, 10.0 MiB/s, 0:15 left";
    for (size_t columns = 0; columns < 70; columns++) {
        char text[256];
        cli_progress_text(&line, 50 * MIB, 200 * MIB, columns, text, sizeof text);
        assert_true(strlen(text) <= (columns > 0 ? columns - 1 : 0));
        if (columns == strlen(whole)) assert_string_not_equal(text, whole);
        if (columns == strlen(whole) + 1) assert_string_equal(text, whole);
    }
    expect(&line, 50 * MIB, 200 * MIB, 15, "loading   25 %");
    expect(&line, 50 * MIB, 200 * MIB, 8, "loading");
    expect(&line, 50 * MIB, 200 * MIB, 7, "");
}

static void test_rate(void **state) {
    (void)state;
    cli_progress line = {.what = "x"};
    cli_progress_measure(&line, 1000, 5.0); /* what was there before does not count */
    cli_progress_measure(&line, 1040, 5.4);
    assert_true(line.rate == 0);
    cli_progress_measure(&line, 1100, 6.0);
    assert_true(line.rate > 99 && line.rate < 101);
    for (int i = 1; i <= 60; i++) cli_progress_measure(&line, 1100 + (uint64_t)(10 * i), 6.0 + i);
    assert_true(line.rate > 9.9 && line.rate < 10.5); /* the beginning is forgotten */
    cli_progress_measure(&line, 1700, 100);
    assert_true(line.rate < 0.01); /* nothing came for long */
    cli_progress_measure(&line, 0, 101);
    assert_true(line.rate == 0); /* it began again */
}

/* What comes in parts has the rate of them, also while the next one is on its way. */
static void test_parts(void **state) {
    (void)state;
    cli_progress line = {.what = "x"};
    double now = 1;
    cli_progress_measure(&line, 0, now);
    for (uint64_t done = 0; done <= 2048; done += 512)
        for (int i = 0; i < 10; i++, now += 0.5) {
            cli_progress_measure(&line, done, now);
            if (done == 0) assert_true(line.rate == 0);
            if (done > 0) assert_true(line.rate > 101 && line.rate < 104); /* 512 in 5 s */
        }
    for (int i = 0; i < 40; i++, now += 0.5) cli_progress_measure(&line, 2048, now);
    assert_true(line.rate == 0);
}

static void test_bars(void **state) {
    (void)state;
    assert_string_equal(cli_bar_of(0, 4).text, "    ");
    assert_string_equal(cli_bar_of(0.0001, 2).text, "\xE2\x96\x8F ");
    assert_string_equal(cli_bar_of(0.5, 2).text, "\xE2\x96\x88 ");
    assert_string_equal(cli_bar_of(0.75, 2).text, "\xE2\x96\x88\xE2\x96\x8C");
    assert_string_equal(cli_bar_of(1, 2).text, "\xE2\x96\x88\xE2\x96\x88");
    assert_string_equal(cli_bar_of(7, 1).text, "\xE2\x96\x88");
    assert_string_equal(cli_bar_of(-1, 1).text, " ");
    const double zero = 0;
    assert_string_equal(cli_bar_of(zero / zero, 1).text, " ");
    assert_int_equal(strlen(cli_bar_of(1, 1000).text), 3 * CLI_BAR_COLUMNS);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_figures), cmocka_unit_test(test_narrow), cmocka_unit_test(test_rate),
        cmocka_unit_test(test_parts),   cmocka_unit_test(test_bars),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
