/* Fuzzes importance matrices: the file is refused with a sentence, or gives for a weight either
 * means that are numbers, or a sentence. The weights are those that the file names, with the
 * shapes that it would fit and others. */
#define _DEFAULT_SOURCE

#include "convert/importance.h"

#include "checked_heap.h"
#include "core/str.h"
#include "fuzz/fuzz_file.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

static void check_error(wick_status status, const wick_error *error) {
    require(status == error->status && (status == WICK_OK) == (error->message[0] == '\0'));
}

static void check_weight(wk_importance *importance, const char *name, wick_shape shape) {
    const wick_file_tensor weight = {
        .name = {name, strlen(name)}, .dtype = WICK_F32, .shape = shape};
    bool is_known;
    wick_error error = {.status = WICK_OK};
    wick_status status = wk_importance_check(importance, &weight, &is_known, &error);
    check_error(status, &error);
    if (status != WICK_OK || !is_known) return;
    const float *means;
    int64_t n;
    status = wk_importance_read(importance, &weight, &means, &n, &error);
    check_error(status, &error);
    if (status != WICK_OK) return;
    require(n == 1 || (shape.rank == 3 && n == shape.extent[0]));
    for (int64_t i = 0; i < n * shape.extent[shape.rank - 1]; i++)
        require(means[i] >= 0 && isfinite(means[i]));
}

static void check_weights(wk_importance *importance) {
    const wick_file *const file = wk_importance_file(importance);
    uint32_t count = 0;
    for (size_t i = 0; i < wick_file_tensor_count(file); i++) {
        const wick_file_tensor *const sums = wick_file_get_tensor(file, i);
        const wk_str text = {sums->name.text, sums->name.size};
        if (!wk_str_matches(wk_str_of("*" WK_IMATRIX_SUMS), text)) continue;
        count++;
        char name[256];
        snprintf(name, sizeof name, "%.*s", (int)(text.size - strlen(WK_IMATRIX_SUMS)), text.text);
        const int64_t k = sums->shape.rank > 0 ? sums->shape.extent[sums->shape.rank - 1] : 1;
        const int64_t n = sums->shape.rank > 1 ? sums->shape.extent[0] : 1;
        check_weight(importance, name, WICK_SHAPE(7, k));
        check_weight(importance, name, WICK_SHAPE(7, k + 1));
        check_weight(importance, name, WICK_SHAPE(n, 7, k));
        check_weight(importance, name, WICK_SHAPE(n + 1, 7, k));
        check_weight(importance, name, WICK_SHAPE(k));
    }
    require(count == wk_importance_count(importance));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char path[64];
    checked_heap checked;
    wk_importance *importance;
    wick_error error = {.status = WICK_OK};
    snprintf(path, sizeof path, "%s/imatrix.gguf", fuzz_folder());
    fuzz_write(path, data, size);
    checked_heap_init(&checked, UINT64_MAX);
    const wick_status status = wk_importance_open(&checked.heap, path, &importance, &error);
    check_error(status, &error);
    if (status == WICK_OK) check_weights(importance);
    wk_importance_close(importance);
    require(checked_heap_is_clean(&checked));
    return 0;
}
