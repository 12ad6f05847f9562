/* Gemma 3 270M (q4_k_m: q4_k, q5_0, q6_k, q8_0; windows, a vocabulary of 262,144) against
 * transformers: greedy tokens, likelihood of a text. */
#include "golden/real_model.h"

static void test_gemma3_greedy(void **state) {
    (void)state;
    real_model m;
    if (!find_gemma3(&m)) skip();
    check_real_greedy(&m, &(wick_device_desc){.backend = WICK_BACKEND_CPU});
    release_real_model(&m);
}

static void test_gemma3_nll_exact(void **state) {
    (void)state;
    skip_unless_all(); /* the tokens above are exact, too */
    real_model m;
    if (!find_gemma3(&m)) skip();
    check_real_nll(&m, &(wick_device_desc){.backend = WICK_BACKEND_CPU}, 5e-4, 1e-4);
    release_real_model(&m);
}

/* A third of what eight-bit activations cost elsewhere: see docs/numerics.md. */
static void test_gemma3_nll_fast(void **state) {
    (void)state;
    skip_unless_all(); /* in `make test` SmolLM2 has it, and each kernel is checked alone */
    real_model m;
    if (!find_gemma3(&m)) skip();
    const wick_device_desc fast = {.backend = WICK_BACKEND_CPU, .math = WICK_MATH_FAST};
    check_real_nll(&m, &fast, 0.045, 4e-3);
    release_real_model(&m);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gemma3_greedy),
        cmocka_unit_test(test_gemma3_nll_exact),
        cmocka_unit_test(test_gemma3_nll_fast),
    };
    return cmocka_run_group_tests_name("gemma 3 270M", tests, NULL, NULL);
}
