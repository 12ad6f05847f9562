/* backend/webgpu/shader.h: the WGSL text of a program. */
#ifndef WK_BACKEND_WEBGPU_SHADER_H
#define WK_BACKEND_WEBGPU_SHADER_H

#include "backend/webgpu/kernels/webgpu_kernel.h"
#include "core/str.h"

/* Fails only if memory runs out: out->failed. */
void wk_webgpu_shader(const wk_gpu *gpu, const wk_program *program, wk_strbuf *out);

#endif
