/* llm/session_image.h: a saved session, byte by byte: what session_save.c writes and session_load.c
 * reads. Numbers are little-endian.
 *
 *   "wicksess", then the fields below, 64 bits each
 *   tokens     u32[n_tokens]
 *   logits     f32[n_logits]
 *   layer by layer, where positions are cached: rows of keys, rows of values, one for each position
 * in order, [n_heads_kv][head_dim] in the type of the cache; or the states of a recurrent layer,
 * f32: the inputs of its convolution, the numbers of its scan checksum   u64, of everything before
 * (core/checksum.h) */
#ifndef WK_LLM_SESSION_IMAGE_H
#define WK_LLM_SESSION_IMAGE_H

#include "llm/session_struct.h"
#include "model/state_parts.h"

#define WK_IMAGE_MAGIC "wicksess"

enum {
    WK_IMAGE_VERSION = 2,
    WK_IMAGE_PIECE = 4 << 20
}; /* bytes of rows that move at once, about */

typedef enum wk_image_field {
    WK_IMAGE_FORMAT,     /* WK_IMAGE_VERSION */
    WK_IMAGE_BYTES,      /* of all of it */
    WK_IMAGE_MODEL,      /* wk_gguf_checksum */
    WK_IMAGE_CACHE_TYPE, /* its number in GGUF files */
    WK_IMAGE_CONTEXT,    /* tokens that the session had room for */
    WK_IMAGE_TOKENS,     /* known */
    WK_IMAGE_COMPUTED,   /* of these, computed */
    WK_IMAGE_CACHED,     /* positions of the cache: as many, or none: it was lost with its device */
    WK_IMAGE_WINDOW_BEGIN, /* first position of layers with a window */
    WK_IMAGE_LOGITS, /* of the last token, not chosen from yet: as many as the vocabulary, or 0 */
    WK_IMAGE_GENERATED, /* tokens since the prompt; 2^32 times those that shifts have lost */
    WK_IMAGE_ENDED,     /* wick_end_reason */
    WK_IMAGE_SEED,      /* wk_rng, as the next two */
    WK_IMAGE_STREAM,
    WK_IMAGE_NEXT,
    WK_IMAGE_SURPRISE, /* of mirostat: the bits of a double */
    WK_IMAGE_WEIGHTS,  /* wick_model.weights_checksum + wk_choice.key */
    WK_IMAGE_OUTPUT,   /* wick_logits_mode */
    WK_IMAGE_FIELD_COUNT,
} wk_image_field;

typedef struct wk_image_header {
    char magic[8];
    uint64_t fields[WK_IMAGE_FIELD_COUNT];
} wk_image_header;

/* What a session would be saved with. */
void wk_image_describe(const wick_session *session, wk_image_header *header);
/* Whether session can take it over. */
wick_status wk_image_check(const wick_session *session, const wk_image_header *header,
                           wick_error *err);

/* Rows that move at once: of one part, in neighbouring blocks. */
typedef struct wk_image_run {
    wk_state_part part;
    uint32_t n;               /* positions; of a whole part 1 */
    uint32_t block, n_blocks; /* of part, where these rows are, side by side */
    uint32_t n_before;        /* slots of the first block in front of them */
    bool is_kept;             /* else there is no room for them */
} wk_image_run;

/* Goes over all runs of an image in order; zero-initialised. */
typedef struct wk_image_cursor {
    uint32_t layer, which;
    uint32_t position; /* the next one of this part */
    bool is_inside;    /* a part has begun */
} wk_image_cursor;

/* false: there are no more. */
bool wk_image_next(const wick_session *session, const wk_image_header *header,
                   wk_image_cursor *cursor, wk_image_run *run);
size_t wk_image_run_bytes(const wk_image_run *run);
/* Room for a run as rows, and as the blocks that they are in. */
typedef struct wk_image_buffers {
    unsigned char *blocks, *rows; /* [capacity] */
    size_t capacity;
} wk_image_buffers;
wick_status wk_image_reserve(wk_heap *heap, size_t size, wk_image_buffers *buffers,
                             wick_error *err);
void wk_image_release(wk_heap *heap, wk_image_buffers *buffers);
/* Bytes of each. */
size_t wk_image_blocks_bytes(const wk_image_run *run);

#endif
