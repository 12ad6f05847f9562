/* server/mhd.c: see mhd.h. */
#define _GNU_SOURCE

#include "server/mhd.h"

#include <dlfcn.h>
#include <string.h>

cli_mhd mhd;

/* A function's address is data to dlsym: it is copied, as ISO C has no cast for it. */
static bool find(void *library, const char *name, void *function) {
    void *const found = dlsym(library, name);
    memcpy(function, &found, sizeof found);
    return found != NULL;
}

bool cli_mhd_load(void) {
    static const char *const names[] = {"libmicrohttpd.so.12", "libmicrohttpd.so",
                                        "libmicrohttpd.12.dylib"};
    static void *library;
    for (size_t i = 0; library == NULL && i < sizeof names / sizeof *names; i++)
        library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    bool has_all = library != NULL;
#define MHD_FIND(result, name, ...) has_all = has_all && find(library, "MHD_" #name, &mhd.name);
    MHD_FUNCTIONS(MHD_FIND)
#undef MHD_FIND
    return has_all;
}
