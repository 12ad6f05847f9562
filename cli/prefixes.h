/* prefixes.h: beginnings of texts that are kept in a folder from one run to the next
 * (docs/sessions.md). */
#ifndef WICK_CLI_PREFIXES_H
#define WICK_CLI_PREFIXES_H

#include "options.h"

#include <wick/saving.h>

/* A member of a table of options. */
#define CLI_PREFIX_CACHE(type, field)                                                              \
    {.name = "prefix-cache",                                                                       \
     .argument = "FOLDER",                                                                         \
     .help = "keep what was computed in this folder, for later texts with the same beginning",     \
     .kind = &cli_place,                                                                           \
     .offset = offsetof(type, field)}

/* folder NULL: does nothing. What cannot be used is reported and ignored. */
void cli_load_prefixes(wick_model *model, const char *folder);
/* After the sessions are closed. */
void cli_save_prefixes(wick_model *model, const char *folder);

#endif
