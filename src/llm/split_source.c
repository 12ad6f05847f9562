/* llm/split_source.c: one source over all parts of a split model.
 *
 * It looks like a file that was never split: a header written anew, then each tensor's data where
 * that header says, which are bytes of a part. So nobody else knows of parts. */
#include "format/gguf_write.h"
#include "llm/llm.h"
#include "llm/split.h"

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
    size_t got;
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

static wick_status read_part(wick_source *part, uint64_t offset, size_t size, void *dst,
                             wick_error *error) {
    WK_TRY(part->read_at(part, offset, size, dst, error));
    size_t got = 0;
    wick_status status;
    do {
        status = part->poll(part, &got, error);
    } while (status == WICK_PENDING);
    if (status == WICK_OK && got < size)
        return wk_fail(error, WICK_ERR_IO, "a part of the model ends at byte %" PRIu64,
                       offset + got);
    return status;
}

/* Copies what follows offset without a change of place, at most size bytes; *n of them. */
static wick_status read_run(split_source *split, uint64_t offset, size_t size, void *dst, size_t *n,
                            wick_error *error) {
    const size_t at = find_piece(split, offset);
    const size_t next = at < split->n_pieces ? at + 1 : 0;
    const piece *const in = at < split->n_pieces ? &split->pieces[at] : NULL;
    const bool is_header = offset < split->header.size;
    const bool is_data = in != NULL && offset - in->begin < in->size;
    const uint64_t end = is_header                ? split->header.size
                         : is_data                ? in->begin + in->size
                         : next < split->n_pieces ? split->pieces[next].begin
                                                  : split->size;
    *n = size < end - offset ? size : (size_t)(end - offset);
    if (is_header)
        memcpy(dst, split->header.data + (size_t)offset, *n);
    else if (is_data)
        return read_part(&split->parts[in->part], in->offset + (offset - in->begin), *n, dst,
                         error);
    else
        memset(dst, 0, *n);
    return WICK_OK;
}

static wick_status split_read_at(wick_source *source, uint64_t offset, size_t size, void *dst,
                                 wick_error *error) {
    split_source *const split = source->user;
    const uint64_t left = offset < split->size ? split->size - offset : 0;
    const size_t wanted = size < left ? size : (size_t)left;
    split->got = 0;
    while (split->got < wanted) {
        size_t n = 0;
        WK_TRY(read_run(split, offset + split->got, wanted - split->got,
                        (unsigned char *)dst + split->got, &n, error));
        split->got += n;
    }
    return WICK_OK;
}

static wick_status split_poll(wick_source *source, size_t *got, wick_error *error) {
    (void)error;
    *got = ((const split_source *)source->user)->got;
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

typedef struct joining {
    split_source *split;
    const char *const *names;
    wk_gguf_parser **parsers; /* [n_parts] */
    const wk_gguf **headers;  /* [n_parts] */
    wick_error *err;
} joining;

static bool is_same_value(const wick_value *a, const wick_value *b) {
    if (a->type != b->type) return false;
    if (a->type == WICK_VALUE_STRING)
        return wk_str_equal((wk_str){a->string.text, a->string.size},
                            (wk_str){b->string.text, b->string.size});
    return a->type == WICK_VALUE_ARRAY || a->u == b->u;
}

/* Other parts repeat values of the first, or have none. Arrays are not compared: a vocabulary says
 * less about which model it is than the names and sizes do. */
static wick_status check_values(const joining *j, size_t i) {
    const wk_gguf *const gguf = j->headers[i];
    for (size_t k = 0; k < gguf->n_values; k++) {
        const wick_value *const value = &gguf->values[k];
        const wk_str key = {value->key.text, value->key.size};
        uint32_t at;
        if (wk_split_is_key(value->key) || wk_str_is(key, WK_GGUF_ALIGNMENT_KEY) ||
            !wk_map_get(&j->headers[0]->value_index, key, &at))
            continue;
        if (!is_same_value(&j->headers[0]->values[at], value))
            return wk_fail(j->err, WICK_ERR_FORMAT,
                           "'%s' and '%s' are parts of different models: '%s' is not the same",
                           j->names[0], j->names[i], wk_str_show(key).text);
    }
    return WICK_OK;
}

static wick_status check_numbers(const joining *j, size_t i) {
    const size_t n = j->split->n_parts;
    uint64_t no, count, n_tensors, n_first = 0;
    if (!wk_split_number(j->headers[i], WK_SPLIT_COUNT, &count) ||
        !wk_split_number(j->headers[i], WK_SPLIT_NO, &no) ||
        !wk_split_number(j->headers[i], WK_SPLIT_TENSORS, &n_tensors))
        return wk_fail(j->err, WICK_ERR_FORMAT,
                       "'%s' is no part of a split model: it has no numbers '" WK_SPLIT_NO
                       "', '" WK_SPLIT_COUNT "' and '" WK_SPLIT_TENSORS "'",
                       j->names[i]);
    if (count != n)
        return wk_fail(j->err, WICK_ERR_FORMAT,
                       "'%s' is of a model of %" PRIu64 " parts, but there are %zu", j->names[i],
                       count, n);
    if (no != i)
        return wk_fail(j->err, WICK_ERR_FORMAT,
                       "'%s' stands where part %zu belongs, but it is part %" PRIu64, j->names[i],
                       i + 1, no < UINT64_MAX ? no + 1 : no);
    (void)wk_split_number(j->headers[0], WK_SPLIT_TENSORS, &n_first);
    if (n_tensors != n_first)
        return wk_fail(j->err, WICK_ERR_FORMAT,
                       "'%s' and '%s' are parts of different models: one of %" PRIu64
                       " tensors, one of %" PRIu64,
                       j->names[0], j->names[i], n_first, n_tensors);
    return WICK_OK;
}

static wick_status check_tensors(const joining *j, size_t i) {
    const wk_gguf *const gguf = j->headers[i];
    for (size_t k = 0; k < gguf->n_tensors; k++) {
        const wick_string name = gguf->tensors[k].name;
        const wk_str key = {name.text, name.size};
        uint32_t at;
        for (size_t earlier = 0; earlier < i; earlier++) {
            if (wk_map_get(&j->headers[earlier]->tensor_index, key, &at))
                return wk_fail(j->err, WICK_ERR_FORMAT, "'%s' and '%s' both have the tensor '%s'",
                               j->names[earlier], j->names[i], wk_str_show(key).text);
        }
    }
    return WICK_OK;
}

static wick_status read_parts(joining *j) {
    for (size_t i = 0; i < j->split->n_parts; i++) {
        wick_error error = {0};
        if (wk_read_header(&j->split->heap, &j->split->parts[i], &j->parsers[i], &error) !=
            WICK_OK) {
            if (error.status == WICK_ERR_OUT_OF_MEMORY)
                return wk_fail_memory(j->err, error.bytes_requested, 0, j->names[i]);
            return wk_fail(j->err, error.status, "'%s': %s", j->names[i], error.message);
        }
        j->headers[i] = wk_gguf_parser_result(j->parsers[i]);
        WK_TRY(check_numbers(j, i));
        WK_TRY(check_values(j, i));
        WK_TRY(check_tensors(j, i));
    }
    return WICK_OK;
}

static wick_status fail_memory(const joining *j, size_t size) {
    return wk_fail_memory(j->err, size, 0, "the parts of a model");
}

/* Where the header that was written says that the data of each part's tensors lie. */
static wick_status place_pieces(const joining *j, const wk_gguf *whole) {
    split_source *const split = j->split;
    split->size = whole->data_offset;
    if (whole->n_tensors == 0) return WICK_OK;
    split->pieces = wk_alloc_array(&split->heap, whole->n_tensors, sizeof *split->pieces);
    if (split->pieces == NULL) return fail_memory(j, whole->n_tensors * sizeof *split->pieces);
    for (size_t i = 0; i < split->n_parts; i++) {
        for (size_t k = 0; k < j->headers[i]->n_tensors; k++) {
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
static void collect(const joining *j, wick_value *values, size_t *n_values,
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

static wick_status write_whole(const joining *j, wick_value *values, wick_file_tensor *tensors,
                               size_t n_tensors) {
    size_t n_values;
    collect(j, values, &n_values, tensors);
    const wk_gguf_contents contents = {values, n_values, tensors, n_tensors};
    wk_gguf_parser *parser;
    WK_TRY(wk_gguf_write_header(&j->split->header, &contents, &parser, j->err));
    const wick_status status = place_pieces(j, wk_gguf_parser_result(parser));
    wk_gguf_parser_free(parser);
    return status;
}

static wick_status make_whole(joining *j) {
    wk_heap *const heap = &j->split->heap;
    const size_t n_parts = j->split->n_parts, n_values = j->headers[0]->n_values;
    size_t n_tensors = 0;
    for (size_t i = 0; i < n_parts; i++) n_tensors += j->headers[i]->n_tensors;
    uint64_t announced = 0;
    (void)wk_split_number(j->headers[0], WK_SPLIT_TENSORS, &announced);
    if (announced != n_tensors)
        return wk_fail(j->err, WICK_ERR_FORMAT,
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

static wick_status join(split_source *split, const char *const *names, wick_error *err) {
    wk_heap *const heap = &split->heap;
    const size_t n = split->n_parts;
    joining j = {.split = split, .names = names, .err = err};
    j.parsers = wk_alloc_array(heap, n, sizeof *j.parsers);
    j.headers = wk_alloc_array(heap, n, sizeof *j.headers);
    wick_status status = WICK_OK;
    if (j.parsers == NULL || j.headers == NULL) status = fail_memory(&j, 2 * n * sizeof *j.parsers);
    if (status == WICK_OK) status = read_parts(&j);
    if (status == WICK_OK) status = make_whole(&j);
    for (size_t i = 0; j.parsers != NULL && i < n; i++) wk_gguf_parser_free(j.parsers[i]);
    wk_free(heap, j.parsers, n * sizeof *j.parsers);
    wk_free(heap, j.headers, n * sizeof *j.headers);
    return status;
}

/* The source that owns the parts; NULL: they are closed and memory is short. */
static split_source *make(const wick_allocator *hook, wick_source *parts, size_t n) {
    wk_heap heap;
    wk_heap_init(&heap, hook);
    split_source *const split = wk_alloc_zeroed(&heap, sizeof *split);
    wick_source *const own = wk_alloc_array(&heap, n, sizeof *own);
    if (split == NULL || own == NULL) {
        for (size_t i = 0; i < n; i++) parts[i].close(&parts[i]);
        wk_free(&heap, split, sizeof *split);
        wk_free(&heap, own, n * sizeof *own);
        return NULL;
    }
    memcpy(own, parts, n * sizeof *own);
    *split = (split_source){.heap = heap, .parts = own, .n_parts = n};
    wk_strbuf_init(&split->header, &split->heap);
    return split;
}

wick_status wk_split_join(const wick_allocator *hook, wick_source *parts, const char *const *names,
                          size_t n, wick_source *out, wick_error *err) {
    assert(n > 0);
    split_source *const split = make(hook, parts, n);
    if (split == NULL)
        return wk_fail_memory(err, sizeof *split + n * sizeof *parts, 0, "the parts of a model");
    const wick_status status = join(split, names, err);
    if (status != WICK_OK) {
        split_free(split);
        return status;
    }
    bool is_mapped = true;
    for (size_t i = 0; i < n; i++) is_mapped = is_mapped && split->parts[i].map != NULL;
    *out = (wick_source){
        .user = split,
        .size = split->size,
        .read_at = split_read_at,
        .poll = split_poll,
        .map = is_mapped ? split_map : NULL,
        .drop = is_mapped ? split_drop : NULL,
        .close = split_close,
    };
    return WICK_OK;
}
