/* sys/clock.h: time and memory of this process. */
#ifndef WK_SYS_CLOCK_H
#define WK_SYS_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

/* Monotonic, nanoseconds from an arbitrary start. */
uint64_t wk_clock_ns(void);
/* Sleeps for about that many microseconds. */
void wk_sleep_us(uint32_t microseconds);
/* Highest resident memory of this process so far, bytes; 0 unknown. */
uint64_t wk_process_peak_bytes(void);
/* Memory of the machine, bytes; 0 unknown. Container limits counted. */
uint64_t wk_memory_total(void);
uint64_t wk_memory_available(void);
/* Whether this is the machine's: a module of WebAssembly knows its own limit alone. */
bool wk_memory_is_machine(void);
/* Asks for large pages under memory that will be filled whole, where it is large enough for them.
 */
void wk_memory_prefer_large_pages(void *memory, uint64_t size);
/* 64 bits from the system, for seeds. */
uint64_t wk_entropy(void);

#endif
