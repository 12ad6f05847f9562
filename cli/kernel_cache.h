/* kernel_cache.h: a folder with what an implementation of WebGPU compiled: kernels/ in the cache
 * folder (cache_folder.h). Several processes and threads may use it at once. Errors are not
 * reported: a kernel without an entry is compiled again. */
#ifndef WICK_CLI_KERNEL_CACHE_H
#define WICK_CLI_KERNEL_CACHE_H

#include <wick/webgpu.h>

#include <stdatomic.h>

typedef struct cli_kernel_cache {
    char folder[1024];           /* "": there is none */
    _Atomic uint_least64_t room; /* bytes that this process may still store */
    uint64_t limit;              /* bytes that it may leave there */
} cli_kernel_cache;

/* limit: bytes of the folder when the cache is closed. */
void cli_kernel_cache_open(cli_kernel_cache *cache, uint64_t limit);
/* Its functions, for a device that is closed before it. */
wick_kernel_cache cli_kernel_cache_functions(cli_kernel_cache *cache);
/* Removes what was used least recently where there is too much. */
void cli_kernel_cache_close(cli_kernel_cache *cache);

#endif
