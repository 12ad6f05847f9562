/* server/request.h: what a request must be before its body is read. */
#ifndef WICK_CLI_SERVER_REQUEST_H
#define WICK_CLI_SERVER_REQUEST_H

#include "server/access.h"
#include "server/mhd.h"

enum { CLI_MOST_BODY = 8 * 1024 * 1024 /* whose tokens take seconds */, CLI_ERROR_TEXT = 256 };

/* NULL: it has none. */
const char *cli_request_header(struct MHD_Connection *connection, const char *name);

/* The query of its target, with escapes of & = % + # alone, malloc'ed. NULL: it has none. */
char *cli_request_query(struct MHD_Connection *connection);

/* Asks how the server is, which is answered however busy the caller is. */
bool cli_request_is_health(const char *method, const char *path);

/* The status of HTTP that refuses it; 0: none. host: that its target names; NULL: its header does.
 */
int cli_request_refuses(struct MHD_Connection *connection, const cli_access *access,
                        const char *method, const char *path, const char *host);

/* The body of an error, in the shape of the API at this path; NULL: of any. */
void cli_request_error(const char *path, int status, char text[CLI_ERROR_TEXT]);

#endif
