/* file_out.c: see file_out.h. */
#define _POSIX_C_SOURCE 200809L

#include "file_out.h"

#include "cli.h"
#include "store.h"
#include "targets.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool write_all(const char *path, const char *mode, const char *text, size_t size) {
    FILE *const file = fopen(path, mode);
    if (file == NULL) return false;
    const bool is_written = fwrite(text, 1, size, file) == size;
    return fclose(file) == 0 && is_written;
}

int cli_write_file(const char *path, const char *text, size_t size) {
    char end[32];
    cli_path new_one;
    struct stat info;
    if (cli_check_target(path, NULL) != CLI_OK) return CLI_FAILURE;
    const bool is_direct = stat(path, &info) == 0 && !S_ISREG(info.st_mode);
    snprintf(end, sizeof end, ".wick-%ld", (long)getpid());
    if (!cli_path_join(path, end, &new_one)) return CLI_FAILURE;
    if (is_direct && write_all(path, "wb", text, size)) return CLI_OK;
    if (!is_direct && write_all(new_one.text, "wbx", text, size) && rename(new_one.text, path) == 0)
        return CLI_OK;
    const int error = errno;
    if (!is_direct) (void)unlink(new_one.text);
    return cli_error("cannot write '%s': %s", path, strerror(error));
}
