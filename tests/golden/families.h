/* golden/families.h: tiny random models, one for each family, with their references: those of the
 * shared fixtures (families/README.md there), and ours (tests/data/families). */
#ifndef WK_TESTS_GOLDEN_FAMILIES_H
#define WK_TESTS_GOLDEN_FAMILIES_H

#include "llm/llm.h"
#include "model/rope.h"

#include <wick/ops.h>

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "amount.h"
#include "fixture_file.h"
#include "kept_devices.h"
#include "webgpu_options.h"

#include <dirent.h>
#include <math.h>
#include <string.h>

enum { MAX_TOKENS = 128, MAX_FIXTURES = 256, NAME_SIZE = 64 };

typedef struct fixture {
    char name[NAME_SIZE], path[1400]; /* of the model */
    bool is_encoder;                  /* the reference is of hidden states */
} fixture;

typedef struct reference {
    uint32_t ids[MAX_TOKENS], n;
    fixture_file file;   /* of the values */
    const float *values; /* [n, n_vocab] logits or [n, n_embd] states */
} reference;

/* A file beside the model. */
static inline bool read_beside(const fixture *of, const char *ending, fixture_file *out) {
    char path[1420];
    const int size = (int)(strlen(of->path) - strlen("gguf"));
    snprintf(path, sizeof path, "%.*s%s", size, of->path, ending);
    return fixture_read_path(path, out);
}

static inline bool read_reference(const fixture *of, reference *out) {
    *out = (reference){.n = 0};
    fixture_file tokens;
    if (!read_beside(of, "tokens", &tokens)) return false;
    for (size_t i = 0; i < tokens.size; i++) {
        const bool is_digit = tokens.data[i] >= '0' && tokens.data[i] <= '9';
        const bool was_digit = i > 0 && tokens.data[i - 1] >= '0' && tokens.data[i - 1] <= '9';
        if (is_digit && !was_digit) assert_true(++out->n <= MAX_TOKENS);
        if (is_digit) out->ids[out->n - 1] = out->ids[out->n - 1] * 10 + tokens.data[i] - '0';
    }
    free(tokens.data);
    if (!read_beside(of, of->is_encoder ? "hidden.npy" : "logits.npy", &out->file)) return false;
    /* .npy 1.0: magic, version, then the size of a header that pads the data to 64 bytes. */
    const size_t header = 10 + (size_t)out->file.data[8] + ((size_t)out->file.data[9] << 8);
    out->values = (const float *)(const void *)(out->file.data + header);
    return true;
}

static inline void make_tables(wick_device *device, uint32_t rope, wk_rope_positions at,
                               wk_batch *batch, const wk_hparams *hparams) {
    const wick_shape shape = WICK_SHAPE(at.n, hparams->rope[rope].n_pairs);
    const size_t n = (size_t)at.n * hparams->rope[rope].n_pairs;
    float *const rows = malloc(2 * n * sizeof *rows);
    wk_rope_rows(&hparams->rope[rope], at, rows, rows + n);
    batch->cos[rope] = wick_tensor_from_data(device, WICK_F32, shape, rows, n * sizeof *rows);
    batch->sin[rope] = wick_tensor_from_data(device, WICK_F32, shape, rows + n, n * sizeof *rows);
    free(rows);
}

/* Largest difference over the standard deviation of all reference logits; infinite if one is no
 * number. */
static inline double worst(const float *found, const float *want, size_t n) {
    double sum = 0.0, squares = 0.0, largest = 0.0;
    for (size_t i = 0; i < n; i++) {
        sum += (double)want[i];
        squares += (double)want[i] * (double)want[i];
        const double difference = fabs((double)found[i] - (double)want[i]);
        if (isnan(difference)) return INFINITY;
        largest = fmax(largest, difference);
    }
    const double mean = sum / (double)n;
    return largest / sqrt(squares / (double)n - mean * mean);
}

/* A table of positions ends with the model's context. */
static inline bool has_position_table(const char *architecture) {
    return strcmp(architecture, "gpt2") == 0 || strcmp(architecture, "starcoder") == 0;
}

static inline bool ends_with(const char *text, const char *end) {
    const size_t size = strlen(text), n = strlen(end);
    return size > n && strcmp(text + size - n, end) == 0;
}

/* The models of the folder, each with the reference that is there for it, after n others. Returns
 * the number of all. */
static inline size_t find_fixtures(const char *variable, fixture *found, size_t n) {
    char folder[1024];
    if (!fixture_path(variable, "families", folder, sizeof folder)) return n;
    DIR *const dir = opendir(folder);
    for (struct dirent *entry; dir != NULL && (entry = readdir(dir)) != NULL;) {
        if (!ends_with(entry->d_name, ".gguf")) continue;
        fixture *const to = &found[n];
        const size_t size = strlen(entry->d_name) - strlen(".gguf");
        if (n == MAX_FIXTURES || size >= NAME_SIZE) {
            fprintf(stderr, "%s: too many fixtures, or a name that is too long\n", folder);
            exit(2);
        }
        memcpy(to->name, entry->d_name, size);
        to->name[size] = '\0';
        snprintf(to->path, sizeof to->path, "%s/%s.hidden.npy", folder, to->name);
        FILE *const hidden = fopen(to->path, "rb");
        to->is_encoder = hidden != NULL;
        if (hidden != NULL) fclose(hidden);
        snprintf(to->path, sizeof to->path, "%s/%s", folder, entry->d_name);
        n++;
    }
    if (dir != NULL) closedir(dir);
    return n;
}

static inline int by_name(const void *a, const void *b) {
    return strcmp(((const fixture *)a)->name, ((const fixture *)b)->name);
}

static inline void test_shared_fixtures(void **state) {
    (void)state;
    print_message("WICK_SHARED_DATA names no folder with the fixtures (families/)\n");
    skip();
}

/* Runs a test for one model of `step`; gives what the program returns. */
static inline int test_some_fixtures(const char *name, void (*test)(void **), size_t step) {
    static fixture fixtures[MAX_FIXTURES];
    static struct CMUnitTest tests[MAX_FIXTURES + 1];
    const size_t n_ours = find_fixtures("WICK_TEST_DATA", fixtures, 0);
    const size_t n = find_fixtures("WICK_SHARED_DATA", fixtures, n_ours);
    if (n_ours == 0) return 1;
    qsort(fixtures, n, sizeof *fixtures, by_name);
    size_t n_tests = 0;
    for (size_t i = 0; i < n; i += step)
        tests[n_tests++] = (struct CMUnitTest){
            .name = fixtures[i].name, .test_func = test, .initial_state = &fixtures[i]};
    if (n == n_ours) tests[n_tests++] = (struct CMUnitTest)cmocka_unit_test(test_shared_fixtures);
    return _cmocka_run_group_tests(name, tests, n_tests, NULL, NULL);
}

/* For each; on a GPU in software every sixth, or where tests_all every second, for its drivers
 * compile shaders for seconds. */
static inline int test_each_fixture(const char *name, void (*test)(void **), bool is_gpu) {
    return test_some_fixtures(name, test, !is_gpu ? 1 : tests_all() ? 2 : 6);
}

#endif
