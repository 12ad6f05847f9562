/* chat/call.c: see call.h. */
#include "chat/call.h"

#include "chat/literal.h"
#include "chat/scan.h"
#include "core/compiler.h"
#include "core/json_write.h"

#include <string.h>

/* A text that is read from its beginning, and what is made of it. */
typedef struct reading {
    wk_arena *arena;
    const wk_json *tools;
    bool is_keyed; /* the name is the key of the arguments */
    bool is_bare;  /* no tag says that it is a call */
    wk_str left;
    wk_tool_call **end; /* of the list */
} reading;

/* ---- What is made ---- */

static bool add_call(reading *r, wk_str name, wk_str arguments) {
    name = wk_scan_trim(name);
    wk_tool_call *const call = wk_arena_array(r->arena, 1, sizeof *call);
    if (!call || name.size == 0) return false;
    *call = (wk_tool_call){.name = name, .arguments = arguments};
    *r->end = call;
    r->end = &call->next;
    return true;
}

/* Without a byte order mark, which may stand at the beginning of a file alone. */
static wk_json *parse(reading *r, wk_str text) {
    wk_json *value = NULL;
    if (text.size > 0 && text.text[0] == '\xEF') return NULL;
    wick_error ignored = {.status = WICK_OK};
    return wk_json_parse(r->arena, text.text, text.size, &value, &ignored) == WICK_OK ? value
                                                                                      : NULL;
}

/* What write makes of the beginning of text; also as *json. */
typedef bool (*write_fn)(wk_strbuf *to, wk_str *text);

static wk_json *parse_written(reading *r, wk_str *text, write_fn write, wk_str *json) {
    wk_strbuf made;
    wk_strbuf_init(&made, r->arena->heap);
    if (write(&made, text)) return wk_write_keep(&made, r->arena, json) ? parse(r, *json) : NULL;
    wk_strbuf_release(&made);
    return NULL;
}

/* ---- JSON ---- */

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

/* Takes the bytes of the value that good JSON begins with, and the blanks around it. */
static wk_str take_value(wk_str *text) {
    *text = wk_scan_trim(*text);
    size_t n = 0;
    if (text->size > 0 && (text->text[0] == '{' || text->text[0] == '[')) {
        n = value_end(*text);
    } else if (text->size > 0 && text->text[0] == '"') {
        do n += text->text[n] == '\\' ? 2 : 1;
        while (n < text->size && text->text[n] != '"');
        n++;
    } else {
        while (n < text->size && !wk_scan_is_blank(text->text[n]) && !strchr(",:]}", text->text[n]))
            n++;
    }
    const wk_str value = {text->text, n};
    *text = wk_scan_trim(wk_scan_after(*text, n));
    return value;
}

/* The next member of an object of which left is left. False: there is no more. */
static bool take_member(wk_str *left, wk_str *key, wk_str *value) {
    (void)wk_scan_take(left, ",");
    *key = take_value(left);
    if (!wk_scan_take(left, ":")) return false;
    *value = take_value(left);
    return true;
}

/* The last member of this name; empty: there is none. */
static wk_str member_of(wk_str object, const char *name) {
    wk_str found = {"", 0}, key, value;
    for (object = wk_scan_after(object, 1); take_member(&object, &key, &value);)
        if (wk_scan_take(&key, "\"") && wk_scan_take(&key, name) && wk_str_is(key, "\""))
            found = value;
    return found;
}

/* Good JSON as its bytes say it, so that numbers stay what they are, without blanks, and with
 * null for what is no number but in Python. */
static void write_json(wk_strbuf *to, wk_str json) {
    bool in_string = false;
    wk_write_raw(to, "");
    while (json.size > 0) {
        const char c = json.text[0];
        const size_t n = in_string && c == '\\' ? 2 : 1;
        if (c == '"') in_string = !in_string;
        if (!in_string && (wk_scan_take(&json, "NaN") || wk_scan_take(&json, "Infinity") ||
                           wk_scan_take(&json, "-Infinity"))) {
            wk_strbuf_text(to, "null");
            continue;
        }
        if (in_string || !wk_scan_is_blank(c)) wk_strbuf_append(to, json.text, n);
        json = wk_scan_after(json, n);
    }
}

/* An object, or a text that holds one; null, "" and nothing: there are none. */
static bool add_arguments(reading *r, wk_str name, wk_str json) {
    const wk_json *value = json.size > 0 ? parse(r, json) : NULL;
    if (value && value->kind == WK_JSON_STRING) {
        json = value->string;
        value = json.size > 0 ? parse(r, json) : NULL;
    }
    if (json.size > 0 && !value) return false;
    if (!value || value->kind == WK_JSON_NULL) return add_call(r, name, wk_str_of("{}"));
    if (value->kind != WK_JSON_OBJECT) return false;
    wk_strbuf text;
    wk_str kept;
    wk_strbuf_init(&text, r->arena->heap);
    write_json(&text, json);
    return wk_write_keep(&text, r->arena, &kept) && add_call(r, name, kept);
}

/* {"NAME": {...}, ...} */
static bool read_keyed(reading *r, wk_str object) {
    wk_str key, arguments;
    for (object = wk_scan_after(object, 1); take_member(&object, &key, &arguments);) {
        const wk_json *const name = parse(r, key);
        if (!name || !add_arguments(r, name->string, arguments)) return false;
    }
    return true;
}

/* {"name" or "tool_name": ..., "arguments" or "parameters": {...}}, also as the member
 * "function". */
static bool read_object(reading *r, wk_str text) {
    const wk_json *const object = parse(r, text);
    if (!object || object->kind != WK_JSON_OBJECT) return false;
    if (r->is_keyed) return read_keyed(r, text);
    const wk_str function = member_of(text, "function");
    if (function.size > 0 && function.text[0] == '{') return read_object(r, function);
    const wk_json *name = wk_json_get(object, "name");
    if (!name) name = wk_json_get(object, "tool_name");
    wk_str arguments = member_of(text, "arguments");
    if (arguments.size == 0) arguments = member_of(text, "parameters");
    if (!name || name->kind != WK_JSON_STRING) return false;
    if (r->is_bare && ((r->tools && !wk_tool_find(r->tools, name->string)) ||
                       (arguments.size == 0 && object->count > 1)))
        return false; /* it may be the data that the user asked for */
    return add_arguments(r, name->string, arguments);
}

static bool read_value(reading *r, wk_str text) {
    if (text.size == 0 || text.text[0] != '[') return read_object(r, text);
    if (!parse(r, text)) return false;
    for (text = wk_scan_trim(wk_scan_after(text, 1)); text.size > 0 && text.text[0] != ']';
         text = wk_scan_trim(text)) {
        if (!read_object(r, take_value(&text))) return false;
        (void)wk_scan_take(&text, ",");
    }
    return true;
}

/* One value, or several one after the other, with ; or , between them or nothing. */
static bool read_json(reading *r) {
    r->left = wk_scan_trim(r->left);
    do {
        const size_t n = value_end(r->left);
        if (!read_value(r, (wk_str){r->left.text, n})) return false;
        r->left = wk_scan_trim(wk_scan_after(r->left, n));
        if (wk_scan_take(&r->left, ";") || wk_scan_take(&r->left, ","))
            r->left = wk_scan_trim(r->left);
    } while (r->left.size > 0);
    return true;
}

static bool read_keyed_list(reading *r) {
    r->is_keyed = true;
    return read_json(r);
}

/* A list whose opening bracket belongs to the tag. */
static bool read_functools(reading *r) {
    r->left = wk_scan_trim(r->left);
    if (r->left.size > 0 && r->left.text[r->left.size - 1] == ']') r->left.size--;
    return read_json(r);
}

/* The arguments of a call whose name is known, as JSON; what follows is left. */
static bool read_named(reading *r, wk_str name) {
    r->left = wk_scan_trim(r->left);
    const wk_str json = {r->left.text, value_end(r->left)};
    r->left = wk_scan_after(r->left, json.size);
    return add_arguments(r, name, wk_scan_trim(json));
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

/* Kinds of JSON values, each a bit. ANY: it is not known which. */
enum { ANY = (2 << WK_JSON_OBJECT) - 1, TEXT = 1 << WK_JSON_STRING };

static unsigned kinds_of_type(const wk_json *type) {
    static const char *const names[] = {
        [WK_JSON_NULL] = "null",     [WK_JSON_BOOL] = "boolean", [WK_JSON_NUMBER] = "number",
        [WK_JSON_STRING] = "string", [WK_JSON_ARRAY] = "array",  [WK_JSON_OBJECT] = "object"};
    if (wk_json_is(type, "integer")) return 1U << WK_JSON_NUMBER;
    for (unsigned i = 0; i < WK_COUNT(names); i++)
        if (wk_json_is(type, names[i])) return 1U << i;
    return ANY;
}

/* What the first of these keywords says that a schema has. */
static unsigned kinds_of(const wk_json *schema) {
    enum { TYPE, CONST, ENUM, N_KEYWORDS = 5 };
    static const char *const keywords[N_KEYWORDS] = {"type", "const", "enum", "anyOf", "oneOf"};
    int i = 0;
    while (i < N_KEYWORDS && !wk_json_get(schema, keywords[i])) i++;
    if (i == N_KEYWORDS) return ANY;
    const wk_json *const said = wk_json_get(schema, keywords[i]);
    if (i == CONST) return 1U << said->kind;
    if (i == TYPE && said->kind == WK_JSON_STRING) return kinds_of_type(said);
    unsigned kinds = 0;
    for (const wk_json *item = said->child; item; item = item->next)
        kinds |= i == TYPE ? kinds_of_type(item) : i == ENUM ? 1U << item->kind : kinds_of(item);
    return kinds;
}

/* The schema of a parameter of the tool; NULL: it has none. */
static const wk_json *find_parameter(const reading *r, wk_str name, wk_str key) {
    const wk_json *const schema = wk_tool_parameters(wk_tool_find(r->tools, name));
    const wk_json *const properties = wk_json_get(schema, "properties");
    const wk_json *item = properties ? properties->child : NULL;
    while (item && !wk_str_equal(item->key, key)) item = item->next;
    return item;
}

/* A parameter as it stands there. */
typedef struct pair {
    wk_str key, value;
    bool is_text; /* it says so */
} pair;

/* JSON, or a literal of Python, as some templates write other values than texts; else a text. Where
 * the schema allows texts, 12 is a number only if it allows numbers, too; where it says nothing,
 * None is a text. */
static void write_pair(reading *r, wk_strbuf *to, wk_str name, const pair *p) {
    const unsigned kinds = p->is_text ? TEXT : kinds_of(find_parameter(r, name, p->key));
    const unsigned taken = kinds == ANY || !(kinds & TEXT) ? ANY : kinds & ~(unsigned)TEXT;
    wk_str json = p->value, text = json;
    const wk_json *value = taken ? parse(r, json) : NULL;
    if (!value && taken && kinds != ANY) {
        value = parse_written(r, &text, wk_literal_write, &json);
        if (text.size > 0) value = NULL;
    }
    wk_write_key_of(to, p->key);
    if (value && (taken >> value->kind & 1))
        write_json(to, json);
    else
        wk_write_string(to, p->value);
}

/* Pairs up to the end of text, written as the members of an object. */
typedef bool (*pair_fn)(wk_str *text, pair *p);

static bool read_pairs(reading *r, wk_str name, wk_str text, pair_fn take_pair) {
    wk_strbuf made;
    wk_str kept;
    wk_strbuf_init(&made, r->arena->heap);
    wk_write_open(&made, '{');
    for (text = wk_scan_trim(text); text.size > 0; text = wk_scan_trim(text)) {
        pair p = {.is_text = false};
        if (!take_pair(&text, &p)) {
            wk_strbuf_release(&made);
            return false;
        }
        write_pair(r, &made, name, &p);
    }
    wk_write_close(&made, '}');
    return wk_write_keep(&made, r->arena, &kept) && add_call(r, name, kept);
}

/* <parameter=KEY>VALUE</parameter> */
static bool take_parameter(wk_str *text, pair *p) {
    return wk_scan_take(text, "<parameter=") && wk_scan_take_until(text, ">", &p->key) &&
           wk_scan_take_until(text, "</parameter>", &p->value);
}

/* The same of Qwen: a line's end on either side of the value belongs to the tags. */
static bool take_parameter_lines(wk_str *text, pair *p) {
    if (!take_parameter(text, p)) return false;
    (void)wk_scan_take(&p->value, "\n");
    if (p->value.size > 0 && p->value.text[p->value.size - 1] == '\n') p->value.size--;
    return true;
}

/* <arg_key>KEY</arg_key><arg_value>VALUE</arg_value> */
static bool take_argument(wk_str *text, pair *p) {
    if (!wk_scan_take(text, "<arg_key>") || !wk_scan_take_until(text, "</arg_key>", &p->key))
        return false;
    *text = wk_scan_trim(*text);
    return wk_scan_take(text, "<arg_value>") && wk_scan_take_until(text, "</arg_value>", &p->value);
}

#define BAR "\xEF\xBD\x9C"  /* a full-width | */
#define DSML BAR "DSML" BAR /* before the names of DeepSeek V3.2's tags */

/* <parameter name="KEY">VALUE</parameter>; DeepSeek's has string="true" for texts. */
static bool take_named_parameter(wk_str *text, pair *p) {
    wk_str attributes;
    if (!wk_scan_take(text, "<" DSML "parameter name=\"") &&
        !wk_scan_take(text, "<parameter name=\""))
        return false;
    if (!wk_scan_take_until(text, "\"", &p->key) || !wk_scan_take_until(text, ">", &attributes))
        return false;
    p->is_text = wk_str_is(wk_scan_trim(attributes), "string=\"true\"");
    return wk_scan_take_until(text, "</" DSML "parameter>", &p->value) ||
           wk_scan_take_until(text, "</parameter>", &p->value);
}

/* <invoke name="NAME">...</invoke>, one after the other */
static bool read_invokes(reading *r) {
    wk_str name, ignored, text;
    for (r->left = wk_scan_trim(r->left); r->left.size > 0; r->left = wk_scan_trim(r->left)) {
        if (!wk_scan_take(&r->left, "<" DSML "invoke name=\"") &&
            !wk_scan_take(&r->left, "<invoke name=\""))
            return false;
        if (!wk_scan_take_until(&r->left, "\"", &name) ||
            !wk_scan_take_until(&r->left, ">", &ignored) ||
            !(wk_scan_take_until(&r->left, "</" DSML "invoke>", &text) ||
              wk_scan_take_until(&r->left, "</invoke>", &text)) ||
            !read_pairs(r, name, text, take_named_parameter))
            return false;
    }
    return true;
}

/* Parameters in tags or as JSON. */
static bool read_parameters(reading *r, wk_str name, wk_str text, pair_fn take_pair) {
    text = wk_scan_trim(text);
    const bool is_json = text.size > 0 && text.text[0] == '{';
    return is_json ? read_body(r, name, text) : read_pairs(r, name, text, take_pair);
}

/* <function=NAME>...</function>; several. */
static bool read_functions(reading *r, pair_fn take_pair) {
    for (r->left = wk_scan_trim(r->left); r->left.size > 0; r->left = wk_scan_trim(r->left)) {
        wk_str name, text;
        if (!wk_scan_take(&r->left, "<function=") || !wk_scan_take_until(&r->left, ">", &name))
            return false;
        if (!wk_scan_take_until(&r->left, "</function>", &text)) return false; /* cut off */
        if (!read_parameters(r, name, text, take_pair)) return false;
    }
    return true;
}

/* <tool_call> of Hermes and Qwen: JSON; of Qwen's coders: functions; of GLM: a name and pairs. */
static bool read_tags(reading *r, pair_fn take_pair) {
    const wk_str text = wk_scan_trim(r->left);
    if (text.size > 0 && text.text[0] == '{') return read_json(r);
    if (text.size > 0 && text.text[0] == '<') return read_functions(r, take_pair);
    const size_t n = wk_scan_find(text, "<arg_key>");
    wk_str name = {text.text, n};
    name.size = wk_scan_find(name, "<tool_sep>"); /* Hunyuan's */
    name = wk_scan_trim(name);
    return wk_scan_find(name, "\n") == name.size &&
           read_pairs(r, name, wk_scan_after(text, n), take_argument);
}

static bool read_hermes(reading *r) { return read_tags(r, take_parameter_lines); }

static bool read_seed(reading *r) { return read_tags(r, take_parameter); }

/* ---- A name, then JSON ---- */

/* NAME[ARGS]{...} or NAME{...}, one after the other; before that version a list. */
static bool read_mistral(reading *r) {
    r->left = wk_scan_trim(r->left);
    if (r->left.size > 0 && r->left.text[0] == '[') return read_json(r);
    do {
        size_t n = wk_scan_find(r->left, "{");
        wk_str name = {r->left.text, n};
        const size_t end = wk_scan_find(name, "[");
        name.size = end < n ? end : n;
        r->left = wk_scan_after(r->left, n);
        if (!read_named(r, name)) return false;
        r->left = wk_scan_trim(r->left);
        if (wk_scan_take(&r->left, "[TOOL_CALLS]")) r->left = wk_scan_trim(r->left);
    } while (r->left.size > 0);
    return true;
}

/* NAME>{...}, or parameters in tags. */
static bool read_function(reading *r) {
    wk_str name;
    return wk_scan_take_until(&r->left, ">", &name) &&
           read_parameters(r, name, r->left, take_parameter_lines);
}

#define BLANK "\xE2\x96\x81" /* a lower one-eighth block */
#define DEEPSEEK(words) "<" BAR words BAR ">"

/* Texts of the JSON may have fences, too: the last one ends it. */
static wk_str without_fence(wk_str text) {
    text = wk_scan_trim(text);
    if (text.size >= 3 && memcmp(text.text + text.size - 3, "```", 3) == 0) text.size -= 3;
    return text;
}

/* function<sep>NAME and JSON in a fence, or NAME<sep>JSON. */
static bool read_deepseek(reading *r) {
    wk_str ignored, name, body;
    while (wk_scan_take_until(&r->left, DEEPSEEK("tool" BLANK "call" BLANK "begin"), &ignored)) {
        if (!wk_scan_take_until(&r->left, DEEPSEEK("tool" BLANK "sep"), &name)) return false;
        if (!wk_scan_take_until(&r->left, DEEPSEEK("tool" BLANK "call" BLANK "end"), &body))
            return false;
        if (wk_str_is(wk_scan_trim(name), "function") &&
            wk_scan_take_until(&body, "```json", &name))
            body = without_fence(body);
        if (!read_body(r, name, body)) return false;
    }
    return true;
}

/* functions.NAME:0, then JSON. */
static bool read_kimi(reading *r) {
    wk_str ignored, name, json;
    while (wk_scan_take_until(&r->left, "<|tool_call_begin|>", &ignored)) {
        if (!wk_scan_take_until(&r->left, "<|tool_call_argument_begin|>", &name)) return false;
        if (!wk_scan_take_until(&r->left, "<|tool_call_end|>", &json)) return false;
        name = wk_scan_trim(name);
        (void)wk_scan_take(&name, "functions.");
        name.size = wk_scan_find(name, ":");
        if (!read_body(r, name, json)) return false;
    }
    return true;
}

/* functions.NAME <|constrain|>json<|message|>{...} */
static bool read_channel(reading *r) {
    wk_str head;
    if (!wk_scan_take_until(&r->left, "<|message|>", &head)) return false;
    (void)wk_scan_take(&head, "functions.");
    size_t n = 0;
    while (n < head.size && head.text[n] != ' ' && head.text[n] != '<') n++;
    head.size = n;
    return read_named(r, head);
}

/* ---- Calls as Python writes them, and Gemma ---- */

/* A call; write turns the rest into its arguments. */
static bool read_written(reading *r, wk_str name, write_fn write) {
    wk_str made;
    return parse_written(r, &r->left, write, &made) && add_call(r, name, made);
}

/* [NAME(key=value, ...), ...]; the brackets may be missing. Or all of it as JSON. */
static bool read_list(reading *r) {
    wk_str name, inside = wk_scan_trim(r->left);
    const bool has_bracket = wk_scan_take(&inside, "[");
    inside = wk_scan_trim(inside);
    if (inside.size > 0 && inside.text[0] == '{') return read_json(r);
    r->left = inside;
    do {
        if (!wk_scan_take_until(&r->left, "(", &name) ||
            !read_written(r, name, wk_literal_write_keywords))
            return false;
        r->left = wk_scan_trim(r->left);
        if (wk_scan_take(&r->left, ",")) r->left = wk_scan_trim(r->left);
    } while (r->left.size > 0 && r->left.text[0] != ']');
    return !has_bracket || wk_scan_take(&r->left, "]");
}

/* call:NAME{key:value,...} */
static bool read_braces(reading *r) {
    r->left = wk_scan_trim(r->left);
    const wk_str name = {r->left.text, wk_scan_find(r->left, "{")};
    wk_str bare = name;
    r->left = wk_scan_after(r->left, name.size);
    return wk_scan_take(&bare, "call:") && read_written(r, bare, wk_literal_write) &&
           r->left.size == 0;
}

/* JSON; or a built-in tool as Python calls it: NAME.call(key=value). */
static bool read_python_tag(reading *r) {
    r->left = wk_scan_trim(r->left);
    if (r->left.size > 0 && r->left.text[0] == '{') return read_json(r);
    wk_tool_call **const first = r->end;
    if (!read_list(r)) return false;
    for (wk_tool_call *call = *first; call; call = call->next) {
        const size_t n = wk_scan_find(call->name, ".call");
        if (n + strlen(".call") == call->name.size) call->name.size = n;
    }
    return true;
}

wick_status wk_tool_calls_read(wk_arena *arena, wick_call_format format, wk_str text,
                               const wk_json *tools, wk_tool_call **calls) {
    static bool (*const readers[])(reading *) = {
        [WICK_CALL_JSON] = read_json,
        [WICK_CALL_HERMES] = read_hermes,
        [WICK_CALL_SEED] = read_seed,
        [WICK_CALL_PIPES] = read_json,
        [WICK_CALL_PYTHON_TAG] = read_python_tag,
        [WICK_CALL_MISTRAL] = read_mistral,
        [WICK_CALL_FUNCTION] = read_function,
        [WICK_CALL_LIST] = read_list,
        [WICK_CALL_DEEPSEEK] = read_deepseek,
        [WICK_CALL_KIMI] = read_kimi,
        [WICK_CALL_CHANNEL] = read_channel,
        [WICK_CALL_BRACES] = read_braces,
        [WICK_CALL_INVOKE] = read_invokes,
        [WICK_CALL_KEYED] = read_keyed_list,
        [WICK_CALL_FUNCTOOLS] = read_functools,
    };
    const uint64_t n_refused = arena->heap->n_refused;
    *calls = NULL;
    reading r = {.arena = arena,
                 .tools = tools,
                 .is_bare = format == WICK_CALL_JSON,
                 .left = text,
                 .end = calls};
    const bool is_read = format != WICK_CALL_NONE && readers[format](&r) && *calls;
    if (arena->heap->n_refused > n_refused) return WICK_ERR_OUT_OF_MEMORY;
    return is_read ? WICK_OK : WICK_ERR_FORMAT;
}
