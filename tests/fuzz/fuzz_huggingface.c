/* Fuzzes folders as Hugging Face has them: they are refused with a sentence, or become a file that
 * opens as a model.
 *
 * An input is config.json, tokenizer.json, tokenizer_config.json and model.safetensors, with the
 * byte 0x1E after each of the first three; an empty one is left out. */
#define _DEFAULT_SOURCE

#include "fuzz/fuzz_file.h"

#include <wick/convert.h>
#include <wick/wick.h>

#include <stdint.h>
#include <string.h>

enum { SEPARATOR = 0x1E };

/* Nothing has to outlive a power cut here; it would take most of the time. */
int fsync(int fd);
int fsync(int fd) {
    (void)fd;
    return 0;
}

static void write_folder(const char *folder, const uint8_t *data, size_t size) {
    static const char *const names[] = {"config.json", "tokenizer.json", "tokenizer_config.json",
                                        "model.safetensors"};
    for (size_t i = 0; i < 4; i++) {
        char path[96];
        const uint8_t *const end = i < 3 && size > 0 ? memchr(data, SEPARATOR, size) : NULL;
        const size_t n = end != NULL ? (size_t)(end - data) : i < 3 ? 0 : size;
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        if (n > 0)
            fuzz_write(path, data, n);
        else
            (void)unlink(path);
        if (end == NULL) continue;
        data = end + 1;
        size -= n + 1;
    }
}

static wick_status convert(const char *folder, const char *out, wick_error *error) {
    wick_converting *converting;
    const wick_convert_desc desc = {.replace = true};
    wick_status status = wick_convert_start(folder, out, &desc, &converting, error);
    if (status != WICK_OK) return status;
    while ((status = wick_convert_poll(converting, NULL, error)) == WICK_PENDING) {
    }
    const wick_status finished = wick_convert_finish(converting, status == WICK_OK, NULL);
    require(status != WICK_OK || finished == WICK_OK);
    return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static wick_device *device;
    char out[96];
    wick_model *model;
    wick_error error = {.status = WICK_OK};
    const wick_device_desc on = {.backend = WICK_BACKEND_CPU, .n_threads = 1};
    if (device == NULL) require(wick_device_open(&on, &device, NULL) == WICK_OK);
    const char *const folder = fuzz_folder();
    snprintf(out, sizeof out, "%s/out.gguf", folder);
    write_folder(folder, data, size);
    const wick_status status = convert(folder, out, &error);
    require(status == error.status && (status == WICK_OK) == (error.message[0] == '\0'));
    require(status != WICK_ERR_INTERNAL);
    if (status != WICK_OK) return 0;
    if (wick_model_open(device, out, NULL, &model, &error) != WICK_OK) {
        fprintf(stderr, "converted, but does not open: %s\n", error.message);
        abort();
    }
    wick_model_close(model);
    require(unlink(out) == 0);
    return 0;
}
