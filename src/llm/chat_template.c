/* llm/chat_template.c: the chat template of a model, and what it reads of it. */
#include "llm/chat_variables.h"
#include "llm/llm.h"

#include <wick/chat.h>

#include <stdio.h>

wick_status wick_model_template(const wick_model *model, const char *name, wick_template **out,
                                wick_error *error) {
    if (out != NULL) *out = NULL;
    if (model == NULL || out == NULL)
        return wk_fail(error, WICK_ERR_ARGUMENT, "wick_model_template: an argument is NULL");
    char key[128];
    snprintf(key, sizeof key, "tokenizer.chat_template%s%s", name != NULL ? "." : "",
             name != NULL ? name : "");
    const wick_value *const value = wk_gguf_find(model->gguf, key);
    if (value == NULL)
        return wk_fail(error, WICK_ERR_NOT_FOUND, "the model's metadata has no key '%s'", key);
    if (value->type != WICK_VALUE_STRING)
        return wk_fail(error, WICK_ERR_FORMAT, "the metadata key '%s' must be a text", key);
    return wick_template_parse(value->string.text, value->string.size, out, error);
}

wk_json *wk_chat_add_variable(wk_arena *arena, wk_json *variables, const char *key,
                              wk_json_kind kind) {
    wk_json *const made = wk_arena_array(arena, 1, sizeof *made);
    if (!made) return NULL;
    made->kind = kind;
    made->key = wk_str_of(key);
    wk_json_append(variables, made);
    return made;
}

/* Its name; none where the model has no such token. */
static bool add_token(wk_arena *arena, wk_json *variables, const char *key,
                      const wick_tokenizer *tokenizer, uint32_t id) {
    size_t size;
    const char *const text = wick_token_bytes(tokenizer, id, true, &size);
    if (!text) return true;
    wk_json *const made = wk_chat_add_variable(arena, variables, key, WK_JSON_STRING);
    if (made) made->string = (wk_str){text, size};
    return made != NULL;
}

wk_json *wk_chat_variables(wk_arena *arena, const wick_tokenizer *tokenizer) {
    wk_json *const made = wk_arena_array(arena, 1, sizeof *made);
    if (!made) return NULL;
    made->kind = WK_JSON_OBJECT;
    const bool is_made =
        add_token(arena, made, "bos_token", tokenizer, wick_token_begin(tokenizer)) &&
        add_token(arena, made, "eos_token", tokenizer, wick_token_end(tokenizer));
    return is_made ? made : NULL;
}
