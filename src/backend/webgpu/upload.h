/* backend/webgpu/upload.h: bytes and weights to the device. */
#ifndef WK_BACKEND_WEBGPU_UPLOAD_H
#define WK_BACKEND_WEBGPU_UPLOAD_H

#include "backend/backend.h"

wick_status wk_webgpu_upload(wk_backend_device *dev, wk_buffer *buf, uint64_t offset,
                             const void *bytes, uint64_t size, wick_error *err);
wick_status wk_webgpu_upload_rows(wk_backend_device *dev, const wk_view *weight, int64_t first_row,
                                  int64_t n_rows, const void *blocks, wick_error *err);

#endif
