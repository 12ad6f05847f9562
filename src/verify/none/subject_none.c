/* verify/none/subject_none.c: in place of subject_webgpu.c, where a module is for the CPU alone
 * (web/CMakeLists.txt). */
#include "verify/verify.h"

bool wk_verify_next_webgpu(wk_backend_device *device, size_t *index, wk_verify_subject *out) {
    (void)device, (void)index, (void)out;
    return false;
}
