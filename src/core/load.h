/* core/load.h: numbers that lie in bytes at any address, little-endian as the machine is. */
#ifndef WK_CORE_LOAD_H
#define WK_CORE_LOAD_H

#include <stdint.h>
#include <string.h>

static inline uint16_t wk_load_u16(const uint8_t *bytes) {
    uint16_t value;
    memcpy(&value, bytes, sizeof value);
    return value;
}

static inline uint32_t wk_load_u32(const uint8_t *bytes) {
    uint32_t value;
    memcpy(&value, bytes, sizeof value);
    return value;
}

static inline uint64_t wk_load_u64(const uint8_t *bytes) {
    uint64_t value;
    memcpy(&value, bytes, sizeof value);
    return value;
}

#endif
