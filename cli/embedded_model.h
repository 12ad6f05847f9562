/* embedded_model.h: the small model inside the command, so that `wick run` works without a file:
 * stories260K (tests/data/LICENSES.md). cmake/EmbedModel.cmake writes the definitions. */
#ifndef WICK_CLI_EMBEDDED_MODEL_H
#define WICK_CLI_EMBEDDED_MODEL_H

#include <stddef.h>
#include <stdint.h>

extern const unsigned char *const wick_embedded_model; /* a GGUF file, aligned to 64 bytes */
extern const size_t wick_embedded_model_size;          /* bytes */

#endif
