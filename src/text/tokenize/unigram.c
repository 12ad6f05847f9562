/* text/tokenize/unigram.c: the Viterbi algorithm over the places between characters. */
#include "text/tokenize/unigram.h"

#include "text/unicode/unicode.h"

#include <assert.h>

#define NOWHERE UINT32_MAX

/* The best way to one place in the text. */
typedef struct arrival {
    double score;
    uint32_t from; /* where the last piece begins; NOWHERE: not reached yet. Once turned around,
                      where the next one ends */
    uint32_t id;   /* of that piece, or WICK_NO_TOKEN */
} arrival;

static void arrive(arrival *at, double score, size_t from, uint32_t id) {
    /* Scores may be infinite or no numbers: every place is reached all the same. */
    if (at->from != NOWHERE && !(score > at->score)) return;
    *at = (arrival){score, (uint32_t)from, id};
}

/* All pieces that begin at from. Each character alone is one way on, though perhaps not a piece. */
static void leave(const wk_unigram *model, wk_str text, size_t from, arrival *arrivals) {
    const double score = arrivals[from].score;
    const size_t longest = model->pieces->table->longest;
    bool is_first = true, is_piece = false;
    size_t first_end = from;
    for (size_t end = from; end < text.size;) {
        uint32_t code, id;
        end += wk_utf8_decode(text.text + end, text.size - end, &code);
        if (is_first) first_end = end;
        if (!is_first && end - from > longest) break;
        if (wk_token_index_find(model->pieces, (wk_str){text.text + from, end - from}, &id)) {
            arrive(&arrivals[end], score + (double)model->scores[id], from, id);
            is_piece = is_piece || is_first;
        }
        is_first = false;
    }
    if (!is_piece) {
        arrive(&arrivals[first_end], score + (double)model->unknown_score, from, WICK_NO_TOKEN);
    }
}

/* Turns the best way around, so that it can be walked from the beginning. */
static void turn_around(arrival *arrivals, size_t size) {
    uint32_t end = (uint32_t)size, next_end = 0, next_id = WICK_NO_TOKEN;
    for (;;) {
        const arrival at = arrivals[end];
        assert(end == 0 || at.from < end); /* every place was reached, from before it */
        arrivals[end].from = next_end;
        arrivals[end].id = next_id;
        if (end == 0) return;
        next_end = end;
        next_id = at.id;
        end = at.from;
    }
}

wick_status wk_unigram_encode(const wk_unigram *model, wk_heap *heap, wk_str text,
                              wk_id_sink *out) {
    assert(text.size < NOWHERE);
    arrival *const arrivals = wk_alloc(heap, (text.size + 1) * sizeof *arrivals);
    if (!arrivals) return WICK_ERR_OUT_OF_MEMORY;
    for (size_t i = 0; i <= text.size; i++) arrivals[i].from = NOWHERE;
    arrivals[0].score = 0;
    for (size_t at = 0; at < text.size;) {
        uint32_t code;
        leave(model, text, at, arrivals);
        at += wk_utf8_decode(text.text + at, text.size - at, &code);
    }
    turn_around(arrivals, text.size);
    wick_status status = WICK_OK;
    for (size_t at = 0; at < text.size && status == WICK_OK; at = arrivals[at].from) {
        const wk_str piece = {text.text + at, arrivals[at].from - at};
        if (arrivals[at].id != WICK_NO_TOKEN) {
            wk_id_sink_put(out, arrivals[at].id);
        } else {
            status = model->spell(model->context, piece, out);
        }
    }
    wk_free(heap, arrivals, (text.size + 1) * sizeof *arrivals);
    return status;
}
