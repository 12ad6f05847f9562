/* backend/joint.h: more ops in a row that some kernel computes together (WK_OPS_* of op.h). */
#ifndef WK_BACKEND_JOINT_H
#define WK_BACKEND_JOINT_H

#include "backend/op.h"

/* CAUSAL_CONV; UNARY, a SiLU, of it */
#define WK_OPS_CONV_SILU ((wk_opcode)(WK_OPS_NORMED_HEADS + 1))
/* TOP_K; SOFTMAX of its values */
#define WK_OPS_TOP_K_SOFTMAX ((wk_opcode)(WK_OPS_NORMED_HEADS + 2))
/* LINEAR_EXPERTS twice, of the same rows and ids, by matrices of one buffer; GATED of both. */
#define WK_OPS_EXPERTS_GATED ((wk_opcode)(WK_OPS_NORMED_HEADS + 3))

/* How many ops a kernel of that code computes: of WK_OPS_* they follow each other in an array. */
static inline size_t wk_joint_ops(wk_opcode code) {
    switch ((int)code) {
    case WK_OPS_CONV_SILU:
    case WK_OPS_TOP_K_SOFTMAX: return 2;
    case WK_OPS_EXPERTS_GATED: return 3;
    default: return wk_opcode_ops(code);
    }
}

#endif
