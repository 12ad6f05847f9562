/* library.h: functions of libraries that are loaded while the program runs. */
#ifndef WICK_CLI_LIBRARY_H
#define WICK_CLI_LIBRARY_H

#include <dlfcn.h>
#include <stdbool.h>
#include <string.h>

/* function: where its address goes. dlsym has it as data, and ISO C has no cast from that to a
 * function: it is copied. False: the library has none of that name. */
static inline bool cli_find_function(void *library, const char *name, void *function) {
    void *const found = dlsym(library, name);
    memcpy(function, &found, sizeof found);
    return found != NULL;
}

#endif
