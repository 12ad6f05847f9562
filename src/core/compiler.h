/* core/compiler.h: the compiler differences, in one place. */
#ifndef WK_CORE_COMPILER_H
#define WK_CORE_COMPILER_H

#if defined(__GNUC__)
#define WK_PRINTF(nth, first) __attribute__((format(printf, nth, first)))
#define WK_UNLIKELY(x) __builtin_expect(!!(x), 0)
#define WK_INLINE static inline __attribute__((always_inline))
#define wk_prefetch(address) __builtin_prefetch(address) /* any address */
#else
#define WK_PRINTF(format, first)
#define WK_UNLIKELY(x) (x)
#define WK_INLINE static inline
#define wk_prefetch(address) ((void)(address))
#endif

#define WK_COUNT(array) (sizeof(array) / sizeof((array)[0]))

#endif
