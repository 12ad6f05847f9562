/* text/tokenize/bpe.c: byte-level BPE: pieces of text, their bytes as symbols, merged by rank. */
#include "text/tokenize/bpe.h"

#include "text/tokenize/byte_level.h"
#include "text/unicode/unicode.h"

static void find_byte_ids(const wk_token_index *index, wk_bpe *bpe) {
    const wk_token_table *const table = index->table;
    for (int byte = 0; byte < 256; byte++) {
        const char text = (char)byte;
        uint32_t *const id = &bpe->byte_ids[byte];
        *id = WICK_NO_TOKEN;
        if (wk_token_index_find(index, (wk_str){&text, 1}, id)) continue;
        /* Bytes that UTF-8 never has can be user-defined, named by their characters. */
        char name[4];
        const size_t size = wk_utf8_encode(table->alphabet.char_of[byte], name);
        uint32_t named;
        if (wk_token_index_find(index, (wk_str){name, size}, &named) &&
            table->kinds[named] == WK_TOKEN_USER_DEFINED) {
            *id = named;
        }
    }
}

/* Vocabularies lack only bytes of which there are no characters, and a model's own tokenizer, which
 * reads characters, sees U+FFFD in their place. */
static void find_replacement(const wk_vocab_desc *desc, const wk_token_index *index, wk_bpe *bpe) {
    const wk_str character = wk_str_of("\xEF\xBF\xBD");
    /* Some files name a control token, which text must not turn into. */
    if (desc->unknown != WICK_NO_TOKEN && index->table->kinds[desc->unknown] == WK_TOKEN_UNKNOWN) {
        bpe->replacement[0] = desc->unknown;
        bpe->n_replacement = 1;
    } else if (wk_token_index_find(index, character, &bpe->replacement[0])) {
        bpe->n_replacement = 1;
    } else {
        bool has_bytes = true;
        for (size_t i = 0; i < character.size; i++) {
            bpe->replacement[i] = bpe->byte_ids[(unsigned char)character.text[i]];
            has_bytes = has_bytes && bpe->replacement[i] != WICK_NO_TOKEN;
        }
        bpe->n_replacement = has_bytes ? 3 : 0;
    }
}

wick_status wk_bpe_make(wk_heap *heap, const wk_vocab_desc *desc, const wk_token_table *table,
                        const wk_special *special, wk_bpe *out, wick_error *err) {
    /* Files from before there was the key. */
    const wk_str pre = desc->pre.size > 0 ? desc->pre : wk_str_of("default");
    *out = (wk_bpe){.pretokenizer = wk_pretokenizer_find(pre)};
    if (!out->pretokenizer) {
        return wk_fail(err, WICK_ERR_UNSUPPORTED,
                       "pre-tokenizer '%s' (tokenizer.ggml.pre) is not known",
                       wk_str_show(pre).text);
    }
    out->takes_whole = desc->takes_whole == WK_UNSET ? out->pretokenizer->takes_whole
                                                     : desc->takes_whole == WK_YES;
    wk_token_index index;
    wick_status status = wk_token_index_make(heap, table, &index);
    if (status != WICK_OK) return wk_fail(err, status, "not enough memory to index the vocabulary");
    find_byte_ids(&index, out);
    find_replacement(desc, &index, out);
    status = wk_merges_make(heap, desc, &index, special, &out->merges, err);
    if (status == WICK_OK && out->takes_whole) {
        out->whole = index;
    } else {
        wk_token_index_release(heap, &index);
    }
    return status;
}

void wk_bpe_release(wk_heap *heap, wk_bpe *bpe) {
    wk_merges_release(heap, &bpe->merges);
    wk_token_index_release(heap, &bpe->whole);
}

static size_t begin_byte(const void *context, wk_str text, uint32_t *id) {
    const wk_bpe *const bpe = context;
    *id = bpe->byte_ids[(unsigned char)text.text[0]];
    return 1;
}

static bool join_tokens(const void *context, const wk_symbol *left, const wk_symbol *right,
                        uint32_t *rank, uint32_t *id) {
    const wk_bpe *const bpe = context;
    return wk_merges_find(&bpe->merges, left->id, right->id, rank, id);
}

static wick_status spell_byte(const void *context, wk_str text, wk_id_sink *out) {
    const wk_bpe *const bpe = context;
    (void)text; /* one byte that has no token */
    for (uint32_t i = 0; i < bpe->n_replacement; i++) wk_id_sink_put(out, bpe->replacement[i]);
    return bpe->n_replacement > 0 ? WICK_OK : WICK_ERR_VALUE;
}

wick_status wk_bpe_encode(const wk_bpe *bpe, wk_merger *merger, wk_str text, wk_id_sink *out) {
    const wk_merge_rule rule = {
        .context = bpe, .begin = begin_byte, .join = join_tokens, .spell = spell_byte};
    wk_pieces pieces;
    wk_str piece;
    wk_pieces_begin(&pieces, bpe->pretokenizer, text);
    while (wk_pieces_next(&pieces, &piece)) {
        uint32_t id;
        if (bpe->takes_whole && wk_token_index_find(&bpe->whole, piece, &id)) {
            wk_id_sink_put(out, id);
        } else {
            WK_TRY(wk_merge(merger, &rule, piece, out));
        }
    }
    return WICK_OK;
}
