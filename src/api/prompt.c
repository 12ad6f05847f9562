/* api/prompt.c: the ids that the model reads for a request. See api.h. */
#include "api/api.h"

#include "llm/chat_variables.h"

#include <string.h>

/* A text that is much longer than the context is not worth its tokens: whether its beginning has
 * too many already. A token at the cut may differ from those of the whole text, hence the slack. */
static wick_status estimate(wick_exchange *x, wk_str text, wk_ids *out, wick_error *err) {
    enum { SLACK = 256 };
    const uint32_t most = x->api->session.context_length;
    const size_t size = 65536 + (size_t)8 * most;
    if (text.size < 2 * size || x->api->is_encoder || x->counts) return WICK_OK;
    uint32_t *const ids = wk_arena_array(&x->arena, size + 2, sizeof *ids);
    size_t n;
    if (!ids) return wk_fail_memory(err, size * sizeof *ids, "a prompt");
    const wick_status status = wick_tokenize(x->api->model->tokenizer, text.text, size,
                                             WICK_TOKENIZE_PARSE_SPECIAL, ids, size + 2, &n);
    if (status != WICK_OK)
        return wk_fail(err, status, "the text cannot be tokenized: %s", wick_status_text(status));
    if (n > most + SLACK) out->n_estimated = (size_t)((double)n / (double)size * (double)text.size);
    return WICK_OK;
}

/* Of prompt, or else of text: a second time where they are more than bytes. */
static wick_status take_ids(wick_exchange *x, const wick_prompt *prompt, wk_str text,
                            uint32_t flags, wk_ids *out, wick_error *err) {
    const wick_tokenizer *const tokenizer = x->api->model->tokenizer;
    for (size_t capacity = text.size + 2;; capacity = out->n) {
        out->ids = wk_arena_array(&x->arena, capacity, sizeof *out->ids);
        if (!out->ids) return wk_fail_memory(err, capacity * sizeof *out->ids, "a prompt");
        const wick_status status =
            prompt ? wick_prompt_tokenize(prompt, tokenizer, out->ids, capacity, &out->n)
                   : wick_tokenize(tokenizer, text.text, text.size, flags, out->ids, capacity,
                                   &out->n);
        if (status != WICK_OK)
            return wk_fail(err, status, "the text cannot be tokenized: %s",
                           wick_status_text(status));
        if (out->n <= capacity) return WICK_OK;
    }
}

void wk_append_tokens(const wick_api *api, const wk_ids *ids, bool special, wk_strbuf *to) {
    for (size_t i = 0; i < ids->n; i++) {
        size_t size;
        const char *const bytes =
            wick_token_bytes(api->model->tokenizer, ids->ids[i], special, &size);
        wk_strbuf_append(to, bytes, size);
    }
}

wick_status wk_ids_of_text(wick_exchange *x, wk_str text, uint32_t flags, wk_ids *out,
                           wick_error *err) {
    return take_ids(x, NULL, text, flags, out, err);
}

/* What a template reads beside messages: the model's tokens, and what the request adds. */
static wick_status read_variables(wick_exchange *x, const wk_json **out, wick_error *err) {
    wk_json *const made = wk_chat_variables(&x->arena, x->api->model->tokenizer);
    *out = made;
    if (!made) return wk_fail_memory(err, sizeof *made, "a prompt");
    const bool is_off = x->effort && wk_json_is(x->effort, "none");
    if ((x->api->thinking != 0 || is_off) && !wk_json_get(x->variables, "enable_thinking")) {
        wk_json *const thinks =
            wk_chat_add_variable(&x->arena, made, "enable_thinking", WK_JSON_BOOL);
        if (!thinks) return wk_fail_memory(err, sizeof *thinks, "a prompt");
        thinks->boolean = x->api->thinking > 0 && !is_off;
    }
    if (x->effort && !wk_json_get(x->variables, "reasoning_effort")) {
        wk_json *const effort =
            wk_chat_add_variable(&x->arena, made, "reasoning_effort", WK_JSON_STRING);
        if (!effort) return wk_fail_memory(err, sizeof *effort, "a prompt");
        effort->string = x->effort->string;
    }
    for (const wk_json *item = x->variables ? x->variables->child : NULL; item; item = item->next) {
        wk_json *const copy = wk_arena_alloc(&x->arena, sizeof *copy);
        if (!copy) return wk_fail_memory(err, sizeof *copy, "a prompt");
        *copy = *item;
        wk_json_append(made, copy);
    }
    return WICK_OK;
}

/* Templates read the arguments of calls as objects, or join them to texts. */
static wick_status set_arguments(wick_exchange *x, wk_json_kind kind, wick_error *err) {
    for (wk_json *message = x->messages->child; message; message = message->next) {
        wk_json *const calls = wk_json_find(message, "tool_calls");
        for (wk_json *call = calls ? calls->child : NULL; call; call = call->next) {
            wk_json *const given = wk_json_find(wk_json_find(call, "function"), "arguments");
            wk_strbuf text;
            if (!given) continue;
            if (kind == WK_JSON_STRING && !given->string.text) {
                wk_strbuf_init(&text, x->heap);
                wk_write_value(&text, given);
                if (!wk_write_keep(&text, &x->arena, &given->string))
                    return wk_fail_memory(err, 0, "a prompt");
            }
            given->kind = kind;
        }
    }
    return WICK_OK;
}

/* About half a second of everybody's time; a conversation of a million tokens takes less. What is
 * tried after that has less. */
enum { MOST_STEPS = 10000000, MOST_AGAIN = MOST_STEPS / 4 };

static wick_status render(wick_exchange *x, const wk_json *tools, uint64_t most_steps,
                          wick_prompt **prompt, wick_error *err) {
    const wick_api *const api = x->api;
    wick_conversation conversation = {.messages = x->messages,
                                      .tools = tools,
                                      .generation_prompt = x->has_no_answer_begun
                                                               ? WICK_GENERATION_PROMPT_OFF
                                                               : WICK_GENERATION_PROMPT_ON,
                                      .now = wk_time_of(x->time + x->utc_offset),
                                      .max_steps = most_steps};
    const wick_template *const compiled = tools && api->for_tools ? api->for_tools : api->plain;
    WK_TRY(read_variables(x, &conversation.variables, err));
    WK_TRY(set_arguments(x, WK_JSON_OBJECT, err));
    wick_error first = {.status = WICK_OK};
    if (wick_template_render(compiled, &conversation, prompt, &first) == WICK_OK) return WICK_OK;
    WK_TRY(set_arguments(x, WK_JSON_STRING, err));
    const wick_status status = wick_template_render(compiled, &conversation, prompt, err);
    (void)set_arguments(x, WK_JSON_OBJECT, err);
    return status;
}

/* The messages as they are, or else as the template does not refuse them. */
static wick_status render_fitting(wick_exchange *x, const wk_json *tools, wick_error *err) {
    static const unsigned fits[] = {WK_FIT_MERGED, WK_FIT_NO_SYSTEM, WK_FIT_NO_CALLS,
                                    WK_FIT_NO_CALLS | WK_FIT_NO_SYSTEM};
    const wk_json *const given = x->messages;
    wick_status status = render(x, tools, MOST_STEPS, &x->rendered, err);
    const wick_status first = status;
    for (size_t i = 0; i < sizeof fits / sizeof *fits && status == WICK_ERR_VALUE; i++) {
        wick_error ignored = {.status = WICK_OK};
        wk_json *const made = wk_messages_fit(x, given, fits[i]);
        if (!made) return wk_fail_memory(err, 0, "a prompt");
        x->messages = made;
        status = render(x, tools, MOST_AGAIN, &x->rendered, &ignored);
    }
    return status == WICK_OK ? WICK_OK : first;
}

static bool is_same(const wick_prompt *a, const wick_prompt *b) {
    size_t n_a, n_b;
    const char *const text_a = wick_prompt_text(a, &n_a), *const text_b = wick_prompt_text(b, &n_b);
    return n_a == n_b && memcmp(text_a, text_b, n_a) == 0;
}

/* A template that has no place for tools says the same with them and without. */
static bool tells_tools(wick_exchange *x) {
    wick_prompt *without = NULL;
    wick_error ignored = {.status = WICK_OK};
    const bool is_told = render(x, NULL, MOST_STEPS, &without, &ignored) != WICK_OK ||
                         !is_same(x->rendered, without);
    wick_prompt_free(without);
    return is_told;
}

wick_status wk_prompt_render(wick_exchange *x, wick_error *err) {
    wk_json *const given = x->messages;
    WK_TRY(render_fitting(x, x->tools, err));
    if (x->tools && !tells_tools(x)) {
        x->has_tools_in_words = true;
        x->messages = given;
        wick_prompt_free(x->rendered);
        x->rendered = NULL;
        WK_TRY(wk_tools_in_words(x, err));
        WK_TRY(render_fitting(x, NULL, err));
    }
    return wk_prefill_append(x, err);
}

static wick_status make_prompts(wick_exchange *x, size_t n, wick_error *err) {
    x->prompts = wk_arena_array(&x->arena, n, sizeof *x->prompts);
    if (!x->prompts) return wk_fail_memory(err, n * sizeof *x->prompts, "a prompt");
    x->n_prompts = (uint32_t)n;
    return WICK_OK;
}

wick_status wk_prompt_of_chat(wick_exchange *x, wick_error *err) {
    wk_str text = {.size = 0};
    WK_TRY(wk_prompt_render(x, err));
    WK_TRY(make_prompts(x, 1, err));
    text.text = wick_prompt_text(x->rendered, &text.size);
    WK_TRY(estimate(x, text, x->prompts, err));
    if (x->prompts->n_estimated > 0) return WICK_OK;
    return take_ids(x, x->rendered, text, 0, x->prompts, err);
}

/* Ids; texts between them are tokenized (llama-server's mixed prompts). */
wick_status wk_ids_of_list(wick_exchange *x, const wk_json *list, wk_ids *out, wick_error *err) {
    const uint32_t n_vocab = wick_tokenizer_size(x->api->model->tokenizer);
    if (list->kind != WK_JSON_ARRAY || list->count == 0)
        return wk_fail(err, WICK_ERR_VALUE, "token ids must be an array of at least one");
    size_t most = list->count;
    for (const wk_json *item = list->child; item; item = item->next)
        if (item->kind == WK_JSON_STRING) most += item->string.size + 2;
    out->ids = wk_arena_array(&x->arena, most, sizeof *out->ids);
    if (!out->ids) return wk_fail_memory(err, most * sizeof *out->ids, "a prompt");
    for (const wk_json *item = list->child; item; item = item->next) {
        wk_ids part = {.n = 0};
        if (item->kind == WK_JSON_STRING) {
            WK_TRY(take_ids(x, NULL, item->string, WICK_TOKENIZE_PARSE_SPECIAL, &part, err));
            if (part.n > most - out->n)
                return wk_fail(err, WICK_ERR_VALUE, "a text has more tokens than bytes");
            memcpy(out->ids + out->n, part.ids, part.n * sizeof *part.ids);
            out->n += part.n;
            continue;
        }
        if (item->kind != WK_JSON_NUMBER || !item->is_integer || item->integer < 0 ||
            item->integer >= n_vocab)
            return wk_fail(err, WICK_ERR_VALUE, "a token id must be a number below %u", n_vocab);
        out->ids[out->n++] = (uint32_t)item->integer;
    }
    return out->n > 0 ? WICK_OK : wk_fail(err, WICK_ERR_VALUE, "there is no token");
}

static wick_status read_prompt(wick_exchange *x, const wk_json *given, wk_ids *out,
                               wick_error *err) {
    enum { FLAGS = WICK_TOKENIZE_ADD_BEGIN | WICK_TOKENIZE_PARSE_SPECIAL };
    const wk_json *const inner = wk_json_get(given, "prompt_string");
    if (inner && inner->kind == WK_JSON_STRING && !wk_json_get(given, "multimodal_data"))
        given = inner; /* llama-server's form of a text with images, without one */
    out->text = given->kind == WK_JSON_STRING ? given->string : (wk_str){.size = 0};
    if (out->text.text) {
        WK_TRY(estimate(x, out->text, out, err));
        return out->n_estimated > 0 ? WICK_OK : take_ids(x, NULL, out->text, FLAGS, out, err);
    }
    if (given->kind == WK_JSON_ARRAY) return wk_ids_of_list(x, given, out, err);
    return wk_fail(err, WICK_ERR_VALUE, "prompt must be a text, an array of token ids, or several");
}

bool wk_json_is_list_of_prompts(const wk_json *given) {
    if (given->kind != WK_JSON_ARRAY) return false;
    for (const wk_json *item = given->child; item; item = item->next)
        if (item->kind == WK_JSON_NUMBER) return false;
    return given->child != NULL;
}

wick_status wk_prompts_of_texts(wick_exchange *x, const wk_json *given, wick_error *err) {
    enum { MOST = 128 };
    if (!given) return wk_fail(err, WICK_ERR_VALUE, "there is no prompt");
    const bool is_list = wk_json_is_list_of_prompts(given);
    if (is_list && given->count > MOST)
        return wk_fail(err, WICK_ERR_VALUE, "prompt: at most %d prompts in a request", MOST);
    WK_TRY(make_prompts(x, is_list ? given->count : 1, err));
    const wk_json *item = is_list ? given->child : given;
    for (uint32_t i = 0; i < x->n_prompts; i++, item = item->next)
        WK_TRY(read_prompt(x, item, &x->prompts[i], err));
    return WICK_OK;
}
