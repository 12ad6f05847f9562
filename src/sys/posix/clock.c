/* sys/posix/clock.c: time, memory and random bits from the system. */
#define _DEFAULT_SOURCE /* getentropy, _SC_PHYS_PAGES */
#define _DARWIN_C_SOURCE
#define _POSIX_C_SOURCE 200809L

#include "sys/clock.h"

#include "sys/posix/cgroup.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

uint64_t wk_clock_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000U + (uint64_t)now.tv_nsec;
}

void wk_sleep_us(uint32_t microseconds) {
    const struct timespec time = {.tv_sec = (time_t)(microseconds / 1000000),
                                  .tv_nsec = (long)(microseconds % 1000000) * 1000};
    nanosleep(&time, NULL);
}

/* Linux: ru_maxrss also counts what stood in this process before exec, often a fat shell script's
 * interpreter; the high-water mark in /proc belongs to this program alone. */
uint64_t wk_process_peak_bytes(void) {
    char text[4096];
    uint64_t kib;
    if (wk_read_text("/proc/self/status", text, sizeof text) &&
        wk_find_number(text, "VmHWM:", &kib)) {
        return kib * 1024;
    }
    struct rusage usage;
    if (getrusage(RUSAGE_SELF, &usage) != 0) return 0;
#if defined(__APPLE__)
    return (uint64_t)usage.ru_maxrss;
#else
    return (uint64_t)usage.ru_maxrss * 1024;
#endif
}

static wk_cgroup_limits limits_here(void) {
    return wk_cgroup_read("/proc/self/cgroup", "/sys/fs/cgroup");
}

uint64_t wk_memory_total(void) {
    const long pages = sysconf(_SC_PHYS_PAGES), page_size = sysconf(_SC_PAGESIZE);
    if (pages <= 0 || page_size <= 0) return 0;
    const uint64_t total = (uint64_t)pages * (uint64_t)page_size;
    const uint64_t limit = limits_here().memory_total;
    return limit > 0 && limit < total ? limit : total;
}

/* What ulimit -v leaves to this process. */
static uint64_t address_space_left(void) {
    char text[256];
    struct rlimit limit;
    if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return UINT64_MAX;
    if (!wk_read_text("/proc/self/statm", text, sizeof text)) return UINT64_MAX;
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    const uint64_t used = strtoull(text, NULL, 10) * page;
    return used < limit.rlim_cur ? (uint64_t)limit.rlim_cur - used : 0;
}

bool wk_memory_is_machine(void) { return true; }

uint64_t wk_memory_available(void) {
    char text[4096];
    uint64_t kib;
    if (!wk_read_text("/proc/meminfo", text, sizeof text)) return 0;
    if (!wk_find_number(text, "MemAvailable:", &kib)) return 0;
    const uint64_t available = kib * 1024;
    const wk_cgroup_limits limits = limits_here();
    const bool is_limited = limits.memory_total > 0 && limits.memory_available < available;
    const uint64_t free_here = is_limited ? limits.memory_available : available;
    const uint64_t addresses = address_space_left();
    return addresses < free_here ? addresses : free_here;
}

/* A page fault for each 4 KiB would cost more than what is written there. */
void wk_memory_prefer_large_pages(void *memory, uint64_t size) {
#if defined(MADV_HUGEPAGE)
    const long page_size = sysconf(_SC_PAGESIZE);
    if (page_size <= 0 || size > SIZE_MAX) return;
    const uintptr_t page = (uintptr_t)page_size, end = (uintptr_t)memory + (size_t)size;
    const uintptr_t first = ((uintptr_t)memory + page - 1) / page * page;
    /* A hint: that it cannot be followed changes nothing. */
    if (first < end)
        (void)madvise((void *)first, (size_t)(end - first) / page * page, MADV_HUGEPAGE);
#else
    (void)memory, (void)size;
#endif
}

uint64_t wk_entropy(void) {
    uint64_t bits;
    if (getentropy(&bits, sizeof bits) == 0) return bits;
    /* Kernels older than getentropy: good enough for a seed, which has to differ, not to be secret.
     */
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_nsec << 32 ^ (uint64_t)now.tv_sec ^ (uint64_t)getpid() << 16;
}
