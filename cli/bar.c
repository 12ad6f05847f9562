/* bar.c: see bar.h. U+2588 is a full block, U+2589 to U+258F are seven to one eighths of it. */
#include "bar.h"

#include <string.h>

cli_bar cli_bar_of(double share, size_t n) {
    enum { EIGHTHS = 8 };
    static const char block[] = "\xE2\x96\x88"; /* UTF-8 */
    cli_bar bar = {.text = ""};
    if (n > CLI_BAR_COLUMNS) n = CLI_BAR_COLUMNS;
    if (!(share > 0)) share = 0;
    if (share > 1) share = 1;
    size_t rest = (size_t)(share * (double)(EIGHTHS * n) + 0.5);
    if (rest == 0 && share > 0) rest = 1; /* something is not nothing */
    char *at = bar.text;
    for (size_t i = 0; i < n; i++) {
        const size_t filled = rest < EIGHTHS ? rest : EIGHTHS;
        rest -= filled;
        if (filled == 0) {
            *at++ = ' ';
            continue;
        }
        memcpy(at, block, 3);
        at[2] = (char)(at[2] + (char)(EIGHTHS - filled));
        at += 3;
    }
    return bar;
}
