/* nearest.c: which name did somebody mean? By edit distance (Levenshtein, 1966). */
#include "options.h"

#include <string.h>

enum { MAX_LENGTH = 32, FAR_AWAY = MAX_LENGTH + 1 };

static size_t least_of(size_t a, size_t b, size_t c) {
    const size_t ab = a < b ? a : b;
    return ab < c ? ab : c;
}

/* Insertions, deletions and replacements that make a into b. */
static size_t edit_distance(const char *a, const char *b) {
    const size_t a_size = strlen(a), b_size = strlen(b);
    if (a_size > MAX_LENGTH || b_size > MAX_LENGTH) return FAR_AWAY;
    size_t row[MAX_LENGTH + 1]; /* distances of a's first i bytes to b's first j */
    for (size_t j = 0; j <= b_size; j++) row[j] = j;
    for (size_t i = 1; i <= a_size; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= b_size; j++) {
            const size_t replaced = diagonal + (a[i - 1] != b[j - 1]);
            diagonal = row[j];
            row[j] = least_of(row[j] + 1, row[j - 1] + 1, replaced);
        }
    }
    return row[b_size];
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
