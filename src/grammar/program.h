/* grammar/program.h: a grammar as instructions over bytes, each of which names the next one
 * (Thompson, "Regular Expression Search Algorithm", 1968, with calls). */
#ifndef WK_GRAMMAR_PROGRAM_H
#define WK_GRAMMAR_PROGRAM_H

#include "core/status.h"
#include "grammar/expr.h"

typedef enum wk_grammar_op {
    WK_GRAMMAR_RETURN, /* the rule is over */
    WK_GRAMMAR_BYTE,   /* a byte from first to last */
    WK_GRAMMAR_TOKEN,  /* the token other, or any other one where is_negated */
    WK_GRAMMAR_SPLIT,  /* next or other */
    WK_GRAMMAR_CALL,   /* the rule that begins at other, then next */
    WK_GRAMMAR_FAIL,   /* nothing matches */
} wk_grammar_op;

typedef struct wk_instruction {
    uint8_t op; /* wk_grammar_op */
    uint8_t first, last;
    bool is_negated;
    uint32_t next, other;
} wk_instruction;

/* Instruction 0 is the only RETURN: a call whose next is 0 is the last thing its rule does. */
typedef struct wk_program {
    wk_heap *heap;
    wk_instruction *code; /* [n] */
    uint32_t n, capacity;
    uint32_t start;
    uint8_t class_of[256]; /* bytes that no instruction tells apart are of one class */
    uint8_t byte_of[256];  /* one byte of each class */
    uint32_t n_classes;
} wk_program;

/* Copies what it needs of rules. Refused (WICK_ERR_VALUE): left recursion, rules that call one
 * another too deeply before anything is read, more than 2^20 instructions. */
wick_status wk_program_make(wk_heap *heap, const wk_rules *rules, wk_program *out, wick_error *err);
void wk_program_free(wk_program *program);

/* check.c: refuses rules that could call themselves before they have read a byte. starts
 * [n]: where the rules begin; those after rules->n are parts of others. */
wick_status wk_program_check(const wk_program *program, const wk_rules *rules,
                             const uint32_t *starts, uint32_t n, wick_error *err);

#endif
