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

/* Of a device_layers: none. */
#define WICK_NO_LAYERS (-1)

typedef struct wick_model_desc {
    bool no_map; /* read the file instead of mapping it */
    /* How many layers the device keeps, the last ones and the output with them; those before them
     * run on the CPU. 0: as many as it has room for; more than there are: all; WICK_NO_LAYERS: none
     * and no output. A device that is the CPU keeps all. */
    int32_t device_layers;
    /* A session to come (NULL: of the defaults), by its context and chunk length, cache and logits;
     * not looked at after the call. Room for it is left on the device. A GPU compiles the kernels
     * that it will need while the weights are loaded; what another session needs beyond that
     * compiles from its opening on, before its first step runs. */
    const struct wick_session_desc *sessions;
    /* Nothing is compiled ahead: the model is there sooner, and sessions wait in their first steps,
     * again where a prompt has another length. */
    bool no_warm_up;
    /* Bytes that the model may take on all devices together, with such a session; one that needs
     * more is refused before its first weight is read: WICK_ERR_OUT_OF_MEMORY. 0: no limit. */
    uint64_t memory_limit;
    /* Most bytes for keys and values of all sessions that compute alike (math, type of the cache),
     * at least one full context; what layers with a window and recurrent layers keep comes beside
     * them. At the limit a session that has nothing to compute, or the youngest, loses what it has
     * in the cache and computes it again when it is its turn, which changes no text. 0: a quarter
     * of the memory that was free when the model was opened, weights taken off; where a device does
     * not say what memory it has, as much as it gives. */
    uint64_t cache_limit;
    /* Most bytes of the host's memory for snapshots, of all sessions that compute alike: what
     * layers with a window and recurrent layers keep at the ends of prompts and answers, and every
     * 512 tokens of a long prompt, so that a text which begins alike goes on from there (the one
     * that was used longest ago goes first; docs/sessions.md). 0: 256 MiB, in pages 64 MiB. Less
     * than one takes: there are none. */
    uint64_t snapshot_limit;
    /* The CPU computes with the weights as they lie in the mapped file instead of a copy of its
     * own, with the same results: a model larger than the memory runs, and it loads at once, but
     * each step unpacks all weights that it reads. A GPU's weights are copied to it as ever. With
     * no_map: WICK_ERR_VALUE; a source without map, or of unknown size: WICK_ERR_UNSUPPORTED. */
    bool low_memory;
    /* Loads the file's prediction head, too (nextn_predict_layers; DeepSeek-AI, 2024): a layer that
     * guesses the token after the next one, see wick_speculate. WICK_ERR_UNSUPPORTED: the file has
     * none, or one of a kind that is not supported; WICK_ERR_FORMAT: it lacks tensors of it. */
    bool prediction_head;
} wick_model_desc;

/* Loads a GGUF file; the path of any part of a split one stands for all (wick_source_files).
 * Blocks; native only. desc may be NULL. The device must outlive the model. WICK_ERR_NOT_FOUND,
 * WICK_ERR_FORMAT (a file that lies), WICK_ERR_UNSUPPORTED (an architecture, tensor type or
 * tokenizer that is not known, by name), WICK_ERR_OUT_OF_MEMORY, WICK_ERR_VALUE (desc).
 *
 * Where memory of the device is short, the first layers run on the CPU, see wick_model_info: before
 * anything is loaded where the device says what it has, else when it runs out, and then the tensors
 * are read again (from a pushed stream they cannot be: WICK_ERR_OUT_OF_MEMORY). */
WICK_API wick_status wick_model_open(wick_device *device, const char *path,
                                     const wick_model_desc *desc, wick_model **model,
                                     wick_error *error);

/* The same in steps, from any source. start takes the source over, also when it fails. poll does a
 * slice of the work and returns WICK_PENDING until finish may be called; finish frees loading in
 * any case (model NULL: WICK_ERR_ARGUMENT); calling it early cancels. */
WICK_API wick_status wick_model_open_start(wick_device *device, wick_source source,
                                           const wick_model_desc *desc,
                                           wick_model_loading **loading, wick_error *error);
typedef struct wick_progress {
    uint64_t done, total; /* bytes; total 0: not known yet; both the same: kernels compile */
} wick_progress;
WICK_API wick_status wick_model_open_poll(wick_model_loading *loading, wick_progress *progress);
WICK_API wick_status wick_model_open_finish(wick_model_loading *loading, wick_model **model,
                                            wick_error *error);

/* Adds a low-rank adapter (LoRA: Hu et al., 2021), a GGUF file as llama.cpp and
 * wick_finetune_save have them, of matrices of attention and MLPs: sessions that are opened from
 * now on compute y = W x + scale alpha / rank B (A x). Several add up. Read whole; blocks; native
 * only. WICK_ERR_STATE: sessions are open; WICK_ERR_MISMATCH: it is for another model;
 * WICK_ERR_NOT_FOUND, WICK_ERR_FORMAT, WICK_ERR_UNSUPPORTED: the file. A failure changes nothing.
 */
WICK_API wick_status wick_model_add_adapter(wick_model *model, const char *path, float scale,
                                            wick_error *error);
/* The same from a source that answers at once, as wick_source_memory does; it is taken over, also
 * on failure. Not native only. */
WICK_API wick_status wick_model_add_adapter_source(wick_model *model, wick_source source,
                                                   float scale, wick_error *error);

/* Gives back what no open session needs: the keys and values of texts that are over, with which new
 * texts could begin. NULL is allowed. */
WICK_API void wick_model_trim(wick_model *model);
/* Its sessions must be closed before. NULL is allowed. */
WICK_API void wick_model_close(wick_model *model);

typedef struct wick_model_info {
    char name[128], architecture[64];
    uint64_t n_parameters, file_bytes;
    uint64_t weight_bytes; /* resident on the device, mapped bytes included */
    uint32_t host_layers;  /* layers that run on the CPU beside the device: the first ones */
    uint64_t host_weight_bytes;
    uint64_t bytes_needed, bytes_available; /* why: all layers with a session's cache would take,
                                               the device had; 0: it was asked for, or no layer is
                                               on the CPU */
    uint32_t n_layers, n_embd, n_vocab, n_heads_q, n_heads_kv, context_length;
    uint32_t n_labels;  /* scores that the classifier of a reranker gives; 0: there is none */
    char types[160];    /* "q4_1 210, f32 61, q8_0 1": tensors by type */
    char types_ref[96]; /* matrix types without a fast kernel here, "" if none */
    /* Of LongRoPE, else 0: the longest context in which keys are rotated as for short texts. In a
     * longer one answers to short texts change a little, too; sessions have at most this one unless
     * another is asked for. */
    uint32_t short_context_length;
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
/* The CPU that computes info.host_layers, for its counters. NULL: there are none. */
WICK_API wick_device *wick_model_host(const wick_model *model);

/* Opens a file's tokenizer alone; the file must outlive it. */
WICK_API wick_status wick_tokenizer_open(const wick_file *file, wick_tokenizer **tokenizer,
                                         wick_error *error);
WICK_API void wick_tokenizer_close(wick_tokenizer *tokenizer);

/* What a model will need, from its header alone. */
typedef struct wick_prediction {
    uint64_t weight_bytes, cache_bytes, activation_bytes;
    uint64_t total_bytes;    /* of these, the vocabulary and the process itself */
    uint64_t low_bytes;      /* of these, with wick_model_desc.low_memory; 0: not on the CPU */
    uint32_t context_length; /* the prediction holds for this one */
    /* Of the layers, how many the device has room for, the last ones; the others would run on the
     * CPU. A device that is the CPU, or that does not say what memory it has: all. */
    uint32_t n_layers, device_layers;
    uint64_t available_bytes;      /* of the device's memory; 0: not known */
    uint32_t whole_context_length; /* the longest one with which the device has room for all layers,
                                      at most what the model was made for; 0: none, not known */
} wick_prediction;

/* For such a session (NULL: of the defaults) on this device with its math of now, and for
 * wick_model_desc.device_layers 0. WICK_ERR_UNSUPPORTED like wick_model_open. */
WICK_API wick_status wick_predict(const wick_file *file, const wick_device *device,
                                  const struct wick_session_desc *desc, wick_prediction *prediction,
                                  wick_error *error);

#ifdef __cplusplus
}
#endif

#endif
