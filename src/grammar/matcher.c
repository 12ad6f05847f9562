/* grammar/matcher.c: masks of tokens, by walking the vocabulary's tree and the grammar together.
 *
 * What a token does mostly depends on the innermost rules alone: inside a string it does not matter
 * what the string is part of. So the walk starts from the place with all but the innermost frames
 * cut off, and its result is kept for all places that look alike there. Where a walk gets below
 * what was left, an escape is noted; only from there on each place has to be looked at by itself.
 * Where that would be most of the vocabulary, more frames are left, and in the end all of them
 * (compare XGrammar: Dong et al., 2024). */
#include "grammar/matcher.h"

#include "grammar/program.h"
#include "grammar/stacks.h"

#include <assert.h>
#include <math.h>
#include <string.h>

enum { MOST_FRAMES = 3, HEAVY_SHARE = 16 };

/* What is kept is forgotten beyond the first, between two tokens; the second ends in an error. */
static const size_t kept_bytes = (size_t)64 << 20, most_bytes = (size_t)512 << 20;

typedef struct escape {
    uint32_t node; /* of the trie: the byte after which the walk needs the base */
    uint32_t base; /* the rest that was cut off */
} escape;

struct wk_mask {
    bool is_heavy; /* too many escapes: nothing else is known */
    uint32_t n_escapes;
    escape *escapes;
    uint64_t words[]; /* a bit for each token: it may come next, whatever was cut off */
};

struct wk_matcher {
    wk_heap *heap;
    wk_matcher_desc desc;
    wk_program program;
    wk_stacks_store store;
    wk_stacks *at;
    bool has_ended;
    size_t n_words;    /* of a mask */
    uint64_t *allowed; /* [n_words] scratch: the tokens that may come next */
    uint64_t *walked;  /* [n_words] scratch: a mask that is being made */
    wk_stacks **path;  /* [trie->depth + 1] scratch of a walk: the place before each byte */
    escape *escapes;   /* [capacity] scratch of a walk */
    uint32_t n_escapes, capacity;
};

/* --- Making --- */

static wick_status make_scratch(wk_matcher *m, wick_error *err) {
    const size_t n_nodes = m->desc.trie->n_nodes;
    m->n_words = (size_t)m->desc.n_vocab / 64 + 1;
    m->capacity = (uint32_t)(n_nodes / HEAVY_SHARE) + 1 + WK_STACKS_MOST_CUT;
    m->allowed = wk_alloc_array(m->heap, m->n_words, sizeof *m->allowed);
    m->walked = wk_alloc_array(m->heap, m->n_words, sizeof *m->walked);
    m->path = wk_alloc_array(m->heap, m->desc.trie->depth + 1, sizeof *m->path);
    m->escapes = wk_alloc_array(m->heap, m->capacity, sizeof *m->escapes);
    if (m->allowed && m->walked && m->path && m->escapes) return WICK_OK;
    return wk_fail_memory(err, n_nodes, "a grammar");
}

wick_status wk_matcher_make(wk_heap *heap, const wk_matcher_desc *desc, const wk_rules *rules,
                            wk_matcher **out, wick_error *err) {
    *out = NULL;
    wk_matcher *const m = wk_alloc_zeroed(heap, sizeof *m);
    if (!m) return wk_fail_memory(err, sizeof *m, "a grammar");
    m->heap = heap;
    m->desc = *desc;
    wick_status status = wk_program_make(heap, rules, &m->program, err);
    if (status == WICK_OK) status = wk_stacks_store_make(heap, &m->program, &m->store, err);
    if (status == WICK_OK) status = make_scratch(m, err);
    if (status != WICK_OK) {
        wk_matcher_free(m);
        return status;
    }
    wk_matcher_reset(m);
    *out = m;
    return WICK_OK;
}

void wk_matcher_free(wk_matcher *matcher) {
    wk_matcher *const m = matcher;
    if (!m) return;
    wk_free(m->heap, m->allowed, m->n_words * sizeof *m->allowed);
    wk_free(m->heap, m->walked, m->n_words * sizeof *m->walked);
    wk_free(m->heap, m->path, (m->desc.trie->depth + 1) * sizeof *m->path);
    wk_free(m->heap, m->escapes, m->capacity * sizeof *m->escapes);
    wk_stacks_store_free(&m->store);
    wk_program_free(&m->program);
    wk_free(m->heap, m, sizeof *m);
}

void wk_matcher_reset(wk_matcher *matcher) {
    matcher->at = matcher->store.start;
    matcher->has_ended = false;
}

static wick_status fail(const wk_matcher *m, wick_error *err) {
    if (m->store.failed == WICK_ERR_OUT_OF_MEMORY)
        return wk_fail_memory(err, wk_stacks_store_size(&m->store), "a grammar");
    return wk_fail(err, WICK_ERR_VALUE, "the grammar is too ambiguous to be followed here");
}

/* --- Walks --- */

static void allow(uint64_t *words, uint32_t id) { words[id / 64] |= (uint64_t)1 << (id % 64); }

static void allow_node(const wk_matcher *m, uint32_t node, uint64_t *words) {
    const wk_token_trie *const trie = m->desc.trie;
    for (uint32_t i = trie->firsts[node]; i < trie->firsts[node + 1]; i++)
        if (trie->ids[i] < m->desc.n_vocab) allow(words, trie->ids[i]);
}

/* weight: nodes that hang on escapes so far. False: too many. */
static bool note_escapes(wk_matcher *m, uint32_t node, const wk_stacks *to, uint32_t *weight) {
    const wk_token_trie *const trie = m->desc.trie;
    for (uint32_t i = 0; i < to->n; i++) {
        if (to->tops[i].at <= WK_STACK_BASE) continue;
        if (m->n_escapes == m->capacity) return false;
        m->escapes[m->n_escapes++] =
            (escape){.node = node, .base = to->tops[i].at - WK_STACK_BASE - 1};
        *weight += trie->skips[node] - node;
    }
    return *weight <= trie->n_nodes / HEAVY_SHARE;
}

static wk_stacks *read(wk_matcher *m, wk_stacks *at, uint8_t byte) {
    assert(at->next); /* it is a place in a text */
    const uint32_t byte_class = m->program.class_of[byte];
    wk_stacks *const known = at->next[byte_class];
    if (known) return known;
    if (wk_stacks_store_size(&m->store) <= most_bytes)
        return wk_stacks_read(&m->store, at, byte_class);
    m->store.failed = WICK_ERR_OUT_OF_MEMORY;
    return NULL;
}

/* All tokens whose nodes are from begin to end, read from a place. *is_heavy: it ended early, there
 * are too many escapes. False: the store has failed. */
static bool walk(wk_matcher *m, wk_stacks *from, uint32_t begin, uint32_t end, uint64_t *words,
                 bool *is_heavy) {
    const wk_token_trie *const trie = m->desc.trie;
    uint32_t weight = 0;
    m->n_escapes = 0;
    *is_heavy = false;
    if (begin < end) m->path[trie->depths[begin]] = from;
    for (uint32_t i = begin; i < end;) {
        const uint32_t depth = trie->depths[i];
        wk_stacks *const to = read(m, m->path[depth], trie->bytes[i]);
        if (!to) return false;
        if (to->is_alive) allow_node(m, i, words);
        if (to->has_cut && !note_escapes(m, i, to, &weight)) {
            *is_heavy = true;
            return true;
        }
        m->path[depth + 1] = to;
        i = to->reads ? i + 1 : trie->skips[i];
    }
    return true;
}

/* --- Masks --- */

/* Of m->walked and the first n_escapes of m->escapes. */
static wk_mask *keep_mask(wk_matcher *m, uint32_t n_escapes, bool is_heavy) {
    const size_t size = is_heavy ? 0 : m->n_words * sizeof *m->walked;
    wk_mask *const mask = wk_arena_array(&m->store.arena, 1, sizeof *mask + size);
    escape *const escapes = wk_arena_array(&m->store.arena, n_escapes, sizeof *escapes);
    if (!mask || !escapes) {
        m->store.failed = WICK_ERR_OUT_OF_MEMORY;
        return NULL;
    }
    *mask = (wk_mask){.is_heavy = is_heavy, .n_escapes = n_escapes, .escapes = escapes};
    memcpy(mask->words, m->walked, size);
    if (n_escapes > 0) memcpy(escapes, m->escapes, n_escapes * sizeof *escapes);
    return mask;
}

/* What is known without what was cut off; set->mask afterwards. */
static wk_mask *find_local_mask(wk_matcher *m, wk_stacks *set) {
    if (set->mask) return set->mask;
    bool is_heavy;
    memset(m->walked, 0, m->n_words * sizeof *m->walked);
    if (!walk(m, set, 0, m->desc.trie->n_nodes, m->walked, &is_heavy)) return NULL;
    set->mask = keep_mask(m, is_heavy ? 0 : m->n_escapes, is_heavy);
    return set->mask;
}

/* A local mask and what its escapes add in this place. */
static wk_mask *complete(wk_matcher *m, const wk_mask *local, const wk_stacks_rest *rest) {
    wk_stacks *resumed[WK_STACKS_MOST_CUT] = {NULL};
    memcpy(m->walked, local->words, m->n_words * sizeof *m->walked);
    for (uint32_t i = 0; i < local->n_escapes; i++) {
        const escape at = local->escapes[i];
        assert(at.base < rest->n && at.node < m->desc.trie->n_nodes);
        wk_stacks **const from = &resumed[at.base];
        bool is_heavy; /* never: nothing is cut off here */
        if (!*from) *from = wk_stacks_resume(&m->store, rest->sets[at.base]);
        if (!*from) return NULL;
        if ((*from)->is_alive) allow_node(m, at.node, m->walked);
        if ((*from)->reads &&
            !walk(m, *from, at.node + 1, m->desc.trie->skips[at.node], m->walked, &is_heavy))
            return NULL;
    }
    return keep_mask(m, 0, false);
}

/* Tokens by their texts. NULL: the store has failed. */
static const wk_mask *find_mask(wk_matcher *m) {
    wk_stacks *const at = m->at;
    for (uint32_t depth = 1; !at->mask && depth <= MOST_FRAMES && depth < at->depth; depth++) {
        wk_stacks_rest rest;
        wk_stacks *const cut = wk_stacks_cut(&m->store, at, depth, &rest);
        if (!cut) return NULL;
        if (cut == m->store.empty) break;
        const wk_mask *const local = find_local_mask(m, cut);
        if (!local) return NULL;
        if (!local->is_heavy) at->mask = complete(m, local, &rest);
        if (!local->is_heavy && !at->mask) return NULL;
    }
    return find_local_mask(m, at);
}

wick_status wk_matcher_prepare(wk_matcher *matcher, wick_error *err) {
    wk_matcher *const m = matcher;
    return m->has_ended || find_mask(m) ? WICK_OK : fail(m, err);
}

/* --- Tokens --- */

/* All but one. */
static void allow_others(const wk_matcher *m, uint32_t id) {
    const uint32_t size = wick_tokenizer_size(m->desc.tokenizer);
    for (uint32_t i = 0; i < size && i < m->desc.n_vocab; i++)
        if (i != id) allow(m->allowed, i);
}

/* The instructions that name tokens. Only by its own name does a token that ends a generation come
 * next where the text may not end. */
static void allow_named(const wk_matcher *m) {
    const wk_instruction *const code = m->program.code;
    const wk_stacks *const at = m->at;
    for (uint32_t i = 0; i < at->n && at->tops[i].at < WK_STACK_BASE; i++) {
        const wk_instruction *const token = &code[at->tops[i].at];
        if (token->op == WK_GRAMMAR_TOKEN && token->is_negated) allow_others(m, token->other);
    }
    for (uint32_t i = 0; i < m->desc.trie->n_ends; i++) {
        const uint32_t id = m->desc.trie->ends[i];
        if (id < m->desc.n_vocab) m->allowed[id / 64] &= ~((uint64_t)1 << (id % 64));
    }
    for (uint32_t i = 0; i < at->n && at->tops[i].at < WK_STACK_BASE; i++) {
        const wk_instruction *const token = &code[at->tops[i].at];
        if (token->op == WK_GRAMMAR_TOKEN && !token->is_negated && token->other < m->desc.n_vocab)
            allow(m->allowed, token->other);
    }
}

/* Fills m->allowed. */
static wick_status find_allowed(wk_matcher *m, wick_error *err) {
    const wk_token_trie *const trie = m->desc.trie;
    if (m->has_ended) {
        memset(m->allowed, 0, m->n_words * sizeof *m->allowed);
    } else {
        const wk_mask *const mask = find_mask(m);
        if (!mask) return fail(m, err);
        memcpy(m->allowed, mask->words, m->n_words * sizeof *m->allowed);
        if (m->at->has_tokens) allow_named(m);
    }
    for (uint32_t i = 0; i < trie->n_ends && wk_matcher_may_end(m); i++)
        if (trie->ends[i] < m->desc.n_vocab) allow(m->allowed, trie->ends[i]);
    return WICK_OK;
}

wick_status wk_matcher_apply(wk_matcher *matcher, float *logits, wick_error *err) {
    wk_matcher *const m = matcher;
    WK_TRY(find_allowed(m, err));
    for (size_t w = 0; w < m->n_words; w++) {
        const uint64_t word = m->allowed[w];
        const size_t begin = 64 * w;
        const size_t end = begin + 64 < m->desc.n_vocab ? begin + 64 : m->desc.n_vocab;
        if (word == UINT64_MAX) continue;
        for (size_t id = begin; id < end; id++)
            if (!(word >> (id - begin) & 1)) logits[id] = -INFINITY;
    }
    return WICK_OK;
}

/* The set after the bytes of a token; empty where they do not fit or the token has none. */
static wk_stacks *read_bytes(wk_matcher *m, uint32_t id) {
    size_t size;
    const char *const bytes = wick_token_bytes(m->desc.tokenizer, id, false, &size);
    if (size == 0 || wick_token_ends_generation(m->desc.tokenizer, id)) return m->store.empty;
    wk_stacks *to = m->at;
    for (size_t i = 0; i < size && to && to->n > 0; i++) to = read(m, to, (uint8_t)bytes[i]);
    return to;
}

wick_status wk_matcher_accept(wk_matcher *matcher, uint32_t id, wick_error *err) {
    wk_matcher *const m = matcher;
    if (wk_matcher_may_end(m) && wick_token_ends_generation(m->desc.tokenizer, id)) {
        m->has_ended = true;
        return WICK_OK;
    }
    wk_stacks *to = m->has_ended ? m->store.empty : read_bytes(m, id);
    if (to && m->at->has_tokens && !m->has_ended) {
        wk_stacks *const named = wk_stacks_read_token(&m->store, m->at, id);
        to = named ? wk_stacks_join(&m->store, to, named) : NULL;
    }
    if (!to) return fail(m, err);
    if (!to->is_alive)
        return wk_fail(err, WICK_ERR_VALUE, "the grammar does not allow token %u here", id);
    assert(to->next);
    m->at = to;
    if (wk_stacks_store_size(&m->store) <= kept_bytes) return WICK_OK;
    to = wk_stacks_store_forget(&m->store, m->at);
    if (!to) return fail(m, err);
    m->at = to;
    return WICK_OK;
}

bool wk_matcher_may_end(const wk_matcher *matcher) {
    return matcher->has_ended || wk_stacks_may_end(matcher->at);
}
