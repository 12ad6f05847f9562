/* lora.h: adapters on the command line: "FILE" or "FILE=SCALE". */
#ifndef WICK_CLI_LORA_H
#define WICK_CLI_LORA_H

#include "options.h"
#include "store.h"

#include <wick/convert.h>

typedef struct cli_loras {
    wick_merge items[CLI_MAX_TEXTS]; /* [n]; the paths are those below */
    cli_path paths[CLI_MAX_TEXTS];
    size_t n;
} cli_loras;

/* NULL: memory is short, or a path too long; it was reported. To be freed. */
cli_loras *cli_read_loras(const cli_texts *given);
/* The command reads these files (targets.h). Returns an exit code. */
int cli_add_read_loras(const cli_texts *given);

#endif
