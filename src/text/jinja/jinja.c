/* text/jinja/jinja.c: from JSON to values, and a rendering from beginning to end. */
#include "text/jinja/jinja.h"

#include "text/jinja/state.h"

#include <string.h>

static const wk_jinja_desc defaults = {
    .max_steps = 80000000, /* one to four seconds */
    .max_depth = 1500,     /* C's stack is not endless: about 1 MB of it */
    .max_bytes = 256 << 20,
};

/* The longest text in a value: JSON is nested at most as deep as its parser allows. */
static size_t longest_text(const wk_json *value) {
    size_t most = value->kind == WK_JSON_STRING ? value->string.size : 0;
    for (const wk_json *item = value->child; item != NULL; item = item->next) {
        const size_t size = longest_text(item);
        if (item->key.size > most) most = item->key.size;
        if (size > most) most = size;
    }
    return most;
}

/* data: ones, as many as the longest text has bytes; NULL: trusted. */
static wick_status import_value(wk_jinja *j, const wk_json *from, const uint8_t *data,
                                wk_jvalue *out);

static wk_jvalue import_text(wk_str text, const uint8_t *data) {
    return wk_jstring((wk_jtext){text.size > 0 ? text.text : "", text.size, data});
}

static wick_status import_items(wk_jinja *j, const wk_json *from, const uint8_t *data,
                                wk_jvalue *out) {
    const bool is_dict = from->kind == WK_JSON_OBJECT;
    WK_TRY(is_dict ? wk_jdict_make(j, WK_J_DICT, out)
                   : wk_jlist_make(j, WK_J_LIST, from->count, out));
    for (const wk_json *item = from->child; item != NULL; item = item->next) {
        wk_jvalue value;
        WK_TRY(import_value(j, item, data, &value));
        WK_TRY(is_dict ? wk_jdict_set(j, out->dict, import_text(item->key, data), value)
                       : wk_jlist_push(j, out->list, value));
    }
    return WICK_OK;
}

static wick_status import_value(wk_jinja *j, const wk_json *from, const uint8_t *data,
                                wk_jvalue *out) {
    switch (from->kind) {
    case WK_JSON_NULL: *out = wk_jnone(); break;
    case WK_JSON_BOOL: *out = wk_jbool(from->boolean); break;
    case WK_JSON_NUMBER:
        *out = from->is_integer ? wk_jinteger(from->integer) : wk_jfloat(from->number);
        break;
    case WK_JSON_STRING: *out = import_text(from->string, data); break;
    case WK_JSON_ARRAY:
    case WK_JSON_OBJECT: return import_items(j, from, data, out);
    }
    return WICK_OK;
}

static wick_status import_variables(wk_jinja *j, wk_jdict *context) {
    size_t most = 0;
    for (size_t i = 0; i < j->desc->n_variables; i++) {
        const wk_jinja_variable *const v = &j->desc->variables[i];
        const size_t size = v->is_trusted ? 0 : longest_text(v->value);
        if (size > most) most = size;
    }
    uint8_t *const data = wk_jalloc(j, most, 1);
    if (data == NULL) return WICK_ERR_VALUE;
    memset(data, 1, most);
    for (size_t i = 0; i < j->desc->n_variables; i++) {
        const wk_jinja_variable *const v = &j->desc->variables[i];
        wk_jvalue value;
        WK_TRY(import_value(j, v->value, v->is_trusted ? NULL : data, &value));
        WK_TRY(wk_jdict_set(j, context, import_text(v->name, NULL), value));
    }
    return WICK_OK;
}

static wick_status render(wk_jinja *j, const wk_jinja_template *compiled) {
    wk_jdict context = {.n = 0};
    j->context = &context;
    WK_TRY(import_variables(j, &context));
    j->work = j->next_check = 0; /* from here on it is the template's */
    WK_TRY(wk_jscope_push(j, NULL));
    WK_TRY(wk_jexec(j, compiled->body));
    const size_t size = j->out->size;
    wk_jput(j->out, (wk_jtext){"", 1, NULL}); /* terminated */
    WK_TRY(j->out->status);
    j->result->text = (wk_str){j->out->text, size};
    j->result->origin = j->out->origin;
    return WICK_OK;
}

wick_status wk_jinja_render(wk_arena *arena, const wk_jinja_template *compiled,
                            const wk_jinja_desc *desc, wk_jinja_result *result, wick_error *err) {
    wk_jinja_desc limits = *desc;
    if (limits.max_steps == 0) limits.max_steps = defaults.max_steps;
    if (limits.max_depth == 0) limits.max_depth = defaults.max_depth;
    if (limits.max_bytes == 0) limits.max_bytes = defaults.max_bytes;
    if (limits.now.month < 1 || limits.now.month > 12 || limits.now.year < 1)
        limits.now = (wk_jinja_time){.year = 1970, .month = 1, .day = 1};
    *result = (wk_jinja_result){.origin = NULL};
    wk_jinja j = {.arena = arena,
                  .desc = &limits,
                  .err = err,
                  .result = result,
                  .bytes_before = arena->bytes};
    wk_jbuilder out = wk_jbuilder_begin(&j);
    j.out = &out;
    const wick_status status = render(&j, compiled);
    result->n_steps = j.work / WK_J_STEP;
    return status != WICK_OK && j.failure != WICK_OK ? j.failure : status;
}
