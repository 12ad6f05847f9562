/* Fuzzes requests of the APIs: any body at any path gets an answer of a status that HTTP has,
 * within some steps, and the next request is answered as if there had been none.
 *
 * The first byte of an input chooses the path, the second one the query, the rest is the body. */
#include "small_model.h"

#include <wick/api.h>
#include <wick/wick.h>

#include <stdlib.h>
#include <string.h>

static const char *const paths[] = {
    "/v1/chat/completions",
    "/v1/completions",
    "/completion",
    "/infill",
    "/v1/embeddings",
    "/v1/rerank",
    "/v1/messages",
    "/v1/responses",
    "/v1/messages/count_tokens",
    "/tokenize",
    "/detokenize",
    "/apply-template",
    "/api/chat",
    "/api/generate",
    "/api/embed",
    "/slots/0",
    "/lora-adapters",
    "/v1/responses/input_tokens",
};
enum { N_PATHS = sizeof paths / sizeof *paths, MOST_STEPS = 100000, MOST_BODY = 1 << 14 };

/* It refuses most conversations, which are then fitted to it. */
static const char template[] =
    "{% for m in messages %}{% if (m.role == 'user') != (loop.index0 % 2 == 0) %}"
    "{{ raise_exception('no') }}{% endif %}{{ m.role + m.content }}"
    "{% for c in m.tool_calls or [] %}{{ c.function.arguments }}{% endfor %}{% endfor %}";

static void require(bool is_true) {
    if (!is_true) abort();
}

static wick_api *open_api(void) {
    static gguf_bytes file; /* the model reads it as long as it lives */
    wick_device *device;
    wick_model_loading *loading;
    wick_model *model;
    wick_api *api;
    const wick_device_desc on = {.backend = WICK_BACKEND_CPU, .n_threads = 1};
    const small_model small = small_model_make();
    small_write(&small, true, &file);
    require(wick_device_open(&on, &device, NULL) == WICK_OK);
    const wick_source source = wick_source_memory(file.data, file.size);
    require(wick_model_open_start(device, source, NULL, &loading, NULL) == WICK_OK);
    while (wick_model_open_poll(loading, NULL) == WICK_PENDING) {
    }
    require(wick_model_open_finish(loading, &model, NULL) == WICK_OK);
    const wick_api_desc desc = {.chat_template = template,
                                .session = {.context_length = 80, .max_tokens = 3},
                                .has_metrics = true};
    require(wick_api_open(model, &desc, &api, NULL) == WICK_OK);
    return api;
}

static int answer(wick_api *api, const wick_request *request) {
    wick_exchange *exchange;
    size_t n_taken = 0;
    require(wick_exchange_open(api, request, &exchange, NULL) == WICK_OK);
    for (int i = 0; !wick_exchange_is_over(exchange); i++) {
        size_t size;
        require(i < MOST_STEPS);
        wick_api_step(api);
        (void)wick_exchange_take(exchange, &size);
        n_taken += size;
    }
    size_t size;
    (void)wick_exchange_take(exchange, &size);
    const int status = wick_exchange_status(exchange);
    require(status >= 200 && status < 600 && n_taken + size > 0);
    wick_exchange_close(exchange);
    return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static wick_api *api;
    if (api == NULL) api = open_api();
    if (size < 2 || size - 2 > MOST_BODY) return 0;
    const wick_request request = {.method = "POST",
                                  .path = paths[data[0] % N_PATHS],
                                  .query = data[1] & 1 ? "action=save" : NULL,
                                  .body = (const char *)data + 2,
                                  .body_size = size - 2};
    (void)answer(api, &request);
    const wick_request next = {.method = "GET", .path = "/v1/models"};
    require(answer(api, &next) == 200);
    return 0;
}
