/* models.c: `wick models` lists the store, `wick rm` removes a model from it. */
#define _POSIX_C_SOURCE 200809L

#include "cli.h"
#include "description.h"
#include "json_out.h"
#include "store.h"
#include "text_out.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* ---- wick models ---- */

typedef struct models_options {
    bool json;
} models_options;

static const cli_option models_table[] = {
    {.name = "json",
     .help = "print JSON",
     .kind = &cli_flag,
     .offset = offsetof(models_options, json)},
};
static const cli_group models_group = {"Options", models_table, 1};
static const cli_group *const models_groups[] = {&models_group, NULL};

typedef struct date_text {
    char text[16];
} date_text;

static date_text date_of(int64_t time) {
    date_text date = {""};
    const time_t seconds = (time_t)time;
    struct tm local;
    if (localtime_r(&seconds, &local) != NULL)
        (void)strftime(date.text, sizeof date.text, "%Y-%m-%d", &local);
    return date;
}

static bool is_complete(const cli_stored_model *model) { return model->n_here >= model->n_parts; }

static void describe(const cli_stored_model *model, cli_path *path, cli_description *description) {
    *description = (cli_description){.type = ""};
    if (cli_store_path(model->name, path) == CLI_OK && is_complete(model))
        cli_describe_model(path->text, description);
}

static void print_line(const cli_stored_model *model, size_t name_width) {
    cli_path path;
    cli_description description;
    describe(model, &path, &description);
    cli_put_padded(stdout, model->name, name_width);
    printf("  %10s  %-10s  %s  ", cli_bytes_text(model->size).text,
           !is_complete(model)           ? "unfinished"
           : description.type[0] != '\0' ? description.type
                                         : "unreadable",
           date_of(model->time).text);
    cli_put_escaped(stdout, description.licence, strlen(description.licence));
    putchar('\n');
}

static void print_lines(const cli_stored_models *models) {
    size_t width = 4;
    for (size_t i = 0; i < models->n; i++) {
        const size_t length = strlen(models->items[i].name);
        if (length > width) width = length;
    }
    printf("%-*s  %10s  %-10s  %-10s  %s\n", (int)width, "name", "size", "type", "date", "licence");
    for (size_t i = 0; i < models->n; i++) print_line(&models->items[i], width);
}

static void put_text(cli_json *json, const char *key, const char *text) {
    cli_json_key(json, key);
    if (text[0] != '\0')
        cli_json_string(json, text);
    else
        cli_json_null(json);
}

static void put_model(cli_json *json, const cli_stored_model *model) {
    cli_path path = {""};
    cli_description description;
    cli_note note;
    describe(model, &path, &description);
    cli_note_read(path.text, &note);
    cli_json_open(json, '{');
    put_text(json, "name", model->name);
    put_text(json, "path", path.text);
    cli_json_key(json, "bytes");
    cli_json_unsigned(json, model->size);
    cli_json_key(json, "complete");
    cli_json_bool(json, is_complete(model));
    put_text(json, "type", description.type);
    put_text(json, "licence", description.licence);
    put_text(json, "date", date_of(model->time).text);
    put_text(json, "source", note.source);
    put_text(json, "sha256", note.sha256.text);
    cli_json_close(json, '}');
}

static int run_models(void *given) {
    const models_options *const o = given;
    cli_stored_models models;
    const int code = cli_store_list(&models);
    if (code != CLI_OK) return code;
    if (o->json) {
        cli_json json = {.out = stdout};
        cli_json_open(&json, '[');
        for (size_t i = 0; i < models.n; i++) put_model(&json, &models.items[i]);
        cli_json_close(&json, ']');
    } else if (models.n > 0) {
        print_lines(&models);
    } else {
        cli_say("no models yet; 'wick pull' fetches them");
    }
    cli_store_free(&models);
    return CLI_OK;
}

const cli_command cli_models = {
    .name = "models",
    .summary = "list the models that were fetched by 'wick pull'",
    .groups = models_groups,
    .options_size = sizeof(models_options),
    .run = run_models,
};

/* ---- wick rm ---- */

typedef struct rm_options {
    const char *name;
    bool yes;
} rm_options;

static const cli_option rm_table[] = {
    {.argument = "NAME",
     .help = "the name in 'wick models', or a part of it: OWNER/REPO, REPO, or the file's name",
     .kind = &cli_text,
     .offset = offsetof(rm_options, name),
     .is_required = true},
    {.name = "yes",
     .letter = 'y',
     .help = "do not ask",
     .kind = &cli_flag,
     .offset = offsetof(rm_options, yes)},
};
static const cli_group rm_group = {"Arguments and options", rm_table, 2};
static const cli_group *const rm_groups[] = {&rm_group, NULL};

/* Asks the user for confirmation; without a terminal that is an error. */
static int ask(const cli_stored_model *model) {
    char line[16] = "";
    if (isatty(STDIN_FILENO) != 1)
        return cli_error("standard input is not a terminal, so there is no one to ask; --yes "
                         "removes %s without asking",
                         model->name);
    fprintf(stderr, "remove %s (%s)? [y/N] ", model->name, cli_bytes_text(model->size).text);
    fflush(stderr);
    if (fgets(line, sizeof line, stdin) != NULL && (line[0] == 'y' || line[0] == 'Y'))
        return CLI_OK;
    cli_say("it was kept");
    return CLI_FAILURE;
}

/* The file with what stands beside it; what is not there is gone already. */
static int remove_file(const char *path) {
    static const char *const ends[] = {"", ".note", ".part", ".part.note"};
    cli_path one;
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        if (!cli_path_join(path, ends[i], &one)) return CLI_FAILURE;
        if (unlink(one.text) != 0 && errno != ENOENT)
            return cli_error("cannot remove '%s': %s", one.text, strerror(errno));
    }
    return CLI_OK;
}

/* As many as the name has; one that holds something else stays, with those above it. */
static void remove_folders(cli_path *path, const char *name) {
    for (; (name = strchr(name, '/')) != NULL; name++) {
        *strrchr(path->text, '/') = '\0';
        if (rmdir(path->text) != 0) break;
    }
}

static int remove_model(const cli_stored_model *model) {
    cli_part part = {0};
    cli_path name, path;
    (void)cli_part_parse(model->name, &part);
    for (uint32_t i = 1; i <= part.count; i++) {
        cli_part_name(model->name, &part, i, &name);
        int code = cli_store_path(name.text, &path);
        if (code == CLI_OK) code = remove_file(path.text);
        if (code != CLI_OK) return code;
    }
    remove_folders(&path, model->name);
    return CLI_OK;
}

static int run_rm(void *given) {
    const rm_options *const o = given;
    cli_stored_models models;
    int code = cli_store_list(&models);
    if (code != CLI_OK) return code;
    const cli_stored_model *model = NULL;
    code = cli_pick_model(&models, o->name, &model);
    if (code == CLI_OK && model == NULL)
        code = cli_error("there is no model '%s'; 'wick models' lists them", o->name);
    if (code == CLI_OK && !o->yes) code = ask(model);
    if (code == CLI_OK) code = remove_model(model);
    cli_store_free(&models);
    return code;
}

const cli_command cli_rm = {
    .name = "rm",
    .summary = "remove a model that was fetched by 'wick pull'",
    .groups = rm_groups,
    .options_size = sizeof(rm_options),
    .run = run_rm,
};
