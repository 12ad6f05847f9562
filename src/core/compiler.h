/* core/compiler.h: the compiler differences, in one place. */
#ifndef WK_CORE_COMPILER_H
#define WK_CORE_COMPILER_H

#if defined(__GNUC__)
#define WK_PRINTF(nth, first) __attribute__((format(printf, nth, first)))
#define WK_LIKELY(x) __builtin_expect(!!(x), 1)
#define WK_UNLIKELY(x) __builtin_expect(!!(x), 0)
#define WK_INLINE static inline __attribute__((always_inline))
#define WK_RESTRICT __restrict__
#else
#define WK_PRINTF(format, first)
#define WK_LIKELY(x) (x)
#define WK_UNLIKELY(x) (x)
#define WK_INLINE static inline
#define WK_RESTRICT
#endif

#define WK_COUNT(array) (sizeof(array) / sizeof((array)[0]))

#endif
