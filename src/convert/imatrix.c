/* convert/imatrix.c: sums of the squared inputs of every linear while a model reads a text.
 *
 * To first order, an error e in column c of a matrix costs e^2 E[x_c^2] in its output, x being the
 * input: that mean is the channel's importance. The operations are watched where they are queued; a
 * linear's input is looked at when it has been computed, and lies in memory. */
#include <wick/convert.h>

#include "convert/importance.h"
#include "core/str.h"
#include "llm/llm.h"
#include "source/file.h"
#include "sys/file.h"
#include "tensor/observe.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { DEFAULT_CHUNK = 512, N_VALUES = 5 };

/* A matrix and what has gone into it. */
typedef struct linear {
    const wick_file_tensor *tensor;
    const wick_tensor *weight;
    int64_t n_matrices, k;
    double *sums;    /* [n_matrices, k] */
    double *counts;  /* [n_matrices]: rows that were summed */
    uint32_t n_seen; /* tokens of the chunk whose rows were summed */
} linear;

struct wick_imatrix {
    wk_heap heap;
    wk_arena arena; /* of all that follows */
    wick_model *model;
    wick_session *session;
    wk_observer *observer;
    char *path, *dataset;
    bool replace;
    uint32_t *ids; /* [n_ids], whole chunks */
    size_t n_ids, at;
    uint32_t chunk_length, begin; /* begin: WICK_NO_TOKEN where it is not wanted */
    bool is_reading;              /* a chunk */
    wick_status status;           /* of watching */
    linear *linears;
    size_t n_linears;
};

/* ---- Watching ---- */

/* An input row, [k], of a matrix. */
static void add_row(linear *l, int64_t matrix, const float *row) {
    double *const sums = l->sums + matrix * l->k;
    for (int64_t c = 0; c < l->k; c++) sums[c] += (double)row[c] * (double)row[c];
    l->counts[matrix]++;
}

static const void *data_of(const wk_view *view) {
    return (const uint8_t *)view->buf->data + view->offset;
}

/* Row i of x: of [m, k], or of [m, u, k], where (i, j) goes into the matrix ids[i, j]. Operands: y,
 * x, weight, bias, and of experts ids. */
static void add_token(linear *l, const wk_op *op, int64_t i) {
    const wk_view *const x = &op->view[1], *const ids = &op->view[4];
    const float *const row = (const float *)data_of(x) + i * x->stride[0];
    assert(i < x->extent[0] && x->dtype == WICK_F32 && x->extent[x->rank - 1] == l->k);
    assert(x->stride[x->rank - 1] == 1 || l->k == 1);
    if (op->code == WK_OP_LINEAR) {
        add_row(l, 0, row);
        return;
    }
    const uint32_t *const matrices = (const uint32_t *)data_of(ids) + i * ids->stride[0];
    for (int64_t j = 0; j < x->extent[1]; j++) {
        const uint32_t matrix = matrices[j * ids->stride[1]];
        if (matrix >= l->n_matrices) continue; /* its kernel takes no such row either */
        add_row(l, matrix, row + j * x->stride[1]);
    }
}

/* Each token once, also where a batch that failed is computed again. */
static void add_tokens(linear *l, const wk_op *op, const wk_batch_rows *rows) {
    for (uint32_t i = 0; i < rows->n; i++) {
        if (rows->position + i != l->n_seen) continue;
        add_token(l, op, rows->first + i);
        l->n_seen++;
    }
}

/* Whether it is the weight, or one of those side by side of which products of the same x are made
 * as one (tensor/join.c). */
static bool is_in(const linear *l, const wk_view *weight) {
    uint64_t begin, end, first, last;
    const wk_view *const own = &l->weight->view;
    if (own->buf != weight->buf) return false;
    wk_view_range(own, &begin, &end);
    wk_view_range(weight, &first, &last);
    return first <= begin && end <= last;
}

static bool is_known(const wick_imatrix *m, const wk_view *weight) {
    for (size_t i = 0; i < m->n_linears; i++)
        if (is_in(&m->linears[i], weight)) return true;
    return false;
}

static void look(void *user, const wk_op *op) {
    const wick_imatrix *const m = user;
    const wk_batch_rows rows = wk_session_batch_rows(m->session);
    for (size_t i = 0; i < m->n_linears; i++)
        if (is_in(&m->linears[i], &op->view[2])) add_tokens(&m->linears[i], op, &rows);
}

/* While a plan is being recorded there is no memory yet. */
static void observe(void *user, const wk_call *call) {
    wick_imatrix *const m = user;
    const wk_op *const op = &call->op;
    if (!wk_op_is_linear(op) || op->view[1].buf->place != 0) return;
    if (m->status != WICK_OK || !is_known(m, &op->view[2])) return;
    m->status = wk_observer_look(m->observer, op, look);
}

/* ---- Starting ---- */

static wick_status fail_memory(wick_error *err) {
    return wk_fail_memory(err, 0, "an importance matrix");
}

static char *copy_text(wick_imatrix *m, const char *text) {
    if (text == NULL) return NULL;
    const size_t size = strlen(text) + 1;
    char *const copy = wk_arena_alloc(&m->arena, size);
    if (copy != NULL) memcpy(copy, text, size);
    return copy;
}

static bool is_of_layer(const wick_file_tensor *tensor) {
    return wk_str_matches(wk_str_of("blk.*"), (wk_str){tensor->name.text, tensor->name.size});
}

static wick_status list_linears(wick_imatrix *m, wick_error *err) {
    const wk_gguf *const gguf = m->model->gguf;
    m->linears = wk_arena_array(&m->arena, gguf->n_tensors, sizeof *m->linears);
    if (m->linears == NULL) return fail_memory(err);
    for (size_t i = 0; i < gguf->n_tensors; i++) {
        const wick_file_tensor *const tensor = &gguf->tensors[i];
        const wick_shape *const shape = &tensor->shape;
        const bool is_linear =
            (wk_model_weight_uses(m->model->model, tensor, 0) & WK_USE_LINEAR) != 0;
        if (!is_linear || !is_of_layer(tensor) || shape->rank < 2) continue;
        linear *const l = &m->linears[m->n_linears++];
        *l = (linear){.tensor = tensor,
                      .weight = wk_model_weight(m->model->model, tensor, 0),
                      .n_matrices = shape->rank == 3 ? shape->extent[0] : 1,
                      .k = shape->extent[shape->rank - 1]};
        l->sums = wk_arena_array(&m->arena, (size_t)(l->n_matrices * l->k), sizeof *l->sums);
        l->counts = wk_arena_array(&m->arena, (size_t)l->n_matrices, sizeof *l->counts);
        if (l->sums == NULL || l->counts == NULL) return fail_memory(err);
    }
    return WICK_OK;
}

/* Chunks that fill a batch exactly: each is rounded up to a power of two. */
static wick_status choose_chunk(wick_imatrix *m, uint32_t asked_for, size_t n, wick_error *err) {
    const uint32_t context = m->model->info.context_length;
    uint32_t length = asked_for != 0 ? asked_for : DEFAULT_CHUNK;
    while (asked_for == 0 && context != 0 && length > context && length > 2) length /= 2;
    if (length > 8192 || length < 2 || (length & (length - 1)) != 0)
        return wk_fail(err, WICK_ERR_VALUE,
                       "chunks of %" PRIu32 " tokens: the length must be a"
                       " power of two from 2 to 8192",
                       length);
    if (n < length)
        return wk_fail(err, WICK_ERR_VALUE,
                       "the text has %zu of the %" PRIu32 " tokens that one chunk needs", n,
                       length);
    m->chunk_length = length;
    m->n_ids = n / length * length;
    return WICK_OK;
}

/* A path that cannot be written is reported before the work, not after it. */
static wick_status check_path(wick_imatrix *m, const wick_imatrix_desc *desc, wick_error *err) {
    WK_TRY(wk_file_check_new(desc->path, desc->replace, err));
    return wk_file_try_write(&m->heap, desc->path, err);
}

static wick_status start(wick_imatrix *m, const uint32_t *ids, size_t n,
                         const wick_imatrix_desc *desc, wick_error *err) {
    wick_device_info device;
    wick_device_get_info(m->model->device, &device);
    if (device.backend != WICK_BACKEND_CPU)
        return wk_fail(err, WICK_ERR_UNSUPPORTED,
                       "an importance matrix is computed on the CPU alone");
    WK_TRY(choose_chunk(m, desc->chunk_length, n, err));
    WK_TRY(check_path(m, desc, err));
    m->path = copy_text(m, desc->path);
    m->dataset = copy_text(m, desc->dataset);
    m->ids = wk_arena_array(&m->arena, m->n_ids, sizeof *m->ids);
    if (m->path == NULL || m->ids == NULL || (desc->dataset != NULL && m->dataset == NULL))
        return fail_memory(err);
    memcpy(m->ids, ids, m->n_ids * sizeof *ids);
    const uint32_t begin = wick_token_begin(m->model->tokenizer);
    m->begin = ids[0] == begin ? begin : WICK_NO_TOKEN;
    m->replace = desc->replace;
    WK_TRY(list_linears(m, err));
    const wick_session_desc session = {.context_length = m->chunk_length + 1,
                                       .no_reuse = true, /* every token counts */
                                       .chunk_length = m->chunk_length,
                                       .max_tokens = 1,
                                       .ignore_end = true};
    WK_TRY(wick_session_open(m->model, &session, &m->session, err));
    m->observer = wk_observer_add(m->model->device, &(wk_observer_hooks){.op = observe, .user = m});
    return m->observer != NULL ? WICK_OK : fail_memory(err);
}

static void free_imatrix(wick_imatrix *m) {
    wk_observer_remove(m->observer);
    wick_session_close(m->session);
    wk_arena_release(&m->arena);
    wk_heap heap = m->heap; /* m lies in it */
    wk_free(&heap, m, sizeof *m);
}

wick_status wick_imatrix_start(wick_model *model, const uint32_t *ids, size_t n,
                               const wick_imatrix_desc *desc, wick_imatrix **imatrix,
                               wick_error *error) {
    if (imatrix == NULL)
        return wk_fail(error, WICK_ERR_ARGUMENT, "wick_imatrix_start: imatrix is NULL");
    *imatrix = NULL;
    if (model == NULL || (ids == NULL && n > 0) || desc == NULL || desc->path == NULL)
        return wk_fail(error, WICK_ERR_ARGUMENT, "wick_imatrix_start: an argument is NULL");
    wk_heap heap;
    wk_heap_init(&heap, NULL);
    wick_imatrix *const made = wk_alloc_zeroed(&heap, sizeof *made);
    if (made == NULL) return fail_memory(error);
    made->heap = heap;
    wk_arena_init(&made->arena, &made->heap, 0);
    made->model = model;
    const wick_status status = start(made, ids, n, desc, error);
    if (status == WICK_OK)
        *imatrix = made;
    else
        free_imatrix(made);
    return status;
}

/* ---- Reading ---- */

static wick_status begin_chunk(wick_imatrix *m) {
    uint32_t *const chunk = m->ids + m->at;
    if (m->begin != WICK_NO_TOKEN) chunk[0] = m->begin;
    wick_session_reset(m->session);
    for (size_t i = 0; i < m->n_linears; i++) m->linears[i].n_seen = 0;
    m->is_reading = true;
    return wick_session_append_tokens(m->session, chunk, m->chunk_length);
}

static wick_status do_slice(wick_imatrix *m) {
    if (m->at == m->n_ids) return WICK_OK;
    if (!m->is_reading) WK_TRY(begin_chunk(m));
    wick_event event;
    WK_TRY(wick_session_step(m->session, &event));
    WK_TRY(m->status);
    if (event.kind == WICK_EVENT_END) {
        m->is_reading = false;
        m->at += m->chunk_length;
    }
    return m->at == m->n_ids ? WICK_OK : WICK_PENDING;
}

wick_status wick_imatrix_poll(wick_imatrix *imatrix, wick_progress *progress, wick_error *error) {
    if (imatrix == NULL)
        return wk_fail(error, WICK_ERR_ARGUMENT, "wick_imatrix_poll: imatrix is NULL");
    const wick_status status = do_slice(imatrix);
    if (progress != NULL) *progress = (wick_progress){.done = imatrix->at, .total = imatrix->n_ids};
    if (status >= 0) return status;
    wick_error reason = {.status = WICK_OK};
    (void)wick_session_error(imatrix->session, &reason);
    return wk_pass_on(error, status, &reason);
}

/* ---- Writing ---- */

/* Two tensors for each linear that was used: sums and counts. */
typedef struct tensors {
    wick_file_tensor *items;
    const linear **linears; /* of each pair */
    size_t n_pairs;
} tensors;

static wick_status add_tensor(wick_imatrix *m, const linear *l, const char *suffix, int64_t width,
                              wick_file_tensor *out) {
    const size_t size = l->tensor->name.size + strlen(suffix);
    char *const name = wk_arena_alloc(&m->arena, size + 1);
    if (name == NULL) return WICK_ERR_OUT_OF_MEMORY;
    snprintf(name, size + 1, "%s%s", l->tensor->name.text, suffix);
    *out = (wick_file_tensor){
        .name = {name, size}, .dtype = WICK_F32, .shape = WICK_SHAPE(l->n_matrices, width)};
    return WICK_OK;
}

static wick_status list_tensors(wick_imatrix *m, tensors *t) {
    t->items = wk_arena_array(&m->arena, 2 * m->n_linears, sizeof *t->items);
    t->linears = wk_arena_array(&m->arena, m->n_linears, sizeof *t->linears);
    if (t->items == NULL || t->linears == NULL) return WICK_ERR_OUT_OF_MEMORY;
    for (size_t i = 0; i < m->n_linears; i++) {
        const linear *const l = &m->linears[i];
        double count = 0;
        for (int64_t matrix = 0; matrix < l->n_matrices; matrix++) count += l->counts[matrix];
        if (count == 0) continue;
        wick_file_tensor *const pair = &t->items[2 * t->n_pairs];
        WK_TRY(add_tensor(m, l, WK_IMATRIX_SUMS, l->k, pair));
        WK_TRY(add_tensor(m, l, WK_IMATRIX_COUNTS, 1, pair + 1));
        t->linears[t->n_pairs++] = l;
    }
    return WICK_OK;
}

static wick_status write_numbers(wick_file_writer *writer, const double *numbers, int64_t n,
                                 wick_error *err) {
    for (int64_t i = 0; i < n; i++) {
        const float number = (float)numbers[i];
        WK_TRY(wick_file_write(writer, &number, sizeof number, err));
    }
    return WICK_OK;
}

static wick_string text_of(const char *text) { return (wick_string){text, strlen(text)}; }

static wick_value number_of(const char *key, size_t number) {
    return (wick_value){.key = text_of(key), .type = WICK_VALUE_U32, .u = number};
}

static wick_status write_file(wick_imatrix *m, wick_error *err) {
    tensors t = {.n_pairs = 0};
    if (list_tensors(m, &t) != WICK_OK) return fail_memory(err);
    if (t.n_pairs == 0) return wk_fail(err, WICK_ERR_STATE, "no chunk has been read yet");
    const wick_string dataset = text_of(m->dataset != NULL ? m->dataset : "");
    const wick_value values[N_VALUES] = {
        {.key = text_of("general.type"),
         .type = WICK_VALUE_STRING,
         .string = text_of(WK_IMATRIX_TYPE)},
        {.key = text_of("general.name"),
         .type = WICK_VALUE_STRING,
         .string = text_of(m->model->info.name)},
        {.key = text_of(WK_IMATRIX_DATASETS),
         .type = WICK_VALUE_ARRAY,
         .array = {WICK_VALUE_STRING, m->dataset != NULL ? 1 : 0, &dataset}},
        number_of(WK_IMATRIX_CHUNKS, m->at / m->chunk_length),
        number_of(WK_IMATRIX_CHUNK_SIZE, m->chunk_length),
    };
    const wick_file_desc desc = {.values = values,
                                 .n_values = N_VALUES,
                                 .tensors = t.items,
                                 .n_tensors = 2 * t.n_pairs,
                                 .replace = m->replace};
    wick_file_writer *writer = NULL;
    WK_TRY(wick_file_write_start(m->path, &desc, &writer, err));
    wick_status status = WICK_OK;
    for (size_t i = 0; i < t.n_pairs && status == WICK_OK; i++) {
        const linear *const l = t.linears[i];
        status = write_numbers(writer, l->sums, l->n_matrices * l->k, err);
        if (status == WICK_OK) status = write_numbers(writer, l->counts, l->n_matrices, err);
    }
    const wick_status finished = wick_file_write_finish(writer, status == WICK_OK, err);
    return status != WICK_OK ? status : finished;
}

wick_status wick_imatrix_finish(wick_imatrix *imatrix, bool commit, wick_error *error) {
    if (imatrix == NULL)
        return wk_fail(error, WICK_ERR_ARGUMENT, "wick_imatrix_finish: imatrix is NULL");
    const wick_status status = commit ? write_file(imatrix, error) : WICK_OK;
    free_imatrix(imatrix);
    return status;
}
