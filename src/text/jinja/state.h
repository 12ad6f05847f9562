/* text/jinja/state.h: one rendering: its limits, scopes and failures, and how functions are called.
 */
#ifndef WK_TEXT_JINJA_STATE_H
#define WK_TEXT_JINJA_STATE_H

#include "core/arena.h"
#include "text/jinja/jinja.h"
#include "text/jinja/node.h"
#include "text/jinja/value.h"

/* The variables of a block. */
typedef struct wk_jscope wk_jscope;
struct wk_jscope {
    wk_jdict variables;
    wk_jscope *parent;
    bool is_kept;       /* a macro or a loop may come back to it */
    wk_jentry first[2]; /* of the variables: a loop has two */
};

/* A text that concatenation has made, with room to go on. */
typedef struct wk_jtail {
    wk_jtext text;
    size_t capacity;
} wk_jtail;
enum { WK_J_TAILS = 8 };

/* How a statement ended. */
typedef enum wk_jflow { WK_J_NEXT, WK_J_BREAK, WK_J_CONTINUE } wk_jflow;

struct wk_jinja {
    wk_arena *arena;
    const wk_jinja_desc *desc;
    wick_error *err;
    wk_jinja_result *result;
    const wk_jdict *context; /* the caller's variables */
    wk_jscope *scope;
    wk_jscope *unused;          /* scopes that are done, by their parents */
    wk_jtail tails[WK_J_TAILS]; /* the last ones */
    size_t next_tail;
    wk_jbuilder *out; /* where text goes */
    wk_jflow flow;
    bool escapes; /* {% autoescape true %} */
    int line;
    uint32_t depth;            /* of nested evaluations */
    uint64_t bytes_before;     /* what others had put into the arena */
    uint64_t work, next_check; /* counted so far, and when to look at it; a step is WK_J_STEP */
    wick_status failure;       /* the first one: wk_jalloc and builders do not tell which it was */
};

/* ---- Limits ---- */

/* Work is counted in bytes that are looked at; a step, which is about an operation, counts as 16.
 * Whatever goes over bytes or items counts them, before it does or as it goes. */
enum { WK_J_STEP = 16 };

/* What a byte counts as where each character is decoded and looked up in a table. */
enum { WK_J_CHAR = 4 };
/* What writing or reading a number as decimal digits counts as: up to ten microseconds. */
enum { WK_J_FLOAT_STEPS = 150 };

/* Counts; it is the next wk_jread or wk_jwork that fails. */
static inline void wk_jcount(wk_jinja *j, uint64_t bytes) { j->work += bytes; }
wick_status wk_jcheck(wk_jinja *j); /* for the two below */
static inline wick_status wk_jread(wk_jinja *j, uint64_t bytes) {
    j->work += bytes;
    return j->work < j->next_check ? WICK_OK : wk_jcheck(j);
}
static inline wick_status wk_jwork(wk_jinja *j, uint64_t steps) {
    return wk_jread(j, WK_J_STEP * steps);
}
/* Goes one level deeper, which is a step; every success is followed by j->depth--. */
wick_status wk_jenter(wk_jinja *j);
/* From the arena, within the limit; a failure has been written down. */
void *wk_jalloc(wk_jinja *j, size_t n, size_t size);
/* A copy of items[*capacity], all in use, with room for twice as many, or for least where there
 * were none; *capacity becomes that number. NULL: as wk_jalloc. */
void *wk_jgrow(wk_jinja *j, const void *items, size_t *capacity, size_t least, size_t size);

/* A failure at the current line. */
wick_status wk_jfail(wk_jinja *j, const char *format, ...) WK_PRINTF(2, 3);
/* What any use of an undefined value is. */
wick_status wk_jfail_undefined(wk_jinja *j, const wk_jvalue *value);

/* ---- Functions ---- */

/* values: where the builtin names its parameters, one for each (WK_J_ABSENT: not given) and no
 * named ones; else what the call has. */
typedef struct wk_jargs {
    const wk_jvalue *self; /* the value a filter, test or method is for; NULL: a function */
    const wk_jvalue *values;
    size_t n;
    const wk_jdict *named; /* NULL: none */
} wk_jargs;

static inline size_t wk_jn_named(const wk_jargs *args) {
    return args->named != NULL ? args->named->n : 0;
}

/* What map, select and the like give: nothing is read, called or refused until an item is taken. */
struct wk_jgenerator {
    wk_jlist items; /* from at on those that are left; first: a list is made into a generator */
    size_t at;
    /* What becomes of an item of source; *yields: there is a result. NULL: items are as they are.
     */
    wick_status (*step)(wk_jinja *j, wk_jgenerator *g, const wk_jvalue *item, wk_jvalue *out,
                        bool *yields);
    bool is_started; /* items are those of source, unless that is a generator, too */
    bool by_attribute, wanted;
    wk_jvalue source;
    wk_jargs args; /* of the filter that made it */
    wk_jdict named;
    const wk_jbuiltin *called; /* the filter or test that the arguments name; NULL: not yet found */
};

/* What a call counts as, apart from what the builtin counts itself. */
typedef enum wk_jcost {
    WK_J_READS_ALL, /* the bytes or items of all that it is given */
    WK_J_COUNTS,    /* nothing: its time does not depend on them, or it counts what it looks at */
} wk_jcost;

struct wk_jbuiltin {
    const char *name;
    wick_status (*call)(wk_jinja *j, const wk_jargs *args, wk_jvalue *out);
    const char *parameters; /* "old new count"; NULL: takes what it is given */
    unsigned n_required;
    wk_jcost cost;
};

enum { WK_J_MAX_PARAMETERS = 8 };

/* Arguments as they stand in the call. */
wick_status wk_jcall_builtin(wk_jinja *j, const wk_jbuiltin *builtin, const wk_jargs *args,
                             wk_jvalue *out);
/* NULL: there is none. */
const wk_jbuiltin *wk_jfind_filter(wk_str name);
const wk_jbuiltin *wk_jfind_test(wk_str name);
const wk_jbuiltin *wk_jfind_function(wk_str name);
/* A method of a value of this kind. */
const wk_jbuiltin *wk_jfind_method(const wk_jvalue *value, wk_str name);

/* Tables of one file each, in any order. */
typedef struct wk_jtable {
    const wk_jbuiltin *items;
    size_t n;
} wk_jtable;
extern const wk_jtable wk_jstring_filters, wk_jlist_filters, wk_jselect_filters, wk_jnumber_filters,
    wk_jtest_table, wk_jfunction_table, wk_jstring_methods, wk_jstring_predicates, wk_jlist_methods,
    wk_jtuple_methods, wk_jdict_methods, wk_jinteger_methods, wk_jfloat_methods, wk_jloop_methods,
    wk_jcycler_methods;

/* ---- Arguments of builtins ---- */

/* The argument as text (str()), or fallback where it was not given. */
wick_status wk_jarg_text(wk_jinja *j, const wk_jargs *args, size_t i, const char *fallback,
                         wk_jtext *out);
/* Must be a whole number, or not given. */
wick_status wk_jarg_integer(wk_jinja *j, const wk_jargs *args, size_t i, int64_t fallback,
                            int64_t *out);
bool wk_jarg_truth(const wk_jargs *args, size_t i, bool fallback);
static inline bool wk_jhas(const wk_jargs *args, size_t i) {
    return args->values[i].kind != WK_J_ABSENT;
}

/* ---- Evaluation, eval*.c ---- */

wick_status wk_jeval(wk_jinja *j, const wk_jnode *node, wk_jvalue *out);
/* a.name and a[item]; undefined where there is none. */
wick_status wk_jattribute(wk_jinja *j, const wk_jvalue *of, wk_jtext name, wk_jvalue *out);
wick_status wk_jitem(wk_jinja *j, const wk_jvalue *of, const wk_jvalue *item, wk_jvalue *out);
wick_status wk_jslice(wk_jinja *j, const wk_jvalue *of, const wk_jvalue bounds[3], wk_jvalue *out);
wick_status wk_jbinary(wk_jinja *j, wk_joperator op, const wk_jvalue *a, const wk_jvalue *b,
                       wk_jvalue *out);
wick_status wk_junary(wk_jinja *j, bool negate, const wk_jvalue *a, wk_jvalue *out);
wick_status wk_jcall_node(wk_jinja *j, const wk_jnode *call, const wk_jvalue *callee,
                          const wk_jvalue *self, const wk_jbuiltin *builtin, wk_jvalue *out);
wick_status wk_jfilter_node(wk_jinja *j, const wk_jnode *filter, const wk_jvalue *value,
                            wk_jvalue *out);

/* Runs a list of statements; j->flow says how it ended. */
wick_status wk_jexec(wk_jinja *j, const wk_jnode *statements);
wick_status wk_jexec_for(wk_jinja *j, const wk_jnode *node);
wick_status wk_jscope_push(wk_jinja *j, wk_jscope *parent);
/* Back to the scope before the last push. */
void wk_jscope_pop(wk_jinja *j, wk_jscope *before);
/* This scope and those outside it stay. */
void wk_jscope_keep(wk_jscope *scope);
wick_status wk_jassign(wk_jinja *j, wk_str name, wk_jvalue value);
/* A namespace has no attributes that begin with '_'. */
wick_status wk_jcheck_space_name(wk_jinja *j, const wk_jvalue *name);
wick_status wk_jassign_target(wk_jinja *j, const wk_jnode *target, wk_jvalue value);
wick_status wk_jlookup(wk_jinja *j, wk_str name, wk_jvalue *out); /* ABSENT: nowhere */
wick_status wk_jcall_macro(wk_jinja *j, const wk_jmacro *macro, const wk_jargs *args,
                           wk_jvalue *out);
wick_status wk_jcall_loop(wk_jinja *j, wk_jloop *loop, const wk_jargs *args, wk_jvalue *out);
/* An attribute of loop, a macro ...; ABSENT where it has none of that name. */
wick_status wk_jloop_attribute(wk_jinja *j, wk_jloop *loop, wk_str name, wk_jvalue *out);
wick_status wk_jmacro_attribute(wk_jinja *j, const wk_jmacro *macro, wk_str name, wk_jvalue *out);
void wk_jput_macro(wk_jbuilder *to, const wk_jmacro *macro);
void wk_jput_loop(wk_jbuilder *to, const wk_jloop *loop);

#endif
