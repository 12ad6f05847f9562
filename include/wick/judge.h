/* wick/judge.h: how well a model predicts a text, how far two models are apart, and how the tensors
 * of two files differ. */
#ifndef WICK_JUDGE_H
#define WICK_JUDGE_H

#include <wick/session.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Perplexity and divergence over a text ---- */

/* The text is cut into chunks of context_length tokens, each read from an empty context; what is
 * left at the end is not read. Where the ids begin with the model's begin token, it takes the place
 * of the first token of every chunk. A token is scored where at least n_unscored tokens of its
 * chunk stand before it. */
typedef struct wick_judge_desc {
    uint32_t context_length; /* 2 or more; 0: 512 */
    uint32_t n_unscored;     /* 1 to context_length - 1; 0: context_length / 2 + 1, as llama.cpp */
    uint32_t chunk_length;   /* as in wick_session_desc, like the next */
    wick_cache cache;        /* of the model; the base has AUTO: what a cache costs can be judged */
} wick_judge_desc;

/* An error is the standard error of the number before it, as if the tokens were independent. */
typedef struct wick_judged {
    double nll, nll_error;               /* nats for each token: mean of -log p(token) */
    double perplexity, perplexity_error; /* exp(nll) */
} wick_judged;

typedef struct wick_judgement {
    uint64_t n_chunks, n_scored; /* read so far; tokens of these that were scored */
    wick_judged model;
    /* With a base alone. kl: KL(base || model) in nats, of the distributions before each scored
     * token. same_top: share of these in which the likeliest token is the same one. */
    wick_judged base;
    double log_ratio, log_ratio_error; /* log(perplexity of the model / that of the base) */
    double kl, kl_error, kl_median, kl_99, kl_largest; /* kl_99: 99 % are not larger */
    double same_top, same_top_error;
} wick_judgement;

typedef struct wick_judging wick_judging;

/* Reads ids (copied) with model, and with base where it is not NULL: a model of the same
 * vocabulary, such as the file that model was quantized from. Of either, one row of logits is
 * looked at at a time. The models must outlive judging. WICK_ERR_VALUE: desc, there is not one
 * chunk, or the vocabularies differ; else as wick_session_open. desc may be NULL. */
WICK_API wick_status wick_judge_start(wick_model *model, wick_model *base, const uint32_t *ids,
                                      size_t n, const wick_judge_desc *desc, wick_judging **judging,
                                      wick_error *error);
/* A slice of the work, never blocks: WICK_PENDING until all is read. progress, in tokens, may be
 * NULL. WICK_ERR_VALUE: a model's logits hold NaN. */
WICK_API wick_status wick_judge_poll(wick_judging *judging, wick_progress *progress,
                                     wick_error *error);
/* The result for the chunks read so far; zeros before a token has been scored. */
WICK_API void wick_judge_get(wick_judging *judging, wick_judgement *judgement);
WICK_API void wick_judge_finish(wick_judging *judging);

/* ---- The tensors of two files ---- */

typedef struct wick_comparison wick_comparison;

/* The values of a pair are compared as float64, block types decoded; where both are no number, or
 * the same infinity, they do not differ. 64-bit integers lose what a double cannot hold. */
typedef struct wick_compared {
    const char *name; /* valid until wick_compare_close; "" of .npy files */
    bool is_in_a, is_in_b;
    wick_dtype dtype_a, dtype_b; /* where it is in the file, as shape */
    wick_shape shape_a, shape_b;
    /* Of two tensors of one shape. */
    bool is_compared;
    uint64_t n_elements, n_different; /* n_different: |a - b| > tolerance */
    double largest, rms;              /* of a - b; +infinity: a number against none */
    double cosine;  /* of a and b as vectors; of two zero vectors 1; no number where they are not */
    uint64_t first; /* element that differs, row-major; n_different > 0 */
    double first_a, first_b; /* its values */
} wick_compared;

/* GGUF (a part stands for the whole), safetensors, .npy, .npz and PyTorch files, known by their
 * contents; a .npy file can be compared with another one alone (WICK_ERR_VALUE). Blocks, like what
 * follows; native only. WICK_ERR_NOT_FOUND, WICK_ERR_IO, WICK_ERR_FORMAT, WICK_ERR_UNSUPPORTED. */
WICK_API wick_status wick_compare_open(const char *a, const char *b, wick_comparison **comparison,
                                       wick_error *error);
/* Names of either file: those of a in its order, then those that b alone has. */
WICK_API size_t wick_compare_count(const wick_comparison *comparison);
/* Memory does not grow with the tensors. WICK_ERR_INDEX; WICK_ERR_VALUE: tolerance is negative or
 * no number. */
WICK_API wick_status wick_compare_tensor(wick_comparison *comparison, size_t index,
                                         double tolerance, wick_compared *compared,
                                         wick_error *error);
WICK_API void wick_compare_close(wick_comparison *comparison);

#ifdef __cplusplus
}
#endif

#endif
