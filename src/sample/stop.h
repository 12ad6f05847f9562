/* sample/stop.h: stop strings: text is held back while it could still become one. */
#ifndef WK_SAMPLE_STOP_H
#define WK_SAMPLE_STOP_H

#include "core/alloc.h"
#include "core/status.h"
#include "core/str.h"

typedef struct wk_stop {
    wk_str *strings; /* own copies */
    size_t n_strings, longest;
    size_t found; /* the one that ended the text */
    char *held;   /* [capacity] text that has not been let out */
    size_t n_held, capacity;
} wk_stop;

/* most: bytes that one feed may bring. Empty strings are refused (WICK_ERR_VALUE). */
wick_status wk_stop_make(wk_heap *heap, const char *const *strings, size_t n, size_t most,
                         wk_stop *out, wick_error *err);
void wk_stop_free(wk_heap *heap, wk_stop *stop);

/* Adds text, the last one where is_end; returns how many bytes of held may go out now. *stopped: a
 * stop string was found, the text ends there. Call wk_stop_release with the number before the next
 * feed. */
size_t wk_stop_feed(wk_stop *stop, const char *text, size_t size, bool is_end, bool *stopped);
/* Drops the first size held bytes. */
void wk_stop_release(wk_stop *stop, size_t size);

#endif
