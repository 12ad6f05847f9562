/* api/generic_tools.c: tools for templates that have no place for them: words
 * describe them to the model, which answers with JSON. See api.h. */
#include "api/api.h"

#include <string.h>

static const char telling[] =
    "You can call functions. To call one, answer with nothing but JSON of this form: "
    "{\"name\": the function, \"arguments\": an object of its parameters}. Otherwise answer the "
    "user in words. The functions, with JSON schemas of their parameters:";

static bool has_role(const wk_json *message, const char *role) {
    return wk_json_is(wk_json_get(message, "role"), role);
}

/* text before the message's content, or after it. */
static bool add_content(wick_exchange *x, wk_json *message, wk_str text, bool is_after) {
    wk_json *const content = wk_json_find(message, "content");
    wk_strbuf made;
    wk_strbuf_init(&made, x->heap);
    const wk_str first = is_after ? content->string : text;
    const wk_str second = is_after ? text : content->string;
    wk_strbuf_append(&made, first.text, first.size);
    wk_strbuf_text(&made, "\n\n");
    wk_strbuf_append(&made, second.text, second.size);
    return wk_write_keep(&made, &x->arena, &content->string);
}

static wk_json *add_text(wick_exchange *x, wk_json *object, const char *key, wk_str text) {
    wk_json *const made = wk_arena_array(&x->arena, 1, sizeof *made);
    if (!made) return NULL;
    *made = (wk_json){.kind = WK_JSON_STRING, .key = wk_str_of(key), .string = text};
    wk_json_append(object, made);
    return made;
}

/* A system message before all others. */
static bool add_system(wick_exchange *x, wk_json *messages, wk_str text) {
    wk_json *const made = wk_arena_array(&x->arena, 1, sizeof *made);
    if (!made) return false;
    made->kind = WK_JSON_OBJECT;
    if (!add_text(x, made, "role", wk_str_of("system")) || !add_text(x, made, "content", text))
        return false;
    made->next = messages->child;
    messages->child = made;
    messages->count++;
    return true;
}

/* Calls that were made become the text that the model was asked for. */
static bool show_calls(wick_exchange *x, wk_json *message) {
    wk_json *const content = wk_json_find(message, "content");
    const wk_json *const calls = wk_json_get(message, "tool_calls");
    if (!calls || calls->kind != WK_JSON_ARRAY || content->string.size > 0) return true;
    wk_strbuf made;
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
    return made.size == 0 || wk_write_keep(&made, &x->arena, &content->string);
}

wick_status wk_tools_in_words(wick_exchange *x, bool has_system, wick_error *err) {
    wk_json *const messages = x->messages;
    wk_str text;
    wk_strbuf made;
    wk_strbuf_init(&made, x->heap);
    wk_strbuf_text(&made, telling);
    for (const wk_json *tool = x->tools->child; tool; tool = tool->next) {
        wk_strbuf_text(&made, "\n");
        wk_write_value(&made, wk_tool_function(tool));
    }
    bool is_made = wk_write_keep(&made, &x->arena, &text);
    wk_json *message = messages->child;
    if (!has_system)
        while (message && !has_role(message, "user")) message = message->next;
    if (!message || (has_system && !has_role(message, "system")))
        is_made = is_made && add_system(x, messages, text);
    else
        is_made = is_made && add_content(x, message, text, has_system);
    for (message = messages->child; message && is_made; message = message->next)
        is_made = show_calls(x, message);
    return is_made ? WICK_OK : wk_fail_memory(err, 0, 0, "a request");
}
