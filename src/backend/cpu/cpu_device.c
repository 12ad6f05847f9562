/* backend/cpu/cpu_device.c: opening a device, its weights, and the backend's table. */
#include "backend/cpu/cpu.h"
#include "backend/cpu/cpu_state.h"

#include "core/dtype.h"
#include "sys/clock.h"
#include "sys/cpu_features.h"
#include "sys/thread.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

enum { MAX_THREADS = 1024 };

/* --- Opening --- */

/* The instruction sets, higher ones later: what each needs, and what it may use where it is the
 * highest that is allowed. */
static const struct {
    const char *name;
    uint32_t needs, uses;
} instruction_sets[] = {
    [WICK_ISA_AUTO] = {"auto", 0, UINT32_MAX},
    [WICK_ISA_REF] = {"ref", 0, 0},
    [WICK_ISA_AVX2] = {"avx2", WK_CPU_AVX2, WK_CPU_AVX2},
    [WICK_ISA_AVX512] = {"avx512", WK_CPU_AVX512, UINT32_MAX},
    [WICK_ISA_NEON] = {"neon", WK_CPU_NEON, WK_CPU_NEON},
    [WICK_ISA_DOTPROD] = {"dotprod", WK_CPU_DOTPROD, WK_CPU_NEON | WK_CPU_DOTPROD},
    [WICK_ISA_I8MM] = {"i8mm", WK_CPU_I8MM, UINT32_MAX},
    [WICK_ISA_SIMD128] = {"simd128", WK_CPU_SIMD128, WK_CPU_SIMD128},
};

static wick_status choose_features(wick_isa isa, uint32_t *features, wick_error *err) {
    if ((unsigned)isa >= WK_COUNT(instruction_sets))
        return wk_fail(err, WICK_ERR_VALUE, "unknown instruction set %d", (int)isa);
    const uint32_t all = wk_cpu_features(), needs = instruction_sets[isa].needs;
    if ((all & needs) != needs) {
        char name[96];
        wk_cpu_name(name, sizeof name);
        return wk_fail(err, WICK_ERR_UNSUPPORTED, "%s has no %s instructions", name,
                       instruction_sets[isa].name);
    }
    *features = all & instruction_sets[isa].uses;
    return WICK_OK;
}

/* The highest instruction set among the features. */
static const char *isa_name(uint32_t features) {
    size_t i = WK_COUNT(instruction_sets) - 1;
    while (i > WICK_ISA_REF && (features & instruction_sets[i].needs) == 0) i--;
    return instruction_sets[i].name;
}

static wick_status make_profile(wk_backend_device *dev, wick_error *err) {
    while (wk_cpu_kernel_at(dev->n_kernels)) dev->n_kernels++;
    dev->profile = wk_alloc_array(dev->heap, dev->n_kernels, sizeof *dev->profile);
    if (!dev->profile) {
        return wk_cpu_no_memory(err, dev->n_kernels * sizeof *dev->profile, "the profile");
    }
    return WICK_OK;
}

static void close_device(wk_backend_device *dev) {
    if (!dev) return;
    wk_cpu_discard_commands(dev);
    wk_cpu_free_waiting(dev);
    (void)wk_cpu_trim(dev, NULL, NULL);
    wk_cpu_read_release(dev);
    if (dev->pool)
        wk_free(dev->heap, dev->rest, (size_t)wk_pool_size(dev->pool) * sizeof *dev->rest);
    wk_pool_free(dev->pool);
    wk_free_aligned(dev->heap, dev->scratch.data, dev->scratch.size);
    wk_free_aligned(dev->heap, dev->worker_scratch.data, dev->worker_scratch.size);
    wk_free(dev->heap, dev->profile, dev->n_kernels * sizeof *dev->profile);
    wk_free(dev->heap, dev, sizeof *dev);
}

static wick_status set_up(wk_backend_device *dev, const wick_device_desc *desc, wick_error *err) {
    if (desc->n_threads < 0 || desc->n_threads > MAX_THREADS) {
        return wk_fail(err, WICK_ERR_VALUE, "%d threads: it must be 0 (automatic) to %d",
                       desc->n_threads, MAX_THREADS);
    }
    WK_TRY(choose_features(desc->isa, &dev->features, err));
    wk_cpu_table_make(&dev->table, dev->features);
    const uint32_t slice_us = desc->slice_us != 0 ? desc->slice_us : WK_DEFAULT_SLICE_US;
    dev->slice_ns = (uint64_t)slice_us * 1000;
    if (desc->profile) WK_TRY(make_profile(dev, err));
    /* More threads than processors only take them from each other. */
    const int most = wk_cpu_count();
    const int n_threads = desc->n_threads != 0 && desc->n_threads < most ? desc->n_threads : most;
    WK_TRY(wk_pool_make(dev->heap, n_threads, &dev->pool, err));
    const size_t n = (size_t)wk_pool_size(dev->pool);
    dev->rest = wk_alloc_array(dev->heap, n, sizeof *dev->rest);
    return dev->rest ? WICK_OK : wk_cpu_no_memory(err, n * sizeof *dev->rest, "a device");
}

static wick_status open_start(const wk_open_desc *desc, wk_backend_device **out, wick_error *err) {
    *out = NULL;
    wk_backend_device *dev = wk_alloc_zeroed(desc->heap, sizeof *dev);
    if (!dev) return wk_cpu_no_memory(err, sizeof *dev, "a device");
    dev->heap = desc->heap;
    const wick_status status = set_up(dev, desc->device, err);
    if (status != WICK_OK) {
        close_device(dev);
        return status;
    }
    *out = dev;
    return WICK_OK;
}

static wick_status open_poll(wk_backend_device *dev, wick_error *err) {
    (void)dev, (void)err;
    return WICK_OK;
}

static void get_info(const wk_backend_device *dev, wick_device_info *info) {
    *info = (wick_device_info){
        .backend = WICK_BACKEND_CPU,
        .n_threads = wk_pool_size(dev->pool),
        .memory_total = wk_memory_total(),
        .memory_available = wk_memory_available(),
    };
    wk_cpu_name(info->name, sizeof info->name);
    snprintf(info->backend_name, sizeof info->backend_name, "%s", wk_backend_cpu.name);
    snprintf(info->isa, sizeof info->isa, "%s", isa_name(dev->features));
}

static void get_stats(const wk_backend_device *dev, wk_backend_stats *stats) {
    *stats = dev->stats;
    stats->pool_largest_free_bytes = wk_cpu_largest_unused(dev);
}

static size_t get_profile(const wk_backend_device *dev, wick_kernel_stats *out, size_t capacity) {
    size_t n = 0;
    for (size_t i = 0; dev->profile && i < dev->n_kernels; i++) {
        if (dev->profile[i].calls == 0) continue;
        if (n < capacity) out[n] = dev->profile[i];
        n++;
    }
    return n;
}

/* --- Weights --- */

static wk_layout prepare_weight(const wk_backend_device *dev, wick_dtype dtype, int64_t n,
                                int64_t k, uint32_t uses) {
    return wk_cpu_weight_layout(dev->features, dtype, n, k, uses);
}

typedef struct store_rows {
    const wk_view *weight;
    int64_t first_row, n_rows;
    uint64_t row_bytes;
    const unsigned char *blocks;
} store_rows;

/* One item is a panel of rows. */
static void store_panels(void *argument, int worker, int64_t begin, int64_t end) {
    (void)worker;
    const store_rows *store = argument;
    const wk_view *weight = store->weight;
    const int64_t first = begin * WK_PANEL_ROWS;
    const int64_t last = end * WK_PANEL_ROWS < store->n_rows ? end * WK_PANEL_ROWS : store->n_rows;
    const int64_t row = store->first_row + first;
    const unsigned char *from = store->blocks + (uint64_t)first * store->row_bytes;
    unsigned char *to = wk_view_data(weight);
    if (weight->layout == WK_LAYOUT_RAW) {
        memcpy(to + (uint64_t)row * store->row_bytes, from,
               (size_t)((uint64_t)(last - first) * store->row_bytes));
        return;
    }
    wk_layout_store((wk_layout)weight->layout, weight->dtype, weight->extent[0], weight->extent[1],
                    row, last - first, from, to);
}

static wick_status upload_rows(wk_backend_device *dev, const wk_view *weight, int64_t first_row,
                               int64_t n_rows, const void *blocks, wick_error *err) {
    assert(weight->rank == 2 && first_row % WK_PANEL_ROWS == 0);
    assert(first_row >= 0 && n_rows >= 0 && n_rows <= weight->extent[0] - first_row);
    store_rows store = {
        .weight = weight, .first_row = first_row, .n_rows = n_rows, .blocks = blocks};
    if (!wk_dtype_bytes(weight->dtype, weight->extent[1], &store.row_bytes)) {
        return wk_fail(err, WICK_ERR_SHAPE, "rows of %lld elements do not fit the blocks of %s",
                       (long long)weight->extent[1], wick_dtype_name(weight->dtype));
    }
    if (store.row_bytes == 0) return WICK_OK;
    ((wk_cpu_buffer *)weight->buf)->is_weight = true;
    if (first_row == 0) wk_memory_prefer_large_pages(weight->buf->data, weight->buf->size);
    const int64_t n_panels = (n_rows + WK_PANEL_ROWS - 1) / WK_PANEL_ROWS;
    wk_pool_run(dev->pool, store_panels, &store, n_panels, 1);
    dev->stats.bytes_uploaded += (uint64_t)n_rows * store.row_bytes;
    return WICK_OK;
}

/* --- The rest of the table --- */

static const wk_kernel *find_kernel(const wk_backend_device *dev, const wk_op *op) {
    const wk_cpu_kernel *kernel = wk_cpu_table_find(&dev->table, op);
    return kernel ? &kernel->base : NULL;
}

static wick_status submit(wk_backend_device *dev, wk_ticket *ticket, wick_error *err) {
    (void)err;
    dev->stats.n_submits++;
    *ticket = dev->n_given;
    return WICK_OK;
}

const wk_backend wk_backend_cpu = {
    .id = WICK_BACKEND_CPU,
    .name = "cpu",
    .open_start = open_start,
    .open_poll = open_poll,
    .close = close_device,
    .info = get_info,
    .stats = get_stats,
    .profile = get_profile,
    .measure = wk_cpu_measure,
    .alloc = wk_cpu_alloc,
    .trim = wk_cpu_trim,
    .wrap = wk_cpu_wrap,
    .free = wk_cpu_free,
    .upload = wk_cpu_upload,
    .joins_weights = true,
    .joins_products = true,
    .prepare_weight = prepare_weight,
    .upload_rows = upload_rows,
    .find_kernel = find_kernel,
    .encode = wk_cpu_encode,
    .submit = submit,
    .poll = wk_cpu_poll,
    .take_fault = wk_cpu_take_fault,
    .read_start = wk_cpu_read_start,
    .read_finish = wk_cpu_read_finish,
    .plan_prepare = wk_cpu_plan_prepare,
    .plan_replay = wk_cpu_plan_replay,
    .plan_free = wk_cpu_plan_free,
    .kernels = &wk_cpu_kernels,
};
