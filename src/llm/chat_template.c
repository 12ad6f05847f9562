/* llm/chat_template.c: the chat template of a model. */
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
