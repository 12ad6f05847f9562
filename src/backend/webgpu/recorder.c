/* backend/webgpu/recorder.c: arrays of commands and of the parameters that they name. */
#include "backend/webgpu/recorder.h"

#include "backend/webgpu/memory.h"
#include "backend/webgpu/pace.h"
#include "backend/webgpu/webgpu_state.h"

#include <assert.h>
#include <string.h>

void wk_recorder_clear(wk_backend_device *dev, wk_recorder *recorder) {
    while (recorder->n_groups > 0)
        wk_gpu_group_release(dev->gpu, recorder->groups[--recorder->n_groups]);
    recorder->n_commands = recorder->n_marks = 0;
    recorder->may_fault = false;
    recorder->n_pipelines = 0;
    for (wk_param_chunk *c = recorder->chunks; c; c = c->next) c->used = 0;
    recorder->chunk = recorder->chunks;
}

wick_status wk_recorder_make(wk_backend_device *dev, wk_recorder *recorder, size_t n_entries,
                             wick_error *err) {
    assert(n_entries > 0 && (n_entries & (n_entries - 1)) == 0);
    *recorder = (wk_recorder){.n_entries = n_entries};
    recorder->entries = wk_alloc_array(dev->heap, n_entries, sizeof *recorder->entries);
    if (recorder->entries) return WICK_OK;
    return wk_fail_memory(err, n_entries * sizeof *recorder->entries, "bind groups");
}

void wk_recorder_forget(wk_backend_device *dev, wk_recorder *recorder) {
    assert(recorder->n_commands == 0);
    for (size_t i = 0; recorder->entries && i < recorder->n_entries; i++) {
        if (!recorder->entries[i].group) continue;
        wk_gpu_group_release(dev->gpu, recorder->entries[i].group);
        recorder->entries[i].group = NULL;
    }
}

void wk_recorder_release(wk_backend_device *dev, wk_recorder *recorder) {
    wk_recorder_clear(dev, recorder);
    wk_recorder_forget(dev, recorder);
    wk_free(dev->heap, recorder->entries, recorder->n_entries * sizeof *recorder->entries);
    wk_free(dev->heap, recorder->groups, recorder->group_capacity * sizeof *recorder->groups);
    wk_free(dev->heap, recorder->marks, recorder->mark_capacity * sizeof *recorder->marks);
    while (recorder->n_temps > 0) wk_webgpu_free(dev, recorder->temps[--recorder->n_temps]);
    wk_free(dev->heap, recorder->temps, recorder->temp_capacity * sizeof *recorder->temps);
    while (recorder->chunks) {
        wk_param_chunk *const chunk = recorder->chunks;
        recorder->chunks = chunk->next;
        wk_gpu_buffer_release(dev->gpu, chunk->gpu);
        wk_free(dev->heap, chunk, sizeof *chunk);
    }
    wk_free(dev->heap, recorder->commands, recorder->capacity * sizeof *recorder->commands);
    *recorder = (wk_recorder){0};
}

/* An array of elements of size bytes with room for one more than count; NULL: out of memory, the
 * old one stays. */
static void *grown(wk_backend_device *dev, void *array, size_t count, size_t *capacity, size_t size,
                   wick_error *err) {
    enum { FIRST = 64 };
    if (count < *capacity) return array;
    const size_t larger = *capacity ? 2 * *capacity : FIRST;
    void *const moved = wk_realloc(dev->heap, array, *capacity * size, larger * size);
    if (moved)
        *capacity = larger;
    else
        (void)wk_fail_memory(err, larger * size, "recorded commands");
    return moved;
}

wick_status wk_recorder_keep(wk_backend_device *dev, wk_recorder *recorder, wk_gpu_group *group,
                             wick_error *err) {
    wk_gpu_group **const groups = grown(dev, recorder->groups, recorder->n_groups,
                                        &recorder->group_capacity, sizeof *groups, err);
    if (!groups) return WICK_ERR_OUT_OF_MEMORY;
    recorder->groups = groups;
    groups[recorder->n_groups++] = group;
    return WICK_OK;
}

wick_status wk_recorder_hold(wk_backend_device *dev, wk_recorder *recorder, wk_buffer *temp,
                             wick_error *err) {
    wk_buffer **const temps = grown(dev, recorder->temps, recorder->n_temps,
                                    &recorder->temp_capacity, sizeof *temps, err);
    if (!temps) return WICK_ERR_OUT_OF_MEMORY;
    recorder->temps = temps;
    temps[recorder->n_temps++] = temp;
    return WICK_OK;
}

wick_status wk_recorder_mark(wk_backend_device *dev, wk_recorder *recorder, double estimate,
                             wick_error *err) {
    wk_mark *const marks = grown(dev, recorder->marks, recorder->n_marks, &recorder->mark_capacity,
                                 sizeof *marks, err);
    if (!marks) return WICK_ERR_OUT_OF_MEMORY;
    recorder->marks = marks;
    marks[recorder->n_marks++] =
        (wk_mark){.n_commands = recorder->n_commands, .estimate = estimate};
    return WICK_OK;
}

void wk_recorder_spoil(wk_recorder *recorder, const wk_op *ops, size_t n) {
    for (size_t i = 0; recorder->integers.buf && i < n; i++)
        for (int d = 0; d < ops[i].n_dst; d++)
            if (wk_view_overlaps(&ops[i].view[d], &recorder->quantized))
                recorder->integers.buf = NULL;
}

wk_gpu_command *wk_recorder_next(wk_backend_device *dev, wk_recorder *recorder, wick_error *err) {
    wk_gpu_command *const commands = grown(dev, recorder->commands, recorder->n_commands,
                                           &recorder->capacity, sizeof *commands, err);
    if (!commands) return NULL;
    recorder->commands = commands;
    if (recorder == &dev->recorder) wk_pace_work(dev);
    wk_gpu_command *const command = &commands[recorder->n_commands++];
    *command = (wk_gpu_command){.kind = WK_GPU_COPY};
    return command;
}

static wick_status add_chunk(wk_backend_device *dev, wk_recorder *recorder, wick_error *err) {
    wk_param_chunk *const chunk = wk_alloc_zeroed(dev->heap, sizeof *chunk);
    if (!chunk) return wk_fail_memory(err, sizeof *chunk, "parameters");
    const wick_status status =
        wk_gpu_buffer_make(dev->gpu, WK_GPU_UNIFORM, WK_PARAM_CHUNK, &chunk->gpu, err);
    if (status != WICK_OK) {
        wk_free(dev->heap, chunk, sizeof *chunk);
        return status;
    }
    if (recorder->chunk)
        recorder->chunk->next = chunk;
    else
        recorder->chunks = chunk;
    recorder->chunk = chunk;
    return WICK_OK;
}

/* A binding always has WK_GPU_PARAM_BYTES, however few are used. */
static bool has_room(const wk_param_chunk *chunk) {
    return chunk && chunk->used + WK_GPU_PARAM_BYTES <= WK_PARAM_CHUNK;
}

wick_status wk_recorder_params(wk_backend_device *dev, wk_recorder *recorder, const uint32_t *words,
                               size_t n_words, wk_gpu_buffer **uniforms, uint32_t *offset,
                               wick_error *err) {
    if (!has_room(recorder->chunk) && recorder->chunk && recorder->chunk->next)
        recorder->chunk = recorder->chunk->next;
    if (!has_room(recorder->chunk)) WK_TRY(add_chunk(dev, recorder, err));
    wk_param_chunk *const chunk = recorder->chunk;
    const uint32_t alignment = dev->adapter.limits.uniform_alignment;
    const size_t bytes = n_words * sizeof *words;
    assert(bytes <= WK_GPU_PARAM_BYTES && chunk->used % alignment == 0);
    memcpy(chunk->bytes + chunk->used, words, bytes);
    *uniforms = chunk->gpu;
    *offset = chunk->used;
    chunk->used += (uint32_t)((bytes + alignment - 1) / alignment * alignment);
    return WICK_OK;
}

void wk_recorder_write(wk_backend_device *dev, wk_recorder *recorder) {
    for (wk_param_chunk *c = recorder->chunks; c; c = c->next)
        if (c->used > 0) wk_gpu_write(dev->gpu, c->gpu, 0, c->bytes, (c->used + 3) / 4 * 4);
}
