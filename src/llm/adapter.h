/* llm/adapter.h: adapters on their way from a file of any kind into a model, pair by pair. */
#ifndef WK_LLM_ADAPTER_H
#define WK_LLM_ADAPTER_H

#include "llm/llm.h"

#include <wick/lora.h>

struct wick_lora {
    wick_model *model;
    wick_lora *next; /* of the model */
    wk_adapter *adapter;
    uint64_t checksum, bytes;
    uint32_t n_pairs, rank; /* the largest one */
    uint32_t n_sessions;    /* that use it */
};

/* An adapter that is being read. */
typedef struct wk_adapting {
    wick_model *model;
    wick_lora *lora;   /* NULL: all sessions to come use it, */
    float scale;       /* multiplied by this, */
    wk_factors **made; /* [n_made] of [most] */
    size_t n_made, most;
    uint64_t checksum, bytes;
} wk_adapting;

/* How a file is read: calls wk_adapting_add for each pair, `most` times at most. */
typedef struct wk_adapter_file {
    wick_status (*read)(wk_adapting *adapting, void *file, wick_error *err);
    void *file;
    size_t most;
} wk_adapter_file;

/* All of it, or nothing: for all sessions to come, or as a handle. */
wick_status wk_adapter_add_file(wick_model *model, const wk_adapter_file *from, float scale,
                                wick_error *err);
wick_status wk_adapter_open_file(wick_model *model, const wk_adapter_file *from, wick_lora **out,
                                 wick_error *err);
/* Its values, on no device: not the model's, to be freed. */
wick_status wk_adapter_read_file(wick_model *model, const wk_adapter_file *from, float scale,
                                 wick_lora **out, wick_error *err);
void wk_lora_free(wick_lora *lora);
/* desc.scale: alpha / rank or the like. */
wick_status wk_adapting_add(wk_adapting *adapting, const wk_factors_desc *desc, wick_error *err);
/* Before their values are read: whether factors a [rank, k] and b [n, rank] fit the weight. */
wick_status wk_adapting_check(const wk_adapting *adapting, wick_string weight, const wick_shape *a,
                              const wick_shape *b, wick_error *err);
/* Of a GGUF file. */
wk_adapter_file wk_adapter_gguf(wick_file *file);

#endif
