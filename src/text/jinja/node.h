/* text/jinja/node.h: the syntax tree of a template. */
#ifndef WK_TEXT_JINJA_NODE_H
#define WK_TEXT_JINJA_NODE_H

#include "text/jinja/value.h"

/* What first, second, third, list and other stand for. */
typedef enum wk_jnode_kind {
    /* Expressions */
    WK_J_CONSTANT,   /* value */
    WK_J_NAME,       /* name */
    WK_J_MAKE_LIST,  /* list: items */
    WK_J_MAKE_TUPLE, /* list: items */
    WK_J_MAKE_DICT,  /* list: of pairs, first: key, second: value */
    WK_J_PAIR,       /* an item of a dict */
    WK_J_UNARY,      /* op NEGATE, POSITIVE or NOT; first */
    WK_J_BINARY,     /* op; first, second */
    WK_J_AND,        /* first, second */
    WK_J_OR,         /* first, second */
    WK_J_CONCAT,     /* list: what ~ joins */
    WK_J_COMPARE,    /* first; list: of operands, op and first */
    WK_J_OPERAND,    /* of a comparison */
    WK_J_IF_ELSE,    /* first if second else third (may be NULL) */
    WK_J_ATTRIBUTE,  /* first . name */
    WK_J_ITEM,       /* first [ second ] */
    WK_J_SLICE,      /* first [ list: three constants or expressions ] */
    WK_J_CALL,       /* first ( list: arguments ) */
    WK_J_ARGUMENT,   /* positional, by name, * or ** (op); first */
    WK_J_FILTER,     /* first (NULL: of a block) | name ( list: arguments ) */
    WK_J_TEST,       /* first is name ( list: arguments ) */
    WK_J_SPACE_NAME, /* target of an assignment: name . attribute (value.string) */

    /* Statements */
    WK_J_TEXT,         /* value.string */
    WK_J_OUTPUT,       /* first */
    WK_J_IF,           /* list: of branches; other: else */
    WK_J_BRANCH,       /* first: condition; list: body */
    WK_J_FOR,          /* first: target, second: iterable, third: condition; list, other: else */
    WK_J_SET,          /* first: target, second: value */
    WK_J_SET_BLOCK,    /* first: target, second: filters (may be NULL); list: body */
    WK_J_MACRO_BLOCK,  /* name; other: parameters (NAME with first: default); list: body */
    WK_J_CALL_BLOCK,   /* first: call, which reads WK_J_CALLER; other: parameters; list: body */
    WK_J_FILTER_BLOCK, /* first: filters; list: body */
    WK_J_WITH,         /* other: SETs; list: body */
    WK_J_SCOPED,       /* list: body in a scope of its own (generation, block) */
    WK_J_AUTOESCAPE,   /* first; list: body */
    WK_J_BREAK_LOOP,
    WK_J_CONTINUE_LOOP,
    WK_J_LOAD, /* include, import, from, extends: name says which */
} wk_jnode_kind;

typedef enum wk_joperator {
    WK_J_ADD,
    WK_J_SUBTRACT,
    WK_J_MULTIPLY,
    WK_J_DIVIDE,
    WK_J_FLOOR_DIVIDE,
    WK_J_MODULO,
    WK_J_POWER,
    WK_J_NEGATE,
    WK_J_POSITIVE,
    WK_J_NOT,
    WK_J_EQUAL,
    WK_J_UNEQUAL,
    WK_J_LESS,
    WK_J_LESS_EQUAL,
    WK_J_GREATER,
    WK_J_GREATER_EQUAL,
    WK_J_IN,
    WK_J_NOT_IN,
    WK_J_POSITIONAL, /* arguments */
    WK_J_NAMED,
    WK_J_STAR,
    WK_J_STAR_STAR,
} wk_joperator;

#define WK_J_CALLER "{% call %}"

typedef struct wk_jnode wk_jnode;
struct wk_jnode {
    wk_jnode_kind kind;
    wk_joperator op;
    int line;
    bool is_negated;   /* TEST: is not */
    bool is_recursive; /* FOR */
    /* MACRO_BLOCK, CALL_BLOCK: which of these names the body reads. */
    bool takes_varargs, takes_kwargs, takes_caller;
    wk_str name;
    const wk_jbuiltin *builtin; /* FILTER, TEST: NULL where none is called name */
    wk_jvalue value;
    wk_jnode *first, *second, *third;
    wk_jnode *list, *other;
    wk_jnode *next; /* in the list that this node is an item of */
};

struct wk_jinja_template {
    const wk_jnode *body;
};

#endif
