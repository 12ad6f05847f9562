/* wick/api.h: the APIs that programs speak to language models: the bytes of a request in, the bytes
 * of an answer out, as they come. It knows no network: what listens, and who may ask, is the
 * caller's (`wick serve`, or a page that answers its own requests).
 *
 *   POST /v1/chat/completions, /v1/completions       OpenAI's, with streams of server-sent events
 *   POST /v1/responses, /v1/responses/input_tokens   OpenAI's, without a store
 *   POST /v1/messages, /v1/messages/count_tokens     Anthropic's
 *   POST /v1/embeddings                              OpenAI's
 *   POST /v1/rerank, /rerank                         Jina's
 *   POST /completion, /infill                        llama-server's
 *   POST /tokenize, /detokenize, /apply-template     llama-server's
 *   GET  /slots, POST /slots/N?action=save           llama-server's, also restore and erase
 *   GET, POST /lora-adapters                         llama-server's
 *   POST /api/chat, /api/generate, /api/embed        ollama's, also /api/show, /api/tags
 *   GET  /v1/models, /v1/models/NAME, /health, /props, /metrics
 */
#ifndef WICK_API_H
#define WICK_API_H

#include <wick/chat.h>
#include <wick/embed.h>
#include <wick/file.h>
#include <wick/lora.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct wick_api wick_api;
typedef struct wick_exchange wick_exchange;

/* An adapter that requests may choose. */
typedef struct wick_api_lora {
    const char *path;  /* as /lora-adapters shows it */
    wick_lora_use use; /* what requests that do not say have; scale 0: not this one */
} wick_api_lora;

/* Where answers have what a model thinks. */
typedef enum wick_reasoning_place {
    WICK_REASONING_APART,      /* reasoning_content and its like */
    WICK_REASONING_IN_CONTENT, /* with its tags */
} wick_reasoning_place;

typedef struct wick_api_desc {
    const char *name;           /* of the model in answers; NULL: the one in its file */
    const char *path;           /* of its file, as /props shows it; NULL: "" */
    const char *const *aliases; /* [n_aliases]: names beside it */
    size_t n_aliases;
    const char *const *tags; /* [n_tags]: words about the model, for clients */
    size_t n_tags;
    int64_t modified; /* when its file was changed, seconds since 1970; 0: lists say now */
    /* What a request does not say: sampler, context, max_tokens ...; logits must be NONE. */
    wick_session_desc session;
    /* The text of one, or "chatml". NULL: the model's own; where it has none, ChatML. */
    const char *chat_template;
    uint32_t n_parallel; /* texts that are generated at once; 0: 4 */
    uint32_t max_queue; /* requests that may wait for their turn; 0: 64; more are answered by 503 */
    const wick_api_lora *loras; /* [n_loras], at most 8 */
    size_t n_loras;
    wick_pooling pooling;           /* of embeddings */
    wick_reasoning_place reasoning; /* where a request does not say */
    int thinking; /* the template's enable_thinking, where a request does not say: 1: true, -1:
                   * false, 0: not there */
    /* A folder for saved places (/slots/N): clients name files in it, never paths. Native only.
     * NULL: they are refused. */
    const char *slot_folder;
    bool has_metrics, has_no_slots; /* /metrics is answered, /slots is not (501) */
    bool is_verbose; /* chats have __verbose: what the model read, and how; a request may say so */
    /* Seconds without an event after which a stream gets a comment, so that proxies do not take
     * it for dead; 0: 10. */
    uint32_t ping_interval;
} wick_api_desc;

/* Texts of desc (may be NULL) are copied. The model and its adapters must outlive the API. Model
 * and API belong to one thread at a time. WICK_ERR_FORMAT: the template does not parse;
 * WICK_ERR_OUT_OF_MEMORY. */
WICK_API wick_status wick_api_open(wick_model *model, const wick_api_desc *desc, wick_api **api,
                                   wick_error *error);
/* Its exchanges must be closed before. NULL is allowed. */
WICK_API void wick_api_close(wick_api *api);

typedef struct wick_request {
    const char *method; /* "GET" */
    const char *path;   /* "/v1/models", without a query */
    const char *query;  /* "action=save"; NULL: none */
    const char *body;   /* [body_size]; may be NULL where body_size is 0 */
    size_t body_size;
    int64_t time; /* seconds since 1970, for `created` */
    /* Seconds that the clock on the wall is ahead of UTC, for the date that templates show. */
    int32_t utc_offset;
} wick_request;

/* The version of ollama's API, as /api/version says it: some clients refuse older servers. */
#define WICK_OLLAMA_VERSION "0.12.6"

/* Takes a request, which is copied. A request that makes no sense has an answer that says so: only
 * WICK_ERR_OUT_OF_MEMORY and WICK_ERR_ARGUMENT are failures. */
WICK_API wick_status wick_exchange_open(wick_api *api, const wick_request *request,
                                        wick_exchange **exchange, wick_error *error);
/* At any time; what is being computed for it is given up. NULL is allowed. */
WICK_API void wick_exchange_close(wick_exchange *exchange);

/* Whether there is an answer to such a request by any model: 200, or 404 or 405 with why as
 * a sentence. For callers that choose the model by the request. */
WICK_API int wick_api_find(const char *method, const char *path, const char **why);
/* Whether a body is read: 200, or 413 with why: a value takes 50 times the memory that it has in
 * the body. For callers that parse it themselves. */
WICK_API int wick_api_check_body(const char *body, size_t size, const char **why);
/* An error as the API at this path has it, of at most capacity bytes, terminated: for what the
 * caller refuses itself. Returns its size. */
WICK_API size_t wick_api_error(const char *path, int status, const char *message, char *text,
                               size_t capacity);

/* ollama's answer to /api/show for the model of a GGUF file, which need not be loaded, terminated.
 * Returns its size; 0: it does not fit, or an argument is NULL. */
WICK_API size_t wick_api_show(const wick_file *file, char *text, size_t capacity);

/* Goes on with all exchanges, in one batch as far as there is room. Never blocks; does at most one
 * slice of work. WICK_PENDING: call again; WICK_OK: there is nothing to do before another exchange
 * is opened or resumed. */
WICK_API wick_status wick_api_step(wick_api *api);

/* The status of HTTP (RFC 9110), 200 or 400 and above; 0: not known yet. */
WICK_API int wick_exchange_status(const wick_exchange *exchange);
/* The media type: "application/json"; of streams "text/event-stream" or "application/x-ndjson"
 * (ollama's); of /metrics "text/plain; version=0.0.4". */
WICK_API const char *wick_exchange_type(const wick_exchange *exchange);
/* Bytes of the answer that have come since the last call; size 0: none. Valid until the next call
 * with the API. */
WICK_API const char *wick_exchange_take(wick_exchange *exchange, size_t *size);
/* No more bytes come than those that wick_exchange_take gives now. */
WICK_API bool wick_exchange_is_over(const wick_exchange *exchange);
/* Ends the text where it is, with why as its last event or as its answer: when a server stops. */
WICK_API void wick_exchange_end(wick_exchange *exchange, const char *why);
/* A client that reads slowly: its text waits, and no other one does. */
WICK_API void wick_exchange_pause(wick_exchange *exchange, bool is_paused);

#ifdef __cplusplus
}
#endif

#endif
