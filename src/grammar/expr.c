/* grammar/expr.c: see expr.h. */
#include "grammar/expr.h"

#include <string.h>

enum { LAST_CODE = 0x10FFFF, FIRST_SURROGATE = 0xD800, LAST_SURROGATE = 0xDFFF };

static void *take(wk_rules *rules, size_t n, size_t size) {
    void *const memory = rules->failed ? NULL : wk_arena_array(rules->arena, n, size);
    if (!memory) rules->failed = true;
    return memory;
}

static wk_expr *make(wk_rules *rules, wk_expr_kind kind) {
    wk_expr *const expr = take(rules, 1, sizeof *expr);
    if (expr) expr->kind = kind;
    return expr;
}

uint32_t wk_rules_add(wk_rules *rules, wk_str name) {
    if (rules->n == rules->capacity) {
        const uint32_t capacity = rules->capacity ? 2 * rules->capacity : 16;
        wk_rule *const items = take(rules, capacity, sizeof *items);
        if (!items) return 0;
        if (rules->n > 0) memcpy(items, rules->items, rules->n * sizeof *items);
        rules->items = items;
        rules->capacity = capacity;
    }
    rules->items[rules->n] = (wk_rule){.name = name};
    return rules->n++;
}

wk_expr *wk_expr_text(wk_rules *rules, wk_str text) {
    wk_expr *const expr = make(rules, WK_EXPR_TEXT);
    char *const copy = take(rules, text.size, 1);
    if (!expr || !copy) return NULL;
    if (text.size > 0) memcpy(copy, text.text, text.size);
    expr->text = (wk_str){copy, text.size};
    return expr;
}

wk_expr *wk_expr_word(wk_rules *rules, const char *terminated) {
    return wk_expr_text(rules, wk_str_of(terminated));
}

/* --- Classes --- */

static void sort_ranges(wk_code_range *ranges, size_t n) {
    for (size_t i = 1; i < n; i++) {
        const wk_code_range moved = ranges[i];
        size_t at = i;
        for (; at > 0 && ranges[at - 1].first > moved.first; at--) ranges[at] = ranges[at - 1];
        ranges[at] = moved;
    }
}

/* Sorted ranges: those that touch become one. Returns how many are left. */
static size_t join_ranges(wk_code_range *ranges, size_t n) {
    size_t count = 0;
    for (size_t i = 0; i < n; i++) {
        if (count > 0 && ranges[i].first <= ranges[count - 1].last + 1) {
            if (ranges[i].last > ranges[count - 1].last) ranges[count - 1].last = ranges[i].last;
        } else {
            ranges[count++] = ranges[i];
        }
    }
    return count;
}

/* What lies between n joined ranges. out: room for n + 1. */
static size_t negate_ranges(const wk_code_range *ranges, size_t n, wk_code_range *out) {
    size_t count = 0;
    uint32_t next = 0;
    for (size_t i = 0; i < n; i++) {
        if (ranges[i].first > next) out[count++] = (wk_code_range){next, ranges[i].first - 1};
        next = ranges[i].last + 1;
    }
    if (next <= LAST_CODE) out[count++] = (wk_code_range){next, LAST_CODE};
    return count;
}

/* Cuts the surrogates out of n joined ranges. out: room for n + 1. */
static size_t drop_surrogates(const wk_code_range *ranges, size_t n, wk_code_range *out) {
    size_t count = 0;
    for (size_t i = 0; i < n; i++) {
        const wk_code_range r = ranges[i];
        if (r.first < FIRST_SURROGATE)
            out[count++] = (wk_code_range){
                r.first, r.last < FIRST_SURROGATE ? r.last : (uint32_t)FIRST_SURROGATE - 1};
        if (r.last > LAST_SURROGATE)
            out[count++] = (wk_code_range){
                r.first > LAST_SURROGATE ? r.first : (uint32_t)LAST_SURROGATE + 1, r.last};
    }
    return count;
}

wk_expr *wk_expr_class(wk_rules *rules, const wk_code_range *ranges, size_t n, bool is_negated) {
    wk_expr *const expr = make(rules, WK_EXPR_CLASS);
    wk_code_range *const sorted = take(rules, n, sizeof *sorted);
    wk_code_range *const negated = take(rules, n + 1, sizeof *negated);
    wk_code_range *const kept = take(rules, n + 2, sizeof *kept);
    if (!expr || !sorted || !negated || !kept) return NULL;
    if (n > 0) memcpy(sorted, ranges, n * sizeof *sorted);
    sort_ranges(sorted, n);
    n = join_ranges(sorted, n);
    if (is_negated) n = negate_ranges(sorted, n, negated);
    expr->n_ranges = drop_surrogates(is_negated ? negated : sorted, n, kept);
    expr->ranges = kept;
    return expr;
}

/* --- The rest --- */

wk_expr *wk_expr_list(wk_rules *rules, wk_expr_kind kind) { return make(rules, kind); }

void wk_expr_add(wk_expr *list, wk_expr *part) {
    if (!list || !part) return;
    part->previous = list->last;
    if (list->last)
        list->last->next = part;
    else
        list->first = part;
    list->last = part;
}

wk_expr *wk_expr_repeat(wk_rules *rules, wk_expr *part, uint32_t least, uint32_t most) {
    wk_expr *const expr = make(rules, WK_EXPR_REPEAT);
    if (!expr) return NULL;
    expr->least = least;
    expr->most = most;
    wk_expr_add(expr, part);
    return expr;
}

wk_expr *wk_expr_rule(wk_rules *rules, uint32_t id) {
    wk_expr *const expr = make(rules, WK_EXPR_RULE);
    if (expr) expr->id = id;
    return expr;
}

wk_expr *wk_expr_token(wk_rules *rules, uint32_t id, bool is_negated) {
    wk_expr *const expr = make(rules, WK_EXPR_TOKEN);
    if (!expr) return NULL;
    expr->id = id;
    expr->is_negated = is_negated;
    return expr;
}
