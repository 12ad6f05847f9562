/* core/status.c: the sentences of failures, and the version. */
#include "core/status.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Two steps, so that the argument is expanded before it becomes text. */
#define TEXT_OF(x) #x
#define VERSION_TEXT(major, minor, patch) TEXT_OF(major) "." TEXT_OF(minor) "." TEXT_OF(patch)

const char *wick_version(void) {
    return VERSION_TEXT(WICK_VERSION_MAJOR, WICK_VERSION_MINOR, WICK_VERSION_PATCH);
}

const char *wick_status_text(wick_status status) {
    switch (status) {
#define STATUS_CASE(name, value, text)                                                             \
    case WICK_##name: return text;
        WICK_STATUS_LIST(STATUS_CASE)
#undef STATUS_CASE
    }
    return "unknown status";
}

/* A sentence that was cut ends in "..." and never in half a UTF-8 character. */
static void mark_cut(char *message, size_t size) {
    size_t end = size - 4;
    while (end > 0 && ((unsigned char)message[end] & 0xC0) == 0x80) end--;
    memcpy(message + end, "...", 4);
}

wick_status wk_fail(wick_error *err, wick_status status, const char *format, ...) {
    assert(status < 0);
    if (!err || err->status != WICK_OK) return status;
    va_list arguments;
    va_start(arguments, format);
    const int length = vsnprintf(err->message, sizeof err->message, format, arguments);
    va_end(arguments);
    if (length < 0) err->message[0] = '\0';
    if (length >= (int)sizeof err->message) mark_cut(err->message, sizeof err->message);
    err->status = status;
    err->bytes_requested = err->bytes_available = 0;
    return status;
}

wk_size_text wk_show_size(uint64_t bytes, bool round_up) {
    static const char *const units[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    wk_size_text result;
    if (bytes < 1024) {
        snprintf(result.text, sizeof result.text, "%d byte%s", (int)bytes, bytes == 1 ? "" : "s");
        return result;
    }
    size_t unit = 0;
    uint64_t whole = bytes, rest = 0; /* of 1024, with all that lies below */
    bool is_exact = true;
    for (; whole >= 1024; unit++) {
        is_exact = is_exact && rest == 0;
        rest = whole % 1024;
        whole /= 1024;
    }
    uint64_t tenths = (10 * rest) / 1024;
    if (round_up && (!is_exact || 10 * rest % 1024 != 0)) tenths++;
    tenths += 10 * whole;
    if (tenths == 10 * 1024) { /* rounded up to one of the next unit */
        tenths = 10;
        unit++;
    }
    snprintf(result.text, sizeof result.text, "%" PRIu64 ".%" PRIu64 " %s", tenths / 10,
             tenths % 10, units[unit - 1]);
    return result;
}

wick_status wk_fail_memory(wick_error *err, uint64_t requested, const char *what) {
    return wk_fail_memory_of(err, requested, 0, what);
}

wick_status wk_fail_memory_of(wick_error *err, uint64_t requested, uint64_t available,
                              const char *what) {
    if (!err || err->status != WICK_OK) return WICK_ERR_OUT_OF_MEMORY;
    const wk_size_text needed = wk_show_size(requested, true);
    const wk_size_text there = wk_show_size(available, false);
    if (available > 0)
        wk_fail(err, WICK_ERR_OUT_OF_MEMORY, "not enough memory for %s: %s needed, %s available",
                what, needed.text, there.text);
    else if (requested > 0)
        wk_fail(err, WICK_ERR_OUT_OF_MEMORY, "not enough memory for %s: %s needed", what,
                needed.text);
    else
        wk_fail(err, WICK_ERR_OUT_OF_MEMORY, "not enough memory for %s", what);
    err->bytes_requested = requested;
    err->bytes_available = available;
    return WICK_ERR_OUT_OF_MEMORY;
}

wick_status wk_pass_on(wick_error *err, wick_status status, const wick_error *reason) {
    if (status >= 0) return status;
    if (reason->status == WICK_OK) return wk_fail(err, status, "%s", wick_status_text(status));
    if (err != NULL && err->status == WICK_OK) *err = *reason;
    return reason->status;
}

/* In quotes: without them a file called "m" would be in every sentence. */
static bool names_path(const char *message, const char *path) {
    const size_t size = strlen(path);
    for (const char *at = strchr(message, '\''); at != NULL; at = strchr(at + 1, '\''))
        if (strncmp(at + 1, path, size) == 0 && at[1 + size] == '\'') return true;
    return false;
}

wick_status wk_fail_in_file(wick_error *err, const char *path, const wick_error *reason) {
    if (err == NULL || err->status != WICK_OK) return reason->status;
    const bool is_named = path[0] == '\0' || names_path(reason->message, path);
    (void)wk_fail(err, reason->status, "%s%s%s%s", is_named ? "" : "'", is_named ? "" : path,
                  is_named ? "" : "': ", reason->message);
    err->bytes_requested = reason->bytes_requested;
    err->bytes_available = reason->bytes_available;
    return reason->status;
}
