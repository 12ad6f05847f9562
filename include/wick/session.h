/* wick/session.h: generating text: a sequence of tokens with its cache, and a sampler. */
#ifndef WICK_SESSION_H
#define WICK_SESSION_H

#include <wick/model.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct wick_session wick_session;

/* Added to the logit of a token before all else; -INFINITY: the token is never chosen. */
typedef struct wick_logit_bias {
    uint32_t id;
    float bias;
} wick_logit_bias;

/* How the next token is chosen. 0 switches a step off, or stands for the default that is named. The
 * steps, each over what those before it have left, in the usual order of such programs:
 *   1. bias, repetition, frequency and presence penalties, DRY; what the grammar does not allow is
 *      left out;
 *   2. temperature 0: the largest logit, and that is all;
 *   3. top_k, typical_p, top_p, min_p, XTC, by the probabilities at temperature 1;
 *   4. temperature, and a draw.
 * With mirostat_tau step 3 is mirostat alone, by the probabilities at the temperature. */
typedef struct wick_sampler_desc {
    float temperature;
    uint32_t top_k;
    float typical_p; /* 0 or 1: off; locally typical sampling, Meister et al., 2022 */
    float top_p;     /* 0 or 1: off; Holtzman et al., 2020 */
    float min_p;     /* relative to the most likely token; Nguyen et al., 2024 */

    uint32_t repeat_last;    /* tokens that the three penalties look back at; 0: 64 */
    float repeat_penalty;    /* factor; 0 or 1: off; Keskar et al., 2019 */
    float frequency_penalty; /* taken off a logit for each occurrence, -100 to 100; OpenAI's API */
    float presence_penalty;  /* taken off once for those that occurred; as above */
    const wick_logit_bias *bias; /* copied; WICK_ERR_INDEX: an id is not in the vocabulary */
    size_t n_bias;

    /* DRY (p-e-w, 2024, github.com/oobabooga/text-generation-webui/pull/5677): a token that would
     * go on repeating the last n >= dry_allowed tokens loses dry_multiplier * dry_base ^
     * (n - dry_allowed). Repetitions do not reach across the last token of a breaker. */
    float dry_multiplier;
    float dry_base;                  /* 1 to 100; 0: 1.75 */
    uint32_t dry_allowed;            /* 0: 2; a repetition counts as one of 50 at most */
    uint32_t dry_last;               /* tokens it looks back at; 0: all */
    const char *const *dry_breakers; /* copied; NULL: newline, colon, quotation mark, asterisk */
    size_t n_dry_breakers;

    /* XTC (p-e-w, 2024, the same project's pull request 6335): with xtc_probability, leaves out all
     * tokens of at least xtc_threshold but the least likely of them. */
    float xtc_probability;
    float xtc_threshold; /* 0: 0.1 */

    float mirostat_tau; /* target surprise in bits; version 2 of Basu et al., 2021 */
    float mirostat_eta; /* how fast it adapts; 0: 0.1 */

    uint64_t seed; /* 0: from the system's entropy */

    /* What is generated for each prompt is a text of this grammar, in GBNF, or JSON that the schema
     * accepts (docs/grammar.md); both are copied, at most one is given. Tokens that end a
     * generation come where the text may end. WICK_ERR_FORMAT: the text makes no sense,
     * _UNSUPPORTED: the schema uses what is not supported, _VALUE: the grammar cannot be followed;
     * the message begins with "the grammar" or "the JSON schema". */
    const char *grammar;
    const char *json_schema;
} wick_sampler_desc;

typedef enum wick_logits_mode {
    WICK_LOGITS_NONE,
    WICK_LOGITS_ALL, /* an event with the logits after every token that is appended */
    /* The same with hidden states instead, what the logits are made of; see wick/embed.h. The only
     * mode of encoders, which read a text at once: it must be appended whole, after a reset. */
    WICK_LOGITS_STATES,
    /* Likewise what the classifier of a reranker (cls.output.weight) makes of each state, its
     * labels' scores [wick_model_info.n_labels]; see wick_embedder_start_pairs. */
    WICK_LOGITS_SCORES,
} wick_logits_mode;

/* Element type of the key-value cache. AUTO: f32 in exact math, f16 in fast math. Q8_0 and Q4_0 are
 * never chosen but asked for, see docs/numerics.md; they take heads of a multiple of 32 channels,
 * of others opening a session is WICK_ERR_UNSUPPORTED. */
typedef enum wick_cache {
    WICK_CACHE_AUTO,
    WICK_CACHE_F32,
    WICK_CACHE_F16,
    WICK_CACHE_Q8_0,
    WICK_CACHE_Q4_0,
} wick_cache;

/* Tokens that are guessed and computed with the one before them, so that the weights are read once
 * for several; a guess that the sampler does not choose is taken back. Texts are the same with any
 * of these, drawn ones included; on a GPU in fast math, where batches of other sizes round
 * otherwise, nearly so: see docs/speculation.md. */
typedef enum wick_speculate {
    WICK_SPECULATE_AUTO, /* by look-up, else by the draft model or the model's prediction head if
                          * there is one, else by the GPU itself; where they are measured to pay */
    WICK_SPECULATE_NONE,
    WICK_SPECULATE_NGRAM, /* by look-up: what followed when the last tokens were in the text before;
                           * whether it pays or not */
    WICK_SPECULATE_DRAFT, /* by the draft model alone, whether it pays or not */
    WICK_SPECULATE_HEADS, /* by the model's prediction head alone (wick_model_desc.prediction_head):
                           * one token, once it was measured what a batch takes, and more where they
                           * are measured to pay */
    /* By the GPU: it draws up to seven tokens itself, by temperature, top_k, top_p, min_p and the
     * sampler's next random numbers, and computes on before the sampler has chosen; whether it pays
     * or not. Where a choice needs the 128 best logits at most (temperature 0, or top_k up to 128;
     * no grammar) and no other session computes; else nothing is guessed. */
    WICK_SPECULATE_AHEAD,
} wick_speculate;

typedef struct wick_session_desc {
    /* Tokens, less than 2^31. 0: the model's, at most 16384, and as many as a quarter of the memory
     * that was free when the model was opened, weights taken off, has room for. Of encoders, in
     * pages and where a device does not say what memory it has: the model's, at most 4096. With
     * LongRoPE at most wick_model_info.short_context_length. */
    uint32_t context_length;
    uint32_t chunk_length; /* most prompt tokens computed at once, up to 8192; 0: 512 */
    wick_cache cache;
    uint32_t max_tokens; /* most tokens generated for one prompt; 0: no limit but the context */
    wick_sampler_desc sampler;
    const char *const *stop; /* strings that end the text, themselves not part of it; copied */
    size_t n_stop;
    bool special;    /* control tokens appear in the text */
    bool ignore_end; /* end tokens do not end the generation */
    wick_logits_mode logits;
    uint32_t n_logprobs; /* log probabilities with each token: of this many tokens, at most 1024 */
    /* These are the probabilities by which the sampler draws, after biases, penalties, grammar,
     * temperature and filters; less than n_logprobs where fewer tokens are left. A sampler that
     * draws nothing leaves one, of probability 1. */
    bool drawn_logprobs;
    wick_speculate speculate;
    /* A smaller model of the same vocabulary, on any device, which must outlive the session; it may
     * be NULL. WICK_ERR_MISMATCH: its vocabulary is another one; WICK_ERR_UNSUPPORTED: it has
     * recurrent layers, or is an encoder. */
    wick_model *draft;
    /* A text that fills the context goes on: its first n_keep tokens stay and the newer half of the
     * others, computed again at its new positions; a prompt that does not fit loses its middle, so
     * that a quarter of the context is left (docs/sessions.md). Not for logits, nor with rows of
     * embeddings; a wick_chat leaves out whole turns instead. WICK_ERR_VALUE: logits are asked for,
     * or n_keep is not less than the context. */
    bool context_shift;
    uint32_t n_keep;
    bool no_reuse; /* computes all of its tokens itself, and gives none to others, for measurements:
                    * see docs/sessions.md */
} wick_session_desc;

/* The model must outlive the session. desc may be NULL. WICK_ERR_VALUE: a field of desc is out of
 * its range; WICK_ERR_OUT_OF_MEMORY; WICK_ERR_UNSUPPORTED: an encoder generates no text. */
WICK_API wick_status wick_session_open(wick_model *model, const wick_session_desc *desc,
                                       wick_session **session, wick_error *error);
/* For the prompts to come: takes the sampler, max_tokens, the stop strings, special and ignore_end
 * of desc (NULL: defaults) in place of those it was opened with; the rest of desc is not looked at.
 * Random numbers begin again, and the last event's text ends. WICK_ERR_STATE: a batch is being
 * computed, step until an event comes; else as wick_session_open. A failure changes nothing. */
WICK_API wick_status wick_session_configure(wick_session *session, const wick_session_desc *desc,
                                            wick_error *error);
WICK_API void wick_session_close(wick_session *session);
/* Another session that goes on from where this one is, also in the middle of a text. Context,
 * chunks, cache, shift and mode are those of this one; of desc (NULL: defaults) it takes the
 * sampler, max_tokens, stop, special, ignore_end, n_logprobs, drawn_logprobs, speculate, draft and
 * no_reuse. Full blocks of the cache are shared; what a layer with a window or a recurrent layer
 * keeps is copied. WICK_ERR_STATE: the session has failed, or a batch is being computed for it:
 * step until an event comes; else as wick_session_open. */
WICK_API wick_status wick_session_fork(wick_session *session, const wick_session_desc *desc,
                                       wick_session **fork, wick_error *error);

/* Adds to what the model reads next; special tokens in text are parsed, and at the very beginning
 * the model's own begin token is put first. Copies. With nothing to add, generation goes on as
 * after any prompt. WICK_ERR_STATE: the context has no room for all of it, a batch is being
 * computed (step until an event comes), or the session has failed. A refused call changes nothing;
 * wick_session_error has the sentence. */
WICK_API wick_status wick_session_append_text(wick_session *session, const char *text);
/* As given. WICK_ERR_INDEX: an id is not in the vocabulary. */
WICK_API wick_status wick_session_append_tokens(wick_session *session, const uint32_t *ids,
                                                size_t n);
/* n rows [n, n_embd] (wick_model_info) in place of tokens, of an image for instance: each stands
 * for the row of a token in the model's table, times the model's embedding scale where it has one
 * (Gemma: sqrt(n_embd)); what the model adds to tokens, positions and norms, it adds to rows, too.
 * Copies, and keeps them on the host. Tokens and rows may follow each other in any order. Otherwise
 * as append_tokens; numbers that are not finite are taken. WICK_ERR_OUT_OF_MEMORY;
 * WICK_ERR_UNSUPPORTED: layers of the model have inputs of their own, made of ids (Gemma 4). A
 * session that has rows cannot be saved (WICK_ERR_UNSUPPORTED). */
WICK_API wick_status wick_session_append_embeddings(wick_session *session, const float *rows,
                                                    size_t n);
/* Makes ids the whole sequence: what the session holds already of its beginning is kept, the rest
 * is forgotten, and only what is new is computed. A model with recurrent layers cannot go back, and
 * layers with a window keep no more than it and a chunk: further back the text goes on from what
 * other texts, or this one, left in the cache (docs/sessions.md), or begins again. Rows of
 * embeddings are not kept, nor what follows them. */
WICK_API wick_status wick_session_sync_tokens(wick_session *session, const uint32_t *ids, size_t n);
/* Of the last call that failed, until a later one is accepted: its status, and in error (may be
 * NULL) the sentence. WICK_OK: none failed. After a failure of a step: that failure, until reset.
 */
WICK_API wick_status wick_session_error(const wick_session *session, wick_error *error);
/* Forgets everything, a failure and its sentence included; random numbers go on. Never blocks: what
 * is being computed is left to end in the steps that follow. */
WICK_API void wick_session_reset(wick_session *session);

/* Gives up the batch that is being computed, if one is: what was appended is not forgotten, and
 * would be computed by the steps that follow. Never blocks, as reset. */
WICK_API void wick_session_cancel(wick_session *session);

typedef enum wick_event_kind {
    WICK_EVENT_PENDING, /* step again */
    WICK_EVENT_PROMPT,  /* part of the prompt has been read: done of total tokens */
    WICK_EVENT_LOGITS,  /* the logits after the token at position; valid until the next step */
    WICK_EVENT_TOKEN,   /* a token was generated; text is empty while a character is incomplete */
    WICK_EVENT_END,     /* generation has ended, see reason; text may hold what was held back */
    /* Of a wick_chat: the context is full, and the model does not see the oldest messages any more:
     * done of them were left out just now, total in all. */
    WICK_EVENT_LEFT_OUT,
} wick_event_kind;

typedef enum wick_end_reason {
    WICK_END_NONE,  /* there is no token to go on from: nothing but "" was appended */
    WICK_END_TOKEN, /* the model said so */
    WICK_END_STOP_STRING,
    WICK_END_MAX_TOKENS,
    WICK_END_CONTEXT_FULL, /* no room for another token: not an error */
    WICK_END_PROMPT,       /* logits mode: everything appended has been read */
    WICK_END_GRAMMAR,      /* the grammar is at its end, and no token is left that says so */
} wick_end_reason;

/* By the model itself, before the sampler changes anything; or as drawn_logprobs says. */
typedef struct wick_logprob {
    uint32_t id;
    float logprob; /* natural logarithm */
} wick_logprob;

typedef struct wick_event {
    wick_event_kind kind;
    wick_end_reason reason;
    uint32_t token;   /* TOKEN; END by token: the end token; by stop string: the last one */
    const char *text; /* UTF-8, whole characters, not terminated; valid until the next step */
    size_t text_size;
    uint32_t position;    /* LOGITS */
    const float *logits;  /* LOGITS: [n_vocab], states: [n_embd] */
    uint32_t done, total; /* PROMPT: tokens; LEFT_OUT: messages */
    /* TOKEN, END by token or stop string: first of the token itself, then of the n_logprobs most
     * likely ones, best first; valid until the next step. NULL: not asked for. */
    const wick_logprob *logprobs;
    size_t n_logprobs; /* with the token itself */
    uint32_t stop;     /* END by stop string: its index in wick_session_desc.stop */
} wick_event;

/* Never blocks; does at most one slice of work. A device that is lost is brought back meanwhile. An
 * error is final until reset (wick_session_error has its sentence), and no other object's. */
WICK_API wick_status wick_session_step(wick_session *session, wick_event *event);
/* After an event TOKEN: computes what the next token is chosen from, but does not choose it, while
 * the program shows this one. PENDING: there is more to do, by another call or by steps; OK: there
 * is not. Until then the session takes no configure, append or sync. Never blocks; an error is the
 * session's, as of a step. */
WICK_API wick_status wick_session_prepare(wick_session *session);
/* Goes on with all sessions of a model at once: what each of them has to compute goes into one
 * batch, as far as there is room, so that the weights are read once for all of them. The steps of
 * any session do the same; this is for programs with many: call it until it is not PENDING, then
 * step every session once for its event. Never blocks; does at most one slice of work. WICK_OK: a
 * batch has ended, or there was nothing to compute. A failure is that of a lost device which does
 * not come back; all others are the sessions'. */
WICK_API wick_status wick_model_step(wick_model *model, wick_error *error);
/* Waits for the next event that is not PENDING. Native only. */
WICK_API wick_status wick_session_next(wick_session *session, wick_event *event);

typedef struct wick_session_stats {
    uint32_t n_prompt, n_reused, n_generated; /* tokens */
    uint32_t n_drafted, n_accepted;           /* guesses that were computed; that were right */
    double prompt_seconds, generate_seconds;
    double first_token_seconds;         /* from the last append or sync */
    uint64_t cache_bytes;               /* of the whole context, used or not */
    uint32_t n_context, context_length; /* used, room */
    uint64_t seed;                      /* of the sampler; 0: it draws nothing */
} wick_session_stats;

WICK_API void wick_session_get_stats(const wick_session *session, wick_session_stats *stats);
/* The sequence so far: ids of prompt and generated tokens, WICK_NO_TOKEN for a row of embeddings;
 * valid until the next call. */
WICK_API const uint32_t *wick_session_tokens(const wick_session *session, size_t *n);

#ifdef __cplusplus
}
#endif

#endif
