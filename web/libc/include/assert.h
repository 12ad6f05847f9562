/* assert.h: what is never true stops the module with a trap. No include guard: C wants NDEBUG read
 * again each time. */
#undef assert
#ifdef NDEBUG
#define assert(condition) ((void)0)
#else
#define assert(condition) ((condition) ? (void)0 : __builtin_trap())
#endif
#define static_assert _Static_assert
