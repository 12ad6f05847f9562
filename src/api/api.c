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
} route;

static const route routes[] = {
    {"POST", "/v1/chat/completions", wk_answer_chat},
    {"POST", "/chat/completions", wk_answer_chat},
    {"POST", "/v1/completions", wk_answer_completion},
    {"POST", "/completion", wk_answer_native},
    {"POST", "/completions", wk_answer_native},
    {"POST", "/v1/embeddings", wk_answer_embeddings},
    {"POST", "/embeddings", wk_answer_embeddings},
    {"POST", "/v1/messages", wk_answer_messages},
    {"POST", "/v1/messages/count_tokens", wk_answer_count_tokens},
    {"POST", "/v1/responses", wk_answer_responses},
    {"POST", "/v1/responses/input_tokens", wk_answer_input_tokens},
    {"POST", "/tokenize", wk_answer_tokenize},
    {"POST", "/detokenize", wk_answer_detokenize},
    {"POST", "/apply-template", wk_answer_template},
    {"POST", "/api/chat", wk_answer_ollama},
    {"POST", "/api/generate", wk_answer_ollama},
    {"POST", "/api/embed", wk_answer_embeddings},
    {"POST", "/api/show", wk_answer_show},
    {"GET", "/api/tags", wk_answer_tags},
    {"GET", "/api/version", wk_answer_version},
    {"GET", "/v1/models", wk_answer_models},
    {"GET", "/models", wk_answer_models},
    {"GET", "/v1/models/", wk_answer_model},
    {"GET", "/health", wk_answer_health},
    {"GET", "/v1/health", wk_answer_health},
    {"GET", "/props", wk_answer_props},
    {"GET", "/slots", wk_answer_slots},
    {"GET", "/metrics", wk_answer_metrics},
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

static void free_choice(wk_choice *choice) {
    wick_session_close(choice->session);
    wick_answer_close(choice->answer);
    wk_strbuf_release(&choice->content);
    wk_strbuf_release(&choice->reasoning);
    wk_strbuf_release(&choice->calls);
    wk_strbuf_release(&choice->logprobs);
    *choice = (wk_choice){.exchange = choice->exchange};
}

/* Of those that n_parallel counts. */
static uint32_t places_of(const wick_exchange *x) { return x->embedding ? 1 : x->n_choices; }

static void leave_state(wick_exchange *x) {
    if (x->state == WK_EXCHANGE_QUEUED) x->api->n_queued--;
    if (x->state == WK_EXCHANGE_RUNNING) x->api->n_running -= places_of(x);
    if (x->api->embedding == x) x->api->embedding = NULL;
    x->state = WK_EXCHANGE_OVER;
}

void wick_exchange_close(wick_exchange *exchange) {
    if (!exchange) return;
    wick_api *const api = exchange->api;
    leave_state(exchange);
    wick_exchange **at = &api->first;
    while (*at && *at != exchange) at = &(*at)->next;
    if (*at) *at = exchange->next;
    for (uint32_t i = 0; i < exchange->n_choices; i++) free_choice(&exchange->choices[i]);
    wick_prompt_free(exchange->rendered);
    wk_strbuf_release(&exchange->out);
    wk_strbuf_release(&exchange->part);
    wk_arena_release(&exchange->arena);
    wk_free(api->heap, exchange, sizeof *exchange);
}

static wick_status make_choices(wick_exchange *x, wick_error *err) {
    const uint32_t n = x->n_prompts * x->n;
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

static void queue(wick_exchange *x) {
    wick_error err = {.status = WICK_OK};
    if (!x->embedding && !fits(x)) return;
    if (x->api->n_queued >= x->api->max_queue) {
        wk_exchange_fail(x, 503, "all places in the queue are taken");
        return;
    }
    if (!x->embedding && make_choices(x, &err) != WICK_OK) {
        wk_exchange_fail(x, 503, err.message);
        return;
    }
    x->state = WK_EXCHANGE_QUEUED;
    x->api->n_queued++;
    if (!x->is_stream) return;
    x->type = x->style->stream_type ? x->style->stream_type : "text/event-stream";
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
    wick_status done = WICK_OK;
    if (strcmp(found->method, "POST") == 0) {
        done = wk_json_parse(&x->arena, request->body, request->body_size, &x->body, &err);
        if (done == WICK_OK && x->body->kind != WK_JSON_OBJECT)
            done = wk_fail(&err, WICK_ERR_FORMAT, "the body must be a JSON object");
    }
    if (done == WICK_OK) done = found->answer(x, &err);
    if (done == WICK_OK && x->status == 0) {
        queue(x);
        return;
    }
    if (done == WICK_OK) return;
    wk_exchange_fail(x, wk_status_of(done), err.message);
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
    x->state = WK_EXCHANGE_OVER;
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
    wick_exchange **end = &api->first;
    while (*end) end = &(*end)->next;
    *end = x;
    begin(x, request);
    *exchange = x;
    return WICK_OK;
}

void wick_exchange_end(wick_exchange *exchange, const char *why) {
    if (!exchange || !why || exchange->state == WK_EXCHANGE_OVER) return;
    leave_state(exchange);
    wk_exchange_fail(exchange, 503, why);
}

/* ---- Steps ---- */

/* The failure is the exchange's alone. */
static void fail_exchange(wick_exchange *x, wick_status status, const wick_error *err) {
    leave_state(x);
    for (uint32_t i = 0; i < x->n_choices; i++) free_choice(&x->choices[i]);
    wk_exchange_fail(x, wk_status_of(status), err->message);
}

static wick_status open_choice(wk_choice *choice, wick_error *err) {
    wick_exchange *const x = choice->exchange;
    wick_session_desc desc = x->desc;
    if (desc.sampler.seed > 0) desc.sampler.seed += choice->index;
    WK_TRY(wick_session_open(x->api->model, &desc, &choice->session, err));
    const wick_status status =
        wick_session_append_tokens(choice->session, choice->prompt->ids, choice->prompt->n);
    if (status != WICK_OK) return wick_session_error(choice->session, err);
    if (!x->style->is_chat) return WICK_OK;
    wick_answer_desc answer = {.has_tools = x->tools != NULL};
    if (x->tool_choice != WK_TOOLS_REQUIRED)
        answer.prompt = wick_prompt_text(x->rendered, &answer.prompt_size);
    return wick_answer_open(&answer, &choice->answer);
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
    wick_session_close(choice->session);
    choice->session = NULL;
}

static void count_token(wk_choice *choice) {
    wk_totals *const totals = &choice->exchange->api->totals;
    if (choice->last_ns > 0)
        wk_histogram_add(&totals->between, seconds_since(choice->last_ns));
    else
        wk_histogram_add(&totals->first, seconds_since(choice->exchange->opened_ns));
    choice->last_ns = wk_clock_ns();
}

/* One event of the choice; *has_more: there may be another one. */
static wick_status step_choice(wk_choice *choice, bool *has_more, wick_error *err) {
    wick_event event;
    if (!choice->session) WK_TRY(open_choice(choice, err));
    const wick_status status = wick_session_step(choice->session, &event);
    if (status == WICK_PENDING) return WICK_OK;
    if (status != WICK_OK) return wick_session_error(choice->session, err);
    *has_more = event.kind != WICK_EVENT_PENDING;
    if (event.kind == WICK_EVENT_TOKEN || event.kind == WICK_EVENT_END) {
        const wick_status taken = take_text(choice, &event);
        if (taken != WICK_OK) return wk_fail(err, taken, "%s", wick_status_text(taken));
    }
    if (event.kind == WICK_EVENT_TOKEN) count_token(choice);
    if (event.kind == WICK_EVENT_END) end_choice(choice, event.reason);
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
    leave_state(x);
    wk_exchange_end(x, 200);
}

static void step_text(wick_exchange *x) {
    uint32_t n_over = 0;
    for (uint32_t i = 0; i < x->n_choices; i++) {
        wk_choice *const choice = &x->choices[i];
        bool has_more = false;
        wick_error err = {.status = WICK_OK};
        const wick_status status = choice->is_over ? WICK_OK : step_choice(choice, &has_more, &err);
        if (status == WICK_OK && x->out.failed)
            (void)wk_fail_memory(&err, x->out.size, 0, "an answer");
        if (status != WICK_OK || x->out.failed) {
            fail_exchange(x, err.status, &err);
            return;
        }
        n_over += choice->is_over;
    }
    if (n_over < x->n_choices) return;
    leave_state(x);
    x->style->finish(x);
}

/* Those that wait begin in their order, as long as there is room. */
static void begin_queued(wick_api *api) {
    for (wick_exchange *x = api->first; x && api->n_queued > 0; x = x->next) {
        if (x->state != WK_EXCHANGE_QUEUED) continue;
        const uint32_t n = places_of(x);
        if (api->n_running > 0 && api->n_running + n > api->n_parallel) return;
        if (x->embedding && api->embedding) continue;
        if (x->embedding) api->embedding = x;
        api->n_queued--;
        api->n_running += n;
        x->state = WK_EXCHANGE_RUNNING;
        wk_histogram_add(&api->totals.queued, seconds_since(x->opened_ns));
        if (x->is_stream && x->style && x->style->begin) x->style->begin(x);
    }
}

wick_status wick_api_step(wick_api *api) {
    if (!api) return WICK_ERR_ARGUMENT;
    begin_queued(api);
    bool is_busy = false;
    wick_error err = {.status = WICK_OK};
    const wick_status status = wick_model_step(api->model, &err);
    if (status == WICK_PENDING) return WICK_PENDING;
    for (wick_exchange *x = api->first; x; x = x->next) {
        if (x->state != WK_EXCHANGE_RUNNING || x->is_paused) continue;
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

bool wick_exchange_is_over(const wick_exchange *exchange) {
    return !exchange || exchange->state == WK_EXCHANGE_OVER;
}

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
