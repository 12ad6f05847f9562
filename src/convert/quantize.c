/* convert/quantize.c: a GGUF file with other types: plans all tensors, then decodes and encodes
 * them one piece after the other, on all threads, while the new file grows under a temporary name.
 */
#include <wick/convert.h>

#include "convert/importance.h"
#include "convert/merging.h"
#include "convert/mix.h"
#include "llm/llm.h"
#include "quant/block.h"
#include "quant/encode.h"
#include "source/file.h"
#include "sys/file.h"
#include "sys/thread.h"
#include "sys/thread_pool.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
    PIECE = 1 << 20, /* elements that are in memory at once */
    ITEM = WK_QK_K,  /* no block is larger, and every block's size divides it */
    GRAIN = 16,      /* items that a thread takes at once */
    MAX_THREADS = 1024,
    N_KEYS = 6, /* that are added at most */
};

/* The part of a tensor that is being encoded: as far as it goes, memory is shared with threads. */
typedef struct piece {
    wick_dtype from, to;
    int64_t first, n;        /* elements of the tensor */
    int64_t row, per_matrix; /* elements */
    const float *importance; /* [n_matrices, row], NULL: none */
    int64_t n_matrices;
    uint8_t *source, *target; /* blocks */
    float *decoded;
    const wk_merging *merging; /* what changes the tensor; NULL: nothing does */
    int64_t *bad;              /* [threads]: the first element that cannot be encoded, else n */
} piece;

struct wick_quantizing {
    wk_heap heap;
    wick_file *file;
    const wk_gguf *gguf;
    const wk_mix *mix;
    wk_importance *importance;
    wk_merging *merging;
    wick_quantize_tensor *plan; /* [gguf->n_tensors] */
    wick_file_writer *writer;
    wk_pool *pool;
    void *buffer;
    size_t buffer_bytes;
    piece piece;        /* in buffer */
    wick_error failure; /* repeated by every later poll */

    size_t at;           /* the tensor that is being written */
    uint64_t done_bytes; /* of the tensors before it */
    uint64_t total_bytes;
};

/* ---- The plan ---- */

const char *wick_quantize_type(size_t index) {
    const wk_mix *const mix = wk_mix_get(index);
    return mix != NULL ? wk_mix_name(mix) : NULL;
}

static int64_t elements_of(const wick_file_tensor *tensor) {
    const wk_dtype_info *const info = wk_dtype_get(tensor->dtype);
    return (int64_t)(tensor->size / (uint64_t)info->block_bytes) * info->block_elements;
}

/* To blocks that it does not have already, or whose numbers an adapter changes. */
static bool is_encoded(const wick_quantize_tensor *planned) {
    const bool is_written = planned->is_merged || planned->dtype != planned->tensor->dtype;
    return is_written && wk_dtype_is_block(planned->dtype);
}

static wick_status plan_tensor(wick_quantizing *q, const wk_mix_model *model,
                               wick_quantize_tensor *planned, wick_error *err) {
    const wick_file_tensor *const tensor = planned->tensor;
    planned->dtype = wk_mix_dtype(q->mix, model, tensor, &planned->is_fallback);
    planned->is_merged = q->merging != NULL && wk_merging_begin(q->merging, tensor);
    if (is_encoded(planned) && q->importance != NULL)
        WK_TRY(wk_importance_check(q->importance, tensor, &planned->has_importance, err));
    if (planned->is_merged && !wk_can_encode(planned->dtype))
        return wk_fail(err, WICK_ERR_UNSUPPORTED,
                       "an adapter changes the tensor '%s', which cannot be encoded as %s",
                       tensor->name.text, wick_dtype_name(planned->dtype));
    if (!wk_dtype_bytes(planned->dtype, elements_of(tensor), &planned->size))
        return wk_fail(err, WICK_ERR_SHAPE, "tensor '%s' is too large", tensor->name.text);
    q->total_bytes += tensor->size;
    return WICK_OK;
}

static wick_status plan_tensors(wick_quantizing *q, wick_error *err) {
    const size_t n = q->gguf->n_tensors;
    q->plan = wk_alloc_array(&q->heap, n, sizeof *q->plan);
    if (q->plan == NULL && n > 0)
        return wk_fail_memory(err, n * sizeof *q->plan, "a list of tensors");
    const wk_mix_model model = wk_mix_model_of(q->gguf, q->importance != NULL);
    size_t n_encoded = 0, n_known = 0;
    for (size_t i = 0; i < n; i++) {
        wick_quantize_tensor *const planned = &q->plan[i];
        *planned = (wick_quantize_tensor){.tensor = &q->gguf->tensors[i]};
        WK_TRY(plan_tensor(q, &model, planned, err));
        if (is_encoded(planned)) n_encoded++;
        if (planned->has_importance) n_known++;
    }
    if (q->importance == NULL || n_encoded == 0 || n_known > 0) return WICK_OK;
    return wk_fail(err, WICK_ERR_FORMAT,
                   "the importance matrix is of another model: it knows no tensor of this one");
}

/* ---- The new file ---- */

static wick_string text_of(const char *text) { return (wick_string){text, strlen(text)}; }

/* Replaces the value of the key, or adds it. */
static void set_value(wick_value *values, size_t *n, const char *key, wick_value value) {
    value.key = text_of(key);
    size_t i = 0;
    while (i < *n && !wk_str_is((wk_str){values[i].key.text, values[i].key.size}, key)) i++;
    values[i] = value;
    if (i == *n) ++*n;
}

static wick_value u32_value(uint32_t number) {
    return (wick_value){.type = WICK_VALUE_U32, .u = number};
}

/* What llama.cpp's quantize notes about the matrix. */
static void note_importance(const wick_quantizing *q, const char *path, wick_value *values,
                            size_t *n) {
    const wick_file *const file = wk_importance_file(q->importance);
    set_value(values, n, "quantize.imatrix.file",
              (wick_value){.type = WICK_VALUE_STRING, .string = text_of(path)});
    set_value(values, n, "quantize.imatrix.entries_count",
              u32_value(wk_importance_count(q->importance)));
    const wick_value *const chunks = wick_file_find_value(file, WK_IMATRIX_CHUNKS);
    if (chunks != NULL && chunks->type == WICK_VALUE_U32)
        set_value(values, n, "quantize.imatrix.chunks_count", *chunks);
    const wick_value *const sets = wick_file_find_value(file, WK_IMATRIX_DATASETS);
    if (sets != NULL && sets->type == WICK_VALUE_ARRAY && sets->array.count > 0 &&
        sets->array.element_type == WICK_VALUE_STRING) {
        const wick_string *const names = sets->array.values;
        set_value(values, n, "quantize.imatrix.dataset",
                  (wick_value){.type = WICK_VALUE_STRING, .string = names[0]});
    }
}

static wick_status start_writer(wick_quantizing *q, const char *out, const wick_quantize_desc *desc,
                                wick_error *err) {
    const size_t n_tensors = q->gguf->n_tensors, most = q->gguf->n_values + N_KEYS;
    size_t n_values = q->gguf->n_values;
    wick_value *const values = wk_alloc_array(&q->heap, most, sizeof *values);
    wick_file_tensor *const tensors = wk_alloc_array(&q->heap, n_tensors, sizeof *tensors);
    wick_status status = WICK_OK;
    if (values == NULL || (tensors == NULL && n_tensors > 0)) {
        status =
            wk_fail_memory(err, most * sizeof *values + n_tensors * sizeof *tensors, "a header");
        goto cleanup;
    }
    if (n_values > 0) memcpy(values, q->gguf->values, n_values * sizeof *values);
    set_value(values, &n_values, "general.file_type", u32_value(wk_mix_file_type(q->mix)));
    set_value(values, &n_values, "general.quantization_version", u32_value(2));
    if (q->importance != NULL) note_importance(q, desc->imatrix, values, &n_values);
    for (size_t i = 0; i < n_tensors; i++) {
        tensors[i] = *q->plan[i].tensor;
        tensors[i].dtype = q->plan[i].dtype;
    }
    const wick_file_desc file = {.values = values,
                                 .n_values = n_values,
                                 .tensors = tensors,
                                 .n_tensors = n_tensors,
                                 .replace = desc->replace};
    status = wick_file_write_start(out, &file, &q->writer, err);

cleanup:
    wk_free(&q->heap, values, most * sizeof *values);
    wk_free(&q->heap, tensors, n_tensors * sizeof *tensors);
    return status;
}

/* ---- Starting ---- */

static wick_status find_mix(const char *name, const wk_mix **mix, wick_error *err) {
    *mix = wk_mix_find(name);
    if (*mix != NULL) return WICK_OK;
    char names[256] = "";
    size_t size = 0;
    const char *type;
    for (size_t i = 0; (type = wick_quantize_type(i)) != NULL; i++)
        size += (size_t)snprintf(names + size, sizeof names - size, " %s", type);
    return wk_fail(err, WICK_ERR_VALUE, "cannot quantize to the type '%.40s', only to%s", name,
                   names);
}

/* One block of memory for the source's elements, none of which has more than 8 bytes, what they are
 * decoded to, what that is encoded to, of at most 4 bytes each, and one number for each thread. */
static wick_status make_buffers(wick_quantizing *q, uint32_t n_threads, wick_error *err) {
    if (n_threads == 0) n_threads = (uint32_t)wk_cpu_count();
    if (n_threads > MAX_THREADS) n_threads = MAX_THREADS;
    piece *const p = &q->piece;
    q->buffer_bytes = PIECE * (8 + sizeof *p->decoded + 4) + n_threads * sizeof *p->bad;
    q->buffer = wk_alloc_aligned(&q->heap, q->buffer_bytes);
    if (q->buffer == NULL) return wk_fail_memory(err, q->buffer_bytes, "a piece of a tensor");
    p->source = q->buffer;
    p->target = p->source + PIECE * 8;
    p->decoded = (float *)(void *)(p->target + PIECE * 4);
    p->bad = (int64_t *)(void *)(p->decoded + PIECE);
    return wk_pool_make(&q->heap, (int)n_threads, &q->pool, err);
}

static wick_status start(wick_quantizing *q, const char *in, const char *out,
                         const wick_quantize_desc *desc, wick_error *err) {
    WK_TRY(find_mix(desc->type, &q->mix, err));
    WK_TRY(wick_file_open(in, &q->file, err));
    const char *const reads[] = {in, desc->imatrix};
    WK_TRY(wk_file_check_unread(&q->heap, out, reads, 2, err));
    for (size_t i = 0; i < desc->n_adapters; i++)
        WK_TRY(wk_file_check_unread(&q->heap, out, &desc->adapters[i].path, 1, err));
    q->gguf = wk_file_gguf(q->file);
    if (desc->imatrix != NULL)
        WK_TRY(wk_importance_open(&q->heap, desc->imatrix, &q->importance, err));
    if (desc->n_adapters > 0)
        WK_TRY(
            wk_merging_open(&q->heap, q->gguf, desc->adapters, desc->n_adapters, &q->merging, err));
    WK_TRY(plan_tensors(q, err));
    WK_TRY(make_buffers(q, desc->n_threads, err));
    return start_writer(q, out, desc, err);
}

static void free_quantizing(wick_quantizing *q) {
    if (q->writer != NULL) (void)wick_file_write_finish(q->writer, false, NULL);
    wk_pool_free(q->pool);
    if (q->buffer != NULL) wk_free_aligned(&q->heap, q->buffer, q->buffer_bytes);
    wk_importance_close(q->importance);
    wk_merging_close(q->merging);
    if (q->plan != NULL) wk_free(&q->heap, q->plan, q->gguf->n_tensors * sizeof *q->plan);
    wick_file_close(q->file);
    wk_heap heap = q->heap; /* q lies in it */
    wk_free(&heap, q, sizeof *q);
}

wick_status wick_quantize_start(const char *in, const char *out, const wick_quantize_desc *desc,
                                wick_quantizing **quantizing, wick_error *error) {
    if (quantizing == NULL)
        return wk_fail(error, WICK_ERR_ARGUMENT, "wick_quantize_start: quantizing is NULL");
    *quantizing = NULL;
    if (in == NULL || out == NULL || desc == NULL || desc->type == NULL)
        return wk_fail(error, WICK_ERR_ARGUMENT, "wick_quantize_start: an argument is NULL");
    wk_heap heap;
    wk_heap_init(&heap, NULL);
    wick_quantizing *const made = wk_alloc_zeroed(&heap, sizeof *made);
    if (made == NULL) return wk_fail_memory(error, sizeof *made, "quantizing");
    made->heap = heap;
    const wick_status status = start(made, in, out, desc, error);
    if (status == WICK_OK)
        *quantizing = made;
    else
        free_quantizing(made);
    return status;
}

const wick_quantize_tensor *wick_quantize_plan(const wick_quantizing *quantizing, size_t *n) {
    if (n != NULL) *n = quantizing != NULL ? quantizing->gguf->n_tensors : 0;
    return quantizing != NULL ? quantizing->plan : NULL;
}

/* ---- Working ---- */

/* Bytes of n elements, which fill whole blocks. */
static int64_t bytes_of(wick_dtype dtype, int64_t n) {
    const wk_dtype_info *const info = wk_dtype_get(dtype);
    return n / info->block_elements * info->block_bytes;
}

/* Elements [begin, end) of the piece, row by row: importance is that of a row's channels. */
static void encode_rows(const piece *p, int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end;) {
        const int64_t at = p->first + i, channel = at % p->row;
        const int64_t left = p->row - channel;
        const int64_t n = left < end - i ? left : end - i;
        const int64_t matrix = p->n_matrices > 1 ? at / p->per_matrix : 0;
        const float *const importance =
            p->importance != NULL ? p->importance + matrix * p->row + channel : NULL;
        wk_encode(p->to, p->decoded + i, importance, p->target + bytes_of(p->to, i), n);
        i += n;
    }
}

/* Items of ITEM elements. */
static void encode_items(void *argument, int worker, int64_t first_item, int64_t end_item) {
    const piece *const p = argument;
    const int64_t begin = first_item * ITEM;
    const int64_t end = end_item * ITEM < p->n ? end_item * ITEM : p->n;
    wk_decoder(p->from)(p->source + bytes_of(p->from, begin), p->decoded + begin, end - begin);
    if (p->merging != NULL)
        wk_merging_add(p->merging, p->first + begin, end - begin, p->decoded + begin);
    const int64_t bad = begin + wk_find_unencodable(p->to, p->decoded + begin, end - begin);
    if (bad == end)
        encode_rows(p, begin, end);
    else if (bad < p->bad[worker])
        p->bad[worker] = bad;
}

static wick_status encode_piece(wick_quantizing *q, const wick_quantize_tensor *planned,
                                wick_error *err) {
    piece *const p = &q->piece;
    const int n_threads = wk_pool_size(q->pool);
    for (int i = 0; i < n_threads; i++) p->bad[i] = p->n;
    wk_pool_run(q->pool, encode_items, p, (p->n + ITEM - 1) / ITEM, GRAIN);
    int64_t bad = p->n;
    for (int i = 0; i < n_threads; i++) bad = p->bad[i] < bad ? p->bad[i] : bad;
    if (bad == p->n) return WICK_OK;
    return wk_fail(err, WICK_ERR_VALUE,
                   "tensor '%s', element %" PRId64 ": %g cannot be stored as"
                   " %s",
                   planned->tensor->name.text, p->first + bad, (double)p->decoded[bad],
                   wick_dtype_name(planned->dtype));
}

/* The next elements of the tensor, at most PIECE; those that keep their type are copied. */
static wick_status work_on(wick_quantizing *q, const wick_quantize_tensor *planned,
                           wick_error *err) {
    piece *const p = &q->piece;
    const wick_file_tensor *const tensor = planned->tensor;
    const int64_t left = elements_of(tensor) - p->first;
    p->n = left < PIECE ? left : PIECE;
    const size_t size = (size_t)bytes_of(p->from, p->n);
    const uint64_t offset = tensor->offset + (uint64_t)bytes_of(p->from, p->first);
    WK_TRY(wick_file_read(q->file, offset, p->source, size, err));
    if (p->from == p->to && p->merging == NULL) {
        WK_TRY(wick_file_write(q->writer, p->source, size, err));
    } else {
        WK_TRY(encode_piece(q, planned, err));
        WK_TRY(wick_file_write(q->writer, p->target, (size_t)bytes_of(p->to, p->n), err));
    }
    p->first += p->n;
    return WICK_OK;
}

static wick_status begin_tensor(wick_quantizing *q, const wick_quantize_tensor *planned,
                                wick_error *err) {
    piece *const p = &q->piece;
    const wick_shape *const shape = &planned->tensor->shape;
    p->from = planned->tensor->dtype;
    p->to = planned->dtype;
    p->row = shape->rank > 0 ? shape->extent[shape->rank - 1] : 1;
    p->per_matrix = shape->rank == 3 ? p->row * shape->extent[1] : elements_of(planned->tensor);
    p->importance = NULL;
    p->n_matrices = 1;
    p->merging =
        q->merging != NULL && wk_merging_begin(q->merging, planned->tensor) ? q->merging : NULL;
    if (!planned->has_importance) return WICK_OK;
    return wk_importance_read(q->importance, planned->tensor, &p->importance, &p->n_matrices, err);
}

static wick_status do_slice(wick_quantizing *q, wick_error *err) {
    if (q->at == q->gguf->n_tensors) return WICK_OK;
    const wick_quantize_tensor *const planned = &q->plan[q->at];
    if (q->piece.first == 0) WK_TRY(begin_tensor(q, planned, err));
    WK_TRY(work_on(q, planned, err));
    if (q->piece.first == elements_of(planned->tensor)) {
        q->done_bytes += planned->tensor->size;
        q->piece.first = 0;
        q->at++;
    }
    return q->at == q->gguf->n_tensors ? WICK_OK : WICK_PENDING;
}

wick_status wick_quantize_poll(wick_quantizing *quantizing, wick_progress *progress,
                               wick_error *error) {
    if (quantizing == NULL)
        return wk_fail(error, WICK_ERR_ARGUMENT, "wick_quantize_poll: quantizing is NULL");
    wick_quantizing *const q = quantizing;
    wick_status status = q->failure.status;
    if (status == WICK_OK) status = do_slice(q, &q->failure);
    if (progress != NULL) {
        const uint64_t here = (uint64_t)bytes_of(q->piece.from, q->piece.first);
        *progress = (wick_progress){.done = q->done_bytes + here, .total = q->total_bytes};
    }
    return status < 0 ? wk_fail(error, status, "%s", q->failure.message) : status;
}

wick_status wick_quantize_finish(wick_quantizing *quantizing, bool commit, wick_error *error) {
    if (quantizing == NULL)
        return wk_fail(error, WICK_ERR_ARGUMENT, "wick_quantize_finish: quantizing is NULL");
    wick_file_writer *const writer = quantizing->writer;
    quantizing->writer = NULL;
    const wick_status status = wick_file_write_finish(writer, commit, error);
    free_quantizing(quantizing);
    return status;
}
