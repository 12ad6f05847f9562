/* api/fit.c: messages as a template takes them: tools in words for one that has no place for them,
 * and other messages in place of those that it refuses. See api.h. */
#include "api/api.h"

#include <string.h>

static const char telling[] =
    "You can call functions. To call one, answer with nothing but JSON of this form: "
    "{\"name\": the function, \"arguments\": an object of its parameters}. Otherwise answer the "
    "user in words. The functions, with JSON schemas of their parameters:";

static bool has_role(const wk_json *message, const char *role) {
    return wk_json_is(wk_json_get(message, "role"), role);
}

static bool has_same_role(const wk_json *a, const wk_json *b) {
    return wk_str_equal(wk_json_get(a, "role")->string, wk_json_get(b, "role")->string);
}

/* Two texts, an empty line between them. */
static bool join(wick_exchange *x, wk_str first, wk_str second, wk_str *out) {
    wk_strbuf made;
    wk_strbuf_init(&made, x->heap);
    wk_strbuf_append(&made, first.text, first.size);
    if (first.size > 0 && second.size > 0) wk_strbuf_text(&made, "\n\n");
    wk_strbuf_append(&made, second.text, second.size);
    return wk_write_keep(&made, &x->arena, out);
}

/* text before the message's content, or after it. */
static bool add_content(wick_exchange *x, wk_json *message, wk_str text, bool is_after) {
    wk_str *const content = &wk_json_find(message, "content")->string;
    return is_after ? join(x, *content, text, content) : join(x, text, *content, content);
}

static wk_json *add_item(wick_exchange *x, wk_json *list, wk_json item) {
    wk_json *const made = wk_arena_array(&x->arena, 1, sizeof *made);
    if (!made) return NULL;
    *made = item;
    wk_json_append(list, made);
    return made;
}

/* A message before all others. */
static bool add_first(wick_exchange *x, wk_json *messages, const char *role, wk_str text) {
    wk_json *const first = messages->child, *const last = messages->last;
    wk_json *const made = add_item(x, messages, (wk_json){.kind = WK_JSON_OBJECT});
    const wk_json members[] = {
        {.kind = WK_JSON_STRING, .key = wk_str_of("role"), .string = wk_str_of(role)},
        {.kind = WK_JSON_STRING, .key = wk_str_of("content"), .string = text}};
    if (!made || !add_item(x, made, members[0]) || !add_item(x, made, members[1])) return false;
    if (!last) return true;
    last->next = NULL;
    messages->last = last;
    messages->child = made;
    made->next = first;
    return true;
}

/* What is not an array becomes the only item of one. */
static bool make_list(wick_exchange *x, wk_json *value) {
    wk_json item = *value;
    if (value->kind == WK_JSON_ARRAY) return true;
    *value = (wk_json){.kind = WK_JSON_ARRAY, .key = item.key, .next = item.next};
    item.key = wk_str_of("");
    return item.kind == WK_JSON_NULL || add_item(x, value, item);
}

/* The items of a member follow those that the turn has. False: memory is short. */
static bool add_to_turn(wick_exchange *x, wk_json *turn, wk_json *message, const char *key) {
    wk_json *const had = wk_json_find(turn, key), *const more = wk_json_find(message, key);
    if (!more) return true;
    if (!had) {
        wk_json_drop(message, more);
        wk_json_append(turn, more);
        return true;
    }
    if (!make_list(x, had) || !make_list(x, more)) return false;
    if (!more->child) return true;
    *(had->last ? &had->last->next : &had->child) = more->child;
    had->last = more->last;
    had->count += more->count;
    return true;
}

wick_status wk_turns_join(wick_exchange *x, wick_error *err) {
    wk_json *const messages = wk_json_find(x->body, "messages");
    wk_json *turn = messages->child;
    bool is_made = true;
    messages->last = NULL;
    messages->child = NULL;
    messages->count = 0;
    for (wk_json *message = turn, *next; message; message = next) {
        next = message->next;
        if (message == turn || !has_role(turn, "assistant") || !has_role(message, "assistant")) {
            wk_json_append(messages, turn = message);
            continue;
        }
        is_made = is_made && add_to_turn(x, turn, message, "content") &&
                  add_to_turn(x, turn, message, "reasoning_content") &&
                  add_to_turn(x, turn, message, "tool_calls");
    }
    return is_made ? WICK_OK : wk_fail_memory(err, 0, "a request");
}

/* Calls that were made become the text that the model was asked for. */
static bool show_calls(wick_exchange *x, wk_json *message) {
    wk_json *const calls = wk_json_find(message, "tool_calls");
    wk_str text;
    wk_strbuf made;
    if (!calls || calls->kind != WK_JSON_ARRAY) return true;
    wk_strbuf_init(&made, x->heap);
    for (const wk_json *call = calls->child; call; call = call->next) {
        const wk_json *const function = wk_tool_function(call);
        if (made.size > 0) wk_strbuf_text(&made, "\n");
        wk_write_open(&made, '{');
        wk_write_key(&made, "name");
        wk_write_value(&made, wk_json_get(function, "name"));
        wk_write_key(&made, "arguments");
        wk_write_value(&made, wk_json_get(function, "arguments"));
        wk_write_close(&made, '}');
    }
    wk_json_drop(message, calls);
    return wk_write_keep(&made, &x->arena, &text) && add_content(x, message, text, true);
}

/* Whether message says more of what the one before it does: then it has become a part of that. */
static bool is_merged(wick_exchange *x, wk_json *before, wk_json *message, bool *is_made) {
    wk_json *const calls = wk_json_find(message, "tool_calls");
    wk_json *const had = before ? wk_json_find(before, "tool_calls") : NULL;
    const bool answers = before && has_role(before, "tool") && has_role(message, "user");
    if (!answers && (!before || has_role(message, "tool") || !has_same_role(before, message)))
        return false;
    *is_made = *is_made && add_content(x, before, wk_json_get(message, "content")->string, true);
    if (had && calls)
        for (wk_json *call = calls->child, *next; call; call = next) {
            next = call->next;
            *is_made = *is_made && add_item(x, had, *call);
        }
    else if (calls)
        *is_made = *is_made && add_item(x, before, *calls);
    return true;
}

/* A list of its own, and so are the members of each message, and its calls. */
static wk_json *copy(wick_exchange *x, const wk_json *list, int depth) {
    wk_json *const made = wk_arena_array(&x->arena, 1, sizeof *made);
    if (!made) return NULL;
    *made = *list;
    if (depth == 0 || (list->kind != WK_JSON_ARRAY && list->kind != WK_JSON_OBJECT)) return made;
    made->child = made->last = NULL;
    made->count = 0;
    for (const wk_json *item = list->child; item; item = item->next) {
        wk_json *const part = copy(x, item, depth - 1);
        if (!part) return NULL;
        wk_json_append(made, part);
    }
    return made;
}

wk_json *wk_messages_fit(wick_exchange *x, const wk_json *messages, unsigned fits) {
    wk_json *const all = copy(x, messages, 3), *made = copy(x, messages, 0);
    wk_str system = {.size = 0};
    bool is_made = all && made;
    if (!is_made) return NULL;
    made->child = made->last = NULL;
    made->count = 0;
    for (wk_json *message = all->child, *next; message && is_made; message = next) {
        next = message->next;
        if (fits & WK_FIT_NO_SYSTEM && has_role(message, "system")) {
            is_made = join(x, system, wk_json_get(message, "content")->string, &system);
            continue;
        }
        if (fits & WK_FIT_NO_CALLS) is_made = show_calls(x, message);
        if (fits & WK_FIT_NO_CALLS && has_role(message, "tool"))
            wk_json_find(message, "role")->string = wk_str_of("user");
        if (!is_merged(x, made->last, message, &is_made)) wk_json_append(made, message);
    }
    if (system.size == 0) return is_made ? made : NULL;
    wk_json *user = made->child;
    while (user && !has_role(user, "user")) user = user->next;
    is_made = is_made &&
              (user ? add_content(x, user, system, false) : add_first(x, made, "user", system));
    return is_made ? made : NULL;
}

wick_status wk_tools_in_words(wick_exchange *x, wick_error *err) {
    wk_str text;
    wk_strbuf made;
    wk_strbuf_init(&made, x->heap);
    wk_strbuf_text(&made, telling);
    for (const wk_json *tool = x->tools->child; tool; tool = tool->next) {
        wk_strbuf_text(&made, "\n");
        wk_write_value(&made, wk_tool_function(tool));
    }
    bool is_made = wk_write_keep(&made, &x->arena, &text);
    x->messages = copy(x, x->messages, 3);
    is_made = is_made && x->messages;
    wk_json *message = is_made ? x->messages->child : NULL;
    for (; message && is_made; message = message->next) is_made = show_calls(x, message);
    message = is_made ? x->messages->child : NULL;
    if (message && has_role(message, "system"))
        is_made = add_content(x, message, text, true);
    else
        is_made = is_made && add_first(x, x->messages, "system", text);
    return is_made ? WICK_OK : wk_fail_memory(err, 0, "a request");
}
