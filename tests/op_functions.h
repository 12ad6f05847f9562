/* tests/op_functions.h: the ops whose parameters begin with the number of a function, and how many
 * functions each has. */
#ifndef OP_FUNCTIONS_H
#define OP_FUNCTIONS_H

#include "backend/backend.h"

static const struct {
    wk_opcode code;
    unsigned count;
} op_functions[] = {{WK_OP_UNARY, WK_UNARY_COUNT_},     {WK_OP_BINARY, WK_BINARY_COUNT_},
                    {WK_OP_COMPARE, WK_COMPARE_COUNT_}, {WK_OP_GATED, WK_GATED_COUNT_},
                    {WK_OP_REDUCE, WK_REDUCE_COUNT_},   {WK_OP_RANDOM, WK_RANDOM_COUNT_},
                    {WK_OP_SCAN, WK_SCAN_COUNT_}};

#endif
