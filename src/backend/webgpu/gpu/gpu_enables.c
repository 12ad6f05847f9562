/* backend/webgpu/gpu/gpu_enables.c: the lines of WGSL that switch features on. */
#include "backend/webgpu/gpu/gpu.h"

const char *wk_gpu_enable_lines(uint32_t features) {
#define F16 "enable f16;\n"
#define SUBGROUPS "enable subgroups;\n"
#define DOT4 "requires packed_4x8_integer_dot_product;\n"
    enum { F = WICK_WEBGPU_F16, S = WICK_WEBGPU_SUBGROUPS, D = WICK_WEBGPU_DOT4 };
    static const char *const lines[] = {
        [0] = "",   [F] = F16,          [S] = SUBGROUPS,          [F | S] = F16 SUBGROUPS,
        [D] = DOT4, [F | D] = F16 DOT4, [S | D] = SUBGROUPS DOT4, [F | S | D] = F16 SUBGROUPS DOT4,
    };
#undef F16
#undef SUBGROUPS
#undef DOT4
    return lines[features & (F | S | D)];
}
