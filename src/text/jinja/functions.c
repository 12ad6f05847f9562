/* text/jinja/functions.c: what templates can call without being given it. */
#include "text/jinja/format.h"
#include "text/jinja/state.h"

#include <string.h>

enum { MAX_RANGE = 100000 }; /* items, as in Jinja's sandbox */

static wick_status range_arguments(wk_jinja *j, const wk_jargs *args, int64_t bounds[3]) {
    if (wk_jn_named(args) > 0) return wk_jfail(j, "range() takes no keyword arguments");
    if (args->n == 0 || args->n > 3)
        return wk_jfail(j, "range expected %s, got %zu",
                        args->n == 0 ? "at least 1 argument" : "at most 3 arguments", args->n);
    for (size_t i = 0; i < args->n; i++)
        WK_TRY(wk_jarg_integer(j, args, i, 0, &bounds[args->n == 1 ? 1 : i]));
    return bounds[2] != 0 ? WICK_OK : wk_jfail(j, "range() arg 3 must not be zero");
}

static wick_status g_range(wk_jinja *j, const wk_jargs *args, wk_jvalue *out) {
    int64_t bounds[3] = {0, 0, 1};
    WK_TRY(range_arguments(j, args, bounds));
    const int64_t step = bounds[2];
    const bool is_empty = step > 0 ? bounds[1] <= bounds[0] : bounds[1] >= bounds[0];
    const uint64_t distance = step > 0 ? (uint64_t)bounds[1] - (uint64_t)bounds[0]
                                       : (uint64_t)bounds[0] - (uint64_t)bounds[1];
    const uint64_t stride = step > 0 ? (uint64_t)step : 0 - (uint64_t)step;
    const uint64_t n = is_empty ? 0 : (distance - 1) / stride + 1;
    if (n > MAX_RANGE)
        return wk_jfail(j, "Range too big. The sandbox blocks ranges larger than MAX_RANGE (%d).",
                        MAX_RANGE);
    wk_jrange *const range = wk_jalloc(j, 1, sizeof *range);
    if (range == NULL) return WICK_ERR_VALUE;
    *range = (wk_jrange){.first = bounds[0], .end = bounds[1], .step = step, .n = (size_t)n};
    *out = (wk_jvalue){.kind = WK_J_RANGE, .range = range};
    return WICK_OK;
}

/* From a dict or pairs, and keywords. */
static wick_status fill_dict(wk_jinja *j, const wk_jargs *args, wk_jdict *to) {
    if (args->n > 1) return wk_jfail(j, "dict expected at most 1 argument, got %zu", args->n);
    if (args->n == 1) {
        wk_jvalue from = args->values[0];
        wk_jlist items, pair;
        if (from.kind == WK_J_DICT) from.kind = WK_J_ITEMS;
        WK_TRY(wk_jitems(j, &from, &items));
        for (size_t i = 0; i < items.n; i++) {
            wk_jvalue item = items.items[i];
            WK_TRY(wk_jitems(j, &item, &pair));
            if (pair.n != 2)
                return wk_jfail(j,
                                "dictionary update sequence element #%zu has length %zu; 2 is "
                                "required",
                                i, pair.n);
            WK_TRY(wk_jdict_set(j, to, pair.items[0], pair.items[1]));
        }
    }
    for (size_t i = 0; i < wk_jn_named(args); i++) {
        const wk_jentry *const entry = &args->named->entries[i];
        WK_TRY(wk_jdict_set(j, to, entry->key, entry->value));
    }
    return WICK_OK;
}

static wick_status g_dict(wk_jinja *j, const wk_jargs *args, wk_jvalue *out) {
    WK_TRY(wk_jdict_make(j, WK_J_DICT, out));
    return fill_dict(j, args, out->dict);
}

wick_status wk_jcheck_space_name(wk_jinja *j, const wk_jvalue *name) {
    if (name->kind != WK_J_STRING || name->string.size == 0 || name->string.text[0] != '_')
        return WICK_OK;
    return wk_jfail(j, "a namespace takes no attribute that begins with '_': '%s'",
                    wk_str_show(wk_jtext_str(name->string)).text);
}

static wick_status g_namespace(wk_jinja *j, const wk_jargs *args, wk_jvalue *out) {
    WK_TRY(wk_jdict_make(j, WK_J_NAMESPACE, out));
    WK_TRY(fill_dict(j, args, out->dict));
    for (size_t i = 0; i < out->dict->n; i++) {
        WK_TRY(wk_jwork(j, 1));
        WK_TRY(wk_jcheck_space_name(j, &out->dict->entries[i].key));
    }
    return WICK_OK;
}

static wick_status g_raise(wk_jinja *j, const wk_jargs *args, wk_jvalue *out) {
    (void)out;
    wk_jtext message;
    WK_TRY(wk_jarg_text(j, args, 0, NULL, &message));
    j->failure = WICK_ERR_VALUE;
    return wk_fail(j->err, WICK_ERR_VALUE, "%.*s", (int)message.size, message.text);
}

static wick_status g_strftime_now(wk_jinja *j, const wk_jargs *args, wk_jvalue *out) {
    if (args->values[0].kind != WK_J_STRING)
        return wk_jfail(j, "strftime() argument 1 must be str, not %s",
                        wk_jtype_name(&args->values[0]));
    wk_jbuilder made = wk_jbuilder_begin(j);
    wk_jput_time(&made, args->values[0].string, &j->desc->now);
    return wk_jbuilder_end(&made, out);
}

/* ---- cycler and joiner ---- */

static wick_status make_cycle(wk_jinja *j, wk_jkind kind, const wk_jargs *args, wk_jvalue *out) {
    wk_jcycle *const cycle = wk_jalloc(j, 1, sizeof *cycle);
    if (cycle == NULL) return WICK_ERR_VALUE;
    *cycle = (wk_jcycle){.at = 0};
    for (size_t i = 0; i < args->n; i++) WK_TRY(wk_jlist_push(j, &cycle->items, args->values[i]));
    *out = (wk_jvalue){.kind = kind, .cycle = cycle};
    return WICK_OK;
}

static wick_status g_cycler(wk_jinja *j, const wk_jargs *args, wk_jvalue *out) {
    if (args->n == 0 || wk_jn_named(args) > 0)
        return wk_jfail(j, "at least one item has to be provided");
    return make_cycle(j, WK_J_CYCLER, args, out);
}

static wick_status g_joiner(wk_jinja *j, const wk_jargs *args, wk_jvalue *out) {
    const wk_jvalue comma = wk_jliteral(", ");
    const wk_jargs separator = {.values = wk_jhas(args, 0) ? args->values : &comma, .n = 1};
    return make_cycle(j, WK_J_JOINER, &separator, out);
}

static wick_status m_next(wk_jinja *j, const wk_jargs *args, wk_jvalue *out) {
    (void)j;
    wk_jcycle *const cycle = args->self->cycle;
    *out = cycle->items.items[cycle->at];
    cycle->at = (cycle->at + 1) % cycle->items.n;
    return WICK_OK;
}

static wick_status m_reset(wk_jinja *j, const wk_jargs *args, wk_jvalue *out) {
    (void)j;
    args->self->cycle->at = 0;
    *out = wk_jnone();
    return WICK_OK;
}

static const wk_jbuiltin cycler_methods[] = {
    {"next", m_next, "", 0, WK_J_COUNTS},
    {"reset", m_reset, "", 0, WK_J_COUNTS},
};
const wk_jtable wk_jcycler_methods = {cycler_methods, WK_COUNT(cycler_methods)};

static wick_status g_lipsum(wk_jinja *j, const wk_jargs *args, wk_jvalue *out) {
    static const char text[] = "Lorem ipsum dolor sit amet, consectetur adipiscing elit.";
    int64_t n;
    WK_TRY(wk_jarg_integer(j, args, 0, 5, &n));
    wk_jbuilder made = wk_jbuilder_begin(j);
    for (int64_t i = 0; i < n && made.status == WICK_OK; i++) {
        if (i > 0) wk_jput_word(&made, "\n\n");
        wk_jput_word(&made, text);
    }
    return wk_jbuilder_end(&made, out);
}

static const wk_jbuiltin functions[] = {
    {"range", g_range, NULL, 0, WK_J_COUNTS},
    {"dict", g_dict, NULL, 0, WK_J_COUNTS},
    {"namespace", g_namespace, NULL, 0, WK_J_COUNTS},
    {"cycler", g_cycler, NULL, 0, WK_J_COUNTS},
    {"joiner", g_joiner, "sep", 0, WK_J_COUNTS},
    {"lipsum", g_lipsum, "n html min max", 0, WK_J_READS_ALL},
    {"raise_exception", g_raise, "message", 1, WK_J_READS_ALL},
    {"strftime_now", g_strftime_now, "format", 1, WK_J_READS_ALL},
};
const wk_jtable wk_jfunction_table = {functions, WK_COUNT(functions)};
