/* tests/op_functions.h: the ops whose parameters have the number of a function, where in them it
 * stands, and how many functions each has. */
#ifndef OP_FUNCTIONS_H
#define OP_FUNCTIONS_H

#include "backend/backend.h"

#include <stddef.h>

static const struct {
    wk_opcode code;
    size_t at;
    unsigned count;
} op_functions[] = {{WK_OP_UNARY, offsetof(wk_params, unary.fn), WK_UNARY_COUNT_},
                    {WK_OP_BINARY, offsetof(wk_params, binary), WK_BINARY_COUNT_},
                    {WK_OP_COMPARE, offsetof(wk_params, compare), WK_COMPARE_COUNT_},
                    {WK_OP_GATED, offsetof(wk_params, gated.fn), WK_GATED_COUNT_},
                    {WK_OP_REDUCE, offsetof(wk_params, reduce.fn), WK_REDUCE_COUNT_},
                    {WK_OP_SCATTER, offsetof(wk_params, scatter), WK_SCATTER_COUNT_},
                    {WK_OP_CUMULATE, offsetof(wk_params, cumulate), WK_CUMULATE_COUNT_},
                    {WK_OP_RANDOM, offsetof(wk_params, random.fn), WK_RANDOM_COUNT_},
                    {WK_OP_POOL, offsetof(wk_params, pool.fn), WK_WINDOW_COUNT_},
                    {WK_OP_SCAN, offsetof(wk_params, scan.fn), WK_SCAN_COUNT_}};

#endif
