/* api/request.c: the fields of a request's body: sampling, form, messages. See api.h. */
#include "api/api.h"

#include <math.h>
#include <string.h>

/* ---- Fields ---- */

const wk_json *wk_request_field(const wick_exchange *x, const char *key) {
    const wk_json *const value = wk_json_get(x->body, key);
    return value && value->kind != WK_JSON_NULL ? value : NULL;
}

wick_status wk_request_bool(const wick_exchange *x, const char *key, bool *value, wick_error *err) {
    const wk_json *const given = wk_request_field(x, key);
    if (!given) return WICK_OK;
    if (given->kind != WK_JSON_BOOL)
        return wk_fail(err, WICK_ERR_VALUE, "%s must be true or false", key);
    *value = given->boolean;
    return WICK_OK;
}

static wick_status read_number(const wick_exchange *x, const char *key, double least, double most,
                               double *value, wick_error *err) {
    const wk_json *const given = wk_request_field(x, key);
    if (!given) return WICK_OK;
    if (given->kind == WK_JSON_NUMBER && given->number >= least && given->number <= most) {
        *value = given->number;
        return WICK_OK;
    }
    return wk_fail(err, WICK_ERR_VALUE, "%s must be a number from %g to %g", key, least, most);
}

wick_status wk_request_whole(const wick_exchange *x, const char *key, uint32_t least, uint32_t most,
                             uint32_t *value, wick_error *err) {
    double number = *value;
    WK_TRY(read_number(x, key, least, most, &number, err));
    if (number != floor(number))
        return wk_fail(err, WICK_ERR_VALUE, "%s must be a whole number", key);
    *value = (uint32_t)number;
    return WICK_OK;
}

wick_status wk_request_translate(wick_exchange *x,
                                 void (*write)(wk_strbuf *to, const wk_json *body),
                                 wick_error *err) {
    wk_strbuf made;
    wk_strbuf_init(&made, x->heap);
    write(&made, x->body);
    const wick_status status = made.failed
                                   ? wk_fail_memory(err, made.size, "a request")
                                   : wk_json_parse(&x->arena, made.data, made.size, &x->body, err);
    wk_strbuf_release(&made);
    return status;
}

/* ---- Sampling ---- */

typedef struct number_field {
    const char *key;
    uint16_t offset; /* in wick_sampler_desc */
    bool is_whole;
    double least, most;
    enum { NO_LIMIT, WHOLE_CONTEXT } at_minus_one; /* of whole numbers */
} number_field;

#define SAMPLER(member) offsetof(wick_sampler_desc, member)
static const number_field fields[] = {
    {"temperature", SAMPLER(temperature), false, 0, 100, NO_LIMIT},
    {"top_k", SAMPLER(top_k), true, 0, INT32_MAX, NO_LIMIT},
    {"typical_p", SAMPLER(typical_p), false, 0, 1, NO_LIMIT},
    {"top_p", SAMPLER(top_p), false, 0, 1, NO_LIMIT},
    {"min_p", SAMPLER(min_p), false, 0, 1, NO_LIMIT},
    {"repeat_last_n", SAMPLER(repeat_last), true, 0, INT32_MAX, WHOLE_CONTEXT},
    {"repeat_penalty", SAMPLER(repeat_penalty), false, 0, 100, NO_LIMIT},
    {"frequency_penalty", SAMPLER(frequency_penalty), false, -100, 100, NO_LIMIT},
    {"presence_penalty", SAMPLER(presence_penalty), false, -100, 100, NO_LIMIT},
    {"dry_multiplier", SAMPLER(dry_multiplier), false, 0, 100, NO_LIMIT},
    {"dry_base", SAMPLER(dry_base), false, 0, 100, NO_LIMIT},
    {"dry_allowed_length", SAMPLER(dry_allowed), true, 0, INT32_MAX, NO_LIMIT},
    {"dry_penalty_last_n", SAMPLER(dry_last), true, 0, INT32_MAX, NO_LIMIT},
    {"xtc_probability", SAMPLER(xtc_probability), false, 0, 1, NO_LIMIT},
    {"xtc_threshold", SAMPLER(xtc_threshold), false, 0, 1, NO_LIMIT},
    {"mirostat_eta", SAMPLER(mirostat_eta), false, 0, 1, NO_LIMIT},
};
#undef SAMPLER

/* A whole number, or -1: what stands for it then. */
static wick_status read_count(const wick_exchange *x, const number_field *field, uint32_t *value,
                              wick_error *err) {
    const wk_json *const given = wk_request_field(x, field->key);
    if (given && given->kind == WK_JSON_NUMBER && given->number == -1) {
        *value = field->at_minus_one == WHOLE_CONTEXT ? x->api->session.context_length : 0;
        return WICK_OK;
    }
    return wk_request_whole(x, field->key, (uint32_t)field->least, (uint32_t)field->most, value,
                            err);
}

static wick_status read_numbers(wick_exchange *x, wick_error *err) {
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        void *const at = (char *)&x->desc.sampler + fields[i].offset;
        if (fields[i].is_whole) {
            WK_TRY(read_count(x, &fields[i], at, err));
            continue;
        }
        double value = *(const float *)at;
        WK_TRY(read_number(x, fields[i].key, fields[i].least, fields[i].most, &value, err));
        *(float *)at = (float)value;
    }
    return WICK_OK;
}

static bool is_zero(const wick_exchange *x, const char *key) {
    const wk_json *const given = wk_request_field(x, key);
    return given && given->kind == WK_JSON_NUMBER && given->number == 0;
}

/* To look back at no token is to have no penalty; the most likely tokens of no weight are the first
 * one alone. */
static void apply_zeros(wick_exchange *x) {
    wick_sampler_desc *const sampler = &x->desc.sampler;
    if (is_zero(x, "top_p")) sampler->top_k = 1;
    if (is_zero(x, "repeat_last_n"))
        sampler->repeat_penalty = sampler->frequency_penalty = sampler->presence_penalty = 0;
    if (is_zero(x, "dry_penalty_last_n")) sampler->dry_multiplier = 0;
}

/* Version 2 alone, which is asked for by its number. */
static wick_status read_mirostat(wick_exchange *x, wick_error *err) {
    uint32_t version = 0;
    double tau = 5;
    WK_TRY(wk_request_whole(x, "mirostat", 0, 2, &version, err));
    WK_TRY(read_number(x, "mirostat_tau", 0, 100, &tau, err));
    if (version == 1)
        return wk_fail(err, WICK_ERR_UNSUPPORTED,
                       "mirostat must be 0 or 2 (version 1 is not supported)");
    if (version == 2) x->desc.sampler.mirostat_tau = (float)tau;
    return WICK_OK;
}

/* Whether it is a whole number, which some clients write with a fraction (1.0). */
static bool is_whole(const wk_json *given, int64_t *value) {
    const double most = 9007199254740992; /* 2^53 */
    if (given->kind != WK_JSON_NUMBER) return false;
    *value = given->integer;
    if (given->is_integer) return true;
    if (!(fabs(given->number) <= most) || given->number != floor(given->number)) return false;
    *value = (int64_t)given->number;
    return true;
}

/* -1, as some clients have it, and none are the same. */
static wick_status read_seed(wick_exchange *x, wick_error *err) {
    const wk_json *const given = wk_request_field(x, "seed");
    if (!given) return WICK_OK;
    int64_t whole;
    if (!is_whole(given, &whole))
        return wk_fail(err, WICK_ERR_VALUE, "seed must be a whole number");
    if (whole == -1) return WICK_OK;
    const uint64_t seed = (uint64_t)whole;
    x->desc.sampler.seed = seed > 0 ? seed : UINT64_MAX; /* 0 would be no seed */
    return WICK_OK;
}

/* The first of these names that is there; -1: no limit. */
static wick_status read_limit(wick_exchange *x, wick_error *err) {
    static const char *const names[] = {"max_completion_tokens", "max_tokens", "n_predict"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const wk_json *const given = wk_request_field(x, names[i]);
        if (!given) continue;
        int64_t whole;
        if (!is_whole(given, &whole) || whole < -1 || whole > INT32_MAX)
            return wk_fail(err, WICK_ERR_VALUE, "%s must be a whole number from 0 on, or -1",
                           names[i]);
        x->desc.max_tokens = whole < 0 ? 0 : (uint32_t)whole;
        x->has_no_tokens = whole == 0;
        return WICK_OK;
    }
    return WICK_OK;
}

static wick_status fail_memory(wick_error *err) { return wk_fail_memory(err, 0, "a request"); }

/* A text, or an array of them. */
static wick_status read_texts(wick_exchange *x, const char *key, const char *const **texts,
                              size_t *n, wick_error *err) {
    enum { MOST = 256 }; /* each of them is looked for in every text */
    const wk_json *const given = wk_request_field(x, key);
    if (!given) return WICK_OK;
    const bool is_list = given->kind == WK_JSON_ARRAY;
    if (is_list && given->count > MOST)
        return wk_fail(err, WICK_ERR_VALUE, "%s: at most %d texts", key, MOST);
    const wk_json *item = is_list ? given->child : given;
    const char **const made = wk_arena_array(&x->arena, is_list ? given->count : 1, sizeof *made);
    if (!made) return fail_memory(err);
    *n = 0;
    for (; item; item = is_list ? item->next : NULL) {
        if (item->kind != WK_JSON_STRING || memchr(item->string.text, 0, item->string.size))
            return wk_fail(err, WICK_ERR_VALUE, "%s must be a text or an array of texts", key);
        if (item->string.size > 0) made[(*n)++] = item->string.text;
    }
    *texts = made;
    return WICK_OK;
}

static bool is_number_text(wk_str text) {
    bool is_number = text.size > 0 && text.size < 10;
    for (size_t i = 0; i < text.size; i++)
        is_number = is_number && text.text[i] >= '0' && text.text[i] <= '9';
    return is_number;
}

/* The tokens that an entry names: by an id, or by a text, of which each token has the bias. */
static wick_status read_biased(wick_exchange *x, const wk_json *item, bool is_object, wk_ids *ids,
                               wick_error *err) {
    const wk_json *const id = is_object ? NULL : item->child;
    const bool is_text = is_object || (id && id->kind == WK_JSON_STRING);
    if (is_text && !(is_object && is_number_text(item->key)))
        return wk_ids_of_text(x, is_object ? item->key : id->string, WICK_TOKENIZE_PARSE_SPECIAL,
                              ids, err);
    double number = id && id->kind == WK_JSON_NUMBER ? id->number : -1;
    if (is_object) number = 0;
    for (size_t i = 0; is_object && i < item->key.size; i++)
        number = 10 * number + (item->key.text[i] - '0');
    ids->ids = wk_arena_array(&x->arena, 1, sizeof *ids->ids);
    ids->n = 1;
    if (!ids->ids) return fail_memory(err);
    if (number < 0 || number > UINT32_MAX || number != floor(number))
        return wk_fail(err, WICK_ERR_VALUE, "logit_bias must name tokens by their ids or texts");
    ids->ids[0] = (uint32_t)number;
    return WICK_OK;
}

/* OpenAI's: {"ID": bias}; llama-server's: [[ID or text, bias or false]], {"text": bias}. */
static wick_status read_biases(wick_exchange *x, wick_error *err) {
    enum { MOST = 4096 };
    const wk_json *const given = wk_request_field(x, "logit_bias");
    if (!given) return WICK_OK;
    const bool is_object = given->kind == WK_JSON_OBJECT;
    if (!is_object && given->kind != WK_JSON_ARRAY)
        return wk_fail(err, WICK_ERR_VALUE, "logit_bias must be an object or an array");
    wick_logit_bias *const made = wk_arena_array(&x->arena, MOST, sizeof *made);
    if (!made) return fail_memory(err);
    size_t n = 0;
    for (const wk_json *item = given->child; item; item = item->next) {
        const wk_json *const value = is_object ? item : item->child ? item->child->next : NULL;
        const bool is_never = value && value->kind == WK_JSON_BOOL && !value->boolean;
        wk_ids ids = {.n = 0};
        if (!value || (value->kind != WK_JSON_NUMBER && !is_never))
            return wk_fail(err, WICK_ERR_VALUE,
                           "logit_bias must have a number or false for each token");
        WK_TRY(read_biased(x, item, is_object, &ids, err));
        if (ids.n > MOST - n)
            return wk_fail(err, WICK_ERR_VALUE, "logit_bias: at most %d tokens", MOST);
        for (size_t i = 0; i < ids.n; i++)
            made[n++] = (wick_logit_bias){ids.ids[i], is_never ? -INFINITY : (float)value->number};
    }
    x->desc.sampler.bias = made;
    x->desc.sampler.n_bias = n;
    return WICK_OK;
}

/* JSON of a value, terminated. NULL: out of memory. */
static const char *text_of(wick_exchange *x, const wk_json *value) {
    wk_strbuf made;
    wk_str text;
    wk_strbuf_init(&made, x->heap);
    wk_write_value(&made, value);
    (void)wk_write_keep(&made, &x->arena, &text);
    return text.text;
}

static wick_status set_schema(wick_exchange *x, const wk_json *schema, wick_error *err) {
    x->desc.sampler.json_schema = schema ? text_of(x, schema) : "{\"type\":\"object\"}";
    return x->desc.sampler.json_schema ? WICK_OK : fail_memory(err);
}

static wick_status read_grammar(wick_exchange *x, wick_error *err) {
    const wk_json *const grammar = wk_request_field(x, "grammar"), *const schema = wk_request_field(
                                                                       x, "json_schema");
    if (grammar && grammar->kind != WK_JSON_STRING)
        return wk_fail(err, WICK_ERR_VALUE, "grammar must be a text");
    if (grammar && grammar->string.size > 0) x->desc.sampler.grammar = grammar->string.text;
    return schema ? set_schema(x, schema, err) : WICK_OK;
}

static wick_status read_form(wick_exchange *x, wick_error *err) {
    enum { MOST = 128 };
    x->n = 1;
    WK_TRY(wk_request_bool(x, "stream", &x->is_stream, err));
    WK_TRY(wk_request_whole(x, "n", 1, MOST, &x->n, err));
    const wk_json *const options = wk_request_field(x, "stream_options");
    if (options && options->kind != WK_JSON_OBJECT)
        return wk_fail(err, WICK_ERR_VALUE, "stream_options must be an object");
    if (wk_request_field(x, "functions") || wk_request_field(x, "function_call"))
        return wk_fail(err, WICK_ERR_UNSUPPORTED,
                       "functions and function_call are not known: tools and tool_choice are");
    const wk_json *const includes = wk_json_get(options, "include_usage");
    x->includes_usage = includes && includes->kind == WK_JSON_BOOL && includes->boolean;
    return WICK_OK;
}

static wick_status read_sampling(wick_exchange *x, wick_error *err) {
    x->desc = x->api->session;
    WK_TRY(read_numbers(x, err));
    WK_TRY(read_mirostat(x, err));
    WK_TRY(read_seed(x, err));
    WK_TRY(read_limit(x, err));
    WK_TRY(read_biases(x, err));
    WK_TRY(read_grammar(x, err));
    WK_TRY(read_texts(x, "stop", &x->desc.stop, &x->desc.n_stop, err));
    WK_TRY(read_texts(x, "dry_sequence_breakers", &x->desc.sampler.dry_breakers,
                      &x->desc.sampler.n_dry_breakers, err));
    apply_zeros(x);
    return wk_request_bool(x, "ignore_eos", &x->desc.ignore_end, err);
}

/* What llama-server has besides: where a text is computed, and what of it is shown. */
static wick_status read_work(wick_exchange *x, wick_error *err) {
    bool reuses = true;
    const wk_json *const slot = wk_request_field(x, "id_slot");
    x->slot = -1;
    if (slot) {
        int64_t whole;
        if (!is_whole(slot, &whole) || whole < -1 || whole >= x->api->n_parallel)
            return wk_fail(err, WICK_ERR_VALUE, "id_slot must be -1 or a number below %u",
                           x->api->n_parallel);
        x->slot = (int32_t)whole;
    }
    WK_TRY(wk_request_bool(x, "cache_prompt", &reuses, err));
    if (!reuses) x->desc.no_reuse = true;
    WK_TRY(wk_request_bool(x, "return_tokens", &x->keeps_tokens, err));
    WK_TRY(wk_request_bool(x, "return_progress", &x->shows_progress, err));
    WK_TRY(wk_request_bool(x, "timings_per_token", &x->shows_timings, err));
    x->is_verbose = x->api->is_verbose;
    WK_TRY(wk_request_bool(x, "verbose", &x->is_verbose, err));
    return wk_request_loras(x, err);
}

wick_status wk_request_generation(wick_exchange *x, wick_error *err) {
    WK_TRY(read_form(x, err));
    WK_TRY(read_sampling(x, err));
    return read_work(x, err);
}

/* ---- Messages ---- */

static bool is_text_part(const wk_json *part) {
    const wk_json *const type = wk_json_get(part, "type");
    return !type || wk_json_is(type, "text") || wk_json_is(type, "input_text") ||
           wk_json_is(type, "output_text") || wk_json_is(type, "refusal");
}

static wick_status fail_part(const wk_json *part, wick_error *err) {
    const wk_json *const type = wk_json_get(part, "type");
    if (!type || type->kind != WK_JSON_STRING || is_text_part(part))
        return wk_fail(err, WICK_ERR_VALUE, "messages: a content part must be a text");
    return wk_fail(err, WICK_ERR_UNSUPPORTED,
                   "messages: a content part must be a text, not of type %s: this model cannot "
                   "read images, sound or files",
                   wk_str_show(type->string).text);
}

/* Parts of text become one text, a line for each. */
static wick_status join_parts(wick_exchange *x, wk_json *content, wick_error *err) {
    wk_strbuf joined;
    wk_strbuf_init(&joined, x->heap);
    wick_status status = WICK_OK;
    for (const wk_json *part = content->child; part && status == WICK_OK; part = part->next) {
        const wk_json *text = part->kind == WK_JSON_STRING ? part : wk_json_get(part, "text");
        if (!text) text = wk_json_get(part, "refusal");
        if (!text || text->kind != WK_JSON_STRING || !is_text_part(part))
            status = fail_part(part, err);
        else if (part != content->child)
            wk_strbuf_text(&joined, "\n");
        if (status == WICK_OK) wk_strbuf_append(&joined, text->string.text, text->string.size);
    }
    wk_str text;
    if (!wk_write_keep(&joined, &x->arena, &text) && status == WICK_OK) return fail_memory(err);
    if (status == WICK_OK)
        *content = (wk_json){
            .kind = WK_JSON_STRING, .string = text, .key = content->key, .next = content->next};
    return status;
}

/* Arguments are a text in the API and an object in templates: what is none (the model's, cut off by
 * its limit) is its only member. */
static wick_status open_arguments(wick_exchange *x, wk_json *calls, wick_error *err) {
    for (wk_json *call = calls ? calls->child : NULL; call; call = call->next) {
        wk_json *const given = wk_json_find(wk_json_find(call, "function"), "arguments");
        wk_json *opened = NULL;
        wick_error ignored = {.status = WICK_OK};
        if (!given || given->kind == WK_JSON_OBJECT) continue;
        const bool is_text = given->kind == WK_JSON_STRING;
        if (is_text)
            (void)wk_json_parse(&x->arena, given->string.text, given->string.size, &opened,
                                &ignored);
        if (!opened || opened->kind != WK_JSON_OBJECT) {
            opened = wk_arena_array(&x->arena, 2, sizeof *opened);
            if (!opened) return fail_memory(err);
            opened[0].kind = WK_JSON_OBJECT;
            opened[1] = *given;
            opened[1].key = wk_str_of("arguments");
            if (is_text ? given->string.size > 0 : given->kind != WK_JSON_NULL)
                wk_json_append(opened, opened + 1);
        }
        opened->key = given->key;
        opened->next = given->next;
        *given = *opened;
    }
    return WICK_OK;
}

/* Templates join contents to texts: what has none has an empty one. */
static wick_status set_no_content(wick_exchange *x, wk_json *message, wk_json *content,
                                  wick_error *err) {
    if (!content) {
        content = wk_arena_array(&x->arena, 1, sizeof *content);
        if (!content) return fail_memory(err);
        content->key = wk_str_of("content");
        wk_json_append(message, content);
    }
    content->kind = WK_JSON_STRING;
    content->string = wk_str_of("");
    return WICK_OK;
}

static wick_status read_message(wick_exchange *x, wk_json *message, wick_error *err) {
    wk_json *const role = wk_json_find(message, "role");
    wk_json *const content = wk_json_find(message, "content");
    wk_json *const calls = wk_json_find(message, "tool_calls");
    wk_json *const reasoning = wk_json_find(message, "reasoning_content");
    const wk_json *const type = wk_json_get(message, "type"); /* of an item of a response */
    if (!role && type && type->kind == WK_JSON_STRING)
        return wk_fail(err, WICK_ERR_UNSUPPORTED, "messages: an item of type %s cannot be read",
                       wk_str_show(type->string).text);
    if (!role || role->kind != WK_JSON_STRING)
        return wk_fail(err, WICK_ERR_VALUE, "messages: each must be an object with a role");
    const wk_json *const images = wk_json_get(message, "images"); /* ollama's */
    if (images && images->count > 0)
        return wk_fail(err, WICK_ERR_UNSUPPORTED, "messages: this model cannot read images");
    if (wk_json_is(role, "developer")) role->string = wk_str_of("system");
    if (wk_json_is(role, "function")) role->string = wk_str_of("tool");
    const wk_json_kind kind = content ? content->kind : WK_JSON_NULL;
    if (kind == WK_JSON_ARRAY) WK_TRY(join_parts(x, content, err));
    if (reasoning && reasoning->kind == WK_JSON_ARRAY) WK_TRY(join_parts(x, reasoning, err));
    if (kind != WK_JSON_ARRAY && kind != WK_JSON_STRING && kind != WK_JSON_NULL)
        return wk_fail(err, WICK_ERR_VALUE,
                       "messages: content must be a text or an array of parts");
    if (kind == WK_JSON_NULL && !calls && !wk_json_is(role, "assistant"))
        return wk_fail(err, WICK_ERR_VALUE, "messages: a message has no content");
    if (calls && calls->kind != WK_JSON_ARRAY && calls->kind != WK_JSON_NULL)
        return wk_fail(err, WICK_ERR_VALUE, "messages: tool_calls must be an array");
    if (calls && calls->count == 0) wk_json_drop(message, calls); /* templates ask if it is there */
    WK_TRY(open_arguments(x, calls, err));
    return kind == WK_JSON_NULL ? set_no_content(x, message, content, err) : WICK_OK;
}

static wick_status read_messages(wick_exchange *x, wick_error *err) {
    wk_json *const messages = wk_json_find(x->body, "messages");
    if (!messages || messages->kind != WK_JSON_ARRAY || messages->count == 0)
        return wk_fail(err, WICK_ERR_VALUE, "messages must be an array of at least one message");
    for (wk_json *message = messages->child; message; message = message->next)
        WK_TRY(read_message(x, message, err));
    x->messages = messages;
    return WICK_OK;
}

/* ---- All of a chat ---- */

static wick_status read_response_format(wick_exchange *x, wick_error *err) {
    const wk_json *const format = wk_request_field(x, "response_format");
    const wk_json *const type = wk_json_get(format, "type");
    if (!format || wk_json_is(type, "text")) return WICK_OK;
    const wk_json *const named = wk_json_get(format, "json_schema");
    const wk_json *schema = wk_json_get(named ? named : format, "schema");
    const bool is_object = wk_json_is(type, "json_object");
    if (!schema && is_object) schema = wk_json_get(format, "value"); /* as Hugging Face has it */
    if (schema && schema->kind == WK_JSON_NULL) schema = NULL;
    if (is_object) return set_schema(x, schema, err);
    if (!wk_json_is(type, "json_schema"))
        return wk_fail(err, WICK_ERR_VALUE,
                       "response_format: type must be text, json_object or json_schema");
    if (!schema) return wk_fail(err, WICK_ERR_VALUE, "response_format: json_schema has no schema");
    return set_schema(x, schema, err);
}

wick_status wk_request_chat(wick_exchange *x, wick_error *err) {
    WK_TRY(read_messages(x, err));
    WK_TRY(wk_request_tools(x, err));
    WK_TRY(read_response_format(x, err));
    WK_TRY(wk_request_tool_choice(x, err));
    const wk_json *const variables = wk_request_field(x, "chat_template_kwargs");
    if (variables && variables->kind != WK_JSON_OBJECT)
        return wk_fail(err, WICK_ERR_VALUE, "chat_template_kwargs must be an object");
    x->variables = variables;
    x->effort = wk_request_field(x, "reasoning_effort");
    if (x->effort && x->effort->kind != WK_JSON_STRING)
        return wk_fail(err, WICK_ERR_VALUE, "reasoning_effort must be a text");
    bool begins_answer = true;
    WK_TRY(wk_request_bool(x, "add_generation_prompt", &begins_answer, err));
    x->has_no_answer_begun = !begins_answer;
    WK_TRY(wk_request_prefill(x, err));
    const wk_json *const format = wk_request_field(x, "reasoning_format");
    x->reasoning = x->api->reasoning;
    if (format)
        x->reasoning =
            wk_json_is(format, "none") ? WICK_REASONING_IN_CONTENT : WICK_REASONING_APART;
    return WICK_OK;
}
