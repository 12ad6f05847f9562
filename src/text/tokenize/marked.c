/* text/tokenize/marked.c: tokenizing text of which only parts may hold special tokens. */
#include "text/tokenize/marked.h"

#include "text/tokenize/id_sink.h"
#include "text/tokenize/tokenizer_state.h"

#include <string.h>

/* A special token in the text. */
typedef struct place {
    size_t at, size; /* size 0: there is none */
    size_t run;      /* where the bytes end that are template, or data, as those before are */
    uint32_t id;
} place;

/* The end of the run of data, or of other text, that offset at is in. */
static size_t run_end(wk_str text, const uint8_t *origin, size_t at) {
    const uint8_t *const change = origin ? memchr(origin + at, !origin[at], text.size - at) : NULL;
    return change ? (size_t)(change - origin) : text.size;
}

/* The next special token after the last one, in text that is not data. Data that follows it cannot
 * turn it into another token. */
static place find_special(const wick_tokenizer *t, wk_str text, const uint8_t *origin, place last) {
    place found = {.run = last.run, .id = WICK_NO_TOKEN};
    for (size_t from = last.at + last.size; from < text.size; from = found.run) {
        if (from >= found.run) found.run = run_end(text, origin, from);
        if (origin && origin[from]) continue;
        const wk_str run = {text.text + from, found.run - from};
        found.at = from + wk_special_find(&t->special, run, true, &found.id, &found.size);
        if (found.size > 0) return found;
    }
    found.at = text.size;
    return found;
}

wick_status wk_tokenize_marked(const wick_tokenizer *t, wk_str text, const uint8_t *origin,
                               uint32_t *ids, size_t capacity, size_t *count) {
    wk_id_sink out = {.ids = ids, .capacity = capacity, .last = WICK_NO_TOKEN};
    place next = find_special(t, text, origin, (place){.at = 0});
    const bool has_begin = next.at == 0 && next.size > 0 && next.id == t->begin;
    if (t->add_begin && !has_begin) wk_id_sink_put(&out, t->begin);
    unsigned edges = t->add_space_prefix ? WK_EDGE_PREFIX : 0;
    for (size_t at = 0; at < text.size; next = find_special(t, text, origin, next)) {
        const bool is_token = next.size > 0;
        const size_t end = is_token ? wk_text_before(t, text, at, next.at, next.id) : next.at;
        if (is_token && wk_is_user_piece(t, next.id)) edges |= WK_EDGE_BEFORE;
        WK_TRY(wk_tokenize_between(t, (wk_str){text.text + at, end - at}, edges, &out));
        at = next.at + next.size;
        if (!is_token) continue;
        wk_id_sink_put(&out, next.id);
        edges = wk_edges_after(t, next.id);
        at = wk_text_after(t, text, at, next.id);
        next.size = at - next.at;
    }
    *count = out.count;
    return WICK_OK;
}
