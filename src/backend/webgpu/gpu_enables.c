/* backend/webgpu/gpu_enables.c: the lines of WGSL that switch features on. */
#include "backend/webgpu/gpu.h"

const char *wk_gpu_enable_lines(uint32_t features) {
#define F16 "enable f16;\n"
#define SUBGROUPS "enable subgroups;\n"
#define DOT4 "requires packed_4x8_integer_dot_product;\n"
    static const char *const lines[8] = {
        "", F16, SUBGROUPS, F16 SUBGROUPS, DOT4, F16 DOT4, SUBGROUPS DOT4, F16 SUBGROUPS DOT4,
    };
#undef F16
#undef SUBGROUPS
#undef DOT4
    return lines[features & (WICK_WEBGPU_F16 | WICK_WEBGPU_SUBGROUPS | WICK_WEBGPU_DOT4)];
}
