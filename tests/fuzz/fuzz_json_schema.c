/* Fuzzes JSON schemas: any text is refused with a sentence or can be followed, and
 * masks allow just those tokens whose bytes can be read.
 *
 * After the first zero byte of an input stand the tokens that are tried. */
#include "grammar/json_schema.h"

#include "fuzz_rules.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const uint8_t *const zero = size > 0 ? memchr(data, 0, size) : NULL;
    const size_t text_size = zero ? (size_t)(zero - data) : size;
    fuzz_rules f;
    fuzz_rules_begin(&f);
    wick_error error = {.status = WICK_OK};
    const wick_status status =
        wk_json_schema_parse(&f.rules, (wk_str){(const char *)data, text_size}, &error);
    fuzz_rules_follow(&f, status, &error, data + text_size, size - text_size);
    return 0;
}
