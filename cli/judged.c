/* judged.c: see judged.h. */
#include "judged.h"

#include "bar.h"
#include "json_out.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

void cli_judged_add_row(cli_judged *judged, const wick_judgement *j) {
    assert(judged->n_full < CLI_JUDGED_ROWS);
    const size_t i = judged->n_full++;
    const double sum = j->model.nll * (double)j->n_scored;
    const double n = (double)(j->n_scored - judged->n_scored);
    judged->rows[i].first = i > 0 ? judged->rows[i - 1].last + 1 : 1;
    judged->rows[i].last = j->n_chunks;
    judged->rows[i].perplexity = n > 0 ? exp((sum - judged->nll_sum) / n) : NAN;
    judged->nll_sum = sum;
    judged->n_scored = j->n_scored;
}

/* ---- Text ---- */

static void print_judged(const char *name, const wick_judged *judged) {
    printf("%-14s %.4f +- %.4f (negative log-likelihood %.5f +- %.5f)\n", name, judged->perplexity,
           judged->perplexity_error, judged->nll, judged->nll_error);
}

/* text and a bar; without blanks at the end of the line. */
static void print_bar(const char *text, double share) {
    const cli_bar bar = cli_bar_of(share, CLI_BAR_COLUMNS);
    size_t size = 0;
    for (size_t i = 0; bar.text[i] != '\0'; i++)
        if (bar.text[i] != ' ') size = i + 1;
    printf("%s%s%.*s\n", text, size > 0 ? "  " : "", (int)size, bar.text);
}

static void print_base(const wick_judgement *j) {
    char text[96];
    print_judged("of the base", &j->base);
    printf("%-14s %.6f +- %.6f\n", "log of ratio", j->log_ratio, j->log_ratio_error);
    const struct {
        const char *name;
        double value, error; /* error < 0: none */
    } rows[] = {{"mean", j->kl, j->kl_error},
                {"median", j->kl_median, -1},
                {"99 %", j->kl_99, -1},
                {"max", j->kl_largest, -1}};
    puts("KL divergence");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char error[32] = "";
        if (rows[i].error >= 0) snprintf(error, sizeof error, " +- %.6f", rows[i].error);
        snprintf(text, sizeof text, "  %-12s %.6f%-12s", rows[i].name, rows[i].value, error);
        print_bar(text, rows[i].value / j->kl_largest);
    }
    snprintf(text, sizeof text, "%-14s %.2f +- %.2f %%     ", "same top token", 100 * j->same_top,
             100 * j->same_top_error);
    print_bar(text, j->same_top);
}

/* Where a text is harder than elsewhere. */
static void print_rows(const cli_judged *judged) {
    double most = 0;
    for (size_t i = 0; i < judged->n_full; i++)
        if (judged->rows[i].perplexity > most) most = judged->rows[i].perplexity;
    if (judged->n_full < 2) return;
    puts("chunks");
    for (size_t i = 0; i < judged->n_full; i++) {
        char chunks[48], text[96];
        snprintf(chunks, sizeof chunks, "%" PRIu64 "-%" PRIu64, judged->rows[i].first,
                 judged->rows[i].last);
        if (judged->rows[i].first == judged->rows[i].last) *strchr(chunks, '-') = '\0';
        snprintf(text, sizeof text, "  %-12s %10.4f", chunks, judged->rows[i].perplexity);
        print_bar(text, judged->rows[i].perplexity / most);
    }
}

static void print_text(const cli_judged *judged) {
    const wick_judgement *const j = &judged->judgement;
    if (j->n_scored == 0) {
        puts("stopped before the first token was scored");
        return;
    }
    print_judged("perplexity", &j->model);
    if (judged->has_base) print_base(j);
    print_rows(judged);
    printf("%" PRIu64 " tokens scored in %" PRIu64 " chunk%s of %" PRIu32 "\n", j->n_scored,
           j->n_chunks, j->n_chunks == 1 ? "" : "s", judged->context);
    if (judged->is_stopped && judged->n_chunks > 0)
        printf("stopped: the estimate is of the first %" PRIu64 " of %" PRIu64 " chunks\n",
               j->n_chunks, judged->n_chunks);
    else if (judged->is_stopped)
        puts("stopped within the first chunk");
}

/* ---- JSON ---- */

static void put_judged(cli_json *json, const wick_judged *judged) {
    cli_json_put_number(json, "perplexity", judged->perplexity);
    cli_json_put_number(json, "perplexity_error", judged->perplexity_error);
    cli_json_put_number(json, "nll", judged->nll);
    cli_json_put_number(json, "nll_error", judged->nll_error);
}

static void put_base(cli_json *json, const wick_judgement *j) {
    cli_json_key(json, "base");
    cli_json_open(json, '{');
    put_judged(json, &j->base);
    cli_json_close(json, '}');
    cli_json_put_number(json, "log_ratio", j->log_ratio);
    cli_json_put_number(json, "log_ratio_error", j->log_ratio_error);
    cli_json_key(json, "kl");
    cli_json_open(json, '{');
    cli_json_put_number(json, "mean", j->kl);
    cli_json_put_number(json, "mean_error", j->kl_error);
    cli_json_put_number(json, "median", j->kl_median);
    cli_json_put_number(json, "p99", j->kl_99);
    cli_json_put_number(json, "max", j->kl_largest);
    cli_json_close(json, '}');
    cli_json_put_number(json, "same_top", j->same_top);
    cli_json_put_number(json, "same_top_error", j->same_top_error);
}

static void print_json(const cli_judged *judged) {
    const wick_judgement *const j = &judged->judgement;
    const wick_judged unknown = {NAN, NAN, NAN, NAN};
    cli_json json = {.out = stdout};
    cli_json_open(&json, '{');
    put_judged(&json, j->n_scored > 0 ? &j->model : &unknown);
    if (judged->has_base && j->n_scored > 0) put_base(&json, j);
    cli_json_put_unsigned(&json, "context", judged->context);
    cli_json_put_unsigned(&json, "chunks", j->n_chunks);
    cli_json_put_unsigned(&json, "scored", j->n_scored);
    cli_json_key(&json, "complete");
    cli_json_bool(&json, !judged->is_stopped);
    cli_json_close(&json, '}');
}

void cli_judged_print(const cli_judged *judged, bool is_json) {
    (is_json ? print_json : print_text)(judged);
}
