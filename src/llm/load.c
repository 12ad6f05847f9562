/* llm/load.c: loading a model: a machine of small steps over any source.
 *
 * Header chunks go to the parser; then the tensors follow in file order, their rows laid out on
 * their devices in slices. Nothing is read twice and nothing is sought backwards, so a stream will
 * do. Where the device is lost, it is opened again and the tensors follow once more, and so they do
 * where its memory runs out, with fewer layers for it: then a stream will not do. A model whose
 * device is lost later is loaded again by the same steps. */
#include "core/checksum.h"
#include "format/tensor_order.h"
#include "llm/llm.h"
#include "llm/placing.h"
#include "llm/runner.h"
#include "source/reader.h"
#include "source/split.h"
#include "sys/clock.h"

#include <inttypes.h>
#include <string.h>

enum {
    HEADER_CHUNK = 1 << 20,
    SLICE_SIZE = 4 << 20, /* most bytes laid out at once, unless 64 rows are more */
    SLICE_ROWS = 64,      /* uploads begin at multiples of it */
    POLL_SIZE = 8 << 20,  /* bytes after which a poll returns */
    POLL_NS = 20 * 1000 * 1000,
    IN_PLACE_ALIGNMENT = 16, /* of mapped bytes that are computed with as they lie */
};

typedef enum step {
    STEP_HEADER,
    STEP_MODEL,
    STEP_VOCABULARY,
    STEP_PLACE,  /* may have to open the host */
    STEP_DEVICE, /* only where it was lost */
    STEP_KERNELS,
    STEP_WEIGHTS,
    STEP_TENSORS,
    STEP_COMPILED,
    STEP_DONE,
} step;

struct wick_model_loading {
    wick_model *model; /* its source is open */
    wk_reader reader;
    step step;
    uint64_t position; /* bytes of the source that are done */

    bool has_sessions;
    wick_session_desc sessions; /* as the model's desc says; its pointers are not looked at */
    uint32_t n_rows;            /* of the batches whose kernels begin to compile next */
    uint32_t n_refused;         /* kernels of the device, when that began */
    bool is_retrying;           /* all is read, and some kernels were refused */
    wk_placing placing;

    bool is_again;                       /* after a loss: host weights are there */
    uint32_t first_stage;                /* weights of this stage and later ones load */
    uint32_t generation;                 /* of the device that the weights go to */
    uint64_t memory_limit;               /* of the desc */
    uint64_t fitted;                     /* bytes of its memory that they have taken */
    bool is_short;                       /* and that was all of it */
    uint32_t *order;                     /* [n_tensors] in the order of their data */
    size_t next;                         /* in order: the tensor that is being loaded */
    uint64_t checksum;                   /* of the samples of all tensors before it */
    bool has_begun;                      /* that tensor; then it goes to: */
    wick_tensor *weights[WK_MAX_STAGES]; /* NULL: none, or it is used in place */
    void *numbers;                       /* of the host */
    uint64_t sample;                     /* checksum of its name and of a sample of its bytes */

    wick_status status; /* WICK_PENDING while there are steps */
    wick_error error;
};

static const wick_file_tensor *current(const wick_model_loading *l) {
    return &l->model->gguf->tensors[l->order[l->next]];
}

/* Drops mapped bytes that will not be read again. */
static void drop(wick_model_loading *l, uint64_t offset, uint64_t size) {
    wick_source *const source = &l->model->source;
    if (l->reader.is_mapped && source->drop != NULL) source->drop(source, offset, size);
}

static const wk_placement *placement_of(const wick_model_loading *l) {
    return wk_model_placement(l->model->model);
}

/* Of a call that a stage's device refused; its sentence is in l->error. */
static wick_status note_stage(wick_model_loading *l, uint32_t stage, wick_status status) {
    const wick_device *const device = placement_of(l)->stages[stage].device;
    l->is_short = l->error.status == WICK_ERR_OUT_OF_MEMORY && device == l->model->device;
    return wk_pass_on(NULL, status, &l->error);
}

/* ---- The header ---- */

static wick_status step_header(wick_model_loading *l) {
    wick_model *const model = l->model;
    const uint64_t left = model->source.size - l->position; /* huge where it is not known */
    const size_t size = left < HEADER_CHUNK ? (size_t)left : HEADER_CHUNK;
    const unsigned char *bytes;
    size_t got;
    WK_TRY(wk_reader_get(&l->reader, l->position, size, &bytes, &got, &l->error));
    if (got == 0) return wk_gguf_parser_end(model->parser, &l->error);
    const wick_status status = wk_gguf_parser_feed(model->parser, bytes, got, NULL, &l->error);
    l->position += got;
    if (status != WICK_OK) return status;
    model->gguf = wk_gguf_parser_result(model->parser);
    WK_TRY(wk_split_check_whole(model->gguf, &l->error));
    l->position = model->gguf->data_offset;
    drop(l, 0, l->position);
    l->step = STEP_MODEL;
    return WICK_PENDING;
}

static wick_status make_order(wick_model_loading *l) {
    const wk_gguf *const gguf = l->model->gguf;
    l->order = wk_alloc_array(l->model->heap, gguf->n_tensors, sizeof *l->order);
    if (l->order == NULL)
        return wk_fail_memory(&l->error, gguf->n_tensors * sizeof *l->order, "loading a model");
    wk_tensor_order(gguf->tensors, l->order, gguf->n_tensors);
    return WICK_OK;
}

static wick_status step_model(wick_model_loading *l) {
    wick_model *const model = l->model;
    WK_TRY(wk_model_make(model->heap, model->gguf, &model->model, &l->error));
    if (model->prediction_head) WK_TRY(wk_model_use_head(model->model, &l->error));
    wk_model_keep_in_place(model->model, model->low_memory);
    wk_info_fill(model);
    if (model->cache_budget == 0)
        model->cache_budget = wk_cache_budget(model->model, model->gguf, model->device);
    model->warm = wk_runner_describe(model->model, wick_device_math(model->device),
                                     model->cache_budget, &l->sessions);
    WK_TRY(make_order(l));
    l->step = STEP_VOCABULARY;
    return WICK_PENDING;
}

/* ---- The kernels: they compile while the tensors are read ---- */

static void begin_kernels(wick_model_loading *l) {
    const wick_model *const model = l->model;
    const bool is_wanted = wk_device_compiles(model->device) && !model->no_warm_up;
    l->n_rows = 1;
    l->n_refused = wk_device_refusals(model->device);
    l->is_retrying = false;
    l->step = is_wanted ? STEP_KERNELS : STEP_WEIGHTS;
}

static wick_status step_kernels(wick_model_loading *l) {
    WK_TRY(wk_runner_rehearse(l->model, &l->model->warm, &l->n_rows, &l->error));
    if (l->n_rows == 0) l->step = l->is_retrying ? STEP_COMPILED : STEP_WEIGHTS;
    return WICK_PENDING;
}

static wick_status step_compiled(wick_model_loading *l) {
    const wick_model *const model = l->model;
    if (wk_device_compiled(model->device) == WICK_PENDING) return WICK_PENDING;
    const bool is_warm = wk_device_compiles(model->device) && !model->no_warm_up;
    if (is_warm && wk_device_refusals(model->device) != l->n_refused) {
        begin_kernels(l);
        l->is_retrying = true; /* with the kernels that take the place of the refused ones */
        return WICK_PENDING;
    }
    l->step = STEP_DONE;
    return WICK_OK;
}

static wick_status step_vocabulary(wick_model_loading *l) {
    wick_model *const model = l->model;
    WK_TRY(wk_tokenizer_of_model(model->heap, model->gguf, model->info.n_vocab, &model->tokenizer,
                                 &l->error));
    wk_placing_choose(&l->placing, model);
    l->step = STEP_PLACE;
    return WICK_PENDING;
}

/* ---- Where the layers go ---- */

static wick_status step_place(wick_model_loading *l) {
    WK_TRY(wk_placing_poll(&l->placing, l->model, &l->error));
    if (l->memory_limit > 0) WK_TRY(wk_check_limit(l->model, l->memory_limit, &l->error));
    begin_kernels(l);
    return WICK_PENDING;
}

static void drop_weights(wick_model_loading *l) {
    for (uint32_t i = l->first_stage; i < placement_of(l)->n_stages; i++)
        wk_model_drop_weights(l->model->model, i);
}

/* The device's memory has run out, and it may have fewer layers. */
static bool can_place_again(const wick_model_loading *l) {
    return l->is_short && !l->is_again && !l->model->source.is_sequential &&
           wk_placing_is_free(&l->placing, l->model);
}

/* What had fitted is what there is; once more from the first tensor on. */
static void place_again(wick_model_loading *l) {
    const uint64_t budget = l->fitted + l->error.bytes_available;
    drop_weights(l);
    l->error = (wick_error){.status = WICK_OK};
    l->is_short = false;
    wk_reader_rewind(&l->reader);
    wk_placing_choose_again(&l->placing, l->model, budget);
    l->step = STEP_PLACE;
}

/* ---- The tensors ---- */

/* What was on the lost device goes, so that the new one finds the room. */
static wick_status step_device(wick_model_loading *l) {
    drop_weights(l);
    WK_TRY(wk_device_recover(l->model->device));
    begin_kernels(l);
    return WICK_PENDING;
}

/* From the first tensor on. */
static wick_status step_weights(wick_model_loading *l) {
    wick_model *const model = l->model;
    l->generation = wk_device_generation(model->device);
    l->position = model->gguf->data_offset;
    l->next = 0;
    l->has_begun = false;
    l->checksum = 0;
    l->fitted = 0;
    model->info.weight_bytes = 0;
    if (!l->is_again) model->info.host_weight_bytes = 0;
    for (uint32_t i = l->first_stage; i < placement_of(l)->n_stages && !l->is_again; i++)
        WK_TRY(wk_check_room(model, i, l->reader.is_mapped, l->has_sessions ? &model->warm : NULL,
                             &l->error));
    for (uint32_t i = l->first_stage; i < placement_of(l)->n_stages; i++) {
        const wick_status status = wk_model_reserve_weights(model->model, i, l->reader.is_mapped);
        if (status != WICK_OK) return note_stage(l, i, status);
    }
    l->step = STEP_TENSORS;
    return WICK_PENDING;
}

/* Where the whole tensor lies in a mapping from which it can be used, else NULL. */
static const void *mapped_data(wick_model_loading *l, const wick_file_tensor *tensor) {
    if (!l->reader.is_mapped) return NULL;
    wick_source *const source = &l->model->source;
    const void *const data = source->map(source, tensor->offset, tensor->size);
    return (uintptr_t)data % IN_PLACE_ALIGNMENT == 0 ? data : NULL;
}

/* The weight that the tensor is in a stage. */
static wick_status begin_weight(wick_model_loading *l, uint32_t stage, uint32_t uses) {
    wick_model *const model = l->model;
    const wick_file_tensor *const tensor = current(l);
    wick_device *const device = placement_of(l)->stages[stage].device;
    wick_tensor *weight;
    bool in_place;
    const wick_status status = wk_model_begin_weight(model->model, stage, tensor,
                                                     mapped_data(l, tensor), &weight, &in_place);
    if (status != WICK_OK) return note_stage(l, stage, status);
    const bool is_host = device == model->host;
    *(is_host ? &model->info.host_weight_bytes : &model->info.weight_bytes) +=
        wk_weight_bytes(device, tensor->dtype, &tensor->shape, uses);
    if (!is_host) l->fitted += wk_weight_footprint(device, tensor->dtype, &tensor->shape, uses);
    if ((uses & WK_USE_LINEAR) != 0 &&
        wk_weight_is_raw(device, tensor->dtype, &tensor->shape, WK_USE_LINEAR))
        wk_info_note_slow_type(model, device, weight->view.dtype);
    model->has_weights_in_place |= in_place;
    l->weights[stage] = in_place ? NULL : weight;
    return WICK_OK;
}

/* The next bytes of the tensor that has begun. */
static void take_sample(wick_model_loading *l, uint64_t position, const void *bytes, size_t size) {
    const wick_file_tensor *const tensor = current(l);
    l->sample = wk_checksum_sample(l->sample, tensor->size, position - tensor->offset, bytes, size);
}

static wick_status begin_tensor(wick_model_loading *l) {
    const wick_file_tensor *const tensor = current(l);
    const wk_model *const model = l->model->model;
    l->numbers = wk_model_host_weight(l->model->model, tensor);
    l->sample = wk_checksum(WK_CHECKSUM_BEGIN, tensor->name.text, tensor->name.size);
    bool is_wanted = l->numbers != NULL, is_used = is_wanted;
    for (uint32_t i = 0; i < placement_of(l)->n_stages; i++) {
        const uint32_t uses = i < l->first_stage ? 0 : wk_model_weight_uses(model, tensor, i);
        l->weights[i] = NULL;
        if (uses != 0) WK_TRY(begin_weight(l, i, uses));
        is_wanted |= l->weights[i] != NULL;
        is_used |= uses != 0;
    }
    if (is_used && !is_wanted) /* in place in every stage */
        take_sample(l, tensor->offset, mapped_data(l, tensor), (size_t)tensor->size);
    l->has_begun = true;
    l->position = is_wanted ? tensor->offset : tensor->offset + tensor->size;
    return WICK_OK;
}

/* Rows [first, first + n) of the tensor that has begun, where its bytes from position on begin. */
typedef struct slice {
    int64_t first, n;
    size_t size; /* bytes */
} slice;

static slice next_slice(const wick_model_loading *l) {
    const wick_file_tensor *const tensor = current(l);
    if (tensor->shape.rank < 2) return (slice){.n = 1, .size = (size_t)tensor->size};
    int64_t n_rows = 1;
    for (int i = 0; i < tensor->shape.rank - 1; i++) n_rows *= tensor->shape.extent[i];
    const uint64_t row_size = tensor->size / (uint64_t)n_rows;
    const int64_t first = (int64_t)((l->position - tensor->offset) / row_size);
    int64_t n = (int64_t)(SLICE_SIZE / row_size) / SLICE_ROWS * SLICE_ROWS;
    if (n < SLICE_ROWS) n = SLICE_ROWS;
    if (n > n_rows - first) n = n_rows - first;
    return (slice){.first = first, .n = n, .size = (size_t)((uint64_t)n * row_size)};
}

static wick_status step_slice(wick_model_loading *l) {
    const slice rows = next_slice(l);
    const unsigned char *bytes;
    size_t got;
    WK_TRY(wk_reader_get(&l->reader, l->position, rows.size, &bytes, &got, &l->error));
    if (got < rows.size)
        return wk_fail(&l->error, WICK_ERR_FORMAT,
                       "the file ends at byte %" PRIu64 ", inside the tensor '%s': it is cut off",
                       l->position + got, current(l)->name.text);
    if (l->numbers != NULL) memcpy(l->numbers, bytes, rows.size);
    take_sample(l, l->position, bytes, rows.size);
    for (uint32_t i = 0; i < placement_of(l)->n_stages; i++) {
        wick_tensor *const weight = l->weights[i];
        const wick_status status =
            weight != NULL ? wk_weight_upload(weight, rows.first, rows.n, bytes) : WICK_OK;
        if (status != WICK_OK) return note_stage(l, i, status);
    }
    drop(l, l->position, rows.size);
    l->position += rows.size;
    (void)wk_device_compiled(l->model->device); /* kernels go on meanwhile */
    return WICK_PENDING;
}

static wick_status step_tensors(wick_model_loading *l) {
    wick_model *const model = l->model;
    if (l->next == model->gguf->n_tensors) {
        /* What was sent to a device that has been lost did not fail: it must be asked. */
        WK_TRY(wk_device_check(model->device));
        if (wk_device_generation(model->device) != l->generation) return WICK_ERR_DEVICE_LOST;
        WK_TRY(wk_model_finish_weights(model->model, &l->error));
        model->generation = l->generation;
        /* Weights that are loaded again are those of the lost device only. */
        if (!l->is_again) model->weights_checksum = l->checksum;
        l->position = model->info.file_bytes;
        l->step = STEP_COMPILED;
        return WICK_PENDING;
    }
    if (!l->has_begun) WK_TRY(begin_tensor(l));
    const wick_file_tensor *const tensor = current(l);
    if (l->position < tensor->offset + tensor->size) WK_TRY(step_slice(l));
    if (l->position == tensor->offset + tensor->size) {
        l->has_begun = false;
        l->checksum += l->sample; /* the order in the file does not count */
        l->next++;
    }
    return WICK_PENDING;
}

/* ---- The interface ---- */

static wick_status do_step(wick_model_loading *l) {
    switch (l->step) {
    case STEP_HEADER: return step_header(l);
    case STEP_MODEL: return step_model(l);
    case STEP_VOCABULARY: return step_vocabulary(l);
    case STEP_PLACE: return step_place(l);
    case STEP_DEVICE: return step_device(l);
    case STEP_KERNELS: return step_kernels(l);
    case STEP_WEIGHTS: return step_weights(l);
    case STEP_TENSORS: return step_tensors(l);
    case STEP_COMPILED: return step_compiled(l);
    case STEP_DONE: break;
    }
    return WICK_OK;
}

/* A loss is followed by the steps that make up for it, where the source allows that; so is a lack
 * of memory. */
static wick_status advance(wick_model_loading *l) {
    const wick_status status = do_step(l);
    if (status != WICK_OK && can_place_again(l)) {
        place_again(l);
        return WICK_PENDING;
    }
    if (status != WICK_ERR_DEVICE_LOST || l->step == STEP_DEVICE || l->model->source.is_sequential)
        return status;
    l->error = (wick_error){.status = WICK_OK};
    wk_reader_rewind(&l->reader);
    l->step = STEP_DEVICE;
    return WICK_PENDING;
}

static wick_status start(wick_device *device, wick_source *source, const wick_model_desc *desc,
                         wick_model_loading **loading, wick_error *error) {
    wk_heap *const heap = wk_device_heap(device);
    wick_model_loading *const l = wk_alloc_zeroed(heap, sizeof *l);
    wick_model *const model = wk_alloc_zeroed(heap, sizeof *model);
    wk_gguf_parser *parser = NULL;
    wick_status status;
    if (l == NULL || model == NULL) {
        status = wk_fail_memory(error, sizeof *l + sizeof *model, "loading a model");
    } else {
        status = wk_gguf_parser_make(heap, source->size, &parser, error);
    }
    if (status != WICK_OK) {
        wk_free(heap, l, sizeof *l);
        wk_free(heap, model, sizeof *model);
        return status;
    }
    *model = (wick_model){.device = device,
                          .heap = heap,
                          .parser = parser,
                          .source = *source,
                          .no_map = desc != NULL && desc->no_map,
                          .no_warm_up = desc != NULL && desc->no_warm_up,
                          .low_memory = desc != NULL && desc->low_memory,
                          .prediction_head = desc != NULL && desc->prediction_head,
                          .cache_budget = desc != NULL ? desc->cache_limit : 0,
                          .snapshot_budget = wk_snapshot_budget(desc)};
    *l = (wick_model_loading){
        .model = model, .placing = wk_placing_of(desc), .status = WICK_PENDING};
    l->has_sessions = desc != NULL && desc->sessions != NULL;
    if (l->has_sessions) l->sessions = *desc->sessions;
    if (desc != NULL) l->memory_limit = desc->memory_limit;
    wk_reader_init(&l->reader, heap, &model->source, !model->no_map);
    *loading = l;
    return WICK_OK;
}

/* What wick_model_desc cannot ask for. */
static wick_status check_desc(const wick_model_desc *desc, const wick_source *source,
                              wick_error *error) {
    if (desc == NULL) return WICK_OK;
    if (desc->device_layers < WICK_NO_LAYERS)
        return wk_fail(error, WICK_ERR_VALUE,
                       "there is no such number of layers on a device: %" PRId32,
                       desc->device_layers);
    if (!desc->low_memory) return WICK_OK;
    if (desc->no_map)
        return wk_fail(error, WICK_ERR_VALUE,
                       "low_memory computes with the mapped file, so it cannot go with no_map");
    if (source->map == NULL || source->size == WICK_SIZE_UNKNOWN)
        return wk_fail(error, WICK_ERR_UNSUPPORTED,
                       "low_memory computes with the mapped file, but this source cannot be "
                       "mapped");
    return WICK_OK;
}

wick_status wick_model_open_start(wick_device *device, wick_source source,
                                  const wick_model_desc *desc, wick_model_loading **loading,
                                  wick_error *error) {
    const bool is_complete = source.read_at != NULL && source.poll != NULL && source.close != NULL;
    wick_status status;
    if (loading != NULL) *loading = NULL;
    if (device == NULL || loading == NULL || !is_complete) {
        status = wk_fail(error, WICK_ERR_ARGUMENT,
                         "wick_model_open_start: an argument is NULL or the source is incomplete");
    } else {
        status = check_desc(desc, &source, error);
        if (status == WICK_OK) status = start(device, &source, desc, loading, error);
    }
    if (status != WICK_OK && source.close != NULL) source.close(&source);
    return status;
}

static void report(const wick_model_loading *l, wick_progress *progress) {
    const wick_model *const model = l->model;
    const bool is_known = model->source.size != WICK_SIZE_UNKNOWN;
    *progress = (wick_progress){
        .done = l->position,
        .total = is_known ? model->source.size : model->info.file_bytes,
    };
}

wick_status wick_model_open_poll(wick_model_loading *loading, wick_progress *progress) {
    if (loading == NULL) return WICK_ERR_ARGUMENT;
    wick_model_loading *const l = loading;
    const uint64_t begun_at = wk_clock_ns(), begun = l->position;
    bool has_moved = true;
    while (l->status == WICK_PENDING && has_moved && l->position - begun < POLL_SIZE &&
           wk_clock_ns() - begun_at < POLL_NS) {
        const uint64_t position = l->position;
        const size_t next = l->next;
        const uint32_t n_rows = l->n_rows;
        const step last = l->step;
        const wk_model_errors before = wk_model_borrow(l->model, &l->error);
        l->status = advance(l);
        wk_model_give_back(l->model, before);
        /* Else it waits for bytes, a device or kernels. */
        has_moved =
            l->position != position || l->next != next || l->n_rows != n_rows || l->step != last;
    }
    if (progress != NULL) report(l, progress);
    return l->status;
}

/* After the source where a read may be under way into the reader's buffer: only close ends it. */
static void free_loading(wick_model_loading *l) {
    wk_heap *const heap = l->model->heap;
    if (l->order != NULL) wk_free(heap, l->order, l->model->gguf->n_tensors * sizeof *l->order);
    wk_placing_release(&l->placing);
    wk_reader_release(&l->reader);
    wk_free(heap, l, sizeof *l);
}

/* The source is still of use: weights lie in it, or it can make up for a loss. */
static bool needs_source(const wick_model *model) {
    return model->has_weights_in_place ||
           (wk_device_can_be_lost(model->device) && !model->source.is_sequential);
}

static wick_status open_finish(wick_model_loading *l, wick_model **model, wick_error *error) {
    wick_status status = l->status;
    wick_model *const made = l->model;
    if (status == WICK_PENDING)
        status = wk_fail(&l->error, WICK_ERR_CANCELLED, "loading the model was cancelled");
    if (status != WICK_OK) {
        status = wk_pass_on(error, status, &l->error);
        made->loading = l; /* which ends with it */
        wick_model_close(made);
        return status;
    }
    if (!needs_source(made)) {
        made->source.close(&made->source);
        made->source.close = NULL;
    }
    free_loading(l);
    wk_device_settle(made->device);
    *model = made;
    return WICK_OK;
}

void wk_loading_free(wick_model_loading *loading) {
    if (loading != NULL) free_loading(loading);
}

/* ---- Loading again ---- */

static wick_status start_again(wick_model *model) {
    wick_error *const err = wk_device_err(model->device);
    wick_model_loading *const l = wk_alloc_zeroed(model->heap, sizeof *l);
    if (l == NULL) return wk_fail_memory(err, sizeof *l, "loading a model");
    *l = (wick_model_loading){.model = model,
                              .step = STEP_DEVICE,
                              .is_again = true,
                              .first_stage = wk_model_placement(model->model)->n_stages - 1,
                              .status = WICK_PENDING};
    wk_reader_init(&l->reader, model->heap, &model->source, !model->no_map);
    const wick_status status = wk_pass_on(err, make_order(l), &l->error);
    if (status == WICK_OK)
        model->loading = l;
    else
        free_loading(l);
    return status;
}

wick_status wk_model_restore(wick_model *model) {
    wick_device *const device = model->device;
    if (model->info.host_layers == model->info.n_layers) return WICK_OK; /* nothing was on it */
    if (!wk_device_is_lost(device) && model->generation == wk_device_generation(device))
        return WICK_OK;
    if (model->source.close == NULL)
        return wk_device_fail(device, WICK_ERR_DEVICE_LOST,
                              "the device was lost, and with it the model: it came from a stream, "
                              "which cannot be read again");
    if (model->loading == NULL) WK_TRY(start_again(model));
    wick_model_loading *const l = model->loading;
    wick_status status = wick_model_open_poll(l, NULL);
    if (status == WICK_PENDING) return WICK_PENDING;
    status = wk_pass_on(wk_device_err(device), status, &l->error);
    model->loading = NULL;
    free_loading(l);
    return status;
}

wick_status wick_model_open_finish(wick_model_loading *loading, wick_model **model,
                                   wick_error *error) {
    if (model != NULL) *model = NULL;
    if (loading == NULL)
        return wk_fail(error, WICK_ERR_ARGUMENT, "wick_model_open_finish: loading is NULL");
    if (model == NULL)
        loading->status =
            wk_fail(&loading->error, WICK_ERR_ARGUMENT, "wick_model_open_finish: model is NULL");
    return open_finish(loading, model, error);
}

wick_status wick_model_open(wick_device *device, const char *path, const wick_model_desc *desc,
                            wick_model **model, wick_error *error) {
    if (model != NULL) *model = NULL;
    if (device == NULL || path == NULL || model == NULL)
        return wk_fail(error, WICK_ERR_ARGUMENT, "wick_model_open: an argument is NULL");
    wick_source source;
    wick_model_loading *loading;
    WK_TRY(wick_source_files(&path, 1, &source, error));
    WK_TRY(wick_model_open_start(device, source, desc, &loading, error));
    while (wick_model_open_poll(loading, NULL) == WICK_PENDING)
        if (loading->step == STEP_COMPILED) wick_pause(device);
    wick_error reason = {.status = WICK_OK};
    if (wick_model_open_finish(loading, model, &reason) == WICK_OK) return WICK_OK;
    return wk_fail_in_file(error, path, &reason);
}
