/* text/sentencepiece.c: SentencePiece BPE. */
#include "text/sentencepiece.h"

#include "core/half.h"
#include "core/hash.h"
#include "text/unicode.h"

static const uint32_t SPACE = 0x2581; /* LOWER ONE EIGHTH BLOCK: how pieces write a space */

static uint32_t pair_bit(uint32_t left, uint32_t right) {
    return (uint32_t)(wk_hash_u64((uint64_t)left << 32 | right) >> (64 - WK_PAIR_BITS));
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

/* Text must never turn into control or byte tokens; user-defined ones were found before. */
static bool can_be_merged(uint8_t kind) {
    return kind == WK_TOKEN_NORMAL || kind == WK_TOKEN_UNUSED;
}

wick_status wk_sentencepiece_make(wk_heap *heap, const wk_vocab_desc *desc,
                                  const wk_token_table *table, wk_sentencepiece *out,
                                  wick_error *err) {
    *out = (wk_sentencepiece){.scores = desc->scores, .unknown = desc->unknown};
    if (!desc->scores) {
        return wk_fail(err, WICK_ERR_FORMAT,
                       "the vocabulary has no scores (tokenizer.ggml.scores is missing)");
    }
    wk_map_init(&out->pieces, heap);
    for (int byte = 0; byte < 256; byte++) out->byte_ids[byte] = WICK_NO_TOKEN;
    wick_status status = wk_map_reserve(&out->pieces, desc->n_tokens);
    for (uint32_t id = 0; id < desc->n_tokens && status == WICK_OK; id++) {
        const wk_str text = desc->tokens[id];
        if (table->kinds[id] == WK_TOKEN_BYTE) out->byte_ids[wk_byte_token_value(text)] = id;
        if (!can_be_merged(table->kinds[id]) || text.size == 0) continue;
        add_pairs(out, text);
        if (text.size > out->longest) out->longest = text.size;
        status = wk_map_put(&out->pieces, text, id);
    }
    if (status == WICK_OK) return WICK_OK;
    wk_sentencepiece_release(out);
    return wk_fail(err, status, "not enough memory to index the vocabulary");
}

void wk_sentencepiece_release(wk_sentencepiece *pieces) { wk_map_release(&pieces->pieces); }

/* Highest score first as lowest number first; every float has its place. */
static uint32_t score_rank(float score) {
    const uint32_t bits = wk_f32_bits(score + 0.0f); /* -0 is 0 */
    return bits >> 31 ? bits : ~bits & 0x7FFFFFFF;
}

typedef struct merge_context {
    const wk_sentencepiece *pieces;
    const char *text;
} merge_context;

static bool find_piece(const void *context, const wk_symbol *left, const wk_symbol *right,
                       uint32_t *rank, uint32_t *id) {
    const merge_context *const c = context;
    const wk_str joined = {c->text + left->start, (size_t)left->size + right->size};
    if (joined.size > c->pieces->longest) return false;
    if (!wk_map_get(&c->pieces->pieces, joined, id)) return false;
    *rank = score_rank(c->pieces->scores[*id]);
    return true;
}

static void put_bytes(const wk_sentencepiece *pieces, wk_str text, wk_id_sink *out) {
    for (size_t i = 0; i < text.size; i++) {
        const uint32_t byte_id = pieces->byte_ids[(unsigned char)text.text[i]];
        const uint32_t id = byte_id != WICK_NO_TOKEN ? byte_id : pieces->unknown;
        if (id != WICK_NO_TOKEN) wk_id_sink_put(out, id);
    }
}

/* One character, or bytes that are none. */
static void put_char(const wk_sentencepiece *pieces, wk_str text, wk_id_sink *out) {
    uint32_t id;
    if (wk_map_get(&pieces->pieces, text, &id)) {
        wk_id_sink_put(out, id);
    } else {
        put_bytes(pieces, text, out);
    }
}

/* Encodes the chunk and empties it. */
static wick_status flush_chunk(const wk_sentencepiece *pieces, wk_sentencepiece_scratch *scratch,
                               wk_id_sink *out) {
    if (scratch->chunk.failed) return WICK_ERR_OUT_OF_MEMORY;
    const wk_str text = {scratch->chunk.data, scratch->chunk.size};
    wk_merger *const merger = &scratch->merger;
    WK_TRY(wk_merger_begin(merger, scratch->n_chars));
    for (size_t at = 0; at < text.size;) {
        uint32_t code;
        const size_t size = wk_utf8_decode(text.text + at, text.size - at, &code);
        wk_merger_push(merger, (uint32_t)size, WICK_NO_TOKEN);
        at += size;
    }
    wk_merger_run(merger, find_piece, &(merge_context){pieces, text.text});
    for (uint32_t i = 0; i != WK_NO_SYMBOL; i = merger->symbols[i].next) {
        const wk_symbol *const symbol = &merger->symbols[i];
        if (symbol->id != WICK_NO_TOKEN) {
            wk_id_sink_put(out, symbol->id);
        } else {
            put_char(pieces, (wk_str){text.text + symbol->start, symbol->size}, out);
        }
    }
    wk_strbuf_clear(&scratch->chunk);
    scratch->n_chars = 0;
    return WICK_OK;
}

wick_status wk_sentencepiece_encode(const wk_sentencepiece *pieces, bool prefix, wk_str text,
                                    wk_sentencepiece_scratch *scratch, wk_id_sink *out) {
    char space[4];
    const size_t space_size = wk_utf8_encode(SPACE, space);
    uint32_t left = SPACE;
    wk_strbuf_clear(&scratch->chunk);
    scratch->n_chars = 0;
    if (prefix) {
        wk_strbuf_append(&scratch->chunk, space, space_size);
        scratch->n_chars = 1;
    }
    for (size_t at = 0; at < text.size;) {
        uint32_t code;
        const size_t size = wk_utf8_decode(text.text + at, text.size - at, &code);
        const bool is_space = code == ' ';
        if (is_space) code = SPACE;
        if (scratch->n_chars > 0 && !may_join(pieces, left, code)) {
            WK_TRY(flush_chunk(pieces, scratch, out));
        }
        wk_strbuf_append(&scratch->chunk, is_space ? space : text.text + at,
                         is_space ? space_size : size);
        scratch->n_chars++;
        left = code;
        at += size;
    }
    return scratch->n_chars > 0 ? flush_chunk(pieces, scratch, out) : WICK_OK;
}
