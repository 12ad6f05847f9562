/* server/none.c: a build without an HTTP server. */
#include "server.h"

#include <stdio.h>

cli_server *cli_server_start(const cli_server_desc *desc, char *error, size_t size) {
    (void)desc;
    snprintf(error, size, "this wick was built without libmicrohttpd, which 'wick serve' needs");
    return NULL;
}

const char *cli_server_address(const cli_server *server) {
    (void)server;
    return "";
}

void cli_server_stop(cli_server *server) { (void)server; }

cli_call *cli_server_take(cli_server *server, unsigned milliseconds) {
    (void)server;
    (void)milliseconds;
    return NULL;
}

const char *cli_call_method(const cli_call *call) {
    (void)call;
    return "";
}

const char *cli_call_path(const cli_call *call) {
    (void)call;
    return "";
}

const char *cli_call_query(const cli_call *call) {
    (void)call;
    return NULL;
}

const char *cli_call_argument(const cli_call *call, const char *key) {
    (void)call, (void)key;
    return NULL;
}

const char *cli_call_body(const cli_call *call, size_t *size) {
    (void)call;
    *size = 0;
    return NULL;
}

void cli_call_begin(cli_call *call, int status, const char *type, bool is_stream) {
    (void)call;
    (void)status;
    (void)type;
    (void)is_stream;
}

size_t cli_call_write(cli_call *call, const char *bytes, size_t size) {
    (void)call;
    (void)bytes;
    (void)size;
    return 0;
}

bool cli_call_is_gone(cli_call *call) {
    (void)call;
    return true;
}

void cli_call_end(cli_call *call) { (void)call; }
