/* source/file_writer.c: writes GGUF files for the public API, whole or split into parts.
 *
 * All headers are written when it starts, since what is in them is known then; the data follows in
 * pieces. Every part keeps its temporary name until the last byte of the last one is there. */
#include <wick/file.h>

#include "format/gguf_parse.h"
#include "format/gguf_write.h"
#include "source/file.h"
#include "source/split.h"
#include "sys/file.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

typedef struct part {
    wk_file_writer *file;
    wk_gguf_parser *header;
} part;

struct wick_file_writer {
    wk_heap heap;
    part *parts; /* [n_parts] */
    size_t n_parts;
    size_t at;     /* the part that is being written */
    size_t tensor; /* of that part: the one that is being written */
    uint64_t done; /* bytes of it */
};

/* What is known before there is a writer. */
typedef struct plan {
    wk_heap *heap;
    const wick_file_desc *desc;
    wick_value *values;  /* [n_values]: the caller's, and room for the keys of splitting */
    size_t n_values;     /* the caller's */
    size_t values_size;  /* bytes */
    size_t alignment_at; /* its place in values; n_values: there is none */
    size_t *begins;      /* [n_parts + 1]: the first tensor of each part */
    size_t n_parts;
    bool is_split;
    wick_error *err;
} plan;

enum { N_SPLIT_KEYS = 3 };

static wick_status fail_memory(const plan *p, size_t size) {
    return wk_fail_memory(p->err, size, "a GGUF file to write");
}

static wick_string text_of(const char *text) { return (wick_string){text, strlen(text)}; }

/* ---- What goes where ---- */

static void add_split_keys(wick_value *values, const plan *p, size_t i) {
    values[0] = (wick_value){.key = text_of(WK_SPLIT_NO), .type = WICK_VALUE_U16, .u = i};
    values[1] =
        (wick_value){.key = text_of(WK_SPLIT_COUNT), .type = WICK_VALUE_U16, .u = p->n_parts};
    values[2] = (wick_value){
        .key = text_of(WK_SPLIT_TENSORS), .type = WICK_VALUE_I32, .i = (int64_t)p->desc->n_tensors};
}

/* The header of part i with its tensors [begin, end). *out and buf are for the caller to free. */
static wick_status make_header(const plan *p, size_t i, size_t begin, size_t end, wk_strbuf *buf,
                               wk_gguf_parser **out) {
    const wick_value *values = p->values;
    size_t n_values = p->n_values;
    wick_value later[N_SPLIT_KEYS + 1];
    if (i > 0) {
        const bool is_aligned = p->alignment_at < p->n_values;
        if (is_aligned) later[0] = p->values[p->alignment_at];
        n_values = is_aligned ? 1 : 0;
        values = later;
    }
    if (p->is_split) {
        add_split_keys(i > 0 ? later + n_values : p->values + n_values, p, i);
        n_values += N_SPLIT_KEYS;
    }
    assert(begin <= end && end <= p->desc->n_tensors);
    const wick_file_tensor *const tensors = end > begin ? p->desc->tensors + begin : NULL;
    const wk_gguf_contents contents = {values, n_values, tensors, end - begin};
    return wk_gguf_write_header(buf, &contents, out, p->err);
}

/* Bytes of part i without tensors, at most. */
static wick_status measure_empty(const plan *p, size_t i, uint64_t *bytes) {
    wk_strbuf buf;
    wk_strbuf_init(&buf, p->heap);
    wk_gguf_parser *header;
    const wick_status status = make_header(p, i, 0, 0, &buf, &header);
    if (status == WICK_OK) *bytes = buf.size + wk_gguf_parser_result(header)->alignment;
    wk_gguf_parser_free(header);
    wk_strbuf_release(&buf);
    return status;
}

/* Fills begins and n_parts. whole: every tensor in one part, with its place and size. */
static wick_status plan_parts(plan *p, const wk_gguf *whole) {
    const wick_file_desc *const desc = p->desc;
    p->begins = wk_alloc_array(p->heap, desc->n_tensors + 2, sizeof *p->begins);
    if (p->begins == NULL) return fail_memory(p, (desc->n_tensors + 2) * sizeof *p->begins);
    uint64_t first = 0, later = 0;
    if (desc->part_bytes > 0) {
        WK_TRY(measure_empty(p, 0, &first));
        WK_TRY(measure_empty(p, 1, &later));
    }
    p->n_parts = 1;
    uint64_t bytes = first;
    size_t n = 0; /* tensors of the newest part */
    for (size_t i = 0; i < desc->n_tensors; i++) {
        const uint64_t needed = wk_gguf_description_bytes(&desc->tensors[i]) +
                                wk_gguf_padded(whole->tensors[i].size, whole->alignment);
        const bool is_full = (desc->part_tensors > 0 && n == desc->part_tensors) ||
                             (desc->part_bytes > 0 && bytes + needed > desc->part_bytes);
        if (is_full && n > 0) {
            p->begins[p->n_parts++] = i;
            bytes = later;
            n = 0;
        }
        bytes += needed;
        n++;
    }
    p->begins[p->n_parts] = desc->n_tensors;
    if (p->n_parts <= WK_SPLIT_MAX_PARTS) return WICK_OK;
    return wk_fail(p->err, WICK_ERR_VALUE, "%zu parts are more than the %d that a model can have",
                   p->n_parts, WK_SPLIT_MAX_PARTS);
}

/* The whole file is described first: what is wrong with it is found in one place. */
static wick_status plan_split(plan *p) {
    wk_strbuf buf;
    wk_strbuf_init(&buf, p->heap);
    wk_gguf_parser *whole = NULL;
    const wk_gguf_contents contents = {p->values, p->n_values, p->desc->tensors,
                                       p->desc->n_tensors};
    wick_status status = wk_gguf_write_header(&buf, &contents, &whole, p->err);
    wk_strbuf_release(&buf);
    if (status == WICK_OK) status = plan_parts(p, wk_gguf_parser_result(whole));
    wk_gguf_parser_free(whole);
    return status;
}

static wick_status collect_values(plan *p) {
    const wick_file_desc *const desc = p->desc;
    const size_t n = desc->n_values + N_SPLIT_KEYS;
    p->values = wk_alloc_array(p->heap, n, sizeof *p->values);
    if (p->values == NULL) return fail_memory(p, n * sizeof *p->values);
    p->values_size = n * sizeof *p->values;
    for (size_t i = 0; i < desc->n_values; i++) {
        if (!wk_split_is_key(desc->values[i].key)) p->values[p->n_values++] = desc->values[i];
    }
    for (p->alignment_at = 0; p->alignment_at < p->n_values; p->alignment_at++) {
        const wick_string key = p->values[p->alignment_at].key;
        if (wk_str_is((wk_str){key.text, key.size}, WK_GGUF_ALIGNMENT_KEY)) break;
    }
    return WICK_OK;
}

/* ---- Making the writer ---- */

static wick_status pad(wk_file_writer *file, uint64_t from, uint64_t to, wick_error *error) {
    assert(from <= to);
    static const unsigned char zeros[4096];
    while (from < to) {
        const size_t n = to - from < sizeof zeros ? (size_t)(to - from) : sizeof zeros;
        WK_TRY(wk_file_write(file, zeros, n, error));
        from += n;
    }
    return WICK_OK;
}

wick_status wk_file_check_new(const char *path, bool replace, wick_error *err) {
    if (replace || !wk_file_exists(path)) return WICK_OK;
    return wk_fail(err, WICK_ERR_STATE, "'%s' is there already", path);
}

/* path is that of the whole, "NAME.gguf". */
static wick_status open_part(wick_file_writer *writer, const plan *p, const char *path, size_t i) {
    part *const made = &writer->parts[i];
    wk_strbuf header, name;
    wk_strbuf_init(&header, &writer->heap);
    wk_strbuf_init(&name, &writer->heap);
    wk_str stem = wk_str_of(path);
    if (stem.size > 5 && strcmp(path + stem.size - 5, ".gguf") == 0) stem.size -= 5;
    if (p->is_split)
        wk_split_name(&name, stem, (uint32_t)i + 1, (uint32_t)p->n_parts);
    else
        wk_strbuf_text(&name, path);
    wick_status status = name.failed
                             ? fail_memory(p, name.size)
                             : wk_file_check_unread(&writer->heap, name.data, p->desc->reads,
                                                    p->desc->n_reads, p->err);
    if (status == WICK_OK) status = wk_file_check_new(name.data, p->desc->replace, p->err);
    if (status == WICK_OK)
        status = make_header(p, i, p->begins[i], p->begins[i + 1], &header, &made->header);
    if (status == WICK_OK)
        status = wk_file_write_start(&writer->heap, name.data, &made->file, p->err);
    if (status == WICK_OK) status = wk_file_write(made->file, header.data, header.size, p->err);
    /* Nothing follows where there are no tensors. */
    if (status == WICK_OK && p->begins[i] < p->begins[i + 1])
        status =
            pad(made->file, header.size, wk_gguf_parser_result(made->header)->data_offset, p->err);
    wk_strbuf_release(&header);
    wk_strbuf_release(&name);
    return status;
}

static const wk_gguf *current_header(const wick_file_writer *writer) {
    assert(writer->at < writer->n_parts);
    return wk_gguf_parser_result(writer->parts[writer->at].header);
}

/* Moves on to the next tensor that lacks bytes; with none, at is n_parts. */
static wick_status settle(wick_file_writer *writer, wick_error *error) {
    while (writer->at < writer->n_parts) {
        const wk_gguf *const header = current_header(writer);
        if (writer->tensor == header->n_tensors) {
            writer->at++;
            writer->tensor = 0;
            continue;
        }
        const uint64_t size = header->tensors[writer->tensor].size;
        if (writer->done < size) break;
        WK_TRY(pad(writer->parts[writer->at].file, size, wk_gguf_padded(size, header->alignment),
                   error));
        writer->tensor++;
        writer->done = 0;
    }
    return WICK_OK;
}

static void free_writer(wick_file_writer *writer) {
    for (size_t i = 0; i < writer->n_parts; i++) {
        if (writer->parts[i].file != NULL)
            (void)wk_file_write_finish(&writer->heap, writer->parts[i].file, false, NULL);
        wk_gguf_parser_free(writer->parts[i].header);
    }
    wk_free(&writer->heap, writer->parts, writer->n_parts * sizeof *writer->parts);
    wk_heap heap = writer->heap; /* the writer lies in it */
    wk_free(&heap, writer, sizeof *writer);
}

static wick_status open_parts(wick_file_writer *writer, const plan *p, const char *path) {
    writer->parts = wk_alloc_array(&writer->heap, p->n_parts, sizeof *writer->parts);
    if (writer->parts == NULL) return fail_memory(p, p->n_parts * sizeof *writer->parts);
    writer->n_parts = p->n_parts;
    for (size_t i = 0; i < p->n_parts; i++) WK_TRY(open_part(writer, p, path, i));
    return settle(writer, p->err);
}

static wick_status start(wick_file_writer *writer, const char *path, const wick_file_desc *desc,
                         wick_error *error) {
    plan p = {.heap = &writer->heap,
              .desc = desc,
              .is_split = desc->part_bytes > 0 || desc->part_tensors > 0,
              .err = error};
    wick_status status = collect_values(&p);
    if (status == WICK_OK) status = plan_split(&p);
    if (status == WICK_OK) status = open_parts(writer, &p, path);
    wk_free(p.heap, p.values, p.values_size);
    if (p.begins != NULL) wk_free(p.heap, p.begins, (desc->n_tensors + 2) * sizeof *p.begins);
    return status;
}

/* ---- The interface ---- */

static bool is_text(wick_string text) { return text.text != NULL || text.size == 0; }

static bool has_texts(const wick_value *value) {
    if (!is_text(value->key)) return false;
    if (value->type == WICK_VALUE_STRING) return is_text(value->string);
    const wick_string *const texts = value->array.values;
    if (value->type != WICK_VALUE_ARRAY || value->array.element_type != WICK_VALUE_STRING ||
        texts == NULL)
        return true;
    for (uint64_t i = 0; i < value->array.count; i++) {
        if (!is_text(texts[i])) return false;
    }
    return true;
}

static bool is_complete(const wick_file_desc *desc) {
    if ((desc->values == NULL && desc->n_values > 0) ||
        (desc->tensors == NULL && desc->n_tensors > 0) ||
        (desc->reads == NULL && desc->n_reads > 0))
        return false;
    for (size_t i = 0; i < desc->n_values; i++) {
        if (!has_texts(&desc->values[i])) return false;
    }
    for (size_t i = 0; i < desc->n_tensors; i++) {
        if (!is_text(desc->tensors[i].name)) return false;
    }
    return true;
}

wick_status wick_file_write_start(const char *path, const wick_file_desc *desc,
                                  wick_file_writer **writer, wick_error *error) {
    if (writer == NULL)
        return wk_fail(error, WICK_ERR_ARGUMENT, "wick_file_write_start: writer is NULL");
    *writer = NULL;
    if (path == NULL || desc == NULL || !is_complete(desc))
        return wk_fail(error, WICK_ERR_ARGUMENT,
                       "wick_file_write_start: an argument is NULL, or something in desc");
    wk_heap heap;
    wk_heap_init(&heap, NULL);
    wick_file_writer *const made = wk_alloc_zeroed(&heap, sizeof *made);
    if (made == NULL) return wk_fail_memory(error, sizeof *made, "a writer of GGUF files");
    made->heap = heap;
    const wick_status status = start(made, path, desc, error);
    if (status != WICK_OK) {
        free_writer(made);
        return status;
    }
    *writer = made;
    return WICK_OK;
}

size_t wick_file_writer_count(const wick_file_writer *writer) {
    return writer != NULL ? writer->n_parts : 0;
}

wick_status wick_file_write(wick_file_writer *writer, const void *data, size_t size,
                            wick_error *error) {
    if (writer == NULL || (data == NULL && size > 0))
        return wk_fail(error, WICK_ERR_ARGUMENT, "wick_file_write: an argument is NULL");
    const unsigned char *at = data;
    while (size > 0) {
        if (writer->at == writer->n_parts)
            return wk_fail(error, WICK_ERR_ARGUMENT,
                           "wick_file_write: the tensors are complete, %zu bytes are too many",
                           size);
        const uint64_t left = current_header(writer)->tensors[writer->tensor].size - writer->done;
        const size_t n = size < left ? size : (size_t)left;
        WK_TRY(wk_file_write(writer->parts[writer->at].file, at, n, error));
        writer->done += n;
        at += n;
        size -= n;
        WK_TRY(settle(writer, error));
    }
    return WICK_OK;
}

/* The last part first: once the first is there, all are. */
static wick_status commit_parts(wick_file_writer *writer, wick_error *error) {
    for (size_t i = writer->n_parts; i-- > 0;) {
        wk_file_writer *const file = writer->parts[i].file;
        writer->parts[i].file = NULL;
        WK_TRY(wk_file_write_finish(&writer->heap, file, true, error));
    }
    return WICK_OK;
}

wick_status wick_file_write_finish(wick_file_writer *writer, bool commit, wick_error *error) {
    if (writer == NULL)
        return wk_fail(error, WICK_ERR_ARGUMENT, "wick_file_write_finish: writer is NULL");
    wick_status status = WICK_OK;
    if (commit && writer->at < writer->n_parts) {
        const wick_file_tensor *const tensor = &current_header(writer)->tensors[writer->tensor];
        status = wk_fail(error, WICK_ERR_STATE,
                         "tensor '%s' is not complete: %" PRIu64 " of its bytes are missing",
                         wk_str_show((wk_str){tensor->name.text, tensor->name.size}).text,
                         tensor->size - writer->done);
    } else if (commit) {
        status = commit_parts(writer, error);
    }
    free_writer(writer);
    return status;
}
