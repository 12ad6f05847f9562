/* web/glue/api/api.c: doors to the APIs of wick/api.h (requests in, answers out, as bytes) and to
 * rerankers. */
#include "../session.h"

/* name and chat_template: "" is none; text: of the sessions. */
DOOR(wick_api *, api_open, wick_model *model, const char *name, const char *chat_template,
     uint32_t n_parallel, uint32_t max_queue, const char *text) {
    session_options options;
    wick_api *api = NULL;
    if (session_options_read(text, &options) == WICK_OK) {
        const wick_api_desc desc = {.name = *name != '\0' ? name : NULL,
                                    .session = options.desc,
                                    .chat_template = *chat_template != '\0' ? chat_template : NULL,
                                    .n_parallel = n_parallel,
                                    .max_queue = max_queue};
        (void)wick_api_open(model, &desc, &api, &door_error);
    }
    session_options_free(&options);
    return api;
}

DOOR(void, api_close, wick_api *api) { wick_api_close(api); }
DOOR(int, api_step, wick_api *api) { return wick_api_step(api); }

/* time: seconds since 1970; offset: that the clock on the wall is ahead of UTC. */
DOOR(wick_exchange *, exchange_open, wick_api *api, const char *method, const char *path,
     const char *body, size_t size, double time, int offset) {
    const wick_request request = {.method = method,
                                  .path = path,
                                  .body = body,
                                  .body_size = size,
                                  .time = (int64_t)time,
                                  .utc_offset = offset};
    wick_exchange *exchange = NULL;
    (void)wick_exchange_open(api, &request, &exchange, door_new_error());
    return exchange;
}

DOOR(void, exchange_close, wick_exchange *exchange) { wick_exchange_close(exchange); }
DOOR(int, exchange_status, const wick_exchange *exchange) { return wick_exchange_status(exchange); }
DOOR(const char *, exchange_type, const wick_exchange *exchange) {
    return wick_exchange_type(exchange);
}
DOOR(int, exchange_is_over, const wick_exchange *exchange) {
    return wick_exchange_is_over(exchange);
}
DOOR(const char *, exchange_take, wick_exchange *exchange, size_t *size) {
    return wick_exchange_take(exchange, size);
}

/* --- Rerankers --- */

/* texts, sizes: first the query, then the documents; n: of both. */
DOOR(int, embedder_start_pairs, wick_embedder *embedder, const char *const *texts,
     const size_t *sizes, size_t n) {
    const wick_string query = {texts[0], sizes[0]};
    return take_embedder_error(
        embedder, wick_embedder_start_pairs(embedder, query, texts + 1, sizes + 1, n - 1));
}
