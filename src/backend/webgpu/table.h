/* backend/webgpu/table.h: functions that only the backend's table names (webgpu_device.c). */
#ifndef WK_BACKEND_WEBGPU_TABLE_H
#define WK_BACKEND_WEBGPU_TABLE_H

#include "backend/kernels.h"

/* --- tuning.c --- */

/* See docs/webgpu.md. Unusable lines are reported, left out and counted in *n_ignored. */
void wk_tuning_read(wk_backend_device *dev, wk_str text, wick_log_fn log, void *log_user,
                    size_t *n_ignored);
void wk_tuning_write(const wk_backend_device *dev, wk_strbuf *out);

/* --- custom.c --- */

wick_status wk_webgpu_custom_make(wk_backend_device *dev, const wick_kernel_desc *desc,
                                  wk_custom **out, wick_error *err);
wick_status wk_webgpu_custom_poll(wk_backend_device *dev, wk_custom *custom, wick_error *err);
void wk_webgpu_custom_free(wk_backend_device *dev, wk_custom *custom);

/* --- rehearse.c --- */

wick_status wk_webgpu_rehearse(wk_backend_device *dev, const wk_kernel *kernel, const wk_op *op,
                               wick_error *err);

/* --- measure.c --- */

/* webgpu_device.c: dev->features, by the adapter and the rates. */
void wk_webgpu_choose_features(wk_backend_device *dev);
wick_status wk_webgpu_measure(wk_backend_device *dev, wick_device_limits *out, wick_error *err);

/* --- plan.c --- */

wick_status wk_webgpu_plan_prepare(wk_backend_device *dev, const wk_op *ops,
                                   const wk_kernel *const *kernels, size_t n, void **plan,
                                   wick_error *err);
wick_status wk_webgpu_plan_replay(wk_backend_device *dev, void *plan, wick_error *err);
void wk_webgpu_plan_free(wk_backend_device *dev, void *plan);

/* --- webgpu_kernels.c --- */

extern const wk_backend_kernels wk_webgpu_kernels;

#endif
