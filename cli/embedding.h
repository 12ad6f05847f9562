/* embedding.h: what the commands share that read many texts: lists of them, and an embedder's wait.
 */
#ifndef WICK_CLI_EMBEDDING_H
#define WICK_CLI_EMBEDDING_H

#include "input.h"
#include "options.h"

#include <wick/embed.h>

/* Zeros: empty. The texts are those of the command line, or lie in the file that was read. */
typedef struct cli_text_list {
    const char **items; /* [n] of sizes */
    size_t *sizes;
    size_t n;
    cli_input input;
} cli_text_list;

/* Return an exit code and report errors; the list is freed in either case. */
int cli_list_arguments(const cli_texts *given, cli_text_list *list);
/* A text for each line, empty lines too. Lines end with LF or CR LF; the last one may lack it.
 * NULL: standard input. */
int cli_list_lines(const char *path, cli_text_list *list);
void cli_text_list_free(cli_text_list *list);

/* Until what was started has ended: its status; WICK_ERR_CANCELLED: by Ctrl-C. */
wick_status cli_embedder_wait(wick_embedder *embedder, wick_device *device);

#endif
