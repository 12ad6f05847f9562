/* memory_hint.h: what to do where a model or its context does not fit into memory. */
#ifndef WICK_CLI_MEMORY_HINT_H
#define WICK_CLI_MEMORY_HINT_H

#include <wick/wick.h>

typedef struct cli_memory_hint {
    char text[128];
} cli_memory_hint;

/* The next smaller cache, or the longest context, with which the model at path fits, or
 * --low-memory: predicted for device from the file's header. model: what did not fit. */
cli_memory_hint cli_find_memory_hint(const wick_device *device, const char *path,
                                     const wick_model_desc *model);

#endif
