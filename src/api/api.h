/* api/api.h: exchanges: requests of the APIs and their answers, for the files of this folder. */
#ifndef WK_API_API_H
#define WK_API_API_H

#include "chat/call.h"
#include "core/json_write.h"
#include "llm/llm.h"

#include <wick/api.h>
#include <wick/embed.h>

/* How often something took how long. */
enum { WK_N_BUCKETS = 15 };
typedef struct wk_histogram {
    uint64_t counts[WK_N_BUCKETS];
    double sum; /* seconds */
} wk_histogram;

/* Of all exchanges so far. */
typedef struct wk_totals {
    uint64_t n_prompt, n_generated; /* tokens computed */
    double prompt_seconds, generate_seconds;
    wk_histogram first, between, queued; /* to the first token, between tokens, in the queue */
} wk_totals;

typedef struct wk_exchanges {
    wick_exchange *first, *last;
    uint32_t n;
} wk_exchanges;

struct wick_api {
    wick_model *model;
    wk_heap *heap; /* the model's */
    wk_arena arena;
    wick_session_desc session;
    const char *name;
    char build[32]; /* "wick-0.1.0" */
    wk_totals totals;
    bool is_encoder;                  /* the model generates no text */
    wick_embedder *embedder;          /* NULL: not asked for yet */
    const wick_exchange *embedding;   /* that has it; NULL: none */
    wick_template *plain, *for_tools; /* for_tools NULL: plain */
    uint32_t n_parallel, max_queue;
    uint32_t n_running; /* texts that have a session, and embeddings: n_parallel at most */
    uint64_t n_opened;
    wk_exchanges queued, running; /* in the order of their requests; one that is over is in none */
};

typedef enum wk_tool_choice {
    WK_TOOLS_AUTO,
    WK_TOOLS_NONE,
    WK_TOOLS_REQUIRED, /* any of the tools */
} wk_tool_choice;

/* What the model reads. */
typedef struct wk_ids {
    uint32_t *ids; /* [n] */
    size_t n;
    wk_str text; /* that they were made of, where they were */
} wk_ids;

/* What a stream is writing, in APIs whose answers are lists of blocks. */
typedef enum wk_block_kind {
    WK_BLOCK_NONE,
    WK_BLOCK_TEXT,
    WK_BLOCK_REASONING,
    WK_BLOCK_CALL,
} wk_block_kind;

/* One of the texts that a request asks for. */
typedef struct wk_choice {
    wick_exchange *exchange;
    const wk_ids *prompt;
    uint32_t index;
    wick_session *session; /* NULL: not begun, or over; it is one of n_running */
    wick_answer *answer;   /* of a chat */
    bool is_over, has_text;
    wick_end_reason reason;
    uint32_t n_calls;
    wk_block_kind block;
    uint32_t n_blocks;
    wk_strbuf content, reasoning; /* of an answer that is written at its end */
    wk_strbuf calls, logprobs;    /* items of arrays, as JSON */
    wick_session_stats stats;     /* at its end */
    uint64_t last_ns;             /* of its latest token, by wk_clock_ns; 0: none yet */
} wk_choice;

/* embeddings.c: texts that become vectors. */
typedef struct wk_embedding wk_embedding;

/* How an API writes what is generated. */
typedef struct wk_style {
    bool is_chat;
    const char *stream_type;                /* NULL: text/event-stream */
    void (*begin)(wick_exchange *exchange); /* of a stream; NULL: nothing */
    void (*text)(wk_choice *choice, bool is_reasoning, wk_str text);
    void (*call)(wk_choice *choice, const wk_tool_call *call);
    void (*end)(wk_choice *choice);
    void (*finish)(wick_exchange *exchange); /* after the last choice */
    /* Into part; NULL: in OpenAI's shape. */
    void (*error)(wick_exchange *exchange, int status, const char *message);
} wk_style;

extern const wk_style wk_chat_style, wk_completion_style, wk_native_style, wk_responses_style,
    wk_messages_style, wk_ollama_style;

struct wick_exchange {
    wick_api *api;
    wk_exchanges *list; /* NULL: it is over */
    wick_exchange *previous, *next;
    wk_heap *heap;
    wk_arena arena;       /* of the request */
    wk_json *body;        /* as an OpenAI chat or completion has it, */
    const wk_json *given; /* and before it was translated; NULL: it was not */
    wk_str path;
    int64_t time;
    char id[48];
    const char *number; /* the end of id: that of the request */

    uint64_t opened_ns; /* by wk_clock_ns */
    bool is_paused;
    int status;
    const char *type;
    bool has_events;     /* of a stream: its status is sent */
    uint32_t n_events;   /* of a stream that numbers them */
    wk_strbuf out, part; /* part: the event that is being written */
    size_t n_taken;      /* bytes of out that were given */

    wk_embedding *embedding; /* NULL: text is generated */
    /* What is generated. */
    const wk_style *style;
    wick_session_desc desc;
    bool is_stream, includes_usage, echoes, has_logprobs;
    bool has_no_tokens;      /* max_tokens is 0 */
    bool has_tools_in_words; /* the template has no place for them */
    wk_tool_choice tool_choice;
    wk_json *messages;
    const wk_json *tools, *variables;
    wick_prompt *rendered; /* of a chat */
    uint32_t n_top;        /* most likely tokens, beside each one */
    wk_ids *prompts;       /* [n_prompts] */
    uint32_t n_prompts, n; /* texts for each prompt */
    wk_choice *choices;    /* [n_choices], those of a prompt one after the other */
    uint32_t n_choices;
};

/* ---- request.c: what a body says; a failure is the client's, and its sentence names the field
 * ---- */

/* stream, stream_options, n; sampler, limits and stop strings, which stay in the exchange's arena.
 */
wick_status wk_request_generation(wick_exchange *x, wick_error *err);
/* messages, tools, tool_choice, response_format. */
wick_status wk_request_chat(wick_exchange *x, wick_error *err);
/* Another API's body becomes one of OpenAI's chat, which write makes of it. */
wick_status wk_request_translate(wick_exchange *x,
                                 void (*write)(wk_strbuf *to, const wk_json *body),
                                 wick_error *err);
/* In such a write: the other API's tools, whose JSON schemas are in the member schema. */
void wk_write_functions(wk_strbuf *to, const wk_json *tools, const char *schema);
/* Fields; the value stays where there is none, or null. */
wick_status wk_request_bool(const wick_exchange *x, const char *key, bool *value, wick_error *err);
wick_status wk_request_whole(const wick_exchange *x, const char *key, uint32_t least, uint32_t most,
                             uint32_t *value, wick_error *err);

/* ---- prompt.c: ids of what the model reads ---- */

/* What the template makes of the messages, up to where the answer begins: x->rendered. */
wick_status wk_prompt_render(wick_exchange *x, wick_error *err);
wick_status wk_prompt_of_chat(wick_exchange *x, wick_error *err);
/* generic_tools.c: the tools become words of the system message (of the first message of the user
 * where the template has no system messages), calls that were made texts. */
wick_status wk_tools_in_words(wick_exchange *x, bool has_system, wick_error *err);
/* A text, ids, or several of either. */
wick_status wk_ids_of_list(wick_exchange *x, const wk_json *list, wk_ids *out, wick_error *err);
wick_status wk_prompts_of_texts(wick_exchange *x, const wk_json *given, wick_error *err);
/* ids of a text, which is at the beginning of what a model reads. */
wick_status wk_ids_of_text(wick_exchange *x, wk_str text, uint32_t flags, wk_ids *out,
                           wick_error *err);

/* ---- The APIs: they answer, or set the exchange up to generate ---- */

wick_status wk_answer_chat(wick_exchange *x, wick_error *err);
wick_status wk_answer_completion(wick_exchange *x, wick_error *err);
wick_status wk_answer_messages(wick_exchange *x, wick_error *err);
wick_status wk_answer_count_tokens(wick_exchange *x, wick_error *err);
wick_status wk_answer_responses(wick_exchange *x, wick_error *err);
wick_status wk_answer_input_tokens(wick_exchange *x, wick_error *err);
/* info.c: how many tokens the messages are; object NULL: the answer does not say what it is. */
wick_status wk_answer_count(wick_exchange *x, const char *object, wick_error *err);
wick_status wk_answer_embeddings(wick_exchange *x, wick_error *err);
/* WICK_PENDING: there is more to do; WICK_OK: the answer is in part. */
wick_status wk_embedding_step(wick_exchange *x, wick_error *err);
wick_status wk_answer_native(wick_exchange *x, wick_error *err);
wick_status wk_answer_metrics(wick_exchange *x, wick_error *err);
wick_status wk_answer_slots(wick_exchange *x, wick_error *err);
wick_status wk_answer_ollama(wick_exchange *x, wick_error *err);
wick_status wk_answer_tags(wick_exchange *x, wick_error *err);
wick_status wk_answer_show(wick_exchange *x, wick_error *err);
wick_status wk_answer_version(wick_exchange *x, wick_error *err);
wick_status wk_answer_models(wick_exchange *x, wick_error *err);
wick_status wk_answer_model(wick_exchange *x, wick_error *err);
wick_status wk_answer_health(wick_exchange *x, wick_error *err);
wick_status wk_answer_props(wick_exchange *x, wick_error *err);
wick_status wk_answer_tokenize(wick_exchange *x, wick_error *err);
wick_status wk_answer_detokenize(wick_exchange *x, wick_error *err);
wick_status wk_answer_template(wick_exchange *x, wick_error *err);

/* ---- answer.c: bytes of answers ---- */

/* The exchange is over, with what is in part. */
void wk_exchange_end(wick_exchange *x, int status);
/* The same with an error in the shape of OpenAI's. After the answer has begun, an event. */
void wk_exchange_fail(wick_exchange *x, int status, const char *message);
/* What is in part becomes an event of the stream, of this type; NULL: without one. */
void wk_exchange_event(wick_exchange *x, const char *type);
/* The same as a line. */
void wk_exchange_line(wick_exchange *x);
/* OpenAI's error, as an object. */
void wk_write_error(wk_strbuf *to, int status, const char *message);
/* Text of an answer that is written at its end. */
void wk_choice_keep_text(wk_choice *choice, bool is_reasoning, wk_str text);
/* Its id, which begins with kind: unlike those of other requests. */
void wk_exchange_name(wick_exchange *x, const char *kind);
/* The members of an OpenAI answer up to the items of its choices. */
void wk_write_head(wick_exchange *x, const char *object);
/* OpenAI's usage of all choices, as a member of the object being written. */
void wk_write_usage(wick_exchange *x);
/* native.c: how fast a choice that is over was, as llama-server shows it. */
void wk_write_timings(wk_strbuf *to, const wk_choice *choice);
/* native.c. */
void wk_histogram_add(wk_histogram *histogram, double seconds);
/* The tokens of an event as OpenAI's chat has them: an item of `content` of logprobs. */
void wk_write_logprob(wk_choice *choice, wk_strbuf *to, const wick_event *event);
/* OpenAI's logprobs of those that wait to be written, as a member; end: what follows them in their
 * object. */
void wk_write_logprobs(wk_choice *choice, bool is_there, const char *end);
const char *wk_finish_reason(const wk_choice *choice);
/* The status of HTTP for a failure of the library. */
int wk_status_of(wick_status status);

#endif
