/* llm/session_save.c: a session to bytes, see wick/saving.h and session_image.h. */
#include <wick/saving.h>

#include "core/checksum.h"
#include "llm/session_image.h"

struct wick_session_saving {
    wick_session *session;
    wick_write_fn write;
    void *user;
    wick_status status; /* WICK_PENDING: going on */
    wick_error error;
    uint64_t n_changes; /* of the session, since the header was written */
    uint64_t checksum;
    bool has_begun;
    wk_image_header header;
    wk_image_cursor cursor;
    wk_image_run run;
    wick_reading *reading; /* of run; NULL: none is under way */
    wk_image_buffers buffers;
};

static wick_status put(wick_session_saving *s, const void *bytes, size_t size) {
    if (size == 0) return WICK_OK;
    s->checksum = wk_checksum(s->checksum, bytes, size);
    const wick_status status = s->write(s->user, bytes, size, &s->error);
    return status == WICK_OK ? WICK_OK
                             : wk_fail(&s->error, status < 0 ? status : WICK_ERR_IO,
                                       "writing the session failed");
}

static wick_status check_shown(const wick_session *session, wick_error *err) {
    if (session->n_rows == 0) return WICK_OK;
    return wk_fail(err, WICK_ERR_STATE,
                   "the session has logits to show, step it to its end before it is saved");
}

static wick_status begin(wick_session_saving *s) {
    wick_session *const session = s->session;
    wick_status settled = wk_session_settle(session);
    if (settled == WICK_OK && session->has_logits) settled = wk_session_complete_logits(session);
    if (settled == WICK_PENDING) return WICK_PENDING;
    if (settled != WICK_OK) return settled;
    WK_TRY(check_shown(session, &s->error));
    wk_session_take_back(session);
    if (session->n_given > 0)
        return wk_fail(&s->error, WICK_ERR_UNSUPPORTED,
                       "the session has read rows of embeddings (%u): it cannot be saved",
                       session->n_given);
    s->n_changes = session->n_changes;
    s->has_begun = true;
    wk_sequence_hold(session->sequence);
    wk_image_describe(session, &s->header);
    WK_TRY(put(s, &s->header, sizeof s->header));
    WK_TRY(put(s, session->tokens, session->n_tokens * sizeof *session->tokens));
    const size_t n_logits = (size_t)s->header.fields[WK_IMAGE_LOGITS];
    if (n_logits == 0) return WICK_OK;
    return put(s, wk_sequence_row(session->sequence, session->row), n_logits * sizeof(float));
}

static wick_status read_blocks(wick_session_saving *s) {
    const wk_image_run *const run = &s->run;
    wick_device *const device = wick_tensor_device(run->part.tensor);
    WK_TRY(wk_image_reserve(s->session->model->heap, wk_image_blocks_bytes(run), &s->buffers,
                            &s->error));
    const wick_scope scope = wick_scope_begin(device);
    wick_status status =
        wick_read_start(wk_state_blocks(&run->part, run->block, run->n_blocks), &s->reading);
    wick_scope_end(scope);
    return status;
}

static wick_status write_rows(wick_session_saving *s) {
    const wk_image_run *const run = &s->run;
    const wick_status polled = wick_read_poll(s->reading);
    if (polled == WICK_PENDING) return WICK_PENDING;
    const wick_status status =
        wick_read_finish(s->reading, s->buffers.blocks, wk_image_blocks_bytes(run));
    s->reading = NULL;
    if (status != WICK_OK) return status;
    wk_state_reorder(&run->part, run->n_blocks, s->buffers.blocks, s->buffers.rows, true);
    return put(s, s->buffers.rows + run->n_before * wk_state_row_bytes(&run->part),
               wk_image_run_bytes(run));
}

/* A slice: WICK_PENDING: there is more. */
static wick_status save(wick_session_saving *s) {
    if (!s->has_begun) {
        WK_TRY(begin(s));
        return WICK_PENDING;
    }
    if (s->n_changes != s->session->n_changes)
        return wk_fail(&s->error, WICK_ERR_STATE, "the session went on while it was being saved");
    const wk_sequence *const sequence = s->session->sequence;
    if (s->header.fields[WK_IMAGE_CACHED] > 0 &&
        (wk_sequence_is_stale(sequence) || !wk_sequence_is_held(sequence)))
        return wk_fail(&s->error, WICK_ERR_DEVICE_LOST,
                       "the device was lost while the session was being saved");
    if (s->reading) {
        WK_TRY(write_rows(s));
        return WICK_PENDING;
    }
    if (wk_image_next(s->session, &s->header, &s->cursor, &s->run)) {
        WK_TRY(read_blocks(s));
        return WICK_PENDING;
    }
    const uint64_t checksum = s->checksum;
    return put(s, &checksum, sizeof checksum);
}

wick_status wick_session_save_start(wick_session *session, wick_write_fn write, void *user,
                                    wick_session_saving **saving, wick_error *error) {
    if (saving) *saving = NULL;
    if (!session || !write || !saving)
        return wk_fail(error, WICK_ERR_ARGUMENT, "wick_session_save_start: an argument is NULL");
    if (session->failed != WICK_OK)
        return wk_fail(error, WICK_ERR_STATE, "a session that has failed cannot be saved");
    WK_TRY(check_shown(session, error));
    wick_session_saving *const s = wk_alloc_zeroed(session->model->heap, sizeof *s);
    if (!s) return wk_fail_memory(error, sizeof *s, "saving a session");
    s->session = session;
    s->write = write;
    s->user = user;
    s->status = WICK_PENDING;
    s->checksum = WK_CHECKSUM_BEGIN;
    *saving = s;
    return WICK_OK;
}

wick_status wick_session_save_poll(wick_session_saving *saving) {
    if (!saving) return WICK_ERR_ARGUMENT;
    wick_session_saving *const s = saving;
    if (s->status != WICK_PENDING) return s->status;
    const wk_model_errors before = wk_model_borrow(s->session->model, &s->error);
    s->status = save(s);
    wk_model_give_back(s->session->model, before);
    if (s->status < 0) s->status = wk_pass_on(NULL, s->status, &s->error);
    return s->status;
}

wick_status wick_session_save_finish(wick_session_saving *saving, wick_error *error) {
    if (!saving)
        return wk_fail(error, WICK_ERR_ARGUMENT, "wick_session_save_finish: saving is NULL");
    wick_session_saving *const s = saving;
    wk_heap *const heap = s->session->model->heap;
    wick_status status = s->status;
    if (status == WICK_PENDING)
        status = wk_fail(&s->error, WICK_ERR_CANCELLED, "saving the session was given up");
    (void)wk_pass_on(error, status, &s->error);
    if (s->reading) (void)wick_read_finish(s->reading, NULL, 0);
    wk_sequence_release(s->session->sequence);
    wk_image_release(heap, &s->buffers);
    wk_free(heap, s, sizeof *s);
    return status;
}
