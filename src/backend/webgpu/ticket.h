/* backend/webgpu/ticket.h: what has run, by tickets: counts of submits. */
#ifndef WK_BACKEND_WEBGPU_TICKET_H
#define WK_BACKEND_WEBGPU_TICKET_H

#include "backend/backend.h"

wick_status wk_webgpu_submit(wk_backend_device *dev, wk_ticket *ticket, wick_error *err);
wick_status wk_webgpu_poll(wk_backend_device *dev, wk_ticket ticket, wick_error *err);
wick_status wk_webgpu_wait(wk_backend_device *dev, wk_ticket ticket, wick_error *err);

#endif
