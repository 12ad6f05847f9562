/* hub.h: a repository of models on huggingface.co or a mirror of it: which files it has, and which
 * one is meant. */
#ifndef WICK_CLI_HUB_H
#define WICK_CLI_HUB_H

#include "http.h"
#include "store.h"

#include <stdio.h>

/* The host of models, and who asks. */
typedef struct cli_hub {
    char endpoint[512]; /* without a slash at the end */
    const char *token;  /* NULL: none, or it must not be sent */
} cli_hub;

typedef struct cli_remote_file {
    char *name;        /* may be in a folder of the repository */
    uint64_t size;     /* UINT64_MAX: not reported */
    cli_digest sha256; /* "": not reported */
} cli_remote_file;

typedef struct cli_repository {
    char name[256];         /* OWNER/REPO */
    char licence[128];      /* of its card; "": not reported */
    char revision[128];     /* that the files are of */
    cli_remote_file *files; /* those that end with .gguf, by name */
    size_t n_files;
} cli_repository;

/* mirror: instead of HF_ENDPOINT, which is instead of huggingface.co; NULL. Returns an exit code.
 */
int cli_hub_open(const char *mirror, cli_hub *hub);

/* Asks for the files of OWNER/REPO. Returns an exit code and reports errors. */
int cli_hub_list(const cli_hub *hub, cli_http *http, const char *name, cli_repository *repository);
void cli_repository_free(cli_repository *repository);

/* The model that wanted is: a file's name, or a part of it such as q8_0; NULL: the only one, else
 * the one of q4_k_m. For a split model its first part. NULL: it has reported which there are. */
const cli_remote_file *cli_choose_file(const cli_repository *repository, const char *wanted);
const cli_remote_file *cli_find_file(const cli_repository *repository, const char *name);
/* Lines of a model each, with its size. */
void cli_print_files(const cli_repository *repository, FILE *out);

/* Where a file is fetched, and the page of the repository. Return exit codes. */
int cli_file_url(const cli_hub *hub, const cli_repository *repository, const char *file,
                 cli_path *url);
int cli_repository_page(const cli_hub *hub, const char *name, cli_path *page);

#endif
