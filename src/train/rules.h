/* train/rules.h: the gradient column of backend/op_traits.def: wk_grad_NAME. */
#ifndef WK_TRAIN_RULES_H
#define WK_TRAIN_RULES_H

#include "train/tape.h"

#define WK_TRAITS(code, rows, cost, tolerance, cuts, gradient, ...)                                \
    wk_gradient_fn wk_grad_##gradient;
#include "backend/op_traits.def"
#undef WK_TRAITS

#endif
