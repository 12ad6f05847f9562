/* format/gguf_parse.c: the GGUF push parser: its machine, the file's first 24 bytes and the
 * interface.
 *
 * Reading values is in gguf_value.c, tensors in gguf_tensor.c, what they share in gguf_state.h.
 * Every count and length is compared with the bytes that the header can still have (the rest of the
 * file, at most 1 GiB in all), so that later arithmetic on them fits in size_t and uint32_t. */
#include "format/gguf_parse.h"

#include "format/gguf_state.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

enum {
    DEFAULT_ALIGNMENT = 32,
    LEAST_TEXT_BLOCK = 4 << 10,
    LARGEST_TEXT_BLOCK = 64 << 10,
};

wick_status wk_gguf_refuse(wk_gguf_parser *parser, wick_status status, uint64_t at,
                           const char *format, ...) {
    char reason[400];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(reason, sizeof reason, format, arguments);
    va_end(arguments);
    return wk_fail(&parser->error, status, "byte %" PRIu64 ": %s", at, reason);
}

wick_status wk_gguf_no_memory(wk_gguf_parser *parser, uint64_t size) {
    return wk_fail_memory(&parser->error, size, 0, "the header of a GGUF file");
}

wk_gguf_quoted wk_gguf_quote(wick_string name) {
    wk_gguf_quoted out;
    size_t n = 0;
    for (; n < name.size && n + 4 < sizeof out.text; n++) {
        const char c = name.text[n];
        out.text[n] = c >= 32 && c < 127 ? c : '?';
    }
    snprintf(out.text + n, sizeof out.text - n, "%s", n < name.size ? "..." : "");
    return out;
}

void *wk_gguf_list_add(wk_gguf_parser *parser, wk_gguf_list *list, uint64_t announced,
                       size_t item_size) {
    assert(list->count < announced);
    if (list->count == list->capacity) {
        size_t capacity = list->capacity < 8 ? 8 : 2 * list->capacity;
        if (capacity > announced) capacity = (size_t)announced;
        void *const items = capacity > SIZE_MAX / item_size
                                ? NULL
                                : wk_realloc(parser->heap, list->items, list->capacity * item_size,
                                             capacity * item_size);
        if (items == NULL) {
            (void)wk_gguf_no_memory(parser, (uint64_t)capacity * item_size);
            return NULL;
        }
        list->items = items;
        list->capacity = capacity;
    }
    return (char *)list->items + list->count++ * item_size;
}

wick_status wk_gguf_index(wk_gguf_parser *parser, wk_map *index, wick_string name, size_t number) {
    const wk_str key = {name.text, name.size};
    if (wk_map_put(index, key, (uint32_t)number) == WICK_OK) return WICK_OK;
    return wk_gguf_no_memory(parser, (index->count + 1) * sizeof key);
}

/* Texts share blocks: a vocabulary is some 100,000 of a few bytes each. */
wick_status wk_gguf_add_text(wk_gguf_parser *parser, const uint8_t *token, wick_string *out) {
    const size_t size = parser->need;
    char *text = parser->text;
    if (size < parser->text_left) {
        parser->text += size + 1;
        parser->text_left -= size + 1;
    } else if (size >= parser->text_block / 4) {
        text = wk_arena_alloc(&parser->arena, size + 1);
        if (text == NULL) return wk_gguf_no_memory(parser, size + 1);
    } else {
        text = wk_arena_alloc(&parser->arena, parser->text_block);
        if (text == NULL) return wk_gguf_no_memory(parser, parser->text_block);
        parser->text = text + size + 1;
        parser->text_left = parser->text_block - size - 1;
        if (parser->text_block < LARGEST_TEXT_BLOCK) parser->text_block *= 2;
    }
    memcpy(text, token, size);
    text[size] = '\0';
    *out = (wick_string){text, size};
    return WICK_OK;
}

/* ---- Tokens ---- */

/* What the remaining bytes belong to, for sentences. */
static const char *whole(const wk_gguf_parser *parser) {
    return parser->limit == parser->file_size ? "the file" : "the 1 GiB that a header may have";
}

wick_status wk_gguf_expect(wk_gguf_parser *parser, wk_gguf_state state, size_t need,
                           const char *what) {
    if (need > parser->limit - parser->end)
        return wk_gguf_refuse(parser, WICK_ERR_FORMAT, parser->limit, "%s ends inside %s",
                              whole(parser), what);
    parser->state = state;
    parser->need = need;
    parser->what = what;
    return WICK_OK;
}

wick_status wk_gguf_expect_text(wk_gguf_parser *parser, wk_gguf_state state, const uint8_t *token,
                                uint64_t max, const char *what) {
    const uint64_t length = wk_gguf_count(parser, token);
    const uint64_t left = parser->limit - parser->end;
    if (length > left)
        return wk_gguf_refuse(parser, WICK_ERR_FORMAT, parser->at,
                              "%s of %" PRIu64 " bytes does not fit into the %" PRIu64
                              " that are left of %s",
                              what, length, left, whole(parser));
    if (length > max)
        return wk_gguf_refuse(parser, WICK_ERR_FORMAT, parser->at,
                              "%s of %" PRIu64 " bytes is longer than the %" PRIu64
                              " that are allowed",
                              what, length, max);
    return wk_gguf_expect(parser, state, (size_t)length, what);
}

wick_status wk_gguf_check_count(wk_gguf_parser *parser, uint64_t at, uint64_t count, size_t least,
                                const char *units) {
    const uint64_t left = parser->limit - parser->end;
    if (count <= left / least) return WICK_OK;
    return wk_gguf_refuse(parser, WICK_ERR_FORMAT, at,
                          "%" PRIu64 " %s do not fit into the %" PRIu64
                          " bytes that are left of %s",
                          count, units, left, whole(parser));
}

wick_status wk_gguf_next_entry(wk_gguf_parser *parser) {
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

/* ---- The beginning of the file ---- */

static wick_status read_counts(wk_gguf_parser *parser, const uint8_t *token) {
    const size_t width = parser->width;
    parser->n_tensors = wk_gguf_count(parser, token);
    parser->n_values = wk_gguf_count(parser, token + width);
    /* A tensor has a name's length, rank, type, offset; an entry a key's length, type, a byte. */
    WK_TRY(wk_gguf_check_count(parser, parser->at, parser->n_tensors, width + 16, "tensors"));
    WK_TRY(wk_gguf_check_count(parser, parser->at + width, parser->n_values, width + 5,
                               "metadata entries"));
    return wk_gguf_next_entry(parser);
}

static wick_status read_version(wk_gguf_parser *parser, const uint8_t *token) {
    const uint32_t version = wk_gguf_u32(token);
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
    if (parser == NULL) return wk_fail_memory(err, sizeof *parser, 0, "a GGUF parser");
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
        (void)parser->state(parser, token);
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
                             "the file ends inside %s", parser->what);
    return report(parser, err);
}

const wk_gguf *wk_gguf_parser_result(const wk_gguf_parser *parser) {
    return parser->state == NULL ? &parser->gguf : NULL;
}

const wick_value *wk_gguf_find(const wk_gguf *gguf, const char *key) {
    uint32_t index;
    return wk_map_get(&gguf->value_index, wk_str_of(key), &index) ? &gguf->values[index] : NULL;
}

const wick_file_tensor *wk_gguf_find_tensor(const wk_gguf *gguf, const char *name) {
    uint32_t index;
    return wk_map_get(&gguf->tensor_index, wk_str_of(name), &index) ? &gguf->tensors[index] : NULL;
}
