/* unit/described.h: what families make of the headers of small files. */
#ifndef WK_TESTS_UNIT_DESCRIBED_H
#define WK_TESTS_UNIT_DESCRIBED_H

#include "model/families.h"

#include "core/status.h"
#include "format/gguf_parse.h"
#include "model/model_struct.h"
#include "model/rope.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "checked_heap.h"
#include "small_model.h"

static checked_heap checked;

static inline int begin(void **state) {
    (void)state;
    checked_heap_init(&checked, UINT64_MAX);
    return 0;
}

static inline int end(void **state) {
    (void)state;
    return checked_heap_is_clean(&checked) ? 0 : -1;
}

static inline wk_gguf_parser *parse(const small_model *small) {
    static gguf_bytes file;
    wk_gguf_parser *parser;
    wick_error error = {.status = WICK_OK};
    small_write(small, false, &file);
    assert_int_equal(wk_gguf_parser_make(&checked.heap, WICK_SIZE_UNKNOWN, &parser, &error),
                     WICK_OK);
    assert_int_equal(wk_gguf_parser_feed(parser, file.data, file.size, NULL, &error), WICK_OK);
    return parser;
}

/* What a family makes of a header, for any tensors. */
typedef struct description {
    wk_gguf_parser *parser;
    wk_arena arena;
    wk_hparams hparams;
    wk_layer_spec layers[65];
    wick_error error;
} description;

static inline wick_status describe(const small_model *small, description *out) {
    *out = (description){.parser = parse(small)};
    const wk_gguf *const gguf = wk_gguf_parser_result(out->parser);
    wk_str architecture;
    const wk_family *family;
    wk_arena_init(&out->arena, &checked.heap, 0);
    WK_TRY(wk_metadata_general(gguf, "general.architecture", true, &architecture, &out->error));
    WK_TRY(wk_family_find(architecture, &family, &out->error));
    const wk_metadata meta = {.gguf = gguf,
                              .arena = &out->arena,
                              .architecture = family->architecture,
                              .err = &out->error};
    out->hparams.norm = family->norm;
    WK_TRY(wk_hparams_read(&meta, &out->hparams));
    assert_true(out->hparams.n_layers <= WK_COUNT(out->layers));
    return wk_family_describe(family, &meta, &out->hparams, out->layers);
}

static inline void drop(description *of) {
    wk_arena_release(&of->arena);
    wk_gguf_parser_free(of->parser);
}

static inline void describe_well(const small_model *small, description *out) {
    const wick_status status = describe(small, out);
    if (status != WICK_OK) fail_msg("%s", out->error.message);
}

static inline void expect_refused(const small_model *small, const char *text) {
    description found;
    const wick_status status = describe(small, &found);
    if (status == WICK_OK || strstr(found.error.message, text) == NULL)
        fail_msg("expected '%s', got %d: %s", text, (int)status, found.error.message);
    drop(&found);
}

#endif
