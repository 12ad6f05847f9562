/* serve_clients.h: requests of clients become exchanges of the API, and answers go back. */
#ifndef WICK_CLI_SERVE_CLIENTS_H
#define WICK_CLI_SERVE_CLIENTS_H

#include "serve_models.h"
#include "server.h"

/* Until a signal comes (interrupt.h); every answer is ended then. */
void cli_serve_clients(cli_server *server, cli_served_models *models);

/* A line of JSON on standard error for a request, without its body or with it. */
void cli_log_request(const cli_served *served);
void cli_log_request_whole(const cli_served *served);

#endif
