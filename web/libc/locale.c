/* locale.c: the "C" locale. */
#include <locale.h>

struct lconv *localeconv(void) {
    static char point[] = ".";
    static struct lconv c = {.decimal_point = point};
    return &c;
}
