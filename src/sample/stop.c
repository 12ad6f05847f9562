/* sample/stop.c: see stop.h. */
#include "sample/stop.h"

#include <assert.h>
#include <string.h>

wick_status wk_stop_make(wk_heap *heap, const char *const *strings, size_t n, size_t most,
                         wk_stop *out, wick_error *err) {
    *out = (wk_stop){0};
    if (n > 0) {
        out->strings = wk_alloc_array(heap, n, sizeof *out->strings);
        if (!out->strings) return wk_fail_memory(err, n * sizeof *out->strings, "stop strings");
        out->n_strings = n; /* those that are not there yet are empty */
    }
    for (size_t i = 0; i < n; i++) {
        const size_t size = strings[i] ? strlen(strings[i]) : 0;
        if (size == 0) return wk_fail(err, WICK_ERR_VALUE, "stop string %zu is empty", i + 1);
        char *const copy = wk_alloc(heap, size);
        if (!copy) return wk_fail_memory(err, size, "stop strings");
        memcpy(copy, strings[i], size);
        out->strings[i] = (wk_str){copy, size};
        if (size > out->longest) out->longest = size;
    }
    out->capacity = most + out->longest;
    out->held = wk_alloc(heap, out->capacity);
    if (!out->held) return wk_fail_memory(err, out->capacity, "stop strings");
    return WICK_OK;
}

void wk_stop_free(wk_heap *heap, wk_stop *stop) {
    for (size_t i = 0; i < stop->n_strings; i++)
        wk_free(heap, (void *)(uintptr_t)stop->strings[i].text, stop->strings[i].size);
    wk_free(heap, stop->strings, stop->n_strings * sizeof *stop->strings);
    wk_free(heap, stop->held, stop->capacity);
    *stop = (wk_stop){0};
}

static bool begins_at(const wk_stop *stop, size_t at, wk_str string) {
    assert(at < stop->n_held && string.size > 0);
    const size_t left = stop->n_held - at;
    const size_t size = left < string.size ? left : string.size;
    return memcmp(stop->held + at, string.text, size) == 0;
}

size_t wk_stop_feed(wk_stop *stop, const char *text, size_t size, bool is_end, bool *stopped) {
    assert(stop->n_held + size <= stop->capacity);
    memcpy(stop->held + stop->n_held, text, size);
    stop->n_held += size;
    *stopped = false;
    for (size_t at = 0; at < stop->n_held; at++) {
        for (size_t i = 0; i < stop->n_strings; i++) {
            if (!begins_at(stop, at, stop->strings[i])) continue;
            *stopped = stop->n_held - at >= stop->strings[i].size;
            if (!*stopped) continue;
            stop->found = i;
            return at;
        }
        /* Whole matches at this place first, then what may still become one. */
        for (size_t i = 0; i < stop->n_strings && !is_end; i++)
            if (begins_at(stop, at, stop->strings[i])) return at;
    }
    return stop->n_held;
}

void wk_stop_release(wk_stop *stop, size_t size) {
    assert(size <= stop->n_held);
    memmove(stop->held, stop->held + size, stop->n_held - size);
    stop->n_held -= size;
}
