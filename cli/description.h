/* description.h: what a stored model says of itself. */
#ifndef WICK_CLI_DESCRIPTION_H
#define WICK_CLI_DESCRIPTION_H

typedef struct cli_description {
    char type[16];     /* of most of its bytes, such as q4_k; "": cannot be read */
    char licence[128]; /* as the hub reported it, else as the file says; "": unknown */
} cli_description;

/* path: of the file, or of the first of its parts. */
void cli_describe_model(const char *path, cli_description *description);

#endif
