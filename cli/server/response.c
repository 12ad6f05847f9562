/* server/response.c: see response.h. */
#include "server/response.h"

#include "server/request.h"

#include <wick/api.h>

static void add_origin(struct MHD_Response *response, struct MHD_Connection *connection,
                       const cli_access *access) {
    const char *const origin =
        cli_access_origin(access, cli_request_header(connection, MHD_HTTP_HEADER_ORIGIN));
    /* Of a preflight; "*" would leave Authorization out. */
    const char *const headers = cli_request_header(connection, "Access-Control-Request-Headers");
    if (origin == NULL) return;
    mhd.add_response_header(response, "Access-Control-Allow-Origin", origin);
    mhd.add_response_header(response, "Access-Control-Allow-Credentials", "true");
    mhd.add_response_header(response, "Access-Control-Allow-Methods", "GET, POST, DELETE, OPTIONS");
    mhd.add_response_header(response, "Access-Control-Allow-Headers",
                            headers != NULL ? headers : "*");
    mhd.add_response_header(response, MHD_HTTP_HEADER_VARY, MHD_HTTP_HEADER_ORIGIN);
}

static const char *allowed(const char *path) {
    const bool gets = wick_api_find("GET", path, NULL) == MHD_HTTP_OK;
    const bool posts = wick_api_find("POST", path, NULL) == MHD_HTTP_OK;
    return gets && posts ? "GET, HEAD, OPTIONS, POST"
           : gets        ? "GET, HEAD, OPTIONS"
                         : "OPTIONS, POST";
}

void cli_response_headers(struct MHD_Response *response, struct MHD_Connection *connection,
                          const cli_access *access, const char *path, int status) {
    add_origin(response, connection, access);
    if (status == MHD_HTTP_SERVICE_UNAVAILABLE || status == MHD_HTTP_TOO_MANY_REQUESTS)
        mhd.add_response_header(response, MHD_HTTP_HEADER_RETRY_AFTER, "1");
    if (status == MHD_HTTP_UNAUTHORIZED)
        mhd.add_response_header(response, MHD_HTTP_HEADER_WWW_AUTHENTICATE, "Bearer");
    if (status == MHD_HTTP_METHOD_NOT_ALLOWED)
        mhd.add_response_header(response, MHD_HTTP_HEADER_ALLOW, allowed(path));
}
