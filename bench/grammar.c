/* bench/grammar.c: what a grammar adds to each token: microseconds for the mask and for following
 * the token that was chosen, over texts that are chosen at random among what is allowed.
 *
 * usage: bench_grammar MODEL.gguf...   (only the vocabulary is read)
 *
 *   start    the tree of the vocabulary, once for a model
 *   compile  the grammar, once for a session
 *   mean, median, worst   of a token, the first use of every mask included */
#define _POSIX_C_SOURCE 200809L /* clock_gettime */

#include "core/rng.h"
#include "grammar/gbnf.h"
#include "grammar/json_schema.h"
#include "grammar/matcher.h"

#include <wick/model.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { N_TOKENS = 2000 };

static const struct {
    const char *name, *text;
} grammars[] = {
    {"any JSON", "{}"},
    {"record",
     "{\"type\":\"object\",\"properties\":{\"name\":{\"type\":\"string\"},\"age\":{\"type\":"
     "\"integer\",\"minimum\":0,\"maximum\":130},\"email\":{\"format\":\"email\"},\"tags\":{"
     "\"type\":"
     "\"array\",\"items\":{\"type\":\"string\"}},\"address\":{\"type\":\"object\",\"properties\":{"
     "\"street\":{\"type\":\"string\"},\"zip\":{\"pattern\":\"^[0-9]{5}$\"}},\"required\":["
     "\"street\"]}},"
     "\"required\":[\"name\",\"tags\",\"address\"]}"},
    {"short strings", "{\"type\":\"array\",\"items\":{\"type\":\"string\",\"maxLength\":200}}"},
    {"arithmetic", "root ::= expr \"\\n\"\nexpr ::= term ([-+*/] term)*\n"
                   "term ::= [0-9]+ | [a-z] [a-z0-9_]* | \"(\" expr \")\"\n"},
    {"prose",
     "root ::= (word (\" \" | \", \" | \".\\n\"))*\nword ::= [A-Za-z\xC3\xA0-\xC3\xBF]+\n"},
};

static double now_us(void) {
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec * 1e-3;
}

static void check(wick_status status, const wick_error *error) {
    if (status == WICK_OK) return;
    fprintf(stderr, "bench_grammar: %s\n", error->message);
    exit(1);
}

static bool is_end(const wk_token_trie *trie, uint32_t id) {
    uint32_t i = 0;
    while (i < trie->n_ends && trie->ends[i] != id) i++;
    return i < trie->n_ends;
}

/* Any of those that are left; ends only where nothing else is. */
static uint32_t choose(const float *logits, uint32_t n, const wk_token_trie *trie, wk_rng *rng) {
    const uint32_t begin = wk_rng_u32(rng) % n;
    uint32_t end = WICK_NO_TOKEN;
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t id = (begin + i) % n;
        if (!(logits[id] > -INFINITY)) continue;
        if (!is_end(trie, id)) return id;
        end = id;
    }
    return end;
}

static int by_value(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void follow(wk_matcher *matcher, const wk_token_trie *trie, float *logits) {
    static double samples[N_TOKENS];
    wick_error error = {0};
    wk_rng rng = {.seed = 1};
    double total = 0;
    for (int i = 0; i < N_TOKENS; i++) {
        memset(logits, 0, trie->n_vocab * sizeof *logits);
        const double begin = now_us();
        check(wk_matcher_apply(matcher, logits, &error), &error);
        const double masked = now_us();
        const uint32_t id = choose(logits, trie->n_vocab, trie, &rng);
        const double chosen = now_us();
        check(wk_matcher_accept(matcher, id, &error), &error);
        if (is_end(trie, id)) wk_matcher_reset(matcher);
        samples[i] = masked - begin + now_us() - chosen;
        total += samples[i];
    }
    qsort(samples, N_TOKENS, sizeof *samples, by_value);
    printf(" %8.1f %8.1f %8.1f\n", total / (double)N_TOKENS, samples[N_TOKENS / 2],
           samples[N_TOKENS - 1]);
}

static void measure(wk_heap *heap, const wick_tokenizer *tokenizer, const wk_token_trie *trie,
                    float *logits, size_t i) {
    const wk_str text = wk_str_of(grammars[i].text);
    const wk_matcher_desc desc = {tokenizer, trie, trie->n_vocab};
    wk_arena arena;
    wk_matcher *matcher;
    wick_error error = {0};
    wk_arena_init(&arena, heap, 0);
    wk_rules rules = {.arena = &arena};
    const double begin = now_us();
    check(text.text[0] == '{' ? wk_json_schema_parse(&rules, text, &error)
                              : wk_gbnf_parse(&rules, tokenizer, text, &error),
          &error);
    check(wk_matcher_make(heap, &desc, &rules, &matcher, &error), &error);
    printf("  %-14s %8.1f", grammars[i].name, now_us() - begin);
    follow(matcher, trie, logits);
    wk_matcher_free(matcher);
    wk_arena_release(&arena);
}

static void measure_file(wk_heap *heap, const char *path) {
    wick_file *file;
    wick_tokenizer *tokenizer;
    wk_token_trie trie;
    wick_error error = {0};
    check(wick_file_open(path, &file, &error), &error);
    check(wick_tokenizer_open(file, &tokenizer, &error), &error);
    const double begin = now_us();
    check(wk_token_trie_make(heap, tokenizer, &trie), &error);
    printf("%s: %u tokens, start %.1f ms\n  %-14s %8s %8s %8s %8s  microseconds\n", path,
           trie.n_vocab, (now_us() - begin) * 1e-3, "", "compile", "mean", "median", "worst");
    float *const logits = malloc(trie.n_vocab * sizeof *logits);
    if (!logits) exit(1);
    for (size_t i = 0; i < WK_COUNT(grammars); i++) measure(heap, tokenizer, &trie, logits, i);
    free(logits);
    wk_token_trie_free(&trie);
    wick_tokenizer_close(tokenizer);
    wick_file_close(file);
}

int main(int n, char **arguments) {
    wk_heap heap;
    wk_heap_init(&heap, NULL);
    for (int i = 1; i < n; i++) measure_file(&heap, arguments[i]);
    return n > 1 ? 0 : 2;
}
