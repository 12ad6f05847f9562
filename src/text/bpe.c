/* text/bpe.c: byte-level BPE: pieces of text, their bytes as symbols, merged by rank. */
#include "text/bpe.h"

#include "text/byte_level.h"
#include "text/token_index.h"
#include "text/unicode.h"

#include <assert.h>
#include <string.h>

static wick_status fail_index(wick_error *err) {
    return wk_fail(err, WICK_ERR_OUT_OF_MEMORY, "not enough memory to index the vocabulary");
}

static void find_byte_ids(const wk_token_index *texts, wk_bpe *bpe) {
    wk_byte_alphabet alphabet;
    wk_byte_alphabet_init(&alphabet);
    for (int byte = 0; byte < 256; byte++) {
        char text[4];
        const size_t size = wk_utf8_encode(alphabet.char_of[byte], text);
        bpe->byte_ids[byte] = WICK_NO_TOKEN;
        wk_token_index_find(texts, (wk_str){text, size}, &bpe->byte_ids[byte]);
    }
}

static wick_status fail_merge(wick_error *err, size_t rank, wk_str merge, const char *why) {
    return wk_fail(err, WICK_ERR_FORMAT, "merge %zu, '%s', %s", rank, wk_str_show(merge).text, why);
}

/* The longest merge that can name two tokens. */
static size_t joined_limit(const wk_token_table *table) { return 2 * table->longest + 1; }

/* What the merges are resolved with. */
typedef struct resolving {
    wk_token_index texts;
    uint32_t n_tokens;
    char *joined; /* [limit] */
    size_t limit;
} resolving;

static bool is_joined(wk_str token, wk_str left, wk_str right) {
    return token.size == left.size + right.size && memcmp(token.text, left.text, left.size) == 0 &&
           memcmp(token.text + left.size, right.text, right.size) == 0;
}

/* What left and right make. Vocabularies that grew by merging have the results in the order of the
 * merges, so that looking at the guess saves the search. */
static bool find_joined(resolving *r, wk_str left, wk_str right, uint32_t guess, uint32_t *id) {
    if (guess < r->n_tokens && is_joined(r->texts.tokens[guess], left, right)) {
        *id = guess;
        return true;
    }
    memcpy(r->joined, left.text, left.size);
    memcpy(r->joined + left.size, right.text, right.size);
    return wk_token_index_find(&r->texts, (wk_str){r->joined, left.size + right.size}, id);
}

/* Ids of the two sides and of what they make. */
static wick_status resolve_merge(resolving *r, wk_str merge, uint32_t guess, uint32_t ids[3]) {
    if (merge.size < 3 || merge.size > r->limit) return WICK_ERR_FORMAT;
    const char *const space = memchr(merge.text + 1, ' ', merge.size - 1);
    if (!space) return WICK_ERR_FORMAT;
    const wk_str left = {merge.text, (size_t)(space - merge.text)};
    const wk_str right = {space + 1, merge.size - left.size - 1};
    const bool found = wk_token_index_find(&r->texts, left, &ids[0]) &&
                       wk_token_index_find(&r->texts, right, &ids[1]) &&
                       find_joined(r, left, right, guess, &ids[2]);
    return found ? WICK_OK : WICK_ERR_NOT_FOUND;
}

static wick_status index_merges(const wk_vocab_desc *desc, resolving *r, wk_bpe *bpe,
                                wick_error *err) {
    if (wk_map64_reserve(&bpe->ranks, desc->n_merges) != WICK_OK) return fail_index(err);
    for (uint32_t rank = 0; rank < desc->n_merges; rank++) {
        const wk_str merge = desc->merges[rank];
        const uint32_t guess = rank > 0 ? bpe->merged[rank - 1] + 1 : 0;
        uint32_t ids[3], earlier;
        const wick_status status = resolve_merge(r, merge, guess, ids);
        if (status == WICK_ERR_FORMAT) {
            return fail_merge(err, rank, merge, "is not two tokens and a space");
        }
        if (status != WICK_OK) {
            return fail_merge(err, rank, merge, "names a token that the vocabulary does not have");
        }
        bpe->merged[rank] = ids[2];
        const uint64_t key = (uint64_t)ids[0] << 32 | ids[1];
        if (wk_map64_get(&bpe->ranks, key, &earlier)) continue; /* the better rank stays */
        if (wk_map64_put(&bpe->ranks, key, rank) != WICK_OK) return fail_index(err);
    }
    return WICK_OK;
}

static wick_status index_whole(const wk_token_table *table, wk_map *whole, wick_error *err) {
    if (wk_map_reserve(whole, table->n_tokens) != WICK_OK) return fail_index(err);
    for (uint32_t id = 0; id < table->n_tokens; id++) {
        if (table->kinds[id] != WK_TOKEN_NORMAL) continue;
        if (wk_map_put(whole, wk_token_text(table, id), id) != WICK_OK) return fail_index(err);
    }
    return WICK_OK;
}

static wick_status fill(wk_heap *heap, const wk_vocab_desc *desc, const wk_token_table *table,
                        wk_bpe *bpe, wick_error *err) {
    resolving r = {.n_tokens = desc->n_tokens, .limit = joined_limit(table)};
    r.joined = wk_alloc(heap, r.limit);
    bpe->merged = wk_alloc_array(heap, desc->n_merges, sizeof *bpe->merged);
    bpe->n_merges = desc->n_merges;
    const bool has_room =
        r.joined && bpe->merged &&
        wk_token_index_make(heap, desc->tokens, desc->n_tokens, &r.texts) == WICK_OK;
    wick_status status = has_room ? WICK_OK : fail_index(err);
    if (status == WICK_OK) {
        find_byte_ids(&r.texts, bpe);
        status = index_merges(desc, &r, bpe, err);
    }
    if (status == WICK_OK && bpe->pretokenizer == WK_PRETOKENIZER_LLAMA3) {
        status = index_whole(table, &bpe->whole, err);
    }
    wk_free(heap, r.joined, r.limit);
    wk_token_index_release(heap, &r.texts);
    return status;
}

wick_status wk_bpe_make(wk_heap *heap, const wk_vocab_desc *desc, const wk_token_table *table,
                        wk_bpe *out, wick_error *err) {
    *out = (wk_bpe){0};
    if (desc->pre.size == 0) {
        return wk_fail(err, WICK_ERR_FORMAT,
                       "the pre-tokenizer is not named (tokenizer.ggml.pre is missing)");
    }
    if (!wk_pretokenizer_find(desc->pre, &out->pretokenizer)) {
        return wk_fail(err, WICK_ERR_UNSUPPORTED, "pre-tokenizer '%s' is not known",
                       wk_str_show(desc->pre).text);
    }
    if (desc->n_merges == 0) {
        return wk_fail(err, WICK_ERR_FORMAT,
                       "the vocabulary has no merges (tokenizer.ggml.merges is missing)");
    }
    wk_map64_init(&out->ranks, heap);
    wk_map_init(&out->whole, heap);
    const wick_status status = fill(heap, desc, table, out, err);
    if (status != WICK_OK) wk_bpe_release(heap, out);
    return status;
}

void wk_bpe_release(wk_heap *heap, wk_bpe *bpe) {
    wk_map64_release(&bpe->ranks);
    wk_map_release(&bpe->whole);
    wk_free(heap, bpe->merged, bpe->n_merges * sizeof *bpe->merged);
    *bpe = (wk_bpe){0};
}

static bool find_merge(const void *context, const wk_symbol *left, const wk_symbol *right,
                       uint32_t *rank, uint32_t *id) {
    const wk_bpe *const bpe = context;
    if (!wk_map64_get(&bpe->ranks, (uint64_t)left->id << 32 | right->id, rank)) return false;
    *id = bpe->merged[*rank];
    return true;
}

static wick_status encode_piece(const wk_bpe *bpe, wk_merger *merger, wk_str piece,
                                wk_id_sink *out) {
    uint32_t id;
    if (wk_map_get(&bpe->whole, piece, &id)) {
        wk_id_sink_put(out, id);
        return WICK_OK;
    }
    WK_TRY(wk_merger_begin(merger, piece.size));
    for (size_t i = 0; i < piece.size; i++) {
        id = bpe->byte_ids[(unsigned char)piece.text[i]];
        if (id != WICK_NO_TOKEN) wk_merger_push(merger, 1, id);
    }
    if (merger->n_symbols == 0) return WICK_OK;
    wk_merger_run(merger, find_merge, bpe);
    for (uint32_t i = 0; i != WK_NO_SYMBOL; i = merger->symbols[i].next) {
        wk_id_sink_put(out, merger->symbols[i].id);
    }
    return WICK_OK;
}

wick_status wk_bpe_encode(const wk_bpe *bpe, wk_merger *merger, wk_str text, wk_id_sink *out) {
    while (text.size > 0) {
        const size_t size = wk_pretokenize(bpe->pretokenizer, text.text, text.size);
        WK_TRY(encode_piece(bpe, merger, (wk_str){text.text, size}, out));
        text.text += size;
        text.size -= size;
    }
    return WICK_OK;
}
