/* sys/posix/cgroup.c: the limits of a container, from the files of control groups version 2 (Linux,
 * Documentation/admin-guide/cgroup-v2.rst). Where there are none, nothing is limited. */
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

/* cpu.max: "QUOTA PERIOD" in microseconds, or "max PERIOD". */
static void limit_cpus(const char *folder, wk_cgroup_limits *limits) {
    char text[64];
    unsigned long long quota, period;
    if (!read_entry(folder, "cpu.max", text, sizeof text)) return;
    if (sscanf(text, "%llu %llu", &quota, &period) != 2 || quota == 0 || period == 0) return;
    const unsigned long long cpus = (quota - 1) / period + 1;
    if (cpus > INT_MAX) return;
    if (limits->cpus == 0 || (int)cpus < limits->cpus) limits->cpus = (int)cpus;
}

/* What is in use, without the pages of files that the system would give up first. */
static uint64_t memory_used(const char *folder) {
    char text[8192];
    uint64_t used = 0, active = 0, inactive = 0;
    if (read_entry(folder, "memory.current", text, sizeof text)) wk_find_number(text, "", &used);
    if (read_entry(folder, "memory.stat", text, sizeof text)) {
        wk_find_number(text, "active_file ", &active);
        wk_find_number(text, "inactive_file ", &inactive);
    }
    const uint64_t reclaimable = active + inactive;
    return used > reclaimable ? used - reclaimable : 0;
}

static void limit_memory(const char *folder, wk_cgroup_limits *limits) {
    char text[64];
    uint64_t total;
    if (!read_entry(folder, "memory.max", text, sizeof text)) return;
    if (!wk_find_number(text, "", &total) || total == 0) return; /* "max" */
    const uint64_t used = memory_used(folder);
    const uint64_t available = total > used ? total - used : 0;
    const bool is_first = limits->memory_total == 0;
    if (is_first || total < limits->memory_total) limits->memory_total = total;
    if (is_first || available < limits->memory_available) limits->memory_available = available;
}

/* The line of version 2 is "0::/path". */
static bool find_group(const char *membership, char *group, size_t size) {
    char text[PATH_CAPACITY];
    if (!wk_read_text(membership, text, sizeof text)) return false;
    const char *line = strncmp(text, "0::", 3) == 0 ? text : strstr(text, "\n0::");
    if (!line) return false;
    line = strchr(line, '/');
    if (!line) return false;
    const size_t length = strcspn(line, "\n");
    if (length >= size) return false;
    memcpy(group, line, length);
    group[length] = '\0';
    return true;
}

wk_cgroup_limits wk_cgroup_read(const char *membership, const char *mount) {
    wk_cgroup_limits limits = {0};
    char group[PATH_CAPACITY], folder[PATH_CAPACITY];
    if (!find_group(membership, group, sizeof group)) return limits;
    const int length = snprintf(folder, sizeof folder, "%s%s", mount, group);
    if (length < 0 || (size_t)length >= sizeof folder) return limits;
    const size_t root = strlen(mount);
    for (;;) {
        limit_cpus(folder, &limits);
        limit_memory(folder, &limits);
        char *const slash = strrchr(folder, '/');
        if (!slash || (size_t)(slash - folder) < root) return limits;
        *slash = '\0';
    }
}
