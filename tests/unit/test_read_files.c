/* Files that a command reads, of any number: none of them is written. */
#define _XOPEN_SOURCE 700
#include "../../cli/targets.c"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <unistd.h>

static int n_reports;

int cli_error(const char *format, ...) {
    (void)format;
    return CLI_FAILURE;
}

int cli_report(const wick_error *error, const char *hint) {
    assert_int_equal(error->status, WICK_ERR_ARGUMENT);
    assert_string_equal(hint, "choose another place with --out");
    n_reports++;
    return CLI_FAILURE;
}

static void test_many_files(void **state) {
    (void)state;
    enum { N = 40 };
    static char paths[N][64];
    char folder[] = "/tmp/wick-read-XXXXXX";
    assert_non_null(mkdtemp(folder));
    for (int i = 0; i < N; i++) {
        snprintf(paths[i], sizeof paths[i], "%s/%d", folder, i);
        fclose(fopen(paths[i], "w"));
        assert_int_equal(cli_add_read_file(paths[i]), CLI_OK);
    }
    for (int i = 0; i < N; i++) assert_int_equal(cli_check_target(paths[i], "out"), CLI_FAILURE);
    assert_int_equal(n_reports, N);
    for (int i = 0; i < N; i++) unlink(paths[i]);
    rmdir(folder);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_many_files)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
