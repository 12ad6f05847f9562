/* text/jinja/state.h: one rendering: its limits, scopes and failures, and how functions are called.
 */
#ifndef WK_TEXT_JINJA_STATE_H
#define WK_TEXT_JINJA_STATE_H

#include "core/arena.h"
#include "text/jinja/jinja.h"
#include "text/jinja/node.h"
#include "text/jinja/value.h"

/* Variables of a block, innermost first. */
typedef struct wk_jvariable wk_jvariable;
struct wk_jvariable {
    wk_str name;
    wk_jvalue value;
    wk_jvariable *next;
};

typedef struct wk_jscope wk_jscope;
struct wk_jscope {
    wk_jvariable *variables;
    wk_jscope *parent;
};

/* How a statement ended. */
typedef enum wk_jflow { WK_J_NEXT, WK_J_BREAK, WK_J_CONTINUE } wk_jflow;

struct wk_jinja {
    wk_arena *arena;
    const wk_jinja_desc *desc;
    wick_error *err;
    wk_jinja_result *result;
    const wk_jdict *context; /* the caller's variables */
    wk_jscope *scope;
    wk_jbuilder *out; /* where text goes */
    wk_jflow flow;
    bool escapes; /* {% autoescape true %} */
    int line;
    uint32_t depth; /* of nested evaluations */
    uint64_t n_steps;
    wick_status failure; /* the first one: wk_jalloc and builders do not tell which it was */
};

/* A failure at the current line. */
wick_status wk_jfail(wk_jinja *j, const char *format, ...) WK_PRINTF(2, 3);
/* What any use of an undefined value is. */
wick_status wk_jfail_undefined(wk_jinja *j, const wk_jvalue *value);
/* Counts n units of work (about an operation, or 16 bytes looked at) against the limit. */
wick_status wk_jwork(wk_jinja *j, size_t n);
/* Goes one level deeper; every success is followed by j->depth--. */
wick_status wk_jenter(wk_jinja *j);
/* From the arena, within the limit; a failure has been written down. */
void *wk_jalloc(wk_jinja *j, size_t n, size_t size);

/* ---- Functions ---- */

/* values: where the builtin names its parameters, one for each (WK_J_ABSENT: not given) and no
 * named ones; else what the call has. */
typedef struct wk_jargs {
    const wk_jvalue *self; /* the value a filter, test or method is for; NULL: a function */
    const wk_jvalue *values;
    size_t n;
    const wk_jentry *named;
    size_t n_named;
} wk_jargs;

struct wk_jbuiltin {
    const char *name;
    wick_status (*call)(wk_jinja *j, const wk_jargs *args, wk_jvalue *out);
    const char *parameters; /* "old new count"; NULL: takes what it is given */
    unsigned n_required;
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

/* A list of statements; j->flow tells how it ended. */
wick_status wk_jexec(wk_jinja *j, const wk_jnode *statements);
wick_status wk_jexec_for(wk_jinja *j, const wk_jnode *node);
wick_status wk_jscope_push(wk_jinja *j, wk_jscope *parent);
wick_status wk_jassign(wk_jinja *j, wk_str name, wk_jvalue value);
wick_status wk_jassign_target(wk_jinja *j, const wk_jnode *target, wk_jvalue value);
void wk_jlookup(wk_jinja *j, wk_str name, wk_jvalue *out); /* ABSENT: nowhere */
wick_status wk_jcall_macro(wk_jinja *j, const wk_jmacro *macro, const wk_jargs *args,
                           wk_jvalue *out);
wick_status wk_jcall_loop(wk_jinja *j, wk_jloop *loop, const wk_jargs *args, wk_jvalue *out);
/* An attribute of loop, a macro ...; ABSENT where it has none of that name. */
wick_status wk_jloop_attribute(wk_jinja *j, wk_jloop *loop, wk_str name, wk_jvalue *out);
wick_status wk_jmacro_attribute(wk_jinja *j, const wk_jmacro *macro, wk_str name, wk_jvalue *out);
void wk_jput_macro(wk_jbuilder *to, const wk_jmacro *macro);
void wk_jput_loop(wk_jbuilder *to, const wk_jloop *loop);

#endif
