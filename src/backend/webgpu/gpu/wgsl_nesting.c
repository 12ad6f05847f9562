/* backend/webgpu/gpu/wgsl_nesting.c: how deep a text nests, for a compiler that recurses without a
 * limit of its own: 5000 open brackets, or 20000 operators in a row, end the process with its
 * stack. */
#include "backend/webgpu/gpu/gpu_native.h"

#include <ctype.h>
#include <string.h>

enum {
    MOST_NESTED = 500, /* brackets and operators around one operand: some kilobytes of stack each */
    MOST_ELSES = 2000, /* each is nested in the one before it */
};

/* The end of the comment that begins at `at`; where none does, at itself. Block comments nest. */
static const char *skip_comment(const char *at) {
    if (at[0] != '/' || (at[1] != '/' && at[1] != '*')) return at;
    if (at[1] == '/') return at + strcspn(at, "\n");
    size_t depth = 0;
    do {
        const bool opens = at[0] == '/' && at[1] == '*', closes = at[0] == '*' && at[1] == '/';
        if (opens) depth++;
        if (closes) depth--;
        at += opens || closes ? 2 : 1;
    } while (*at && depth > 0);
    return at;
}

bool wk_wgsl_nests_too_deep(const char *wgsl) {
    size_t around[MOST_NESTED]; /* what each open bracket is nested in */
    size_t n_open = 0, nested = 0, n_elses = 0;
    while (*wgsl) {
        const char *const after = skip_comment(wgsl);
        if (after != wgsl) {
            wgsl = after;
            continue;
        }
        const char c = *wgsl++;
        if (c == ';' || c == '{' || c == '}')
            nested = n_open = 0;
        else if (c == ',')
            nested = n_open > 0 ? around[n_open - 1] : 0;
        else if (c == '(' || c == '[')
            around[n_open++] = ++nested;
        else if ((c == ')' || c == ']') && n_open > 0)
            nested = around[--n_open];
        else if (ispunct((unsigned char)c) && c != '_')
            nested++;
        else if (c == 'e' && strncmp(wgsl, "lse", 3) == 0)
            n_elses++;
        if (nested == MOST_NESTED || n_elses > MOST_ELSES) return true;
    }
    return false;
}
