/* sys/posix/cpu_features.c: on x86 what cpuid says (AMD64 Architecture Programmer's Manual, volume
 * 3, appendix E) and whether the system saves the wide registers; on ARM, where programs may not
 * ask the processor, what the system says. */
#define _DARWIN_C_SOURCE /* sysctlbyname */

#include "sys/cpu_features.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#if defined(__x86_64__)
#include <cpuid.h>

/* Extended control register 0: the register state that the system saves and restores. */
static uint64_t read_xcr0(void) {
    uint32_t low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (uint64_t)high << 32 | low;
}

static bool has_bits(uint64_t word, uint64_t bits) { return (word & bits) == bits; }

uint32_t wk_cpu_features(void) {
    enum { XCR0_AVX = 0x6, XCR0_AVX512 = 0xE6 };
    const uint32_t leaf1_ecx = 1U << 12 | 1U << 27 | 1U << 28 | 1U << 29; /* FMA OSXSAVE AVX F16C */
    const uint32_t leaf7_avx512 = 1U << 16 | 1U << 17 | 1U << 30 | 1U << 31; /* F DQ BW VL */
    const uint32_t leaf7_vnni = 1U << 11;                                    /* of ecx */
    unsigned a, b, c, d;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !has_bits(c, leaf1_ecx)) return 0;
    const uint64_t xcr0 = read_xcr0();
    if (!has_bits(xcr0, XCR0_AVX)) return 0;
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || !has_bits(b, 1U << 5)) return 0;
    const bool has_avx512 =
        has_bits(xcr0, XCR0_AVX512) && has_bits(b, leaf7_avx512) && has_bits(c, leaf7_vnni);
    return has_avx512 ? WK_CPU_AVX2 | WK_CPU_AVX512 : WK_CPU_AVX2;
}

/* Leaves 0x80000002 to 0x80000004: 48 bytes, padded with spaces or zeros. */
static void read_brand(char brand[49]) {
    brand[0] = brand[48] = '\0';
    for (unsigned i = 0; i < 3; i++) {
        unsigned words[4];
        if (!__get_cpuid(0x80000002 + i, &words[0], &words[1], &words[2], &words[3])) return;
        memcpy(brand + 16 * i, words, 16);
    }
}
#elif defined(__aarch64__) && defined(__APPLE__)
#include <sys/sysctl.h>

static bool has_feature(const char *name) {
    int value = 0;
    size_t size = sizeof value;
    return sysctlbyname(name, &value, &size, NULL, 0) == 0 && value != 0;
}

uint32_t wk_cpu_features(void) {
    uint32_t features = WK_CPU_NEON;
    if (!has_feature("hw.optional.arm.FEAT_DotProd")) return features;
    features |= WK_CPU_DOTPROD;
    if (has_feature("hw.optional.arm.FEAT_I8MM")) features |= WK_CPU_I8MM;
    return features;
}

static void read_brand(char brand[49]) {
    size_t size = 48;
    memset(brand, 0, 49);
    if (sysctlbyname("machdep.cpu.brand_string", brand, &size, NULL, 0) != 0) brand[0] = '\0';
}
#elif defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>

/* The bits are written out (Linux, Documentation/arch/arm64/elf_hwcaps.rst), because the headers of
 * an older system lack some that a newer processor has. */
uint32_t wk_cpu_features(void) {
    const unsigned long asimd = 1UL << 1, asimddp = 1UL << 20, i8mm2 = 1UL << 13;
    const unsigned long words[2] = {getauxval(AT_HWCAP), getauxval(AT_HWCAP2)};
    if ((words[0] & asimd) == 0) return 0;
    if ((words[0] & asimddp) == 0) return WK_CPU_NEON;
    return WK_CPU_NEON | WK_CPU_DOTPROD | ((words[1] & i8mm2) != 0 ? (uint32_t)WK_CPU_I8MM : 0);
}

static void read_brand(char brand[49]) { strcpy(brand, "64-bit ARM processor"); }
#else
uint32_t wk_cpu_features(void) { return 0; }

static void read_brand(char brand[49]) { brand[0] = '\0'; }
#endif

void wk_cpu_name(char *name, size_t size) {
    char brand[49];
    read_brand(brand);
    const char *const begin = brand + strspn(brand, " ");
    size_t length = strlen(begin);
    while (length > 0 && begin[length - 1] == ' ') length--;
    if (length > 0)
        snprintf(name, size, "%.*s", (int)length, begin);
    else
        snprintf(name, size, "unknown processor");
}
