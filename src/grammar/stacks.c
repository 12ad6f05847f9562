/* grammar/stacks.c: see stacks.h. */
#include "grammar/stacks.h"

#include "core/hash.h"

#include <assert.h>
#include <string.h>

/* Calls deeper than MAX_DEPTH are not made, so recursion over stacks ends; text that nests deeper
 * is not generated. A set that takes more than MAX_STEPS comes from a grammar that is too
 * ambiguous. */
enum { MAX_DEPTH = 2000, MAX_STEPS = 1 << 18, FIRST_SLOTS = 256 };

/* --- Sets --- */

static wk_stacks *fail(wk_stacks_store *s, wick_status status) {
    s->failed = status;
    return NULL;
}

static bool count_step(wk_stacks_store *s) {
    if (++s->n_steps > MAX_STEPS) (void)fail(s, WICK_ERR_VALUE);
    return s->failed == WICK_OK;
}

static uint64_t hash_of(const wk_stack_top *tops, uint32_t n) {
    uint64_t hash = n;
    for (uint32_t i = 0; i < n; i++) {
        hash = wk_hash_u64(hash ^ tops[i].at);
        hash = wk_hash_u64(hash ^ (uint64_t)(uintptr_t)tops[i].below);
    }
    return hash;
}

static bool is_same(const wk_stacks *set, uint64_t hash, const wk_stack_top *tops, uint32_t n) {
    if (set->hash != hash || set->n != n) return false;
    for (uint32_t i = 0; i < n; i++)
        if (set->tops[i].at != tops[i].at || set->tops[i].below != tops[i].below) return false;
    return true;
}

static bool grow(wk_stacks_store *s) {
    const size_t n_slots = s->n_slots ? 2 * s->n_slots : FIRST_SLOTS;
    wk_stacks **const slots = wk_alloc_array(s->heap, n_slots, sizeof *slots);
    if (!slots) return false;
    for (size_t i = 0; i < s->n_slots; i++) {
        wk_stacks *const set = s->slots[i];
        if (!set) continue;
        size_t at = (size_t)set->hash & (n_slots - 1);
        while (slots[at]) at = (at + 1) & (n_slots - 1);
        slots[at] = set;
    }
    wk_free(s->heap, s->slots, s->n_slots * sizeof *s->slots);
    s->slots = slots;
    s->n_slots = n_slots;
    return true;
}

static wk_stacks *add_set(wk_stacks_store *s, uint64_t hash, const wk_stack_top *tops, uint32_t n) {
    wk_stacks *const set = wk_arena_alloc(&s->arena, sizeof *set + n * sizeof *tops);
    if (!set) return NULL;
    *set = (wk_stacks){.hash = hash, .n = n};
    for (uint32_t i = 0; i < n; i++) {
        set->tops[i] = tops[i];
        const uint32_t depth = tops[i].below ? tops[i].below->depth + 1 : 1;
        if (depth > set->depth) set->depth = depth;
    }
    return set;
}

/* The one set with these tops, which rise. */
static wk_stacks *intern(wk_stacks_store *s, const wk_stack_top *tops, uint32_t n) {
    assert(n <= 1 || tops[0].at < tops[n - 1].at);
    if (s->n_sets >= s->n_slots / 2 && !grow(s)) return fail(s, WICK_ERR_OUT_OF_MEMORY);
    const uint64_t hash = hash_of(tops, n);
    size_t at = (size_t)hash & (s->n_slots - 1);
    for (; s->slots[at]; at = (at + 1) & (s->n_slots - 1))
        if (is_same(s->slots[at], hash, tops, n)) return s->slots[at];
    wk_stacks *const set = add_set(s, hash, tops, n);
    if (!set) return fail(s, WICK_ERR_OUT_OF_MEMORY);
    s->slots[at] = set;
    s->n_sets++;
    return set;
}

static wk_stacks *intern_one(wk_stacks_store *s, uint32_t at, wk_stacks *below) {
    return intern(s, &(wk_stack_top){.at = at, .below = below}, 1);
}

/* Makes a set a place in a text. */
static wk_stacks *place(wk_stacks_store *s, wk_stacks *set) {
    if (!set || set->next) return set;
    set->next = wk_arena_array(&s->arena, s->program->n_classes, sizeof(wk_stacks *));
    if (!set->next) return fail(s, WICK_ERR_OUT_OF_MEMORY);
    for (uint32_t i = 0; i < set->n; i++) {
        const uint32_t at = set->tops[i].at;
        const bool is_base = at >= WK_STACK_BASE;
        const bool has_token = !is_base && s->program->code[at].op == WK_GRAMMAR_TOKEN;
        set->has_tokens |= has_token;
        set->reads |= !is_base && !has_token;
        set->is_alive |= at <= WK_STACK_BASE;
        set->has_cut |= at > WK_STACK_BASE;
    }
    return set;
}

static wk_stacks *unite(wk_stacks_store *s, wk_stacks *a, wk_stacks *b);

/* Merges the tops of two sets; out has room for both. *n: how many there are. */
static bool merge(wk_stacks_store *s, const wk_stacks *a, const wk_stacks *b, wk_stack_top *out,
                  uint32_t *n) {
    uint32_t i = 0, k = 0;
    for (*n = 0; i < a->n || k < b->n; (*n)++) {
        wk_stack_top *const top = &out[*n];
        if (k == b->n || (i < a->n && a->tops[i].at < b->tops[k].at)) {
            *top = a->tops[i++];
        } else if (i == a->n || b->tops[k].at < a->tops[i].at) {
            *top = b->tops[k++];
        } else {
            *top = a->tops[i];
            if (top->below != b->tops[k].below)
                top->below = unite(s, a->tops[i].below, b->tops[k].below);
            if (!top->below && top->at < WK_STACK_BASE) return false;
            i++, k++;
        }
    }
    return true;
}

/* The stacks of both. NULL: failed. */
static wk_stacks *unite(wk_stacks_store *s, wk_stacks *a, wk_stacks *b) {
    if (a == b) return a;
    wk_stacks_union *const known =
        &s->unions[wk_hash_u64(a->hash ^ wk_hash_u64(b->hash)) % WK_STACKS_UNIONS];
    if (known->a == a && known->b == b) return known->both;
    if (!count_step(s)) return NULL;
    const size_t size = ((size_t)a->n + b->n) * sizeof(wk_stack_top);
    wk_stack_top *const tops = wk_alloc(s->heap, size);
    if (!tops && size > 0) return fail(s, WICK_ERR_OUT_OF_MEMORY);
    uint32_t n;
    wk_stacks *const set = merge(s, a, b, tops, &n) ? intern(s, tops, n) : NULL;
    wk_free(s->heap, tops, size);
    if (set) *known = (wk_stacks_union){.a = a, .b = b, .both = set};
    return set;
}

/* --- What can be reached without reading --- */

static void begin(wk_stacks_store *s) {
    assert(s->n_waiting == 0); /* finish leaves nothing */
    s->failed = WICK_OK;
    s->n_waiting = s->n_found = s->n_steps = 0;
    memset(s->has_base, 0, sizeof s->has_base);
}

/* Instruction at, with the stacks below it, belongs to the set. */
static void reach(wk_stacks_store *s, uint32_t at, wk_stacks *below) {
    if (!count_step(s)) return;
    if (at >= WK_STACK_BASE) {
        assert(at - WK_STACK_BASE <= WK_STACKS_MOST_CUT);
        s->has_base[at - WK_STACK_BASE] = true;
        return;
    }
    wk_stacks *const known = s->below[at];
    wk_stacks *const all = known ? unite(s, known, below) : below;
    if (!all || all == known) return;
    if (!known) s->found[s->n_found++] = at;
    s->below[at] = all;
    if (s->is_waiting[at]) return;
    s->is_waiting[at] = true;
    s->waiting[s->n_waiting++] = at;
}

static void follow(wk_stacks_store *s, uint32_t at) {
    assert(at < s->program->n && s->below[at]); /* whoever reaches it says what is below */
    const wk_instruction *const i = &s->program->code[at];
    wk_stacks *const below = s->below[at];
    switch ((wk_grammar_op)i->op) {
    case WK_GRAMMAR_SPLIT:
        reach(s, i->next, below);
        reach(s, i->other, below);
        break;
    case WK_GRAMMAR_CALL:
        if (i->next == 0) {
            reach(s, i->other, below); /* it returns to where this rule does */
        } else if (below->depth < MAX_DEPTH) {
            wk_stacks *const under = intern_one(s, i->next, below);
            if (under) reach(s, i->other, under);
        }
        break;
    case WK_GRAMMAR_RETURN:
        for (uint32_t k = 0; k < below->n; k++) reach(s, below->tops[k].at, below->tops[k].below);
        break;
    case WK_GRAMMAR_BYTE:
    case WK_GRAMMAR_TOKEN:
    case WK_GRAMMAR_FAIL: break;
    }
}

/* Shell's sort, with gaps of 3k + 1: sets are small, but need not be. */
static void sort_tops(wk_stack_top *tops, uint32_t n) {
    uint32_t gap = 1;
    while (gap < n / 3) gap = 3 * gap + 1;
    for (; gap > 0; gap /= 3) {
        for (uint32_t i = gap; i < n; i++) {
            const wk_stack_top moved = tops[i];
            uint32_t at = i;
            for (; at >= gap && tops[at - gap].at > moved.at; at -= gap) tops[at] = tops[at - gap];
            tops[at] = moved;
        }
    }
}

/* The place in a text that was reached. Leaves the scratch arrays clean, whatever happens. */
static wk_stacks *finish(wk_stacks_store *s) {
    while (s->n_waiting > 0) {
        const uint32_t at = s->waiting[--s->n_waiting];
        s->is_waiting[at] = false;
        if (s->failed == WICK_OK) follow(s, at);
    }
    uint32_t n = 0;
    for (uint32_t i = 0; i < s->n_found; i++) {
        const uint32_t at = s->found[i];
        const uint8_t op = s->program->code[at].op;
        if (op == WK_GRAMMAR_BYTE || op == WK_GRAMMAR_TOKEN)
            s->tops[n++] = (wk_stack_top){.at = at, .below = s->below[at]};
        s->below[at] = NULL;
    }
    sort_tops(s->tops, n);
    for (uint32_t i = 0; i < 1 + WK_STACKS_MOST_CUT; i++)
        if (s->has_base[i]) s->tops[n++] = (wk_stack_top){.at = WK_STACK_BASE + i};
    return s->failed == WICK_OK ? place(s, intern(s, s->tops, n)) : NULL;
}

/* --- The store --- */

static wick_status make_scratch(wk_stacks_store *s, wick_error *err) {
    const size_t n = s->program->n;
    s->below = wk_alloc_array(s->heap, n, sizeof *s->below);
    s->waiting = wk_alloc_array(s->heap, n, sizeof *s->waiting);
    s->is_waiting = wk_alloc_array(s->heap, n, sizeof *s->is_waiting);
    s->found = wk_alloc_array(s->heap, n, sizeof *s->found);
    s->tops = wk_alloc_array(s->heap, n + 1 + WK_STACKS_MOST_CUT, sizeof *s->tops);
    s->unions = wk_alloc_array(s->heap, WK_STACKS_UNIONS, sizeof *s->unions);
    if (s->below && s->waiting && s->is_waiting && s->found && s->tops && s->unions) return WICK_OK;
    return wk_fail_memory(err, n * sizeof *s->tops, "a grammar");
}

static wk_stacks *make_start(wk_stacks_store *s) {
    begin(s);
    s->empty = place(s, intern(s, NULL, 0));
    wk_stacks *const end = intern_one(s, WK_STACK_BASE, NULL);
    if (!s->empty || !end) return NULL;
    reach(s, s->program->start, end);
    return finish(s);
}

wick_status wk_stacks_store_make(wk_heap *heap, const wk_program *program, wk_stacks_store *out,
                                 wick_error *err) {
    *out = (wk_stacks_store){.program = program, .heap = heap};
    wk_arena_init(&out->arena, heap, 0);
    wick_status status = make_scratch(out, err);
    if (status == WICK_OK) {
        out->start = make_start(out);
        if (!out->start)
            status = out->failed == WICK_ERR_VALUE
                         ? wk_fail(err, WICK_ERR_VALUE, "the grammar is too ambiguous")
                         : wk_fail_memory(err, 0, "a grammar");
    }
    if (status != WICK_OK) wk_stacks_store_free(out);
    return status;
}

void wk_stacks_store_free(wk_stacks_store *store) {
    wk_stacks_store *const s = store;
    if (!s->heap) return;
    const size_t n = s->program->n;
    wk_free(s->heap, s->below, n * sizeof *s->below);
    wk_free(s->heap, s->waiting, n * sizeof *s->waiting);
    wk_free(s->heap, s->is_waiting, n * sizeof *s->is_waiting);
    wk_free(s->heap, s->found, n * sizeof *s->found);
    wk_free(s->heap, s->tops, (n + 1 + WK_STACKS_MOST_CUT) * sizeof *s->tops);
    wk_free(s->heap, s->unions, WK_STACKS_UNIONS * sizeof *s->unions);
    wk_free(s->heap, s->slots, s->n_slots * sizeof *s->slots);
    wk_arena_release(&s->arena);
    *s = (wk_stacks_store){0};
}

size_t wk_stacks_store_size(const wk_stacks_store *store) {
    return (size_t)store->arena.bytes + store->n_slots * sizeof *store->slots;
}

/* set, of another store, in this one. */
static wk_stacks *move(wk_stacks_store *s, wk_stacks *set) {
    if (set->moved) return set->moved;
    const size_t size = set->n * sizeof(wk_stack_top);
    wk_stack_top *const tops = wk_alloc(s->heap, size);
    if (!tops && size > 0) return fail(s, WICK_ERR_OUT_OF_MEMORY);
    bool is_done = true;
    for (uint32_t i = 0; i < set->n && is_done; i++) {
        tops[i] = set->tops[i];
        if (tops[i].below) is_done = (tops[i].below = move(s, tops[i].below)) != NULL;
    }
    if (is_done) set->moved = intern(s, tops, set->n);
    wk_free(s->heap, tops, size);
    return set->moved;
}

wk_stacks *wk_stacks_store_forget(wk_stacks_store *store, wk_stacks *set) {
    wk_stacks_store fresh;
    if (wk_stacks_store_make(store->heap, store->program, &fresh, NULL) != WICK_OK)
        return fail(store, WICK_ERR_OUT_OF_MEMORY);
    wk_stacks *const moved = place(&fresh, move(&fresh, set));
    if (!moved) {
        for (size_t i = 0; i < store->n_slots; i++)
            if (store->slots[i]) store->slots[i]->moved = NULL;
        wk_stacks_store_free(&fresh);
        return fail(store, WICK_ERR_OUT_OF_MEMORY);
    }
    wk_stacks_store_free(store);
    *store = fresh;
    return moved;
}

/* --- Moves --- */

wk_stacks *wk_stacks_read(wk_stacks_store *store, wk_stacks *set, uint32_t byte_class) {
    assert(set->next && byte_class < store->program->n_classes);
    const uint8_t byte = store->program->byte_of[byte_class];
    begin(store);
    for (uint32_t i = 0; i < set->n && set->tops[i].at < WK_STACK_BASE; i++) {
        const wk_instruction *const at = &store->program->code[set->tops[i].at];
        if (at->op == WK_GRAMMAR_BYTE && byte >= at->first && byte <= at->last)
            reach(store, at->next, set->tops[i].below);
    }
    return set->next[byte_class] = finish(store);
}

wk_stacks *wk_stacks_read_token(wk_stacks_store *store, const wk_stacks *set, uint32_t id) {
    begin(store);
    for (uint32_t i = 0; i < set->n && set->tops[i].at < WK_STACK_BASE; i++) {
        const wk_instruction *const at = &store->program->code[set->tops[i].at];
        if (at->op == WK_GRAMMAR_TOKEN && (at->other == id) != at->is_negated)
            reach(store, at->next, set->tops[i].below);
    }
    return finish(store);
}

wk_stacks *wk_stacks_join(wk_stacks_store *store, wk_stacks *a, wk_stacks *b) {
    begin(store);
    return place(store, unite(store, a, b));
}

wk_stacks *wk_stacks_resume(wk_stacks_store *store, const wk_stacks *set) {
    begin(store);
    for (uint32_t i = 0; i < set->n; i++) reach(store, set->tops[i].at, set->tops[i].below);
    return finish(store);
}

/* What stands for set where it is cut off. */
static wk_stacks *cut_off(wk_stacks_store *s, wk_stacks *set, wk_stacks_rest *rest) {
    assert(rest->n <= WK_STACKS_MOST_CUT);
    uint32_t i = 0;
    while (i < rest->n && rest->sets[i] != set) i++;
    if (i == WK_STACKS_MOST_CUT) return s->empty;
    rest->sets[i] = set;
    if (i == rest->n) rest->n++;
    return intern_one(s, WK_STACK_BASE + 1 + i, NULL);
}

static wk_stacks *cut(wk_stacks_store *s, const wk_stacks *set, uint32_t depth,
                      wk_stacks_rest *rest) {
    const size_t size = set->n * sizeof(wk_stack_top);
    wk_stack_top *const tops = wk_alloc(s->heap, size);
    if (!tops && size > 0) return fail(s, WICK_ERR_OUT_OF_MEMORY);
    bool is_done = true, is_full = false;
    for (uint32_t i = 0; i < set->n && is_done && !is_full; i++) {
        wk_stacks *const below = set->tops[i].below;
        tops[i] = set->tops[i];
        if (!below) continue;
        tops[i].below = depth > 1 ? cut(s, below, depth - 1, rest) : cut_off(s, below, rest);
        is_done = tops[i].below != NULL;
        is_full = tops[i].below == s->empty;
    }
    wk_stacks *const result = !is_done ? NULL : is_full ? s->empty : intern(s, tops, set->n);
    wk_free(s->heap, tops, size);
    return result;
}

wk_stacks *wk_stacks_cut(wk_stacks_store *store, const wk_stacks *set, uint32_t depth,
                         wk_stacks_rest *rest) {
    begin(store);
    rest->n = 0;
    return place(store, cut(store, set, depth, rest));
}

bool wk_stacks_may_end(const wk_stacks *set) {
    for (uint32_t i = 0; i < set->n; i++)
        if (set->tops[i].at == WK_STACK_BASE) return true;
    return false;
}
