/* store.c: notes, and what is in the folder. */
#define _POSIX_C_SOURCE 200809L
#define _FILE_OFFSET_BITS 64

#include "store.h"

#include "cache_folder.h"
#include "cli.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- Notes: lines of a key, a blank and a value ---- */

typedef struct note_field {
    const char *key;
    char *text;
    size_t size;
} note_field;

enum { N_FIELDS = 4 };

static void list_fields(cli_note *note, note_field fields[N_FIELDS]) {
    fields[0] = (note_field){"source", note->source, sizeof note->source};
    fields[1] = (note_field){"etag", note->etag, sizeof note->etag};
    fields[2] = (note_field){"licence", note->licence, sizeof note->licence};
    fields[3] = (note_field){"sha256", note->sha256.text, sizeof note->sha256.text};
}

void cli_note_read(const char *path, cli_note *note) {
    *note = (cli_note){0};
    cli_path where;
    note_field fields[N_FIELDS];
    char line[sizeof note->source + 16];
    list_fields(note, fields);
    if (!cli_path_join(path, ".note", &where)) return;
    FILE *const file = fopen(where.text, "r");
    if (file == NULL) return;
    while (fgets(line, sizeof line, file) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        char *const value = strchr(line, ' ');
        if (value == NULL) continue;
        *value = '\0';
        for (size_t i = 0; i < N_FIELDS; i++) {
            if (strcmp(line, fields[i].key) != 0 || strlen(value + 1) >= fields[i].size) continue;
            memcpy(fields[i].text, value + 1, strlen(value + 1) + 1);
        }
    }
    fclose(file);
}

static int fail_write(const char *path) {
    return cli_error("cannot write '%s': %s", path, strerror(errno));
}

int cli_note_write(const char *path, const cli_note *note) {
    cli_path where, new_one;
    note_field fields[N_FIELDS];
    cli_note copy = *note;
    list_fields(&copy, fields);
    if (!cli_path_join(path, ".note", &where) || !cli_path_join(path, ".note.new", &new_one))
        return CLI_FAILURE;
    FILE *const file = fopen(new_one.text, "w");
    if (file == NULL) return fail_write(new_one.text);
    for (size_t i = 0; i < N_FIELDS; i++) {
        for (char *at = fields[i].text; *at != '\0'; at++)
            if (iscntrl((unsigned char)*at)) *at = '?'; /* a server's text forges no line */
        fprintf(file, "%s %s\n", fields[i].key, fields[i].text);
    }
    const bool is_lost = ferror(file) != 0;
    if (fclose(file) == 0 && !is_lost && rename(new_one.text, where.text) == 0) return CLI_OK;
    (void)fail_write(where.text);
    (void)unlink(new_one.text);
    return CLI_FAILURE;
}

/* ---- Paths ---- */

static bool find_root(cli_path *root) {
    if (cli_cache_path("models", root->text, sizeof root->text)) return true;
    cli_error("no place for models: set WICK_HOME, XDG_CACHE_HOME or HOME");
    return false;
}

int cli_store_path(const char *name, cli_path *path) {
    cli_path root;
    if (!cli_is_safe_name(name)) return cli_error("'%s' cannot be the name of a file", name);
    if (!find_root(&root)) return CLI_FAILURE;
    const size_t used = strlen(root.text);
    if (used + 1 >= sizeof root.text) return cli_error("the path of the models is too long");
    root.text[used] = '/';
    root.text[used + 1] = '\0';
    return cli_path_join(root.text, name, path) ? CLI_OK : CLI_FAILURE;
}

/* ---- Listing ---- */

typedef struct lister {
    cli_stored_models *models;
    size_t capacity;
    size_t root_size; /* bytes of a path before the model's name */
} lister;

enum { MAX_DEPTH = 16 };

static bool append(lister *l, const char *name, const struct stat *info, bool is_here) {
    cli_part part;
    if (!cli_part_parse(name, &part)) return true;
    if (l->models->n == l->capacity) {
        const size_t wanted = l->capacity > 0 ? 2 * l->capacity : 16;
        cli_stored_model *const items = realloc(l->models->items, wanted * sizeof *items);
        if (items == NULL) return false;
        l->models->items = items;
        l->capacity = wanted;
    }
    cli_path first;
    cli_part_name(name, &part, 1, &first);
    cli_stored_model *const model = &l->models->items[l->models->n];
    *model = (cli_stored_model){.name = strdup(first.text),
                                .size = (uint64_t)info->st_size,
                                .time = (int64_t)info->st_mtime,
                                .n_parts = part.count,
                                .n_here = is_here};
    l->models->n += model->name != NULL;
    return model->name != NULL;
}

/* False: out of memory. Links to folders are not followed, so there is no circle. */
static bool walk(lister *l, const char *folder, int depth) {
    static const char PART[] = ".part";
    DIR *const stream = opendir(folder);
    if (stream == NULL) return true;
    bool is_fine = true;
    for (const struct dirent *entry; is_fine && (entry = readdir(stream)) != NULL;) {
        cli_path path;
        struct stat info;
        const int length = snprintf(path.text, sizeof path.text, "%s/%s", folder, entry->d_name);
        if (entry->d_name[0] == '.' || length < 0 || (size_t)length >= sizeof path.text ||
            lstat(path.text, &info) != 0)
            continue;
        if (S_ISDIR(info.st_mode) && depth < MAX_DEPTH) is_fine = walk(l, path.text, depth + 1);
        if (S_ISLNK(info.st_mode) && stat(path.text, &info) != 0) continue;
        if (!S_ISREG(info.st_mode)) continue;
        char *const end = path.text + length - (sizeof PART - 1);
        const bool is_part = (size_t)length >= sizeof PART && strcmp(end, PART) == 0;
        if (is_part) *end = '\0';
        is_fine = append(l, path.text + l->root_size, &info, !is_part);
    }
    closedir(stream);
    return is_fine;
}

static int by_name(const void *a, const void *b) {
    return strcmp(((const cli_stored_model *)a)->name, ((const cli_stored_model *)b)->name);
}

/* The files of a model become one. */
static void merge(cli_stored_models *models) {
    size_t n = 0;
    for (size_t i = 0; i < models->n; i++) {
        cli_stored_model *const from = &models->items[i];
        cli_stored_model *const to = n > 0 ? &models->items[n - 1] : from;
        if (n == 0 || strcmp(to->name, from->name) != 0) {
            models->items[n++] = *from;
            continue;
        }
        to->size += from->size;
        to->n_here += from->n_here;
        if (from->time > to->time) to->time = from->time;
        free(from->name);
    }
    models->n = n;
}

int cli_store_list(cli_stored_models *models) {
    *models = (cli_stored_models){0};
    cli_path root;
    if (!find_root(&root)) return CLI_FAILURE;
    if (access(root.text, R_OK | X_OK) != 0 && errno != ENOENT)
        return cli_error("cannot read the folder '%s': %s", root.text, strerror(errno));
    lister l = {.models = models, .root_size = strlen(root.text) + 1};
    const bool is_fine = walk(&l, root.text, 0);
    if (!is_fine) {
        cli_store_free(models);
        return cli_error("out of memory for the list of models");
    }
    if (models->n > 0) qsort(models->items, models->n, sizeof *models->items, by_name);
    merge(models);
    return CLI_OK;
}

void cli_store_free(cli_stored_models *models) {
    for (size_t i = 0; i < models->n; i++) free(models->items[i].name);
    free(models->items);
    *models = (cli_stored_models){0};
}

/* ---- Finding ---- */

static const char *skip_prefix(const char *text, const char *prefix) {
    const size_t size = strlen(prefix);
    return strncasecmp(text, prefix, size) == 0 ? text + size : text;
}

/* Of bytes of a name: a colon is what a slash is, as hf:OWNER/REPO:FILE has it. */
static bool is_same(const char *a, const char *b, size_t size) {
    for (size_t i = 0; i < size; i++) {
        const int x = a[i] == ':' ? '/' : tolower((unsigned char)a[i]);
        const int y = b[i] == ':' ? '/' : tolower((unsigned char)b[i]);
        if (x != y) return false;
    }
    return true;
}

/* The name up to size bytes is wanted, or has it from one slash, or end, to another. */
static bool is_meant(const char *name, size_t size, const char *wanted, size_t wanted_size) {
    if (wanted_size == 0) return false;
    for (size_t at = 0; at + wanted_size <= size; at++) {
        const size_t end = at + wanted_size;
        const bool is_whole = (at == 0 || name[at - 1] == '/') && (end == size || name[end] == '/');
        if (is_whole && is_same(name + at, wanted, wanted_size)) return true;
    }
    return false;
}

/* wanted is OWNER/REPO:TYPE, and the model's file has that in its name. */
static bool is_type_of(const char *name, const char *wanted) {
    const size_t size = strcspn(wanted, ":");
    return wanted[size] == ':' && strlen(name) > size && name[size] == '/' &&
           is_same(name, wanted, size) && cli_has_type(name + size + 1, wanted + size + 1);
}

static const char *skip_scheme(const char *text) {
    return skip_prefix(skip_prefix(text, "https://"), "http://");
}

static bool is_named(const cli_stored_model *model, const char *wanted) {
    cli_part part = {0}, wanted_part;
    cli_path own;
    const char *const of_url = skip_scheme(wanted);
    const char *const name = skip_prefix(of_url, "hf:");
    const size_t size = of_url != wanted ? strcspn(name, "?#") : strlen(name);
    if (size >= sizeof own.text) return false;
    snprintf(own.text, sizeof own.text, "%.*s", (int)size, name);
    if (is_type_of(model->name, own.text)) return true;
    (void)cli_part_parse(model->name, &part); /* is in the list because it can be */
    return is_meant(model->name, part.stem, own.text,
                    cli_part_parse(own.text, &wanted_part) ? wanted_part.stem : size);
}

/* The model whose whole name it is; NULL: there is none. */
static const cli_stored_model *find_exact(const cli_stored_models *models, const char *wanted) {
    const char *const name = skip_prefix(skip_scheme(wanted), "hf:");
    for (size_t i = 0; i < models->n; i++) {
        const char *const own = models->items[i].name;
        if (strlen(own) == strlen(name) && is_same(own, name, strlen(name)))
            return &models->items[i];
    }
    return NULL;
}

int cli_pick_model(const cli_stored_models *models, const char *wanted,
                   const cli_stored_model **model) {
    size_t n = 0;
    *model = find_exact(models, wanted);
    if (*model != NULL) return CLI_OK;
    for (size_t i = 0; i < models->n; i++) {
        if (!is_named(&models->items[i], wanted)) continue;
        *model = &models->items[i];
        n++;
    }
    if (n <= 1) return CLI_OK;
    cli_error("'%s' may be one of several models; choose one of:", wanted);
    for (size_t i = 0; i < models->n; i++)
        if (is_named(&models->items[i], wanted)) fprintf(stderr, "  %s\n", models->items[i].name);
    return CLI_FAILURE;
}

bool cli_is_remote(const char *given) {
    return skip_prefix(given, "hf:") != given || skip_prefix(given, "https://") != given ||
           skip_prefix(given, "http://") != given;
}

int cli_find_model(const char *given, bool fetches, cli_path *path) {
    cli_path root;
    const bool is_fetched = fetches && cli_is_remote(given);
    if (!cli_path_join(given, "", path)) return CLI_FAILURE;
    if (access(given, F_OK) == 0 || !cli_cache_path("models", root.text, sizeof root.text))
        return CLI_OK;
    cli_stored_models models;
    const cli_stored_model *found = NULL;
    int code = cli_store_list(&models);
    if (code != CLI_OK) return code;
    cli_path named; /* an address of the hub's page is a name, too */
    code =
        cli_pick_model(&models, cli_hub_from_url(NULL, given, &named) ? named.text : given, &found);
    const bool is_whole = found != NULL && found->n_here >= found->n_parts;
    if (code == CLI_OK && is_fetched && !is_whole) {
        cli_store_free(&models);
        return CLI_OK;
    }
    if (code == CLI_OK && found != NULL && !is_whole)
        code = cli_error("%s is not complete; 'wick pull' continues the fetch", found->name);
    else if (code == CLI_OK && found != NULL)
        code = cli_store_path(found->name, path);
    else if (code == CLI_OK && cli_is_remote(given))
        code = cli_error("%s is not here; 'wick pull %s' fetches it", given, given);
    cli_store_free(&models);
    return code;
}
