/* nearest.c: which name did somebody mean? By edit distance (Damerau, 1964;
 * Levenshtein, 1966). */
#include "options.h"

#include <ctype.h>
#include <string.h>

enum { MAX_LENGTH = 32, FAR_AWAY = 2 * MAX_LENGTH + 1 };

static size_t least_of(size_t a, size_t b, size_t c) {
    const size_t ab = a < b ? a : b;
    return ab < c ? ab : c;
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
            const size_t replaced = d[i - 1][j - 1] + (a[i - 1] != b[j - 1]);
            d[i][j] = least_of(d[i - 1][j] + 1, d[i][j - 1] + 1, replaced);
            const bool is_swap = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
            if (is_swap && d[i - 2][j - 2] < d[i][j]) d[i][j] = d[i - 2][j - 2] + 1;
        }
    }
    return d[a_size][b_size];
}

/* Small letters, without what people leave out or exchange: "Q4_K_M" and "q4-km" are "q4km". What
 * is longer than all names is cut. */
static void fold(const char *word, char folded[MAX_LENGTH + 2]) {
    size_t n = 0;
    for (; *word != '\0' && n <= MAX_LENGTH; word++)
        if (*word != '_' && *word != '-') folded[n++] = (char)tolower((unsigned char)*word);
    folded[n] = '\0';
}

/* Whether the letters of part stand in whole, in their order: those of "cnvrt" in "convert". */
static bool has_letters(const char *whole, const char *part) {
    for (; *part != '\0' && *whole != '\0'; whole++)
        if (*whole == *part) part++;
    return *part == '\0';
}

/* How far the candidate is from word, both folded: two for each edit, FAR_AWAY where it is another
 * word. Letters are left out more often than mistyped: one less where nothing else is wrong. */
static size_t distance_of(const char *word, const char *candidate) {
    const size_t size = strlen(word);
    const size_t n_edits = edit_distance(word, candidate);
    if (n_edits == 0) return 0;
    /* A beginning or an end of the name is meant often: --tokens for --max-tokens. */
    if (size >= 3 && strncmp(candidate, word, size) == 0) return 1;
    if (size >= 3 && strstr(candidate, word) != NULL) return 2;
    if (n_edits >= size || n_edits >= 2 + size / 4) return FAR_AWAY;
    return 2 * n_edits - has_letters(candidate, word);
}

const char *cli_nearest(const char *word, const char *const *candidates) {
    const char *nearest = NULL;
    char folded[MAX_LENGTH + 2], other[MAX_LENGTH + 2];
    size_t least = FAR_AWAY;
    fold(word, folded);
    if (folded[0] == '\0') return NULL;
    for (; *candidates != NULL; candidates++) {
        fold(*candidates, other);
        const size_t distance = distance_of(folded, other);
        if (distance < least) {
            least = distance;
            nearest = *candidates;
        }
    }
    return nearest;
}
