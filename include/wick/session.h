/* wick/session.h: generating text: a sequence of tokens with its cache, and a sampler. */
#ifndef WICK_SESSION_H
#define WICK_SESSION_H

#include <wick/model.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct wick_session wick_session;

/* How the next token is chosen. Applied in this order: repetition penalty, then (temperature 0: the
 * largest logit), else temperature, top_k, top_p, min_p, and a draw. */
typedef struct wick_sampler_desc {
    float temperature;    /* 0: greedy */
    uint32_t top_k;       /* 0: off */
    float top_p;          /* 0 or 1: off; Holtzman et al., 2020 */
    float min_p;          /* 0: off; relative to the most likely token */
    float repeat_penalty; /* 0 or 1: off; Keskar et al., 2019 */
    uint32_t repeat_last; /* tokens it looks back at; 0: 64 */
    uint64_t seed;        /* 0: from the system's entropy */
} wick_sampler_desc;

typedef enum wick_logits_mode {
    WICK_LOGITS_NONE,
    WICK_LOGITS_ALL, /* an event with the logits after every token that is appended */
} wick_logits_mode;

/* Element type of the key-value cache. AUTO: f32 in exact math, f16 in fast math. */
typedef enum wick_cache {
    WICK_CACHE_AUTO,
    WICK_CACHE_F32,
    WICK_CACHE_F16,
} wick_cache;

typedef struct wick_session_desc {
    uint32_t context_length; /* tokens, less than 2^31; 0: the model's, at most 4096 */
    uint32_t chunk_length;   /* most prompt tokens computed at once, up to 8192; 0: 512 */
    wick_cache cache;
    uint32_t max_tokens; /* most tokens generated for one prompt; 0: no limit but the context */
    wick_sampler_desc sampler;
    const char *const *stop; /* strings that end the text, themselves not part of it; copied */
    size_t n_stop;
    bool special;    /* control tokens appear in the text */
    bool ignore_end; /* end tokens do not end the generation */
    wick_logits_mode logits;
} wick_session_desc;

/* The model must outlive the session. desc may be NULL. WICK_ERR_VALUE: a field of desc is out of
 * its range; WICK_ERR_OUT_OF_MEMORY. */
WICK_API wick_status wick_session_open(wick_model *model, const wick_session_desc *desc,
                                       wick_session **session, wick_error *error);
WICK_API void wick_session_close(wick_session *session);

/* Adds to what the model reads next; special tokens in text are parsed, and at the very beginning
 * the model's own begin token is put first. Copies. WICK_ERR_STATE: there is no room for all of it
 * in the context, a step has not ended with an event yet, or the session has failed. What these
 * calls refuse changes nothing; the sentence stays with the device (wick_device_error) until it is
 * taken or the session accepts a call. */
WICK_API wick_status wick_session_append_text(wick_session *session, const char *text);
/* As given. WICK_ERR_INDEX: an id is not in the vocabulary. */
WICK_API wick_status wick_session_append_tokens(wick_session *session, const uint32_t *ids,
                                                size_t n);
/* Makes ids the whole sequence: what the session holds already of its beginning is kept, the rest
 * is forgotten, and only what is new is computed. */
WICK_API wick_status wick_session_sync_tokens(wick_session *session, const uint32_t *ids, size_t n);
/* Forgets everything, a failure and its sentence included. Never blocks: what is being computed is
 * left to end in the steps that follow. */
WICK_API void wick_session_reset(wick_session *session);

typedef enum wick_event_kind {
    WICK_EVENT_PENDING, /* step again */
    WICK_EVENT_PROMPT,  /* part of the prompt has been read: done of total tokens */
    WICK_EVENT_LOGITS,  /* the logits after the token at position; valid until the next step */
    WICK_EVENT_TOKEN,   /* a token was generated; text is empty while a character is incomplete */
    WICK_EVENT_END,     /* generation has ended, see reason; text may hold what was held back */
} wick_event_kind;

typedef enum wick_end_reason {
    WICK_END_NONE,
    WICK_END_TOKEN, /* the model said so */
    WICK_END_STOP_STRING,
    WICK_END_MAX_TOKENS,
    WICK_END_CONTEXT_FULL, /* no room for another token: not an error */
    WICK_END_PROMPT,       /* logits mode: everything appended has been read */
} wick_end_reason;

typedef struct wick_event {
    wick_event_kind kind;
    wick_end_reason reason;
    uint32_t token;   /* TOKEN; END by token: the end token */
    const char *text; /* UTF-8, whole characters, not terminated; valid until the next step */
    size_t text_size;
    uint32_t position;    /* LOGITS */
    const float *logits;  /* LOGITS: [n_vocab] */
    uint32_t done, total; /* PROMPT */
} wick_event;

/* Never blocks; does at most one slice of work. An error is final until reset; its sentence is
 * with the model's device (wick_device_error). */
WICK_API wick_status wick_session_step(wick_session *session, wick_event *event);
/* Waits for the next event that is not PENDING. Native only. */
WICK_API wick_status wick_session_next(wick_session *session, wick_event *event);

typedef struct wick_session_stats {
    uint32_t n_prompt, n_reused, n_generated; /* tokens */
    double prompt_seconds, generate_seconds, first_token_seconds;
    uint64_t cache_bytes;
    uint32_t n_context, context_length; /* used, room */
} wick_session_stats;

WICK_API void wick_session_get_stats(const wick_session *session, wick_session_stats *stats);
/* The sequence so far: ids of prompt and generated tokens; valid until the next call. */
WICK_API const uint32_t *wick_session_tokens(const wick_session *session, size_t *n);

#ifdef __cplusplus
}
#endif

#endif
