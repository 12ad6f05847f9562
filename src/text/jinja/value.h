/* text/jinja/value.h: the values of a template: what Python's would be.
 *
 * All memory is the arena's of one rendering and lives until its end, so values are copied freely;
 * lists, dicts and objects are shared by reference as in Python. */
#ifndef WK_TEXT_JINJA_VALUE_H
#define WK_TEXT_JINJA_VALUE_H

#include "core/status.h"
#include "core/str.h"

typedef struct wk_jinja wk_jinja; /* a rendering, text/jinja/state.h */

typedef enum wk_jkind {
    WK_J_ABSENT, /* an argument that was not given; no value of a template */
    WK_J_UNDEFINED,
    WK_J_NONE,
    WK_J_BOOL,
    WK_J_INTEGER,
    WK_J_FLOAT,
    WK_J_STRING,
    WK_J_LIST,
    WK_J_TUPLE,
    WK_J_GENERATOR, /* what map, select and the like give: read once */
    WK_J_DICT,
    WK_J_KEYS, /* dict.keys(), values() and items() */
    WK_J_VALUES,
    WK_J_ITEMS,
    WK_J_NAMESPACE,
    WK_J_RANGE,
    WK_J_BUILTIN, /* a function, or a method with the value it belongs to */
    WK_J_MACRO,
    WK_J_LOOP,
    WK_J_CYCLER,
    WK_J_JOINER,
} wk_jkind;

/* UTF-8. origin: for each byte whether it came from the data (1) or the template (0); NULL: all
 * from the template. What was computed from data (a number, say) counts as the template's. */
typedef struct wk_jtext {
    const char *text;
    size_t size;
    const uint8_t *origin;
} wk_jtext;

typedef struct wk_jvalue wk_jvalue;
typedef struct wk_jentry wk_jentry;
typedef struct wk_jbuiltin wk_jbuiltin; /* text/jinja/state.h */
typedef struct wk_jmacro wk_jmacro;
typedef struct wk_jloop wk_jloop;
typedef struct wk_jgenerator wk_jgenerator; /* text/jinja/state.h */

typedef struct wk_jlist {
    wk_jvalue *items;
    size_t n, capacity;
} wk_jlist;

/* In the order in which the keys came; also the attributes of a namespace and the variables of a
 * scope. Changed by the functions of dict.c alone. */
typedef struct wk_jslot wk_jslot;
typedef struct wk_jdict {
    wk_jentry *entries;
    size_t n, capacity;
    wk_jslot *slots; /* [n_slots] numbers of entries by hash; n_slots 0: few entries, no slots */
    size_t n_slots;
} wk_jdict;

typedef struct wk_jrange {
    int64_t first, end, step;
    size_t n;
} wk_jrange;

typedef struct wk_jmethod {
    const wk_jbuiltin *builtin;
    const wk_jvalue *self; /* NULL: a function */
} wk_jmethod;

typedef struct wk_jcycle {
    wk_jlist items;
    size_t at; /* joiner: 0 until it was called */
} wk_jcycle;

/* Why a value is undefined: what was looked for, and in what. */
typedef struct wk_jmissing {
    const char *owner; /* "dict object"; NULL: a variable */
    wk_jtext name;
    bool is_element; /* name is a number */
    bool is_unsafe;  /* it exists, and the sandbox hides it */
    bool is_parameter;
} wk_jmissing;

struct wk_jvalue {
    wk_jkind kind;
    /* A string that the filters escape or safe have marked; a tuple that groupby made. */
    bool is_markup;
    union {
        const wk_jmissing *missing; /* NULL: of an inline if without else, and the like */
        bool boolean;
        int64_t integer;
        double number;
        wk_jtext string;
        wk_jlist *list;
        wk_jgenerator *generator; /* list: its items */
        wk_jdict *dict;
        const wk_jrange *range;
        wk_jmethod method;
        const wk_jmacro *macro;
        wk_jloop *loop;
        wk_jcycle *cycle;
    };
};

struct wk_jentry {
    wk_jvalue key, value;
};

/* ---- Making ---- */

static inline wk_jvalue wk_jnone(void) { return (wk_jvalue){.kind = WK_J_NONE}; }
static inline wk_jvalue wk_jbool(bool b) { return (wk_jvalue){.kind = WK_J_BOOL, .boolean = b}; }
static inline wk_jvalue wk_jinteger(int64_t i) {
    return (wk_jvalue){.kind = WK_J_INTEGER, .integer = i};
}
static inline wk_jvalue wk_jfloat(double number) {
    return (wk_jvalue){.kind = WK_J_FLOAT, .number = number};
}
static inline wk_jvalue wk_jstring(wk_jtext text) {
    return (wk_jvalue){.kind = WK_J_STRING, .string = text};
}
/* Static text. */
wk_jvalue wk_jliteral(const char *terminated);
wk_jtext wk_jtext_of(const char *terminated);
/* Bytes from to to. */
wk_jtext wk_jtext_part(wk_jtext text, size_t from, size_t to);
wk_str wk_jtext_str(wk_jtext text);
bool wk_jtext_is(wk_jtext text, const char *terminated);
/* owner and name as in wk_jmissing; both must live on. */
wick_status wk_jundefined(wk_jinja *j, const char *owner, wk_jtext name, wk_jvalue *out);

/* An empty list, tuple or generator with room for capacity items. */
wick_status wk_jlist_make(wk_jinja *j, wk_jkind kind, size_t capacity, wk_jvalue *out);
wick_status wk_jlist_push(wk_jinja *j, wk_jlist *list, wk_jvalue item);
wick_status wk_jpair(wk_jinja *j, wk_jvalue first, wk_jvalue second, wk_jvalue *out); /* a tuple */
wick_status wk_jdict_make(wk_jinja *j, wk_jkind kind, wk_jvalue *out);
/* Replaces the value of a key that is there. A key that cannot be hashed is a failure. */
wick_status wk_jdict_set(wk_jinja *j, wk_jdict *dict, wk_jvalue key, wk_jvalue value);
/* *found NULL where there is no such key. */
wick_status wk_jdict_find(wk_jinja *j, const wk_jdict *dict, const wk_jvalue *key,
                          wk_jvalue **found);
/* By a text. */
wick_status wk_jdict_named(wk_jinja *j, const wk_jdict *dict, wk_str name, wk_jvalue **found);
/* *value is untouched where there is no such key. */
wick_status wk_jdict_remove(wk_jinja *j, wk_jdict *dict, const wk_jvalue *key, wk_jvalue *value,
                            bool *is_found);
void wk_jdict_clear(wk_jinja *j, wk_jdict *dict);

/* ---- Asking ---- */

bool wk_jtruth(const wk_jvalue *value);
/* "str", "list": the name of the type in Python. */
const char *wk_jtype_name(const wk_jvalue *value);
bool wk_jis_number(const wk_jvalue *value);     /* bool too */
bool wk_jis_integer(const wk_jvalue *value);    /* bool too */
int64_t wk_jas_integer(const wk_jvalue *value); /* of one that is */
double wk_jas_float(const wk_jvalue *value);    /* of a number */
bool wk_jis_iterable(const wk_jvalue *value);
bool wk_jhas_length(const wk_jvalue *value);
/* Of a value that has one; a string's is counted in characters. */
wick_status wk_jlength(wk_jinja *j, const wk_jvalue *value, size_t *length);

wick_status wk_jequal(wk_jinja *j, const wk_jvalue *a, const wk_jvalue *b, bool *equal);
/* -1, 0, 1 as a is less, equal, greater; 2: neither (NaN). sign: "<", for the message. */
wick_status wk_jcompare(wk_jinja *j, const wk_jvalue *a, const wk_jvalue *b, const char *sign,
                        int *order);
wick_status wk_jcontains(wk_jinja *j, const wk_jvalue *container, const wk_jvalue *item,
                         bool *contains);
/* The items of whatever can be looped over; the result may be the value's own list. A generator is
 * empty from then on; wk_jnext takes one item of it, *found false where there is none. */
wick_status wk_jitems(wk_jinja *j, wk_jvalue *value, wk_jlist *out);
wick_status wk_jnext(wk_jinja *j, wk_jgenerator *generator, wk_jvalue *out, bool *found);

/* ---- Text ---- */

/* Collects bytes in the arena. The first failure stays, wk_jbuilder_end returns it. */
typedef struct wk_jbuilder {
    wk_jinja *j;
    char *text;
    uint8_t *origin; /* NULL: all from the template so far */
    size_t size, capacity;
    wick_status status;
} wk_jbuilder;

wk_jbuilder wk_jbuilder_begin(wk_jinja *j);
void wk_jput(wk_jbuilder *to, wk_jtext text);
void wk_jput_word(wk_jbuilder *to, const char *terminated);
void wk_jput_repeated(wk_jbuilder *to, wk_jtext text, size_t n);
/* A code point, from the data or not. */
void wk_jput_char(wk_jbuilder *to, uint32_t code, bool is_data);
wk_jtext wk_jbuilder_text(const wk_jbuilder *builder);
wick_status wk_jbuilder_end(wk_jbuilder *builder, wk_jvalue *out);
/* A text that goes on, and its end. Where the text is what one of the last such builders made, as
 * in ns.out = ns.out + line, it is not copied. */
wk_jbuilder wk_jbuilder_resume(wk_jinja *j, wk_jtext text);
wick_status wk_jbuilder_end_resumed(wk_jbuilder *builder, wk_jvalue *out);

/* Python's str() and repr(). */
void wk_jput_str(wk_jbuilder *to, const wk_jvalue *value);
void wk_jput_repr(wk_jbuilder *to, const wk_jvalue *value);
/* ascii(): repr() with escapes for all that is not ASCII. */
void wk_jput_ascii(wk_jbuilder *to, const wk_jvalue *value);
/* str(); of a string itself. */
wick_status wk_jstr(wk_jinja *j, const wk_jvalue *value, wk_jtext *out);
void wk_jput_float(wk_jbuilder *to, double number);
/* Shortest digits that read back the same, as Python prints them. size of out: 32. */
void wk_jfloat_text(double number, char *out);
/* With precision digits after the point, which is '.' in every locale. */
void wk_jfixed_text(double number, int precision, char *out, size_t size);

#endif
