/* llm/session_image.c: see session_image.h. */
#include "llm/session_image.h"

#include "core/dtype.h"
#include "model/rope.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

static const wk_hparams *hparams_of(const wick_session *s) {
    return wk_model_hparams(s->model->model);
}

static uint64_t field(const wk_image_header *header, wk_image_field which) {
    return header->fields[which];
}

/* --- Runs --- */

/* Positions of a part that are in the image. */
static uint32_t first_of(const wk_image_header *header, const wk_state_part *part) {
    return part->has_window ? (uint32_t)field(header, WK_IMAGE_WINDOW_BEGIN) : 0;
}

/* How many of the sequence's blocks from position on lie side by side, n at most. */
static uint32_t count_neighbours(const wick_session *s, bool has_window, uint32_t position,
                                 uint32_t n) {
    const uint32_t first = wk_sequence_block(s->sequence, position, has_window);
    uint32_t i = 1;
    while (i < n &&
           wk_sequence_block(s->sequence, position + i * WK_BLOCK_SIZE, has_window) == first + i)
        i++;
    return i;
}

/* The run of a part from position on, up to position end. */
static wk_image_run run_of(const wick_session *s, const wk_state_part *part, uint32_t position,
                           uint32_t end) {
    if (part->is_whole)
        return (wk_image_run){.part = *part,
                              .n = 1,
                              .block = wk_sequence_slot(s->sequence),
                              .n_blocks = 1,
                              .is_kept = true};
    assert(position < end && part->block_size > 0 && part->n_blocks > 0);
    const uint32_t size = part->block_size, block = position / size;
    const uint32_t room = part->has_window ? wk_sequence_window_room(s->sequence, end) / size : 0;
    const uint64_t block_bytes = (uint64_t)wk_state_row_bytes(part) * size;
    uint32_t n = block_bytes < WK_IMAGE_PIECE ? (uint32_t)(WK_IMAGE_PIECE / block_bytes) : 1;
    const bool is_kept = block >= room;
    n = wk_smaller(n, (end - 1) / size + 1 - block);
    n = is_kept ? count_neighbours(s, part->has_window, position, n) : wk_smaller(n, room - block);
    return (wk_image_run){
        .part = *part,
        .n = wk_smaller((block + n) * size, end) - position,
        .block = is_kept ? wk_sequence_block(s->sequence, position, part->has_window) : 0,
        .n_blocks = n,
        .n_before = position % size,
        .is_kept = is_kept};
}

size_t wk_image_run_bytes(const wk_image_run *run) {
    return run->n * wk_state_row_bytes(&run->part);
}

size_t wk_image_blocks_bytes(const wk_image_run *run) {
    return (size_t)run->n_blocks * run->part.block_size * wk_state_row_bytes(&run->part);
}

bool wk_image_next(const wick_session *session, const wk_image_header *header,
                   wk_image_cursor *cursor, wk_image_run *run) {
    const uint32_t n_layers = hparams_of(session)->n_layers;
    const uint32_t end = (uint32_t)field(header, WK_IMAGE_CACHED);
    for (; cursor->layer < n_layers && end > 0; cursor->layer++, cursor->which = 0) {
        const wk_state *const state = wk_sequence_state(session->sequence, cursor->layer);
        for (; state && cursor->which < WK_STATE_PARTS;
             cursor->which++, cursor->is_inside = false) {
            const wk_state_part part =
                wk_state_part_of(session->model->model, state, cursor->layer, cursor->which);
            if (part.tensor == NULL) continue;
            if (!cursor->is_inside) cursor->position = first_of(header, &part);
            const uint32_t stop = part.is_whole ? 1 : end;
            if (cursor->position >= stop) continue;
            *run = run_of(session, &part, cursor->position, stop);
            cursor->is_inside = true;
            cursor->position += run->n;
            return true;
        }
    }
    return false;
}

void wk_image_release(wk_heap *heap, wk_image_buffers *buffers) {
    wk_free(heap, buffers->blocks, buffers->capacity);
    wk_free(heap, buffers->rows, buffers->capacity);
    *buffers = (wk_image_buffers){.capacity = 0};
}

wick_status wk_image_reserve(wk_heap *heap, size_t size, wk_image_buffers *buffers,
                             wick_error *err) {
    if (size <= buffers->capacity) return WICK_OK;
    wk_image_release(heap, buffers);
    *buffers = (wk_image_buffers){wk_alloc(heap, size), wk_alloc(heap, size), size};
    if (buffers->blocks && buffers->rows) return WICK_OK;
    return wk_fail_memory(err, 2 * size, "a saved session");
}

/* --- Headers --- */

/* By its number in GGUF files, which stays. */
static uint64_t cache_type(const wick_session *s) {
    return (uint64_t)wk_dtype_get(wk_sequence_dtype(s->sequence))->ggml_type;
}

static wick_logits_mode mode_of(const wick_session *s) {
    return s->outputs == WK_OUTPUTS_ALL      ? WICK_LOGITS_ALL
           : s->outputs == WK_OUTPUTS_STATES ? WICK_LOGITS_STATES
           : s->outputs == WK_OUTPUTS_SCORES ? WICK_LOGITS_SCORES
                                             : WICK_LOGITS_NONE;
}

/* Of the rows of a layer's part. */
static uint64_t count_part(const wick_session *s, const wk_image_header *header, uint32_t layer,
                           uint32_t which) {
    const wk_state *const state = wk_sequence_state(s->sequence, layer);
    if (!state) return 0;
    const wk_state_part part = wk_state_part_of(s->model->model, state, layer, which);
    if (part.tensor == NULL) return 0;
    const uint64_t n = part.is_whole ? 1 : field(header, WK_IMAGE_CACHED) - first_of(header, &part);
    return n * wk_state_row_bytes(&part);
}

/* Bytes of the image; counts nothing twice, as its fields are small. */
static uint64_t count_bytes(const wick_session *s, const wk_image_header *header) {
    uint64_t bytes = sizeof *header + sizeof(uint64_t) +
                     sizeof(uint32_t) * field(header, WK_IMAGE_TOKENS) +
                     sizeof(float) * field(header, WK_IMAGE_LOGITS);
    for (uint32_t i = 0; i < hparams_of(s)->n_layers && field(header, WK_IMAGE_CACHED) > 0; i++)
        for (uint32_t which = 0; which < WK_STATE_PARTS; which++)
            bytes += count_part(s, header, i, which);
    return bytes;
}

/* What its text was computed with. */
static uint64_t weights_of(const wick_session *s) {
    return s->model->weights_checksum + wk_sequence_choice(s->sequence)->key;
}

void wk_image_describe(const wick_session *session, wk_image_header *header) {
    const wick_session *const s = session;
    const bool is_whole =
        !wk_sequence_is_stale(s->sequence) && wk_sequence_cached(s->sequence) == s->n_computed;
    const uint32_t n_cached = is_whole ? s->n_computed : 0;
    *header = (wk_image_header){
        .fields = {
            [WK_IMAGE_FORMAT] = WK_IMAGE_VERSION,
            [WK_IMAGE_MODEL] = wk_gguf_checksum(s->model->gguf),
            [WK_IMAGE_CACHE_TYPE] = cache_type(s),
            [WK_IMAGE_CONTEXT] = s->context_length,
            [WK_IMAGE_TOKENS] = s->n_tokens,
            [WK_IMAGE_COMPUTED] = s->n_computed,
            [WK_IMAGE_CACHED] = n_cached,
            [WK_IMAGE_WINDOW_BEGIN] = n_cached > 0 ? wk_sequence_window_begin(s->sequence) : 0,
            [WK_IMAGE_LOGITS] = s->has_logits ? hparams_of(s)->n_vocab : 0,
            [WK_IMAGE_GENERATED] = (uint64_t)s->n_shifted << 32 | s->n_since_prompt,
            [WK_IMAGE_ENDED] = (uint64_t)s->ended,
            [WK_IMAGE_SEED] = s->sampler.rng.seed,
            [WK_IMAGE_STREAM] = s->sampler.rng.stream,
            [WK_IMAGE_NEXT] = s->sampler.rng.next,
            [WK_IMAGE_WEIGHTS] = weights_of(s),
            [WK_IMAGE_OUTPUT] = (uint64_t)mode_of(s),
        }};
    memcpy(header->magic, WK_IMAGE_MAGIC, sizeof header->magic);
    const double surprise = s->sampler.mirostat.most;
    memcpy(&header->fields[WK_IMAGE_SURPRISE], &surprise, sizeof surprise);
    header->fields[WK_IMAGE_BYTES] = count_bytes(s, header);
}

static wick_status check_output(const wick_session *s, const wk_image_header *header,
                                wick_error *err) {
    static const char *const names[] = {[WICK_LOGITS_NONE] = "tokens that it chooses",
                                        [WICK_LOGITS_ALL] = "the logits of every token",
                                        [WICK_LOGITS_STATES] = "the hidden states of every token",
                                        [WICK_LOGITS_SCORES] = "the scores of every token"};
    const uint64_t saved = field(header, WK_IMAGE_OUTPUT), own = (uint64_t)mode_of(s);
    if (saved == own) return WICK_OK;
    return wk_fail(err, WICK_ERR_MISMATCH, "the saved session gives %s, this one gives %s",
                   saved <= WICK_LOGITS_SCORES ? names[saved] : "something unknown", names[own]);
}

/* Whether it was saved by a session of this kind. */
static wick_status check_origin(const wick_session *s, const wk_image_header *header,
                                wick_error *err) {
    if (memcmp(header->magic, WK_IMAGE_MAGIC, sizeof header->magic) != 0)
        return wk_fail(err, WICK_ERR_FORMAT, "not a saved session");
    if (field(header, WK_IMAGE_FORMAT) != WK_IMAGE_VERSION)
        return wk_fail(err, WICK_ERR_UNSUPPORTED,
                       "the saved session has version %" PRIu64 ", this program reads version %d",
                       field(header, WK_IMAGE_FORMAT), WK_IMAGE_VERSION);
    if (field(header, WK_IMAGE_MODEL) != wk_gguf_checksum(s->model->gguf))
        return wk_fail(err, WICK_ERR_MISMATCH,
                       "the session was saved with another model than '%s': the headers of their "
                       "files differ",
                       s->model->info.name);
    if (field(header, WK_IMAGE_WEIGHTS) != weights_of(s))
        return wk_fail(err, WICK_ERR_MISMATCH,
                       "the session was saved with other weights than those of '%s', or with other "
                       "adapters: only the headers of the two files are the same",
                       s->model->info.name);
    WK_TRY(check_output(s, header, err));
    const uint64_t type = field(header, WK_IMAGE_CACHE_TYPE);
    if (type == cache_type(s)) return WICK_OK;
    wick_dtype saved;
    const bool is_known = type <= UINT32_MAX && wk_dtype_from_ggml((uint32_t)type, &saved);
    return wk_fail(err, WICK_ERR_MISMATCH, "the saved session has a cache of %s, this one has %s",
                   is_known ? wick_dtype_name(saved) : "an unknown type",
                   wick_dtype_name(wk_sequence_dtype(s->sequence)));
}

static wick_status check_context(const wick_session *s, const wk_image_header *header,
                                 wick_error *err) {
    const uint64_t context = field(header, WK_IMAGE_CONTEXT), n = field(header, WK_IMAGE_TOKENS);
    if (n > s->context_length)
        return wk_fail(err, WICK_ERR_STATE,
                       "the saved session has %" PRIu64 " tokens, the context holds %u", n,
                       s->context_length);
    const wk_hparams *const hparams = hparams_of(s);
    for (uint32_t i = 0; i < hparams->n_ropes; i++) {
        const wk_rope *const rope = &hparams->rope[i];
        const uint32_t saved = context < UINT32_MAX ? (uint32_t)context : UINT32_MAX;
        if (wk_rope_is_long(rope, saved) != wk_rope_is_long(rope, s->context_length))
            return wk_fail(err, WICK_ERR_MISMATCH,
                           "the session was saved with a context of %" PRIu64
                           " tokens; with one of %u this model uses another rotary scaling",
                           context, s->context_length);
    }
    return WICK_OK;
}

/* False: no session has such numbers, even if the checksum is right. */
static bool is_possible(const wick_session *s, const wk_image_header *header) {
    const wk_hparams *const hparams = hparams_of(s);
    const uint64_t n = field(header, WK_IMAGE_TOKENS), computed = field(header, WK_IMAGE_COMPUTED);
    const uint64_t cached = field(header, WK_IMAGE_CACHED);
    const uint64_t begin = field(header, WK_IMAGE_WINDOW_BEGIN);
    const uint64_t n_logits = field(header, WK_IMAGE_LOGITS);
    double surprise;
    memcpy(&surprise, &header->fields[WK_IMAGE_SURPRISE], sizeof surprise);
    if (computed > n || (cached != computed && cached != 0) || begin > cached) return false;
    if (begin > 0 && (hparams->window == 0 || begin + hparams->window > cached + 1)) return false;
    if (n_logits != 0 &&
        (mode_of(s) != WICK_LOGITS_NONE || n_logits != hparams->n_vocab || computed < n || n == 0))
        return false;
    const uint64_t generated = field(header, WK_IMAGE_GENERATED);
    const uint64_t since_prompt = generated & UINT32_MAX, shifted = generated >> 32;
    return since_prompt <= n && since_prompt + shifted <= UINT32_MAX &&
           field(header, WK_IMAGE_ENDED) <= WICK_END_GRAMMAR && isfinite(surprise);
}

wick_status wk_image_check(const wick_session *session, const wk_image_header *header,
                           wick_error *err) {
    WK_TRY(check_origin(session, header, err));
    WK_TRY(check_context(session, header, err));
    if (is_possible(session, header) &&
        field(header, WK_IMAGE_BYTES) == count_bytes(session, header))
        return WICK_OK;
    return wk_fail(err, WICK_ERR_FORMAT, "the saved session is damaged: its numbers do not fit");
}
