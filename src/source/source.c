/* source/source.c: the sources that come with the library: files, memory, pushed bytes. The parts
 * of a split model as one are in split_source.c. */
#include <wick/source.h>

#include "core/alloc.h"
#include "core/status.h"
#include "source/split.h"
#include "sys/file.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

/* Sources are made without a device: each has a heap of its own, inside what it allocates first. */

static bool is_inside(uint64_t offset, uint64_t size, uint64_t whole) {
    return offset <= whole && size <= whole - offset;
}

/* ---- Files ---- */

typedef struct file_source {
    wk_heap heap;
    wk_file *file;
    const unsigned char *mapped; /* NULL: read */
    uint64_t size;
    size_t got;
} file_source;

static wick_status file_read_at(wick_source *source, uint64_t offset, size_t size, void *dst,
                                wick_error *error) {
    file_source *const from = source->user;
    const uint64_t left = offset < from->size ? from->size - offset : 0;
    from->got = size < left ? size : (size_t)left;
    return from->got > 0 ? wk_file_read_at(from->file, offset, dst, from->got, error) : WICK_OK;
}

static wick_status file_poll(wick_source *source, size_t *got, wick_error *error) {
    (void)error;
    *got = ((const file_source *)source->user)->got;
    return WICK_OK;
}

static const void *file_map(wick_source *source, uint64_t offset, uint64_t size) {
    const file_source *const from = source->user;
    return is_inside(offset, size, from->size) ? from->mapped + offset : NULL;
}

static void file_drop(wick_source *source, uint64_t offset, uint64_t size) {
    wk_file_drop(((const file_source *)source->user)->file, offset, size);
}

static void file_close(wick_source *source) {
    file_source *const from = source->user;
    wk_file_close(&from->heap, from->file);
    wk_heap heap = from->heap;
    wk_free(&heap, from, sizeof *from);
}

wick_status wick_source_file(const char *path, wick_source *source, wick_error *error) {
    if (source == NULL || path == NULL)
        return wk_fail(error, WICK_ERR_ARGUMENT, "wick_source_file: an argument is NULL");
    *source = (wick_source){0};
    wk_heap heap;
    wk_heap_init(&heap, NULL);
    file_source *const made = wk_alloc_zeroed(&heap, sizeof *made);
    if (made == NULL) return wk_fail_memory(error, sizeof *made, "a file source");
    made->heap = heap;
    const wick_status status = wk_file_open(&made->heap, path, &made->file, error);
    if (status != WICK_OK) {
        heap = made->heap;
        wk_free(&heap, made, sizeof *made);
        return status;
    }
    made->size = wk_file_size(made->file);
    const void *mapped = NULL;
    if (wk_file_map(made->file, &mapped, NULL) == WICK_OK) made->mapped = mapped;
    *source = (wick_source){
        .user = made,
        .size = made->size,
        .read_at = file_read_at,
        .poll = file_poll,
        .map = made->mapped != NULL ? file_map : NULL,
        .drop = made->mapped != NULL ? file_drop : NULL,
        .close = file_close,
    };
    return WICK_OK;
}

/* ---- Several files ---- */

/* Opens all of them, or none. */
static wick_status open_parts(const char *const *paths, size_t n, wick_source *parts,
                              wick_error *error) {
    wick_error reason = {0};
    size_t n_open = 0;
    while (n_open < n && wick_source_file(paths[n_open], &parts[n_open], &reason) == WICK_OK)
        n_open++;
    if (n_open == n) return WICK_OK;
    for (size_t i = 0; i < n_open; i++) parts[i].close(&parts[i]);
    if (reason.status == WICK_ERR_OUT_OF_MEMORY)
        return wk_fail_memory(error, reason.bytes_requested, "the parts of a model");
    const bool is_missing = reason.status == WICK_ERR_NOT_FOUND;
    return wk_fail(error, reason.status, "part %zu of %zu of the model %s: %s", n_open + 1, n,
                   is_missing ? "is missing" : "cannot be used", reason.message);
}

static wick_status join_files(const char *const *paths, size_t n, wick_source *source,
                              wick_error *error) {
    wk_heap heap;
    wk_heap_init(&heap, NULL);
    wick_source *const parts = wk_alloc_array(&heap, n, sizeof *parts);
    if (parts == NULL) return wk_fail_memory(error, n * sizeof *parts, "the parts of a model");
    wick_status status = open_parts(paths, n, parts, error);
    if (status == WICK_OK) status = wk_split_join(NULL, parts, paths, n, source, error);
    wk_free(&heap, parts, n * sizeof *parts);
    return status;
}

/* The paths of all parts, from one of them. */
static wick_status join_siblings(wk_str stem, uint32_t n, wick_source *source, wick_error *error) {
    wk_heap heap;
    wk_heap_init(&heap, NULL);
    wk_strbuf names;
    wk_strbuf_init(&names, &heap);
    size_t stride = 0; /* all names have the same length */
    for (uint32_t i = 0; i < n; i++) {
        wk_split_name(&names, stem, i + 1, n);
        wk_strbuf_append(&names, "", 1);
        if (i == 0) stride = names.size;
    }
    const char **const paths = wk_alloc_array(&heap, n, sizeof *paths);
    wick_status status;
    if (names.failed || paths == NULL) {
        status = wk_fail_memory(error, n * sizeof *paths, "the parts of a model");
    } else {
        for (uint32_t i = 0; i < n; i++) paths[i] = names.data + i * stride;
        status = join_files(paths, n, source, error);
    }
    wk_free(&heap, (void *)paths, n * sizeof *paths);
    wk_strbuf_release(&names);
    return status;
}

wick_status wick_source_files(const char *const *paths, size_t n, wick_source *source,
                              wick_error *error) {
    bool is_complete = source != NULL && paths != NULL && n > 0;
    for (size_t i = 0; is_complete && i < n; i++) is_complete = paths[i] != NULL;
    if (!is_complete)
        return wk_fail(error, WICK_ERR_ARGUMENT,
                       "wick_source_files: an argument is NULL, or there is no path");
    *source = (wick_source){0};
    if (n > 1) return join_files(paths, n, source, error);
    size_t stem;
    uint32_t part, n_parts;
    if (!wk_split_parse_name(paths[0], &stem, &part, &n_parts) || n_parts == 1)
        return wick_source_file(paths[0], source, error);
    return join_siblings((wk_str){paths[0], stem}, n_parts, source, error);
}

/* ---- Memory ---- */

/* state: bytes of the last read. */
static wick_status memory_read_at(wick_source *source, uint64_t offset, size_t size, void *dst,
                                  wick_error *error) {
    (void)error;
    const uint64_t left = offset < source->size ? source->size - offset : 0;
    source->state = size < left ? size : left;
    if (source->state > 0)
        memcpy(dst, (const unsigned char *)source->user + offset, (size_t)source->state);
    return WICK_OK;
}

static wick_status memory_poll(wick_source *source, size_t *got, wick_error *error) {
    (void)error;
    *got = (size_t)source->state;
    return WICK_OK;
}

static const void *memory_map(wick_source *source, uint64_t offset, uint64_t size) {
    const bool is_mapped = source->size > 0 && is_inside(offset, size, source->size);
    return is_mapped ? (const unsigned char *)source->user + offset : NULL;
}

static void memory_close(wick_source *source) { (void)source; }

wick_source wick_source_memory(const void *data, size_t size) {
    return (wick_source){
        .user = (void *)(uintptr_t)data, /* only ever read */
        .size = size,
        .read_at = memory_read_at,
        .poll = memory_poll,
        .map = memory_map,
        .close = memory_close,
    };
}

/* ---- Pushed bytes ---- */

typedef struct push_chunk push_chunk;
struct push_chunk {
    push_chunk *next;
    size_t size, used; /* bytes, and how many of them have been read */
    unsigned char bytes[];
};

struct wick_push_source {
    wk_heap heap;
    uint64_t size;             /* or WICK_SIZE_UNKNOWN */
    uint64_t n_pushed, n_read; /* bytes */
    push_chunk *first, *last;
    bool is_finished, is_closed; /* the pusher's end, the reader's end; both: freed */
    unsigned char *dst;          /* of the read under way */
    size_t wanted, got;
};

static void push_drop_first(wick_push_source *push) {
    push_chunk *const chunk = push->first;
    push->first = chunk->next;
    wk_free(&push->heap, chunk, sizeof *chunk + chunk->size);
}

static void push_free_when_done(wick_push_source *push) {
    if (!push->is_finished || !push->is_closed) return;
    wk_heap heap = push->heap;
    wk_free(&heap, push, sizeof *push);
}

static wick_status push_read_at(wick_source *source, uint64_t offset, size_t size, void *dst,
                                wick_error *error) {
    wick_push_source *const push = source->user;
    if (offset != push->n_read)
        return wk_fail(error, WICK_ERR_ARGUMENT,
                       "a pushed stream is read in order: at %" PRIu64 ", not at %" PRIu64,
                       push->n_read, offset);
    push->dst = dst;
    push->wanted = size;
    push->got = 0;
    return WICK_OK;
}

static void push_take(wick_push_source *push) {
    while (push->first != NULL && push->got < push->wanted) {
        push_chunk *const chunk = push->first;
        const size_t left = chunk->size - chunk->used, missing = push->wanted - push->got;
        const size_t n = left < missing ? left : missing;
        assert(n > 0); /* a chunk that is used up is gone */
        memcpy(push->dst + push->got, chunk->bytes + chunk->used, n);
        chunk->used += n;
        push->got += n;
        push->n_read += n;
        if (chunk->used == chunk->size) push_drop_first(push);
    }
}

static wick_status push_poll(wick_source *source, size_t *got, wick_error *error) {
    wick_push_source *const push = source->user;
    push_take(push);
    if (push->got < push->wanted && !push->is_finished) return WICK_PENDING;
    if (push->got < push->wanted && push->size != WICK_SIZE_UNKNOWN && push->n_read < push->size)
        return wk_fail(error, WICK_ERR_IO,
                       "the stream ended after %" PRIu64 " of %" PRIu64 " bytes", push->n_read,
                       push->size);
    *got = push->got;
    return WICK_OK;
}

static void push_close(wick_source *source) {
    wick_push_source *const push = source->user;
    while (push->first != NULL) push_drop_first(push);
    push->is_closed = true;
    push_free_when_done(push);
}

wick_status wick_source_push_make(uint64_t size, wick_source *source, wick_push_source **push) {
    if (push != NULL) *push = NULL;
    if (source == NULL || push == NULL) return WICK_ERR_ARGUMENT;
    wk_heap heap;
    wk_heap_init(&heap, NULL);
    wick_push_source *const made = wk_alloc_zeroed(&heap, sizeof *made);
    *push = made;
    *source = (wick_source){0};
    if (made == NULL) return WICK_ERR_OUT_OF_MEMORY;
    made->heap = heap;
    made->size = size;
    *source = (wick_source){
        .user = made,
        .size = size,
        .is_sequential = true,
        .read_at = push_read_at,
        .poll = push_poll,
        .close = push_close,
    };
    return WICK_OK;
}

wick_status wick_source_push(wick_push_source *push, const void *data, size_t size) {
    if (push == NULL || (data == NULL && size > 0)) return WICK_ERR_ARGUMENT;
    if (push->is_closed) return WICK_ERR_CANCELLED;
    if (push->size != WICK_SIZE_UNKNOWN && size > push->size - push->n_pushed)
        return WICK_ERR_ARGUMENT;
    if (size == 0) return WICK_OK;
    if (size > SIZE_MAX - sizeof(push_chunk)) return WICK_ERR_OUT_OF_MEMORY;
    push_chunk *const chunk = wk_alloc(&push->heap, sizeof *chunk + size);
    if (chunk == NULL) return WICK_ERR_OUT_OF_MEMORY;
    *chunk = (push_chunk){.size = size};
    memcpy(chunk->bytes, data, size);
    if (push->first == NULL)
        push->first = chunk;
    else
        push->last->next = chunk;
    push->last = chunk;
    push->n_pushed += size;
    return WICK_OK;
}

void wick_source_push_finish(wick_push_source *push) {
    if (push == NULL) return;
    push->is_finished = true;
    push_free_when_done(push);
}
