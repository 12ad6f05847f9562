/* text/id_sink.h: where token ids go: as many as there is room for, and all of them are counted. */
#ifndef WK_TEXT_ID_SINK_H
#define WK_TEXT_ID_SINK_H

#include <wick/text.h>

typedef struct wk_id_sink {
    uint32_t *ids;
    size_t capacity, count;
} wk_id_sink;

static inline void wk_id_sink_put(wk_id_sink *sink, uint32_t id) {
    if (sink->count < sink->capacity) sink->ids[sink->count] = id;
    sink->count++;
}

#endif
