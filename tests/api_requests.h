/* tests/api_requests.h: requests to the APIs of src/api and their answers, without a server. For
 * programs that have included cmocka.h. */
#ifndef WICK_TESTS_API_REQUESTS_H
#define WICK_TESTS_API_REQUESTS_H

#include "api/api.h"
#include "stories_session.h"

enum { CONTEXT = 512, MOST_BYTES = 1 << 16 };

static inline wick_api *open_api(wick_api_desc desc) {
    wick_api *api;
    wick_error error = {.status = WICK_OK};
    desc.name = "m";
    if (desc.session.context_length == 0) desc.session.context_length = CONTEXT;
    if (wick_api_open(model, &desc, &api, &error) != WICK_OK) fail_msg("%s", error.message);
    return api;
}

/* Nothing is computed before finish. */
static inline wick_exchange *ask(wick_api *api, const char *path, const char *body) {
    wick_exchange *exchange;
    const wick_request request = {
        .method = "POST", .path = path, .body = body, .body_size = strlen(body)};
    assert_int_equal(wick_exchange_open(api, &request, &exchange, NULL), WICK_OK);
    return exchange;
}

/* The whole answer of the status, until the next call. */
static inline const char *finish(wick_api *api, wick_exchange *exchange, int status) {
    static char text[MOST_BYTES];
    size_t size;
    while (!wick_exchange_is_over(exchange)) (void)wick_api_step(api);
    const char *const bytes = wick_exchange_take(exchange, &size);
    assert_true(size < sizeof text);
    memcpy(text, bytes, size);
    text[size] = '\0';
    if (wick_exchange_status(exchange) != status) fail_msg("%s", text);
    wick_exchange_close(exchange);
    return text;
}

static inline const char *answer(wick_api *api, const char *path, const char *body, int status) {
    return finish(api, ask(api, path, body), status);
}

static inline void expect_text(const char *text, const char *part) {
    if (!strstr(text, part)) fail_msg("'%s' is not in '%s'", part, text);
}

/* What the template makes of the request. Freed by the caller. */
static inline char *rendered(wick_api_desc desc, const char *path, const char *body) {
    wick_api *const api = open_api(desc);
    wick_exchange *const x = ask(api, path, body);
    size_t size;
    if (!x->rendered) fail_msg("%s", wick_exchange_take(x, &size));
    const char *const text = wick_prompt_text(x->rendered, &size);
    char *const copy = calloc(1, size + 1);
    assert_non_null(copy);
    memcpy(copy, text, size);
    wick_exchange_close(x);
    wick_api_close(api);
    return copy;
}

static inline void renders(wick_api_desc desc, const char *path, const char *body,
                           const char *expected) {
    char *const text = rendered(desc, path, body);
    assert_string_equal(text, expected);
    free(text);
}

#define CHAT "\"messages\":[{\"role\":\"user\",\"content\":\"Hi\"}]"
#define TOOL "{\"type\":\"function\",\"function\":{\"name\":\"f\"}}"

static const char chat[] = "/v1/chat/completions";

#endif
