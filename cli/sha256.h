/* sha256.h: SHA-256 (FIPS 180-4) of bytes that come in pieces. */
#ifndef WICK_CLI_SHA256_H
#define WICK_CLI_SHA256_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct cli_sha256 {
    uint32_t state[8];
    uint64_t size; /* bytes so far */
    unsigned char block[64];
} cli_sha256;

/* 64 hexadecimal digits in lower case; "": none. */
typedef struct cli_digest {
    char text[65];
} cli_digest;

void cli_sha256_start(cli_sha256 *sha);
void cli_sha256_add(cli_sha256 *sha, const void *bytes, size_t size);
cli_digest cli_sha256_finish(cli_sha256 *sha);

/* Takes a digest as people and servers write it: either case. False: it is none. */
bool cli_digest_parse(const char *text, size_t size, cli_digest *digest);

#endif
