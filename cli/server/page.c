/* server/page.c: see page.h. */
#include "server/page.h"

#include <string.h>

const cli_page_file *cli_page_find(const char *method, const char *path) {
    if (strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0) return NULL;
    for (size_t i = 0; i < cli_n_page_files; i++)
        if (strcmp(path, cli_page_files[i].path) == 0) return &cli_page_files[i];
    return NULL;
}

const char *cli_page_type(const cli_page_file *file) {
    static const char *const types[][2] = {
        {".js", "text/javascript"}, {".css", "text/css; charset=utf-8"}, {".svg", "image/svg+xml"}};
    const char *const end = strrchr(file->path, '.');
    for (size_t i = 0; end != NULL && i < sizeof types / sizeof *types; i++)
        if (strcmp(end, types[i][0]) == 0) return types[i][1];
    return "text/html; charset=utf-8";
}
