/* sys/posix/file_errno.h: what reading (file.c) and writing (file_write.c) of files share. */
#ifndef WK_SYS_POSIX_FILE_ERRNO_H
#define WK_SYS_POSIX_FILE_ERRNO_H

#include "core/status.h"

#include <stddef.h>
#include <sys/types.h>

/* Linux moves at most 0x7ffff000 bytes in one call, other systems refuse more than INT_MAX. */
static const size_t WK_MAX_TRANSFER = (size_t)1 << 30;

/* "cannot VERB 'PATH': REASON", from errno. */
wick_status wk_fail_errno(wick_error *err, int error, const char *verb, const char *path);
/* open with O_CLOEXEC; errno is never EINTR. */
int wk_open_retrying(const char *path, int flags, mode_t mode);

#endif
