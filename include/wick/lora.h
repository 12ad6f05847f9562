/* wick/lora.h: low-rank adapters (LoRA: Hu et al., 2021) of a language model, several at once: each
 * session chooses its own, and all of them are computed in the same batches (docs/adapters.md).
 * wick_model_add_adapter is for one that all sessions have. */
#ifndef WICK_LORA_H
#define WICK_LORA_H

#include <wick/session.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct wick_lora wick_lora;

/* Reads an adapter whole: a GGUF file as llama.cpp and wick_finetune_save have them, or a folder as
 * PEFT has them (adapter_config.json, adapter_model.safetensors; or the path of one of the two).
 * Sessions may be open, and go on meanwhile. The model keeps a copy in memory beside the one on the
 * device, and owns the handle: it ends with the model at the latest. Blocks; native only.
 * WICK_ERR_MISMATCH: it is for another model; WICK_ERR_NOT_FOUND, WICK_ERR_FORMAT,
 * WICK_ERR_UNSUPPORTED: the file; WICK_ERR_OUT_OF_MEMORY. A failure changes nothing. */
WICK_API wick_status wick_lora_open(wick_model *model, const char *path, wick_lora **lora,
                                    wick_error *error);
/* The same of a GGUF file from a source that answers at once, as wick_source_memory does; it is
 * taken over, also on failure. Not native only. */
WICK_API wick_status wick_lora_open_source(wick_model *model, wick_source source, wick_lora **lora,
                                           wick_error *error);
/* WICK_ERR_STATE: sessions use it, and nothing changes. */
WICK_API wick_status wick_lora_close(wick_lora *lora, wick_error *error);

typedef struct wick_lora_info {
    uint32_t n_matrices, rank; /* that it changes; the largest rank of one */
    uint32_t n_sessions;       /* that use it now */
    uint64_t bytes;            /* of its factors, f32 */
} wick_lora_info;
WICK_API void wick_lora_get_info(const wick_lora *lora, wick_lora_info *info);

/* Adds scale alpha / rank B (A x) to the products W x of an adapter's matrices; with rsLoRA the
 * root of the rank takes its place (Kalajdzievski, 2023). */
typedef struct wick_lora_use {
    wick_lora *lora;
    float scale; /* 1: as it was trained */
} wick_lora_use;

/* From now on the session computes with these n adapters, at most 8, which add up in this order; 0:
 * with none. Where they change, what the session holds is computed again before it goes on, without
 * events; beginnings of texts are shared only with sessions of the same adapters and scales. A fork
 * has those of its session. WICK_ERR_STATE: a batch is being computed, step until an event comes,
 * or the session has failed; WICK_ERR_ARGUMENT: an adapter is of another model; WICK_ERR_VALUE: a
 * scale is not finite, or there are too many. wick_session_error has the sentence. */
WICK_API wick_status wick_session_set_loras(wick_session *session, const wick_lora_use *uses,
                                            size_t n);

#ifdef __cplusplus
}
#endif

#endif
