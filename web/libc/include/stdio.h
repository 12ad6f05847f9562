/* stdio.h: text into memory. There are no files and no streams. */
#ifndef WICK_LIBC_STDIO_H
#define WICK_LIBC_STDIO_H

#include <stdarg.h>
#include <stddef.h>

__attribute__((format(printf, 3, 4))) int snprintf(char *out, size_t capacity, const char *format,
                                                   ...);
__attribute__((format(printf, 3, 0))) int vsnprintf(char *out, size_t capacity, const char *format,
                                                    va_list arguments);

#endif
