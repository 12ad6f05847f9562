/* golden/smollm2.h: SmolLM2-135M-Instruct against transformers, on any device. */
#ifndef WK_TESTS_GOLDEN_SMOLLM2_H
#define WK_TESTS_GOLDEN_SMOLLM2_H

#include "golden/generation.h"

static bool real_model(fixture *f) {
    const char *const model = getenv("WICK_REAL_MODEL"), *const data = getenv("WICK_SHARED_DATA");
    if (!model || !data) {
        print_message("%s is not set\n", model ? "WICK_SHARED_DATA" : "WICK_REAL_MODEL");
        return false;
    }
    char folder[1024];
    snprintf(folder, sizeof folder, "%s/real", data);
    return load_json(f, folder, "smollm2-135m-instruct-q4_1.json");
}

/* The recorded continuations, token for token. */
static void check_real_greedy(fixture *f, const wick_device_desc *desc) {
    wick_device *device;
    wick_model *const model = open_model(getenv("WICK_REAL_MODEL"), desc, &device);
    const wk_json *const all = wk_json_get(f->root, "greedy");
    for (const wk_json *g = all->child; g; g = g->next) {
        uint32_t n_prompt, n_want;
        const uint32_t *const prompt = ids_of(f, wk_json_get(g, "prompt_tokens"), &n_prompt);
        const uint32_t *const want = ids_of(f, wk_json_get(g, "tokens"), &n_want);
        check_greedy(model, (wick_session_desc){0}, prompt, n_prompt, want, n_want);
    }
    wick_model_close(model);
    wick_device_close(device);
}

/* Negative log-likelihood of each next token of a text, and its mean's exponential. */
static void check_nll(const wick_device_desc *desc, double most_rms, double most_relative) {
    fixture f;
    if (!real_model(&f)) skip();
    const wk_json *const reference = wk_json_get(f.root, "nll");
    uint32_t n;
    const uint32_t *const ids = ids_of(&f, wk_json_get(reference, "tokens"), &n);
    wick_device *device;
    wick_model *const model = open_model(getenv("WICK_REAL_MODEL"), desc, &device);
    wick_model_info info;
    wick_model_get_info(model, &info);
    float *const logits = all_logits(model, 0, ids, n);
    double total = 0, square = 0;
    const wk_json *want = wk_json_get(reference, "nll_per_token")->child;
    for (uint32_t i = 0; i + 1 < n; i++, want = want->next) {
        const float *const row = logits + (size_t)i * info.n_vocab;
        double sum = 0;
        float most = row[0];
        for (uint32_t k = 1; k < info.n_vocab; k++) most = fmaxf(most, row[k]);
        for (uint32_t k = 0; k < info.n_vocab; k++) sum += exp((double)row[k] - (double)most);
        const double nll = (double)most + log(sum) - (double)row[ids[i + 1]];
        total += nll;
        square += (nll - want->number) * (nll - want->number);
    }
    const double rms = sqrt(square / (n - 1)), perplexity = exp(total / (n - 1));
    const double relative = fabs(perplexity / wk_json_get(reference, "perplexity")->number - 1);
    print_message("perplexity %.4f, off by %.1e; rms difference per token %.5f\n", perplexity,
                  relative, rms);
    assert_true(rms <= most_rms);
    assert_true(relative <= most_relative);
    free(logits);
    wick_model_close(model);
    wick_device_close(device);
    wk_arena_release(&f.arena);
}

#endif
