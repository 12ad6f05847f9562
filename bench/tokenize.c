/* bench/tokenize.c: how fast a vocabulary is opened, and how fast texts become tokens.
 *
 * usage: bench_tokenize MODEL.gguf [TEXT]
 *
 * Milliseconds (the best of several) from the file to the tokenizer; megabytes of text a second of
 * this thread's time, for the first megabyte of TEXT and for texts that are hard: a megabyte of one
 * character, of random letters (all one word), digits, ideographs, bytes. */
#define _POSIX_C_SOURCE 200809L /* clock_gettime */

#include "core/compiler.h"
#include "core/rng.h"
#include "core/str.h"
#include "text/unicode/unicode.h"

#include <wick/wick.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SIZE = 1000000, ROUNDS = 5 };

static double thread_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec * 1e-6;
}

static void check(const wick_error *error, wick_status status) {
    if (status == WICK_OK) return;
    fprintf(stderr, "tokenize: %s\n", error->message);
    exit(1);
}

static wick_tokenizer *open_tokenizer(const char *path, wick_file **file) {
    wick_error error = {0};
    wick_tokenizer *tokenizer = NULL;
    check(&error, wick_file_open(path, file, &error));
    check(&error, wick_tokenizer_open(*file, &tokenizer, &error));
    return tokenizer;
}

static void bench_open(const char *path) {
    double best = 1e9;
    uint32_t n = 0;
    for (int i = 0; i < ROUNDS; i++) {
        wick_file *file = NULL;
        const double begin = thread_ms();
        wick_tokenizer *const tokenizer = open_tokenizer(path, &file);
        const double ms = thread_ms() - begin;
        if (ms < best) best = ms;
        n = wick_tokenizer_size(tokenizer);
        wick_tokenizer_close(tokenizer);
        wick_file_close(file);
    }
    printf("open %u tokens: %.1f ms\n", (unsigned)n, best);
}

static void bench_text(const wick_tokenizer *tokenizer, const char *name, const char *text,
                       uint32_t *ids) {
    double best = 1e9;
    size_t n = 0;
    for (int i = 0; i < ROUNDS; i++) {
        const double begin = thread_ms();
        const wick_status status = wick_tokenize(tokenizer, text, SIZE, 0, ids, 4 * SIZE, &n);
        const double ms = thread_ms() - begin;
        check(&(wick_error){.message = "the text cannot be tokenized"}, status);
        if (ms < best) best = ms;
    }
    printf("%-16s %8zu tokens %7.1f MB/s\n", name, n, (double)SIZE / best / 1e3);
}

static void fill_random(char *text, uint32_t first, uint32_t n) {
    wk_rng rng = {.seed = 1};
    for (int i = 0; i < SIZE; i++) text[i] = (char)(first + wk_rng_u32(&rng) % n);
}

static void fill_ideographs(char *text) {
    wk_rng rng = {.seed = 1};
    size_t size = 0;
    while (size + 4 <= SIZE) size += wk_utf8_encode(0x4E00 + wk_rng_u32(&rng) % 3000, text + size);
    memset(text + size, 'a', SIZE - size);
}

static void bench_hard_texts(const wick_tokenizer *tokenizer, char *text, uint32_t *ids) {
    static const struct {
        const char *name;
        uint32_t first, n;
    } random[] = {{"random letters", 'a', 26}, {"random digits", '0', 10}, {"random bytes", 0, 256},
                  {"letter a", 'a', 1},        {"spaces", ' ', 1},         {"line ends", '\n', 1},
                  {"signs !", '!', 1}};
    for (size_t i = 0; i < WK_COUNT(random); i++) {
        fill_random(text, random[i].first, random[i].n);
        bench_text(tokenizer, random[i].name, text, ids);
    }
    fill_ideographs(text);
    bench_text(tokenizer, "ideographs", text, ids);
}

int main(int argc, char **argv) {
    if (argc < 2 || argc > 3) {
        fprintf(stderr, "usage: tokenize MODEL.gguf [TEXT]\n");
        return 2;
    }
    bench_open(argv[1]);
    wick_file *file = NULL;
    wick_tokenizer *const tokenizer = open_tokenizer(argv[1], &file);
    char *const text = calloc(SIZE, 1);
    uint32_t *const ids = malloc(4 * SIZE * sizeof *ids);
    FILE *const from = argc == 3 ? fopen(argv[2], "rb") : NULL;
    if (!text || !ids || (argc == 3 && !from)) {
        fprintf(stderr, "tokenize: no memory, or no such text\n");
        return 1;
    }
    if (from && fread(text, 1, SIZE, from) == SIZE) bench_text(tokenizer, "text", text, ids);
    if (from) fclose(from);
    bench_hard_texts(tokenizer, text, ids);
    free(text);
    free(ids);
    wick_tokenizer_close(tokenizer);
    wick_file_close(file);
    return 0;
}
