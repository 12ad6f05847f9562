/* sys/posix/cgroup.c: the limits of a container, from the files of control groups (Linux,
 * Documentation/admin-guide/cgroup-v2.rst and cgroup-v1). Where there are none, nothing is limited.
 */
#define _POSIX_C_SOURCE 200809L

#include "sys/posix/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PATH_CAPACITY = 4096 };

bool wk_read_text(const char *path, char *text, size_t size) {
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return false;
    size_t used = 0;
    ssize_t got = 1;
    while (got != 0 && used < size - 1) {
        got = read(fd, text + used, size - 1 - used);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) break;
        used += (size_t)got;
    }
    close(fd);
    text[used] = '\0';
    return got >= 0;
}

bool wk_find_number(const char *text, const char *name, uint64_t *number) {
    const size_t size = strlen(name);
    for (const char *line = text; line; line = strchr(line, '\n')) {
        if (*line == '\n') line++;
        if (strncmp(line, name, size) != 0) continue;
        char *end;
        const unsigned long long value = strtoull(line + size, &end, 10);
        if (end == line + size) continue;
        *number = value;
        return true;
    }
    return false;
}

/* folder/name as text. */
static bool read_entry(const char *folder, const char *name, char *text, size_t size) {
    char path[PATH_CAPACITY + 32];
    const int length = snprintf(path, sizeof path, "%s/%s", folder, name);
    return length > 0 && (size_t)length < sizeof path && wk_read_text(path, text, size);
}

/* quota of period microseconds is granted to the group. */
static void limit_cpus(uint64_t quota, uint64_t period, wk_cgroup_limits *limits) {
    if (quota == 0 || period == 0) return;
    const uint64_t cpus = (quota - 1) / period + 1;
    if (cpus > INT_MAX) return;
    if (limits->cpus == 0 || (int)cpus < limits->cpus) limits->cpus = (int)cpus;
}

/* total bytes are granted, used are in use, of which reclaimable are pages of files that the system
 * gives up first. */
static void limit_memory(uint64_t total, uint64_t used, uint64_t reclaimable,
                         wk_cgroup_limits *limits) {
    if (total == 0) return;
    used = used > reclaimable ? used - reclaimable : 0;
    const uint64_t available = total > used ? total - used : 0;
    const bool is_first = limits->memory_total == 0;
    if (is_first || total < limits->memory_total) limits->memory_total = total;
    if (is_first || available < limits->memory_available) limits->memory_available = available;
}

/* The number that the file is, or that stands after name in it; 0: none, such as "max". */
static uint64_t number_in(const char *folder, const char *file, const char *name) {
    char text[8192];
    uint64_t number = 0;
    if (read_entry(folder, file, text, sizeof text)) wk_find_number(text, name, &number);
    return number;
}

/* ---- Version 2 ---- */

/* cpu.max: "QUOTA PERIOD", or "max PERIOD". */
static void limit_by_v2(const char *folder, wk_cgroup_limits *limits) {
    char text[64];
    unsigned long long quota, period;
    if (read_entry(folder, "cpu.max", text, sizeof text) &&
        sscanf(text, "%llu %llu", &quota, &period) == 2)
        limit_cpus(quota, period, limits);
    limit_memory(number_in(folder, "memory.max", ""), number_in(folder, "memory.current", ""),
                 number_in(folder, "memory.stat", "active_file ") +
                     number_in(folder, "memory.stat", "inactive_file "),
                 limits);
}

/* ---- Version 1: a hierarchy for each controller ---- */

/* A quota of -1 is none. */
static void limit_by_v1_cpu(const char *folder, wk_cgroup_limits *limits) {
    char text[64];
    if (!read_entry(folder, "cpu.cfs_quota_us", text, sizeof text) || text[0] == '-') return;
    limit_cpus(number_in(folder, "cpu.cfs_quota_us", ""),
               number_in(folder, "cpu.cfs_period_us", ""), limits);
}

/* No limit is the largest number of whole pages that fits into 63 bits. */
static void limit_by_v1_memory(const char *folder, wk_cgroup_limits *limits) {
    const uint64_t total = number_in(folder, "memory.limit_in_bytes", "");
    if (total > (uint64_t)INT64_MAX - (1 << 20)) return;
    limit_memory(total, number_in(folder, "memory.usage_in_bytes", ""),
                 number_in(folder, "memory.stat", "total_active_file ") +
                     number_in(folder, "memory.stat", "total_inactive_file "),
                 limits);
}

/* ---- Groups ---- */

static const struct {
    const char *controller; /* in /proc/self/cgroup; "": version 2 */
    const char *folder;     /* where its hierarchy is mounted */
    void (*limit)(const char *folder, wk_cgroup_limits *limits);
} hierarchies[] = {
    {"", "", limit_by_v2},
    {"", "/unified", limit_by_v2}, /* beside hierarchies of version 1 */
    {"memory", "/memory", limit_by_v1_memory},
    {"cpu", "/cpu", limit_by_v1_cpu},
};

static bool has_controller(const char *list, size_t size, const char *controller) {
    const size_t wanted = strlen(controller);
    if (wanted == 0) return size == 0;
    for (size_t at = 0; at < size;) {
        const size_t length = strcspn(list + at, ",:");
        if (length == wanted && memcmp(list + at, controller, wanted) == 0) return true;
        at += length + 1;
    }
    return false;
}

/* The group of a controller, by its line "ID:CONTROLLER,CONTROLLER:/path". */
static bool find_group(const char *membership, const char *controller, char *group, size_t size) {
    for (const char *line = membership; line != NULL; line = strchr(line, '\n')) {
        if (*line == '\n') line++;
        const char *const list = line + strcspn(line, ":\n");
        if (*list != ':') continue;
        const size_t list_size = strcspn(list + 1, ":\n");
        const char *const path = list + 1 + list_size;
        const size_t length = strcspn(path, "\n");
        if (path[0] != ':' || path[1] != '/' || length > size) continue;
        if (!has_controller(list + 1, list_size, controller)) continue;
        memcpy(group, path + 1, length - 1);
        group[length - 1] = '\0';
        return true;
    }
    return false;
}

wk_cgroup_limits wk_cgroup_read(const char *membership, const char *mount) {
    wk_cgroup_limits limits = {0};
    char text[PATH_CAPACITY], group[PATH_CAPACITY], folder[2 * PATH_CAPACITY];
    if (!wk_read_text(membership, text, sizeof text)) return limits;
    for (size_t i = 0; i < sizeof hierarchies / sizeof *hierarchies; i++) {
        if (!find_group(text, hierarchies[i].controller, group, sizeof group)) continue;
        const int length =
            snprintf(folder, sizeof folder, "%s%s%s", mount, hierarchies[i].folder, group);
        if (length < 0 || (size_t)length >= sizeof folder) continue;
        /* A container may see its own group as the root, and the path of the host. */
        const size_t root = strlen(mount) + strlen(hierarchies[i].folder);
        for (;;) {
            hierarchies[i].limit(folder, &limits);
            char *const slash = strrchr(folder, '/');
            if (slash == NULL || (size_t)(slash - folder) < root) break;
            *slash = '\0';
        }
    }
    return limits;
}
