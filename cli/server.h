/* server.h: HTTP (RFC 9110) as `wick serve` needs it: requests in, answers out, piece by piece. A
 * thread of the server's own speaks to the clients; one thread of the caller's takes the requests
 * and answers them. */
#ifndef WICK_CLI_SERVER_H
#define WICK_CLI_SERVER_H

#include "server/access.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct cli_server cli_server;
/* A request whose body has come, until cli_call_end. */
typedef struct cli_call cli_call;

typedef struct cli_served {
    const char *client, *method, *path;
    int status; /* 0: the client went away before there was one */
    size_t n_read, n_written;
    double seconds;
    const char *body; /* [n_read] of the request */
} cli_served;

typedef struct cli_server_desc {
    const char *host, *socket; /* addresses with commas; or else the path of a UNIX socket */
    uint32_t port;             /* 0: one that is free */
    uint32_t timeout;          /* seconds that a client may take for a request, or take nothing */
    cli_access access;
    const char *certificate, *private_key; /* PEM, for TLS; NULL: without */
    /* A request that is over, for a log; from the server's thread. NULL: none. */
    void (*log)(const cli_served *served);
} cli_server_desc;

/* NULL: it does not listen; why, as a sentence, in error [size]. */
cli_server *cli_server_start(const cli_server_desc *desc, char *error, size_t size);
/* Where it listens: "http://127.0.0.1:8080". */
const char *cli_server_address(const cli_server *server);
/* Takes no more requests, and ends every connection once its answer has been sent, or 5 seconds
 * later. All calls that were taken must have ended. */
void cli_server_stop(cli_server *server);

/* The next request; NULL: none has come in this time. */
cli_call *cli_server_take(cli_server *server, unsigned milliseconds);
const char *cli_call_method(const cli_call *call);
const char *cli_call_path(const cli_call *call);
/* The query of the request's target, with escapes of & = % + # alone; NULL: there is none. */
const char *cli_call_query(const cli_call *call);
/* The value of one of its keys, decoded; NULL: it has none. For a call that is not answered yet. */
const char *cli_call_argument(const cli_call *call, const char *key);
const char *cli_call_body(const cli_call *call, size_t *size);

/* Once, before anything is written. is_stream: more comes later; else all of the answer is written
 * at once, up to cli_call_end. */
void cli_call_begin(cli_call *call, int status, const char *type, bool is_stream);
/* Returns how many bytes wait for the client. False memory: the client is gone. */
size_t cli_call_write(cli_call *call, const char *bytes, size_t size);
/* Whether the client does not wait any more. */
bool cli_call_is_gone(cli_call *call);
/* The answer is whole; the call is the server's again. */
void cli_call_end(cli_call *call);

#endif
