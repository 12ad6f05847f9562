/* web/glue/source.c: a source whose bytes JavaScript puts in place: a read is asked for by an
 * import and answered by a door. */
#include "source.h"

#include <stdio.h>
#include <stdlib.h>

struct door_source {
    uint32_t id; /* JavaScript's number for it */
    bool is_done;
    size_t got;
    wick_error error;
};

/* Begins to read; source_answered tells the end. */
HOST("read")
void host_read(uint32_t id, door_source *source, double offset, size_t size, void *dst);
/* What is being read is not wanted any more, and dst is gone. */
HOST("close") void host_close(uint32_t id);

static wick_status read_at(wick_source *source, uint64_t offset, size_t size, void *dst,
                           wick_error *error) {
    (void)error;
    door_source *const s = source->user;
    s->is_done = false;
    host_read(s->id, s, (double)offset, size, dst);
    return WICK_OK;
}

static wick_status poll(wick_source *source, size_t *got, wick_error *error) {
    door_source *const s = source->user;
    if (!s->is_done) return WICK_PENDING;
    if (s->error.status == WICK_OK)
        *got = s->got;
    else if (error != NULL && error->status == WICK_OK)
        *error = s->error;
    return s->error.status;
}

static void close(wick_source *source) {
    door_source *const s = source->user;
    host_close(s->id);
    free(s);
}

/* size: bytes, negative where it is not known. NULL: no memory. The doors that take a source take
 * it over. */
DOOR(wick_source *, source_make, uint32_t id, double size, int is_sequential) {
    door_source *const made = calloc(1, sizeof *made);
    wick_source *const source = malloc(sizeof *source);
    if (made == NULL || source == NULL) {
        free(made);
        free(source);
        (void)door_fail(WICK_ERR_OUT_OF_MEMORY, NULL);
        return NULL;
    }
    made->id = id;
    *source = (wick_source){.user = made,
                            .size = size < 0 ? WICK_SIZE_UNKNOWN : (uint64_t)size,
                            .is_sequential = is_sequential,
                            .read_at = read_at,
                            .poll = poll,
                            .close = close};
    return source;
}

wick_source door_source_take(wick_source *source) {
    const wick_source taken = *source;
    free(source);
    return taken;
}

static void close_holder(wick_source *source) {
    wick_source taken = door_source_take(source);
    taken.close(&taken);
}

/* status OK: got bytes are in place; else text, a sentence of at most 511 bytes, says why not, and
 * requested and available are the bytes of WICK_ERR_OUT_OF_MEMORY. */
DOOR(void, source_answered, door_source *source, size_t got, int status, const char *text,
     double requested, double available) {
    source->is_done = true;
    source->got = got;
    source->error.status = (wick_status)status;
    source->error.bytes_requested = (uint64_t)requested;
    source->error.bytes_available = (uint64_t)available;
    if (text != NULL) snprintf(source->error.message, sizeof source->error.message, "%s", text);
}

/* --- The files of a split model as one --- */

/* sources and names [n] stay until finish. */
DOOR(wick_source_joining *, sources_join, wick_source *const *sources, const char *const *names,
     size_t n) {
    wick_source_joining *joining = NULL;
    wick_source *const parts = calloc(n, sizeof *parts);
    if (parts == NULL) {
        for (size_t i = 0; i < n; i++) close_holder(sources[i]);
        (void)door_fail(WICK_ERR_OUT_OF_MEMORY, NULL);
        return NULL;
    }
    for (size_t i = 0; i < n; i++) parts[i] = door_source_take(sources[i]);
    (void)wick_source_join_start(parts, names, n, &joining, door_new_error());
    free(parts);
    return joining;
}

DOOR(int, join_poll, wick_source_joining *joining) { return wick_source_join_poll(joining); }

DOOR(wick_source *, join_finish, wick_source_joining *joining) {
    wick_source source;
    if (wick_source_join_finish(joining, &source, door_new_error()) != WICK_OK) return NULL;
    wick_source *const joined = malloc(sizeof *joined);
    if (joined != NULL) {
        *joined = source;
    } else {
        source.close(&source);
        (void)door_fail(WICK_ERR_OUT_OF_MEMORY, NULL);
    }
    return joined;
}
