/* backend/webgpu/write.h: whole words into buffers. */
#ifndef WK_BACKEND_WEBGPU_WRITE_H
#define WK_BACKEND_WEBGPU_WRITE_H

#include "backend/backend.h"

/* Whole words. What is recorded is submitted first where it names the bytes' block: a write
 * overtakes the recorded commands. */
wick_status wk_webgpu_write(wk_backend_device *dev, const wk_buffer *buf, uint64_t offset,
                            const unsigned char *bytes, uint64_t size, wick_error *err);

#endif
