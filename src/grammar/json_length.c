/* grammar/json_length.c: patterns whose strings have a bounded length: repetitions get bounds until
 * every string is within them. "^[a-z]+-[a-z]*$" of at most 9 characters: [a-z]{1,5}-[a-z]{0,3}. */
#include "grammar/json_pattern.h"

#define NO_LIMIT ((uint64_t)WK_REPEAT_FOREVER)

typedef struct lengths {
    uint64_t least, most; /* characters; NO_LIMIT at most */
} lengths;

static uint64_t least_of(uint64_t a, uint64_t b) { return a < b ? a : b; }
static uint64_t most_of(uint64_t a, uint64_t b) { return a > b ? a : b; }

/* What stands for a character is a choice of its forms; choices of a pattern are of sequences. */
static bool is_character(const wk_expr *e) {
    return e->kind == WK_EXPR_CHOICE && e->first && e->first->kind != WK_EXPR_SEQUENCE;
}

static lengths measure(const wk_expr *e) {
    lengths all = {0, 0};
    if (is_character(e)) return (lengths){1, 1};
    if (e->kind == WK_EXPR_CHOICE) all.least = NO_LIMIT;
    for (const wk_expr *part = e->first; part; part = part->next) {
        const lengths one = measure(part);
        if (e->kind == WK_EXPR_CHOICE) {
            all.least = least_of(all.least, one.least);
            all.most = most_of(all.most, one.most);
        } else if (e->kind == WK_EXPR_REPEAT) {
            all.least = least_of(NO_LIMIT, one.least * e->least);
            all.most = least_of(NO_LIMIT, one.most * e->most);
        } else {
            all.least = least_of(NO_LIMIT, all.least + one.least);
            all.most = least_of(NO_LIMIT, all.most + one.most);
        }
    }
    return all;
}

static bool limit(wk_expr *e, uint64_t least, uint64_t most);

static bool limit_choice(wk_expr *e, uint64_t least, uint64_t most) {
    wk_expr *part = e->first;
    e->first = e->last = NULL;
    while (part) {
        wk_expr *const next = part->next;
        part->next = NULL;
        if (limit(part, least, most)) wk_expr_add(e, part);
        part = next;
    }
    return e->first != NULL;
}

/* What is free beyond the least lengths is shared out, from the first part on. */
static bool limit_sequence(wk_expr *e, uint64_t least, uint64_t most) {
    const lengths all = measure(e);
    uint64_t free = most == NO_LIMIT ? most : most - all.least, n = 0;
    uint64_t need = least > all.least ? least - all.least : 0;
    for (const wk_expr *part = e->first; part; part = part->next) {
        const lengths one = measure(part);
        n += one.most > one.least;
    }
    for (wk_expr *part = e->first; part; part = part->next) {
        const lengths one = measure(part);
        if (one.most == one.least) continue;
        const uint64_t share = most == NO_LIMIT ? free : free / n + (free % n != 0);
        const uint64_t room = least_of(share, one.most - one.least);
        const uint64_t more = least_of(need, room);
        if (!limit(part, one.least + more, most == NO_LIMIT ? most : one.least + room))
            return false;
        if (most != NO_LIMIT) free -= room;
        need -= more;
        n--;
    }
    return need == 0;
}

static bool limit_repeat(wk_expr *e, uint64_t least, uint64_t most) {
    lengths one = measure(e->first);
    const uint64_t each = most == NO_LIMIT ? most : most / most_of(e->least, 1);
    if (!limit(e->first, most_of(one.least, least > 0), least_of(one.most, each))) return false;
    one = measure(e->first);
    if (one.most == 0) return least == 0;
    if (most != NO_LIMIT) e->most = (uint32_t)least_of(e->most, most / one.most);
    if (least > 0) e->least = (uint32_t)most_of(e->least, (least + one.least - 1) / one.least);
    return e->least <= e->most;
}

static bool limit(wk_expr *e, uint64_t least, uint64_t most) {
    const lengths now = measure(e);
    if (now.least > most || now.most < least) return false;
    if (now.least >= least && now.most <= most) return true;
    if (e->kind == WK_EXPR_REPEAT) return limit_repeat(e, least, most);
    return e->kind == WK_EXPR_CHOICE ? limit_choice(e, least, most)
                                     : limit_sequence(e, least, most);
}

bool wk_json_limit(wk_expr *pattern, uint32_t least, uint32_t most) {
    return limit(pattern, least, most);
}
