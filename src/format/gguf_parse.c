/* format/gguf_parse.c: the GGUF push parser: its machine, the file's first 24 bytes and the
 * interface.
 *
 * Reading values is in gguf_value.c, tensors in gguf_tensor.c, what they share in gguf_state.c.
 * Every count and length is compared with the bytes that the header can still have (the rest of the
 * file, at most 1 GiB in all), so that later arithmetic on them fits in size_t and uint32_t. */
#include "format/gguf_parse.h"

#include "format/gguf_state.h"

#include <assert.h>

enum { DEFAULT_ALIGNMENT = 32, LEAST_TEXT_BLOCK = 4 << 10 };

/* ---- The beginning of the file ---- */

/* An entry is complete, or the counts have been read: what comes next. */
static wick_status next_entry(wk_gguf_parser *parser) {
    assert(parser->values.count <= parser->n_values && parser->tensors.count <= parser->n_tensors);
    if (parser->values.count < parser->n_values)
        return wk_gguf_expect(parser, wk_gguf_read_key_length, parser->width,
                              "the length of a key");
    if (parser->tensors.count < parser->n_tensors)
        return wk_gguf_expect(parser, wk_gguf_read_name_length, parser->width,
                              "the length of a tensor's name");
    WK_TRY(wk_gguf_place_tensors(parser));
    wk_gguf *const gguf = &parser->gguf;
    gguf->values = parser->values.items;
    gguf->n_values = parser->values.count;
    gguf->tensors = parser->tensors.items;
    gguf->n_tensors = parser->tensors.count;
    parser->state = NULL;
    return WICK_OK;
}

static wick_status read_counts(wk_gguf_parser *parser, const uint8_t *token) {
    const size_t width = parser->width;
    parser->n_tensors = wk_gguf_count(parser, token);
    parser->n_values = wk_gguf_count(parser, token + width);
    /* A tensor has a name's length, rank, type, offset; an entry a key's length, type, a byte. */
    WK_TRY(wk_gguf_check_count(parser, parser->at, parser->n_tensors, width + 16, "tensors"));
    WK_TRY(wk_gguf_check_count(parser, parser->at + width, parser->n_values, width + 5,
                               "metadata entries"));
    return next_entry(parser);
}

static wick_status read_version(wk_gguf_parser *parser, const uint8_t *token) {
    const uint32_t version = wk_load_u32(token);
    if (token[0] == 0 && token[1] == 0 && token[2] == 0 && token[3] >= 1 && token[3] <= 3)
        return wk_gguf_refuse(parser, WICK_ERR_UNSUPPORTED, parser->at,
                              "the file is big-endian (GGUF version %d), only little-endian files "
                              "can be read",
                              token[3]);
    if (version < 1 || version > 3)
        return wk_gguf_refuse(parser, WICK_ERR_UNSUPPORTED, parser->at,
                              "GGUF version %u is not known, only 1, 2 and 3 are",
                              (unsigned)version);
    parser->gguf.version = version;
    parser->width = version == 1 ? 4 : 8;
    return wk_gguf_expect(parser, read_counts, (size_t)2 * parser->width,
                          "the numbers of tensors and metadata entries");
}

static wick_status read_magic(wk_gguf_parser *parser, const uint8_t *token) {
    if (memcmp(token, "GGUF", 4) != 0)
        return wk_gguf_refuse(parser, WICK_ERR_FORMAT, 0,
                              "not a GGUF file: it begins with the bytes %02x %02x %02x %02x, not "
                              "with 'GGUF'",
                              token[0], token[1], token[2], token[3]);
    return wk_gguf_expect(parser, read_version, 4, "the version");
}

/* ---- The interface ---- */

wick_status wk_gguf_parser_make(wk_heap *heap, uint64_t file_size, wk_gguf_parser **out,
                                wick_error *err) {
    wk_gguf_parser *const parser = wk_alloc_zeroed(heap, sizeof *parser);
    *out = parser;
    if (parser == NULL) return wk_fail_memory(err, sizeof *parser, "a GGUF parser");
    parser->heap = heap;
    wk_arena_init(&parser->arena, heap, LEAST_TEXT_BLOCK);
    wk_strbuf_init(&parser->partial, heap);
    wk_map_init(&parser->gguf.value_index, heap);
    wk_map_init(&parser->gguf.tensor_index, heap);
    parser->text_block = LEAST_TEXT_BLOCK;
    parser->file_size = file_size;
    parser->limit = file_size < WK_GGUF_MAX_HEADER ? file_size : WK_GGUF_MAX_HEADER;
    parser->gguf.alignment = DEFAULT_ALIGNMENT;
    parser->state = read_magic;
    /* A file too short even for this is refused by the first feed. */
    (void)wk_gguf_expect(parser, read_magic, 4, "the letters 'GGUF'");
    return WICK_OK;
}

void wk_gguf_parser_free(wk_gguf_parser *parser) {
    if (parser == NULL) return;
    wk_heap *const heap = parser->heap;
    wk_gguf_free_strings(parser);
    wk_free(heap, parser->values.items, parser->values.capacity * sizeof(wick_value));
    wk_free(heap, parser->tensors.items, parser->tensors.capacity * sizeof(wick_file_tensor));
    wk_map_release(&parser->gguf.value_index);
    wk_map_release(&parser->gguf.tensor_index);
    wk_strbuf_release(&parser->partial);
    wk_arena_release(&parser->arena);
    wk_free(heap, parser, sizeof *parser);
}

static wick_status report(const wk_gguf_parser *parser, wick_error *err) {
    if (err != NULL && err->status == WICK_OK) *err = parser->error;
    return parser->error.status;
}

/* The token that is due, or NULL while bytes are missing or when memory is short. */
static const uint8_t *take(wk_gguf_parser *parser, const uint8_t *bytes, size_t size,
                           size_t *taken) {
    wk_strbuf *const partial = &parser->partial;
    assert(partial->size == 0 || partial->size < parser->need);
    const size_t missing = parser->need - partial->size;
    *taken = missing < size ? missing : size;
    if (*taken == parser->need) return bytes;
    if (*taken > 0) wk_strbuf_append(partial, bytes, *taken);
    if (partial->failed) (void)wk_gguf_no_memory(parser, *taken);
    return partial->failed || partial->size < parser->need ? NULL : (const uint8_t *)partial->data;
}

wick_status wk_gguf_parser_feed(wk_gguf_parser *parser, const void *bytes, size_t size,
                                size_t *used, wick_error *err) {
    /* Never NULL, so that offsets and empty tokens need no special case. */
    const uint8_t *const input = size > 0 ? bytes : (const uint8_t *)"";
    size_t position = 0;
    bool is_hungry = false;
    while (parser->error.status == WICK_OK && parser->state != NULL && !is_hungry) {
        size_t taken;
        const uint8_t *const token = take(parser, input + position, size - position, &taken);
        position += taken;
        is_hungry = token == NULL;
        if (is_hungry) continue;
        parser->at = parser->end;
        parser->end += parser->need;
        parser->is_entry_complete = false;
        if (parser->state(parser, token) == WICK_OK && parser->is_entry_complete)
            (void)next_entry(parser);
        if (parser->partial.size > 0) wk_strbuf_clear(&parser->partial);
    }
    if (parser->state == NULL) wk_strbuf_release(&parser->partial);
    if (used != NULL) *used = position;
    if (parser->error.status != WICK_OK) return report(parser, err);
    return is_hungry ? WICK_PENDING : WICK_OK;
}

wick_status wk_gguf_parser_end(wk_gguf_parser *parser, wick_error *err) {
    if (parser->error.status == WICK_OK && parser->state != NULL)
        (void)wk_gguf_refuse(parser, WICK_ERR_FORMAT, parser->end + parser->partial.size,
                             "the file ends inside %s: it is cut off", parser->what);
    return report(parser, err);
}

const wk_gguf *wk_gguf_parser_result(const wk_gguf_parser *parser) {
    return parser->state == NULL ? &parser->gguf : NULL;
}
