/* model/model.h: a model's numbers, weights and forward pass; knows no file, no text and no
 * backend. */
#ifndef WK_MODEL_MODEL_H
#define WK_MODEL_MODEL_H

#include "model/hparams.h"
#include "tensor/tensor.h"

typedef struct wk_model wk_model;

/* Reads the header: family, hyper-parameters, layer specs, and which tensor is which weight.
 * Nothing is loaded yet; gguf must outlive the model. Missing or contradictory metadata is an error
 * that names the key; so are, by name, tensors that are missing, misshapen, of a type that cannot
 * be computed, or not known in this architecture. */
wick_status wk_model_make(wk_heap *heap, const wk_gguf *gguf, wk_model **out, wick_error *err);
void wk_model_free(wk_model *model);
const wk_hparams *wk_model_hparams(const wk_model *model);

/* The forward pass in stages, one after the other, each on a device of its own: neighbouring
 * layers; the first stage also embeds the ids, the last one has the output. */
enum { WK_MAX_STAGES = 2, WK_HEAD_STAGE = WK_MAX_STAGES };
typedef struct wk_model_stage {
    wick_device *device;
    uint32_t first, count; /* layers */
} wk_model_stage;
typedef struct wk_placement {
    wk_model_stage stages[WK_MAX_STAGES + 1]; /* at WK_HEAD_STAGE beside them: the head's */
    uint32_t n_stages;
} wk_placement;

/* How many of the last n layers can be a stage of their own, because they use no keys and values of
 * layers before them. */
uint32_t wk_model_separable_layers(const wk_model *model, uint32_t n);
/* Call it while there are no weights. Until it is placed, a model is one stage without a device. */
void wk_model_place(wk_model *model, const wk_placement *placement);
const wk_placement *wk_model_placement(const wk_model *model);

/* The file's prediction head (DeepSeek-AI, 2024, "multi-token prediction"), the first where there
 * are several: a layer after the last one, whose input is a matrix times the embedding of a token
 * beside the state before it, each normed. From its result the model's output makes the token after
 * that one. Its weights are the last stage's, its keys and values a state of their own
 * (WK_HEAD_STAGE).
 *
 * Call it while there are no weights. The file has none, or it is of another kind than the model's
 * last layer that attends: an error. */
wick_status wk_model_use_head(wk_model *model, wick_error *err);
bool wk_model_has_head(const wk_model *model);

/* Whether weights are to be computed with as they lie in the file's mapping, where a device can do
 * that; not so at first. Call it while there are no weights. */
void wk_model_keep_in_place(wk_model *model, bool is_in_place);

/* Loading: weights are created on their devices one by one, in any order; the loader asks of each
 * tensor of the file, for each stage, what it is for. */

/* wk_weight_use bits; 0: not a weight of this stage. */
uint32_t wk_model_weight_uses(const wk_model *model, const wick_file_tensor *tensor,
                              uint32_t stage);
/* Where the bytes of a tensor that the host needs (divisors of rotary frequencies) are to be put,
 * else NULL: also once they have been used. */
void *wk_model_host_weight(wk_model *model, const wick_file_tensor *tensor);
/* Bytes that the weights of a stage will take beside the file; UINT64_MAX: more than can be. */
uint64_t wk_model_weight_room(const wk_model *model, uint32_t stage, bool is_mapped);
/* Before the first one of a stage: takes the memory for all of them. is_mapped: data will be given.
 * On failure the stage's device holds the sentence. */
wick_status wk_model_reserve_weights(wk_model *model, uint32_t stage, bool is_mapped);
/* Creates the weight; the loader then uploads its rows. data: see wk_weight_desc. On failure the
 * stage's device holds the sentence. *weight belongs to the model. */
wick_status wk_model_begin_weight(wk_model *model, uint32_t stage, const wick_file_tensor *tensor,
                                  const void *data, wick_tensor **weight, bool *in_place);
/* Releases those of a stage; they can be begun again. */
void wk_model_drop_weights(wk_model *model, uint32_t stage);
/* All of a stage as places of the recording that is open, until they are dropped. On failure its
 * device holds the sentence. */
wick_status wk_model_place_weights(wk_model *model, uint32_t stage);
/* The stage has some. */
bool wk_model_has_weights(const wk_model *model, uint32_t stage);
/* The weight of a stage that tensor is; NULL: it is none, or is not loaded. */
const wick_tensor *wk_model_weight(wk_model *model, const wick_file_tensor *tensor, uint32_t stage);
/* Every weight is there. */
wick_status wk_model_finish_weights(wk_model *model, wick_error *err);

/* A low-rank change of a weight [n, k] (Hu et al., 2021): y += b (scale (a x)), after its linear.
 * Lies beside the weight, and comes again with it where a device was lost. */
typedef struct wk_factors {
    struct wk_factors *next; /* of the layer */
    uint32_t layer;
    int weight; /* wk_layer_weight */
    float scale;
    float dropout; /* while it is trained: x is left out at random for a; 0 at first */
    int64_t rank, n, k;
    wick_tensor *a, *b; /* [rank, k], [n, rank] f32 */
    float *values;      /* of a, then of b, as they were added */
} wk_factors;
typedef struct wk_factors_desc {
    wick_string name; /* of the weight in the file */
    float scale;
    int64_t rank;
    const float *a, *b; /* copied */
} wk_factors_desc;
/* The matrices of attention, of an MLP or of the experts that see every row, and those before and
 * after a causal convolution or a scan. */
enum {
    WK_PART_Q = 1 << 0,
    WK_PART_K = 1 << 1,
    WK_PART_V = 1 << 2,
    WK_PART_O = 1 << 3,
    WK_PART_GATE = 1 << 4,
    WK_PART_UP = 1 << 5,
    WK_PART_DOWN = 1 << 6,
    WK_PART_IN = 1 << 7,
    WK_PART_OUT = 1 << 8,
};
/* Which of them the weight of this name holds: more than one where it is fused, 0 where it cannot
 * be adapted. shape: [n, k]. */
uint32_t wk_model_can_adapt(const wk_model *model, wick_string name, wick_shape *shape);
/* From now on, after those that the weight has already; its weights are loaded, and no plan of the
 * model is recorded. WICK_ERR_UNSUPPORTED: the weight cannot be adapted. */
wick_status wk_model_add_factors(wk_model *model, const wk_factors_desc *desc, wk_factors **out,
                                 wick_error *err);
void wk_model_remove_factors(wk_model *model, wk_factors *factors);

/* Adapters beside each other, of which every row of a batch has its own (adapters.c). */
typedef struct wk_adapter {
    struct wk_adapter *next; /* of the model */
    uint32_t number;         /* from 1 on, which rows name it by */
    wk_factors *factors;     /* without tensors, multiplied by their scales */
} wk_adapter;
/* Without factors. */
wick_status wk_adapter_make(wk_model *model, wk_adapter **out, wick_error *err);
/* Until it is loaded. As wk_model_add_factors. */
wick_status wk_adapter_add(const wk_model *model, wk_adapter *adapter, const wk_factors_desc *desc,
                           wk_factors **out, wick_error *err);
/* Its factors of the weight of this name; NULL: none. */
const wk_factors *wk_adapter_find(const wk_model *model, const wk_adapter *adapter,
                                  wick_string name);
/* To the devices, from where batches are computed with it. Where a batch is running, it goes on as
 * it began. On failure a device holds the sentence. */
wick_status wk_adapter_load(wk_model *model, const wk_adapter *adapter);
/* No row of a batch to come names it. */
void wk_adapter_remove(wk_model *model, wk_adapter *adapter);
/* Plans of batches with adapters that were recorded under another version are recorded again. */
uint32_t wk_model_adapters_version(const wk_model *model);

/* What a stage's layers keep between batches, of several sequences: of attention two tensors
 * [n_blocks, n_heads_kv, block_size, head_dim], f32, f16, q8_0 or q4_0; recurrent states [n_slots,
 * ..], f32, which a token at position 0 resets. On failure the stage's device holds the sentence.
 */
typedef struct wk_state wk_state;
typedef struct wk_cache_desc {
    uint32_t n_blocks, block_size;
    wick_dtype dtype;
    uint32_t n_window_blocks; /* of layers with a window, which have tables of their own */
    uint32_t n_slots;         /* sequences that have a recurrent state */
} wk_cache_desc;
/* Whether every layer's rows are whole blocks of such a cache. */
wick_status wk_model_check_cache(const wk_model *model, wick_dtype dtype, wick_error *err);
wick_status wk_state_make(const wk_model *model, uint32_t stage, const wk_cache_desc *desc,
                          wk_state **out);
void wk_state_free(wk_state *state);
/* To no fewer blocks and slots, with what is in them; queued. What is recorded with the state's
 * tensors has to be recorded again. On failure some layers have more than before, and the call can
 * be repeated. */
wick_status wk_state_grow(const wk_model *model, wk_state *state, const wk_cache_desc *desc);
/* What one of them holds goes to another one; queued. */
typedef enum wk_state_kind {
    WK_STATE_BLOCKS,
    WK_STATE_WINDOW_BLOCKS,
    WK_STATE_SLOTS,
} wk_state_kind;
wick_status wk_state_copy(const wk_model *model, const wk_state *state, wk_state_kind kind,
                          uint32_t from, uint32_t to);
/* The same to the host and back: a cell is a block or a slot, all layers of the stage in it one
 * after the other, as they lie in its device's memory. Bytes, a multiple of 4; to words [1, n] from
 * *at on, which moves (queued; of the scope that is open; false: the device holds the sentence). */
size_t wk_state_cell_bytes(const wk_model *model, const wk_state *state, wk_state_kind kind);
bool wk_state_pack(const wk_model *model, const wk_state *state, wk_state_kind kind, uint32_t cell,
                   wick_tensor *packed, int64_t *at);
wick_status wk_state_unpack(const wk_model *model, const wk_state *state, wk_state_kind kind,
                            uint32_t cell, const unsigned char *bytes);
/* A new text begins: it reads nothing that an earlier one left, so that no fault of it counts. */
void wk_state_forget_faults(wk_state *state);
uint64_t wk_state_bytes(const wk_model *model, uint32_t stage, const wk_cache_desc *desc);

/* One step's inputs. Tensors of the runner, written before each run. */
typedef struct wk_batch {
    wk_batch_layout layout;
    /* For layers with a window: other sections of the descriptor in place of layout.slots and
     * layout.tables. */
    uint32_t window_slots, window_tables;
    /* Rows that come in place of embedded tokens: row i of rows is taken where word i of the
     * section `given` is 1, not 0. It stands for a row of the table times hparams.embedding_scale.
     * rows NULL: all are tokens. Models whose layers have inputs of their own take none
     * (n_embd_layer). */
    uint32_t given;
    wick_tensor *rows; /* [rows, n_embd] f32 */
    /* Of each row the numbers of n_adapters adapters, 0 for none, in a section of the descriptor
     * [rows, n_adapters], and what each of them is multiplied by. */
    uint32_t adapters, n_adapters;
    wick_tensor *scales;                                /* [rows, n_adapters, 1] f32 */
    wick_tensor *descriptor;                            /* [layout.n_words] u32 */
    wick_tensor *cos[WK_MAX_ROPES], *sin[WK_MAX_ROPES]; /* [rows, n_pairs] f32 */
} wk_batch;

/* Layers [first, first + count), all of one stage, over the rows of batch. hidden NULL: the
 * embedded ids; else [rows, n_embd]. Result [rows, n_embd], NULL on failure. Temporaries belong to
 * the innermost scope or recording, one of which must be open; so does the result.
 *
 * state NULL: the rows are n_sequences whole texts, of n_rows / n_sequences rows each:
 *
 *   sequence   0 0 0 - 1 1 1 1      - WK_NO_ROW: padding after a shorter text
 *   position   0 1 2 0 0 1 2 3      states[]: 0, 1, ... n_sequences - 1
 *
 * Nothing is kept between passes: recurrent layers begin at zero, and queries meet the keys and
 * values of these rows (the op attention, which has a decomposition), in f32. Beside an f32 cache
 * that gives the same bits on the CPU; on a GPU the kernels of the two ops may add up keys in
 * another order (they did not where it was tried). Slots, tables and lengths of the descriptor are
 * not used. Layers that share keys and values must be in one pass.
 *
 * Memory grows with the rows, except that bidirectional layers with a window need n_rows^2 /
 * n_sequences bytes for a mask (64 MiB for 8192 tokens, the most that an embedder takes). */
wick_tensor *wk_model_forward(const wk_model *model, const wk_state *state, const wk_batch *batch,
                              uint32_t first, uint32_t count, wick_tensor *hidden);
/* Bytes of the tensors that are alive at once in a forward pass of n_rows, logits not counted. */
uint64_t wk_model_activation_bytes(const wk_model *model, uint32_t n_rows);
/* The rows that batch asks for after the last norm [n_outputs, n_embd]; scopes as above. */
wick_tensor *wk_model_outputs(const wk_model *model, const wk_batch *batch, wick_tensor *hidden);
/* Of a model with a classifier: what it makes of those rows [n_outputs, n_labels] f32. */
wick_tensor *wk_model_scores(const wk_model *model, const wk_batch *batch, wick_tensor *hidden);
/* Their logits [n_outputs, n_vocab] f32. */
wick_tensor *wk_model_logits(const wk_model *model, const wk_batch *batch, wick_tensor *hidden);
/* All rows after the last norm [rows, n_embd]: what a prediction head reads. */
wick_tensor *wk_model_states(const wk_model *model, const wk_batch *batch, wick_tensor *hidden);
/* The head over rows whose ids are tokens and whose batch.rows are the states before these. Of
 * those that batch asks for [n_outputs, 1 + n_embd] f32: the most probable token, and the state
 * that the head reads for the token after it. state: of WK_HEAD_STAGE. */
wick_tensor *wk_model_guess(const wk_model *model, const wk_state *state, const wk_batch *batch);

#endif
