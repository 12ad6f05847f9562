/* sys/posix/dynlib.c: dlopen, and where this program lies. */
#define _DEFAULT_SOURCE /* readlink, RTLD_NODELETE */
#define _DARWIN_C_SOURCE
#define _POSIX_C_SOURCE 200809L

#include "sys/dynlib.h"

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#if defined(__APPLE__)
#include <mach-o/dyld.h>
#endif

wk_dynlib *wk_dynlib_open(const char *path, char *reason, size_t capacity) {
    void *const handle = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!handle) {
        const char *const text = dlerror();
        snprintf(reason, capacity, "%s", text ? text : "no reason given");
    }
    return handle;
}

wk_dynlib_function wk_dynlib_find(wk_dynlib *library, const char *name) {
    /* POSIX promises that the address fits; C has no conversion for it. */
    void *const address = dlsym(library, name);
    wk_dynlib_function function;
    memcpy(&function, &address, sizeof function);
    return function;
}

void wk_dynlib_close(wk_dynlib *library) { dlclose(library); }

#if defined(__APPLE__)
const char *wk_dynlib_suffix(void) { return ".dylib"; }

static bool program_path(char *path, size_t capacity) {
    uint32_t size = capacity < UINT32_MAX ? (uint32_t)capacity : UINT32_MAX;
    return _NSGetExecutablePath(path, &size) == 0;
}
#else
const char *wk_dynlib_suffix(void) { return ".so"; }

static bool program_path(char *path, size_t capacity) {
    const ssize_t size = readlink("/proc/self/exe", path, capacity);
    if (size <= 0 || (size_t)size >= capacity) return false;
    path[size] = '\0';
    return true;
}
#endif

bool wk_program_folder(char *folder, size_t capacity) {
    if (!program_path(folder, capacity)) return false;
    char *const slash = strrchr(folder, '/');
    if (!slash) return false;
    *slash = '\0';
    return true;
}
