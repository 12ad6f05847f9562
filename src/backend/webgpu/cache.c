/* backend/webgpu/cache.c: what is made once: layouts, pipelines by their program, bind groups by
 * what they bind. */
#include "backend/webgpu/cache.h"

#include "backend/webgpu/choice.h"
#include "backend/webgpu/recorder.h"
#include "backend/webgpu/shader.h"
#include "backend/webgpu/webgpu_state.h"
#include "core/hash.h"
#include "sys/clock.h"

#include <assert.h>
#include <string.h>

void wk_cache_make(wk_backend_device *dev) { wk_map64_init(&dev->cache.pipeline_index, dev->heap); }

void wk_cache_release(wk_backend_device *dev) {
    wk_webgpu_cache *const cache = &dev->cache;
    for (size_t i = 0; i < cache->n_pipelines; i++) {
        wk_gpu_pipeline_release(dev->gpu, cache->pipelines[i]->pipeline);
        wk_free(dev->heap, cache->pipelines[i], sizeof *cache->pipelines[i]);
    }
    wk_free(dev->heap, cache->pipelines, cache->pipeline_capacity * sizeof *cache->pipelines);
    wk_map64_release(&cache->pipeline_index);
    for (size_t i = 0; i < cache->n_layouts; i++)
        wk_gpu_layout_release(dev->gpu, cache->layouts[i].layout);
    *cache = (wk_webgpu_cache){0};
}

/* --- Layouts --- */

wick_status wk_cache_layout(wk_backend_device *dev, uint32_t n, uint32_t writable,
                            uint32_t uniform_bytes, wk_gpu_layout **out, wick_error *err) {
    assert(n <= WK_MAX_BINDINGS && writable >> n == 0);
    wk_webgpu_cache *const cache = &dev->cache;
    for (size_t i = 0; i < cache->n_layouts; i++) {
        const wk_layout_entry *const entry = &cache->layouts[i];
        if (entry->n != n || entry->writable != writable || entry->uniform_bytes != uniform_bytes)
            continue;
        *out = entry->layout;
        return WICK_OK;
    }
    if (cache->n_layouts == WK_MAX_LAYOUTS)
        return wk_fail(err, WICK_ERR_INTERNAL, "more than %d layouts of bind groups",
                       WK_MAX_LAYOUTS);
    WK_TRY(wk_gpu_layout_make(dev->gpu, (int)n, writable, uniform_bytes, out, err));
    cache->layouts[cache->n_layouts++] = (wk_layout_entry){
        .n = n, .writable = writable, .uniform_bytes = uniform_bytes, .layout = *out};
    return WICK_OK;
}

/* --- Pipelines --- */

static uint32_t writable_slots(const wk_program *program) {
    uint32_t mask = 0;
    for (int i = 0; i < WK_PROGRAM_OPERANDS; i++)
        if (program->operands[i].is_written) mask |= 1U << program->operands[i].slot;
    return mask;
}

static wick_status compile(wk_backend_device *dev, wk_pipeline_entry *entry, wick_error *err) {
    const wk_program *const program = &entry->program;
    WK_TRY(wk_cache_layout(dev, program->n_slots, writable_slots(program), WK_GPU_PARAM_BYTES,
                           &entry->layout, err));
    wk_strbuf text;
    wk_strbuf_init(&text, dev->heap);
    wk_webgpu_shader(dev->gpu, program, &text);
    dev->cache.shader_bytes += text.size;
    const wk_gpu_pipeline_desc desc = {
        .label = program->source->name, .wgsl = text.data, .layout = entry->layout};
    const wick_status status = text.failed
                                   ? wk_fail_memory(err, text.size, "the text of a shader")
                                   : wk_gpu_pipeline_start(dev->gpu, &desc, &entry->pipeline, err);
    wk_strbuf_release(&text);
    return status;
}

static wick_status add_pipeline(wk_backend_device *dev, const wk_webgpu_kernel *kernel,
                                const wk_program *program, uint64_t hash, wk_pipeline_entry **out,
                                wick_error *err) {
    wk_webgpu_cache *const cache = &dev->cache;
    if (cache->n_pipelines == cache->pipeline_capacity) {
        const size_t larger = cache->pipeline_capacity ? 2 * cache->pipeline_capacity : 64;
        const size_t size = sizeof *cache->pipelines;
        void *const moved =
            wk_realloc(dev->heap, cache->pipelines, cache->pipeline_capacity * size, larger * size);
        if (!moved) return wk_fail_memory(err, larger * size, "pipelines");
        cache->pipelines = moved;
        cache->pipeline_capacity = larger;
    }
    wk_pipeline_entry *const entry = wk_alloc_zeroed(dev->heap, sizeof *entry);
    if (!entry) return wk_fail_memory(err, sizeof *entry, "a pipeline");
    memcpy(&entry->program, program, sizeof *program);
    entry->kernel = kernel;
    wick_status status = compile(dev, entry, err);
    if (status == WICK_OK &&
        wk_map64_put(&cache->pipeline_index, hash, (uint32_t)cache->n_pipelines) != WICK_OK) {
        wk_gpu_pipeline_release(dev->gpu, entry->pipeline);
        status = wk_fail_memory(err, sizeof *entry, "a pipeline");
    }
    if (status != WICK_OK) {
        wk_free(dev->heap, entry, sizeof *entry);
        return status;
    }
    entry->status = WICK_PENDING;
    if (cache->n_finished == cache->n_pipelines) cache->begun_ns = wk_clock_ns();
    cache->pipelines[cache->n_pipelines++] = entry;
    entry->number = cache->n_pipelines;
    *out = entry;
    return WICK_OK;
}

wick_status wk_cache_pipeline(wk_backend_device *dev, const wk_webgpu_kernel *kernel,
                              const wk_program *program, wk_pipeline_entry **out, wick_error *err) {
    assert(program->source && program->n_slots > 0 && program->n_slots <= WK_MAX_BINDINGS);
    uint64_t hash = wk_hash(program, sizeof *program);
    uint32_t index;
    while (wk_map64_get(&dev->cache.pipeline_index, hash, &index)) {
        wk_pipeline_entry *const entry = dev->cache.pipelines[index];
        if (memcmp(&entry->program, program, sizeof *program) == 0) {
            dev->cache.n_pipeline_hits++;
            *out = entry;
            return WICK_OK;
        }
        hash++; /* another program of the same hash */
    }
    return add_pipeline(dev, kernel, program, hash, out, err);
}

static bool is_refused(const wk_pipeline_entry *entry) {
    return entry->kernel && entry->status < 0 && entry->status != WICK_ERR_DEVICE_LOST;
}

/* Of a kernel with several programs, the first that failed. */
static bool is_first_refusal(const wk_webgpu_cache *cache, size_t i) {
    if (!is_refused(cache->pipelines[i])) return false;
    for (size_t k = 0; k < i; k++)
        if (is_refused(cache->pipelines[k]) &&
            cache->pipelines[k]->kernel == cache->pipelines[i]->kernel)
            return false;
    return true;
}

bool wk_cache_take_refused(wk_backend_device *dev, wick_error *why) {
    wk_webgpu_cache *const cache = &dev->cache;
    while (cache->n_judged < cache->n_finished) {
        const size_t i = cache->n_judged++;
        if (!is_first_refusal(cache, i)) continue;
        (void)wk_gpu_pipeline_poll(dev->gpu, cache->pipelines[i]->pipeline, why);
        return true;
    }
    return false;
}

wick_status wk_cache_poll(wk_backend_device *dev) {
    wk_webgpu_cache *const cache = &dev->cache;
    while (cache->n_finished < cache->n_pipelines) {
        wk_pipeline_entry *const entry = cache->pipelines[cache->n_finished];
        entry->status = wk_gpu_pipeline_poll(dev->gpu, entry->pipeline, NULL);
        if (entry->status == WICK_PENDING) return WICK_PENDING;
        if (entry->status != WICK_OK) cache->n_failures++;
        if (is_refused(entry)) wk_choice_of(dev, &entry->kernel->base)->is_refused = true;
        if (++cache->n_finished == cache->n_pipelines)
            cache->compile_ns += wk_clock_ns() - cache->begun_ns;
    }
    return WICK_OK;
}

bool wk_cache_wait(wk_backend_device *dev, size_t n) {
    wk_webgpu_cache *const cache = &dev->cache;
    assert(n <= cache->n_pipelines); /* else it would never be there */
    if (cache->n_finished >= n) return true;
    const uint64_t begun = wk_clock_ns();
    while (wk_cache_poll(dev) == WICK_PENDING && cache->n_finished < n)
        if (!wk_gpu_pause(dev->gpu)) break;
    cache->wait_ns += wk_clock_ns() - begun;
    return cache->n_finished >= n;
}

void wk_cache_stats(const wk_backend_device *dev, wk_backend_stats *stats) {
    const wk_webgpu_cache *const cache = &dev->cache;
    const bool is_compiling = cache->n_finished < cache->n_pipelines;
    stats->n_pipelines = cache->n_pipelines;
    stats->n_pipeline_hits = cache->n_pipeline_hits;
    stats->n_pipeline_failures = cache->n_failures;
    stats->shader_bytes = cache->shader_bytes;
    stats->compile_ns = cache->compile_ns + (is_compiling ? wk_clock_ns() - cache->begun_ns : 0);
    stats->compile_wait_ns = cache->wait_ns;
    stats->n_bind_groups = cache->n_groups_made;
    stats->n_bind_group_hits = cache->n_group_hits;
}

/* --- Bind groups --- */

static wick_status make_group(wk_backend_device *dev, const wk_gpu_layout *layout,
                              const wk_window *windows, int n, wk_gpu_buffer *params,
                              wk_gpu_group **out, wick_error *err) {
    wk_gpu_binding bindings[WK_MAX_BINDINGS];
    for (int i = 0; i < n; i++)
        bindings[i] = (wk_gpu_binding){windows[i].block->gpu, windows[i].offset, windows[i].size};
    dev->cache.n_groups_made++;
    return wk_gpu_group_make(dev->gpu, layout, bindings, n, params, out, err);
}

wick_status wk_cache_group(wk_backend_device *dev, wk_recorder *recorder,
                           const wk_gpu_layout *layout, const wk_window *windows, int n,
                           wk_gpu_buffer *params, wk_gpu_group **out, wick_error *err) {
    assert(n > 0 && n <= WK_MAX_BINDINGS);
    wk_group_key key;
    memset(&key, 0, sizeof key);
    key.layout = layout;
    key.params = params;
    for (int i = 0; i < n; i++) {
        key.windows[i][0] = windows[i].block->id;
        key.windows[i][1] = windows[i].offset;
        key.windows[i][2] = windows[i].size;
    }
    const size_t used = offsetof(wk_group_key, windows) + (size_t)n * sizeof key.windows[0];
    const size_t at = (size_t)wk_hash(&key, used), most = recorder->n_entries - 1;
    /* Either of two entries, the newer one first; with one alone, two groups of a step that it is
     * for would drive each other out at every step. */
    wk_group_entry *const entry = &recorder->entries[at & most & ~(size_t)1];
    wk_group_entry *const older = &recorder->entries[(at | 1) & most];
    for (int i = 0; i < 2; i++) {
        const wk_group_entry *const e = i == 0 ? entry : older;
        if (!e->group || memcmp(&e->key, &key, sizeof key) != 0) continue;
        dev->cache.n_group_hits++;
        *out = e->group;
        return WICK_OK;
    }
    WK_TRY(make_group(dev, layout, windows, n, params, out, err));
    /* Commands may still name the one that it drives out. */
    const wick_status status =
        older->group ? wk_recorder_keep(dev, recorder, older->group, err) : WICK_OK;
    if (status != WICK_OK) {
        wk_gpu_group_release(dev->gpu, *out);
        return status;
    }
    *older = *entry; /* the same one where there is only one */
    memcpy(&entry->key, &key, sizeof key);
    entry->group = *out;
    return WICK_OK;
}
