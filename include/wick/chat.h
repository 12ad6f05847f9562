/* wick/chat.h: conversations with a model (wick_chat), the chat templates that they are written
 * with (wick_template), and what an answer consists of (wick_answer).
 *
 * A model's file carries a template in the language of Jinja 2; docs/chat.md lists what is
 * supported. Rendering keeps the template's text apart from that of messages: a special token in a
 * user's text stays text. */
#ifndef WICK_CHAT_H
#define WICK_CHAT_H

#include <wick/json.h>
#include <wick/model.h>
#include <wick/session.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct wick_template wick_template;
typedef struct wick_prompt wick_prompt;

/* Copies the text. WICK_ERR_FORMAT: it does not parse; the sentence names the line. */
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
    /* The most that the template may do, in steps: an operation, or 16 bytes looked at. 0: 80
     * million, which take one to four seconds and which no honest template comes near. */
    uint64_t max_steps;
    /* Asked every few thousand steps, so about once in a millisecond, with stop_context; true ends
     * the rendering with WICK_ERR_CANCELLED: for a deadline by the clock, or a user who waits no
     * longer. NULL: never. */
    bool (*stops)(void *stop_context);
    void *stop_context;
} wick_conversation;

/* WICK_ERR_VALUE: the template failed or reached a limit of steps, memory (256 MiB) or nesting; the
 * sentence names the line, or is what the template raised. WICK_ERR_CANCELLED: stops said so. */
WICK_API wick_status wick_template_render(const wick_template *compiled,
                                          const wick_conversation *conversation, wick_prompt **out,
                                          wick_error *error);
WICK_API void wick_prompt_free(wick_prompt *prompt);
/* UTF-8, terminated; it may hold zero bytes. */
WICK_API const char *wick_prompt_text(const wick_prompt *prompt, size_t *size);
/* The ids of the prompt: special tokens are those that the template wrote, whole. The model's begin
 * token is put first where its metadata wants it and the template did not write it. As
 * wick_tokenize. */
WICK_API wick_status wick_prompt_tokenize(const wick_prompt *prompt,
                                          const wick_tokenizer *tokenizer, uint32_t *ids,
                                          size_t capacity, size_t *count);

/* ---- A conversation: a model, its messages and their template, and one session ---- */

typedef struct wick_chat wick_chat;

/* The variable `enable_thinking` of the template. */
typedef enum wick_thinking {
    WICK_THINKING_DEFAULT, /* not set: the template decides */
    WICK_THINKING_OFF,
    WICK_THINKING_ON,
} wick_thinking;

/* Texts are copied. */
typedef struct wick_chat_desc {
    /* Sampler, context length, stop strings, max_tokens of one answer ...; logits must be NONE. */
    wick_session_desc session;
    const char *system; /* the system message; NULL or "": none */
    /* NULL: the model's own; with tools, the one that it has for them ("tool_use"), if any. */
    const char *chat_template;
    const char *tools; /* a JSON array of functions as OpenAI's API has them; NULL: none */
    wick_thinking thinking;
    wick_time_of_day now; /* for templates that tell the date */
    /* As in wick_conversation, asked while the template renders: true ends that, and the call that
     * wanted it fails with WICK_ERR_CANCELLED. NULL: never. */
    bool (*stops)(void *stop_context);
    void *stop_context;
} wick_chat_desc;

/* The model must outlive the conversation. desc may be NULL. WICK_ERR_NOT_FOUND: the model has no
 * chat template and desc gives none; WICK_ERR_FORMAT: the template or the tools do not parse; what
 * wick_session_open returns. */
WICK_API wick_status wick_chat_open(wick_model *model, const wick_chat_desc *desc, wick_chat **chat,
                                    wick_error *error);
/* NULL is allowed. */
WICK_API void wick_chat_close(wick_chat *chat);

/* Adds text as a message of the user and begins the answer, which wick_chat_next or wick_chat_step
 * brings; NULL: the answer to the messages as they are. Nothing is computed yet. What the session
 * still holds of the conversation is not computed again.
 *
 * Where the context has no room for the conversation and a quarter of the context for the answer
 * (for max_tokens, if those are fewer), the oldest turns are not shown to the model any more: a
 * turn is a user's message and all up to the next one. The system message and the last turn always
 * stay. The first event says how many messages were left out; the list of messages keeps them.
 *
 * A failure changes nothing. WICK_ERR_STATE: there is no message, or the system message and the
 * last turn alone fill the context; WICK_ERR_VALUE: the template refuses the messages;
 * WICK_ERR_CANCELLED: stops said so. */
WICK_API wick_status wick_chat_send(wick_chat *chat, const char *text);

/* The next event of the answer, as wick_session_step and wick_session_next. The answer is the last
 * message and grows with each event, until END. An answer that is not stepped to its END stays as
 * far as it has come: any call that changes the conversation ends it. Where an answer fills the
 * context, turns are left out as in wick_chat_send, with an event, and it goes on; it ends with
 * WICK_END_CONTEXT_FULL where no turn is left to leave out.
 *
 * After a failure the conversation is what it was before wick_chat_send, and can go on. An answer
 * that has filled the context stays where leaving out turns fails, such as by a template that
 * refuses the shorter conversation; the next call gives its END with WICK_END_CONTEXT_FULL. */
WICK_API wick_status wick_chat_step(wick_chat *chat, wick_event *event);
/* Native only. */
WICK_API wick_status wick_chat_next(wick_chat *chat, wick_event *event);

/* Why the last call with this conversation failed; WICK_OK: it did not. error may be NULL. */
WICK_API wick_status wick_chat_error(const wick_chat *chat, wick_error *error);

/* All messages: an array of objects {"role": ..., "content": ...}; valid until the next call that
 * changes or steps the conversation. */
WICK_API const wick_json *wick_chat_messages(const wick_chat *chat);
/* Adds a message at the end: of the "tool" whose result it is, an example of an answer of the
 * "assistant" ... Bytes that are not UTF-8 become U+FFFD. */
WICK_API wick_status wick_chat_add(wick_chat *chat, const char *role, const char *content,
                                   size_t size);
/* Adds a copy of a message with any members the template knows ("tool_calls", "tool_call_id" ...).
 * WICK_ERR_VALUE: it is not an object with a text as its "role". */
WICK_API wick_status wick_chat_add_json(wick_chat *chat, const wick_json *message);
/* A copy of messages, an array as wick_chat_messages gives it, replaces those that there are. A
 * failure changes nothing. */
WICK_API wick_status wick_chat_set_messages(wick_chat *chat, const wick_json *messages);
/* Replaces the system message at the beginning. NULL or "": there is none. */
WICK_API wick_status wick_chat_set_system(wick_chat *chat, const char *text);
/* Keeps the first n messages: 0 begins again; to ask the last question again, keep all up to it and
 * send NULL. */
WICK_API void wick_chat_cut(wick_chat *chat, size_t n);

/* As wick_session_configure, for the answers to come. */
WICK_API wick_status wick_chat_configure(wick_chat *chat, const wick_session_desc *desc,
                                         wick_error *error);
/* The text that the template made for the last answer: UTF-8, terminated. NULL: none yet. */
WICK_API const char *wick_chat_prompt(const wick_chat *chat, size_t *size);
/* Its session, for figures (wick_session_get_stats) and saving; it belongs to the conversation. */
WICK_API wick_session *wick_chat_session(wick_chat *chat);

/* ---- An answer: content, reasoning, calls of tools ---- */

/* Cuts the text of a model, as it comes, at the tags that models put around their thinking and
 * around calls of tools. A tag of thinking counts where nothing but blanks comes before it, or
 * between it and the call or the thinking before it; elsewhere it is content. Needs no model;
 * belongs to one thread at a time. */
typedef struct wick_answer wick_answer;

typedef enum wick_answer_kind {
    WICK_ANSWER_CONTENT,
    WICK_ANSWER_REASONING,
    WICK_ANSWER_CALL,
} wick_answer_kind;

/* What the text of a call looks like, by its tags. */
typedef enum wick_call_format {
    WICK_CALL_NONE,       /* the span is not a call */
    WICK_CALL_JSON,       /* no tags: the whole answer is JSON, see wick_answer_desc.has_tools */
    WICK_CALL_HERMES,     /* <tool_call> ... </tool_call>: Hermes, Qwen, GLM */
    WICK_CALL_SEED,       /* <seed:tool_call> ... </seed:tool_call> */
    WICK_CALL_PIPES,      /* <|tool_call|> ... <|/tool_call|>: Phi-4-mini; JSON between other tags:
                           * Nemotron, Command R7B, Apriel */
    WICK_CALL_PYTHON_TAG, /* <|python_tag|> ... to the end: Llama 3.1 */
    WICK_CALL_MISTRAL,    /* [TOOL_CALLS] ... to the end */
    WICK_CALL_FUNCTION,   /* <function=NAME>...</function>, the text from NAME on: Functionary */
    WICK_CALL_LIST,       /* <|tool_call_start|> ... <|tool_call_end|>: LFM2 */
    WICK_CALL_DEEPSEEK,   /* tool calls begin ... tool calls end, in DeepSeek's own brackets */
    WICK_CALL_KIMI,       /* <|tool_calls_section_begin|> ... <|tool_calls_section_end|> */
    WICK_CALL_CHANNEL, /* <|channel|>commentary to= ... <|call|>, the text from the name on: gpt-oss
                        */
    WICK_CALL_BRACES,  /* <|tool_call> ... <tool_call|>: Gemma 4 */
    WICK_CALL_INVOKE,  /* <invoke> of parameters in tags: MiniMax, DeepSeek V3.2 */
    WICK_CALL_KEYED,   /* <|tools_prefix|> ... <|tools_suffix|>: Apertus */
    WICK_CALL_FUNCTOOLS, /* functools[ ... to the end: Firefunction */
} wick_call_format;

typedef struct wick_answer_desc {
    /* What the model answers (wick_chat_prompt): where it ends in a tag that opens thinking, the
     * answer begins with reasoning. Read by wick_answer_open alone. NULL: none. */
    const char *prompt;
    size_t prompt_size;
    bool has_tools; /* the prompt lists tools: an answer that begins with { is a call */
    /* The tools that it lists, an array of functions as wick_conversation has them, for
     * wick_answer_calls. Copied. NULL: they are not known. */
    const wick_json *tools;
} wick_answer_desc;

/* A part of the answer, without tags. Content and reasoning come as many spans, as early as
 * possible and in whole characters; a call is one span. */
typedef struct wick_answer_span {
    wick_answer_kind kind;
    wick_call_format format; /* of a call */
    const char *text; /* [size], not terminated; the answer's, until the next feed or close */
    size_t size;      /* may be 0 where open or close is not NULL */
    /* Of reasoning and calls. The tag that it begins with, which for reasoning may be the prompt's,
     * and "" for a call without tags; NULL: it goes on from the span before. */
    const char *open;
    /* The tag that it ends with; "": the answer has ended without one; NULL: it goes on. */
    const char *close;
} wick_answer_span;

/* desc may be NULL. Close the answer with wick_answer_close. WICK_ERR_OUT_OF_MEMORY. */
WICK_API wick_status wick_answer_open(const wick_answer_desc *desc, wick_answer **answer);
/* NULL is allowed. */
WICK_API void wick_answer_close(wick_answer *answer);
/* More text, copied; it may be cut anywhere, also inside of a tag or of a character. Take the spans
 * with wick_answer_next afterwards. A failure takes nothing: WICK_ERR_OUT_OF_MEMORY;
 * WICK_ERR_STATE: after wick_answer_finish. */
WICK_API wick_status wick_answer_feed(wick_answer *answer, const char *text, size_t size);
/* No more text comes: what was held back, because it could have become a tag or because a call was
 * not complete, is in the spans that follow. */
WICK_API void wick_answer_finish(wick_answer *answer);
/* The next span; false: there is none before more text comes. */
WICK_API bool wick_answer_next(wick_answer *answer, wick_answer_span *span);
/* What the last span calls, in the form of any family, as JSON:
 * [{"name": ..., "arguments": {...}}, ...]. A value that a form does not give a type has that of
 * the tool's parameter. UTF-8, terminated; the answer's, until its next call. NULL: the span is no
 * call, or none that is understood, as one that was cut off; also after wick_answer_feed, and where
 * memory is short. size may be NULL. */
WICK_API const char *wick_answer_calls(wick_answer *answer, size_t *size);

#ifdef __cplusplus
}
#endif

#endif
