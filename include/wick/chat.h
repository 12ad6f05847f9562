/* wick/chat.h: conversations as the text that a model was trained on: chat templates.
 *
 * A model's file carries a template in the language of Jinja 2; docs/chat.md tells what of it is
 * there. Rendering keeps apart what the template says and what came from messages: a special token
 * that stands in a user's text stays text. */
#ifndef WICK_CHAT_H
#define WICK_CHAT_H

#include <wick/json.h>
#include <wick/model.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct wick_template wick_template;
typedef struct wick_prompt wick_prompt;

/* Copies the text. WICK_ERR_FORMAT: it is no template; the sentence names the line. */
WICK_API wick_status wick_template_parse(const char *text, size_t size, wick_template **out,
                                         wick_error *error);
WICK_API void wick_template_free(wick_template *compiled);

/* The template in a model's metadata: tokenizer.chat_template, or tokenizer.chat_template.NAME
 * ("tool_use" and the like). WICK_ERR_NOT_FOUND: it has none of that name. */
WICK_API wick_status wick_model_template(const wick_model *model, const char *name,
                                         wick_template **out, wick_error *error);

/* A local time, for templates that tell the date. Zeros: 1970-01-01. */
typedef struct wick_time_of_day {
    int year, month, day, hour, minute, second; /* month and day from 1 */
} wick_time_of_day;

typedef enum wick_generation_prompt {
    WICK_GENERATION_PROMPT_OFF,
    WICK_GENERATION_PROMPT_ON,    /* the text ends where the assistant's answer begins */
    WICK_GENERATION_PROMPT_UNSET, /* where is_raw: the variable does not exist */
} wick_generation_prompt;

typedef struct wick_conversation {
    const wick_json *messages;  /* an array of {"role": ..., "content": ...} */
    const wick_json *tools;     /* an array of functions as JSON schemas; NULL: none */
    const wick_json *documents; /* NULL: none */
    /* Further variables, each a member of an object, or NULL. They count as the template's own
     * text. bos_token and eos_token belong here. */
    const wick_json *variables;
    wick_generation_prompt generation_prompt;
    /* Messages are passed as they are, and what is NULL does not exist. Else, as transformers has
     * it, members that are null are left out, what reasoning there is also is `thinking` and
     * `reasoning_content`, and tools and documents are none where there are none. */
    bool is_raw;
    wick_time_of_day now;
} wick_conversation;

/* WICK_ERR_VALUE: the template failed; the sentence names the line, or is what the template raised.
 * Time, memory and output are limited. */
WICK_API wick_status wick_template_render(const wick_template *compiled,
                                          const wick_conversation *conversation, wick_prompt **out,
                                          wick_error *error);
WICK_API void wick_prompt_free(wick_prompt *prompt);
/* UTF-8, terminated; it may hold zero bytes. */
WICK_API const char *wick_prompt_text(const wick_prompt *prompt, size_t *size);
/* The ids of the prompt: special tokens are those that the template wrote, whole. The model's begin
 * token is put first where its metadata wants it and the template has not. As wick_tokenize. */
WICK_API wick_status wick_prompt_tokenize(const wick_prompt *prompt,
                                          const wick_tokenizer *tokenizer, uint32_t *ids,
                                          size_t capacity, size_t *count);

#ifdef __cplusplus
}
#endif

#endif
