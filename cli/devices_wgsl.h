/* devices_wgsl.h: `wick devices --wgsl KERNEL`. */
#ifndef WICK_CLI_DEVICES_WGSL_H
#define WICK_CLI_DEVICES_WGSL_H

#include <wick/wick.h>

/* The texts of the programs that a few random operations need of the kernel, on the device that
 * webgpu describes. Returns an exit code. */
int cli_print_wgsl(const wick_webgpu_desc *webgpu, const char *kernel);

#endif
