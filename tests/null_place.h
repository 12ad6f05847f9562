/* tests/null_place.h: a model on a null device whose memory is counted, and which is lost on
 * request.
 */
#ifndef NULL_PLACE_H
#define NULL_PLACE_H

#include "backend/null/null.h"
#include "llm/llm.h"
#include "loss.h"

typedef struct place {
    checked_heap heap;
    wick_device *device;
    wick_model *model;
} place;

static inline wick_device_desc null_desc(place *p, bool is_late) {
    checked_heap_init(&p->heap, UINT64_MAX);
    return (wick_device_desc){.backend = WICK_BACKEND_NULL,
                              .n_threads = 1,
                              .null_flags = is_late ? WICK_NULL_LATE : 0,
                              .allocator = p->heap.heap.hook};
}

static inline void open_device(place *p, const wick_device_desc *desc) {
    wick_error error = {.status = WICK_OK};
    p->model = NULL;
    if (wick_device_open(desc, &p->device, &error) != WICK_OK) fail_msg("%s", error.message);
}

static inline wick_model *load(place *p) {
    wick_error error = {.status = WICK_OK};
    wick_model *model;
    if (wick_model_open(p->device, stories_path(), NULL, &model, &error) != WICK_OK)
        fail_msg("%s", error.message);
    return model;
}

static inline void open_place(place *p, bool is_late) {
    const wick_device_desc desc = null_desc(p, is_late);
    open_device(p, &desc);
    p->model = load(p);
}

static inline void close_place(place *p) {
    wick_model_close(p->model);
    wick_device_close(p->device);
    assert_int_equal(p->heap.n_live, 0);
    assert_int_equal(p->heap.n_wrong_sizes, 0);
}

/* The next openings of the device as well. */
static inline void lose_each_after(place *p, uint32_t n_calls) {
    p->device->desc.null_lose_after = n_calls;
}

static inline uint64_t n_losses(const place *p) {
    wick_device_stats stats;
    wick_device_get_stats(p->device, &stats);
    return stats.n_losses;
}

#endif
