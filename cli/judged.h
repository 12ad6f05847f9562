/* judged.h: what `wick perplexity` found out, and how it is printed. */
#ifndef WICK_CLI_JUDGED_H
#define WICK_CLI_JUDGED_H

#include <wick/judge.h>

enum { CLI_JUDGED_ROWS = 10 }; /* parts of a text that are shown one by one */

typedef struct cli_judged {
    uint32_t context; /* tokens of a chunk */
    bool has_base;
    bool is_stopped; /* by Ctrl-C: the judgement is of what had been read by then */
    wick_judgement judgement;
    /* The text in n_rows parts of as many chunks each; n_full of them have been read. */
    uint64_t n_chunks;
    size_t n_rows, n_full;
    struct {
        uint64_t first, last; /* chunks, from 1 on */
        double perplexity;    /* of these alone */
    } rows[CLI_JUDGED_ROWS];
    double nll_sum; /* over all full rows, of n_scored tokens */
    uint64_t n_scored;
} cli_judged;

/* The next row is complete; j: of all that has been read. */
void cli_judged_add_row(cli_judged *judged, const wick_judgement *j);
void cli_judged_print(const cli_judged *judged, bool is_json);

#endif
