/* none.c: the command was built where there is no libcurl. */
#include "http.h"

#include "cli.h"

bool cli_http_is_here(void) {
    cli_error("this wick was built without libcurl, which 'wick pull' needs; install it "
              "(Debian: libcurl4-openssl-dev) and build again");
    return false;
}

cli_http *cli_http_open(uint32_t stall_seconds) {
    (void)stall_seconds;
    return NULL;
}

void cli_http_close(cli_http *http) { (void)http; }

cli_http_end cli_http_get(cli_http *http, const cli_http_request *request) {
    (void)http, (void)request;
    return (cli_http_end){.outcome = CLI_HTTP_FAILED, .reason = "there is no libcurl"};
}
