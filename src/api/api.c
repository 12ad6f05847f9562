/* api/api.c: exchanges from their request to the end of their answer. See wick/api.h. */
#include "api/api.h"

#include "sys/clock.h"

#include <stdio.h>
#include <string.h>

/* ---- The API of a model ---- */

/* Where a model's file has no template (as llama-server does). */
static const char chatml[] =
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}"
    "<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";

static wick_status open_templates(wick_api *api, const char *given, wick_error *err) {
    if (given) return wick_template_parse(given, strlen(given), &api->plain, err);
    wick_error own = {.status = WICK_OK};
    if (wick_model_template(api->model, NULL, &api->plain, &own) == WICK_ERR_NOT_FOUND)
        return wick_template_parse(chatml, strlen(chatml), &api->plain, err);
    if (own.status != WICK_OK)
        return wk_fail(err, own.status, "the chat template: %s", own.message);
    (void)wick_model_template(api->model, "tool_use", &api->for_tools, &own);
    return WICK_OK;
}

static const char *copy_text(wk_arena *arena, const char *text) {
    const size_t size = strlen(text) + 1;
    char *const copy = wk_arena_alloc(arena, size);
    return copy ? memcpy(copy, text, size) : NULL;
}

/* ---- Routes ---- */

typedef struct route {
    const char *method, *path; /* a path that ends with / is a beginning */
    wick_status (*answer)(wick_exchange *x, wick_error *err);
    const wk_style *style;
    bool is_queued; /* it has to wait for its turn */
} route;

static const route routes[] = {
    {"POST", "/v1/chat/completions", wk_answer_chat, &wk_chat_style, true},
    {"POST", "/chat/completions", wk_answer_chat, &wk_chat_style, true},
    {"POST", "/v1/completions", wk_answer_completion, &wk_completion_style, true},
    {"POST", "/completion", wk_answer_native, &wk_native_style, true},
    {"POST", "/completions", wk_answer_native, &wk_native_style, true},
    {"POST", "/v1/embeddings", wk_answer_embeddings, NULL, true},
    {"POST", "/embeddings", wk_answer_embeddings, NULL, true},
    {"POST", "/v1/messages", wk_answer_messages, &wk_messages_style, true},
    {"POST", "/v1/messages/count_tokens", wk_answer_count_tokens, &wk_messages_style, false},
    {"POST", "/v1/responses", wk_answer_responses, &wk_responses_style, true},
    {"POST", "/v1/responses/input_tokens", wk_answer_input_tokens, &wk_responses_style, false},
    {"POST", "/tokenize", wk_answer_tokenize, NULL, false},
    {"POST", "/detokenize", wk_answer_detokenize, NULL, false},
    {"POST", "/apply-template", wk_answer_template, NULL, false},
    {"POST", "/api/chat", wk_answer_ollama, &wk_ollama_style, true},
    {"POST", "/api/generate", wk_answer_ollama, &wk_ollama_style, true},
    {"POST", "/api/embed", wk_answer_embeddings, NULL, true},
    {"POST", "/api/show", wk_answer_show, &wk_ollama_style, false},
    {"GET", "/api/tags", wk_answer_tags, &wk_ollama_style, false},
    {"GET", "/api/version", wk_answer_version, &wk_ollama_style, false},
    {"GET", "/v1/models", wk_answer_models, NULL, false},
    {"GET", "/models", wk_answer_models, NULL, false},
    {"GET", "/v1/models/", wk_answer_model, NULL, false},
    {"GET", "/health", wk_answer_health, NULL, false},
    {"GET", "/v1/health", wk_answer_health, NULL, false},
    {"GET", "/props", wk_answer_props, NULL, false},
    {"GET", "/slots", wk_answer_slots, NULL, false},
    {"GET", "/metrics", wk_answer_metrics, NULL, false},
};

/* *status: of HTTP where there is none. */
static const route *find_route(const wick_request *request, int *status) {
    const char *const method = strcmp(request->method, "HEAD") == 0 ? "GET" : request->method;
    *status = 404;
    for (size_t i = 0; i < sizeof routes / sizeof *routes; i++) {
        const size_t n = strlen(routes[i].path);
        const bool is_beginning = routes[i].path[n - 1] == '/';
        if (is_beginning ? strncmp(request->path, routes[i].path, n) != 0
                         : strcmp(request->path, routes[i].path) != 0)
            continue;
        if (strcmp(method, routes[i].method) == 0) return &routes[i];
        *status = 405;
    }
    return NULL;
}

/* ---- Exchanges ---- */

static double seconds_since(uint64_t ns) { return (double)(wk_clock_ns() - ns) * 1e-9; }

/* To the end of list; NULL: it is over. */
static void move_to(wick_exchange *x, wk_exchanges *list) {
    if (x->list) {
        *(x->previous ? &x->previous->next : &x->list->first) = x->next;
        *(x->next ? &x->next->previous : &x->list->last) = x->previous;
        x->list->n--;
    }
    x->list = list;
    x->next = NULL;
    x->previous = list ? list->last : NULL;
    if (!list) return;
    *(list->last ? &list->last->next : &list->first) = x;
    list->last = x;
    list->n++;
}

static void close_session(wk_choice *choice) {
    if (choice->session) choice->exchange->api->n_running--;
    wick_session_close(choice->session);
    choice->session = NULL;
}

/* It is over: what is being computed for it is given up, and its places are free. */
static void stop(wick_exchange *x) {
    wick_api *const api = x->api;
    for (uint32_t i = 0; i < x->n_choices; i++) close_session(&x->choices[i]);
    if (api->embedding == x) {
        api->embedding = NULL;
        api->n_running--;
    }
    move_to(x, NULL);
}

static void free_choice(wk_choice *choice) {
    wick_answer_close(choice->answer);
    wk_strbuf_release(&choice->content);
    wk_strbuf_release(&choice->reasoning);
    wk_strbuf_release(&choice->calls);
    wk_strbuf_release(&choice->logprobs);
}

void wick_exchange_close(wick_exchange *exchange) {
    if (!exchange) return;
    wk_heap *const heap = exchange->heap;
    stop(exchange);
    for (uint32_t i = 0; i < exchange->n_choices; i++) free_choice(&exchange->choices[i]);
    wick_prompt_free(exchange->rendered);
    wk_strbuf_release(&exchange->out);
    wk_strbuf_release(&exchange->part);
    wk_arena_release(&exchange->arena);
    wk_free(heap, exchange, sizeof *exchange);
}

static wick_status make_choices(wick_exchange *x, wick_error *err) {
    enum { MOST = 128 };
    const uint32_t n = x->n_prompts * x->n;
    if (n > MOST)
        return wk_fail(err, WICK_ERR_VALUE, "a request may ask for %d texts, not for %u", MOST, n);
    x->choices = wk_arena_array(&x->arena, n, sizeof *x->choices);
    if (!x->choices) return wk_fail_memory(err, n * sizeof *x->choices, 0, "a request");
    x->n_choices = n;
    for (uint32_t i = 0; i < n; i++) {
        wk_choice *const choice = &x->choices[i];
        *choice = (wk_choice){.exchange = x, .index = i, .prompt = &x->prompts[i / x->n]};
        wk_strbuf *const buffers[] = {&choice->content, &choice->reasoning, &choice->calls,
                                      &choice->logprobs};
        for (size_t b = 0; b < sizeof buffers / sizeof *buffers; b++)
            wk_strbuf_init(buffers[b], x->heap);
    }
    return WICK_OK;
}

/* Whether the context has room for the prompts and one token; else that is the answer. */
static bool fits(wick_exchange *x) {
    if (x->api->is_encoder) {
        wk_exchange_fail(x, 400, "this model makes embeddings, it generates no text");
        return false;
    }
    const uint32_t most = x->api->session.context_length;
    for (uint32_t i = 0; i < x->n_prompts; i++) {
        const size_t n = x->prompts[i].n;
        char message[160];
        if (n < most) continue;
        snprintf(message, sizeof message,
                 "the request exceeds the available context size: %zu tokens; the context has room "
                 "for %u, the answer included",
                 n, most);
        if (x->style->error) {
            wk_exchange_fail(x, 400, message);
            return false;
        }
        wk_strbuf *const to = &x->part;
        wk_write_raw(to, "{\"error\":{\"code\":400");
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
    const uint64_t n_free = api->n_running < api->n_parallel ? api->n_parallel - api->n_running : 0;
    return api->queued.n < api->max_queue + n_free;
}

static void queue(wick_exchange *x) {
    wick_error err = {.status = WICK_OK};
    if (!x->embedding && !fits(x)) return;
    if (!x->embedding && make_choices(x, &err) != WICK_OK) {
        wk_exchange_fail(x, wk_status_of(err.status), err.message);
        return;
    }
    if (x->is_stream) x->type = x->style->stream_type ? x->style->stream_type : "text/event-stream";
    move_to(x, &x->api->queued);
}

/* A value takes 50 times the memory that it has in the body. Commas of texts count too: no text has
 * as many. */
static bool has_many_values(const wick_request *request) {
    enum { MOST = 2000000 };
    size_t n = 0;
    for (size_t i = 0; i < request->body_size; i++) n += request->body[i] == ',';
    return n > MOST;
}

static wick_status read_body(wick_exchange *x, const wick_request *request, wick_error *err) {
    WK_TRY(wk_json_parse(&x->arena, request->body, request->body_size, &x->body, err));
    if (x->body->kind == WK_JSON_OBJECT) return WICK_OK;
    return wk_fail(err, WICK_ERR_FORMAT, "the body must be a JSON object");
}

static void begin(wick_exchange *x, const wick_request *request) {
    int status;
    wick_error err = {.status = WICK_OK};
    const route *const found = find_route(request, &status);
    if (!found) {
        wk_exchange_fail(x, status,
                         status == 404 ? "there is nothing at this path"
                                       : "this path does not take this method");
        return;
    }
    x->style = found->style;
    if (found->is_queued && !has_room(x->api)) { /* before it is read, which takes time */
        wk_exchange_fail(x, 503, "all places in the queue are taken");
        return;
    }
    if (has_many_values(request)) {
        wk_exchange_fail(x, 413, "the request has too many values");
        return;
    }
    wick_status done = WICK_OK;
    if (strcmp(found->method, "POST") == 0) done = read_body(x, request, &err);
    if (done == WICK_OK) done = found->answer(x, &err);
    if (done != WICK_OK)
        wk_exchange_fail(x, wk_status_of(done), err.message);
    else if (found->is_queued)
        queue(x);
}

wick_status wick_exchange_open(wick_api *api, const wick_request *request, wick_exchange **exchange,
                               wick_error *error) {
    if (exchange) *exchange = NULL;
    if (!api || !request || !exchange || !request->method || !request->path ||
        (!request->body && request->body_size > 0))
        return wk_fail(error, WICK_ERR_ARGUMENT, "wick_exchange_open: an argument is NULL");
    wick_exchange *const x = wk_alloc_zeroed(api->heap, sizeof *x);
    if (!x) return wk_fail_memory(error, sizeof *x, 0, "a request");
    x->api = api;
    x->heap = api->heap;
    x->time = request->time;
    x->type = "application/json";
    wk_arena_init(&x->arena, x->heap, 4096);
    const char *const path = copy_text(&x->arena, request->path);
    if (!path) {
        wk_arena_release(&x->arena);
        wk_free(api->heap, x, sizeof *x);
        return wk_fail_memory(error, strlen(request->path), 0, "a request");
    }
    x->path = wk_str_of(path);
    wk_strbuf_init(&x->out, x->heap);
    wk_strbuf_init(&x->part, x->heap);
    x->opened_ns = wk_clock_ns();
    api->n_opened++;
    begin(x, request);
    *exchange = x;
    return WICK_OK;
}

void wick_exchange_end(wick_exchange *exchange, const char *why) {
    if (!exchange || !why || !exchange->list) return;
    stop(exchange);
    wk_exchange_fail(exchange, 503, why);
}

/* ---- Steps ---- */

/* The failure is the exchange's alone. */
static void fail_exchange(wick_exchange *x, wick_status status, const wick_error *err) {
    stop(x);
    wk_exchange_fail(x, wk_status_of(status),
                     err->message[0] != '\0' ? err->message : wick_status_text(status));
}

static wick_status open_choice(wk_choice *choice, wick_error *err) {
    wick_exchange *const x = choice->exchange;
    wick_session_desc desc = x->desc;
    if (desc.sampler.seed > 0) desc.sampler.seed += choice->index;
    WK_TRY(wick_session_open(x->api->model, &desc, &choice->session, err));
    x->api->n_running++;
    const wick_status status =
        wick_session_append_tokens(choice->session, choice->prompt->ids, choice->prompt->n);
    if (status != WICK_OK) return wick_session_error(choice->session, err);
    if (!x->style->is_chat) return WICK_OK;
    wick_answer_desc answer = {.has_tools = x->tools != NULL};
    if (x->tool_choice != WK_TOOLS_REQUIRED)
        answer.prompt = wick_prompt_text(x->rendered, &answer.prompt_size);
    const wick_status opened = wick_answer_open(&answer, &choice->answer);
    return opened == WICK_OK ? WICK_OK : wk_fail_memory(err, 0, 0, "an answer");
}

/* A call that makes no sense is content: nothing is lost. */
static void take_call(wk_choice *choice, const wick_answer_span *span) {
    wick_exchange *const x = choice->exchange;
    wk_arena scratch;
    wk_arena_init(&scratch, x->heap, 4096);
    wk_tool_call *calls;
    if (wk_tool_calls_read(&scratch, span->format, (wk_str){span->text, span->size}, x->tools,
                           &calls)) {
        for (; calls; calls = calls->next) {
            x->style->call(choice, calls);
            choice->n_calls++;
        }
    } else {
        x->style->text(choice, false, wk_str_of(span->open));
        x->style->text(choice, false, (wk_str){span->text, span->size});
        x->style->text(choice, false, wk_str_of(span->close));
    }
    wk_arena_release(&scratch);
}

static void take_spans(wk_choice *choice) {
    wick_answer_span span;
    while (wick_answer_next(choice->answer, &span)) {
        if (span.kind == WICK_ANSWER_CALL)
            take_call(choice, &span);
        else if (span.size > 0)
            choice->exchange->style->text(choice, span.kind == WICK_ANSWER_REASONING,
                                          (wk_str){span.text, span.size});
    }
}

static wick_status take_text(wk_choice *choice, const wick_event *event) {
    if (event->logprobs && choice->exchange->has_logprobs)
        wk_write_logprob(choice, &choice->logprobs, event);
    if (!choice->answer) {
        if (event->text_size > 0)
            choice->exchange->style->text(choice, false, (wk_str){event->text, event->text_size});
        return WICK_OK;
    }
    WK_TRY(wick_answer_feed(choice->answer, event->text, event->text_size));
    take_spans(choice);
    return WICK_OK;
}

static void count_choice(wk_totals *totals, const wick_session_stats *stats) {
    totals->n_prompt += stats->n_prompt - stats->n_reused;
    totals->n_generated += stats->n_generated;
    totals->prompt_seconds += stats->prompt_seconds;
    totals->generate_seconds += stats->generate_seconds;
}

static void end_choice(wk_choice *choice, wick_end_reason reason) {
    choice->is_over = true;
    choice->reason = reason;
    wick_answer_finish(choice->answer);
    if (choice->answer) take_spans(choice);
    wick_session_get_stats(choice->session, &choice->stats);
    count_choice(&choice->exchange->api->totals, &choice->stats);
    choice->exchange->style->end(choice);
    close_session(choice);
}

static void count_token(wk_choice *choice) {
    wk_totals *const totals = &choice->exchange->api->totals;
    if (choice->last_ns > 0)
        wk_histogram_add(&totals->between, seconds_since(choice->last_ns));
    else
        wk_histogram_add(&totals->first, seconds_since(choice->exchange->opened_ns));
    choice->last_ns = wk_clock_ns();
}

static bool has_failed(const wk_choice *choice) {
    return choice->content.failed || choice->reasoning.failed || choice->calls.failed ||
           choice->logprobs.failed || choice->exchange->out.failed;
}

/* One event of a choice that has a session. */
static wick_status step_choice(wk_choice *choice, wick_error *err) {
    wick_event event;
    const wick_status status = wick_session_step(choice->session, &event);
    if (status == WICK_PENDING) return WICK_OK;
    if (status != WICK_OK) return wick_session_error(choice->session, err);
    wick_status taken = WICK_OK;
    if (event.kind == WICK_EVENT_TOKEN || event.kind == WICK_EVENT_END)
        taken = take_text(choice, &event);
    if (event.kind == WICK_EVENT_TOKEN) count_token(choice);
    if (event.kind == WICK_EVENT_END) end_choice(choice, event.reason);
    if (taken != WICK_OK || has_failed(choice)) return wk_fail_memory(err, 0, 0, "an answer");
    return WICK_OK;
}

static void step_embedding(wick_exchange *x) {
    wick_error err = {.status = WICK_OK};
    const wick_status status = wk_embedding_step(x, &err);
    if (status == WICK_PENDING) return;
    if (status != WICK_OK) {
        fail_exchange(x, status, &err);
        return;
    }
    stop(x);
    wk_exchange_end(x, 200);
}

static void step_text(wick_exchange *x) {
    uint32_t n_over = 0;
    for (uint32_t i = 0; i < x->n_choices; i++) {
        wk_choice *const choice = &x->choices[i];
        wick_error err = {.status = WICK_OK};
        const wick_status status = choice->session ? step_choice(choice, &err) : WICK_OK;
        if (status != WICK_OK) {
            fail_exchange(x, status, &err);
            return;
        }
        n_over += choice->is_over;
    }
    if (n_over < x->n_choices) return;
    stop(x);
    x->style->finish(x);
}

/* Its texts that wait, as far as there is room. */
static void open_choices(wick_exchange *x) {
    for (uint32_t i = 0; i < x->n_choices && x->api->n_running < x->api->n_parallel; i++) {
        wk_choice *const choice = &x->choices[i];
        wick_error err = {.status = WICK_OK};
        if (choice->session || choice->is_over) continue;
        const wick_status status = open_choice(choice, &err);
        if (status != WICK_OK) {
            fail_exchange(x, status, &err);
            return;
        }
        if (i == 0 && x->is_stream && x->style->begin) x->style->begin(x);
        if (x->has_no_tokens) end_choice(choice, WICK_END_MAX_TOKENS);
    }
}

static void begin_exchange(wick_exchange *x) {
    wick_api *const api = x->api;
    move_to(x, &api->running);
    wk_histogram_add(&api->totals.queued, seconds_since(x->opened_ns));
    if (!x->embedding) {
        open_choices(x);
        return;
    }
    api->embedding = x;
    api->n_running++;
}

/* Texts begin in the order of their requests, as long as there is room. */
static void fill_places(wick_api *api) {
    for (wick_exchange *x = api->running.first, *next; x; x = next) {
        next = x->next;
        open_choices(x);
    }
    for (wick_exchange *x = api->queued.first, *next; x && api->n_running < api->n_parallel;
         x = next) {
        next = x->next;
        if (!x->embedding || !api->embedding) begin_exchange(x);
    }
}

wick_status wick_api_step(wick_api *api) {
    if (!api) return WICK_ERR_ARGUMENT;
    fill_places(api);
    bool is_busy = false;
    wick_error err = {.status = WICK_OK};
    const wick_status status = wick_model_step(api->model, &err);
    if (status == WICK_PENDING) return WICK_PENDING;
    for (wick_exchange *x = api->running.first, *next; x; x = next) {
        next = x->next;
        if (x->is_paused) continue;
        is_busy = true;
        if (status < 0)
            fail_exchange(x, status, &err);
        else if (x->embedding)
            step_embedding(x);
        else
            step_text(x);
    }
    return is_busy ? WICK_PENDING : WICK_OK;
}

/* ---- What the caller takes ---- */

int wick_exchange_status(const wick_exchange *exchange) { return exchange ? exchange->status : 0; }

const char *wick_exchange_type(const wick_exchange *exchange) {
    return exchange && exchange->status <= 200 ? exchange->type : "application/json";
}

const char *wick_exchange_take(wick_exchange *exchange, size_t *size) {
    if (size) *size = 0;
    if (!exchange || !size) return NULL;
    wk_strbuf *const out = &exchange->out;
    out->size -= exchange->n_taken;
    if (out->size > 0) memmove(out->data, out->data + exchange->n_taken, out->size);
    *size = exchange->n_taken = out->size;
    return out->data;
}

bool wick_exchange_is_over(const wick_exchange *exchange) { return !exchange || !exchange->list; }

void wick_exchange_pause(wick_exchange *exchange, bool is_paused) {
    if (exchange) exchange->is_paused = is_paused;
}

/* ---- Opening and closing ---- */

void wick_api_close(wick_api *api) {
    if (!api) return;
    wick_embedder_close(api->embedder);
    wick_template_free(api->plain);
    wick_template_free(api->for_tools);
    wk_arena_release(&api->arena);
    wk_free(api->heap, api, sizeof *api);
}

static wick_status open_parts(wick_api *api, const wick_api_desc *desc, wick_error *err) {
    wick_model_info info;
    wick_model_get_info(api->model, &info);
    api->name = copy_text(&api->arena, desc->name ? desc->name : info.name);
    if (!api->name) return wk_fail_memory(err, 1, 0, "an API");
    WK_TRY(open_templates(api, desc->chat_template, err));
    /* The context that sessions have where the desc leaves it open; and that the desc is right. */
    wick_session *session;
    wick_session_stats stats;
    wick_error own = {.status = WICK_OK};
    const wick_status status = wick_session_open(api->model, &desc->session, &session, &own);
    api->is_encoder = status == WICK_ERR_UNSUPPORTED;
    if (api->is_encoder) return WICK_OK;
    if (status != WICK_OK) return wk_pass_on(err, status, &own);
    wick_session_get_stats(session, &stats);
    wick_session_close(session);
    api->session.context_length = stats.context_length;
    return WICK_OK;
}

wick_status wick_api_open(wick_model *model, const wick_api_desc *desc, wick_api **api,
                          wick_error *error) {
    static const wick_api_desc defaults;
    if (api) *api = NULL;
    if (!model || !api)
        return wk_fail(error, WICK_ERR_ARGUMENT, "wick_api_open: an argument is NULL");
    if (!desc) desc = &defaults;
    wick_api *const made = wk_alloc_zeroed(model->heap, sizeof *made);
    if (!made) return wk_fail_memory(error, sizeof *made, 0, "an API");
    made->model = model;
    made->heap = model->heap;
    made->session = desc->session;
    made->n_parallel = desc->n_parallel > 0 ? desc->n_parallel : 4;
    made->max_queue = desc->max_queue > 0 ? desc->max_queue : 64;
    snprintf(made->build, sizeof made->build, "wick-%s", wick_version());
    wk_arena_init(&made->arena, made->heap, 1024);
    const wick_status status = open_parts(made, desc, error);
    if (status != WICK_OK)
        wick_api_close(made);
    else
        *api = made;
    return status;
}
