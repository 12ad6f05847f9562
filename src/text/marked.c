/* text/marked.c: tokenizing text of which only parts may hold special tokens. */
#include "text/marked.h"

#include "text/id_sink.h"
#include "text/tokenizer_state.h"

#include <string.h>

/* A special token in the text. */
typedef struct place {
    size_t at, size; /* size 0: there is none */
    uint32_t id;
} place;

/* The first one from offset from on that holds no data. */
static place find_special(const wick_tokenizer *t, wk_str text, const uint8_t *origin,
                          size_t from) {
    while (from < text.size) {
        const wk_str rest = {text.text + from, text.size - from};
        place found = {.id = WICK_NO_TOKEN};
        found.at = from + wk_special_find(&t->special, rest, true, &found.id, &found.size);
        if (found.size == 0) break;
        if (origin == NULL || memchr(origin + found.at, 1, found.size) == NULL) return found;
        from = found.at + 1;
    }
    return (place){.at = text.size, .size = 0};
}

/* Ordinary text between two special tokens. */
static wick_status put_text(const wick_tokenizer *t, wk_str text, wk_id_sink *out) {
    if (text.size == 0) return WICK_OK;
    const bool has_room = out->count < out->capacity;
    size_t n;
    WK_TRY(wick_tokenize(t, text.text, text.size, 0, has_room ? out->ids + out->count : NULL,
                         has_room ? out->capacity - out->count : 0, &n));
    out->count += n;
    return WICK_OK;
}

wick_status wk_tokenize_marked(const wick_tokenizer *t, wk_str text, const uint8_t *origin,
                               uint32_t *ids, size_t capacity, size_t *count) {
    wk_id_sink out = {.ids = ids, .capacity = capacity};
    place next = find_special(t, text, origin, 0);
    const bool has_begin = next.at == 0 && next.size > 0 && next.id == t->desc.begin;
    if (t->add_begin && !has_begin) wk_id_sink_put(&out, t->desc.begin);
    for (size_t at = 0; at < text.size; next = find_special(t, text, origin, at)) {
        WK_TRY(put_text(t, (wk_str){text.text + at, next.at - at}, &out));
        if (next.size > 0) wk_id_sink_put(&out, next.id);
        at = next.at + next.size;
    }
    *count = out.count;
    return WICK_OK;
}
