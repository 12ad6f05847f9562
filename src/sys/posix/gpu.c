/* sys/posix/gpu.c: looks for GPUs by the devices of their drivers. Libraries that could ask them
 * take tens of MiB that never come back, since they cannot be unloaded. */
#define _POSIX_C_SOURCE 200809L

#include "sys/dynlib.h"

#if defined(__linux__)

#include <dirent.h>
#include <string.h>

/* Whether a folder has an entry that begins so. */
static bool has_entry(const char *folder, const char *beginning) {
    DIR *const stream = opendir(folder);
    if (stream == NULL) return false;
    bool is_found = false;
    for (const struct dirent *entry; !is_found && (entry = readdir(stream)) != NULL;)
        is_found = strncmp(entry->d_name, beginning, strlen(beginning)) == 0;
    closedir(stream);
    return is_found;
}

/* Of the kernel's own drivers; of NVIDIA, also on Tegra; of Windows below WSL; of Adreno, Mali and
 * PowerVR. A screen without a GPU has only /dev/dri/card0. */
bool wk_has_gpu(void) {
    static const char *const names[] = {"nvidia", "nvhost", "dxg", "kgsl", "mali", "pvr"};
    bool is_found = has_entry("/dev/dri", "render");
    for (size_t i = 0; i < sizeof names / sizeof *names && !is_found; i++)
        is_found = has_entry("/dev", names[i]);
    return is_found;
}

#else

bool wk_has_gpu(void) { return true; }

#endif
