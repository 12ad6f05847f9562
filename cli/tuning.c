/* tuning.c: the files of the tuner. */
#define _POSIX_C_SOURCE 200809L

#include "tuning.h"

#include "cache_folder.h"
#include "cli.h"
#include "file_out.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PATH_BYTES = 1024, MOST_BYTES = 1 << 16 };

/* What files are named after: letters and digits stay, all else becomes a single dash. */
static void append_name(char *path, size_t size, const char *text) {
    size_t used = strlen(path);
    for (; *text != '\0' && used + 2 < size; text++) {
        const char c = *text;
        const bool is_kept =
            (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.';
        if (is_kept)
            path[used++] = c;
        else if (used > 0 && path[used - 1] != '-')
            path[used++] = '-';
    }
    path[used] = '\0';
}

/* Makes the folder of the cache too, where it is wanted. False: there is no place for it. */
static bool find_path(const wick_device *device, bool is_made, char *path, size_t size) {
    if (!cli_cache_path("", path, size)) return false;
    if (is_made) (void)cli_make_folders(path); /* an error shows when the file is written */
    wick_device_info info;
    wick_device_get_info(device, &info);
    const wick_adapter_info *const a = &info.adapter;
    char name[256], ids[32];
    snprintf(ids, sizeof ids, "%04x-%04x", (unsigned)a->vendor_id, (unsigned)a->device_id);
    const char *const parts[] = {"tuning ", ids, " ",    a->name, " ",
                                 a->driver, " ", a->api, " ",     a->implementation};
    name[0] = '\0';
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        append_name(name, sizeof name - 4, parts[i]);
    const size_t used = strlen(path);
    return (size_t)snprintf(path + used, size - used, "/%s.txt", name) < size - used;
}

static int tune(wick_device *device, FILE *file, const char *path) {
    char *const text = malloc(MOST_BYTES);
    if (text == NULL) return cli_error("out of memory for %s", path);
    size_t n_ignored = 0;
    const size_t size = fread(text, 1, MOST_BYTES, file);
    const wick_status status = wick_device_tune(device, text, size, &n_ignored, NULL);
    free(text);
    if (status == WICK_OK && n_ignored > 0)
        cli_warn("%s: %zu unusable line%s ignored", path, n_ignored,
                 n_ignored == 1 ? " is" : "s are");
    return CLI_OK;
}

int cli_tuning_load(wick_device *device, const char *given, bool is_needed) {
    char path[PATH_BYTES];
    wick_device_info info;
    wick_device_get_info(device, &info);
    if (info.backend != WICK_BACKEND_WEBGPU || (given != NULL && strcmp(given, "none") == 0))
        return CLI_OK;
    if (given == NULL && !find_path(device, false, path, sizeof path)) return CLI_OK;
    if (given != NULL && (size_t)snprintf(path, sizeof path, "%s", given) >= sizeof path)
        return cli_error("the path of the tuning is too long");
    FILE *const file = fopen(path, "rb");
    if (file == NULL && (given == NULL || !is_needed)) return CLI_OK;
    if (file == NULL) return cli_error("%s: %s", path, strerror(errno));
    const int code = tune(device, file, path);
    fclose(file);
    return code;
}

int cli_tuning_store(wick_device *device, const char *given) {
    char path[PATH_BYTES];
    const size_t size = wick_device_get_tuning(device, NULL, 0);
    if (size == 0) return cli_error("this device has no tunings to store");
    if (given != NULL && strcmp(given, "none") == 0)
        return cli_error("--store needs a file, but --tuning is none");
    if (given == NULL && !find_path(device, true, path, sizeof path))
        return cli_error("no place for the tuning: set WICK_HOME, XDG_CACHE_HOME or HOME");
    char *const text = malloc(size);
    if (text == NULL) return cli_error("out of memory for the tuning");
    (void)wick_device_get_tuning(device, text, size);
    const char *const out = given != NULL ? given : path;
    const int code = cli_write_file(out, text, size);
    if (code == CLI_OK) cli_say("stored in %s", out);
    free(text);
    return code;
}
