/* source/split_source.c: one source over all parts of a split model, and making it of them in
 * steps.
 *
 * The source looks like a file that was never split: a new header, then each tensor's data, read
 * from a part, at the offset that the header says. No other code knows about parts. */
#include "format/gguf_write.h"
#include "source/header.h"
#include "source/split.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

typedef struct piece {
    uint64_t begin, size; /* in the whole */
    uint64_t offset;      /* in its part */
    size_t part;
} piece;

typedef struct split_source {
    wk_heap heap;
    wick_source *parts; /* [n_parts] */
    size_t n_parts;
    wk_strbuf header;
    piece *pieces; /* [n_pieces] by begin; between them are zeros */
    size_t n_pieces;
    uint64_t size;
    /* The read under way, and what of it a part reads just now. */
    uint64_t offset;
    unsigned char *dst;
    size_t wanted, got;
    wick_source *reading; /* NULL: none */
    size_t n_reading;
} split_source;

/* The last piece that begins at offset or before; n_pieces: none does. */
static size_t find_piece(const split_source *split, uint64_t offset) {
    size_t low = 0, high = split->n_pieces;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (split->pieces[middle].begin <= offset)
            low = middle + 1;
        else
            high = middle;
    }
    return low > 0 ? low - 1 : split->n_pieces;
}

/* Copies what comes next without a change of place, or has a part read it. */
static wick_status start_run(split_source *split, wick_error *error) {
    const uint64_t offset = split->offset + split->got;
    const size_t at = find_piece(split, offset), size = split->wanted - split->got;
    const size_t next = at < split->n_pieces ? at + 1 : 0;
    const piece *const in = at < split->n_pieces ? &split->pieces[at] : NULL;
    const bool is_header = offset < split->header.size;
    const bool is_data = in != NULL && offset - in->begin < in->size;
    const uint64_t end = is_header                ? split->header.size
                         : is_data                ? in->begin + in->size
                         : next < split->n_pieces ? split->pieces[next].begin
                                                  : split->size;
    assert(end > offset);
    const size_t n = size < end - offset ? size : (size_t)(end - offset);
    unsigned char *const dst = split->dst + split->got;
    if (!is_header && is_data) {
        wick_source *const part = &split->parts[in->part];
        WK_TRY(part->read_at(part, in->offset + (offset - in->begin), n, dst, error));
        split->reading = part;
        split->n_reading = n;
        return WICK_OK;
    }
    if (is_header)
        memcpy(dst, split->header.data + (size_t)offset, n);
    else
        memset(dst, 0, n);
    split->got += n;
    return WICK_OK;
}

static wick_status split_read_at(wick_source *source, uint64_t offset, size_t size, void *dst,
                                 wick_error *error) {
    (void)error;
    split_source *const split = source->user;
    const uint64_t left = offset < split->size ? split->size - offset : 0;
    split->offset = offset;
    split->dst = dst;
    split->wanted = size < left ? size : (size_t)left;
    split->got = 0;
    split->reading = NULL;
    return WICK_OK;
}

static wick_status split_poll(wick_source *source, size_t *got, wick_error *error) {
    split_source *const split = source->user;
    while (split->got < split->wanted) {
        if (split->reading == NULL) {
            WK_TRY(start_run(split, error));
            continue;
        }
        size_t n = 0;
        WK_TRY(split->reading->poll(split->reading, &n, error));
        if (n < split->n_reading)
            return wk_fail(error, WICK_ERR_IO,
                           "a part of the model ends early: %zu bytes at %" PRIu64
                           " of the whole model are missing",
                           split->n_reading - n, split->offset + split->got + n);
        split->reading = NULL;
        split->got += n;
    }
    *got = split->got;
    return WICK_OK;
}

/* The piece that holds all of a range, else NULL. */
static const piece *piece_around(const split_source *split, uint64_t offset, uint64_t size) {
    const size_t at = find_piece(split, offset);
    if (at == split->n_pieces) return NULL;
    const piece *const in = &split->pieces[at];
    const uint64_t skipped = offset - in->begin;
    return skipped < in->size && size <= in->size - skipped ? in : NULL;
}

static const void *split_map(wick_source *source, uint64_t offset, uint64_t size) {
    split_source *const split = source->user;
    const piece *const in = piece_around(split, offset, size);
    if (in == NULL) return NULL;
    wick_source *const part = &split->parts[in->part];
    return part->map(part, in->offset + (offset - in->begin), size);
}

static void split_drop(wick_source *source, uint64_t offset, uint64_t size) {
    split_source *const split = source->user;
    const piece *const in = piece_around(split, offset, size);
    if (in == NULL) return;
    wick_source *const part = &split->parts[in->part];
    if (part->drop != NULL) part->drop(part, in->offset + (offset - in->begin), size);
}

static void split_free(split_source *split) {
    for (size_t i = 0; i < split->n_parts; i++) split->parts[i].close(&split->parts[i]);
    wk_free(&split->heap, split->parts, split->n_parts * sizeof *split->parts);
    wk_free(&split->heap, split->pieces, split->n_pieces * sizeof *split->pieces);
    wk_strbuf_release(&split->header);
    wk_heap heap = split->heap; /* split lies in it */
    wk_free(&heap, split, sizeof *split);
}

static void split_close(wick_source *source) { split_free(source->user); }

/* ---- Checking the parts, and making them one ---- */

struct wick_source_joining {
    split_source *split; /* its heap has all of this */
    const char *const *names;
    wk_gguf_parser **parsers; /* [n_parts] */
    const wk_gguf **headers;  /* [n_parts], n_read of them known */
    size_t n_read;
    wk_header header; /* of the part that comes next */
    wick_status status;
    wick_error error;
};

static bool is_same_value(const wick_value *a, const wick_value *b) {
    if (a->type != b->type) return false;
    if (a->type == WICK_VALUE_STRING)
        return wk_str_equal((wk_str){a->string.text, a->string.size},
                            (wk_str){b->string.text, b->string.size});
    return a->type == WICK_VALUE_ARRAY || a->u == b->u;
}

/* Other parts repeat values of the first, or have none. Arrays are not compared: a vocabulary says
 * less about which model it is than the names and sizes do. */
static wick_status check_values(wick_source_joining *j, size_t i) {
    const wk_gguf *const gguf = j->headers[i];
    for (size_t k = 0; k < gguf->n_values; k++) {
        const wick_value *const value = &gguf->values[k];
        const wk_str key = {value->key.text, value->key.size};
        uint32_t at;
        if (wk_split_is_key(value->key) || wk_str_is(key, WK_GGUF_ALIGNMENT_KEY) ||
            !wk_map_get(&j->headers[0]->value_index, key, &at))
            continue;
        if (!is_same_value(&j->headers[0]->values[at], value))
            return wk_fail(&j->error, WICK_ERR_FORMAT,
                           "'%s' and '%s' are parts of different models: '%s' is not the same",
                           j->names[0], j->names[i], wk_str_show(key).text);
    }
    return WICK_OK;
}

static wick_status check_numbers(wick_source_joining *j, size_t i) {
    const size_t n = j->split->n_parts;
    uint64_t no, count, n_tensors, n_first = 0;
    if (!wk_split_number(j->headers[i], WK_SPLIT_COUNT, &count) ||
        !wk_split_number(j->headers[i], WK_SPLIT_NO, &no) ||
        !wk_split_number(j->headers[i], WK_SPLIT_TENSORS, &n_tensors))
        return wk_fail(&j->error, WICK_ERR_FORMAT,
                       "'%s' is not part of a split model: it has no numbers '" WK_SPLIT_NO
                       "', '" WK_SPLIT_COUNT "' and '" WK_SPLIT_TENSORS "'",
                       j->names[i]);
    if (count != n)
        return wk_fail(&j->error, WICK_ERR_FORMAT,
                       "'%s' is of a model of %" PRIu64 " parts, but there are %zu", j->names[i],
                       count, n);
    if (no != i)
        return wk_fail(&j->error, WICK_ERR_FORMAT,
                       "'%s' stands where part %zu belongs, but it is part %" PRIu64, j->names[i],
                       i + 1, no < UINT64_MAX ? no + 1 : no);
    (void)wk_split_number(j->headers[0], WK_SPLIT_TENSORS, &n_first);
    if (n_tensors != n_first)
        return wk_fail(&j->error, WICK_ERR_FORMAT,
                       "'%s' and '%s' are parts of different models: one of %" PRIu64
                       " tensors, one of %" PRIu64,
                       j->names[0], j->names[i], n_first, n_tensors);
    return WICK_OK;
}

static wick_status check_tensors(wick_source_joining *j, size_t i) {
    const wk_gguf *const gguf = j->headers[i];
    for (size_t k = 0; k < gguf->n_tensors; k++) {
        const wick_string name = gguf->tensors[k].name;
        const wk_str key = {name.text, name.size};
        uint32_t at;
        for (size_t earlier = 0; earlier < i; earlier++) {
            if (wk_map_get(&j->headers[earlier]->tensor_index, key, &at))
                return wk_fail(&j->error, WICK_ERR_FORMAT,
                               "'%s' and '%s' both have the tensor '%s'", j->names[earlier],
                               j->names[i], wk_str_show(key).text);
        }
    }
    return WICK_OK;
}

static wick_status fail_memory(wick_source_joining *j, size_t size) {
    return wk_fail_memory(&j->error, size, "the parts of a model");
}

/* Where the header that was written says that the data of each part's tensors lie. */
static wick_status place_pieces(wick_source_joining *j, const wk_gguf *whole) {
    split_source *const split = j->split;
    split->size = whole->data_offset;
    if (whole->n_tensors == 0) return WICK_OK;
    split->pieces = wk_alloc_array(&split->heap, whole->n_tensors, sizeof *split->pieces);
    if (split->pieces == NULL) return fail_memory(j, whole->n_tensors * sizeof *split->pieces);
    for (size_t i = 0; i < split->n_parts; i++) {
        for (size_t k = 0; k < j->headers[i]->n_tensors; k++) {
            assert(split->n_pieces < whole->n_tensors);
            const wick_file_tensor *const placed = &whole->tensors[split->n_pieces];
            split->pieces[split->n_pieces++] = (piece){
                .begin = placed->offset,
                .size = placed->size,
                .offset = j->headers[i]->tensors[k].offset,
                .part = i,
            };
            split->size = placed->offset + wk_gguf_padded(placed->size, whole->alignment);
        }
    }
    return WICK_OK;
}

/* All values of the first part but those of splitting, and all tensors. */
static void collect(wick_source_joining *j, wick_value *values, size_t *n_values,
                    wick_file_tensor *tensors) {
    const wk_gguf *const first = j->headers[0];
    *n_values = 0;
    for (size_t i = 0; i < first->n_values; i++) {
        if (!wk_split_is_key(first->values[i].key)) values[(*n_values)++] = first->values[i];
    }
    size_t n_tensors = 0;
    for (size_t i = 0; i < j->split->n_parts; i++) {
        const wk_gguf *const part = j->headers[i];
        for (size_t k = 0; k < part->n_tensors; k++) tensors[n_tensors++] = part->tensors[k];
    }
}

static wick_status write_whole(wick_source_joining *j, wick_value *values,
                               wick_file_tensor *tensors, size_t n_tensors) {
    size_t n_values;
    collect(j, values, &n_values, tensors);
    const wk_gguf_contents contents = {values, n_values, tensors, n_tensors};
    wk_gguf_parser *parser;
    WK_TRY(wk_gguf_write_header(&j->split->header, &contents, &parser, &j->error));
    const wick_status status = place_pieces(j, wk_gguf_parser_result(parser));
    wk_gguf_parser_free(parser);
    return status;
}

static wick_status make_whole(wick_source_joining *j) {
    wk_heap *const heap = &j->split->heap;
    const size_t n_parts = j->split->n_parts, n_values = j->headers[0]->n_values;
    size_t n_tensors = 0;
    for (size_t i = 0; i < n_parts; i++) n_tensors += j->headers[i]->n_tensors;
    uint64_t announced = 0;
    (void)wk_split_number(j->headers[0], WK_SPLIT_TENSORS, &announced);
    if (announced != n_tensors)
        return wk_fail(&j->error, WICK_ERR_FORMAT,
                       "the parts have %zu tensors, but the model '%s' begins has %" PRIu64,
                       n_tensors, j->names[0], announced);
    wick_value *const values = wk_alloc_array(heap, n_values, sizeof *values);
    wick_file_tensor *const tensors = wk_alloc_array(heap, n_tensors, sizeof *tensors);
    wick_status status;
    if (values == NULL || (tensors == NULL && n_tensors > 0))
        status = fail_memory(j, n_values * sizeof *values + n_tensors * sizeof *tensors);
    else
        status = write_whole(j, values, tensors, n_tensors);
    wk_free(heap, values, n_values * sizeof *values);
    wk_free(heap, tensors, n_tensors * sizeof *tensors);
    return status;
}

static wick_status fail_header(wick_source_joining *j, const wick_error *reason) {
    return wk_fail_in_file(&j->error, j->names[j->n_read], reason);
}

/* WICK_OK: that was the last one, and the whole is made. */
static wick_status read_next(wick_source_joining *j) {
    const size_t i = j->n_read;
    wick_error error = {0};
    wick_status status = WICK_OK;
    if (j->header.parser == NULL)
        status = wk_header_start(&j->split->heap, &j->split->parts[i], &j->header, &error);
    if (status == WICK_OK) status = wk_header_poll(&j->header, &error);
    if (status == WICK_PENDING) return WICK_PENDING;
    if (status != WICK_OK) return fail_header(j, &error);
    j->parsers[i] = j->header.parser;
    j->headers[i] = wk_gguf_parser_result(j->parsers[i]);
    j->header.parser = NULL;
    wk_header_release(&j->header);
    WK_TRY(check_numbers(j, i));
    WK_TRY(check_values(j, i));
    WK_TRY(check_tensors(j, i));
    j->n_read++;
    return j->n_read < j->split->n_parts ? WICK_PENDING : make_whole(j);
}

static void free_joining(wick_source_joining *j) {
    wk_heap *const heap = &j->split->heap;
    const size_t n = j->split->n_parts;
    wk_header_release(&j->header);
    for (size_t i = 0; j->parsers != NULL && i < n; i++) wk_gguf_parser_free(j->parsers[i]);
    wk_free(heap, j->parsers, n * sizeof *j->parsers);
    wk_free(heap, j->headers, n * sizeof *j->headers);
    wk_free(heap, j, sizeof *j);
}

static void close_parts(const wick_source *parts, size_t n) {
    for (size_t i = 0; i < n; i++) {
        wick_source part = parts[i];
        if (part.close != NULL) part.close(&part);
    }
}

/* The source that owns the parts; NULL: they are closed and memory is short. */
static split_source *make(const wick_allocator *hook, const wick_source *parts, size_t n) {
    wk_heap heap;
    wk_heap_init(&heap, hook);
    split_source *const split = wk_alloc_zeroed(&heap, sizeof *split);
    wick_source *const own = wk_alloc_array(&heap, n, sizeof *own);
    if (split == NULL || own == NULL) {
        close_parts(parts, n);
        wk_free(&heap, split, sizeof *split);
        wk_free(&heap, own, n * sizeof *own);
        return NULL;
    }
    memcpy(own, parts, n * sizeof *own);
    *split = (split_source){.heap = heap, .parts = own, .n_parts = n};
    wk_strbuf_init(&split->header, &split->heap);
    return split;
}

static wick_status start(const wick_allocator *hook, const wick_source *parts,
                         const char *const *names, size_t n, wick_source_joining **out,
                         wick_error *err) {
    const size_t size = n * (sizeof *parts + sizeof(wk_gguf_parser *) + sizeof(wk_gguf *));
    split_source *const split = make(hook, parts, n);
    if (split == NULL) return wk_fail_memory(err, size, "the parts of a model");
    wk_heap *const heap = &split->heap;
    wick_source_joining *const j = wk_alloc_zeroed(heap, sizeof *j);
    if (j != NULL) {
        *j = (wick_source_joining){
            .split = split, .names = names, .header = {.heap = heap}, .status = WICK_PENDING};
        j->parsers = wk_alloc_array(heap, n, sizeof *j->parsers);
        j->headers = wk_alloc_array(heap, n, sizeof *j->headers);
        *out = j;
        if (j->parsers != NULL && j->headers != NULL) return WICK_OK;
        free_joining(j);
    }
    split_free(split);
    return wk_fail_memory(err, size, "the parts of a model");
}

wick_status wick_source_join_start(const wick_source *parts, const char *const *names, size_t n,
                                   wick_source_joining **joining, wick_error *error) {
    bool is_complete = joining != NULL && names != NULL && parts != NULL && n > 0;
    bool is_sequential = false;
    for (size_t i = 0; is_complete && i < n; i++) {
        is_complete = parts[i].read_at != NULL && parts[i].poll != NULL && parts[i].close != NULL &&
                      names[i] != NULL;
        is_sequential = is_sequential || parts[i].is_sequential;
    }
    if (joining != NULL) *joining = NULL;
    if (is_complete && !is_sequential) return start(NULL, parts, names, n, joining, error);
    if (parts != NULL) close_parts(parts, n);
    if (!is_complete)
        return wk_fail(error, WICK_ERR_ARGUMENT,
                       "wick_source_join_start: an argument is NULL, there is no part, or one is "
                       "incomplete");
    return wk_fail(error, WICK_ERR_UNSUPPORTED,
                   "the parts of a split model are read more than once, which streams cannot be");
}

wick_status wick_source_join_poll(wick_source_joining *joining) {
    if (joining == NULL) return WICK_ERR_ARGUMENT;
    if (joining->status == WICK_PENDING) joining->status = read_next(joining);
    return joining->status;
}

static wick_source source_of(split_source *split) {
    bool is_mapped = true;
    for (size_t i = 0; i < split->n_parts; i++)
        is_mapped = is_mapped && split->parts[i].map != NULL;
    return (wick_source){
        .user = split,
        .size = split->size,
        .read_at = split_read_at,
        .poll = split_poll,
        .map = is_mapped ? split_map : NULL,
        .drop = is_mapped ? split_drop : NULL,
        .close = split_close,
    };
}

wick_status wick_source_join_finish(wick_source_joining *joining, wick_source *source,
                                    wick_error *error) {
    if (source != NULL) *source = (wick_source){0};
    if (joining == NULL)
        return wk_fail(error, WICK_ERR_ARGUMENT, "wick_source_join_finish: joining is NULL");
    wick_status status = joining->status;
    if (status == WICK_PENDING)
        status = wk_fail(error, WICK_ERR_CANCELLED, "the parts were not joined: it was given up");
    else if (status == WICK_OK && source == NULL)
        status = wk_fail(error, WICK_ERR_ARGUMENT, "wick_source_join_finish: source is NULL");
    else if (status != WICK_OK && error != NULL && error->status == WICK_OK)
        *error = joining->error;
    split_source *const split = joining->split;
    free_joining(joining);
    if (status == WICK_OK)
        *source = source_of(split);
    else
        split_free(split);
    return status;
}

wick_status wk_split_join(const wick_allocator *hook, const wick_source *parts,
                          const char *const *names, size_t n, wick_source *out, wick_error *err) {
    assert(n > 0);
    wick_source_joining *j;
    WK_TRY(start(hook, parts, names, n, &j, err));
    while (wick_source_join_poll(j) == WICK_PENDING) continue;
    return wick_source_join_finish(j, out, err);
}
