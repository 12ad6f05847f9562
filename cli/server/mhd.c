/* server/mhd.c: see mhd.h. */
#define _GNU_SOURCE

#include "server/mhd.h"

#include "library.h"

cli_mhd mhd;

bool cli_mhd_load(void) {
    static const char *const names[] = {"libmicrohttpd.so.12", "libmicrohttpd.so",
                                        "libmicrohttpd.12.dylib"};
    static void *library;
    for (size_t i = 0; library == NULL && i < sizeof names / sizeof *names; i++)
        library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    bool has_all = library != NULL;
#define MHD_FIND(result, name, ...)                                                                \
    has_all = has_all && cli_find_function(library, "MHD_" #name, &mhd.name);
    MHD_FUNCTIONS(MHD_FIND)
#undef MHD_FIND
    return has_all;
}
