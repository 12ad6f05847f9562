/* nearest.c: which name did somebody mean? By edit distance (Damerau, 1964;
 * Levenshtein, 1966). */
#include "options.h"

#include <ctype.h>
#include <string.h>

enum { MAX_LENGTH = 32, FAR_AWAY = MAX_LENGTH + 1 };

static size_t least_of(size_t a, size_t b, size_t c) {
    const size_t ab = a < b ? a : b;
    return ab < c ? ab : c;
}

static bool is_same(char a, char b) {
    return tolower((unsigned char)a) == tolower((unsigned char)b);
}

/* Insertions, deletions, replacements and swaps of neighbours that make a into b. */
static size_t edit_distance(const char *a, const char *b) {
    const size_t a_size = strlen(a), b_size = strlen(b);
    if (a_size > MAX_LENGTH || b_size > MAX_LENGTH) return FAR_AWAY;
    size_t d[MAX_LENGTH + 1][MAX_LENGTH + 1]; /* [i][j]: of a's first i bytes to b's first j */
    for (size_t j = 0; j <= b_size; j++) d[0][j] = j;
    for (size_t i = 1; i <= a_size; i++) {
        d[i][0] = i;
        for (size_t j = 1; j <= b_size; j++) {
            const size_t replaced = d[i - 1][j - 1] + !is_same(a[i - 1], b[j - 1]);
            d[i][j] = least_of(d[i - 1][j] + 1, d[i][j - 1] + 1, replaced);
            const bool is_swap =
                i > 1 && j > 1 && is_same(a[i - 1], b[j - 2]) && is_same(a[i - 2], b[j - 1]);
            if (is_swap && d[i - 2][j - 2] < d[i][j]) d[i][j] = d[i - 2][j - 2] + 1;
        }
    }
    return d[a_size][b_size];
}

const char *cli_nearest(const char *word, const char *const *candidates) {
    const char *nearest = NULL;
    size_t least = 2 + strlen(word) / 4; /* further away it is another word */
    for (; *candidates != NULL; candidates++) {
        /* A beginning or an end of the name is meant often: --tokens for --max-tokens. */
        const bool is_part = strlen(word) >= 3 && strstr(*candidates, word) != NULL;
        const size_t distance = is_part ? 1 : edit_distance(word, *candidates);
        if (distance < least && distance < strlen(word)) {
            least = distance;
            nearest = *candidates;
        }
    }
    return nearest;
}
