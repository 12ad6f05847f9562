/* core/status.h: how a failure is written down and passed on. */
#ifndef WK_CORE_STATUS_H
#define WK_CORE_STATUS_H

#include "core/compiler.h"

#include <wick/base.h>

/* Writes status and sentence into err, unless err already holds an error (the first one stays) or
 * is NULL. Returns status, so that a function can end with `return wk_fail(err, ...)`. */
wick_status wk_fail(wick_error *err, wick_status status, const char *format, ...) WK_PRINTF(3, 4);

/* "512 bytes", "1.5 GiB": to one digit, rounded up (what is needed) or down (what is there), so
 * that the two never look the other way round. */
typedef struct wk_size_text {
    char text[24];
} wk_size_text;
wk_size_text wk_show_size(uint64_t bytes, bool round_up);

/* WICK_ERR_OUT_OF_MEMORY; requested: bytes that are missing, 0: it is not known how many. */
wick_status wk_fail_memory(wick_error *err, uint64_t requested, const char *what);

/* The same where it is known how many there are. */
wick_status wk_fail_memory_of(wick_error *err, uint64_t requested, uint64_t available,
                              const char *what);

/* Passes on what was wrong with the file at path ("": no file): `'PATH': SENTENCE`, unless the
 * sentence has 'PATH' already. */
wick_status wk_fail_in_file(wick_error *err, const char *path, const wick_error *reason);

/* Passes on what became of a call that left its sentence in reason: status, or that of reason,
 * which knows better (a tensor that is NULL is an argument, and why it is NULL the reason). */
wick_status wk_pass_on(wick_error *err, wick_status status, const wick_error *reason);

/* Passes a failure on: anything but WICK_OK is returned from the enclosing function. */
#define WK_TRY(expression)                                                                         \
    do {                                                                                           \
        const wick_status wk_try_status = (expression);                                            \
        if (WK_UNLIKELY(wk_try_status != WICK_OK)) return wk_try_status;                           \
    } while (0)

#endif
