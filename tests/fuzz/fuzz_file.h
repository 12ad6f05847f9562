/* tests/fuzz/fuzz_file.h: inputs as files, for what reads from paths. */
#ifndef FUZZ_FILE_H
#define FUZZ_FILE_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static inline void require(bool is_true) {
    if (!is_true) abort();
}

/* A folder of this process, the same one every time. */
static inline const char *fuzz_folder(void) {
    static char folder[] = "/tmp/wick_fuzz_XXXXXX";
    static bool is_made;
    if (!is_made) require(mkdtemp(folder) != NULL);
    is_made = true;
    return folder;
}

static inline void fuzz_write(const char *path, const void *data, size_t size) {
    FILE *const file = fopen(path, "wb");
    require(file != NULL && (size == 0 || fwrite(data, 1, size, file) == size));
    require(fclose(file) == 0);
}

#endif
