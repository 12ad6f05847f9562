/* api/tools.c: the tools of a request, and what it says of their calls. See api.h. */
#include "api/api.h"

#include <stdio.h>
#include <string.h>

static wick_status fail_memory(wick_error *err) { return wk_fail_memory(err, 0, "a request"); }

void wk_write_function_name(wk_strbuf *to, const wk_json *space, const wk_json *name) {
    const bool has_space = space && space->kind == WK_JSON_STRING;
    wk_strbuf both;
    if (!has_space || !name || name->kind != WK_JSON_STRING) {
        wk_write_put_value(to, "name", name);
        return;
    }
    wk_strbuf_init(&both, to->heap);
    wk_strbuf_append(&both, space->string.text, space->string.size);
    wk_strbuf_text(&both, WK_IN_SPACE);
    wk_strbuf_append(&both, name->string.text, name->string.size);
    wk_write_put_string(to, "name", (wk_str){both.data, both.size});
    to->failed |= both.failed;
    wk_strbuf_release(&both);
}

/* space: the name of the namespace that they are in; NULL: none. */
static void write_functions(wk_strbuf *to, const wk_json *tools, const wk_json *space,
                            const char *own, const char *schema) {
    for (const wk_json *tool = tools ? tools->child : NULL; tool; tool = tool->next) {
        const wk_json *const type = wk_json_get(tool, "type");
        if (!space && wk_json_is(type, "namespace")) {
            write_functions(to, wk_json_get(tool, "tools"), wk_json_get(tool, "name"), own, schema);
            continue;
        }
        /* Such as a search on the API's own server. */
        if (type && type->kind == WK_JSON_STRING && !wk_json_is(type, own)) continue;
        wk_write_raw(to, "{\"type\":\"function\",\"function\":{");
        wk_write_function_name(to, space, wk_json_get(tool, "name"));
        wk_write_put_value(to, "description", wk_json_get(tool, "description"));
        wk_write_put_value(to, "parameters", wk_json_get(tool, schema));
        wk_strbuf_text(to, "}}");
    }
}

void wk_write_functions(wk_strbuf *to, const wk_json *tools, const char *own, const char *schema) {
    if (!tools || tools->kind != WK_JSON_ARRAY) {
        wk_write_put_value(to, "tools", tools); /* which is refused */
        return;
    }
    wk_write_key(to, "tools");
    wk_write_open(to, '[');
    write_functions(to, tools, NULL, own, schema);
    wk_write_close(to, ']');
}

wick_status wk_request_tools(wick_exchange *x, wick_error *err) {
    const wk_json *const tools = wk_request_field(x, "tools");
    bool has_several = true;
    size_t i = 0;
    WK_TRY(wk_request_bool(x, "parallel_tool_calls", &has_several, err));
    x->has_one_call = !has_several;
    if (!tools) return WICK_OK;
    if (tools->kind != WK_JSON_ARRAY) return wk_fail(err, WICK_ERR_VALUE, "tools must be an array");
    for (const wk_json *tool = tools->child; tool; tool = tool->next, i++) {
        const wk_json *const type = wk_json_get(tool, "type");
        const wk_json *const name = wk_json_get(wk_tool_function(tool), "name");
        if (type && type->kind == WK_JSON_STRING && !wk_json_is(type, "function"))
            return wk_fail(err, WICK_ERR_UNSUPPORTED,
                           "tools[%zu] is of type %s: only functions can be called", i,
                           type->string.text);
        if (!name || name->kind != WK_JSON_STRING)
            return wk_fail(err, WICK_ERR_VALUE, "tools[%zu] must be a function with a name", i);
    }
    x->tools = tools->count > 0 ? tools : NULL;
    return WICK_OK;
}

/* ---- A call that must come ---- */

/* Keywords whose members have names of their own, and those whose values are not schemas. */
static bool is_one_of(wk_str key, const char *const *names) {
    while (*names && !wk_str_is(key, *names)) names++;
    return *names != NULL;
}
static const char *const maps[] = {"properties",  "patternProperties", "$defs",
                                   "definitions", "dependentSchemas",  NULL};
static const char *const values[] = {"const", "enum", "default", "examples", NULL};

/* A schema that stands inside another one, at place: its references begin there. */
static void write_moved(wick_exchange *x, wk_strbuf *to, const wk_json *schema, const char *place,
                        bool is_map) {
    const bool is_object = schema->kind == WK_JSON_OBJECT, has_words = is_object && !is_map;
    if (!is_object && schema->kind != WK_JSON_ARRAY) {
        wk_write_value(to, schema);
        return;
    }
    wk_write_open(to, is_object ? '{' : '[');
    for (const wk_json *item = schema->child; item; item = item->next) {
        const char *const text = item->kind == WK_JSON_STRING ? item->string.text : "";
        if (is_object) wk_write_key_of(to, item->key);
        if (has_words && wk_str_is(item->key, "$ref") &&
            (strcmp(text, "#") == 0 || strncmp(text, "#/", 2) == 0)) {
            wk_strbuf reference;
            wk_str made;
            wk_strbuf_init(&reference, x->heap);
            wk_strbuf_text(&reference, place);
            wk_strbuf_text(&reference, text + 1);
            to->failed |= !wk_write_keep(&reference, &x->arena, &made);
            wk_write_string(to, made);
        } else if (has_words && is_one_of(item->key, values)) {
            wk_write_value(to, item);
        } else {
            write_moved(x, to, item, place, has_words && is_one_of(item->key, maps));
        }
    }
    wk_write_close(to, is_object ? '}' : ']');
}

/* Arguments are an object, also where their schema does not say so; without a schema an empty one.
 */
static void write_arguments(wick_exchange *x, wk_strbuf *to, const wk_json *parameters, size_t i) {
    wk_json none = {.kind = WK_JSON_BOOL, .key = wk_str_of("additionalProperties")};
    wk_json all = parameters && parameters->kind == WK_JSON_OBJECT
                      ? *parameters
                      : (wk_json){.kind = WK_JSON_OBJECT, .child = &none};
    wk_json type = {.kind = WK_JSON_STRING,
                    .key = wk_str_of("type"),
                    .string = wk_str_of("object"),
                    .next = all.child};
    char place[64];
    snprintf(place, sizeof place, "#/anyOf/%zu/properties/arguments", i);
    if (!wk_json_get(&all, "type")) all.child = &type;
    write_moved(x, to, &all, place, false);
}

/* A call of one of the tools (of the one that is named), as JSON: the schema of the answer. */
static wick_status require_call(wick_exchange *x, const wk_json *only, wick_error *err) {
    wk_strbuf made;
    size_t i = 0;
    wk_strbuf_init(&made, x->heap);
    wk_write_raw(&made, "{\"anyOf\":[");
    for (const wk_json *tool = only ? only : x->tools->child; tool;
         tool = only ? NULL : tool->next, i++) {
        wk_write_raw(&made, "{\"type\":\"object\",\"properties\":{\"name\":{\"const\":");
        wk_write_value(&made, wk_json_get(wk_tool_function(tool), "name"));
        wk_strbuf_text(&made, "},\"arguments\":");
        write_arguments(x, &made, wk_tool_parameters(tool), i);
        wk_strbuf_text(&made, "},\"required\":[\"name\",\"arguments\"],"
                              "\"additionalProperties\":false}");
    }
    wk_strbuf_text(&made, "]}");
    wk_str text;
    if (!wk_write_keep(&made, &x->arena, &text)) return fail_memory(err);
    x->must_call = true;
    x->desc.sampler.json_schema = text.text;
    return WICK_OK;
}

/* The tool that an item names, as any API does. */
static wick_status find_tool(const wick_exchange *x, const wk_json *item, const wk_json **tool,
                             wick_error *err) {
    const wk_json *const name = wk_json_get(wk_tool_function(item), "name");
    if (!name || name->kind != WK_JSON_STRING)
        return wk_fail(err, WICK_ERR_VALUE,
                       "tool_choice must be auto, none, required, the name of a function or "
                       "allowed_tools");
    *tool = x->tools ? wk_tool_find(x->tools, name->string) : NULL;
    if (*tool) return WICK_OK;
    return wk_fail(err, WICK_ERR_VALUE, "tool_choice: there is no such tool");
}

/* Some of the tools: the others are not shown to the model. */
static wick_status allow_tools(wick_exchange *x, const wk_json *allowed, wick_error *err) {
    enum { MOST = 256 }; /* each is looked for in all tools */
    const wk_json *const items = wk_json_get(allowed, "tools");
    if (items && items->count > MOST)
        return wk_fail(err, WICK_ERR_VALUE, "tool_choice: at most %d allowed tools", MOST);
    wk_json *const kept = wk_arena_array(&x->arena, 1, sizeof *kept);
    if (!kept) return fail_memory(err);
    kept->kind = WK_JSON_ARRAY;
    for (const wk_json *item = items ? items->child : NULL; item; item = item->next) {
        const wk_json *tool;
        WK_TRY(find_tool(x, item, &tool, err));
        wk_json *const copy = wk_arena_array(&x->arena, 1, sizeof *copy);
        if (!copy) return fail_memory(err);
        *copy = *tool;
        wk_json_append(kept, copy);
    }
    if (kept->count == 0)
        return wk_fail(err, WICK_ERR_VALUE, "tool_choice: allowed_tools has no tools");
    x->tools = kept;
    return wk_json_is(wk_json_get(allowed, "mode"), "required") ? require_call(x, NULL, err)
                                                                : WICK_OK;
}

wick_status wk_request_tool_choice(wick_exchange *x, wick_error *err) {
    const wk_json *const choice = wk_request_field(x, "tool_choice");
    const wk_json *only = NULL;
    if (!choice || wk_json_is(choice, "auto")) return WICK_OK;
    if (wk_json_is(choice, "none")) {
        x->tools = NULL;
        return WICK_OK;
    }
    if (wk_json_is(wk_json_get(choice, "type"), "allowed_tools")) {
        const wk_json *const inner = wk_json_get(choice, "allowed_tools");
        return allow_tools(x, inner ? inner : choice, err);
    }
    if (!wk_json_is(choice, "required"))
        WK_TRY(find_tool(x, choice, &only, err));
    else if (!x->tools)
        return wk_fail(err, WICK_ERR_VALUE,
                       "tool_choice: a call is required, but there are no tools");
    return require_call(x, only, err);
}
