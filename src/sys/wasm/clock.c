/* sys/wasm/clock.c: time and random bits from JavaScript, memory as the module's own. */
#include "sys/clock.h"

#include "sys/wasm/host.h"

#include <wick_heap.h>

enum { PAGE = 65536 };

uint64_t wk_clock_ns(void) { return (uint64_t)wk_host_clock_ns(); }

/* Nothing may wait here: whoever would sleep is polled again. */
void wk_sleep_us(uint32_t microseconds) { (void)microseconds; }

/* The memory of a module never shrinks. */
uint64_t wk_process_peak_bytes(void) { return (uint64_t)__builtin_wasm_memory_size(0) * PAGE; }

uint64_t wk_memory_total(void) { return (uint64_t)wk_host_memory_limit(); }

bool wk_memory_is_machine(void) { return false; }

/* What the memory may still grow by, and what closed models have left free in it; never 0, which
 * would be "not known". */
uint64_t wk_memory_available(void) {
    const uint64_t used = wk_process_peak_bytes() - wick_heap_free_bytes();
    return used < wk_memory_total() ? wk_memory_total() - used : 1;
}

void wk_memory_prefer_large_pages(void *memory, uint64_t size) { (void)memory, (void)size; }

uint64_t wk_entropy(void) {
    const uint64_t low = (uint64_t)wk_host_entropy();
    return low ^ (uint64_t)wk_host_entropy() << 12;
}
