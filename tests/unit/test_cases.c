/* The random operations that kernels are verified with (verify/cases.c): a seed makes the same ones
 * everywhere, so that a report of `wick verify --seed` can be repeated. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "checked_heap.h"
#include "core/hash.h"
#include "verify/case.h"

#include <inttypes.h>
#include <string.h>

enum { N_CASES = 96 };

static uint64_t mix(uint64_t digest, uint64_t value) { return wk_hash_u64(digest ^ value); }

static uint64_t digest_of_view(uint64_t digest, const wk_case *c, int i) {
    const wk_view *const view = &c->op.view[i];
    digest = mix(digest, (uint64_t)view->dtype);
    digest = mix(digest, (uint64_t)view->layout);
    digest = mix(digest, (uint64_t)view->rank);
    for (int d = 0; d < view->rank; d++) {
        digest = mix(digest, (uint64_t)view->extent[d]);
        digest = mix(digest, (uint64_t)view->stride[d]);
    }
    digest = mix(digest, view->offset);
    const wk_case_memory *const m = &c->memory[i];
    return m->size > 0 ? mix(digest, wk_hash(m->initial, m->size)) : digest;
}

/* Its operands with all their memory, guards included, and how many numbers were drawn. */
static uint64_t digest_of(uint64_t digest, wk_case *c, wk_heap *heap) {
    wick_error error = {.status = WICK_OK};
    const wick_status status = wk_case_fill(c, heap, &error);
    if (status != WICK_OK && status != WICK_ERR_INDEX) fail_msg("%s", error.message);
    digest = mix(digest, (uint64_t)status);
    for (int i = 0; i < c->op.n_dst + c->op.n_src; i++)
        digest = c->op.view[i].buf ? digest_of_view(digest, c, i) : mix(digest, 0);
    digest = mix(digest, (uint64_t)c->values);
    digest = mix(digest, c->rng.next);
    wk_case_release(c, heap);
    return digest;
}

static const struct {
    const char *op;
    uint64_t digest;
} known[] = {
#define DIGEST(op, digest) {#op, UINT64_C(digest)},
#include "case_digests.def"
#undef DIGEST
};

static uint64_t digest_known(const char *op) {
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(known[i].op, op) == 0) return known[i].digest;
    return 0;
}

static void test_same_cases(void **state) {
    (void)state;
    checked_heap checked;
    checked_heap_init(&checked, UINT64_MAX);
    int n_other = 0;
    for (int code = 0; code < WK_OP_COUNT_; code++) {
        static wk_case c;
        uint64_t digest = 1, seed = 20261129;
        for (int i = 0; i < N_CASES; i++, seed = wk_case_next_seed(seed)) {
            wk_case_describe(&c, seed, (wk_opcode)code, i % 2 == 1);
            digest = digest_of(digest, &c, &checked.heap);
        }
        const char *const name = wk_op_get_info((wk_opcode)code)->name;
        if (digest == digest_known(name)) continue;
        n_other++;
        print_message("DIGEST(%s, 0x%016" PRIx64 ")\n", name, digest);
    }
    assert_true(checked_heap_is_clean(&checked));
    if (n_other > 0)
        fail_msg("%d kinds of operations are other ones: where that is meant, the lines above "
                 "belong into tests/unit/case_digests.def",
                 n_other);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_same_cases)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
