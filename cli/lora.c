/* lora.c: see lora.h. */
#define _POSIX_C_SOURCE 200809L /* strndup */

#include "lora.h"

#include "cli.h"
#include "targets.h"

#include <stdlib.h>
#include <string.h>

/* What follows the last "=", where that is a number, is the scale. */
static size_t find_scale(const char *text, float *scale) {
    const char *const equals = strrchr(text, '=');
    char *end = NULL;
    *scale = equals != NULL ? strtof(equals + 1, &end) : 1;
    if (end != NULL && end > equals + 1 && *end == '\0') return (size_t)(equals - text);
    *scale = 1;
    return strlen(text);
}

cli_loras *cli_read_loras(const cli_texts *given) {
    cli_loras *const loras = calloc(1, sizeof *loras);
    if (loras == NULL) {
        cli_error("there is no memory for the list of adapters");
        return NULL;
    }
    for (size_t i = 0; i < given->n; i++) {
        const size_t size = find_scale(given->items[i], &loras->items[i].scale);
        if (size >= sizeof loras->paths[i].text) {
            cli_error("the path of --lora is too long");
            free(loras);
            return NULL;
        }
        memcpy(loras->paths[i].text, given->items[i], size);
        loras->items[i].path = loras->paths[i].text;
    }
    loras->n = given->n;
    return loras;
}

int cli_add_read_loras(const cli_texts *given) {
    int code = CLI_OK;
    for (size_t i = 0; code == CLI_OK && i < given->n; i++) {
        float scale;
        const size_t size = find_scale(given->items[i], &scale);
        char *const path = strndup(given->items[i], size); /* stays until the program ends */
        code = path != NULL ? cli_add_read_file(path)
                            : cli_error("there is no memory for the list of adapters");
    }
    return code;
}
