/* llm/llm.h: a loaded model, for the files of this folder. */
#ifndef WK_LLM_LLM_H
#define WK_LLM_LLM_H

#include "format/gguf_parse.h"
#include "grammar/token_trie.h"
#include "model/model.h"
#include "text/tokenize/tokenizer.h"

#include <wick/session.h>

/* What a session has at most where its desc says 0, KNOWN where the device says what memory it has;
 * and how many tokens a block of the cache holds. */
enum {
    WK_DEFAULT_CONTEXT = 4096,
    WK_DEFAULT_CONTEXT_KNOWN = 16384,
    WK_DEFAULT_CHUNK = 512,
    WK_BLOCK_SIZE = 64,
};

static inline uint32_t wk_smaller(uint32_t a, uint32_t b) { return a < b ? a : b; }
static inline uint32_t wk_larger(uint32_t a, uint32_t b) { return a > b ? a : b; }

/* Blocks that n tokens take. */
static inline uint32_t wk_blocks_for(uint32_t n) {
    return n / WK_BLOCK_SIZE + (n % WK_BLOCK_SIZE != 0);
}

typedef enum wk_outputs {
    WK_OUTPUTS_NONE,
    WK_OUTPUTS_LAST,
    WK_OUTPUTS_ALL,
    WK_OUTPUTS_STATES, /* of all rows what the output matrix would multiply, [n_embd] each */
    WK_OUTPUTS_SCORES, /* of all rows what the classifier makes of them, [n_labels] each */
} wk_outputs;

/* What a session needs of its devices. */
typedef struct wk_runner_desc {
    uint32_t context_length; /* tokens of a text */
    uint32_t chunk_length;   /* most rows of a batch */
    bool is_whole;           /* a batch is a whole text, of which nothing is kept: no cache */
    wick_dtype cache_dtype;
    wick_math math;     /* regardless of what the device is set to later */
    wk_outputs outputs; /* of batches whose outputs are wanted: not NONE */
    bool is_head;       /* the model's prediction head computes: see wk_model_guess */
} wk_runner_desc;

struct wk_runner;
struct wick_model {
    wick_device *device;
    wick_device *host; /* computes the layers that device has no room for; NULL: there are none */
    wk_heap *heap;     /* the device's */
    wk_gguf_parser *parser;
    const wk_gguf *gguf; /* of parser */
    wk_model *model;
    wick_tokenizer *tokenizer;
    wk_token_trie trie; /* grammar.c; made for the first grammar */
    wick_source source; /* close NULL: closed; stays open while it is needed, see load.c */
    bool has_weights_in_place, no_map, no_warm_up, low_memory, prediction_head;
    uint64_t cache_budget;    /* cache_limit, or wk_cache_budget when loading began */
    uint64_t snapshot_budget; /* snapshot_limit, or its default */
    struct wick_lora *loras;
    struct wk_runner *runners;   /* of the sessions that are open, one for each kind */
    uint64_t cache_clock;        /* of those that are gone, see wk_runner_clock */
    wk_runner_desc warm;         /* the runner whose kernels are compiled with the model */
    uint32_t generation;         /* of the device that holds the weights */
    uint64_t weights_checksum;   /* of a sample of every tensor, as it is in the file */
    wick_model_loading *loading; /* again, after a loss; NULL: not under way */
    wick_model_info info;
    wick_model_usage usage; /* by its sessions; busy_seconds up to busy_since */
    uint64_t busy_since;    /* wk_clock_ns; while usage.n_running > 0 */
};

/* model.c: what fails on the model's devices goes to err, which must be clear, until
 * wk_model_give_back: errors belong to who works, not to the devices. */
typedef struct wk_model_errors {
    wick_error *device, *host;
} wk_model_errors;
wk_model_errors wk_model_borrow(const wick_model *model, wick_error *err);
void wk_model_give_back(const wick_model *model, wk_model_errors before);

/* model.c: a session's batch begins or ends. */
void wk_model_note_batch(wick_model *model, bool is_running);

/* load.c: for every step that needs the weights. WICK_PENDING: they are being loaded again, after
 * the device was lost. A failure leaves its sentence where those of the devices go. */
wick_status wk_model_restore(wick_model *model);
/* After the source was closed. */
void wk_loading_free(wick_model_loading *loading);

/* info.c: model->info from the header; and types of matrices that are multiplied by device as they
 * lie in the file, because no fast kernel has a layout for them. */
void wk_info_fill(wick_model *model);
void wk_info_note_slow_type(wick_model *model, const wick_device *device, wick_dtype dtype);

/* vocabulary.c: the tokenizer that the metadata of a model describes, with its arrays: gguf must
 * outlive it. The model has n_vocab rows of embeddings: the vocabulary must have as many tokens. */
wick_status wk_tokenizer_of_model(wk_heap *heap, const wk_gguf *gguf, uint32_t n_vocab,
                                  wick_tokenizer **out, wick_error *err);

/* preflight.c: bytes that the cache of a default context may take: a quarter of what memory the
 * device has free beside the weights. 0: it does not say, or the process is a page. */
uint64_t wk_cache_budget(const wk_model *model, const wk_gguf *gguf, const wick_device *device);
/* preflight.c: wick_model_desc.snapshot_limit, or its default. */
uint64_t wk_snapshot_budget(const wick_model_desc *desc);
/* preflight.c: what a session of this desc (NULL: of the defaults) needs. */
wk_runner_desc wk_runner_describe(const wk_model *model, wick_math math, uint64_t cache_budget,
                                  const wick_session_desc *desc);
/* session_open.c: as wick_session_open, for texts that are appended whole, each after a reset: with
 * room for the longest one in a chunk, and where rounding the cache would not show, it has none. */
wick_status wk_session_open_whole(wick_model *model, const wick_session_desc *desc,
                                  wick_session **session, wick_error *error);
/* session.c: of the batch that is being computed, the rows [first, first + n) are tokens of the
 * session, from `position` on; the others are of other sessions, or padding. n 0: none is. */
typedef struct wk_batch_rows {
    uint32_t first, n, position;
} wk_batch_rows;
wk_batch_rows wk_session_batch_rows(const wick_session *session);
/* preflight.c: whether a stage on the CPU has room for its weights, as far as they are not used in
 * place in a mapping, and for a session (NULL: not known yet): asked before the weights are read.
 */
wick_status wk_check_room(const wick_model *model, uint32_t stage, bool is_mapped,
                          const wk_runner_desc *session, wick_error *err);
/* preflight.c: the cache of such a session; n_blocks 0: it has none. */
wk_cache_desc wk_cache_describe(const wk_hparams *hparams, const wk_runner_desc *session);
/* The last n layers on device, all others before them on host; 0: all on host. */
wk_placement wk_placement_of(const wk_model *model, uint32_t n, wick_device *host,
                             wick_device *device);
/* Bytes of device's memory that the last n layers and the output take, with a session; the model is
 * placed so afterwards. */
uint64_t wk_bytes_needed(wk_model *model, const wk_gguf *gguf, const wick_device *device,
                         uint32_t n, const wk_runner_desc *session);
/* The largest such n, at most `most`, that takes no more than budget; 0: none. */
uint32_t wk_layers_that_fit(wk_model *model, const wk_gguf *gguf, const wick_device *device,
                            uint32_t most, uint64_t budget, const wk_runner_desc *session);
/* WICK_ERR_OUT_OF_MEMORY where a model that is placed needs more than limit on all devices
 * together, with its session to come (wick_model_desc.memory_limit). */
wick_status wk_check_limit(const wick_model *model, uint64_t limit, wick_error *err);

#endif
