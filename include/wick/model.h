/* wick/model.h: a language model on a device. */
#ifndef WICK_MODEL_H
#define WICK_MODEL_H

#include <wick/device.h>
#include <wick/file.h>
#include <wick/source.h>
#include <wick/text.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct wick_model wick_model;
typedef struct wick_model_loading wick_model_loading;

typedef struct wick_model_desc {
    bool no_map; /* read the file instead of mapping it */
    /* A GPU compiles kernels while the weights are loaded: all that a session of this desc (NULL:
     * of the defaults) will need, by its context and chunk length, cache and logits. What another
     * session needs beyond that compiles from its opening on, before its first step runs. */
    const struct wick_session_desc *sessions;
    /* Nothing is compiled ahead: the model is there sooner, and sessions wait in their first steps,
     * again where a prompt has another length. */
    bool no_warm_up;
} wick_model_desc;

/* Loads a GGUF file; the path of any part of a split one stands for all (wick_source_files).
 * Blocks; native only. desc may be NULL. The device must outlive the model. WICK_ERR_NOT_FOUND,
 * WICK_ERR_FORMAT (a file that lies), WICK_ERR_UNSUPPORTED (an architecture, tensor type or
 * tokenizer that is not known, by name), WICK_ERR_OUT_OF_MEMORY. */
WICK_API wick_status wick_model_open(wick_device *device, const char *path,
                                     const wick_model_desc *desc, wick_model **model,
                                     wick_error *error);

/* The same in steps, from any source. start takes the source over, also when it fails. poll does a
 * slice of the work and returns WICK_PENDING until finish may be called; finish frees loading
 * whatever its result (model NULL: WICK_ERR_ARGUMENT); calling it early cancels. */
WICK_API wick_status wick_model_open_start(wick_device *device, wick_source source,
                                           const wick_model_desc *desc,
                                           wick_model_loading **loading, wick_error *error);
typedef struct wick_progress {
    uint64_t done, total; /* bytes; total 0: not known yet; both the same: kernels compile */
} wick_progress;
WICK_API wick_status wick_model_open_poll(wick_model_loading *loading, wick_progress *progress);
WICK_API wick_status wick_model_open_finish(wick_model_loading *loading, wick_model **model,
                                            wick_error *error);

/* Its sessions must be closed before. NULL is allowed. */
WICK_API void wick_model_close(wick_model *model);

typedef struct wick_model_info {
    char name[128], architecture[64];
    uint64_t n_parameters, file_bytes;
    uint64_t weight_bytes; /* resident on the device, mapped bytes included */
    uint32_t n_layers, n_embd, n_vocab, n_heads_q, n_heads_kv, context_length;
    char types[160];    /* "q4_1 210, f32 61, q8_0 1": tensors by type */
    char types_ref[96]; /* matrix types without a fast kernel here, "" if none */
} wick_model_info;

WICK_API void wick_model_get_info(const wick_model *model, wick_model_info *info);

/* What its sessions have done so far. */
typedef struct wick_model_usage {
    uint32_t n_sessions, n_running;           /* open; of these, with a batch on the device */
    uint64_t n_opened, n_prompt, n_generated; /* sessions; tokens read, tokens generated */
    double busy_seconds;                      /* in which a batch was running */
} wick_model_usage;

WICK_API void wick_model_get_usage(const wick_model *model, wick_model_usage *usage);
WICK_API const wick_tokenizer *wick_model_tokenizer(const wick_model *model);
WICK_API wick_device *wick_model_device(const wick_model *model);

/* Opens a file's tokenizer alone; the file must outlive it. */
WICK_API wick_status wick_tokenizer_open(const wick_file *file, wick_tokenizer **tokenizer,
                                         wick_error *error);
WICK_API void wick_tokenizer_close(wick_tokenizer *tokenizer);

/* What a model will need, from its header alone. */
typedef struct wick_prediction {
    uint64_t weight_bytes, cache_bytes, activation_bytes;
    uint64_t total_bytes;    /* of these, the vocabulary and the process itself */
    uint32_t context_length; /* the prediction holds for this one */
} wick_prediction;

/* context_length 0: the session's default. WICK_ERR_UNSUPPORTED like wick_model_open. For a session
 * that leaves the rest of its desc at the defaults, on this device with its math of now. */
WICK_API wick_status wick_predict(const wick_file *file, const wick_device *device,
                                  uint32_t context_length, wick_prediction *prediction,
                                  wick_error *error);

#ifdef __cplusplus
}
#endif

#endif
