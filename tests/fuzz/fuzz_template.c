/* Fuzzes chat templates: the text before the first zero byte (of a limited size) is a template,
 * what follows is the data: JSON for `messages`. Whatever they are, parsing and rendering end with
 * a status and give back their memory. The first byte: how many allocations succeed (0: all). */
#include "checked_heap.h"
#include "text/jinja/jinja.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Of the processor, with the sanitizers: a step takes about a microsecond then. What is not counted
 * as steps goes over it. */
static const double MOST_SECONDS = 0.1;
enum { STEPS = 30000 };

static void require(bool holds) {
    if (!holds) abort();
}

static void check_result(const wk_jinja_result *result) {
    size_t bad;
    require(wk_str_is_utf8(result->text, &bad));
    for (size_t i = 0; result->origin != NULL && i < result->text.size; i++)
        require(result->origin[i] <= 1);
}

static void render(wk_arena *arena, wk_str text, wk_str json) {
    wick_error error = {.status = WICK_OK}, ignored = {.status = WICK_OK};
    wk_jinja_template *compiled;
    if (wk_jinja_parse(arena, text, &compiled, &error) != WICK_OK) {
        require(error.message[0] != '\0');
        return;
    }
    static const wk_json none = {.kind = WK_JSON_ARRAY};
    wk_json *messages = NULL;
    wk_json_parse(arena, json.text, json.size, &messages, &ignored);
    const wk_jinja_variable variables[] = {
        {wk_str_of("messages"), messages != NULL ? messages : &none, false},
    };
    const wk_jinja_desc desc = {.variables = variables,
                                .n_variables = 1,
                                .now = {2026, 1, 15, 12, 34, 56},
                                .max_steps = STEPS,
                                .max_bytes = 32 << 20};
    wk_jinja_result result;
    const wick_status status = wk_jinja_render(arena, compiled, &desc, &result, &error);
    require((status == WICK_OK) == (error.status == WICK_OK));
    if (status == WICK_OK) check_result(&result);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size == 0) return 0;
    const clock_t start = clock();
    checked_heap checked;
    checked_heap_init(&checked, data[0] > 0 && data[0] < 32 ? data[0] : UINT64_MAX);
    wk_arena arena;
    wk_arena_init(&arena, &checked.heap, 0);
    const char *const text = (const char *)data + 1;
    const char *const zero = size > 1 ? memchr(text, 0, size - 1) : NULL;
    const size_t n = zero != NULL ? (size_t)(zero - text) : size - 1;
    const wk_str json = {zero != NULL ? zero + 1 : text, zero != NULL ? size - 2 - n : 0};
    render(&arena, (wk_str){text, n}, json);
    wk_arena_release(&arena);
    require(checked_heap_is_clean(&checked));
    require((double)(clock() - start) / CLOCKS_PER_SEC < MOST_SECONDS);
    return 0;
}
