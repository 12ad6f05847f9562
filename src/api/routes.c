/* api/routes.c: which function answers a request, and what is refused before it is read. See
 * api.h. */
#include "api/api.h"

#include <stdio.h>
#include <string.h>

/* ---- Routes ---- */

typedef struct route {
    const char *method, *path; /* a path that ends with / is a beginning */
    wick_status (*answer)(wick_exchange *x, wick_error *err);
    const wk_style *style;
    enum {
        AT_ONCE,
        AT_ONCE_FROM_LIST, /* its body is an array */
        QUEUED,            /* it has to wait for its turn */
    } turn;
} route;

static const route routes[] = {
    {"POST", "/v1/chat/completions", wk_answer_chat, &wk_chat_style, QUEUED},
    {"POST", "/chat/completions", wk_answer_chat, &wk_chat_style, QUEUED},
    {"POST", "/v1/chat/completions/input_tokens", wk_answer_chat_tokens, NULL, AT_ONCE},
    {"POST", "/chat/completions/input_tokens", wk_answer_chat_tokens, NULL, AT_ONCE},
    {"POST", "/v1/completions", wk_answer_completion, &wk_completion_style, QUEUED},
    {"POST", "/completion", wk_answer_native, &wk_native_style, QUEUED},
    {"POST", "/completions", wk_answer_native, &wk_native_style, QUEUED},
    {"POST", "/v1/embeddings", wk_answer_embeddings, NULL, QUEUED},
    {"POST", "/embeddings", wk_answer_embeddings, NULL, QUEUED},
    {"POST", "/embedding", wk_answer_embeddings, NULL, QUEUED},
    {"POST", "/v1/rerank", wk_answer_rerank, NULL, QUEUED},
    {"POST", "/rerank", wk_answer_rerank, NULL, QUEUED},
    {"POST", "/reranking", wk_answer_rerank, NULL, QUEUED},
    {"POST", "/v1/reranking", wk_answer_rerank, NULL, QUEUED},
    {"POST", "/infill", wk_answer_infill, &wk_native_style, QUEUED},
    {"POST", "/v1/messages", wk_answer_messages, &wk_messages_style, QUEUED},
    {"POST", "/v1/messages/count_tokens", wk_answer_count_tokens, &wk_messages_style, AT_ONCE},
    {"POST", "/v1/responses", wk_answer_responses, &wk_responses_style, QUEUED},
    {"POST", "/responses", wk_answer_responses, &wk_responses_style, QUEUED},
    {"POST", "/v1/responses/input_tokens", wk_answer_input_tokens, &wk_responses_style, AT_ONCE},
    {"POST", "/tokenize", wk_answer_tokenize, NULL, AT_ONCE},
    {"POST", "/detokenize", wk_answer_detokenize, NULL, AT_ONCE},
    {"POST", "/apply-template", wk_answer_template, NULL, AT_ONCE},
    {"POST", "/api/chat", wk_answer_ollama, &wk_ollama_style, QUEUED},
    {"POST", "/api/generate", wk_answer_ollama, &wk_ollama_style, QUEUED},
    {"POST", "/api/embed", wk_answer_embeddings, &wk_ollama_style, QUEUED},
    {"POST", "/api/embeddings", wk_answer_embeddings, &wk_ollama_style, QUEUED},
    {"POST", "/api/show", wk_answer_show, &wk_ollama_style, AT_ONCE},
    {"GET", "/api/ps", wk_answer_ps, &wk_ollama_style, AT_ONCE},
    {"GET", "/api/tags", wk_answer_tags, &wk_ollama_style, AT_ONCE},
    {"GET", "/api/version", wk_answer_version, &wk_ollama_style, AT_ONCE},
    {"GET", "/v1/models", wk_answer_models, NULL, AT_ONCE},
    {"GET", "/models", wk_answer_models, NULL, AT_ONCE},
    {"GET", "/v1/models/", wk_answer_model, NULL, AT_ONCE},
    {"GET", "/health", wk_answer_health, NULL, AT_ONCE},
    {"GET", "/v1/health", wk_answer_health, NULL, AT_ONCE},
    {"GET", "/props", wk_answer_props, NULL, AT_ONCE},
    {"GET", "/slots", wk_answer_slots, NULL, AT_ONCE},
    {"POST", "/slots/", wk_answer_slot_action, NULL, AT_ONCE},
    {"GET", "/lora-adapters", wk_answer_loras, NULL, AT_ONCE},
    {"POST", "/lora-adapters", wk_answer_set_loras, NULL, AT_ONCE_FROM_LIST},
    {"GET", "/metrics", wk_answer_metrics, NULL, AT_ONCE},
};

/* *status: of HTTP where there is none. Method "": any. */
static const route *find_route(const wick_request *request, int *status) {
    const char *const method = strcmp(request->method, "HEAD") == 0 ? "GET" : request->method;
    *status = 404;
    for (size_t i = 0; i < sizeof routes / sizeof *routes; i++) {
        const size_t n = strlen(routes[i].path);
        const bool is_beginning = routes[i].path[n - 1] == '/';
        if (is_beginning ? strncmp(request->path, routes[i].path, n) != 0
                         : strcmp(request->path, routes[i].path) != 0)
            continue;
        if (method[0] == '\0' || strcmp(method, routes[i].method) == 0) return &routes[i];
        *status = 405;
    }
    return NULL;
}

/* Of the API at this path, also where there is no answer. */
static const wk_style *style_at(const char *path) {
    static const char ollamas[] = "/api/", anthropics[] = "/v1/messages/";
    int ignored;
    const route *const found = find_route(&(wick_request){.method = "", .path = path}, &ignored);
    if (found) return found->style;
    if (strncmp(path, anthropics, sizeof anthropics - 1) == 0) return &wk_messages_style;
    return strncmp(path, ollamas, sizeof ollamas - 1) == 0 ? &wk_ollama_style : NULL;
}

static const char *why_not(int status) {
    return status == 404 ? "there is nothing at this path" : "this path does not take this method";
}

int wick_api_find(const char *method, const char *path, const char **why) {
    const wick_request request = {.method = method ? method : "", .path = path ? path : ""};
    int status;
    const bool is_found = find_route(&request, &status) != NULL;
    if (why) *why = is_found ? NULL : why_not(status);
    return is_found ? 200 : status;
}

/* Whether the context has room for the prompts and one token; else that is the answer. */
static bool fits(wick_exchange *x) {
    if (x->api->is_encoder) {
        wk_exchange_fail(x, 400, "this model makes embeddings, it generates no text");
        return false;
    }
    const uint32_t most = x->api->session.context_length;
    for (uint32_t i = 0; i < x->n_prompts; i++) {
        const wk_ids *const prompt = &x->prompts[i];
        const size_t n = prompt->n_estimated > 0 ? prompt->n_estimated : prompt->n;
        char message[160];
        if (n < most || (x->desc.context_shift && prompt->n_estimated == 0)) continue;
        /* Clients of Anthropic's API know its sentence, and shorten the conversation. */
        snprintf(message, sizeof message,
                 x->style == &wk_messages_style
                     ? "prompt is too long: %zu tokens > %u maximum, of the context with the answer"
                     : "the request exceeds the available context size: %zu tokens; the context "
                       "has room for %u, the answer included",
                 n, most);
        if (x->style->error) {
            wk_exchange_fail(x, 400, message);
            return false;
        }
        wk_strbuf *const to = &x->part;
        const bool is_responses = x->style == &wk_responses_style; /* whose clients know the code */
        wk_write_raw(to, "{\"error\":{\"code\":");
        wk_strbuf_text(to, is_responses ? "\"context_length_exceeded\"" : "400");
        wk_write_put(to, "message", message);
        wk_write_put(to, "type", "exceed_context_size_error");
        wk_write_put_whole(to, "n_prompt_tokens", n);
        wk_write_put_whole(to, "n_ctx", most);
        wk_write_raw(to, "\"param\":null}}");
        wk_exchange_end(x, 400);
        return false;
    }
    return true;
}

/* Those that begin with the next step do not wait. */
static bool has_room(const wick_api *api) {
    return api->queued.n < (uint64_t)api->max_queue + wk_count_free(api);
}

static void queue(wick_exchange *x) {
    wick_error err = {.status = WICK_OK};
    if (!x->embedding && !fits(x)) return;
    if (!x->embedding && wk_texts_make(x, &err) != WICK_OK) {
        wk_exchange_fail(x, wk_status_of(err.status), err.message);
        return;
    }
    if (x->is_stream) x->type = x->style->stream_type ? x->style->stream_type : "text/event-stream";
    wk_exchange_move(x, &x->api->queued);
}

/* Commas of texts count too: no text has as many. */
int wick_api_check_body(const char *body, size_t size, const char **why) {
    enum { MOST = 2000000 };
    size_t n = 0;
    for (size_t i = 0; body && i < size; i++) n += body[i] == ',';
    if (why) *why = n > MOST ? "the request has too many values" : NULL;
    return n > MOST ? 413 : 200;
}

/* No body is an empty object. */
static wick_status read_body(wick_exchange *x, const wick_request *request, bool takes_list,
                             wick_error *err) {
    const bool is_empty = request->body_size == 0;
    WK_TRY(wk_json_parse(&x->arena, is_empty ? "{}" : request->body,
                         is_empty ? 2 : request->body_size, &x->body, err));
    if (x->body->kind == (takes_list ? WK_JSON_ARRAY : WK_JSON_OBJECT)) return WICK_OK;
    if (takes_list) return wk_fail(err, WICK_ERR_FORMAT, "the body must be a JSON array");
    return wk_fail(err, WICK_ERR_FORMAT, "the body must be a JSON object");
}

/* The sentence begins with the field, which has the name that the client knows. */
static void refuse(wick_exchange *x, const wk_style *style, wick_status status,
                   const wick_error *err) {
    wick_error said = *err;
    for (const char *const(*at)[2] = style ? style->names : NULL; at && (*at)[0]; at++) {
        const size_t n = strlen((*at)[0]);
        if (strncmp(err->message, (*at)[0], n) != 0 || !strchr(" :.", err->message[n])) continue;
        snprintf(said.message, sizeof said.message, "%s%s", (*at)[1], err->message + n);
        break;
    }
    wk_exchange_fail(x, wk_status_of(status), said.message);
}

void wk_exchange_begin(wick_exchange *x, const wick_request *request) {
    int status;
    const char *why;
    wick_error err = {.status = WICK_OK};
    const route *const found = find_route(request, &status);
    x->style = style_at(request->path);
    if (!found) {
        wk_exchange_fail(x, status, why_not(status));
        return;
    }
    if (found->turn == QUEUED && !has_room(x->api)) { /* before it is read, which takes time */
        wk_exchange_fail(x, 503, "all places in the queue are taken");
        return;
    }
    status = wick_api_check_body(request->body, request->body_size, &why);
    if (why) {
        wk_exchange_fail(x, status, why);
        return;
    }
    wick_status done = WICK_OK;
    if (strcmp(found->method, "POST") == 0)
        done = read_body(x, request, found->turn == AT_ONCE_FROM_LIST, &err);
    if (done == WICK_OK) done = found->answer(x, &err);
    if (done != WICK_OK)
        refuse(x, found->style, done, &err);
    else if (found->turn == QUEUED && x->status == 0)
        queue(x);
}

size_t wick_api_error(const char *path, int status, const char *message, char *text,
                      size_t capacity) {
    wk_heap heap;
    wk_strbuf made;
    if (!path || !message || !text || capacity == 0) return 0;
    const wk_style *const style = style_at(path);
    wk_heap_init(&heap, NULL);
    wk_strbuf_init(&made, &heap);
    if (style && style->error)
        style->error(&made, status, message);
    else
        wk_write_error(&made, status, message);
    const size_t size = made.failed || made.size >= capacity ? 0 : made.size;
    if (size > 0) memcpy(text, made.data, size);
    text[size] = '\0';
    wk_strbuf_release(&made);
    return size;
}
