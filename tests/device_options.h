/* tests/device_options.h: options of the test programs that run on any device, as NAME VALUE; with
 * those of webgpu_options.h:
 *
 *   --backend NAME   auto, cpu, webgpu or null
 *   --null WORDS     of late,out-of-order,no-fused,no-kernels: how the null backend behaves
 *   --isa NAME       auto, ref, avx2, avx512, neon, dotprod, i8mm
 *   --fusion NAME    auto, off, always
 *   --threads N */
#ifndef DEVICE_OPTIONS_H
#define DEVICE_OPTIONS_H

#include "webgpu_options.h"

#include <stdlib.h>

/* "late,no-fused": the flags of the null backend. */
static inline bool parse_null(const char *words, uint32_t *flags) {
    static const flag_word known[] = {
        {"late", WICK_NULL_LATE},
        {"out-of-order", WICK_NULL_OUT_OF_ORDER},
        {"no-fused", WICK_NULL_NO_FUSED},
        {"no-kernels", WICK_NULL_NO_KERNELS},
    };
    return parse_flags(words, known, WK_COUNT(known), flags);
}

static inline bool parse_isa(const char *word, wick_isa *isa) {
    static const char *const names[] = {
        [WICK_ISA_AUTO] = "auto",     [WICK_ISA_REF] = "ref",   [WICK_ISA_AVX2] = "avx2",
        [WICK_ISA_AVX512] = "avx512", [WICK_ISA_NEON] = "neon", [WICK_ISA_DOTPROD] = "dotprod",
        [WICK_ISA_I8MM] = "i8mm",
    };
    for (size_t i = 0; i < WK_COUNT(names); i++) {
        if (strcmp(word, names[i]) != 0) continue;
        *isa = (wick_isa)i;
        return true;
    }
    return false;
}

static inline bool parse_fusion(const char *word, wick_fusion *fusion) {
    static const char *const names[] = {
        [WICK_FUSION_AUTO] = "auto", [WICK_FUSION_OFF] = "off", [WICK_FUSION_ALWAYS] = "always"};
    for (size_t i = 0; i < WK_COUNT(names); i++) {
        if (strcmp(word, names[i]) != 0) continue;
        *fusion = (wick_fusion)i;
        return true;
    }
    return false;
}

/* False: there is no such option, or its value is wrong. */
static inline bool parse_device_pair(wick_device_desc *desc, const char *name, const char *text) {
    if (strcmp(name, "--backend") == 0) return wick_backend_from_name(text, &desc->backend);
    if (strcmp(name, "--null") == 0) return parse_null(text, &desc->null_flags);
    if (strcmp(name, "--isa") == 0) return parse_isa(text, &desc->isa);
    if (strcmp(name, "--fusion") == 0) return parse_fusion(text, &desc->fusion);
    if (strcmp(name, "--threads") != 0) return false;
    char *end;
    const long n = strtol(text, &end, 10);
    desc->n_threads = n > 0 && n <= 1024 ? (int)n : 0;
    return *end == '\0' && desc->n_threads > 0;
}

#endif
