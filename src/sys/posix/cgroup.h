/* sys/posix/cgroup.h: what Linux control groups (versions 1 and 2) grant: the limits of a
 * container. */
#ifndef WK_SYS_POSIX_CGROUP_H
#define WK_SYS_POSIX_CGROUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct wk_cgroup_limits {
    int cpus;                  /* processors' worth of time, rounded up; 0: no limit */
    uint64_t memory_total;     /* bytes; 0: no limit */
    uint64_t memory_available; /* bytes; says something only where memory_total is not 0 */
} wk_cgroup_limits;

/* The tightest limits from this process's group up to the root. membership is the file that names
 * the groups ("/proc/self/cgroup"), mount the folder of all groups ("/sys/fs/cgroup"). */
wk_cgroup_limits wk_cgroup_read(const char *membership, const char *mount);

/* Reads a small text file, at most size - 1 bytes, terminated; false when it cannot be read. */
bool wk_read_text(const char *path, char *text, size_t size);
/* The number after name at the beginning of a line ("MemTotal:  123 kB"). */
bool wk_find_number(const char *text, const char *name, uint64_t *number);

#endif
