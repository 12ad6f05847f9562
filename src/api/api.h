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
    uint64_t n_cached;              /* tokens of prompts that were not */
    uint64_t n_drafted, n_accepted; /* guesses */
    uint64_t n_most;                /* tokens of the longest text */
    uint64_t n_batches,
        n_in_batches; /* steps in which texts were generated; of all of them, the texts */
    double prompt_seconds, generate_seconds;
    wk_histogram first, between, queued; /* to the first token, between tokens, in the queue */
} wk_totals;

typedef struct wk_exchanges {
    wick_exchange *first, *last;
    uint32_t n;
} wk_exchanges;

typedef struct wk_api_choice wk_api_choice;

/* One of the places for texts. */
typedef struct wk_slot {
    const wk_api_choice *choice; /* that is generated there; NULL: none */
    wick_session *kept; /* with a folder for them: the last text's, or one that was loaded */
    bool is_moving;     /* it is being saved or loaded */
} wk_slot;

typedef struct wk_slot_transfer wk_slot_transfer;

struct wick_api {
    wick_model *model;
    wk_heap *heap; /* the model's */
    wk_arena arena;
    wick_session_desc session;
    const char *name, *path;
    const char **aliases, **tags; /* [n_aliases], [n_tags] */
    size_t n_aliases, n_tags;
    wick_api_lora *loras; /* [n_loras] */
    size_t n_loras;
    const char *slot_folder; /* NULL: places are not saved */
    wk_slot *slots;          /* [n_parallel] */
    wick_pooling pooling;
    wick_reasoning_place reasoning;
    int thinking;
    int64_t modified;
    bool has_metrics, has_no_slots, is_verbose;
    bool has_own_template; /* not the one of the file */
    uint32_t ping_interval;
    char build[32]; /* "wick-0.1.0" */
    wk_totals totals;
    bool is_encoder;                  /* the model generates no text */
    wick_embedder *embedder, *ranker; /* NULL: not asked for yet */
    const wick_exchange *embedding;   /* that has it; NULL: none */
    wick_template *plain, *for_tools; /* for_tools NULL: plain */
    uint32_t n_parallel, max_queue;
    uint32_t n_running; /* texts that have a session, and embeddings: n_parallel at most */
    uint32_t n_moving;  /* slots that are saved or loaded: they have no room for texts meanwhile */
    uint64_t n_opened;
    wk_exchanges queued, running; /* in the order of their requests; one that is over is in none */
};

/* What the model reads. */
typedef struct wk_ids {
    uint32_t *ids; /* [n] */
    size_t n;
    wk_str text; /* that they were made of, where they were */
    size_t
        n_estimated; /* 0: they are whole; else they are many more than the context has room for */
} wk_ids;

/* What a stream is writing, in APIs whose answers are lists of blocks. */
typedef enum wk_block_kind {
    WK_BLOCK_NONE,
    WK_BLOCK_TEXT,
    WK_BLOCK_REASONING,
    WK_BLOCK_CALL,
} wk_block_kind;

/* One of the texts that a request asks for. */
struct wk_api_choice {
    wick_exchange *exchange;
    wk_slot *slot; /* while there is a session */
    const wk_ids *prompt;
    uint32_t index;
    uint32_t place;        /* the number of its slot, also at its end */
    wick_session *session; /* NULL: not begun, or over; it is one of n_running */
    wick_answer *answer;   /* of a chat */
    bool is_over, has_text, has_newline, has_progress;
    bool is_continued; /* from a text that its place kept */
    uint32_t n_found;  /* n_reused of the session when it was continued */
    bool is_scoring;   /* the session reads the prompt for its log probabilities */
    bool has_scored;
    bool after_mark;  /* a thought or a call came, and since then no content but blanks */
    bool has_said;    /* content other than blanks */
    bool is_thinking; /* the last span was of a thought, which goes on */
    bool has_thought; /* so is a part of the latest token */
    wick_end_reason reason;
    uint32_t stop;      /* which string ended it */
    uint64_t n_written; /* characters of the tokens whose log probabilities were written */
    uint32_t n_calls;
    uint32_t n_reasoning; /* tokens, up to the end of the tag */
    wk_block_kind block;
    uint32_t n_blocks;
    wk_strbuf content, reasoning; /* of an answer that is written at its end */
    wk_strbuf calls, tokens;      /* items of arrays, as JSON */
    wk_strbuf logprobs;           /* logprobs.c: that wait to be written */
    wk_strbuf blanks;             /* at the end of the content: they wait for what follows */
    wick_session_stats stats;     /* at its end */
    uint64_t last_ns;             /* of its latest token, by wk_clock_ns; 0: none yet */
};

/* embeddings.c: texts that become vectors, or scores. */
typedef struct wk_embedding {
    const char **texts; /* [n] with sizes, or */
    size_t *sizes;
    wk_ids *ids; /* [n], one after the other */
    size_t n, n_done;
    bool is_started, is_base64;
    wk_str query;    /* of a reranker; text NULL: none */
    uint32_t n_dims; /* that are written of each row */
    uint32_t n_row;  /* numbers of a row */
    uint32_t n_best; /* of a reranker: results that are written */
    bool has_texts;  /* which have their texts */
    bool has_tokens; /* a row for each token of a text, without pooling */
    uint64_t n_tokens;
    uint32_t most; /* tokens of a text that are read; 0: all of them */
    bool is_cut;   /* some text is longer */
    float *rows;   /* [n, n_row], or [n_tokens, n_row] */
    size_t n_rows; /* that have come */
    void (*write)(wick_exchange *x);
} wk_embedding;

/* How an API writes what is generated. */
typedef struct wk_style {
    bool is_chat;
    bool has_blocks;                        /* content that goes on after a call is another text */
    const char *stream_type;                /* NULL: text/event-stream */
    void (*begin)(wick_exchange *exchange); /* of a stream; NULL: nothing */
    void (*text)(wk_api_choice *choice, bool is_reasoning, wk_str text);
    void (*call)(wk_api_choice *choice, const wk_tool_call *call);
    void (*end)(wk_api_choice *choice);
    /* How many tokens of the prompt have been read, for streams that ask for it; NULL: nothing. */
    void (*progress)(wk_api_choice *choice, uint64_t processed, uint64_t total);
    void (*finish)(wick_exchange *exchange); /* after the last choice */
    /* NULL: in OpenAI's shape. */
    void (*error)(wk_strbuf *to, int status, const char *message);
    /* As an event, into part; NULL: as error. */
    void (*event_error)(wick_exchange *exchange, int status, const char *message);
    /* Fields of the chat that a request becomes, and what the client calls them; NULL: the same. */
    const char *const (*names)[2]; /* up to one that is NULL */
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
    const char *query; /* NULL: none */
    int64_t time;      /* seconds since 1970 */
    int32_t utc_offset;
    char id[48];
    const char *number; /* the end of id: that of the request */

    uint64_t opened_ns; /* by wk_clock_ns */
    uint64_t event_ns;  /* of the latest event of a stream */
    bool is_paused;
    int status;
    const char *type;
    bool has_events;     /* of a stream: its status is sent */
    uint32_t n_events;   /* of a stream that numbers them */
    wk_strbuf out, part; /* part: the event that is being written */
    size_t n_taken;      /* bytes of out that were given */

    wk_embedding *embedding;    /* NULL: text is generated */
    wk_slot_transfer *transfer; /* NULL: no slot is saved or loaded; one of n_moving */
    /* What is generated. */
    const wk_style *style;
    wick_session_desc desc;
    bool is_stream, includes_usage, echoes, has_logprobs;
    bool has_no_tokens; /* max_tokens is 0 */
    bool keeps_tokens, shows_progress, shows_timings, is_verbose;
    const wk_json *fields; /* of an answer of llama-server's, which are written; NULL: all */
    wick_reasoning_place reasoning;
    int32_t slot;         /* that was asked for; -1: any */
    wick_lora_use *loras; /* [n_loras] */
    size_t n_loras;
    bool has_no_answer_begun;     /* the template does not begin it */
    wk_str begun;                 /* what the answer goes on with; text NULL: nothing */
    bool has_tools_in_words;      /* the template has no place for them */
    bool must_call, has_one_call; /* a tool: at once; once at most */
    bool counts;                  /* tokens are all that is asked for */
    wk_json *messages;
    const wk_json *tools, *variables;
    const wk_json *effort;  /* that templates read as reasoning_effort; NULL: it is not said */
    wick_prompt *rendered;  /* of a chat */
    uint32_t n_top;         /* most likely tokens, beside each one */
    wk_ids *prompts;        /* [n_prompts] */
    uint32_t n_prompts, n;  /* texts for each prompt */
    wk_api_choice *choices; /* [n_choices], those of a prompt one after the other */
    uint32_t n_choices;
};

/* ---- api.c ---- */

double wk_seconds_since(uint64_t ns);        /* by wk_clock_ns */
uint32_t wk_count_free(const wick_api *api); /* places for texts */
/* To the end of list; NULL: it is over. */
void wk_exchange_move(wick_exchange *x, wk_exchanges *list);
/* It is over: what is being computed for it is given up, and its places are free. */
void wk_exchange_stop(wick_exchange *x);
/* The same with a failure, which is the exchange's alone. */
void wk_exchange_break(wick_exchange *x, wick_status status, const wick_error *err);

/* ---- routes.c ---- */

/* Answers the request, refuses it or queues it. */
void wk_exchange_begin(wick_exchange *x, const wick_request *request);

/* ---- generate.c ---- */

wick_status wk_texts_make(wick_exchange *x, wick_error *err);
/* Those that wait, as far as there is room. */
void wk_texts_open(wick_exchange *x);
/* One event of each that has a session. */
void wk_texts_step(wick_exchange *x);
void wk_texts_close(wick_exchange *x);
void wk_texts_free(wick_exchange *x);

/* ---- request.c: what a body says; a failure is the client's, and its sentence names the field
 * ---- */

/* stream, stream_options, n; sampler, limits and stop strings, which stay in the exchange's arena.
 */
wick_status wk_request_generation(wick_exchange *x, wick_error *err);
/* messages, tools, tool_choice, response_format. */
wick_status wk_request_chat(wick_exchange *x, wick_error *err);
/* chat.c: logprobs is true or false, and top_logprobs how many. */
wick_status wk_request_logprobs(wick_exchange *x, wick_error *err);
/* Another API's body becomes one of OpenAI's chat, which write makes of it. */
wick_status wk_request_translate(wick_exchange *x,
                                 void (*write)(wk_strbuf *to, const wk_json *body),
                                 wick_error *err);
/* tools.c: in such a write, the other API's tools: the type of those that a client answers, and the
 * member with their JSON schema. Tools of other types are left out. */
void wk_write_functions(wk_strbuf *to, const wk_json *tools, const char *own, const char *schema);
/* The name of a function as the model has it: after its namespace's (NULL: none) and this. */
#define WK_IN_SPACE "__"
void wk_write_function_name(wk_strbuf *to, const wk_json *space, const wk_json *name);
wick_status wk_request_tools(wick_exchange *x, wick_error *err);
wick_status wk_request_tool_choice(wick_exchange *x, wick_error *err);
/* Fields; the value stays where there is none, or null. */
wick_status wk_request_bool(const wick_exchange *x, const char *key, bool *value, wick_error *err);
/* NULL: not there, or null. */
const wk_json *wk_request_field(const wick_exchange *x, const char *key);
wick_status wk_request_whole(const wick_exchange *x, const char *key, uint32_t least, uint32_t most,
                             uint32_t *value, wick_error *err);

/* ---- prompt.c: ids of what the model reads ---- */

/* What the template makes of the messages, up to where the answer begins: x->rendered. */
wick_status wk_prompt_render(wick_exchange *x, wick_error *err);
wick_status wk_prompt_of_chat(wick_exchange *x, wick_error *err);
/* fit.c: the tools become words of the system message, calls that were made texts. */
wick_status wk_tools_in_words(wick_exchange *x, wick_error *err);
/* What a template may refuse: neighbours of one role and what the user says after a result, which
 * become one message each time; messages of the system, which then begin the user's; calls and
 * results, which become texts. */
enum { WK_FIT_MERGED = 0, WK_FIT_NO_SYSTEM = 1, WK_FIT_NO_CALLS = 2 };
/* Such messages in place of those given. NULL: memory is short. */
wk_json *wk_messages_fit(wick_exchange *x, const wk_json *messages, unsigned fits);
/* In a translated body, what the assistant says in a row becomes one message: contents, reasoning
 * and calls are arrays then. */
wick_status wk_turns_join(wick_exchange *x, wick_error *err);
/* prefill.c: takes the last message away where the answer goes on with it (x->begun), and puts it
 * at the end of the prompt. That and JSON by a schema come after thinking that the template opens.
 */
wick_status wk_request_prefill(wick_exchange *x, wick_error *err);
wick_status wk_prefill_append(wick_exchange *x, wick_error *err);
/* Whether it is several prompts: an array without numbers. */
bool wk_json_is_list_of_prompts(const wk_json *given);
/* A text, ids, or several of either. */
wick_status wk_ids_of_list(wick_exchange *x, const wk_json *list, wk_ids *out, wick_error *err);
/* infill.c: what stands before and after a gap, with the model's own tokens around them: the
 * members of these names, and what the answer goes on with; begun NULL: nothing. */
wick_status wk_prompt_of_infill(wick_exchange *x, const char *before, const char *after,
                                const char *begun, wick_error *err);
/* Whether there is text after the gap that a completion fills: "suffix". */
bool wk_request_has_suffix(const wick_exchange *x);
wick_status wk_prompts_of_texts(wick_exchange *x, const wk_json *given, wick_error *err);
/* The bytes of tokens, with the names of special ones where they are wanted. */
void wk_append_tokens(const wick_api *api, const wk_ids *ids, bool special, wk_strbuf *to);
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
wick_status wk_answer_chat_tokens(wick_exchange *x, wick_error *err);
/* info.c: how many tokens the messages are; object NULL: the answer does not say what it is. */
wick_status wk_answer_count(wick_exchange *x, const char *object, wick_error *err);
wick_status wk_answer_embeddings(wick_exchange *x, wick_error *err);
/* WICK_PENDING: there is more to do; WICK_OK: the answer is in part. */
wick_status wk_embedding_step(wick_exchange *x, wick_error *err);
wick_status wk_answer_rerank(wick_exchange *x, wick_error *err);
wick_status wk_answer_infill(wick_exchange *x, wick_error *err);
wick_status wk_answer_loras(wick_exchange *x, wick_error *err);
wick_status wk_answer_set_loras(wick_exchange *x, wick_error *err);
wick_status wk_answer_slot_action(wick_exchange *x, wick_error *err);
wick_status wk_answer_native(wick_exchange *x, wick_error *err);
wick_status wk_answer_metrics(wick_exchange *x, wick_error *err);
wick_status wk_answer_slots(wick_exchange *x, wick_error *err);
wick_status wk_answer_ollama(wick_exchange *x, wick_error *err);
wick_status wk_answer_ps(wick_exchange *x, wick_error *err);
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

/* The id of the call that comes next: Mistral's templates take nine letters and digits alone, and
 * clients send it back with the result. */
enum { WK_CALL_ID = 10 };
void wk_call_id(const wk_api_choice *choice, char id[WK_CALL_ID]);

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
void wk_choice_keep_text(wk_api_choice *choice, bool is_reasoning, wk_str text);
/* Its id, which begins with kind: unlike those of other requests. */
void wk_exchange_name(wick_exchange *x, const char *kind);
/* The members of an OpenAI answer up to the items of its choices. */
void wk_write_head(wick_exchange *x, const char *object);
/* OpenAI's usage of all choices, as a member of the object being written. */
void wk_write_usage(wick_exchange *x);
/* native.c: how fast a choice is, or was where it is over, as llama-server shows it. */
void wk_write_timings(wk_strbuf *to, const wk_api_choice *choice);
/* native.c: how much of the prompt was read, as a member; processed: tokens of it. */
void wk_write_progress(wk_api_choice *choice, uint64_t processed, uint64_t total);
/* native.c: what a request has that says no more than desc. */
void wk_write_settings(wk_strbuf *to, const wick_api *api, const wick_session_desc *desc,
                       bool is_stream);
/* native.c: a choice that is over, as llama-server's own completion has it. */
void wk_write_native(wk_api_choice *choice, wk_str text);
/* show.c: a model for ollama's clients: digest and details, and all that is known. */
void wk_write_details(wk_strbuf *to, const wk_gguf *gguf);
void wk_write_show(wk_strbuf *to, const wk_gguf *gguf);
/* The time in UTC. */
wick_time_of_day wk_time_of(int64_t seconds_since_1970);
/* The same as a text (RFC 3339). */
void wk_write_time(wk_strbuf *to, const char *key, int64_t seconds_since_1970);
/* metrics.c. */
void wk_histogram_add(wk_histogram *histogram, double seconds);
/* logprobs.c: an array of numbers. */
void wk_write_bytes(wk_strbuf *to, wk_str bytes);
/* logprobs.c: those of a token wait to be written: first its own, then the likeliest. */
void wk_logprobs_keep(wk_api_choice *choice, const wick_logprob *logprobs, size_t n);
/* Those that wait, as items of an array, as OpenAI's chat has them; has_ids: as llama-server does.
 */
void wk_write_logprob_items(wk_api_choice *choice, bool has_ids);
/* The same as a member logprobs; end: what follows them in their object. */
void wk_write_logprobs(wk_api_choice *choice, bool is_there, const char *end);
/* The same as OpenAI's text completions have it: an object of arrays. */
void wk_write_text_logprobs(wk_api_choice *choice);
/* slots.c: a place for a choice that begins: its session may go on from what the place keeps. */
wick_status wk_slot_take(wk_api_choice *choice, const wick_session_desc *desc, wick_error *err);
/* Of its session; tokens that a place kept count as reused. */
void wk_choice_get_stats(const wk_api_choice *choice, wick_session_stats *stats);
/* Whole: the session stays in the place, where places are saved. */
void wk_slot_leave(wk_api_choice *choice, bool is_whole);
/* slot_files.c: a step of x->transfer; and its end before it is done, where there is one. */
void wk_transfer_step(wick_exchange *x);
void wk_transfer_cancel(wick_exchange *x);
/* lora.c: what the request says, or else the API: x->loras. */
wick_status wk_request_loras(wick_exchange *x, wick_error *err);
/* A comment, where nothing was written for some time. */
void wk_exchange_ping(wick_exchange *x);
const char *wk_finish_reason(const wk_api_choice *choice);
/* The status of HTTP for a failure of the library. */
int wk_status_of(wick_status status);

#endif
