/* format/gguf_state.c: what the files of the GGUF parser share: refusals, tokens, lists, texts. */
#include "format/gguf_state.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

enum { LARGEST_TEXT_BLOCK = 64 << 10 };

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
    return wk_fail_memory(&parser->error, size, "the header of a GGUF file");
}

wk_shown wk_gguf_show(wick_string name) { return wk_str_show((wk_str){name.text, name.size}); }

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
static bool is_whole(const wk_gguf_parser *parser) { return parser->limit == parser->file_size; }

static const char *whole(const wk_gguf_parser *parser) {
    return is_whole(parser) ? "the file" : "the 1 GiB that a header may have";
}

static const char *why_short(const wk_gguf_parser *parser) {
    return is_whole(parser) ? ": it is cut off or damaged" : "";
}

wick_status wk_gguf_expect(wk_gguf_parser *parser, wk_gguf_state state, size_t need,
                           const char *what) {
    assert(parser->end <= parser->limit);
    if (need > parser->limit - parser->end)
        return wk_gguf_refuse(parser, WICK_ERR_FORMAT, parser->limit, "%s ends inside %s%s",
                              whole(parser), what, is_whole(parser) ? ": it is cut off" : "");
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
                              " that are left of %s%s",
                              what, length, left, whole(parser), why_short(parser));
    if (length > max)
        return wk_gguf_refuse(parser, WICK_ERR_FORMAT, parser->at,
                              "%s of %" PRIu64 " bytes is longer than the %" PRIu64
                              " that are allowed",
                              what, length, max);
    return wk_gguf_expect(parser, state, (size_t)length, what);
}

wick_status wk_gguf_check_count(wk_gguf_parser *parser, uint64_t at, uint64_t count, size_t least,
                                const char *units) {
    assert(least > 0);
    const uint64_t left = parser->limit - parser->end;
    if (count <= left / least) return WICK_OK;
    return wk_gguf_refuse(parser, WICK_ERR_FORMAT, at,
                          "%" PRIu64 " %s do not fit into the %" PRIu64
                          " bytes that are left of %s%s",
                          count, units, left, whole(parser), why_short(parser));
}
