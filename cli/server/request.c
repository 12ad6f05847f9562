/* server/request.c: see request.h. */
#include "server/request.h"

#include "server/page.h"

#include <wick/api.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { MOST_HEADERS = 24 * 1024 }; /* of a connection's 32 KiB; body and answer need some, too */

const char *cli_request_header(struct MHD_Connection *connection, const char *name) {
    return mhd.lookup_connection_value(connection, MHD_HEADER_KIND, name);
}

/* Appends text, whose escapes are undone, as a query has it. */
static char *append_escaped(char *to, const char *text) {
    for (; *text != '\0'; text++) {
        if (strchr("%&=+#", *text) != NULL)
            to += sprintf(to, "%%%02X", (unsigned char)*text);
        else
            *to++ = *text;
    }
    return to;
}

static enum MHD_Result add_argument(void *given, enum MHD_ValueKind kind, const char *key,
                                    const char *value) {
    char **const query = given;
    (void)kind;
    if (value == NULL) value = "";
    const size_t had = *query != NULL ? strlen(*query) : 0;
    char *const made = realloc(*query, had + 3 * (strlen(key) + strlen(value)) + 3);
    if (made == NULL) return MHD_NO;
    char *at = made + had;
    if (had > 0) *at++ = '&';
    at = append_escaped(at, key);
    *at++ = '=';
    at = append_escaped(at, value);
    *at = '\0';
    *query = made;
    return MHD_YES;
}

char *cli_request_query(struct MHD_Connection *connection) {
    char *query = NULL;
    mhd.get_connection_values(connection, MHD_GET_ARGUMENT_KIND, add_argument, (void *)&query);
    return query;
}

bool cli_request_is_health(const char *method, const char *path) {
    return (strcmp(method, "GET") == 0 || strcmp(method, "HEAD") == 0) &&
           (strcmp(path, "/health") == 0 || strcmp(path, "/v1/health") == 0);
}

/* What they take of the connection's memory: their text, and a record for each. */
static size_t size_of_headers(struct MHD_Connection *connection) {
    enum { RECORD = 72 };
    const union MHD_ConnectionInfo *const info =
        mhd.get_connection_info(connection, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
    const int n = mhd.get_connection_values(
        connection, MHD_HEADER_KIND | MHD_COOKIE_KIND | MHD_GET_ARGUMENT_KIND, NULL, NULL);
    return (info != NULL ? info->header_size : 0) + (size_t)(n > 0 ? n : 0) * RECORD;
}

static enum MHD_Result count_length(void *given, enum MHD_ValueKind kind, const char *key,
                                    const char *value) {
    int *const n = given;
    (void)kind;
    (void)value;
    *n += strcasecmp(key, MHD_HTTP_HEADER_CONTENT_LENGTH) == 0;
    return MHD_YES;
}

int cli_request_refuses(struct MHD_Connection *connection, const cli_access *access,
                        const char *method, const char *path, const char *host) {
    const char *const length = cli_request_header(connection, MHD_HTTP_HEADER_CONTENT_LENGTH);
    const char *const encoding = cli_request_header(connection, MHD_HTTP_HEADER_CONTENT_ENCODING);
    int n_lengths = 0;
    if (size_of_headers(connection) > MOST_HEADERS) return MHD_HTTP_REQUEST_HEADER_FIELDS_TOO_LARGE;
    mhd.get_connection_values(connection, MHD_HEADER_KIND, count_length, &n_lengths);
    if (n_lengths > 1 ||
        (length != NULL && cli_request_header(connection, MHD_HTTP_HEADER_TRANSFER_ENCODING)))
        return MHD_HTTP_BAD_REQUEST;
    if (length != NULL && strtoull(length, NULL, 10) > CLI_MOST_BODY)
        return MHD_HTTP_CONTENT_TOO_LARGE;
    if (encoding != NULL && strcasecmp(encoding, "identity") != 0)
        return MHD_HTTP_UNSUPPORTED_MEDIA_TYPE;
    if (host == NULL) host = cli_request_header(connection, MHD_HTTP_HEADER_HOST);
    const cli_access_headers headers = {
        .host = host,
        .authorization = cli_request_header(connection, MHD_HTTP_HEADER_AUTHORIZATION),
        .x_api_key = cli_request_header(connection, "x-api-key"),
        .origin = cli_request_header(connection, MHD_HTTP_HEADER_ORIGIN)};
    const bool is_public = strcmp(method, "OPTIONS") == 0 || cli_request_is_health(method, path) ||
                           cli_page_find(method, path) != NULL;
    return cli_access_refuses(access, &headers, is_public);
}

void cli_request_error(const char *path, int status, char text[CLI_ERROR_TEXT]) {
    const char *const why =
        status == MHD_HTTP_UNAUTHORIZED ? "the API key is missing or wrong"
        : status == MHD_HTTP_FORBIDDEN
            ? "this Host or Origin is not allowed (see --allowed-hosts and --cors-origins)"
        : status == MHD_HTTP_CONTENT_TOO_LARGE               ? "the request is too large"
        : status == MHD_HTTP_REQUEST_HEADER_FIELDS_TOO_LARGE ? "the headers are too large"
        : status == MHD_HTTP_UNSUPPORTED_MEDIA_TYPE ? "compressed request bodies are not supported"
        : status == MHD_HTTP_SERVICE_UNAVAILABLE ? "the server is short of memory, or shutting down"
        : status == MHD_HTTP_BAD_REQUEST
            ? "Content-Length is given twice, or with Transfer-Encoding"
            : "this request cannot be answered";
    wick_api_error(path != NULL ? path : "", status, why, text, CLI_ERROR_TEXT);
}
