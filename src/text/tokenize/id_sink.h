/* text/tokenize/id_sink.h: where token ids go: as many as there is room for, and all of them are
 * counted. */
#ifndef WK_TEXT_TOKENIZE_ID_SINK_H
#define WK_TEXT_TOKENIZE_ID_SINK_H

#include <wick/text.h>

typedef struct wk_id_sink {
    uint32_t *ids;
    size_t capacity, count;
    uint32_t last; /* WICK_NO_TOKEN while count is 0 */
} wk_id_sink;

static inline void wk_id_sink_put(wk_id_sink *sink, uint32_t id) {
    if (sink->count < sink->capacity) sink->ids[sink->count] = id;
    sink->count++;
    sink->last = id;
}

/* What stands for all that is unknown in a row: put once. */
static inline void wk_id_sink_put_once(wk_id_sink *sink, uint32_t id) {
    if (sink->last != id) wk_id_sink_put(sink, id);
}

#endif
