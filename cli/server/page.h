/* server/page.h: the files of the chat page (web/demo/served.html and what it loads), which are in
 * the command. */
#ifndef WICK_CLI_SERVER_PAGE_H
#define WICK_CLI_SERVER_PAGE_H

#include <stddef.h>

typedef struct cli_page_file {
    const char *path;          /* "/", "/served.js" */
    const unsigned char *data; /* [size] */
    size_t size;
} cli_page_file;

extern const cli_page_file cli_page_files[]; /* [cli_n_page_files] */
extern const size_t cli_n_page_files;

/* What a request asks for; NULL: no file of the page. */
const cli_page_file *cli_page_find(const char *method, const char *path);
/* The media type of a file. */
const char *cli_page_type(const cli_page_file *file);

#endif
