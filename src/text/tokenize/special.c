/* text/tokenize/special.c: the trie of special tokens. */
#include "text/tokenize/special.h"

enum { ALWAYS = 1, ANY = 2 };

static bool is_matched_whole(uint8_t kind) {
    return kind == WK_TOKEN_CONTROL || kind == WK_TOKEN_USER_DEFINED || kind == WK_TOKEN_UNKNOWN;
}

/* The text that is looked for: user-defined tokens as they are written. */
static wk_str matched_text(const wk_vocab_desc *desc, const wk_token_table *table, uint32_t id) {
    return wk_token_is_text(table, id) ? wk_token_text(table, id) : desc->tokens[id];
}

static wick_status insert(wk_special *special, wk_str text, wk_special_node leaf) {
    uint32_t node = 0;
    for (size_t i = 0; i < text.size; i++) {
        const uint64_t edge = (uint64_t)node << 8 | (unsigned char)text.text[i];
        if (wk_map64_get(&special->edges, edge, &node)) continue;
        node = (uint32_t)special->n_nodes++;
        special->nodes[node] = (wk_special_node){.id = WICK_NO_TOKEN};
        WK_TRY(wk_map64_put(&special->edges, edge, node));
    }
    special->nodes[node] = leaf;
    const int mark = leaf.is_always_on ? ALWAYS | ANY : ANY;
    uint8_t *const first = &special->first[(unsigned char)text.text[0]];
    *first = (uint8_t)(*first | mark);
    return WICK_OK;
}

wick_status wk_special_make(wk_heap *heap, const wk_vocab_desc *desc, const wk_token_table *table,
                            wk_special *out, wick_error *err) {
    *out = (wk_special){.n_nodes = 1, .capacity = 1};
    wk_map64_init(&out->edges, heap);
    for (uint32_t id = 0; id < table->n_tokens; id++) {
        if (is_matched_whole(table->kinds[id])) {
            out->capacity += matched_text(desc, table, id).size; /* < 2^32: the table's limit */
        }
    }
    out->nodes = wk_alloc_array(heap, out->capacity, sizeof *out->nodes);
    wick_status status = out->nodes ? WICK_OK : WICK_ERR_OUT_OF_MEMORY;
    if (status == WICK_OK) out->nodes[0].id = WICK_NO_TOKEN;
    for (uint32_t id = 0; id < table->n_tokens && status == WICK_OK; id++) {
        if (!is_matched_whole(table->kinds[id])) continue;
        const wk_str text = matched_text(desc, table, id);
        const bool is_always_on = table->kinds[id] == WK_TOKEN_USER_DEFINED;
        if (text.size > 0) status = insert(out, text, (wk_special_node){id, is_always_on});
    }
    if (status == WICK_OK) return WICK_OK;
    wk_special_release(heap, out);
    return wk_fail(err, status, "not enough memory to index the special tokens");
}

void wk_special_release(wk_heap *heap, wk_special *special) {
    wk_map64_release(&special->edges);
    wk_free(heap, special->nodes, special->capacity * sizeof *special->nodes);
    *special = (wk_special){0};
}

/* Size of the longest token that text begins with, or 0. */
static size_t match(const wk_special *special, wk_str text, bool all, uint32_t *id) {
    uint32_t node = 0;
    size_t longest = 0;
    for (size_t i = 0; i < text.size; i++) {
        const uint64_t edge = (uint64_t)node << 8 | (unsigned char)text.text[i];
        if (!wk_map64_get(&special->edges, edge, &node)) break;
        const wk_special_node *const found = &special->nodes[node];
        if (found->id == WICK_NO_TOKEN || !(all || found->is_always_on)) continue;
        *id = found->id;
        longest = i + 1;
    }
    return longest;
}

bool wk_special_is(const wk_special *special, wk_str text) {
    uint32_t id;
    return text.size > 0 && match(special, text, true, &id) == text.size;
}

size_t wk_special_find(const wk_special *special, wk_str text, bool all, uint32_t *id,
                       size_t *size) {
    const int mark = all ? ANY : ALWAYS;
    for (size_t at = 0; at < text.size; at++) {
        if (!(special->first[(unsigned char)text.text[at]] & mark)) continue;
        *size = match(special, (wk_str){text.text + at, text.size - at}, all, id);
        if (*size > 0) return at;
    }
    *size = 0;
    return text.size;
}
