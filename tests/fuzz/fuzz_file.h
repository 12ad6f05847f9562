/* tests/fuzz/fuzz_file.h: inputs as files, for what reads from paths. */
#ifndef FUZZ_FILE_H
#define FUZZ_FILE_H

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static inline void require(bool is_true) {
    if (!is_true) abort();
}

static char fuzz_made[] = "/tmp/wick_fuzz_XXXXXX";

static inline void fuzz_remove_folder(void) {
    DIR *const dir = opendir(fuzz_made);
    for (struct dirent *entry; dir != NULL && (entry = readdir(dir)) != NULL;)
        (void)unlinkat(dirfd(dir), entry->d_name, 0);
    if (dir != NULL) closedir(dir);
    (void)rmdir(fuzz_made);
}

/* A folder of this process, the same one every time, which goes with it. */
static inline const char *fuzz_folder(void) {
    static bool is_made;
    if (!is_made) require(mkdtemp(fuzz_made) != NULL && atexit(fuzz_remove_folder) == 0);
    is_made = true;
    return fuzz_made;
}

static inline void fuzz_write(const char *path, const void *data, size_t size) {
    FILE *const file = fopen(path, "wb");
    require(file != NULL && (size == 0 || fwrite(data, 1, size, file) == size));
    require(fclose(file) == 0);
}

#endif
