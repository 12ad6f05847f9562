/* golden/model_path.h: where the tiny models of families are. */
#ifndef WK_TESTS_GOLDEN_MODEL_PATH_H
#define WK_TESTS_GOLDEN_MODEL_PATH_H

#include "fixture_file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* Of a model of ours (tests/data/families), or of the shared fixtures. */
static inline void make_path(const char *name, char *path, size_t size) {
    char file[64];
    snprintf(file, sizeof file, "families/%s.gguf", name);
    FILE *const ours = fixture_path("WICK_TEST_DATA", file, path, size) ? fopen(path, "rb") : NULL;
    if (ours != NULL) {
        fclose(ours);
        return;
    }
    const char *const folder = getenv("WICK_SHARED_DATA");
    if (folder == NULL) {
        print_message("skipped: WICK_SHARED_DATA names no folder with the fixtures (families/)\n");
        skip();
        return; /* never; the compiler does not know */
    }
    snprintf(path, size, "%s/%s", folder, file);
}

#endif
