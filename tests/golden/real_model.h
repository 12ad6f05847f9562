/* golden/real_model.h: models that people use against transformers, on any device. */
#ifndef WK_TESTS_GOLDEN_REAL_MODEL_H
#define WK_TESTS_GOLDEN_REAL_MODEL_H

#include "golden/generation.h"

#include "amount.h"

/* A model of tools/fetch_model and what is known of it. */
typedef struct real_model {
    char path[1024];
    fixture reference;
} real_model;

/* False: it is not there, and a line says so. */
static inline bool find_real_model(real_model *m, const char *path, const char *reference) {
    const char *const data = getenv("WICK_SHARED_DATA");
    snprintf(m->path, sizeof m->path, "%s", path);
    FILE *const file = fopen(path, "rb");
    if (file == NULL) print_message("'%s': this real model was not fetched\n", path);
    if (file != NULL) (void)fclose(file);
    if (data == NULL) print_message("WICK_SHARED_DATA is not set\n");
    char folder[1024];
    snprintf(folder, sizeof folder, "%s/real", data != NULL ? data : "");
    return file != NULL && data != NULL && load_json(&m->reference, folder, reference);
}

static inline bool find_smollm2(real_model *m) {
    const char *const path = getenv("WICK_REAL_MODEL");
    if (path == NULL) print_message("WICK_REAL_MODEL is not set\n");
    return path != NULL && find_real_model(m, path, "smollm2-135m-instruct-q4_1.json");
}

static inline bool find_gemma3(real_model *m) {
    char path[1024];
    const char *const folder = getenv("WICK_MODELS");
    if (folder == NULL) print_message("WICK_MODELS is not set\n");
    snprintf(path, sizeof path, "%s/gemma-3-270m-q4_k_m.gguf", folder != NULL ? folder : "");
    return folder != NULL && find_real_model(m, path, "gemma-3-270m-q4_k_m.json");
}

/* The tokens of the text whose likelihood is recorded. */
static inline uint32_t *ids_of_text(real_model *m, uint32_t *n) {
    return ids_of(&m->reference, wk_json_get(wk_json_get(m->reference.root, "nll"), "tokens"), n);
}

/* The recorded continuations, token for token. */
static inline void check_real_greedy(real_model *m, const wick_device_desc *desc) {
    wick_device *device;
    wick_model *const model = open_model(m->path, desc, &device);
    const wk_json *const all = wk_json_get(m->reference.root, "greedy");
    for (const wk_json *g = all->child; g; g = g->next) {
        uint32_t n_prompt, n_want;
        const wk_json *const given = wk_json_get(g, "prompt_tokens");
        const uint32_t *const prompt = ids_of(&m->reference, given, &n_prompt);
        const uint32_t *const want = ids_of(&m->reference, wk_json_get(g, "tokens"), &n_want);
        check_greedy(model, (wick_session_desc){0}, prompt, n_prompt, want, n_want);
    }
    wick_model_close(model);
    give_back_device(device);
}

/* Negative log-likelihoods of the next tokens of a text, and the recorded ones. */
typedef struct nll_sums {
    const uint32_t *ids;
    uint32_t n, n_vocab;
    const wk_json *want;  /* of the next token */
    double total, square; /* square: of the differences */
} nll_sums;

static inline void add_nll(void *user, uint32_t position, const float *row) {
    nll_sums *const sums = user;
    if (position + 1 == sums->n) return; /* nothing follows */
    double sum = 0;
    float most = row[0];
    for (uint32_t k = 1; k < sums->n_vocab; k++) most = fmaxf(most, row[k]);
    for (uint32_t k = 0; k < sums->n_vocab; k++) sum += exp((double)row[k] - (double)most);
    const double nll = (double)most + log(sum) - (double)row[sums->ids[position + 1]];
    const double difference = nll - sums->want->number;
    sums->want = sums->want->next;
    sums->total += nll;
    sums->square += difference * difference;
}

/* Bounds: of the root mean square of the differences, and of the perplexity, the mean's
 * exponential. */
static inline void check_real_nll(real_model *m, const wick_device_desc *desc, double most_rms,
                                  double most_relative) {
    const wk_json *const reference = wk_json_get(m->reference.root, "nll");
    nll_sums sums = {.want = wk_json_get(reference, "nll_per_token")->child};
    sums.ids = ids_of_text(m, &sums.n);
    wick_device *device;
    wick_model *const model = open_model(m->path, desc, &device);
    wick_model_info info;
    wick_model_get_info(model, &info);
    sums.n_vocab = info.n_vocab;
    each_logits(model, 0, sums.ids, sums.n, add_nll, &sums);
    const uint32_t n = sums.n - 1;
    const double rms = sqrt(sums.square / n), perplexity = exp(sums.total / n);
    const double relative = fabs(perplexity / wk_json_get(reference, "perplexity")->number - 1);
    print_message("perplexity %.4f, off by %.1e; rms difference per token %.5f\n", perplexity,
                  relative, rms);
    assert_true(rms <= most_rms);
    assert_true(relative <= most_relative);
    wick_model_close(model);
    give_back_device(device);
}

static inline void release_real_model(real_model *m) { wk_arena_release(&m->reference.arena); }

#endif
