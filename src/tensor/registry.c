/* tensor/registry.c: which backends there are, in the order of AUTO's preference. */
#include "tensor/device.h"

#include "backend/cpu/cpu.h"
#include "backend/null/null.h"
#include "backend/webgpu/webgpu.h"

#include <stdio.h>
#include <string.h>

typedef struct entry {
    wick_backend id;
    const char *name;
    const wk_backend *backend; /* NULL: not implemented */
    bool is_automatic;
} entry;

/* Vendor interfaces first, then WebGPU, then the CPU, which is always there. */
static const entry entries[] = {
    {WICK_BACKEND_CUDA, "cuda", NULL, true},
    {WICK_BACKEND_METAL, "metal", NULL, true},
    {WICK_BACKEND_ROCM, "rocm", NULL, true},
    {WICK_BACKEND_OPENCL, "opencl", NULL, true},
    {WICK_BACKEND_WEBGPU, "webgpu", &wk_backend_webgpu, true},
    {WICK_BACKEND_CPU, "cpu", &wk_backend_cpu, true},
    WK_NOT_IN_PAGES({WICK_BACKEND_NULL, "null", &wk_backend_null, false}, ) /* ends the list */
};

static wick_status available(const entry *e, const wick_device_desc *desc, wick_error *err) {
    if (!e->backend)
        return wk_fail(err, WICK_ERR_NO_DEVICE, "backend %s is not implemented", e->name);
    return e->backend->available ? e->backend->available(desc, err) : WICK_OK;
}

const wk_backend *wk_backend_get(wick_backend id) {
    for (size_t i = 0; i < WK_COUNT(entries); i++)
        if (entries[i].id == id) return entries[i].backend;
    return NULL;
}

const wk_backend *wk_backend_choose(const wick_device_desc *desc, wick_error *reason) {
    const bool is_auto = desc->backend == WICK_BACKEND_AUTO;
    for (size_t i = 0; i < WK_COUNT(entries); i++) {
        const entry *const e = &entries[i];
        if (is_auto ? !e->is_automatic || !e->backend : e->id != desc->backend) continue;
        if (available(e, desc, reason) == WICK_OK) return e->backend;
        if (!is_auto) return NULL;
    }
    (void)wk_fail(reason, WICK_ERR_VALUE, "there is no backend number %d", (int)desc->backend);
    return NULL;
}

size_t wick_backends(wick_backend_status *out, size_t capacity) {
    for (size_t i = 0; out && i < WK_COUNT(entries) && i < capacity; i++) {
        const wick_device_desc desc = {.backend = entries[i].id};
        wick_error err = {0};
        const bool is_available = available(&entries[i], &desc, &err) == WICK_OK;
        out[i] = (wick_backend_status){
            .backend = entries[i].id, .name = entries[i].name, .is_available = is_available};
        snprintf(out[i].reason, sizeof out[i].reason, "%.159s", err.message);
    }
    return WK_COUNT(entries);
}

size_t wick_adapters(const char *library, wick_adapter_info *out, size_t capacity) {
    return wk_webgpu_adapters(library, out, out ? capacity : 0);
}

bool wick_backend_from_name(const char *name, wick_backend *backend) {
    if (!name) return false;
    if (strcmp(name, "auto") == 0) {
        *backend = WICK_BACKEND_AUTO;
        return true;
    }
    if (strcmp(name, "gpu") == 0) name = "webgpu"; /* the flag's former name */
    for (size_t i = 0; i < WK_COUNT(entries); i++) {
        if (strcmp(name, entries[i].name) != 0) continue;
        *backend = entries[i].id;
        return true;
    }
    return false;
}

const char *wick_backend_name(wick_backend backend) {
    for (size_t i = 0; i < WK_COUNT(entries); i++)
        if (entries[i].id == backend) return entries[i].name;
    return "auto";
}
