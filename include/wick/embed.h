/* wick/embed.h: texts as vectors: the hidden states of an encoder (or of any model), pooled. */
#ifndef WICK_EMBED_H
#define WICK_EMBED_H

#include <wick/session.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct wick_embedder wick_embedder;

/* How the states of a text's tokens become one vector. */
typedef enum wick_pooling {
    WICK_POOLING_AUTO, /* as the file says; else the mean for encoders, the last token for others */
    WICK_POOLING_NONE, /* a vector for each token */
    WICK_POOLING_MEAN,
    WICK_POOLING_CLS,  /* of the first token */
    WICK_POOLING_LAST, /* of the last token */
    /* Not a vector but the scores of the model's classifier, [wick_model_info.n_labels], for the
     * first token of an encoder and the last one of others: of rerankers, see start_pairs. */
    WICK_POOLING_RANK,
} wick_pooling;

typedef struct wick_embedder_desc {
    /* Tokens of a text. 0: the model's context, at most 4096. Encoders: at most 8192. */
    uint32_t max_tokens;
    uint32_t chunk_length; /* as in wick_session_desc; encoders take a text at once */
    wick_pooling pooling;
    bool is_raw; /* pooled vectors keep their length, which is made 1 otherwise */
} wick_embedder_desc;

/* The model must outlive the embedder. desc may be NULL. WICK_ERR_VALUE, WICK_ERR_OUT_OF_MEMORY;
 * WICK_ERR_UNSUPPORTED: the file's pooling is that of a classifier, and none was chosen. */
WICK_API wick_status wick_embedder_open(wick_model *model, const wick_embedder_desc *desc,
                                        wick_embedder **embedder, wick_error *error);
WICK_API void wick_embedder_close(wick_embedder *embedder);
/* Never AUTO. */
WICK_API wick_pooling wick_embedder_pooling(const wick_embedder *embedder);

/* Begins with a text, or with tokens as given; what was under way is dropped. The text gets the
 * begin and end tokens that the model wants. WICK_ERR_STATE: it is too long. WICK_ERR_ARGUMENT: no
 * tokens. wick_embedder_error has the sentence. */
WICK_API wick_status wick_embedder_start(wick_embedder *embedder, const char *text, size_t size);
/* Begins with n texts, texts[i] of sizes[i] bytes; both arrays may go after the call. Several of
 * them are computed at once: the vector of each is that of the text alone, in fast math on a GPU
 * nearly (docs/sessions.md). WICK_ERR_UNSUPPORTED: more than one without pooling; else as above,
 * with the number of the text in the sentence. */
WICK_API wick_status wick_embedder_start_texts(wick_embedder *embedder, const char *const *texts,
                                               const size_t *sizes, size_t n);
WICK_API wick_status wick_embedder_start_tokens(wick_embedder *embedder, const uint32_t *ids,
                                                size_t n);
/* The same with pairs of a query and each of n texts, with WICK_POOLING_RANK: how well the text
 * answers the query is the first number of its row. That is what the last matrix gives, larger for
 * better texts; of classifiers with several labels (yes, no) in models that are not encoders, the
 * probability of the first. Pairs are written as the model's template `rerank` says (Qwen3), else
 * as begin, query, end, separator where the model wants one, text, end; all tokens are of type 0.
 */
WICK_API wick_status wick_embedder_start_pairs(wick_embedder *embedder, wick_string query,
                                               const char *const *texts, const size_t *sizes,
                                               size_t n);
/* WICK_PENDING: call again, see wick_session_step. */
WICK_API wick_status wick_embedder_poll(wick_embedder *embedder);
/* Of the last call that failed, until a later one is accepted, as wick_session_error. */
WICK_API wick_status wick_embedder_error(const wick_embedder *embedder, wick_error *error);
/* [*n_rows, n_embd or n_labels] (n_rows may be NULL): one row for each text, or one for each token
 * with WICK_POOLING_NONE. After WICK_OK, until the next start. */
WICK_API const float *wick_embedder_result(const wick_embedder *embedder, size_t *n_rows);
/* Tokens of the texts, or pairs, of the last start, those that the model wants around them
 * included. */
WICK_API size_t wick_embedder_token_count(const wick_embedder *embedder);

#ifdef __cplusplus
}
#endif

#endif
