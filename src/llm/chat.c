/* llm/chat.c: a conversation: messages become a prompt by the template, the session answers it, and
 * the answer becomes a message. */
#include "chat/messages.h"
#include "llm/chat_variables.h"
#include "llm/session_struct.h"

#include <wick/chat.h>

#include <string.h>

struct wick_chat {
    wk_heap *heap; /* the model's */
    wick_model *model;
    wick_session *session;
    wick_template *compiled;
    wk_arena arena; /* variables and tools */
    const wk_json *variables, *tools;
    wick_time_of_day now;
    bool (*stops)(void *stop_context);
    void *stop_context;

    wk_chat_messages messages;
    size_t n_left_out;   /* messages after the system messages that the model does not see */
    size_t n_unreported; /* of these, no event has reported them */
    size_t n_before, n_left_out_before; /* the last send: back to them if it fails */
    size_t n_asked;                     /* messages that the last answer answers */
    bool is_answering;                  /* the last message is the answer, and grows */
    wick_end_reason ended;
    wick_prompt *prompt; /* of the last send */
    wick_error error;
};

/* ---- Failures ---- */

static void forget_error(wick_chat *chat) { chat->error = (wick_error){.status = WICK_OK}; }

/* A failure of the session is one of the conversation. */
static wick_status take_error(wick_chat *chat, wick_status status) {
    return wk_pass_on(&chat->error, status, &chat->session->error);
}

wick_status wick_chat_error(const wick_chat *chat, wick_error *error) {
    if (!chat) return wk_fail(error, WICK_ERR_ARGUMENT, "wick_chat_error: chat is NULL");
    if (error) *error = chat->error;
    return chat->error.status;
}

/* ---- Opening ---- */

static wick_status make_variables(wick_chat *chat, wick_thinking thinking, wick_error *err) {
    wk_json *const made = wk_chat_variables(&chat->arena, chat->model->tokenizer);
    bool is_made = made != NULL;
    if (is_made && thinking != WICK_THINKING_DEFAULT) {
        wk_json *const flag =
            wk_chat_add_variable(&chat->arena, made, "enable_thinking", WK_JSON_BOOL);
        is_made = flag != NULL;
        if (flag) flag->boolean = thinking == WICK_THINKING_ON;
    }
    chat->variables = made;
    return is_made ? WICK_OK : wk_fail_memory(err, sizeof *made, "a conversation");
}

static wick_status read_tools(wick_chat *chat, const char *text, wick_error *err) {
    wk_json *tools;
    wick_error own = {.status = WICK_OK};
    if (!text) return WICK_OK;
    const wick_status status = wk_json_parse(&chat->arena, text, strlen(text), &tools, &own);
    if (status != WICK_OK) return wk_fail(err, status, "tools: %s", own.message);
    chat->tools = tools;
    bool are_functions = tools->kind == WK_JSON_ARRAY;
    for (const wk_json *item = tools->child; item; item = item->next)
        are_functions = are_functions && item->kind == WK_JSON_OBJECT;
    if (are_functions) return WICK_OK;
    return wk_fail(err, WICK_ERR_FORMAT, "tools must be a JSON array of functions, each an object");
}

/* given; else the model's: with tools the one it has for them, if any. */
static wick_status open_template(wick_chat *chat, const char *given, wick_error *err) {
    wick_error own = {.status = WICK_ERR_NOT_FOUND};
    if (given) {
        own.status = WICK_OK;
        wick_template_parse(given, strlen(given), &chat->compiled, &own);
    }
    const char *const names[] = {"tool_use", NULL};
    for (size_t i = chat->tools ? 0 : 1; i < 2 && own.status == WICK_ERR_NOT_FOUND; i++) {
        own.status = WICK_OK; /* the first failure would stay */
        wick_model_template(chat->model, names[i], &chat->compiled, &own);
    }
    if (own.status == WICK_OK) return WICK_OK;
    if (own.status == WICK_ERR_NOT_FOUND)
        return wk_fail(err, own.status, "the model has no chat template");
    return wk_fail(err, own.status, "the chat template: %s", own.message);
}

static wick_status open_parts(wick_chat *chat, const wick_chat_desc *desc, wick_error *err) {
    if (desc->session.logits != WICK_LOGITS_NONE)
        return wk_fail(err, WICK_ERR_VALUE, "a conversation gives text, not logits");
    if (desc->session.context_shift)
        return wk_fail(err, WICK_ERR_VALUE,
                       "a conversation leaves out whole turns: context_shift is for plain text");
    if ((uint32_t)desc->thinking > WICK_THINKING_ON)
        return wk_fail(err, WICK_ERR_VALUE, "there is no such value of thinking");
    WK_TRY(read_tools(chat, desc->tools, err));
    WK_TRY(open_template(chat, desc->chat_template, err));
    WK_TRY(make_variables(chat, desc->thinking, err));
    WK_TRY(wk_chat_messages_set_system(&chat->messages, desc->system, err));
    return wick_session_open(chat->model, &desc->session, &chat->session, err);
}

wick_status wick_chat_open(wick_model *model, const wick_chat_desc *desc, wick_chat **chat,
                           wick_error *error) {
    static const wick_chat_desc defaults;
    if (chat) *chat = NULL;
    if (!model || !chat)
        return wk_fail(error, WICK_ERR_ARGUMENT, "wick_chat_open: an argument is NULL");
    if (!desc) desc = &defaults;
    wick_chat *const made = wk_alloc_zeroed(model->heap, sizeof *made);
    if (!made) return wk_fail_memory(error, sizeof *made, "a conversation");
    made->heap = model->heap;
    made->model = model;
    made->now = desc->now;
    made->stops = desc->stops;
    made->stop_context = desc->stop_context;
    made->messages = wk_chat_messages_none(made->heap);
    wk_arena_init(&made->arena, made->heap, 1024);
    const wick_status status = open_parts(made, desc, error);
    if (status != WICK_OK)
        wick_chat_close(made);
    else
        *chat = made;
    return status;
}

void wick_chat_close(wick_chat *chat) {
    if (!chat) return;
    wick_session_close(chat->session);
    wick_template_free(chat->compiled);
    wick_prompt_free(chat->prompt);
    wk_chat_messages_cut(&chat->messages, 0);
    wk_arena_release(&chat->arena);
    wk_free(chat->heap, chat, sizeof *chat);
}

/* ---- The prompt ---- */

/* The token ids that the model is to read. */
typedef struct ids {
    uint32_t *items; /* [capacity] */
    size_t n, capacity;
    wick_prompt *prompt; /* their text */
} ids;

static void free_ids(const wick_chat *chat, ids *made) {
    wk_free(chat->heap, made->items, made->capacity * sizeof *made->items);
    wick_prompt_free(made->prompt);
    *made = (ids){.n = 0};
}

/* Of the messages from `first` on, and those that always stay. */
static wick_status render(wick_chat *chat, size_t first, wick_prompt **prompt) {
    wk_arena scratch;
    wk_arena_init(&scratch, chat->heap, 4096);
    const wick_conversation conversation = {
        .messages = wk_chat_messages_view(&chat->messages, first, chat->n_asked, &scratch),
        .tools = chat->tools,
        .variables = chat->variables,
        .generation_prompt = WICK_GENERATION_PROMPT_ON,
        .now = chat->now,
        .stops = chat->stops,
        .stop_context = chat->stop_context};
    const wick_status status =
        conversation.messages
            ? wick_template_render(chat->compiled, &conversation, prompt, &chat->error)
            : wk_fail_memory(&chat->error, sizeof(wk_json), "a conversation");
    wk_arena_release(&scratch);
    return status;
}

static wick_status make_ids(wick_chat *chat, size_t first, ids *made) {
    free_ids(chat, made);
    WK_TRY(render(chat, first, &made->prompt));
    size_t n = 0;
    (void)wick_prompt_text(made->prompt, &n);
    n += 2; /* a token is a byte at least, except in texts that are mostly unknown */
    do {
        uint32_t *const items =
            wk_realloc(chat->heap, made->items, made->capacity * sizeof *items, n * sizeof *items);
        if (!items) return wk_fail_memory(&chat->error, n * sizeof *items, "a prompt");
        made->items = items;
        made->capacity = n;
        const wick_status status = wick_prompt_tokenize(made->prompt, chat->model->tokenizer,
                                                        made->items, made->capacity, &n);
        if (status != WICK_OK)
            return wk_fail(&chat->error, status, "the conversation cannot be tokenized: %s",
                           wick_status_text(status));
    } while (n > made->capacity);
    made->n = n;
    return WICK_OK;
}

/* Tokens that an answer of n_answer so far should still have room for. */
static size_t wanted_room(const wick_chat *chat, size_t n_answer) {
    const wick_session *const s = chat->session;
    const size_t quarter = s->context_length < 4 ? 1 : s->context_length / 4;
    const size_t left = s->max_tokens > n_answer ? s->max_tokens - n_answer : quarter;
    return left < quarter ? left : quarter;
}

/* The ids of as much of the conversation as leaves the answer its room, and where that begins: all
 * that the model sees so far, else without the oldest turns, by halving their number. */
static wick_status fit(wick_chat *chat, size_t n_answer, size_t *first, ids *made) {
    const size_t most = chat->session->context_length, room = wanted_room(chat, n_answer);
    const size_t begin = wk_chat_messages_fixed(&chat->messages) + chat->n_left_out;
    size_t too_few = 0, enough = wk_chat_messages_turns(&chat->messages, begin), made_for = 0;
    *first = begin;
    WK_TRY(make_ids(chat, begin, made));
    if (made->n + n_answer + room <= most) return WICK_OK;
    while (enough - too_few > 1) {
        made_for = too_few + (enough - too_few) / 2;
        WK_TRY(make_ids(chat, wk_chat_messages_turn(&chat->messages, begin, made_for), made));
        if (made->n + n_answer + room <= most)
            enough = made_for;
        else
            too_few = made_for;
    }
    *first = wk_chat_messages_turn(&chat->messages, begin, enough);
    return made_for == enough ? WICK_OK : make_ids(chat, *first, made);
}

static void leave_out(wick_chat *chat, size_t first) {
    const size_t n = first - wk_chat_messages_fixed(&chat->messages);
    chat->n_unreported += n - chat->n_left_out;
    chat->n_left_out = n;
}

static void keep_prompt(wick_chat *chat, ids *made) {
    wick_prompt_free(chat->prompt);
    chat->prompt = made->prompt;
    made->prompt = NULL;
}

/* ---- Asking ---- */

/* Before every call that changes the conversation: an answer ends where it is. */
static void begin_change(wick_chat *chat) {
    forget_error(chat);
    chat->is_answering = false;
    chat->ended = WICK_END_NONE;
}

static wick_status check_room(wick_chat *chat, const ids *made) {
    const uint32_t most = chat->session->context_length;
    if (made->n < most) return WICK_OK;
    return wk_fail(
        &chat->error, WICK_ERR_STATE,
        "this message takes %zu tokens with what the template and the system message add; "
        "the context holds %u, the answer included",
        made->n, most);
}

static wick_status ask(wick_chat *chat) {
    ids made = {.n = 0};
    size_t first;
    chat->n_asked = chat->messages.list.count;
    if (chat->n_asked == 0)
        return wk_fail(&chat->error, WICK_ERR_STATE, "there is no message to answer");
    wick_status status = fit(chat, 0, &first, &made);
    if (status == WICK_OK) status = check_room(chat, &made);
    if (status == WICK_OK)
        status =
            wk_chat_messages_add(&chat->messages, "assistant", (wk_str){.size = 0}, &chat->error);
    wick_session_cancel(chat->session);
    if (status == WICK_OK)
        status = take_error(chat, wick_session_sync_tokens(chat->session, made.items, made.n));
    if (status == WICK_OK) {
        leave_out(chat, first);
        keep_prompt(chat, &made);
        chat->is_answering = true;
    }
    free_ids(chat, &made);
    return status;
}

wick_status wick_chat_send(wick_chat *chat, const char *text) {
    if (!chat) return WICK_ERR_ARGUMENT;
    begin_change(chat);
    chat->n_unreported = 0;
    chat->n_before = chat->messages.list.count;
    chat->n_left_out_before = chat->n_left_out;
    wick_status status = WICK_OK;
    if (text) status = wk_chat_messages_add(&chat->messages, "user", wk_str_of(text), &chat->error);
    if (status == WICK_OK) status = ask(chat);
    if (status != WICK_OK) wk_chat_messages_cut(&chat->messages, chat->n_before);
    return status;
}

/* ---- Answering ---- */

/* The answer has filled the context: it goes on after a shorter conversation, if one fits. */
static wick_status make_room(wick_chat *chat) {
    wick_session *const s = chat->session;
    ids made = {.n = 0};
    size_t first;
    const wick_status status = fit(chat, s->n_since_prompt, &first, &made);
    if (status == WICK_OK && made.n + s->n_since_prompt < s->context_length) {
        wk_session_replace_prompt(s, made.items, (uint32_t)made.n);
        leave_out(chat, first);
        keep_prompt(chat, &made);
    }
    free_ids(chat, &made);
    return status;
}

/* The answer ends where it is: it stays, and the session still holds all of it. */
static wick_status end_without_room(wick_chat *chat) {
    const wick_error why = chat->error;
    chat->is_answering = false;
    chat->ended = WICK_END_CONTEXT_FULL;
    forget_error(chat);
    wk_fail(&chat->error, why.status, "the answer has filled the context and cannot go on: %s",
            why.message);
    chat->error.bytes_requested = why.bytes_requested;
    chat->error.bytes_available = why.bytes_available;
    return why.status;
}

static void show_left_out(wick_chat *chat, wick_event *event) {
    event->kind = WICK_EVENT_LEFT_OUT;
    event->done = (uint32_t)chat->n_unreported;
    event->total = (uint32_t)chat->n_left_out;
    chat->n_unreported = 0;
}

static wick_status step(wick_chat *chat, wick_event *event) {
    if (chat->n_unreported == 0 && wk_session_is_full(chat->session) && make_room(chat) != WICK_OK)
        return end_without_room(chat);
    if (chat->n_unreported > 0) {
        show_left_out(chat, event);
        return WICK_OK;
    }
    WK_TRY(take_error(chat, wick_session_step(chat->session, event)));
    WK_TRY(wk_chat_messages_grow(&chat->messages, (wk_str){event->text, event->text_size},
                                 &chat->error));
    if (event->kind == WICK_EVENT_END) {
        chat->is_answering = false;
        chat->ended = event->reason;
    }
    return WICK_OK;
}

static wick_status fail_without_event(wick_chat *chat) {
    forget_error(chat);
    return wk_fail(&chat->error, WICK_ERR_ARGUMENT, "the event of a chat is NULL");
}

wick_status wick_chat_step(wick_chat *chat, wick_event *event) {
    if (!chat) return WICK_ERR_ARGUMENT;
    if (!event) return fail_without_event(chat);
    *event = (wick_event){.kind = WICK_EVENT_PENDING, .text = ""};
    forget_error(chat);
    if (!chat->is_answering) {
        event->kind = WICK_EVENT_END;
        event->reason = chat->ended;
        return WICK_OK;
    }
    const wick_status status = step(chat, event);
    if (status == WICK_OK) return WICK_OK;
    *event = (wick_event){.kind = WICK_EVENT_PENDING, .text = ""};
    if (!chat->is_answering) return status; /* the answer stays */
    chat->is_answering = false;
    chat->ended = WICK_END_NONE;
    chat->n_left_out = chat->n_left_out_before;
    wk_chat_messages_cut(&chat->messages, chat->n_before);
    wick_session_reset(chat->session);
    return status;
}

wick_status wick_chat_next(wick_chat *chat, wick_event *event) {
    if (!chat) return WICK_ERR_ARGUMENT;
    if (!event) return fail_without_event(chat);
    do {
        WK_TRY(wick_chat_step(chat, event));
        if (event->kind == WICK_EVENT_PENDING) wick_pause(chat->model->device);
    } while (event->kind == WICK_EVENT_PENDING);
    return WICK_OK;
}

/* ---- Its messages ---- */

const wick_json *wick_chat_messages(const wick_chat *chat) {
    return chat ? &chat->messages.list : NULL;
}

wick_status wick_chat_add(wick_chat *chat, const char *role, const char *content, size_t size) {
    if (!chat) return WICK_ERR_ARGUMENT;
    begin_change(chat);
    if (!role || (!content && size > 0))
        return wk_fail(&chat->error, WICK_ERR_ARGUMENT, "wick_chat_add: no role or no content");
    return wk_chat_messages_add(&chat->messages, role, (wk_str){content, size}, &chat->error);
}

wick_status wick_chat_add_json(wick_chat *chat, const wick_json *message) {
    if (!chat) return WICK_ERR_ARGUMENT;
    begin_change(chat);
    return wk_chat_messages_add_json(&chat->messages, message, &chat->error);
}

wick_status wick_chat_set_messages(wick_chat *chat, const wick_json *messages) {
    if (!chat) return WICK_ERR_ARGUMENT;
    begin_change(chat);
    if (!messages || messages->kind != WK_JSON_ARRAY)
        return wk_fail(&chat->error, WICK_ERR_VALUE, "the messages must be an array");
    wk_chat_messages made = wk_chat_messages_none(chat->heap);
    wick_status status = WICK_OK;
    for (const wk_json *item = messages->child; item && status == WICK_OK; item = item->next)
        status = wk_chat_messages_add_json(&made, item, &chat->error);
    wk_chat_messages *const unused = status == WICK_OK ? &chat->messages : &made;
    wk_chat_messages_cut(unused, 0);
    if (status != WICK_OK) return status;
    chat->messages = made;
    chat->n_left_out = 0;
    return WICK_OK;
}

wick_status wick_chat_set_system(wick_chat *chat, const char *text) {
    if (!chat) return WICK_ERR_ARGUMENT;
    begin_change(chat);
    return wk_chat_messages_set_system(&chat->messages, text, &chat->error);
}

void wick_chat_cut(wick_chat *chat, size_t n) {
    if (!chat) return;
    begin_change(chat);
    wk_chat_messages_cut(&chat->messages, n);
    if (n <= wk_chat_messages_fixed(&chat->messages) + chat->n_left_out) chat->n_left_out = 0;
}

/* ---- Its session ---- */

wick_status wick_chat_configure(wick_chat *chat, const wick_session_desc *desc, wick_error *error) {
    if (!chat) return wk_fail(error, WICK_ERR_ARGUMENT, "wick_chat_configure: no conversation");
    begin_change(chat);
    wick_session_cancel(chat->session);
    const wick_status status = wick_session_configure(chat->session, desc, &chat->error);
    if (status != WICK_OK && error && error->status == WICK_OK) *error = chat->error;
    return status;
}

const char *wick_chat_prompt(const wick_chat *chat, size_t *size) {
    return wick_prompt_text(chat ? chat->prompt : NULL, size);
}

wick_session *wick_chat_session(wick_chat *chat) { return chat ? chat->session : NULL; }
