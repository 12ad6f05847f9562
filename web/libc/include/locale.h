/* locale.h: there is one locale, "C". */
#ifndef WICK_LIBC_LOCALE_H
#define WICK_LIBC_LOCALE_H

struct lconv {
    char *decimal_point;
};
struct lconv *localeconv(void);

#endif
