/* Fuzzes the .npy reader: any bytes are refused with a sentence or give an array
 * whose bytes all lie inside them, and unpacking writes just that many. */
#include "format/npy.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static void require(bool is_true) {
    if (!is_true) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    wk_npy npy;
    wick_error error = {.status = WICK_OK};
    const wick_status status = wk_npy_parse(data, size, &npy, &error);
    require(status == error.status && (status == WICK_OK) == (error.message[0] == '\0'));
    if (status != WICK_OK) return 0;
    require(npy.data >= data && npy.size == (uint64_t)(data + size - npy.data));
    uint8_t *const plain = malloc((size_t)npy.size + 1); /* exact except for the empty one */
    require(plain != NULL);
    plain[npy.size] = 77;
    wk_npy_unpack(&npy, plain);
    require(plain[npy.size] == 77);
    if (wk_npy_is_plain(&npy)) require(memcmp(plain, npy.data, (size_t)npy.size) == 0);
    free(plain);
    return 0;
}
