/* backend/webgpu/upload.c: bytes to the device, and weights into their layout on the way. */
#include "backend/webgpu/upload.h"

#include "backend/webgpu/choice.h"
#include "backend/webgpu/memory.h"
#include "backend/webgpu/segment.h"
#include "backend/webgpu/webgpu_state.h"
#include "backend/webgpu/write.h"
#include "core/dtype.h"

#include <assert.h>
#include <string.h>

/* --- Bytes --- */

/* Copies bytes that lie in words of their own to where they belong: a kernel leaves those beside
 * them as they are. */
static wick_status record_bytes(wk_backend_device *dev, wk_buffer *from, wk_buffer *to,
                                uint64_t offset, uint64_t size, wick_error *err) {
    wk_op copy = {.code = WK_OP_COPY, .n_dst = 1, .n_src = 1};
    copy.view[1] = (wk_view){
        .buf = from, .dtype = WICK_U8, .rank = 1, .extent = {(int64_t)size}, .stride = {1}};
    copy.view[0] = copy.view[1];
    copy.view[0].buf = to;
    copy.view[0].offset = offset;
    const wk_webgpu_kernel *const kernel = wk_choice_find(dev, &copy);
    if (!kernel)
        return wk_fail(err, WICK_ERR_INTERNAL, "there is no kernel for the bytes of an upload");
    return wk_segment_encode(dev, &dev->recorder, kernel, &copy, err);
}

/* Less than a word. */
static wick_status write_bytes(wk_backend_device *dev, wk_buffer *buf, uint64_t offset,
                               const unsigned char *bytes, uint64_t size, wick_error *err) {
    unsigned char word[4] = {0};
    assert(size < sizeof word);
    memcpy(word, bytes, (size_t)size);
    /* The rest of the word after a buffer's last byte is unused. */
    if (offset % 4 == 0 && offset + size == buf->size)
        return wk_webgpu_write(dev, buf, offset, word, sizeof word, err);
    wk_buffer *temp;
    WK_TRY(wk_webgpu_alloc(dev, sizeof word, 0, &temp, err));
    wick_status status = wk_webgpu_write(dev, temp, 0, word, sizeof word, err);
    if (status == WICK_OK) status = record_bytes(dev, temp, buf, offset, size, err);
    wk_webgpu_free(dev, temp);
    return status;
}

wick_status wk_webgpu_upload(wk_backend_device *dev, wk_buffer *buf, uint64_t offset,
                             const void *bytes, uint64_t size, wick_error *err) {
    assert(offset <= buf->size && size <= buf->size - offset);
    const unsigned char *from = bytes;
    dev->stats.bytes_uploaded += size;
    const uint64_t to_word = (4 - offset % 4) % 4, before = to_word < size ? to_word : size;
    if (before > 0) WK_TRY(write_bytes(dev, buf, offset, from, before, err));
    const uint64_t words = (size - before) / 4 * 4, after = size - before - words;
    WK_TRY(wk_webgpu_write(dev, buf, offset + before, from + before, words, err));
    if (after == 0) return WICK_OK;
    return write_bytes(dev, buf, offset + before + words, from + before + words, after, err);
}

/* --- Weights --- */

/* A staging piece of about this many bytes, in whole panels. */
enum { PIECE_BYTES = 4 << 20 };

static wick_status upload_panels(wk_backend_device *dev, const wk_view *weight, int64_t first_row,
                                 int64_t n_rows, const unsigned char *blocks, uint64_t row_bytes,
                                 wick_error *err) {
    const wk_layout layout = (wk_layout)weight->layout;
    const int64_t k = weight->extent[1];
    const uint64_t panel_bytes = (uint64_t)wk_panel_bytes(layout, k);
    int64_t panels = (int64_t)(PIECE_BYTES / panel_bytes);
    if (panels == 0) panels = 1;
    const size_t size = (size_t)((uint64_t)panels * panel_bytes);
    unsigned char *const piece = wk_alloc_aligned(dev->heap, size);
    if (!piece) return wk_fail_memory(err, size, "a piece of a weight");
    wick_status status = WICK_OK;
    for (int64_t row = 0; row < n_rows && status == WICK_OK; row += panels * WK_PANEL_ROWS) {
        const int64_t rest = n_rows - row;
        const int64_t n = rest < panels * WK_PANEL_ROWS ? rest : panels * WK_PANEL_ROWS;
        const int64_t n_panels = (n + WK_PANEL_ROWS - 1) / WK_PANEL_ROWS;
        /* The piece as a weight of its own. */
        wk_layout_store(layout, weight->dtype, n, k, 0, n, blocks + (uint64_t)row * row_bytes,
                        piece);
        const uint64_t at = (uint64_t)((first_row + row) / WK_PANEL_ROWS) * panel_bytes;
        status = wk_webgpu_write(dev, weight->buf, weight->offset + at, piece,
                                 (uint64_t)n_panels * panel_bytes, err);
    }
    wk_free_aligned(dev->heap, piece, size);
    return status;
}

wick_status wk_webgpu_upload_rows(wk_backend_device *dev, const wk_view *weight, int64_t first_row,
                                  int64_t n_rows, const void *blocks, wick_error *err) {
    assert(weight->rank == 2 && first_row % WK_PANEL_ROWS == 0);
    assert(first_row >= 0 && n_rows >= 0 && n_rows <= weight->extent[0] - first_row);
    uint64_t row_bytes;
    if (!wk_dtype_bytes(weight->dtype, weight->extent[1], &row_bytes))
        return wk_fail(err, WICK_ERR_SHAPE, "rows of %lld elements do not fit the blocks of %s",
                       (long long)weight->extent[1], wick_dtype_name(weight->dtype));
    const uint64_t bytes = (uint64_t)n_rows * row_bytes;
    if (bytes == 0) return WICK_OK;
    if (weight->layout == WK_LAYOUT_RAW)
        return wk_webgpu_upload(dev, weight->buf, weight->offset + (uint64_t)first_row * row_bytes,
                                blocks, bytes, err);
    dev->stats.bytes_uploaded += bytes;
    return upload_panels(dev, weight, first_row, n_rows, blocks, row_bytes, err);
}
