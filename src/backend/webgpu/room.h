/* backend/webgpu/room.h: what makes room where memory is short. */
#ifndef WK_BACKEND_WEBGPU_ROOM_H
#define WK_BACKEND_WEBGPU_ROOM_H

#include "backend/backend.h"

/* Submits what is recorded, waits for it, and gives all unused memory back. Native only. */
wick_status wk_webgpu_make_room(wk_backend_device *dev, wick_error *err);
wick_status wk_webgpu_trim(wk_backend_device *dev, uint64_t *freed, wick_error *err);

#endif
