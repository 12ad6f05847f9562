/* core/compiler.h: the compiler differences, in one place. */
#ifndef WK_CORE_COMPILER_H
#define WK_CORE_COMPILER_H

#include <stddef.h>

#if defined(__GNUC__)
#define WK_PRINTF(nth, first) __attribute__((format(printf, nth, first)))
#define WK_UNLIKELY(x) __builtin_expect(!!(x), 0)
#define WK_INLINE static inline __attribute__((always_inline))
#define wk_prefetch(...) __builtin_prefetch(__VA_ARGS__) /* any address; as the builtin */
/* As char, such a type reads what was stored as another one. */
#define WK_OF_ANY_TYPE __attribute__((may_alias))
#else
#define WK_PRINTF(format, first)
#define WK_UNLIKELY(x) (x)
#define WK_INLINE static inline
#define wk_prefetch(address, ...) ((void)(address))
#define WK_OF_ANY_TYPE
#endif

/* Memory that no code may touch for now: the address sanitizer reports accesses. WK_RED_ZONE: bytes
 * to leave forbidden after each piece, so that a read past its end is found, also one of a field
 * far inside the element that would come next. wk_malloc_size_is: whether malloc was asked for that
 * many bytes, which only the sanitizer knows. */
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define WK_ADDRESS_SANITIZER
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define WK_ADDRESS_SANITIZER
#endif
#if defined(WK_ADDRESS_SANITIZER)
void __asan_poison_memory_region(const volatile void *memory, size_t size);
void __asan_unpoison_memory_region(const volatile void *memory, size_t size);
size_t __sanitizer_get_allocated_size(const volatile void *memory);
#define wk_forbid(memory, size) __asan_poison_memory_region(memory, size)
#define wk_permit(memory, size) __asan_unpoison_memory_region(memory, size)
#define wk_malloc_size_is(memory, size) (__sanitizer_get_allocated_size(memory) == (size))
enum { WK_RED_ZONE = 64 };
#else
#define wk_forbid(memory, size) ((void)(memory), (void)(size))
#define wk_permit(memory, size) ((void)(memory), (void)(size))
#define wk_malloc_size_is(memory, size) ((void)(memory), (void)(size), 1)
enum { WK_RED_ZONE = 0 };
#endif

/* In a module for models alone (web/CMakeLists.txt) what no model needs is left out, and is not
 * made fast by repeating it for each constant argument where models spend no time. */
#ifdef WICK_MODELS_ONLY
#define WK_OF_TENSORS(...)
#define WK_INLINE_FOR_TENSORS static __attribute__((noinline))
#else
#define WK_OF_TENSORS(...) __VA_ARGS__
#define WK_INLINE_FOR_TENSORS WK_INLINE
#endif

/* What is there for tests in C. */
#ifdef __wasm__
#define WK_NOT_IN_PAGES(...)
#else
#define WK_NOT_IN_PAGES(...) __VA_ARGS__
#endif

/* A kernel that is compiled for each of its constant arguments. Under the address sanitizer, where
 * speed is not the point, it is one function for all: its file compiles in 2 s instead of 16. */
#ifdef WK_ADDRESS_SANITIZER
#define WK_INLINE_FORM static inline
#else
#define WK_INLINE_FORM WK_INLINE
#endif

#define WK_COUNT(array) (sizeof(array) / sizeof((array)[0]))

#endif
