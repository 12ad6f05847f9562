/* text/chat_template.c: conversations through templates, as transformers' apply_chat_template
 * prepares them, and the prompts they become. */
#include "text/prompt.h"

#include "text/jinja/jinja.h"
#include "text/tokenize/marked.h"

#include <wick/chat.h>

#include <string.h>

struct wick_template {
    wk_heap heap;
    wk_arena arena;
    wk_jinja_template *compiled;
};

struct wick_prompt {
    wk_heap heap;
    wk_arena arena;
    wk_jinja_result result;
};

/* ---- Templates ---- */

wick_status wick_template_parse(const char *text, size_t size, wick_template **out,
                                wick_error *error) {
    if (out != NULL) *out = NULL;
    if (out == NULL || (text == NULL && size > 0))
        return wk_fail(error, WICK_ERR_ARGUMENT, "wick_template_parse: an argument is NULL");
    wk_heap heap;
    wk_heap_init(&heap, NULL);
    wick_template *const made = wk_alloc_zeroed(&heap, sizeof *made);
    if (made == NULL) return wk_fail_memory(error, sizeof *made, "a template");
    made->heap = heap;
    wk_arena_init(&made->arena, &made->heap, 0);
    const wick_status status =
        wk_jinja_parse(&made->arena, (wk_str){text, size}, &made->compiled, error);
    if (status != WICK_OK)
        wick_template_free(made);
    else
        *out = made;
    return status;
}

void wick_template_free(wick_template *compiled) {
    if (compiled == NULL) return;
    wk_arena_release(&compiled->arena);
    wk_heap heap = compiled->heap;
    wk_free(&heap, compiled, sizeof *compiled);
}

/* ---- Messages as templates expect them ---- */

/* What a conversation is prepared with. */
typedef struct preparing {
    wk_arena *arena;
    wick_error *err;
} preparing;

static wick_status make(const preparing *p, wk_json value, wk_json **out) {
    *out = wk_arena_alloc(p->arena, sizeof **out);
    if (*out == NULL) return wk_fail_memory(p->err, sizeof **out, "a conversation");
    **out = value;
    return WICK_OK;
}

static wick_status append_copy(const preparing *p, wk_json *list, wk_str key, const wk_json *from) {
    wk_json *item;
    WK_TRY(make(p, *from, &item));
    item->key = key;
    wk_json_append(list, item);
    return WICK_OK;
}

/* The name under which a message has its reasoning: the first of these that has a value. */
static const wk_json *find_reasoning(const wk_json *message) {
    static const char *const names[] = {"reasoning_content", "thinking", "reasoning"};
    for (size_t i = 0; i < WK_COUNT(names); i++) {
        const wk_json *const found = wk_json_get(message, names[i]);
        if (found != NULL && found->kind != WK_JSON_NULL) return found;
    }
    return NULL;
}

/* Without nulls; reasoning under both names, `thinking` as the first member. */
static wick_status prepare_message(const preparing *p, const wk_json *message, wk_json *list) {
    if (message->kind != WK_JSON_OBJECT) return append_copy(p, list, message->key, message);
    const wk_json *const reasoning = find_reasoning(message);
    const wk_json *const thinking = wk_json_get(message, "thinking");
    const bool has_thinking = thinking != NULL && thinking->kind != WK_JSON_NULL;
    wk_json *copy;
    bool has_content = false;
    WK_TRY(make(p, (wk_json){.kind = WK_JSON_OBJECT}, &copy));
    if (reasoning != NULL)
        WK_TRY(append_copy(p, copy, wk_str_of("thinking"), has_thinking ? thinking : reasoning));
    for (const wk_json *member = message->child; member != NULL; member = member->next) {
        const bool is_content = wk_str_is(member->key, "reasoning_content");
        const bool is_thinking = wk_str_is(member->key, "thinking");
        if (member->kind == WK_JSON_NULL || (is_thinking && reasoning != NULL)) continue;
        WK_TRY(append_copy(p, copy, member->key, is_content ? reasoning : member));
        has_content |= is_content;
    }
    if (reasoning != NULL && !has_content)
        WK_TRY(append_copy(p, copy, wk_str_of("reasoning_content"), reasoning));
    wk_json_append(list, copy);
    return WICK_OK;
}

static wick_status prepare_messages(const preparing *p, const wk_json *messages,
                                    const wk_json **out) {
    *out = messages;
    if (messages->kind != WK_JSON_ARRAY) return WICK_OK;
    wk_json *list;
    WK_TRY(make(p, (wk_json){.kind = WK_JSON_ARRAY}, &list));
    for (const wk_json *message = messages->child; message != NULL; message = message->next)
        WK_TRY(prepare_message(p, message, list));
    *out = list;
    return WICK_OK;
}

/* ---- Rendering ---- */

enum { OWN_VARIABLES = 4 };

static wick_status collect_variables(const preparing *p, const wick_conversation *c,
                                     wk_jinja_variable *to, size_t *n) {
    static const wk_json null = {.kind = WK_JSON_NULL}, none = {.kind = WK_JSON_ARRAY};
    const wk_json *messages = c->messages;
    wk_json *prompt;
    if (!c->is_raw) WK_TRY(prepare_messages(p, messages != NULL ? messages : &none, &messages));
    if (messages != NULL) to[(*n)++] = (wk_jinja_variable){wk_str_of("messages"), messages, false};
    if (c->generation_prompt != WICK_GENERATION_PROMPT_UNSET) {
        const bool is_on = c->generation_prompt == WICK_GENERATION_PROMPT_ON;
        WK_TRY(make(p, (wk_json){.kind = WK_JSON_BOOL, .boolean = is_on}, &prompt));
        to[(*n)++] = (wk_jinja_variable){wk_str_of("add_generation_prompt"), prompt, true};
    }
    if (c->tools != NULL || !c->is_raw)
        to[(*n)++] = (wk_jinja_variable){wk_str_of("tools"), c->tools ? c->tools : &null, false};
    if (c->documents != NULL || !c->is_raw)
        to[(*n)++] =
            (wk_jinja_variable){wk_str_of("documents"), c->documents ? c->documents : &null, false};
    const wk_json *member = c->variables != NULL ? c->variables->child : NULL;
    for (; member != NULL; member = member->next)
        to[(*n)++] = (wk_jinja_variable){member->key, member, true};
    return WICK_OK;
}

static wick_status render(const wick_template *compiled, const wick_conversation *c,
                          wick_prompt *prompt, wick_error *err) {
    const preparing p = {&prompt->arena, err};
    const size_t most = OWN_VARIABLES + (c->variables != NULL ? c->variables->count : 0);
    wk_jinja_variable *const variables = wk_arena_array(&prompt->arena, most, sizeof *variables);
    if (variables == NULL) return wk_fail_memory(err, most * sizeof *variables, "a conversation");
    size_t n = 0;
    WK_TRY(collect_variables(&p, c, variables, &n));
    const wk_jinja_desc desc = {
        .variables = variables,
        .n_variables = n,
        .now = {c->now.year, c->now.month, c->now.day, c->now.hour, c->now.minute, c->now.second},
        .max_steps = c->max_steps,
        .stops = c->stops,
        .stop_context = c->stop_context};
    return wk_jinja_render(&prompt->arena, compiled->compiled, &desc, &prompt->result, err);
}

wick_status wick_template_render(const wick_template *compiled,
                                 const wick_conversation *conversation, wick_prompt **out,
                                 wick_error *error) {
    if (out != NULL) *out = NULL;
    if (compiled == NULL || conversation == NULL || out == NULL)
        return wk_fail(error, WICK_ERR_ARGUMENT, "wick_template_render: an argument is NULL");
    wk_heap heap;
    wk_heap_init(&heap, NULL);
    wick_prompt *const prompt = wk_alloc_zeroed(&heap, sizeof *prompt);
    if (prompt == NULL) return wk_fail_memory(error, sizeof *prompt, "a prompt");
    prompt->heap = heap;
    wk_arena_init(&prompt->arena, &prompt->heap, 0);
    const wick_status status = render(compiled, conversation, prompt, error);
    if (status != WICK_OK)
        wick_prompt_free(prompt);
    else
        *out = prompt;
    return status;
}

void wick_prompt_free(wick_prompt *prompt) {
    if (prompt == NULL) return;
    wk_arena_release(&prompt->arena);
    wk_heap heap = prompt->heap;
    wk_free(&heap, prompt, sizeof *prompt);
}

const char *wick_prompt_text(const wick_prompt *prompt, size_t *size) {
    if (size != NULL) *size = prompt != NULL ? prompt->result.text.size : 0;
    return prompt != NULL ? prompt->result.text.text : NULL;
}

wick_status wk_prompt_append(wick_prompt *prompt, wk_str text, bool is_of_template) {
    const wk_str before = prompt->result.text;
    const size_t size = before.size + text.size;
    char *const made = wk_arena_alloc(&prompt->arena, size + 1);
    uint8_t *const origin = wk_arena_alloc(&prompt->arena, size + 1);
    if (made == NULL || origin == NULL) return WICK_ERR_OUT_OF_MEMORY;
    memcpy(made, before.text, before.size);
    memcpy(made + before.size, text.text, text.size);
    made[size] = '\0';
    memset(origin, 0, size);
    if (prompt->result.origin != NULL) memcpy(origin, prompt->result.origin, before.size);
    memset(origin + before.size, !is_of_template, text.size);
    prompt->result.text = (wk_str){made, size};
    prompt->result.origin = origin;
    return WICK_OK;
}

wick_status wick_prompt_tokenize(const wick_prompt *prompt, const wick_tokenizer *tokenizer,
                                 uint32_t *ids, size_t capacity, size_t *count) {
    if (prompt == NULL || tokenizer == NULL || count == NULL || (ids == NULL && capacity > 0))
        return WICK_ERR_ARGUMENT;
    *count = 0;
    return wk_tokenize_marked(tokenizer, prompt->result.text, prompt->result.origin, ids, capacity,
                              count);
}
