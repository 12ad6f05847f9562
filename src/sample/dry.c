/* sample/dry.c: see dry.h. How long a repetition each token would go on with is the Z function of
 * the sequence read backwards (Gusfield, "Algorithms on Strings, Trees, and Sequences", 1997, 1.3),
 * which needs no more memory than the longest length that counts. */
#include "sample/dry.h"

#include "core/compiler.h"
#include "sample/penalties.h"

#include <assert.h>
#include <math.h>
#include <string.h>

/* --- Breakers --- */

static size_t breakers_size(const wk_dry *dry) { return dry->n_vocab / 8 + 1; }

static bool is_breaker(const wk_dry *dry, uint32_t id) {
    return id >= dry->n_vocab || (dry->breakers[id / 8] >> (id % 8) & 1);
}

/* The token that text ends with where it follows a letter: tokenizers treat the beginning of a text
 * in their own way, and the proposal puts an "a" first, too. */
static wick_status add_breaker(wk_heap *heap, wk_dry *dry, const wick_tokenizer *tokenizer,
                               const char *text, wick_error *err) {
    const size_t size = strlen(text) + 1;
    char *const prefixed = wk_alloc(heap, size);
    if (!prefixed) return wk_fail_memory(err, size, "a sequence breaker");
    prefixed[0] = 'a';
    memcpy(prefixed + 1, text, size - 1);
    size_t n = 0;
    uint32_t *ids = NULL;
    wick_status status = wick_tokenize(tokenizer, prefixed, size, 0, NULL, 0, &n);
    const size_t ids_size = n * sizeof *ids;
    if (status == WICK_OK && n > 0) {
        ids = wk_alloc_array(heap, n, sizeof *ids);
        status =
            ids ? wick_tokenize(tokenizer, prefixed, size, 0, ids, n, &n) : WICK_ERR_OUT_OF_MEMORY;
    }
    if (status != WICK_OK)
        wk_fail(err, status, "a sequence breaker of DRY: %s", wick_status_text(status));
    else if (n > 0 && ids[n - 1] < dry->n_vocab)
        dry->breakers[ids[n - 1] / 8] |= (uint8_t)(1U << (ids[n - 1] % 8));
    wk_free(heap, ids, ids_size);
    wk_free(heap, prefixed, size);
    return status;
}

wick_status wk_dry_make(wk_heap *heap, const wick_sampler_desc *desc,
                        const wick_tokenizer *tokenizer, uint32_t n_vocab, wk_dry *out,
                        wick_error *err) {
    static const char *const usual[] = {"\n", ":", "\"", "*"};
    *out = (wk_dry){.multiplier = (double)desc->dry_multiplier,
                    .base = (double)desc->dry_base,
                    .allowed = desc->dry_allowed,
                    .last = desc->dry_last,
                    .n_vocab = n_vocab};
    if (desc->dry_multiplier == 0) return WICK_OK;
    const bool has_own = desc->dry_breakers != NULL;
    const char *const *const breakers = has_own ? desc->dry_breakers : usual;
    const size_t n = has_own ? desc->n_dry_breakers : WK_COUNT(usual);
    out->breakers = wk_alloc_zeroed(heap, breakers_size(out));
    if (!out->breakers) return wk_fail_memory(err, breakers_size(out), "DRY");
    for (size_t i = 0; i < n; i++) {
        if (!breakers[i] || breakers[i][0] == '\0')
            return wk_fail(err, WICK_ERR_VALUE, "sequence breaker %zu of DRY is empty", i + 1);
        if (tokenizer) WK_TRY(add_breaker(heap, out, tokenizer, breakers[i], err));
    }
    return WICK_OK;
}

void wk_dry_free(wk_heap *heap, wk_dry *dry) {
    wk_free(heap, dry->breakers, breakers_size(dry));
    dry->breakers = NULL;
}

/* --- Matches --- */

/* Backwards: newest token first. */
typedef struct history {
    const uint32_t *newest;
    size_t n;
} history;

static uint32_t at(const history *h, size_t i) {
    assert(i < h->n);
    return *(h->newest - i);
}

/* How long a match can get: up to a breaker. */
static size_t longest_match(const wk_dry *dry, const history *h) {
    const size_t most = h->n < WK_DRY_MOST ? h->n : WK_DRY_MOST;
    size_t n = 0;
    while (n < most && !is_breaker(dry, at(h, n))) n++;
    return n;
}

/* For each place i: how many tokens from there backwards are the newest ones. The token that came
 * after them is the one that would go on with the repetition. */
static void find_matches(const wk_dry *dry, const history *h, size_t most, uint32_t *longest) {
    assert(most <= WK_DRY_MOST);
    uint32_t z[WK_DRY_MOST] = {0};
    size_t begin = 0, end = 0; /* the match known that reaches furthest */
    for (size_t i = 1; i < h->n; i++) {
        size_t match = 0;
        if (i < end) match = z[i - begin] < end - i ? z[i - begin] : end - i;
        if (i + match >= end) {
            while (match < most && i + match < h->n && at(h, i + match) == at(h, match)) match++;
            begin = i;
            end = i + match;
        }
        if (i < most) z[i] = (uint32_t)match;
        const uint32_t next = at(h, i - 1);
        if (match >= dry->allowed && !is_breaker(dry, next) && longest[next] < match)
            longest[next] = (uint32_t)match;
    }
}

void wk_dry_apply(const wk_dry *dry, const uint32_t *tokens, size_t n_tokens, uint32_t *longest,
                  float *logits) {
    if (n_tokens == 0) return;
    const size_t n = dry->last > 0 && dry->last < n_tokens ? dry->last : n_tokens;
    const history h = {.newest = tokens + (n_tokens - 1), .n = n};
    const size_t most = longest_match(dry, &h);
    if (most < dry->allowed) return;
    find_matches(dry, &h, most, longest);
    for (size_t i = 0; i + 1 < n; i++) {
        const uint32_t id = at(&h, i);
        if (id >= dry->n_vocab || longest[id] == 0) continue;
        wk_logit_add(&logits[id],
                     -dry->multiplier * pow(dry->base, (double)(longest[id] - dry->allowed)));
        longest[id] = 0;
    }
}
