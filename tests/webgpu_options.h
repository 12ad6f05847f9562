/* Options of the test programs that open a WebGPU device, as --name VALUE or --name=VALUE:
 *
 *   --webgpu-lib PATH   the implementation: Dawn or wgpu-native
 *   --adapter X         as wick_webgpu_desc.adapter
 *   --without WORDS     of f16,subgroups,dot4,timestamps: not used though they are there
 *   --default-limits    no more than what every WebGPU device has
 *   --as-gpu            kernels are chosen in software as on GPUs */
#ifndef WEBGPU_OPTIONS_H
#define WEBGPU_OPTIONS_H

#include "core/compiler.h"
#include "core/str.h"

#include <wick/device.h>

#include <stdio.h>
#include <string.h>

#define WEBGPU_USAGE                                                                               \
    "[--webgpu-lib PATH] [--adapter X] [--without f16,subgroups,dot4,timestamps]\n"                \
    "                [--default-limits] [--as-gpu]"

/* The value of option name where argument *i is that option, and *i its last argument then. */
static inline const char *option_value(int argc, char **argv, int *i, const char *name) {
    const size_t length = strlen(name);
    if (strncmp(argv[*i], name, length) != 0) return NULL;
    if (argv[*i][length] == '=') return argv[*i] + length + 1;
    return argv[*i][length] == '\0' && *i + 1 < argc ? argv[++*i] : NULL;
}

typedef struct flag_word {
    const char *word;
    uint32_t flag;
} flag_word;

/* "f16,dot4": the flags of words among the n that are known. */
static inline bool parse_flags(const char *words, const flag_word *known, size_t n,
                               uint32_t *flags) {
    for (const char *word = words; word != NULL; word = strchr(word, ',')) {
        word += *word == ',';
        size_t i = 0;
        const wk_str text = {word, strcspn(word, ",")};
        while (i < n && !wk_str_is(text, known[i].word)) i++;
        if (i == n) return false;
        *flags |= known[i].flag;
    }
    return true;
}

static inline bool parse_features(const char *words, uint32_t *features) {
    static const flag_word known[] = {
        {"f16", WICK_WEBGPU_F16},
        {"subgroups", WICK_WEBGPU_SUBGROUPS},
        {"dot4", WICK_WEBGPU_DOT4},
        {"timestamps", WICK_WEBGPU_TIMESTAMPS},
    };
    return parse_flags(words, known, WK_COUNT(known), features);
}

/* Whether argument *i is one of these options, and right; *i is its last argument then. */
static inline bool parse_webgpu(int argc, char **argv, int *i, wick_webgpu_desc *desc) {
    if (strcmp(argv[*i], "--default-limits") == 0) {
        desc->default_limits = true;
        return true;
    }
    if (strcmp(argv[*i], "--as-gpu") == 0) {
        desc->as_gpu = true;
        return true;
    }
    const char *text;
    if ((text = option_value(argc, argv, i, "--webgpu-lib")) != NULL) {
        desc->library = text;
    } else if ((text = option_value(argc, argv, i, "--adapter")) != NULL) {
        desc->adapter = text;
    } else if ((text = option_value(argc, argv, i, "--without")) != NULL) {
        return parse_features(text, &desc->without);
    } else {
        return false;
    }
    return true;
}

/* Programs that run on the CPU, and on WebGPU with --backend webgpu and the options above. */
static inline bool parse_device(int argc, char **argv, wick_device_desc *desc) {
    for (int i = 1; i < argc; i++) {
        const char *const name = option_value(argc, argv, &i, "--backend");
        if (name != NULL ? !wick_backend_from_name(name, &desc->backend)
                         : !parse_webgpu(argc, argv, &i, &desc->webgpu)) {
            fprintf(stderr, "usage: %s [--backend NAME] %s\n", argv[0], WEBGPU_USAGE);
            return false;
        }
    }
    return true;
}

#endif
