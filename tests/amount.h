/* tests/amount.h: how much tests do that can do more or less. */
#ifndef AMOUNT_H
#define AMOUNT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Whether what takes long runs, too: `make test-all`. */
static inline bool tests_all(void) {
    const char *const all = getenv("WICK_TEST_ALL");
    return all != NULL && strcmp(all, "1") == 0;
}

/* From one allocation that is made to fail to the next: every allocation in turn, but under the
 * address sanitizer, which is slow, every fifth one unless tests_all. */
static inline uint64_t failing_step(void) {
#ifdef __SANITIZE_ADDRESS__
    return tests_all() ? 1 : 5;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
    return tests_all() ? 1 : 5;
#endif
#endif
    return 1;
}

#endif
