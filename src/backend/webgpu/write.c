/* backend/webgpu/write.c: whole words into buffers. */
#include "backend/webgpu/write.h"

#include "backend/webgpu/memory.h"
#include "backend/webgpu/submit.h"
#include "backend/webgpu/webgpu_state.h"

#include <assert.h>

/* What one write hands over: the implementation copies it to memory of its own. */
enum { WRITE_BYTES = 4 << 20 };

wick_status wk_webgpu_write(wk_backend_device *dev, const wk_buffer *buf, uint64_t offset,
                            const unsigned char *bytes, uint64_t size, wick_error *err) {
    const uint64_t segment = ((const wk_webgpu_buffer *)(const void *)buf)->segment_bytes;
    while (size > 0) {
        const uint64_t rest = segment - offset % segment;
        uint64_t at, part = rest < size ? rest : size;
        if (part > WRITE_BYTES) part = WRITE_BYTES;
        wk_block *const block = wk_webgpu_locate(buf, offset, part, &at);
        assert(block && offset % 4 == 0 && part % 4 == 0);
        if (block->used_in == dev->recording || dev->replayed_in == dev->recording)
            WK_TRY(wk_webgpu_flush(dev, err));
        wk_gpu_write(dev->gpu, block->gpu, at, bytes, part);
        WK_TRY(wk_webgpu_written(dev, part, err));
        offset += part;
        bytes += part;
        size -= part;
    }
    return WICK_OK;
}
