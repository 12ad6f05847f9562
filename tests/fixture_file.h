/* tests/fixture_file.h: whole files for tests, from tests/data or from the shared fixtures. */
#ifndef FIXTURE_FILE_H
#define FIXTURE_FILE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct fixture_file {
    uint8_t *data; /* from malloc, the size exact, so that a sanitizer sees a read beyond it */
    size_t size;
} fixture_file;

/* variable: WICK_TEST_DATA (tests/data, as CMake sets it) or WICK_SHARED_DATA. Prints why when
 * there is no such file. */
static inline bool fixture_path(const char *variable, const char *name, char *path, size_t size) {
    const char *const folder = getenv(variable);
    if (folder == NULL) {
        printf("%s: the environment variable %s is not set\n", name, variable);
        return false;
    }
    snprintf(path, size, "%s/%s", folder, name);
    return true;
}

static inline bool fixture_read_path(const char *path, fixture_file *out) {
    *out = (fixture_file){.data = NULL};
    FILE *const file = fopen(path, "rb");
    if (file == NULL) {
        printf("%s: cannot be opened\n", path);
        return false;
    }
    fseek(file, 0, SEEK_END);
    out->size = (size_t)ftell(file);
    rewind(file);
    out->data = malloc(out->size > 0 ? out->size : 1);
    const bool is_read = out->data != NULL && fread(out->data, 1, out->size, file) == out->size;
    fclose(file);
    return is_read;
}

static inline bool fixture_read(const char *variable, const char *name, fixture_file *out) {
    char path[1024];
    *out = (fixture_file){.data = NULL};
    return fixture_path(variable, name, path, sizeof path) && fixture_read_path(path, out);
}

#endif
