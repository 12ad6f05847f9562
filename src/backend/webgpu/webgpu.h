/* backend/webgpu/webgpu.h: the backend, for the registry. */
#ifndef WK_BACKEND_WEBGPU_WEBGPU_H
#define WK_BACKEND_WEBGPU_WEBGPU_H

#include "backend/backend.h"

extern const wk_backend wk_backend_webgpu;

/* See wick_adapters; out may be NULL. */
size_t wk_webgpu_adapters(const char *library, wick_adapter_info *out, size_t capacity);

/* For tests: see wk_gpu_lose. */
bool wk_webgpu_lose(wk_backend_device *dev);

#endif
