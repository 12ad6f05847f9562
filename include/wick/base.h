/* wick/base.h: status codes, errors, allocator hook, version.
 *
 * Every fallible call returns a wick_status (negative: error). The sentence that explains an error
 * is kept in a wick_error: either one that the caller passes, or the sticky one of a device. */
#ifndef WICK_BASE_H
#define WICK_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Precedes every public function. A program may define it before it includes Wick. */
#if defined(WICK_API)
#elif defined(_WIN32) && defined(WICK_SHARED)
#ifdef WICK_BUILD
#define WICK_API __declspec(dllexport)
#else
#define WICK_API __declspec(dllimport)
#endif
#elif defined(__GNUC__)
#define WICK_API __attribute__((visibility("default")))
#else
#define WICK_API
#endif

#define WICK_VERSION_MAJOR 0
#define WICK_VERSION_MINOR 1
#define WICK_VERSION_PATCH 0

/* X(name, value, text). Negative values are errors; the list is the only place that names them. */
#define WICK_STATUS_LIST(X)                                                                        \
    X(OK, 0, "ok")                                                                                 \
    X(PENDING, 1, "not finished yet, poll again")                                                  \
    X(ERR_ARGUMENT, -1, "invalid argument")                                                        \
    X(ERR_SHAPE, -2, "shapes do not fit")                                                          \
    X(ERR_DIM, -3, "dimension out of range or named twice")                                        \
    X(ERR_DTYPE, -4, "data type not accepted here")                                                \
    X(ERR_INDEX, -5, "index out of range")                                                         \
    X(ERR_VALUE, -6, "attribute value not accepted")                                               \
    X(ERR_STATE, -7, "call not allowed in this state")                                             \
    X(ERR_OUT_OF_MEMORY, -8, "out of memory")                                                      \
    X(ERR_UNSUPPORTED, -9, "not supported")                                                        \
    X(ERR_NOT_FOUND, -10, "not found")                                                             \
    X(ERR_IO, -11, "input or output failed")                                                       \
    X(ERR_FORMAT, -12, "malformed data")                                                           \
    X(ERR_NO_DEVICE, -13, "no such device")                                                        \
    X(ERR_DEVICE_LOST, -14, "device lost")                                                         \
    X(ERR_DEVICE, -15, "device reported an error")                                                 \
    X(ERR_MISMATCH, -16, "verification found a difference")                                        \
    X(ERR_CANCELLED, -17, "cancelled")                                                             \
    X(ERR_INTERNAL, -18, "internal error")

typedef enum wick_status {
#define WICK_STATUS_ENUM(name, value, text) WICK_##name = (value),
    WICK_STATUS_LIST(WICK_STATUS_ENUM)
#undef WICK_STATUS_ENUM
} wick_status;

/* The fixed English phrase of a status, never NULL. Static storage. */
WICK_API const char *wick_status_text(wick_status status);

/* A failure: its status, one sentence that says what was wrong and where, and for
 * WICK_ERR_OUT_OF_MEMORY the bytes asked for and the bytes that were available (0: unknown).
 * Zero-initialise it before the first call; the first failure written to it stays. */
typedef struct wick_error {
    wick_status status;
    uint64_t bytes_requested, bytes_available;
    char message[512];
} wick_error;

/* Text that is not owned. NULL only where size is 0. */
typedef struct wick_string {
    const char *text;
    size_t size;
} wick_string;

/* Memory hook. allocate returns NULL on failure and memory aligned for any type otherwise;
 * release gets the size that was asked for. Called from the thread that owns the device only. */
typedef struct wick_allocator {
    void *(*allocate)(void *user, size_t size);
    void (*release)(void *user, void *memory, size_t size);
    void *user;
} wick_allocator;

typedef enum wick_log_level {
    WICK_LOG_DEBUG,
    WICK_LOG_INFO,
    WICK_LOG_WARNING,
} wick_log_level;

/* Receives one line of text without a newline. The library itself never prints. */
typedef void (*wick_log_fn)(void *user, wick_log_level level, const char *message);

/* "0.1.0". Static storage. */
WICK_API const char *wick_version(void);

#ifdef __cplusplus
}
#endif

#endif
