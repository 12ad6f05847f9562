/* api/api.c: exchanges from their request to the end of their answer. See wick/api.h. */
#include "api/api.h"

#include "sys/clock.h"

#include <stdio.h>
#include <string.h>

/* ---- The API of a model ---- */

/* Also where a model's file has no template (as llama-server does). */
static const char chatml[] =
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}"
    "<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";

static wick_status open_templates(wick_api *api, const char *given, wick_error *err) {
    api->has_own_template = given != NULL;
    if (given && strcmp(given, "chatml") == 0) given = chatml;
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

/* ---- Exchanges ---- */

double wk_seconds_since(uint64_t ns) { return (double)(wk_clock_ns() - ns) * 1e-9; }

/* To the end of list; NULL: it is over. */
void wk_exchange_move(wick_exchange *x, wk_exchanges *list) {
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

uint32_t wk_count_free(const wick_api *api) {
    const uint32_t n_taken = api->n_running + api->n_moving;
    return n_taken < api->n_parallel ? api->n_parallel - n_taken : 0;
}

void wk_exchange_stop(wick_exchange *x) {
    wick_api *const api = x->api;
    wk_texts_close(x);
    wk_transfer_cancel(x);
    if (api->embedding == x) {
        api->embedding = NULL;
        api->n_running--;
    }
    wk_exchange_move(x, NULL);
}

void wick_exchange_close(wick_exchange *exchange) {
    if (!exchange) return;
    wk_heap *const heap = exchange->heap;
    wk_exchange_stop(exchange);
    wk_texts_free(exchange);
    wick_prompt_free(exchange->rendered);
    wk_strbuf_release(&exchange->out);
    wk_strbuf_release(&exchange->part);
    wk_arena_release(&exchange->arena);
    wk_free(heap, exchange, sizeof *exchange);
}

wick_status wick_exchange_open(wick_api *api, const wick_request *request, wick_exchange **exchange,
                               wick_error *error) {
    if (exchange) *exchange = NULL;
    if (!api || !request || !exchange || !request->method || !request->path ||
        (!request->body && request->body_size > 0))
        return wk_fail(error, WICK_ERR_ARGUMENT, "wick_exchange_open: an argument is NULL");
    wick_exchange *const x = wk_alloc_zeroed(api->heap, sizeof *x);
    if (!x) return wk_fail_memory(error, sizeof *x, "a request");
    x->api = api;
    x->heap = api->heap;
    x->time = request->time;
    x->utc_offset = request->utc_offset;
    x->type = "application/json";
    wk_arena_init(&x->arena, x->heap, 4096);
    const char *const path = copy_text(&x->arena, request->path);
    x->query = request->query ? copy_text(&x->arena, request->query) : NULL;
    if (!path || (request->query && !x->query)) {
        wk_arena_release(&x->arena);
        wk_free(api->heap, x, sizeof *x);
        return wk_fail_memory(error, strlen(request->path), "a request");
    }
    x->path = wk_str_of(path);
    wk_strbuf_init(&x->out, x->heap);
    wk_strbuf_init(&x->part, x->heap);
    x->opened_ns = wk_clock_ns();
    api->n_opened++;
    wk_exchange_begin(x, request);
    *exchange = x;
    return WICK_OK;
}

void wick_exchange_end(wick_exchange *exchange, const char *why) {
    if (!exchange || !why || !exchange->list) return;
    wk_exchange_stop(exchange);
    wk_exchange_fail(exchange, 503, why);
}

/* ---- Steps ---- */

void wk_exchange_break(wick_exchange *x, wick_status status, const wick_error *err) {
    wk_exchange_stop(x);
    wk_exchange_fail(x, wk_status_of(status),
                     err->message[0] != '\0' ? err->message : wick_status_text(status));
}

static void step_embedding(wick_exchange *x) {
    wick_error err = {.status = WICK_OK};
    const wick_status status = wk_embedding_step(x, &err);
    if (status == WICK_PENDING) return;
    if (status != WICK_OK) {
        wk_exchange_break(x, status, &err);
        return;
    }
    wk_exchange_stop(x);
    wk_exchange_end(x, 200);
}

static void begin_exchange(wick_exchange *x) {
    wick_api *const api = x->api;
    wk_exchange_move(x, &api->running);
    wk_histogram_add(&api->totals.queued, wk_seconds_since(x->opened_ns));
    if (!x->embedding) {
        wk_texts_open(x);
        return;
    }
    api->embedding = x;
    api->n_running++;
}

/* Texts begin in the order of their requests, as long as there is room. */
static void fill_places(wick_api *api) {
    for (wick_exchange *x = api->running.first, *next; x; x = next) {
        next = x->next;
        wk_texts_open(x);
    }
    for (wick_exchange *x = api->queued.first, *next; x && wk_count_free(api) > 0; x = next) {
        next = x->next;
        if (!x->embedding || !api->embedding) begin_exchange(x);
    }
}

wick_status wick_api_step(wick_api *api) {
    if (!api) return WICK_ERR_ARGUMENT;
    fill_places(api);
    bool is_busy = false, is_batch = false;
    wick_error err = {.status = WICK_OK};
    const wick_status status = wick_model_step(api->model, &err);
    if (status == WICK_PENDING) return WICK_PENDING;
    for (wick_exchange *x = api->queued.first; x; x = x->next) wk_exchange_ping(x);
    for (wick_exchange *x = api->running.first, *next; x; x = next) {
        next = x->next;
        wk_exchange_ping(x);
        if (x->is_paused) continue;
        is_busy = true;
        is_batch = is_batch || !x->transfer;
        if (status < 0)
            wk_exchange_break(x, status, &err);
        else if (x->transfer)
            wk_transfer_step(x);
        else if (x->embedding)
            step_embedding(x);
        else
            wk_texts_step(x);
    }
    if (is_batch) {
        api->totals.n_batches++;
        api->totals.n_in_batches += api->n_running;
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
    for (uint32_t i = 0; i < api->n_parallel && api->slots; i++)
        wick_session_close(api->slots[i].kept);
    wick_embedder_close(api->embedder);
    wick_embedder_close(api->ranker);
    wick_template_free(api->plain);
    wick_template_free(api->for_tools);
    wk_arena_release(&api->arena);
    wk_free(api->heap, api, sizeof *api);
}

static const char **copy_texts(wk_arena *arena, const char *const *texts, size_t n) {
    const char **const copies = wk_arena_array(arena, n + 1, sizeof *copies);
    for (size_t i = 0; copies && i < n; i++) {
        copies[i] = copy_text(arena, texts[i]);
        if (!copies[i]) return NULL;
    }
    return copies;
}

static wick_status copy_loras(wick_api *api, const wick_api_desc *desc, wick_error *err) {
    enum { MOST = 8 };
    if (desc->n_loras > MOST) return wk_fail(err, WICK_ERR_VALUE, "at most %d adapters", MOST);
    api->loras = wk_arena_array(&api->arena, desc->n_loras + 1, sizeof *api->loras);
    for (size_t i = 0; api->loras && i < desc->n_loras; i++) {
        api->loras[i] = desc->loras[i];
        api->loras[i].path = copy_text(&api->arena, desc->loras[i].path);
        if (!api->loras[i].path) return wk_fail_memory(err, 1, "an API");
    }
    api->n_loras = desc->n_loras;
    return api->loras ? WICK_OK : wk_fail_memory(err, 1, "an API");
}

static wick_status copy_desc(wick_api *api, const wick_api_desc *desc, wick_error *err) {
    wick_model_info info;
    wick_model_get_info(api->model, &info);
    wk_arena *const arena = &api->arena;
    api->name = copy_text(arena, desc->name ? desc->name : info.name);
    api->path = copy_text(arena, desc->path ? desc->path : "");
    api->aliases = copy_texts(arena, desc->aliases, desc->n_aliases);
    api->tags = copy_texts(arena, desc->tags, desc->n_tags);
    api->slots = wk_arena_array(arena, api->n_parallel, sizeof *api->slots);
    const bool has_folder = desc->slot_folder && desc->slot_folder[0] != '\0';
    api->slot_folder = has_folder ? copy_text(arena, desc->slot_folder) : NULL;
    if (!api->name || !api->path || !api->aliases || !api->tags || !api->slots ||
        (has_folder && !api->slot_folder))
        return wk_fail_memory(err, 1, "an API");
    api->n_aliases = desc->n_aliases;
    api->n_tags = desc->n_tags;
    api->pooling = desc->pooling;
    api->reasoning = desc->reasoning;
    api->thinking = desc->thinking;
    api->modified = desc->modified;
    api->has_metrics = desc->has_metrics;
    api->has_no_slots = desc->has_no_slots;
    api->is_verbose = desc->is_verbose;
    api->ping_interval = desc->ping_interval > 0 ? desc->ping_interval : 10;
    return copy_loras(api, desc, err);
}

static wick_status open_parts(wick_api *api, const wick_api_desc *desc, wick_error *err) {
    WK_TRY(copy_desc(api, desc, err));
    WK_TRY(open_templates(api, desc->chat_template, err));
    api->is_encoder = wk_model_hparams(api->model->model)->is_bidirectional;
    if (api->is_encoder) return WICK_OK;
    /* The context that sessions have where the desc leaves it open; and that the desc is right. */
    wick_session *session;
    wick_session_stats stats;
    WK_TRY(wick_session_open(api->model, &desc->session, &session, err));
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
    if (!made) return wk_fail_memory(error, sizeof *made, "an API");
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
