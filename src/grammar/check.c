/* grammar/check.c: finds left recursion: a rule that calls itself before a byte has been read
 * would be called for ever.
 *
 * Where there is none, the calls that a rule makes before it has read anything form no circle, so
 * one walk down them is enough to know also which rules can match nothing. */
#include "grammar/program.h"

#include "core/map.h"

enum { MAX_CALLS = 1000 };

enum { UNKNOWN, UNDER_WAY, READS, CAN_BE_EMPTY };

typedef struct checker {
    const wk_program *program;
    const wk_rules *rules;
    const uint32_t *starts;
    wk_map64 rule_at;  /* its first instruction -> the rule */
    uint8_t *states;   /* [rules] */
    bool *seen;        /* [instructions] */
    uint32_t *waiting; /* [instructions] a stack of those that can be reached, of all rules */
    uint32_t n_waiting;
    int depth;
    wick_error *err;
} checker;

static wick_status fail_rule(const checker *c, uint32_t rule, const char *what) {
    const char *const owner = rule < c->rules->n ? "the rule" : "a repetition";
    const wk_str name = rule < c->rules->n ? c->rules->items[rule].name : (wk_str){"", 0};
    return wk_fail(c->err, WICK_ERR_VALUE, "the grammar: %s '%s' %s", owner, wk_str_show(name).text,
                   what);
}

static void reach(checker *c, uint32_t at) {
    if (c->seen[at]) return;
    c->seen[at] = true;
    c->waiting[c->n_waiting++] = at;
}

static wick_status check_rule(checker *c, uint32_t rule);

/* What a call stands before: its rule, and what follows where the rule can match nothing. */
static wick_status check_call(checker *c, const wk_instruction *call) {
    uint32_t rule = 0;
    (void)wk_map64_get(&c->rule_at, call->other, &rule);
    if (c->states[rule] == UNDER_WAY)
        return fail_rule(c, rule,
                         "is left-recursive: it can call itself before it has read anything; put "
                         "what it begins with first, like a ::= b (\"+\" b)*");
    if (c->states[rule] == UNKNOWN) WK_TRY(check_rule(c, rule));
    if (c->states[rule] == CAN_BE_EMPTY) reach(c, call->next);
    return WICK_OK;
}

static wick_status check_rule(checker *c, uint32_t rule) {
    if (c->depth == MAX_CALLS) return fail_rule(c, rule, "is called too deeply");
    c->depth++;
    c->states[rule] = UNDER_WAY;
    bool can_be_empty = c->starts[rule] == 0;
    const uint32_t base = c->n_waiting;
    if (!can_be_empty) reach(c, c->starts[rule]);
    while (c->n_waiting > base) {
        const wk_instruction *const at = &c->program->code[c->waiting[--c->n_waiting]];
        if (at->op == WK_GRAMMAR_SPLIT) {
            can_be_empty |= at->next == 0 || at->other == 0;
            if (at->next != 0) reach(c, at->next);
            if (at->other != 0) reach(c, at->other);
        } else if (at->op == WK_GRAMMAR_CALL) {
            WK_TRY(check_call(c, at));
            uint32_t called = 0;
            (void)wk_map64_get(&c->rule_at, at->other, &called);
            can_be_empty |= at->next == 0 && c->states[called] == CAN_BE_EMPTY;
        }
    }
    c->states[rule] = can_be_empty ? CAN_BE_EMPTY : READS;
    c->depth--;
    return WICK_OK;
}

static wick_status check_all(checker *c, uint32_t n) {
    for (uint32_t i = 0; i < n; i++)
        if (wk_map64_put(&c->rule_at, c->starts[i], i) != WICK_OK)
            return wk_fail_memory(c->err, n * sizeof(uint64_t), "a grammar");
    c->seen[0] = true; /* where rules return is looked at one by one */
    for (uint32_t i = 0; i < n; i++)
        if (c->states[i] == UNKNOWN) WK_TRY(check_rule(c, i));
    return WICK_OK;
}

wick_status wk_program_check(const wk_program *program, const wk_rules *rules,
                             const uint32_t *starts, uint32_t n, wick_error *err) {
    wk_heap *const heap = program->heap;
    checker c = {.program = program, .rules = rules, .starts = starts, .err = err};
    wk_map64_init(&c.rule_at, heap);
    c.states = wk_alloc_array(heap, n, sizeof *c.states);
    c.seen = wk_alloc_array(heap, program->n, sizeof *c.seen);
    c.waiting = wk_alloc_array(heap, program->n, sizeof *c.waiting);
    const wick_status status =
        c.states && c.seen && c.waiting
            ? check_all(&c, n)
            : wk_fail_memory(err, program->n * sizeof *c.waiting, "a grammar");
    wk_free(heap, c.states, n * sizeof *c.states);
    wk_free(heap, c.seen, program->n * sizeof *c.seen);
    wk_free(heap, c.waiting, program->n * sizeof *c.waiting);
    wk_map64_release(&c.rule_at);
    return status;
}
