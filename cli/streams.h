/* streams.h: standard input, output and error at the start. */
#ifndef WICK_CLI_STREAMS_H
#define WICK_CLI_STREAMS_H

/* Where the program was started without one of the three (`wick ... >&-`), the first files that it
 * opens would take their numbers, and get what is printed. Fills them with what cannot be read or
 * written, so that the loss is still seen. */
void cli_fill_streams(void);

#endif
