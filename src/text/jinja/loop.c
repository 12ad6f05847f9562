/* text/jinja/loop.c: for, and the variable loop. */
#include "text/jinja/state.h"

#include <stdio.h>

struct wk_jloop {
    const wk_jnode *node;
    wk_jscope *outside;
    wk_jgenerator *generator; /* what is looped over; NULL: */
    wk_jlist source;          /* a list, of which n_tested passed the condition or not */
    size_t n_tested;
    wk_jlist accepted; /* what passed */
    size_t index;      /* of the current one */
    int64_t depth;     /* of recursion, from 0 */
    wk_jvalue changed; /* what loop.changed() was last given */
};

/* Whether an item passes the loop's condition. */
static wick_status test_item(wk_jinja *j, const wk_jloop *loop, wk_jvalue item, bool *passes) {
    wk_jscope *const scope = j->scope;
    wk_jvalue condition;
    WK_TRY(wk_jscope_push(j, loop->outside));
    WK_TRY(wk_jassign_target(j, loop->node->first, item));
    WK_TRY(wk_jeval(j, loop->node->third, &condition));
    *passes = wk_jtruth(&condition);
    wk_jscope_pop(j, scope);
    return WICK_OK;
}

/* Looks for items until n have passed or there are no more: as late as the template can tell, since
 * the condition may depend on what the body does. */
static wick_status look_ahead(wk_jinja *j, wk_jloop *loop, size_t n) {
    while (loop->accepted.n < n) {
        wk_jvalue item;
        bool found = loop->n_tested < loop->source.n, passes = true;
        if (loop->generator != NULL)
            WK_TRY(wk_jnext(j, loop->generator, &item, &found));
        else if (found)
            item = loop->source.items[loop->n_tested++];
        if (!found) return WICK_OK;
        if (loop->node->third != NULL) WK_TRY(test_item(j, loop, item, &passes));
        if (passes) WK_TRY(wk_jlist_push(j, &loop->accepted, item));
    }
    return WICK_OK;
}

/* Body and else of one loop, in the builder of now. */
static wick_status run_loop(wk_jinja *j, wk_jloop *loop) {
    wk_jscope *const scope = j->scope;
    const wk_jnode *const node = loop->node;
    const wk_jvalue variable = {.kind = WK_J_LOOP, .loop = loop};
    bool is_complete = false; /* a round was: else is not wanted */
    bool ends = false;
    for (loop->index = 0; !ends; loop->index++) {
        WK_TRY(look_ahead(j, loop, loop->index + 1));
        if (loop->index >= loop->accepted.n) break;
        WK_TRY(wk_jscope_push(j, loop->outside));
        WK_TRY(wk_jassign(j, wk_str_of("loop"), variable));
        WK_TRY(wk_jassign_target(j, node->first, loop->accepted.items[loop->index]));
        WK_TRY(wk_jexec(j, node->list));
        wk_jscope_pop(j, scope);
        is_complete |= j->flow == WK_J_NEXT;
        ends = j->flow == WK_J_BREAK;
        j->flow = WK_J_NEXT;
    }
    if (!is_complete && node->other != NULL) {
        WK_TRY(wk_jscope_push(j, loop->outside));
        WK_TRY(wk_jexec(j, node->other));
        wk_jscope_pop(j, scope);
    }
    return WICK_OK;
}

/* depth: of recursion. */
static wick_status start_loop(wk_jinja *j, const wk_jnode *node, wk_jscope *outside,
                              wk_jvalue iterable, int64_t depth) {
    wk_jloop *const loop = wk_jalloc(j, 1, sizeof *loop);
    if (loop == NULL) return WICK_ERR_VALUE;
    *loop = (wk_jloop){.node = node, .outside = outside, .depth = depth};
    if (iterable.kind == WK_J_GENERATOR)
        loop->generator = iterable.generator;
    else
        WK_TRY(wk_jitems(j, &iterable, &loop->source));
    if (node->third == NULL) { /* all pass */
        loop->accepted = loop->source;
        loop->n_tested = loop->source.n;
    }
    if (node->third != NULL || node->is_recursive) wk_jscope_keep(outside);
    return run_loop(j, loop);
}

wick_status wk_jexec_for(wk_jinja *j, const wk_jnode *node) {
    wk_jvalue iterable;
    WK_TRY(wk_jeval(j, node->second, &iterable));
    return start_loop(j, node, j->scope, iterable, 0);
}

wick_status wk_jcall_loop(wk_jinja *j, wk_jloop *loop, const wk_jargs *args, wk_jvalue *out) {
    if (!loop->node->is_recursive)
        return wk_jfail(j, "The loop must have the 'recursive' marker to be called.");
    if (args->n != 1 || wk_jn_named(args) > 0)
        return wk_jfail(j, "loop() takes one argument (%zu given)", args->n + wk_jn_named(args));
    wk_jbuilder text = wk_jbuilder_begin(j), *const before = j->out;
    WK_TRY(wk_jenter(j));
    j->out = &text;
    WK_TRY(start_loop(j, loop->node, loop->outside, args->values[0], loop->depth + 1));
    j->out = before;
    j->depth--;
    return wk_jbuilder_end(&text, out);
}

/* ---- Attributes ---- */

static wick_status neighbour(wk_jinja *j, wk_jloop *loop, bool is_next, wk_jvalue *out) {
    if (is_next) WK_TRY(look_ahead(j, loop, loop->index + 2));
    const bool exists = is_next ? loop->index + 1 < loop->accepted.n : loop->index > 0;
    if (exists) {
        *out = loop->accepted.items[is_next ? loop->index + 1 : loop->index - 1];
        return WICK_OK;
    }
    return wk_jundefined(j, NULL, wk_jtext_of(is_next ? "loop.nextitem" : "loop.previtem"), out);
}

typedef enum attribute {
    INDEX,
    INDEX0,
    REVINDEX,
    REVINDEX0,
    LENGTH,
    DEPTH,
    DEPTH0,
    FIRST,
    LAST,
    PREVITEM,
    NEXTITEM,
    N_ATTRIBUTES,
} attribute;

wick_status wk_jloop_attribute(wk_jinja *j, wk_jloop *loop, wk_str name, wk_jvalue *out) {
    static const char *const names[N_ATTRIBUTES] = {"index",  "index0",   "revindex", "revindex0",
                                                    "length", "depth",    "depth0",   "first",
                                                    "last",   "previtem", "nextitem"};
    size_t which = 0;
    while (which < N_ATTRIBUTES && !wk_str_is(name, names[which])) which++;
    if (which == N_ATTRIBUTES) return WICK_OK;
    const bool needs_all = which == REVINDEX || which == REVINDEX0 || which == LENGTH;
    if (needs_all || which == LAST)
        WK_TRY(look_ahead(j, loop, needs_all ? SIZE_MAX : loop->index + 2));
    const int64_t index = (int64_t)loop->index, n = (int64_t)loop->accepted.n;
    switch ((attribute)which) {
    case INDEX: *out = wk_jinteger(index + 1); break;
    case INDEX0: *out = wk_jinteger(index); break;
    case REVINDEX: *out = wk_jinteger(n - index); break;
    case REVINDEX0: *out = wk_jinteger(n - index - 1); break;
    case LENGTH: *out = wk_jinteger(n); break;
    case DEPTH: *out = wk_jinteger(loop->depth + 1); break;
    case DEPTH0: *out = wk_jinteger(loop->depth); break;
    case FIRST: *out = wk_jbool(index == 0); break;
    case LAST: *out = wk_jbool(index + 1 >= n); break;
    default: return neighbour(j, loop, which == NEXTITEM, out);
    }
    return WICK_OK;
}

static wick_status loop_cycle(wk_jinja *j, const wk_jargs *args, wk_jvalue *out) {
    if (args->n == 0) return wk_jfail(j, "no items for cycling given");
    *out = args->values[args->self->loop->index % args->n];
    return WICK_OK;
}

/* Whether the arguments differ from those of the last call. */
static wick_status loop_changed(wk_jinja *j, const wk_jargs *args, wk_jvalue *out) {
    wk_jloop *const loop = args->self->loop;
    wk_jvalue now;
    bool equal = false;
    WK_TRY(wk_jlist_make(j, WK_J_TUPLE, args->n, &now));
    for (size_t i = 0; i < args->n; i++) WK_TRY(wk_jlist_push(j, now.list, args->values[i]));
    if (loop->changed.kind != WK_J_ABSENT) WK_TRY(wk_jequal(j, &now, &loop->changed, &equal));
    loop->changed = now;
    *out = wk_jbool(!equal);
    return WICK_OK;
}

static const wk_jbuiltin methods[] = {
    {"cycle", loop_cycle, NULL, 0, WK_J_COUNTS},
    {"changed", loop_changed, NULL, 0, WK_J_COUNTS},
};
const wk_jtable wk_jloop_methods = {methods, WK_COUNT(methods)};

void wk_jput_loop(wk_jbuilder *to, const wk_jloop *loop) {
    char text[64];
    snprintf(text, sizeof text, "<LoopContext %zu/%zu>", loop->index + 1, loop->accepted.n);
    wk_jput_word(to, text);
}
