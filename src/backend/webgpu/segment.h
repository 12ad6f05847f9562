/* backend/webgpu/segment.h: ops in pieces that fit the device. */
#ifndef WK_BACKEND_WEBGPU_SEGMENT_H
#define WK_BACKEND_WEBGPU_SEGMENT_H

#include "backend/webgpu/recorder.h"

/* Encodes an op, or several in a row, by a kernel, in pieces where an operand lies in several
 * blocks or it would take too long; a piece that the kernel does not accept is given to the first
 * one that does. */
wick_status wk_segment_encode(wk_backend_device *dev, wk_recorder *recorder,
                              const wk_webgpu_kernel *kernel, const wk_op *op, wick_error *err);
/* The backend's encode: into the open recording. */
wick_status wk_webgpu_encode(wk_backend_device *dev, const wk_kernel *kernel, const wk_op *op,
                             wick_error *err);

#endif
