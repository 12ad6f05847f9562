/* server/response.h: the headers of answers that do not depend on what they say. */
#ifndef WICK_CLI_SERVER_RESPONSE_H
#define WICK_CLI_SERVER_RESPONSE_H

#include "server/access.h"
#include "server/mhd.h"

/* What pages of other origins may do, and what a status wants: when to ask again, how to sign in,
 * which methods there are. path: NULL: memory was short. */
void cli_response_headers(struct MHD_Response *response, struct MHD_Connection *connection,
                          const cli_access *access, const char *path, int status);

#endif
