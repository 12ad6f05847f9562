/* source/reader.h: a window that moves forward over a source: the same to the loader whether the
 * bytes are mapped, read or streamed. */
#ifndef WK_SOURCE_READER_H
#define WK_SOURCE_READER_H

#include "core/alloc.h"
#include "core/status.h"

#include <wick/source.h>

typedef struct wk_reader {
    wk_heap *heap;
    wick_source *source; /* not owned */
    bool is_mapped;
    unsigned char *buffer; /* [capacity]; holds bytes [begin, begin + size) */
    size_t capacity, size;
    uint64_t begin;
    bool is_reading, is_at_end;
} wk_reader;

/* use_map: take the source's mapping where it has one. */
void wk_reader_init(wk_reader *reader, wk_heap *heap, wick_source *source, bool use_map);
void wk_reader_release(wk_reader *reader);

/* Back to the start; no read may be under way. */
void wk_reader_rewind(wk_reader *reader);

/* Points *bytes at the size bytes from offset on, *got of them (fewer only at the end of the
 * source); they stay until the next call. WICK_PENDING: ask again for the same. Offsets never
 * decrease until it is rewound; what lies between is skipped, by reading it where the source is
 * sequential. */
wick_status wk_reader_get(wk_reader *reader, uint64_t offset, size_t size,
                          const unsigned char **bytes, size_t *got, wick_error *err);

#endif
