/* statistics.h: the closing lines of a generation. */
#ifndef WICK_CLI_STATISTICS_H
#define WICK_CLI_STATISTICS_H

#include <wick/wick.h>

/* On standard error: what computed, tokens per second, time to first token, seed, memory, what ran
 * slowly, and why the text ended where the context was the reason. */
void cli_print_statistics(const wick_model *model, const wick_session *session,
                          wick_end_reason reason);

#endif
