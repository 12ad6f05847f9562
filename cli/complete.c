/* complete.c: see complete.h. */
#define _POSIX_C_SOURCE 200809L

#include "complete.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static bool begins(const char *text, const char *beginning, size_t size) {
    return strncmp(text, beginning, size) == 0;
}

/* tail: what follows name, "/" or "". */
static void add(cli_completion *c, const char *name, const char *tail) {
    const size_t size = strlen(name) + strlen(tail) + 1;
    char *const item = malloc(size);
    if (item == NULL) return;
    snprintf(item, size, "%s%s", name, tail);
    if (c->n == 0) c->common = size - 1;
    while (c->n > 0 && !begins(item, c->items[0], c->common)) c->common--;
    if (c->n < CLI_MAX_CANDIDATES) {
        c->items[c->n++] = item;
    } else {
        c->n_left_out++;
        free(item);
    }
}

static bool is_folder(const char *folder, const char *name) {
    struct stat info;
    char path[4096];
    const int length = snprintf(path, sizeof path, "%s/%s", folder, name);
    return length > 0 && (size_t)length < sizeof path && stat(path, &info) == 0 &&
           S_ISDIR(info.st_mode);
}

/* Names in the folder of a path that begin with its last part. */
static void add_paths(cli_completion *c, const char *path) {
    const char *const slash = strrchr(path, '/');
    const char *const name = slash != NULL ? slash + 1 : path;
    char folder[4096];
    const int length = slash == NULL ? snprintf(folder, sizeof folder, ".")
                       : slash == path
                           ? snprintf(folder, sizeof folder, "/")
                           : snprintf(folder, sizeof folder, "%.*s", (int)(slash - path), path);
    DIR *const dir = length > 0 && (size_t)length < sizeof folder ? opendir(folder) : NULL;
    if (dir == NULL) return;
    c->typed = strlen(name);
    for (const struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        const bool is_hidden = entry->d_name[0] == '.' && name[0] != '.';
        const bool is_own = strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0;
        if (!is_hidden && !is_own && begins(entry->d_name, name, c->typed))
            add(c, entry->d_name, is_folder(folder, entry->d_name) ? "/" : "");
    }
    closedir(dir);
}

static int by_text(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

void cli_complete(const cli_typed *words, const char *line, cli_completion *c) {
    *c = (cli_completion){.after = " "};
    if (line[0] != '/') return;
    const size_t size = strcspn(line, " ");
    const bool is_name = line[size] == '\0';
    if (is_name) c->typed = size - 1;
    const char *const argument = line + size + strspn(line + size, " ");
    for (const cli_typed *word = words; word->name != NULL; word++) {
        if (is_name && begins(word->name, line + 1, size - 1)) add(c, word->name, "");
        if (is_name || strlen(word->name) != size - 1 || !begins(word->name, line + 1, size - 1))
            continue;
        if (word->takes_path) add_paths(c, argument);
        if (word->words == NULL || strchr(argument, ' ') != NULL) continue;
        c->typed = strlen(argument);
        for (const char *const *one = word->words; *one != NULL; one++)
            if (begins(*one, argument, c->typed)) add(c, *one, "");
    }
    qsort(c->items, c->n, sizeof *c->items, by_text);
    while (c->n > 0 && ((unsigned char)c->items[0][c->common] & 0xC0U) == 0x80) c->common--;
    /* A folder goes on. */
    if (c->n == 1 && c->common > 0 && c->items[0][c->common - 1] == '/') c->after = "";
}

void cli_completion_free(cli_completion *completion) {
    for (size_t i = 0; i < completion->n; i++) free(completion->items[i]);
    completion->n = 0;
}
