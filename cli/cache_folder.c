/* cache_folder.c: see cache_folder.h. The folder follows the XDG Base Directory Specification,
 * which says that a path that is not absolute is to be ignored. */
#define _POSIX_C_SOURCE 200809L

#include "cache_folder.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* A variable and what stands between its folder and ours. */
typedef struct place {
    const char *variable, *below;
} place;

static bool find_path(const place *places, size_t n, const char *name, char *path, size_t size) {
    for (size_t i = 0; i < n; i++) {
        const char *const base = getenv(places[i].variable);
        const bool is_ours = places[i].below[0] == '\0'; /* may be relative to the working folder */
        if (base == NULL || base[0] == '\0' || (base[0] != '/' && !is_ours)) continue;
        const char *const slash = name[0] != '\0' ? "/" : "";
        const int length = snprintf(path, size, "%s%s%s%s", base, places[i].below, slash, name);
        if (length > 0 && (size_t)length < size) return true;
        break;
    }
    path[0] = '\0';
    return false;
}

bool cli_cache_path(const char *name, char *path, size_t size) {
    static const place places[] = {
        {"WICK_HOME", ""}, {"XDG_CACHE_HOME", "/wick"}, {"HOME", "/.cache/wick"}};
    return find_path(places, sizeof places / sizeof *places, name, path, size);
}

bool cli_state_path(const char *name, char *path, size_t size) {
    static const place places[] = {{"XDG_STATE_HOME", "/wick"}, {"HOME", "/.local/state/wick"}};
    return find_path(places, sizeof places / sizeof *places, name, path, size);
}

bool cli_make_folders(const char *folder) {
    char *const path = strdup(folder);
    if (path == NULL) return false;
    int first_error = 0;
    for (char *at = strchr(path + 1, '/'); at != NULL; at = strchr(at + 1, '/')) {
        *at = '\0';
        /* The last mkdir shows whether the folder exists; the first error says why not. */
        if (mkdir(path, 0700) != 0 && errno != EEXIST && first_error == 0) first_error = errno;
        *at = '/';
    }
    struct stat info;
    bool is_there = mkdir(path, 0700) == 0;
    if (!is_there && errno == ENOENT && first_error != 0) errno = first_error;
    if (!is_there && errno == EEXIST) {
        is_there = stat(path, &info) == 0 && S_ISDIR(info.st_mode);
        errno = is_there ? 0 : ENOTDIR;
    }
    const int error = errno;
    free(path);
    errno = error;
    return is_there;
}
