/* text/tokenize/sentencepiece.c: chunks of text, and the three ways to turn them into pieces. */
#include "text/tokenize/sentencepiece.h"

#include "core/half.h"
#include "text/unicode/unicode.h"

#include <assert.h>
#include <math.h>
#include <string.h>

/* --- Where text can be cut --- */

static uint32_t pair_bit(uint32_t left, uint32_t right) {
    if (left < 128 && right < 128) return left << 7 | right;
    const uint64_t hash = wk_hash_u64((uint64_t)left << 32 | right);
    return WK_ASCII_PAIRS + (uint32_t)(hash >> (64 - WK_PAIR_BITS));
}

static void add_pairs(wk_sentencepiece *pieces, wk_str text) {
    uint32_t left = 0, code;
    for (size_t at = 0; at < text.size; left = code) {
        const size_t size = wk_utf8_decode(text.text + at, text.size - at, &code);
        const uint32_t bit = pair_bit(left, code);
        if (at > 0) pieces->pairs[bit / 64] |= UINT64_C(1) << (bit % 64);
        at += size;
    }
}

static bool may_join(const wk_sentencepiece *pieces, uint32_t left, uint32_t right) {
    const uint32_t bit = pair_bit(left, right);
    return (pieces->pairs[bit / 64] >> (bit % 64) & 1) != 0;
}

/* Bytes of text (size > 0) up to the first cut. */
static size_t chunk_size(const wk_sentencepiece *pieces, wk_str text) {
    assert(text.size > 0);
    uint32_t left, right;
    size_t at = wk_utf8_decode(text.text, text.size, &left);
    for (; at < text.size; left = right) {
        const size_t size = wk_utf8_decode(text.text + at, text.size - at, &right);
        if (!may_join(pieces, left, right)) break;
        at += size;
    }
    return at;
}

/* --- The vocabulary --- */

static void find_pieces(const wk_vocab_desc *desc, const wk_token_table *table,
                        wk_sentencepiece *pieces) {
    for (int byte = 0; byte < 256; byte++) pieces->byte_ids[byte] = WICK_NO_TOKEN;
    for (uint32_t id = 0; id < table->n_tokens; id++) {
        if (table->kinds[id] == WK_TOKEN_BYTE) {
            pieces->byte_ids[wk_byte_token_value(desc->tokens[id])] = id;
        } else {
            add_pairs(pieces, wk_token_text(table, id));
        }
    }
    for (int code = 0; code < 128; code++) {
        const char text = (char)code;
        pieces->ascii_ids[code] = WICK_NO_TOKEN;
        wk_token_index_find(&pieces->pieces, (wk_str){&text, 1}, &pieces->ascii_ids[code]);
    }
}

/* The score of a character that is not a piece: 10 below the least probable piece, as in the
 * original. */
static float unknown_score(const wk_vocab_desc *desc, const wk_token_table *table) {
    float least = 0;
    for (uint32_t id = 0; id < table->n_tokens; id++) {
        if (table->kinds[id] == WK_TOKEN_NORMAL) least = fminf(least, desc->scores[id]);
    }
    return least - 10.0f;
}

static wick_status make_kind(wk_heap *heap, const wk_vocab_desc *desc, const wk_special *special,
                             wk_sentencepiece *pieces, wick_error *err) {
    if (pieces->kind == WK_SENTENCEPIECE_MERGES) {
        return wk_merges_make(heap, desc, &pieces->pieces, special, &pieces->merges, err);
    }
    if (!desc->scores) {
        return wk_fail(err, WICK_ERR_FORMAT,
                       "the vocabulary has no scores (tokenizer.ggml.scores is missing)");
    }
    const bool is_unigram = pieces->kind == WK_SENTENCEPIECE_UNIGRAM;
    pieces->normalizes =
        is_unigram || desc->charsmap.size > 0 || desc->removes_extra_spaces == WK_YES;
    if (!pieces->normalizes) return WICK_OK;
    pieces->unknown_score = unknown_score(desc, pieces->pieces.table);
    return wk_normalizer_make(desc, &pieces->normalizer, err);
}

wick_status wk_sentencepiece_make(wk_heap *heap, wk_sentencepiece_kind kind,
                                  const wk_vocab_desc *desc, const wk_token_table *table,
                                  const wk_special *special, wk_sentencepiece *out,
                                  wick_error *err) {
    *out = (wk_sentencepiece){.kind = kind,
                              .is_metaspace = desc->prepend_scheme.size > 0,
                              .scores = desc->scores,
                              .unknown = desc->unknown};
    const wick_status status = wk_token_index_make(heap, table, &out->pieces);
    if (status != WICK_OK) return wk_fail(err, status, "not enough memory to index the vocabulary");
    find_pieces(desc, table, out);
    return make_kind(heap, desc, special, out, err);
}

void wk_sentencepiece_release(wk_heap *heap, wk_sentencepiece *pieces) {
    wk_token_index_release(heap, &pieces->pieces);
    wk_merges_release(heap, &pieces->merges);
}

/* --- Merging --- */

/* Highest score first as lowest number first; every float has its place. */
static uint32_t score_rank(float score) {
    const uint32_t bits = wk_f32_bits(score + 0.0f); /* -0 is 0 */
    return bits >> 31 ? bits : ~bits & 0x7FFFFFFF;
}

static size_t begin_char(const void *context, wk_str text, uint32_t *id) {
    const wk_sentencepiece *const pieces = context;
    uint32_t code;
    const size_t size = wk_utf8_decode(text.text, text.size, &code);
    *id = WICK_NO_TOKEN;
    if (code < 128) {
        *id = pieces->ascii_ids[code];
    } else {
        wk_token_index_find(&pieces->pieces, (wk_str){text.text, size}, id);
    }
    return size;
}

static bool join_by_score(const void *context, const wk_symbol *left, const wk_symbol *right,
                          uint32_t *rank, uint32_t *id) {
    const wk_sentencepiece *const pieces = context;
    assert(left->text + left->size == right->text);
    const wk_str joined = {left->text, (size_t)left->size + right->size};
    if (joined.size > pieces->pieces.table->longest) return false;
    if (!wk_token_index_find(&pieces->pieces, joined, id)) return false;
    *rank = score_rank(pieces->scores[*id]);
    return true;
}

static bool join_by_merges(const void *context, const wk_symbol *left, const wk_symbol *right,
                           uint32_t *rank, uint32_t *id) {
    const wk_sentencepiece *const pieces = context;
    return wk_merges_find(&pieces->merges, left->id, right->id, rank, id);
}

/* --- Encoding --- */

/* One character, or bytes that are none. */
static wick_status spell_bytes(const void *context, wk_str text, wk_id_sink *out) {
    const wk_sentencepiece *const pieces = context;
    for (size_t i = 0; i < text.size; i++) {
        const uint32_t id = pieces->byte_ids[(unsigned char)text.text[i]];
        if (id != WICK_NO_TOKEN) {
            wk_id_sink_put(out, id);
        } else if (pieces->unknown != WICK_NO_TOKEN) {
            wk_id_sink_put_once(out, pieces->unknown);
        } else {
            return WICK_ERR_VALUE;
        }
    }
    return WICK_OK;
}

static wick_status encode_chunks(const wk_sentencepiece *pieces, wk_str text, wk_merger *merger,
                                 wk_id_sink *out) {
    const bool by_score = pieces->kind == WK_SENTENCEPIECE_SCORES;
    const wk_merge_rule rule = {.context = pieces,
                                .begin = begin_char,
                                .join = by_score ? join_by_score : join_by_merges,
                                .spell = spell_bytes};
    const wk_unigram unigram = {.pieces = &pieces->pieces,
                                .scores = pieces->scores,
                                .unknown_score = pieces->unknown_score,
                                .spell = spell_bytes,
                                .context = pieces};
    while (text.size > 0) {
        const wk_str chunk = {text.text, chunk_size(pieces, text)};
        WK_TRY(pieces->kind == WK_SENTENCEPIECE_UNIGRAM
                   ? wk_unigram_encode(&unigram, merger->heap, chunk, out)
                   : wk_merge(merger, &rule, chunk, out));
        text.text += chunk.size;
        text.size -= chunk.size;
    }
    return WICK_OK;
}

/* Files write U+2581 for a space, so that the character itself is one, too. */
static void replace_space_signs(wk_str text, wk_strbuf *out) {
    const size_t sign_size = sizeof WK_SPACE_SIGN - 1;
    while (text.size > 0 && !out->failed) {
        const char *const lead = memchr(text.text, WK_SPACE_SIGN[0], text.size);
        const size_t before = lead ? (size_t)(lead - text.text) : text.size;
        wk_strbuf_append(out, text.text, before);
        text.text += before;
        text.size -= before;
        if (text.size == 0) return;
        const bool is_sign =
            text.size >= sign_size && memcmp(text.text, WK_SPACE_SIGN, sign_size) == 0;
        wk_strbuf_append(out, is_sign ? " " : text.text, 1);
        text.text += is_sign ? sign_size : 1;
        text.size -= is_sign ? sign_size : 1;
    }
}

wick_status wk_sentencepiece_encode(const wk_sentencepiece *pieces, unsigned edges, wk_str text,
                                    wk_merger *merger, wk_id_sink *out) {
    wk_strbuf normal;
    wk_strbuf_init(&normal, merger->heap);
    wk_strbuf_reserve(&normal, text.size + 1);
    if (pieces->normalizes) {
        wk_normalize(&pieces->normalizer, edges, text, &normal);
    } else {
        if (edges & WK_EDGE_PREFIX) wk_strbuf_append(&normal, " ", 1);
        replace_space_signs(text, &normal);
    }
    wk_str chunks = {normal.data, normal.size};
    if (pieces->is_metaspace && (edges & WK_EDGE_PREFIX) && chunks.size > 1 &&
        chunks.text[1] == ' ') {
        chunks.text++;
        chunks.size--;
    }
    const wick_status status =
        normal.failed ? WICK_ERR_OUT_OF_MEMORY : encode_chunks(pieces, chunks, merger, out);
    wk_strbuf_release(&normal);
    return status;
}
