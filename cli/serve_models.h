/* serve_models.h: the models that a server answers for: one that is loaded, or several that are
 * loaded when a request names them, and closed when they are idle or memory is short. */
#ifndef WICK_CLI_SERVE_MODELS_H
#define WICK_CLI_SERVE_MODELS_H

#include "lora.h"

#include <wick/api.h>

#include <time.h>

typedef struct cli_served_model {
    char *name, *path;
    wick_model *model;
    wick_model_loading *loading; /* NULL: it is not being loaded */
    wick_api *api;               /* NULL: it is not loaded */
    wick_error error;            /* why the last loading failed; status WICK_OK: it did not */
    unsigned n_clients;          /* that wait for it or for its answers */
    time_t used;                 /* when the last one went */
    unsigned idle_seconds;       /* after which it is closed, as the last request said */
    wick_json_document *shown;   /* what /api/show says of its file; NULL: not read yet */
    time_t shown_of;             /* when that file was modified */
} cli_served_model;

typedef struct cli_served_models {
    cli_served_model *items; /* [n], by name */
    size_t n;
    bool is_one; /* which answers whatever model a request names, and stays */
    wick_device *device;
    wick_model_desc model;
    wick_api_desc api;
    const cli_loras *loras;   /* for each of several models that they fit; NULL: none */
    const char *prefix_cache; /* the folder for what their texts leave; NULL: none */
    unsigned idle_seconds;    /* after which a model is closed where requests do not say */
} cli_served_models;

/* Adds a model. False: memory is short. */
bool cli_models_add(cli_served_models *models, const char *name, const char *path);
/* The models of a folder (FILE.gguf is FILE), or for NULL those that were fetched. Returns an exit
 * code. */
int cli_models_find(cli_served_models *models, const char *folder);
/* By its name, which may have ollama's tag ":latest". NULL: none. */
cli_served_model *cli_models_pick(const cli_served_models *models, wick_string name);
/* When a file was changed, seconds since 1970, and its size in bytes where that is not NULL. 0: it
 * cannot be asked. */
int64_t cli_modified(const char *path, uint64_t *size);
/* Begins to load it where it is not there; a failure is its error. */
void cli_models_want(cli_served_models *models, cli_served_model *model);
/* False: it is being loaded, or clients wait for its answers. */
bool cli_models_unload(const cli_served_models *models, cli_served_model *model);
/* Goes on with loading and with all answers, and closes what is idle. False: there is nothing to
 * do. */
bool cli_models_step(cli_served_models *models);
/* What there is, as GET /v1/models has it, or ollama's /api/tags or /api/ps. To be freed; NULL: out
 * of memory. */
typedef enum cli_model_list { CLI_LIST_OPENAI, CLI_LIST_TAGS, CLI_LIST_RUNNING } cli_model_list;
char *cli_models_list(const cli_served_models *models, cli_model_list list, size_t *size);
/* The same of one that is not loaded, as GET /v1/models/NAME has it, or ollama's /api/show. To be
 * freed; NULL: its file cannot be read. */
char *cli_models_show(const cli_served_model *model, bool is_ollamas, size_t *size);
/* ollama's answer of one that was unloaded. To be freed; NULL: out of memory. */
char *cli_models_unloaded(const cli_served_model *model, bool is_chat, size_t *size);
void cli_models_close(cli_served_models *models);

#endif
