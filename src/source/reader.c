/* source/reader.c: see reader.h. The buffer keeps the bytes that the next call may want: a stream
 * cannot go back. */
#include "source/reader.h"

#include <assert.h>
#include <string.h>

/* What is skipped in a stream is read in pieces of this size. */
enum { SKIP_SIZE = 64 << 10 };

void wk_reader_init(wk_reader *reader, wk_heap *heap, wick_source *source, bool use_map) {
    *reader = (wk_reader){
        .heap = heap,
        .source = source,
        .is_mapped = use_map && source->map != NULL && source->size != WICK_SIZE_UNKNOWN,
    };
}

void wk_reader_release(wk_reader *reader) {
    wk_free(reader->heap, reader->buffer, reader->capacity);
    reader->buffer = NULL;
    reader->capacity = 0;
}

void wk_reader_rewind(wk_reader *reader) {
    assert(!reader->is_reading && !reader->source->is_sequential);
    reader->begin = 0;
    reader->size = 0;
    reader->is_at_end = false;
}

static wick_status reserve(wk_reader *reader, size_t size, wick_error *err) {
    assert(!reader->is_reading || size <= reader->capacity); /* a read fills the buffer there */
    if (size <= reader->capacity) return WICK_OK;
    unsigned char *const grown = wk_realloc(reader->heap, reader->buffer, reader->capacity, size);
    if (grown == NULL) return wk_fail_memory(err, size, "reading a model");
    reader->buffer = grown;
    reader->capacity = size;
    return WICK_OK;
}

static void forget_before(wk_reader *reader, uint64_t offset) {
    assert(!reader->is_reading);
    const uint64_t end = reader->begin + reader->size;
    if (offset >= end) {
        reader->size = 0;
        reader->begin = reader->source->is_sequential ? end : offset;
    } else if (offset > reader->begin) {
        reader->size = (size_t)(end - offset);
        memmove(reader->buffer, reader->buffer + (offset - reader->begin), reader->size);
        reader->begin = offset;
    }
}

/* A source may give a status without a sentence. */
static wick_status refuse(wick_status status, wick_error *err) {
    return wk_fail(err, status < 0 ? status : WICK_ERR_IO, "reading the model failed");
}

/* Reads until the buffer holds size bytes or the source ends. */
static wick_status fill(wk_reader *reader, size_t size, wick_error *err) {
    assert(size <= reader->capacity);
    wick_source *const source = reader->source;
    while (reader->size < size && !reader->is_at_end) {
        if (!reader->is_reading) {
            const uint64_t end = reader->begin + reader->size;
            const wick_status started = source->read_at(source, end, size - reader->size,
                                                        reader->buffer + reader->size, err);
            if (started != WICK_OK) return refuse(started, err);
            reader->is_reading = true;
        }
        size_t got = 0;
        const wick_status status = source->poll(source, &got, err);
        if (status == WICK_PENDING) return status;
        reader->is_reading = false;
        if (status != WICK_OK) return refuse(status, err);
        const size_t wanted = size - reader->size;
        reader->is_at_end = got < wanted;
        reader->size += got < wanted ? got : wanted;
    }
    return WICK_OK;
}

/* NULL where the source has no mapping of just these bytes: they are read then. */
static const unsigned char *get_mapped(wk_reader *reader, uint64_t offset, size_t size,
                                       size_t *got) {
    const uint64_t whole = reader->source->size;
    const uint64_t left = offset < whole ? whole - offset : 0;
    *got = size < left ? size : (size_t)left;
    return *got > 0 ? reader->source->map(reader->source, offset, *got) : NULL;
}

wick_status wk_reader_get(wk_reader *reader, uint64_t offset, size_t size,
                          const unsigned char **bytes, size_t *got, wick_error *err) {
    if (reader->is_mapped) {
        *bytes = get_mapped(reader, offset, size, got);
        if (*got == 0 || *bytes != NULL) return WICK_OK;
        size = *got; /* never past the end: later bytes may be read, too */
    }
    assert(offset >= reader->begin);
    while (!reader->is_at_end) {
        if (!reader->is_reading) forget_before(reader, offset);
        if (reader->begin == offset) break;
        const uint64_t gap = offset - reader->begin;
        const size_t skip = gap < SKIP_SIZE ? (size_t)gap : SKIP_SIZE;
        WK_TRY(reserve(reader, skip, err));
        WK_TRY(fill(reader, skip, err));
    }
    if (!reader->is_at_end || reader->begin == offset) {
        WK_TRY(reserve(reader, size, err));
        WK_TRY(fill(reader, size, err));
    }
    const uint64_t passed = offset - reader->begin;
    const size_t left = passed < reader->size ? reader->size - (size_t)passed : 0;
    *got = size < left ? size : left;
    *bytes = left > 0 ? reader->buffer + (size_t)passed : reader->buffer;
    return WICK_OK;
}
