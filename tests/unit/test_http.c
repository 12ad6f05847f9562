/* cli/http/curl.c: what is said of a transfer that failed. libcurl is a table of functions here. */
#if __has_include(<curl/curl.h>)
#include "../../cli/http/curl.c"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

int cli_error(const char *format, ...) {
    (void)format;
    return CLI_FAILURE;
}

bool cli_interrupted(void) { return false; }

bool cli_digest_parse(const char *text, size_t size, cli_digest *digest) {
    (void)text, (void)size, (void)digest;
    return false;
}

static unsigned version;

static curl_version_info_data *version_info(CURLversion which) {
    static curl_version_info_data data;
    (void)which;
    data.version_num = version;
    return &data;
}

static const char *text_of(CURLcode code) {
    return code == CURLE_OUT_OF_MEMORY ? "Out of memory" : "something else";
}

static const char *said(const exchange *e, CURLcode code) {
    static cli_http_end end;
    const cli_http http = {.f = {.easy_strerror = text_of, .version_info = version_info}};
    explain(&http, e, code, &end);
    return end.reason;
}

static void test_endless_headers(void **state) {
    (void)state;
    static const char endless[] = "the header of the server's answer has no end";
    enum { TOO_LARGE = 100 };
    const exchange fresh = {.header_bytes = 10}, many = {.header_bytes = MAX_HEADER_BYTES + 1};
    const exchange just = {.header_bytes = MAX_HEADER_BYTES};
    version = 0x080600;
    assert_string_equal(said(&many, CURLE_WRITE_ERROR), endless);
    assert_string_equal(said(&just, CURLE_WRITE_ERROR), "something else");
    assert_string_equal(said(&fresh, (CURLcode)TOO_LARGE), endless);
    assert_string_equal(said(&fresh, CURLE_OUT_OF_MEMORY), "Out of memory");
    version = 0x0805FF; /* which says the same of both */
    assert_string_equal(said(&fresh, CURLE_OUT_OF_MEMORY),
                        "out of memory, or the header of the server's answer has no end");
    const exchange later = {.has_begun = true};
    assert_string_equal(said(&later, CURLE_OUT_OF_MEMORY), "Out of memory");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_endless_headers)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
#else
#include <stdio.h>

int main(void) {
    puts("there are no headers of libcurl");
    return 77;
}
#endif
