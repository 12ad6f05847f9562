/* store.h: the folder of fetched models, models/ in the cache folder: OWNER/REPO/FILE.gguf, or
 * HOST/PATH/FILE.gguf for what has no hub. Beside a model FILE.gguf.note says where it is from;
 * FILE.gguf.part is what has come of one that is not there yet. */
#ifndef WICK_CLI_STORE_H
#define WICK_CLI_STORE_H

#include "http.h"
#include "names.h"

#include <wick/base.h>

/* ---- Notes ---- */

typedef struct cli_note {
    char source[2048]; /* the URL, or hf:OWNER/REPO:FILE */
    char etag[CLI_ETAG_BYTES];
    char licence[128]; /* as the hub reports it; "": not reported */
    cli_digest sha256; /* "": not known yet */
} cli_note;

/* Of the model at path. Zeros where there is none. */
void cli_note_read(const char *path, cli_note *note);
int cli_note_write(const char *path, const cli_note *note);

/* The path in the store for a name like OWNER/REPO/FILE.gguf. Returns an exit code. */
int cli_store_path(const char *name, cli_path *path);

/* ---- What is there ---- */

typedef struct cli_stored_model {
    char *name;               /* OWNER/REPO/FILE.gguf; of the first part */
    uint64_t size;            /* bytes that are there */
    int64_t time;             /* of the last change, seconds since 1970 */
    uint32_t n_parts, n_here; /* files that it has, and that are complete */
} cli_stored_model;

typedef struct cli_stored_models {
    cli_stored_model *items; /* by name */
    size_t n;
} cli_stored_models;

/* Returns an exit code. A folder that is not there holds nothing. */
int cli_store_list(cli_stored_models *models);
void cli_store_free(cli_stored_models *models);

/* The one model that somebody means: by its name, OWNER/REPO or the end of its name from a slash
 * on, in either case, with or without "hf:", "https://" and ".gguf". *model is NULL where there is
 * none. Returns an exit code; reports it if there are several. */
int cli_pick_model(const cli_stored_models *models, const char *wanted,
                   const cli_stored_model **model);

/* hf:OWNER/REPO[:FILE] or an address: what 'wick pull' fetches. */
bool cli_is_remote(const char *given);

/* The path to open for what stands on the command line: a file of that name, else the one stored
 * model that it names, else given itself, so that opening it reports what is wrong. fetches: given
 * itself also where it is remote and not here or not complete. Returns an exit code; has reported
 * where there are several, it is not complete, or not here. */
int cli_find_model(const char *given, bool fetches, cli_path *path);

#endif
