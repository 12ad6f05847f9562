/* chat/call.c: see call.h. */
#include "chat/call.h"

#include "core/json_write.h"

#include <string.h>

/* A text that is read from its beginning, and what is made of it. */
typedef struct reading {
    wk_arena *arena;
    const wk_json *tools;
    wk_str left;
    wk_tool_call **end; /* of the list */
} reading;

/* ---- Texts ---- */

static wk_str after(wk_str text, size_t n) { return (wk_str){text.text + n, text.size - n}; }

static bool is_blank(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }

static wk_str trim(wk_str text) {
    while (text.size > 0 && is_blank(text.text[0])) text = after(text, 1);
    while (text.size > 0 && is_blank(text.text[text.size - 1])) text.size--;
    return text;
}

/* Where word begins in text; its size: nowhere. */
static size_t find(wk_str text, const char *word) {
    const size_t n = strlen(word);
    for (size_t i = 0; i + n <= text.size; i++)
        if (memcmp(text.text + i, word, n) == 0) return i;
    return text.size;
}

/* Takes word off the beginning, if it is there. */
static bool take(wk_str *text, const char *word) {
    const size_t n = strlen(word);
    if (text->size < n || memcmp(text->text, word, n) != 0) return false;
    *text = after(*text, n);
    return true;
}

/* Takes all up to word, and word. False: it does not come. */
static bool take_until(wk_str *text, const char *word, wk_str *before) {
    const size_t at = find(*text, word);
    if (at == text->size) return false;
    *before = (wk_str){text->text, at};
    *text = after(*text, at + strlen(word));
    return true;
}

/* ---- What is made ---- */

static bool add_call(reading *r, wk_str name, wk_str arguments) {
    name = trim(name);
    wk_tool_call *const call = wk_arena_array(r->arena, 1, sizeof *call);
    if (!call || name.size == 0) return false;
    *call = (wk_tool_call){.name = name, .arguments = arguments};
    *r->end = call;
    r->end = &call->next;
    return true;
}

static wk_json *parse(reading *r, wk_str text) {
    wk_json *value = NULL;
    wick_error ignored = {.status = WICK_OK};
    return wk_json_parse(r->arena, text.text, text.size, &value, &ignored) == WICK_OK ? value
                                                                                      : NULL;
}

/* ---- JSON ---- */

/* An object, or a text that holds one; null, "" and nothing: there are none. */
static bool add_arguments(reading *r, wk_str name, const wk_json *arguments) {
    if (arguments && arguments->kind == WK_JSON_STRING && arguments->string.size > 0) {
        arguments = parse(r, arguments->string);
        if (!arguments) return false;
    }
    const bool is_empty = !arguments || arguments->kind == WK_JSON_NULL ||
                          (arguments->kind == WK_JSON_STRING && arguments->string.size == 0);
    if (!is_empty && arguments->kind != WK_JSON_OBJECT) return false;
    if (is_empty) return add_call(r, name, wk_str_of("{}"));
    wk_strbuf text;
    wk_str kept;
    wk_strbuf_init(&text, r->arena->heap);
    wk_write_value(&text, arguments);
    return wk_write_keep(&text, r->arena, &kept) && add_call(r, name, kept);
}

/* {"name": ..., "arguments" or "parameters": {...}}, also as the member "function". */
static bool read_object(reading *r, const wk_json *object) {
    if (object->kind != WK_JSON_OBJECT) return false;
    const wk_json *const function = wk_json_get(object, "function");
    if (function && function->kind == WK_JSON_OBJECT) object = function;
    const wk_json *const name = wk_json_get(object, "name");
    const wk_json *arguments = wk_json_get(object, "arguments");
    if (!arguments) arguments = wk_json_get(object, "parameters");
    return name && name->kind == WK_JSON_STRING && add_arguments(r, name->string, arguments);
}

static bool read_value(reading *r, const wk_json *value) {
    if (value->kind != WK_JSON_ARRAY) return read_object(r, value);
    const wk_json *item = value->child;
    while (item && read_object(r, item)) item = item->next;
    return !item && value->child;
}

/* The end of the JSON value that text begins with, by its brackets; its size: it has none. */
static size_t value_end(wk_str text) {
    size_t depth = 0;
    bool in_string = false;
    for (size_t i = 0; i < text.size; i++) {
        const char c = text.text[i];
        if (in_string) {
            if (c == '\\') i++;
            in_string = c != '"';
        } else if (c == '"') {
            in_string = true;
        } else if (c == '{' || c == '[') {
            depth++;
        } else if ((c == '}' || c == ']') && (depth == 0 || --depth == 0)) {
            return i + 1;
        }
    }
    return text.size;
}

/* One value, or several one after the other, with ; or , between them or nothing. */
static bool read_json(reading *r) {
    r->left = trim(r->left);
    do {
        const size_t n = value_end(r->left);
        const wk_json *const value = parse(r, (wk_str){r->left.text, n});
        if (!value || !read_value(r, value)) return false;
        r->left = trim(after(r->left, n));
        if (take(&r->left, ";") || take(&r->left, ",")) r->left = trim(r->left);
    } while (r->left.size > 0);
    return true;
}

/* The arguments of a call whose name is known, as JSON; what follows is left. */
static bool read_named(reading *r, wk_str name) {
    r->left = trim(r->left);
    const size_t n = value_end(r->left);
    const wk_str text = {r->left.text, n};
    const wk_json *const value = trim(text).size > 0 ? parse(r, text) : NULL;
    if (trim(text).size > 0 && !value) return false;
    r->left = after(r->left, n);
    return add_arguments(r, name, value);
}

/* The same where json is cut out of the text. */
static bool read_body(reading *r, wk_str name, wk_str json) {
    const wk_str rest = r->left;
    r->left = json;
    const bool is_good = read_named(r, name);
    r->left = rest;
    return is_good;
}

/* ---- Parameters in tags ---- */

const wk_json *wk_tool_function(const wk_json *tool) {
    const wk_json *const function = wk_json_get(tool, "function");
    return function && function->kind == WK_JSON_OBJECT ? function : tool;
}

const wk_json *wk_tool_find(const wk_json *tools, wk_str name) {
    for (const wk_json *tool = tools ? tools->child : NULL; tool; tool = tool->next) {
        const wk_json *const own = wk_json_get(wk_tool_function(tool), "name");
        if (own && own->kind == WK_JSON_STRING && wk_str_equal(own->string, name)) return tool;
    }
    return NULL;
}

const wk_json *wk_tool_parameters(const wk_json *tool) {
    const wk_json *const function = wk_tool_function(tool);
    const wk_json *schema = wk_json_get(function, "parameters");
    if (!schema) schema = wk_json_get(function, "input_schema");
    return schema && schema->kind != WK_JSON_NULL ? schema : NULL;
}

/* Whether the tool wants a text as this parameter. */
static bool is_text(const reading *r, wk_str name, wk_str key) {
    const wk_json *const schema = wk_tool_parameters(wk_tool_find(r->tools, name));
    const wk_json *const properties = wk_json_get(schema, "properties");
    for (const wk_json *item = properties ? properties->child : NULL; item; item = item->next) {
        const wk_json *const type = wk_json_get(item, "type");
        if (wk_str_equal(item->key, key))
            return type && type->kind == WK_JSON_STRING && wk_str_is(type->string, "string");
    }
    return false;
}

/* A value that stands there as it is: JSON, unless the tool wants a text. */
static void write_raw(reading *r, wk_strbuf *to, wk_str name, wk_str key, wk_str value) {
    const wk_json *const json = is_text(r, name, key) ? NULL : parse(r, value);
    wk_write_key_of(to, key);
    if (json)
        wk_write_value(to, json);
    else
        wk_write_string(to, value);
}

/* A line's end on either side belongs to the tags. */
static wk_str without_lines(wk_str value) {
    if (value.size > 0 && value.text[0] == '\n') value = after(value, 1);
    if (value.size > 0 && value.text[value.size - 1] == '\n') value.size--;
    return value;
}

/* Pairs up to the end of text, written as the members of an object. */
typedef bool (*pair_fn)(wk_str *text, wk_str *key, wk_str *value);

static bool read_pairs(reading *r, wk_str name, wk_str text, pair_fn take_pair) {
    wk_strbuf made;
    wk_str kept, key, value;
    wk_strbuf_init(&made, r->arena->heap);
    wk_write_open(&made, '{');
    for (text = trim(text); text.size > 0; text = trim(text)) {
        if (!take_pair(&text, &key, &value)) {
            wk_strbuf_release(&made);
            return false;
        }
        write_raw(r, &made, name, key, value);
    }
    wk_write_close(&made, '}');
    return wk_write_keep(&made, r->arena, &kept) && add_call(r, name, kept);
}

/* <parameter=KEY>VALUE</parameter> */
static bool take_parameter(wk_str *text, wk_str *key, wk_str *value) {
    if (!take(text, "<parameter=") || !take_until(text, ">", key) ||
        !take_until(text, "</parameter>", value))
        return false;
    *value = without_lines(*value);
    return true;
}

/* <arg_key>KEY</arg_key><arg_value>VALUE</arg_value> */
static bool take_argument(wk_str *text, wk_str *key, wk_str *value) {
    if (!take(text, "<arg_key>") || !take_until(text, "</arg_key>", key)) return false;
    *text = trim(*text);
    return take(text, "<arg_value>") && take_until(text, "</arg_value>", value);
}

/* <function=NAME>...</function>, the parameters in tags or as JSON; several. */
static bool read_functions(reading *r) {
    for (r->left = trim(r->left); r->left.size > 0; r->left = trim(r->left)) {
        wk_str name, text;
        if (!take(&r->left, "<function=") || !take_until(&r->left, ">", &name)) return false;
        if (!take_until(&r->left, "</function>", &text)) {
            text = r->left;
            r->left = after(r->left, r->left.size);
        }
        text = trim(text);
        const bool is_json = text.size > 0 && text.text[0] == '{';
        if (is_json ? !read_body(r, name, text) : !read_pairs(r, name, text, take_parameter))
            return false;
    }
    return true;
}

/* <tool_call> of Hermes and Qwen: JSON; of Qwen's coders: functions; of GLM: a name and pairs. */
static bool read_hermes(reading *r) {
    const wk_str text = trim(r->left);
    if (text.size > 0 && text.text[0] == '{') return read_json(r);
    if (text.size > 0 && text.text[0] == '<') return read_functions(r);
    const size_t n = find(text, "<arg_key>");
    const wk_str name = trim((wk_str){text.text, n});
    return find(name, "\n") == name.size && read_pairs(r, name, after(text, n), take_argument);
}

/* ---- A name, then JSON ---- */

/* NAME[ARGS]{...} or NAME{...}, one after the other; before that version a list. */
static bool read_mistral(reading *r) {
    r->left = trim(r->left);
    if (r->left.size > 0 && r->left.text[0] == '[') return read_json(r);
    do {
        size_t n = find(r->left, "{");
        wk_str name = {r->left.text, n};
        const size_t end = find(name, "[");
        name.size = end < n ? end : n;
        r->left = after(r->left, n);
        if (!read_named(r, name)) return false;
        r->left = trim(r->left);
        if (take(&r->left, "[TOOL_CALLS]")) r->left = trim(r->left);
    } while (r->left.size > 0);
    return true;
}

/* NAME>{...} */
static bool read_function(reading *r) {
    wk_str name;
    return take_until(&r->left, ">", &name) && read_named(r, name);
}

#define BAR "\xEF\xBD\x9C"   /* a full-width | */
#define BLANK "\xE2\x96\x81" /* a lower one-eighth block */
#define DEEPSEEK(words) "<" BAR words BAR ">"

/* function<sep>NAME and JSON in a fence, or NAME<sep>JSON. */
static bool read_deepseek(reading *r) {
    wk_str ignored, name, body;
    while (take_until(&r->left, DEEPSEEK("tool" BLANK "call" BLANK "begin"), &ignored)) {
        if (!take_until(&r->left, DEEPSEEK("tool" BLANK "sep"), &name)) return false;
        if (!take_until(&r->left, DEEPSEEK("tool" BLANK "call" BLANK "end"), &body)) return false;
        wk_str fenced = body, json = body, before;
        if (wk_str_is(trim(name), "function") && take_until(&fenced, "```json", &before) &&
            take_until(&fenced, "```", &json))
            name = before;
        if (!read_body(r, name, json)) return false;
    }
    return true;
}

/* functions.NAME:0, then JSON. */
static bool read_kimi(reading *r) {
    wk_str ignored, name, json;
    while (take_until(&r->left, "<|tool_call_begin|>", &ignored)) {
        if (!take_until(&r->left, "<|tool_call_argument_begin|>", &name)) return false;
        if (!take_until(&r->left, "<|tool_call_end|>", &json)) return false;
        name = trim(name);
        (void)take(&name, "functions.");
        name.size = find(name, ":");
        if (!read_body(r, name, json)) return false;
    }
    return true;
}

/* functions.NAME <|constrain|>json<|message|>{...} */
static bool read_channel(reading *r) {
    wk_str head;
    if (!take_until(&r->left, "<|message|>", &head)) return false;
    (void)take(&head, "functions.");
    size_t n = 0;
    while (n < head.size && head.text[n] != ' ' && head.text[n] != '<') n++;
    head.size = n;
    return read_named(r, head);
}

/* ---- Calls as Python writes them ---- */

static bool write_literal(wk_strbuf *to, wk_str *text, int depth);

/* 'a' or "a", with backslashes as JSON has them, and \'. */
static bool write_quoted(wk_strbuf *to, wk_str *text) {
    const char quote = text->text[0];
    wk_write_raw(to, "\"");
    for (*text = after(*text, 1); text->size > 0; *text = after(*text, 1)) {
        char c = text->text[0];
        if (c == quote) {
            *text = after(*text, 1);
            wk_strbuf_text(to, "\"");
            return true;
        }
        const bool is_escape = c == '\\' && text->size > 1;
        if (is_escape) *text = after(*text, 1);
        if (is_escape && text->text[0] != '\'') wk_strbuf_text(to, "\\");
        c = text->text[0];
        if (!is_escape && c == '"') wk_strbuf_text(to, "\\");
        if (c == '\n')
            wk_strbuf_text(to, "\\n");
        else
            wk_strbuf_append(to, &c, 1);
    }
    return false;
}

/* Items between brackets; of a dict with keys. */
static bool write_items(wk_strbuf *to, wk_str *text, int depth) {
    const bool is_dict = text->text[0] == '{';
    const char *const close = is_dict ? "}" : text->text[0] == '[' ? "]" : ")";
    wk_write_open(to, is_dict ? '{' : '[');
    *text = trim(after(*text, 1));
    while (!take(text, close)) {
        if (!write_literal(to, text, depth + 1)) return false;
        if (is_dict && !take(text, ":")) return false;
        if (is_dict) {
            wk_strbuf_text(to, ":");
            if (!write_literal(to, text, depth + 1)) return false;
        }
        if (take(text, ",")) *text = trim(*text);
    }
    *text = trim(*text);
    wk_write_close(to, is_dict ? '}' : ']');
    return true;
}

static bool write_literal(wk_strbuf *to, wk_str *text, int depth) {
    enum { DEEPEST = 64 };
    *text = trim(*text);
    if (text->size == 0 || depth > DEEPEST) return false;
    const char c = text->text[0];
    bool is_good = true;
    if (c == '\'' || c == '"') {
        is_good = write_quoted(to, text);
    } else if (c == '[' || c == '{' || c == '(') {
        is_good = write_items(to, text, depth);
    } else if (take(text, "True") || take(text, "true")) {
        wk_write_bool(to, true);
    } else if (take(text, "False") || take(text, "false")) {
        wk_write_bool(to, false);
    } else if (take(text, "None") || take(text, "null")) {
        wk_write_null(to);
    } else {
        size_t n = 0;
        static const char digits[] = "+-.0123456789eE";
        while (n < text->size && memchr(digits, text->text[n], sizeof digits - 1)) n++;
        is_good = n > 0;
        wk_write_raw(to, "");
        wk_strbuf_append(to, text->text, n);
        *text = after(*text, n);
    }
    *text = trim(*text);
    return is_good;
}

/* key=value, ... up to the closing bracket. */
static bool write_keywords(wk_strbuf *to, wk_str *text) {
    wk_str key;
    wk_write_open(to, '{');
    *text = trim(*text);
    while (!take(text, ")")) {
        if (!take_until(text, "=", &key)) return false;
        wk_write_key_of(to, trim(key));
        if (!write_literal(to, text, 0)) return false;
        if (take(text, ",")) *text = trim(*text);
    }
    wk_write_close(to, '}');
    return true;
}

/* [NAME(key=value, ...), ...]; the brackets may be missing. */
static bool read_list(reading *r) {
    wk_str name, kept;
    r->left = trim(r->left);
    const bool has_bracket = take(&r->left, "[");
    do {
        wk_strbuf made;
        wk_strbuf_init(&made, r->arena->heap);
        const bool is_good = take_until(&r->left, "(", &name) && write_keywords(&made, &r->left) &&
                             !made.failed && parse(r, (wk_str){made.data, made.size});
        if (!is_good) wk_strbuf_release(&made);
        if (!is_good || !wk_write_keep(&made, r->arena, &kept) || !add_call(r, name, kept))
            return false;
        r->left = trim(r->left);
        if (take(&r->left, ",")) r->left = trim(r->left);
    } while (r->left.size > 0 && r->left.text[0] != ']');
    return !has_bracket || take(&r->left, "]");
}

/* JSON; or a built-in tool as Python calls it: NAME.call(key=value). */
static bool read_python_tag(reading *r) {
    r->left = trim(r->left);
    if (r->left.size > 0 && r->left.text[0] == '{') return read_json(r);
    wk_tool_call **const first = r->end;
    if (!read_list(r)) return false;
    for (wk_tool_call *call = *first; call; call = call->next) {
        const size_t n = find(call->name, ".call");
        if (n + strlen(".call") == call->name.size) call->name.size = n;
    }
    return true;
}

bool wk_tool_calls_read(wk_arena *arena, wick_call_format format, wk_str text, const wk_json *tools,
                        wk_tool_call **calls) {
    static bool (*const readers[])(reading *) = {
        [WICK_CALL_JSON] = read_json,
        [WICK_CALL_HERMES] = read_hermes,
        [WICK_CALL_SEED] = read_hermes,
        [WICK_CALL_PIPES] = read_json,
        [WICK_CALL_PYTHON_TAG] = read_python_tag,
        [WICK_CALL_MISTRAL] = read_mistral,
        [WICK_CALL_FUNCTION] = read_function,
        [WICK_CALL_LIST] = read_list,
        [WICK_CALL_DEEPSEEK] = read_deepseek,
        [WICK_CALL_KIMI] = read_kimi,
        [WICK_CALL_CHANNEL] = read_channel,
    };
    *calls = NULL;
    reading r = {.arena = arena, .tools = tools, .left = text, .end = calls};
    return format != WICK_CALL_NONE && readers[format](&r) && *calls;
}
