/* serve_models.c: see serve_models.h. */
#define _POSIX_C_SOURCE 200809L

#include "serve_models.h"

#include "cli.h"
#include "json_out.h"
#include "prefixes.h"
#include "store.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* ---- What there is ---- */

bool cli_models_add(cli_served_models *models, const char *name, const char *path) {
    cli_served_model *const grown = realloc(models->items, (models->n + 1) * sizeof *grown);
    if (grown == NULL) return false;
    models->items = grown;
    cli_served_model *const model = &grown[models->n];
    *model = (cli_served_model){
        .name = strdup(name), .path = strdup(path), .idle_seconds = models->idle_seconds};
    if (model->name != NULL && model->path != NULL) {
        models->n++;
        return true;
    }
    free(model->name);
    free(model->path);
    return false;
}

static int by_name(const void *a, const void *b) {
    return strcmp(((const cli_served_model *)a)->name, ((const cli_served_model *)b)->name);
}

/* The first part of a model stands for all of it. */
static int add_file(cli_served_models *models, const char *folder, const char *file) {
    cli_part part;
    cli_path slashed, path;
    char name[256];
    if (!cli_part_parse(file, &part) || part.index != 1 || part.stem >= sizeof name) return CLI_OK;
    memcpy(name, file, part.stem);
    name[part.stem] = '\0';
    if (!cli_path_join(folder, "/", &slashed) || !cli_path_join(slashed.text, file, &path))
        return CLI_FAILURE;
    return cli_models_add(models, name, path.text) ? CLI_OK : cli_error("out of memory");
}

static int find_in_folder(cli_served_models *models, const char *folder) {
    DIR *const files = opendir(folder);
    if (files == NULL) return cli_error("cannot read '%s': %s", folder, strerror(errno));
    int code = CLI_OK;
    for (const struct dirent *file; code == CLI_OK && (file = readdir(files)) != NULL;)
        code = add_file(models, folder, file->d_name);
    closedir(files);
    if (code == CLI_OK && models->n == 0) return cli_error("'%s' holds no FILE.gguf", folder);
    return code;
}

static int find_fetched(cli_served_models *models) {
    cli_stored_models stored = {0};
    int code = cli_store_list(&stored);
    for (size_t i = 0; code == CLI_OK && i < stored.n; i++) {
        const cli_stored_model *const item = &stored.items[i];
        cli_path path;
        if (item->n_here < item->n_parts) continue;
        code = cli_store_path(item->name, &path);
        if (code == CLI_OK && !cli_models_add(models, item->name, path.text))
            code = cli_error("out of memory");
    }
    cli_store_free(&stored);
    if (code == CLI_OK && models->n == 0)
        return cli_error("no model was fetched: name a file, or fetch one by 'wick pull'");
    return code;
}

int cli_models_find(cli_served_models *models, const char *folder) {
    const int code = folder != NULL ? find_in_folder(models, folder) : find_fetched(models);
    if (code == CLI_OK) qsort(models->items, models->n, sizeof *models->items, by_name);
    return code;
}

static cli_served_model *find(const cli_served_models *models, const char *name, size_t size) {
    for (size_t i = 0; i < models->n; i++) {
        cli_served_model *const model = &models->items[i];
        if (strlen(model->name) == size && memcmp(model->name, name, size) == 0) return model;
    }
    return NULL;
}

cli_served_model *cli_models_pick(const cli_served_models *models, wick_string name) {
    static const char tag[] = ":latest";
    const size_t n = sizeof tag - 1, rest = name.size > n ? name.size - n : 0;
    cli_served_model *const found = find(models, name.text, name.size);
    if (found != NULL || rest == 0 || memcmp(name.text + rest, tag, n) != 0) return found;
    return find(models, name.text, rest);
}

int64_t cli_modified(const char *path, uint64_t *size) {
    struct stat about;
    if (stat(path, &about) != 0) return 0;
    if (size != NULL) *size = (uint64_t)about.st_size;
    return (int64_t)about.st_mtime;
}

static void write_openais(cli_json *json, const cli_served_model *model) {
    const char *const state = model->api != NULL       ? "loaded"
                              : model->loading != NULL ? "loading"
                                                       : "unloaded";
    /* What Anthropic says of its own models only. */
    static const char *const unsaid[] = {"max_input_tokens", "max_tokens", "capabilities",
                                         "deprecated_at",    "retires_at", "line"};
    const int64_t created = cli_modified(model->path, NULL);
    cli_json_open(json, '{');
    cli_json_put_string(json, "id", model->name);
    cli_json_put_string(json, "object", "model");
    cli_json_put_unsigned(json, "created", (uint64_t)created);
    cli_json_put_string(json, "owned_by", "wick");
    cli_json_put_string(json, "type", "model"); /* Anthropic's names of the same */
    cli_json_put_string(json, "display_name", model->name);
    cli_json_put_time(json, "created_at", (time_t)created);
    cli_json_put_string(json, "lifecycle", "active");
    for (size_t i = 0; i < sizeof unsaid / sizeof *unsaid; i++) {
        cli_json_key(json, unsaid[i]);
        cli_json_null(json);
    }
    cli_json_key(json, "status");
    cli_json_open(json, '{');
    cli_json_put_string(json, "value", state);
    cli_json_close(json, '}');
    cli_json_close(json, '}');
}

/* The header of a file takes milliseconds, and clients ask for the list again and again. */
static const wick_json *shown_of(cli_served_model *model, time_t modified) {
    size_t size = 0;
    if (model->shown != NULL && model->shown_of == modified) return wick_json_root(model->shown);
    wick_json_free(model->shown);
    model->shown = NULL;
    model->shown_of = modified;
    char *const text = cli_models_show(model, true, &size);
    if (text != NULL) (void)wick_json_parse(text, size, &model->shown, NULL);
    free(text);
    return wick_json_root(model->shown);
}

/* Without those whose files cannot be read: clients want what is in them. One that is loaded is
 * there without it. */
static void write_ollamas(cli_json *json, cli_served_model *model, time_t expires) {
    uint64_t size = 0;
    const time_t modified = (time_t)cli_modified(model->path, &size);
    const wick_json *const shown = shown_of(model, modified);
    if (shown == NULL && expires == 0) return;
    cli_json_open(json, '{');
    cli_json_put_string(json, "name", model->name);
    cli_json_put_string(json, "model", model->name);
    cli_json_put_time(json, "modified_at", modified);
    cli_json_put_unsigned(json, "size", size);
    cli_json_key(json, "digest");
    cli_json_value(json, wick_json_get(shown, "digest"));
    cli_json_key(json, "details");
    cli_json_value(json, wick_json_get(shown, "details"));
    if (expires > 0) {
        wick_model_info info;
        wick_model_get_info(model->model, &info);
        cli_json_put_time(json, "expires_at", expires);
        cli_json_put_unsigned(json, "size_vram", info.weight_bytes);
    }
    cli_json_close(json, '}');
}

char *cli_models_list(const cli_served_models *models, cli_model_list list, size_t *size) {
    char *text = NULL;
    FILE *const out = open_memstream(&text, size);
    if (out == NULL) return NULL;
    cli_json json = {.out = out, .is_line = true};
    cli_json_open(&json, '{');
    if (list == CLI_LIST_OPENAI) {
        cli_json_put_string(&json, "object", "list");
        cli_json_key(&json, "has_more");
        cli_json_bool(&json, false);
    }
    cli_json_key(&json, list == CLI_LIST_OPENAI ? "data" : "models");
    cli_json_open(&json, '[');
    for (size_t i = 0; i < models->n; i++) {
        cli_served_model *const model = &models->items[i];
        const time_t since = model->n_clients > 0 ? time(NULL) : model->used;
        if (list == CLI_LIST_OPENAI)
            write_openais(&json, model);
        else if (list == CLI_LIST_TAGS)
            write_ollamas(&json, model, 0);
        else if (model->api != NULL)
            write_ollamas(&json, model, since + (time_t)model->idle_seconds);
    }
    cli_json_close(&json, ']');
    cli_json_close(&json, '}');
    fclose(out);
    return text;
}

char *cli_models_show(const cli_served_model *model, bool is_ollamas, size_t *size) {
    enum { MOST = 256 * 1024 };
    wick_file *file = NULL;
    char *text = NULL;
    if (!is_ollamas) {
        FILE *const out = open_memstream(&text, size);
        if (out == NULL) return NULL;
        cli_json json = {.out = out, .is_line = true};
        write_openais(&json, model);
        fclose(out);
        return text;
    }
    if (wick_file_open(model->path, &file, NULL) == WICK_OK && (text = malloc(MOST)) != NULL)
        *size = wick_api_show(file, text, MOST);
    wick_file_close(file);
    if (*size > 0) return text;
    free(text);
    return NULL;
}

char *cli_models_unloaded(const cli_served_model *model, bool is_chat, size_t *size) {
    char *text = NULL;
    FILE *const out = open_memstream(&text, size);
    if (out == NULL) return NULL;
    cli_json json = {.out = out, .is_line = true};
    cli_json_open(&json, '{');
    cli_json_put_string(&json, "model", model->name);
    cli_json_put_time(&json, "created_at", time(NULL));
    if (is_chat) cli_json_key(&json, "message");
    if (is_chat) cli_json_open(&json, '{');
    if (is_chat) cli_json_put_string(&json, "role", "assistant");
    cli_json_put_string(&json, is_chat ? "content" : "response", "");
    if (is_chat) cli_json_close(&json, '}');
    cli_json_key(&json, "done");
    cli_json_bool(&json, true);
    cli_json_put_string(&json, "done_reason", "unload");
    cli_json_close(&json, '}');
    fclose(out);
    return text;
}

/* ---- Loading and closing ---- */

static void close_model(const cli_served_models *models, cli_served_model *model) {
    const bool was_served = model->api != NULL;
    wick_api_close(model->api);
    if (was_served) cli_save_prefixes(model->model, models->prefix_cache);
    wick_model_close(model->model);
    model->api = NULL;
    model->model = NULL;
}

bool cli_models_unload(const cli_served_models *models, cli_served_model *model) {
    if (model->loading != NULL || model->n_clients > 0) return false;
    close_model(models, model);
    return true;
}

/* Clients learn that it failed, the server's owner learns why: the sentence has a path. */
static void report(cli_served_model *model) {
    cli_warn("'%s' is not loaded: %s", model->name, model->error.message);
    snprintf(model->error.message, sizeof model->error.message, "the model cannot be loaded");
}

void cli_models_want(cli_served_models *models, cli_served_model *model) {
    const char *const path = model->path;
    wick_source source = {0};
    if (model->api != NULL || model->loading != NULL) return;
    model->error = (wick_error){.status = WICK_OK};
    if (wick_source_files(&path, 1, &source, &model->error) == WICK_OK)
        (void)wick_model_open_start(models->device, source, &models->model, &model->loading,
                                    &model->error);
    if (model->loading == NULL) report(model);
}

/* The one that was used the longest ago, of those that no client waits for. */
static cli_served_model *find_idle(const cli_served_models *models) {
    cli_served_model *found = NULL;
    for (size_t i = 0; i < models->n; i++) {
        cli_served_model *const model = &models->items[i];
        if (model->api != NULL && model->n_clients == 0 &&
            (found == NULL || model->used < found->used))
            found = model;
    }
    return found;
}

/* Those of the server's adapters that are for this model. */
static wick_status open_loras(const cli_served_models *models, cli_served_model *model,
                              wick_api_lora *made, size_t *n) {
    for (size_t i = 0; models->loras != NULL && i < models->loras->n; i++) {
        const wick_merge *const given = &models->loras->items[i];
        wick_error error = {0};
        wick_api_lora *const lora = &made[*n];
        *lora = (wick_api_lora){.path = given->path, .use.scale = given->scale};
        const wick_status status =
            wick_lora_open(model->model, given->path, &lora->use.lora, &error);
        if (status == WICK_ERR_OUT_OF_MEMORY) {
            model->error = error;
            return status;
        }
        if (status == WICK_OK)
            ++*n;
        else
            cli_warn("'%s' is served without an adapter: %s", model->name, error.message);
    }
    return WICK_OK;
}

/* With the adapters that fit it, and the draft model if that does. */
static wick_status open_api(const cli_served_models *models, cli_served_model *model) {
    wick_api_lora loras[CLI_MAX_TEXTS];
    wick_api_desc desc = models->api;
    desc.name = model->name;
    desc.path = model->path;
    desc.modified = cli_modified(model->path, NULL);
    desc.loras = loras;
    desc.n_loras = 0;
    wick_status status = open_loras(models, model, loras, &desc.n_loras);
    if (status != WICK_OK) return status;
    status = wick_api_open(model->model, &desc, &model->api, &model->error);
    if (desc.session.draft == NULL ||
        (status != WICK_ERR_MISMATCH && status != WICK_ERR_UNSUPPORTED))
        return status;
    const wick_error misfit = model->error;
    desc.session.draft = NULL;
    if (desc.session.speculate == WICK_SPECULATE_DRAFT)
        desc.session.speculate = WICK_SPECULATE_AUTO;
    model->error = (wick_error){.status = WICK_OK};
    status = wick_api_open(model->model, &desc, &model->api, &model->error);
    if (status == WICK_OK)
        cli_warn("'%s' is served without the draft model: %s", model->name, misfit.message);
    return status;
}

/* Where memory is short, an idle model makes room for it. */
static void finish_loading(cli_served_models *models, cli_served_model *model) {
    wick_status status = wick_model_open_finish(model->loading, &model->model, &model->error);
    model->loading = NULL;
    if (status == WICK_OK) {
        status = open_api(models, model);
        model->used = time(NULL); /* loading may have taken longer than it stays idle */
        if (status == WICK_OK)
            cli_load_prefixes(model->model, models->prefix_cache);
        else
            close_model(models, model);
    }
    cli_served_model *const idle = find_idle(models);
    if (status == WICK_ERR_OUT_OF_MEMORY && idle != NULL) {
        close_model(models, idle);
        cli_models_want(models, model);
    } else if (status != WICK_OK) {
        report(model);
    }
}

bool cli_models_step(cli_served_models *models) {
    const time_t now = time(NULL);
    bool is_busy = false;
    for (size_t i = 0; i < models->n; i++) {
        cli_served_model *const model = &models->items[i];
        if (model->loading != NULL) {
            is_busy = true;
            if (wick_model_open_poll(model->loading, NULL) == WICK_PENDING) continue;
            finish_loading(models, model);
        } else if (model->api != NULL) {
            is_busy |= wick_api_step(model->api) == WICK_PENDING;
            if (!models->is_one && model->n_clients == 0 &&
                now - model->used >= (time_t)model->idle_seconds)
                close_model(models, model);
        }
    }
    return is_busy;
}

void cli_models_close(cli_served_models *models) {
    for (size_t i = 0; i < models->n; i++) {
        cli_served_model *const model = &models->items[i];
        wick_model *loaded = NULL;
        if (model->loading != NULL) (void)wick_model_open_finish(model->loading, &loaded, NULL);
        wick_model_close(loaded);
        if (models->is_one) model->model = NULL; /* its owner's */
        close_model(models, model);
        wick_json_free(model->shown);
        free(model->name);
        free(model->path);
    }
    free(models->items);
    *models = (cli_served_models){0};
}
