/* interrupt.h: Ctrl-C and closed pipes. */
#ifndef WICK_CLI_INTERRUPT_H
#define WICK_CLI_INTERRUPT_H

#include <stdbool.h>

/* From here on the first Ctrl-C is only noted; the second one ends the program as usual. */
void cli_watch_interrupt(void);
bool cli_interrupted(void);

/* Nobody reads the output any more (`wick info ... | head`): that ends the program, quietly and as
 * a success. */
void cli_end_on_closed_pipe(void);

#endif
