/* api/slot_files: what places keep goes to files and comes back in steps, while others are
 * answered.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "api_requests.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MOST_TEXT = 1000 };

static char folder[64], path[96];

static int make_folder(void **state) {
    snprintf(folder, sizeof folder, "/tmp/wick_slots_%ld", (long)getpid());
    snprintf(path, sizeof path, "%s/text", folder);
    return mkdir(folder, 0700) != 0 || setup(state) != 0;
}

static int remove_folder(void **state) { return rmdir(folder) != 0 || teardown(state) != 0; }

static wick_api *open_with_folder(void) {
    return open_api((wick_api_desc){.n_parallel = 2, .slot_folder = folder});
}

/* 8 tokens after a prompt, in slot 0 if that is free, and how many tokens of the prompt were read.
 */
static void generate(wick_api *api, const char *prompt, char out[MOST_TEXT]) {
    char body[200];
    snprintf(body, sizeof body,
             "{\"prompt\":\"%s\",\"temperature\":0,\"n_predict\":8,\"id_slot\":0,"
             "\"response_fields\":[\"content\",\"timings/prompt_n\"]}",
             prompt);
    snprintf(out, MOST_TEXT, "%s", answer(api, "/completion", body, 200));
}

static const char *answer_get(wick_api *api, const char *at) {
    wick_exchange *exchange;
    const wick_request request = {.method = "GET", .path = at};
    assert_int_equal(wick_exchange_open(api, &request, &exchange, NULL), WICK_OK);
    return finish(api, exchange, 200);
}

static wick_exchange *move(wick_api *api, const char *action) {
    wick_exchange *exchange;
    const char body[] = "{\"filename\":\"text\"}";
    const wick_request request = {.method = "POST",
                                  .path = "/slots/0",
                                  .query = action,
                                  .body = body,
                                  .body_size = sizeof body - 1};
    assert_int_equal(wick_exchange_open(api, &request, &exchange, NULL), WICK_OK);
    return exchange;
}

/* The number after key. */
static long number_of(const char *text, const char *key) {
    const char *const at = strstr(text, key);
    if (!at) fail_msg("'%s' is not in '%s'", key, text);
    return strtol(at + strlen(key), NULL, 10);
}

static void test_there_and_back(void **state) {
    (void)state;
    wick_api *const api = open_with_folder();
    char first[MOST_TEXT], other[MOST_TEXT], again[MOST_TEXT];
    generate(api, "Once upon a time", first);
    wick_exchange *const saving = move(api, "action=save");
    assert_false(wick_exchange_is_over(saving));
    expect_text(finish(api, move(api, "action=erase"), 400), "is being saved or restored");
    expect_text(finish(api, move(api, "action=restore"), 400), "is being saved or restored");
    expect_text(answer_get(api, "/slots"), "{\"id\":0,\"n_ctx\":512,\"is_processing\":true}");
    /* The other slot answers meanwhile, though this one was asked for. */
    assert_null(api->slots[1].kept);
    generate(api, "The dog", other);
    assert_non_null(api->slots[1].kept);
    const long n_saved = number_of(finish(api, saving, 200), "\"n_saved\":");
    assert_true(n_saved > 8);
    assert_int_equal(number_of(finish(api, move(api, "action=erase"), 200), "\"n_erased\":"),
                     n_saved);
    assert_null(api->slots[0].kept);
    assert_int_equal(number_of(finish(api, move(api, "action=restore"), 200), "\"n_restored\":"),
                     n_saved);
    generate(api, "Once upon a time", again);
    assert_true(number_of(first, "prompt_n\":") > 1);
    assert_int_equal(number_of(again, "prompt_n\":"), 1); /* the others were in the file */
    *strstr(first, ",\"timings") = *strstr(again, ",\"timings") = *strstr(other, ",\"timings") = 0;
    assert_string_equal(first, again);
    assert_string_not_equal(first, other);
    wick_api_close(api);
    assert_int_equal(unlink(path), 0);
}

/* Clients go away before it is done. */
static void test_given_up(void **state) {
    (void)state;
    char text[MOST_TEXT];
    wick_api *const api = open_with_folder();
    generate(api, "Once upon a time", text);
    wick_exchange_close(move(api, "action=save"));
    assert_int_not_equal(access(path, F_OK), 0);
    (void)finish(api, move(api, "action=save"), 200);
    wick_exchange_close(move(api, "action=restore"));
    assert_non_null(api->slots[0].kept);
    expect_text(finish(api, move(api, "action=restore"), 200), "\"n_restored\":");
    assert_int_equal(api->n_running + api->n_moving, 0);
    wick_api_close(api);
    assert_int_equal(unlink(path), 0);
}

/* The folder goes while a text is on its way there. */
static void test_lost_folder(void **state) {
    (void)state;
    char text[MOST_TEXT];
    wick_api *const api = open_with_folder();
    generate(api, "Once upon a time", text);
    wick_exchange *const saving = move(api, "action=save");
    assert_int_equal(rmdir(folder), 0);
    expect_text(finish(api, saving, 500), "'text'");
    expect_text(finish(api, move(api, "action=save"), 500), "cannot write 'text'");
    assert_int_equal(mkdir(folder, 0700), 0);
    (void)finish(api, move(api, "action=save"), 200);
    wick_api_close(api);
    assert_int_equal(unlink(path), 0);
}

static void test_refusals(void **state) {
    (void)state;
    char text[MOST_TEXT];
    wick_api *const api = open_with_folder();
    expect_text(finish(api, move(api, "action=save"), 400), "has no text");
    expect_text(finish(api, move(api, "action=restore"), 400), "there is no such file");
    expect_text(finish(api, move(api, NULL), 400), "action must be");
    expect_text(finish(api, move(api, "saction=save"), 400), "action must be");
    assert_int_equal(mkdir(path, 0700), 0);
    expect_text(finish(api, move(api, "action=restore"), 500), "'text'");
    generate(api, "Once upon a time", text);
    expect_text(finish(api, move(api, "action=save"), 500), "'text': it is a directory");
    assert_int_equal(rmdir(path), 0);
    FILE *const file = fopen(path, "w"); /* damaged */
    assert_non_null(file);
    fputs("nothing that a session was saved as", file);
    fclose(file);
    (void)finish(api, move(api, "action=restore"), 400);
    assert_int_equal(unlink(path), 0);
    (void)finish(api, move(api, "action=save"), 200); /* the slot still has its text */
    wick_api_close(api);
    assert_int_equal(unlink(path), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_there_and_back), cmocka_unit_test(test_given_up),
        cmocka_unit_test(test_lost_folder), cmocka_unit_test(test_refusals)};
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
