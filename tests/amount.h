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

/* Where cmocka.h was included before: skips a test of what others cover less closely. */
#define skip_unless_all()                                                                          \
    do {                                                                                           \
        if (tests_all()) break;                                                                    \
        print_message("runs in make test-all\n");                                                  \
        skip();                                                                                    \
    } while (0)

/* By the address sanitizer, which is slow. */
static inline bool is_sanitized(void) {
#ifdef __SANITIZE_ADDRESS__
    return true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
    return true;
#endif
#endif
    return false;
}

/* From one case of many alike to the next: a part of them does in `make test`, and a smaller one
 * under the address sanitizer. */
static inline unsigned case_step(unsigned quick, unsigned sanitized) {
    return tests_all() ? 1 : is_sanitized() ? sanitized : quick;
}

/* From one allocation that is made to fail to the next. */
static inline uint64_t failing_step(void) { return case_step(3, 11); }

#endif
