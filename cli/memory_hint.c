/* memory_hint.c: see memory_hint.h. */
#include "memory_hint.h"
#include "text_out.h"

#include <inttypes.h>
#include <stdio.h>

/* From the largest to the smallest; the words of --cache. */
static const struct {
    wick_cache cache;
    const char *name;
} caches[] = {{WICK_CACHE_F32, "f32"},
              {WICK_CACHE_F16, "f16"},
              {WICK_CACHE_Q8_0, "q8_0"},
              {WICK_CACHE_Q4_0, "q4_0"}};
enum { N_CACHES = sizeof caches / sizeof *caches };

static size_t cache_after(const wick_device *device, wick_cache cache) {
    if (cache == WICK_CACHE_AUTO)
        cache = wick_device_math(device) == WICK_MATH_FAST ? WICK_CACHE_F16 : WICK_CACHE_F32;
    size_t i = 0;
    while (i < N_CACHES && caches[i].cache != cache) i++;
    return i + 1;
}

/* low_memory spares a GPU nothing: low_bytes is 0 there. */
static bool fits(const wick_prediction *prediction, bool low_memory) {
    const bool is_low = low_memory && prediction->low_bytes > 0;
    const uint64_t needed = is_low ? prediction->low_bytes : prediction->total_bytes;
    return needed <= prediction->available_bytes;
}

/* False: nothing that is smaller fits either. */
static bool find(const wick_file *file, const wick_device *device, const wick_model_desc *model,
                 cli_memory_hint *hint) {
    static const wick_session_desc defaults;
    const wick_session_desc *const sessions = model->sessions ? model->sessions : &defaults;
    wick_session_desc desc = *sessions;
    wick_prediction prediction = {0};
    for (size_t i = cache_after(device, sessions->cache); i < N_CACHES; i++) {
        desc.cache = caches[i].cache;
        if (wick_predict(file, device, &desc, &prediction, NULL) != WICK_OK ||
            !fits(&prediction, model->low_memory))
            continue;
        snprintf(hint->text, sizeof hint->text, "with --cache %s it fits", caches[i].name);
        return true;
    }
    if (wick_predict(file, device, sessions, &prediction, NULL) != WICK_OK) return false;
    const uint32_t n = prediction.whole_context_length;
    if (n > 0 && n < prediction.context_length) {
        snprintf(hint->text, sizeof hint->text, "a context of %" PRIu32 " tokens fits", n);
        return true;
    }
    if (model->low_memory || prediction.low_bytes == 0 || !fits(&prediction, true)) return false;
    snprintf(hint->text, sizeof hint->text,
             "with --low-memory it runs in %s beside the mapped file, slower",
             cli_bytes_text(prediction.low_bytes).text);
    return true;
}

cli_memory_hint cli_find_memory_hint(const wick_device *device, const char *path,
                                     const wick_model_desc *model) {
    cli_memory_hint hint = {""};
    wick_file *file = NULL;
    if (wick_file_open(path, &file, NULL) != WICK_OK) return hint;
    if (!find(file, device, model, &hint))
        snprintf(hint.text, sizeof hint.text, "a smaller model, or one of fewer bits, is needed");
    wick_file_close(file);
    return hint;
}
