/* adapters.h: the adapters of WebGPU as `wick devices` shows them. */
#ifndef WICK_CLI_ADAPTERS_H
#define WICK_CLI_ADAPTERS_H

#include "json_out.h"

#include <wick/wick.h>

/* Each as some lines of text, under its number. library NULL: of all implementations found. */
void cli_print_adapters(const char *library);
/* As an array. */
void cli_json_adapters(cli_json *json, const char *library);

#endif
