/* llm/session_load.c: a session from bytes, see wick/saving.h and session_image.h. The session
 * stays empty until the checksum was right. */
#include <wick/saving.h>

#include "core/checksum.h"
#include "llm/session_image.h"
#include "source/reader.h"

#include <inttypes.h>
#include <string.h>

typedef enum stage {
    HEADER,
    ROOM,
    TOKENS,
    LOGITS,
    ROWS,
    CHECKSUM,
} stage;

struct wick_session_loading {
    wick_session *session;
    wick_source source;
    wk_reader reader;
    wick_status status; /* WICK_PENDING: going on */
    wick_error error;
    uint64_t n_changes; /* of the session, since it was reset */
    uint64_t offset, checksum;
    stage stage;
    wk_image_header header;
    wk_image_cursor cursor;
    wk_image_run run;
    bool has_run; /* run's rows come next */
    wk_image_buffers buffers;
};

static uint64_t field(const wick_session_loading *l, wk_image_field which) {
    return l->header.fields[which];
}

/* The next size bytes. */
static wick_status get(wick_session_loading *l, size_t size, const unsigned char **bytes) {
    size_t got;
    WK_TRY(wk_reader_get(&l->reader, l->offset, size, bytes, &got, &l->error));
    if (got < size)
        return wk_fail(&l->error, WICK_ERR_FORMAT,
                       "the saved session is cut off after %" PRIu64 " bytes", l->offset + got);
    l->offset += size;
    if (l->stage != CHECKSUM) l->checksum = wk_checksum(l->checksum, *bytes, size);
    return WICK_OK;
}

static wick_status read_header(wick_session_loading *l) {
    wick_session *const session = l->session;
    /* First end the batch that a reset left running, and restore a lost device. */
    wick_status status = wk_session_settle(session);
    if (status == WICK_OK) status = wk_sequence_restore(session->sequence);
    if (status == WICK_PENDING) return WICK_PENDING;
    if (status != WICK_OK) return status;
    const unsigned char *bytes;
    WK_TRY(get(l, sizeof l->header, &bytes));
    memcpy(&l->header, bytes, sizeof l->header);
    WK_TRY(wk_image_check(session, &l->header, &l->error));
    const uint64_t size = l->source.size;
    if (size == WICK_SIZE_UNKNOWN || size == field(l, WK_IMAGE_BYTES)) return WICK_OK;
    return wk_fail(&l->error, WICK_ERR_FORMAT,
                   "the saved session has %" PRIu64 " bytes, there are %" PRIu64,
                   field(l, WK_IMAGE_BYTES), size);
}

/* For what will be in the cache; another session's batch may have to end first. */
static wick_status make_room(wick_session_loading *l) {
    wk_sequence *const sequence = l->session->sequence;
    const wick_status status =
        wk_sequence_reserve(sequence, (uint32_t)field(l, WK_IMAGE_CACHED), &l->error);
    if (status == WICK_PENDING) WK_TRY(wk_sequence_step(sequence));
    if (status == WICK_OK) wk_sequence_hold(sequence);
    return status;
}

static wick_status read_tokens(wick_session_loading *l) {
    const uint32_t n_vocab = wk_model_hparams(l->session->model->model)->n_vocab;
    const size_t n = (size_t)field(l, WK_IMAGE_TOKENS);
    const unsigned char *bytes;
    uint32_t *const tokens = l->session->tokens; /* of a session that knows of none yet */
    WK_TRY(get(l, n * sizeof *tokens, &bytes));
    if (n > 0) memcpy(tokens, bytes, n * sizeof *tokens);
    for (size_t i = 0; i < n; i++)
        if (tokens[i] >= n_vocab)
            return wk_fail(&l->error, WICK_ERR_FORMAT,
                           "token %u of the saved session is not in the vocabulary of %u",
                           tokens[i], n_vocab);
    return WICK_OK;
}

static wick_status read_logits(wick_session_loading *l) {
    const size_t n = (size_t)field(l, WK_IMAGE_LOGITS);
    const unsigned char *bytes;
    WK_TRY(get(l, n * sizeof(float), &bytes));
    if (n == 0) return WICK_OK;
    return wk_sequence_set_logits(l->session->sequence, bytes);
}

/* Slots of the blocks that have not been written yet become 0. */
static wick_status write_blocks(wick_session_loading *l, const unsigned char *rows) {
    const wk_image_run *const run = &l->run;
    wick_device *const device = wick_tensor_device(run->part.tensor);
    const size_t size = wk_image_blocks_bytes(run);
    WK_TRY(wk_image_reserve(l->session->model->heap, size, &l->buffers, &l->error));
    memset(l->buffers.rows, 0, size);
    memcpy(l->buffers.rows + run->n_before * wk_state_row_bytes(&run->part), rows,
           wk_image_run_bytes(run));
    wk_state_reorder(&run->part, run->n_blocks, l->buffers.blocks, l->buffers.rows, false);
    wk_tensor_forget_fault(run->part.tensor); /* of a batch before the loading */
    const wick_scope scope = wick_scope_begin(device);
    wick_status status =
        wick_write(wk_state_blocks(&run->part, run->block, run->n_blocks), l->buffers.blocks, size);
    if (status == WICK_OK) status = wick_poll(device);
    wick_scope_end(scope);
    return status < 0 ? status : WICK_OK;
}

/* WICK_PENDING: there are more. */
static wick_status read_rows(wick_session_loading *l) {
    if (!l->has_run) l->has_run = wk_image_next(l->session, &l->header, &l->cursor, &l->run);
    if (!l->has_run) return WICK_OK;
    const unsigned char *bytes;
    WK_TRY(get(l, wk_image_run_bytes(&l->run), &bytes));
    l->has_run = false;
    if (l->run.is_kept) WK_TRY(write_blocks(l, bytes));
    return WICK_PENDING;
}

static wick_status take_over(wick_session_loading *l) {
    wick_session *const s = l->session;
    const uint32_t n_cached = (uint32_t)field(l, WK_IMAGE_CACHED);
    double surprise;
    memcpy(&surprise, &l->header.fields[WK_IMAGE_SURPRISE], sizeof surprise);
    s->n_tokens = (uint32_t)field(l, WK_IMAGE_TOKENS);
    s->n_computed = (uint32_t)field(l, WK_IMAGE_COMPUTED);
    s->n_reused = n_cached;
    s->n_since_prompt = (uint32_t)field(l, WK_IMAGE_GENERATED);
    s->n_shifted = (uint32_t)(field(l, WK_IMAGE_GENERATED) >> 32);
    s->has_logits = field(l, WK_IMAGE_LOGITS) > 0;
    s->ended = (wick_end_reason)field(l, WK_IMAGE_ENDED);
    s->detokenizer.begun = s->n_tokens > s->n_since_prompt;
    wk_sequence_resume(s->sequence, n_cached, (uint32_t)field(l, WK_IMAGE_WINDOW_BEGIN));
    const wk_rng rng = {field(l, WK_IMAGE_SEED), field(l, WK_IMAGE_STREAM),
                        field(l, WK_IMAGE_NEXT)};
    wk_sampler_resume(&s->sampler, rng, surprise);
    return s->ended == WICK_END_NONE ? wk_session_retell(s, &l->error) : WICK_OK;
}

static wick_status read_checksum(wick_session_loading *l) {
    const unsigned char *bytes;
    uint64_t checksum;
    WK_TRY(get(l, sizeof checksum, &bytes));
    memcpy(&checksum, bytes, sizeof checksum);
    if (checksum == l->checksum) return take_over(l);
    return wk_fail(&l->error, WICK_ERR_FORMAT,
                   "the saved session is damaged: its checksum differs");
}

static wick_status load(wick_session_loading *l) {
    if (l->n_changes != l->session->n_changes)
        return wk_fail(&l->error, WICK_ERR_STATE, "the session went on while it was being loaded");
    const wk_sequence *const sequence = l->session->sequence;
    if ((l->stage >= ROOM && wk_sequence_is_stale(sequence)) ||
        (l->stage > ROOM && !wk_sequence_is_held(sequence)))
        return wk_fail(&l->error, WICK_ERR_DEVICE_LOST,
                       "the device was lost while the session was being loaded");
    switch (l->stage) {
    case HEADER: WK_TRY(read_header(l)); break;
    case ROOM: WK_TRY(make_room(l)); break;
    case TOKENS: WK_TRY(read_tokens(l)); break;
    case LOGITS: WK_TRY(read_logits(l)); break;
    case ROWS: WK_TRY(read_rows(l)); break;
    case CHECKSUM: return read_checksum(l);
    }
    l->stage++;
    return WICK_PENDING;
}

wick_status wick_session_load_start(wick_session *session, wick_source source,
                                    wick_session_loading **loading, wick_error *error) {
    if (loading) *loading = NULL;
    wick_session_loading *l = NULL;
    wick_status status = WICK_OK;
    if (!session || !loading || !source.read_at || !source.poll)
        status = wk_fail(error, WICK_ERR_ARGUMENT, "wick_session_load_start: an argument is NULL");
    if (status == WICK_OK) {
        l = wk_alloc_zeroed(session->model->heap, sizeof *l);
        if (!l) status = wk_fail_memory(error, sizeof *l, "loading a session");
    }
    if (status != WICK_OK) {
        if (source.close) source.close(&source);
        return status;
    }
    wick_session_reset(session);
    l->session = session;
    l->source = source;
    l->status = WICK_PENDING;
    l->n_changes = session->n_changes;
    l->checksum = WK_CHECKSUM_BEGIN;
    wk_reader_init(&l->reader, session->model->heap, &l->source, true);
    *loading = l;
    return WICK_OK;
}

wick_status wick_session_load_poll(wick_session_loading *loading) {
    if (!loading) return WICK_ERR_ARGUMENT;
    wick_session_loading *const l = loading;
    if (l->status != WICK_PENDING) return l->status;
    const wk_model_errors before = wk_model_borrow(l->session->model, &l->error);
    l->status = load(l);
    wk_model_give_back(l->session->model, before);
    if (l->status >= 0) return l->status;
    l->status = wk_pass_on(NULL, l->status, &l->error);
    wick_session_reset(l->session);
    return l->status;
}

wick_status wick_session_load_finish(wick_session_loading *loading, wick_error *error) {
    if (!loading)
        return wk_fail(error, WICK_ERR_ARGUMENT, "wick_session_load_finish: loading is NULL");
    wick_session_loading *const l = loading;
    wk_heap *const heap = l->session->model->heap;
    wick_status status = l->status;
    if (status == WICK_PENDING)
        status = wk_fail(&l->error, WICK_ERR_CANCELLED, "loading the session was given up");
    (void)wk_pass_on(error, status, &l->error);
    wk_sequence_release(l->session->sequence);
    wk_reader_release(&l->reader);
    if (l->source.close) l->source.close(&l->source);
    wk_image_release(heap, &l->buffers);
    wk_free(heap, l, sizeof *l);
    return status;
}
