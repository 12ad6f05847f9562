/* sha256.c: FIPS 180-4, sections 4.1.2 to 6.2; names as there. */
#include "sha256.h"

#include <string.h>

/* The first 32 bits of the fractional parts of the cube roots of the first 64 primes. */
static const uint32_t K[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static uint32_t rotate(uint32_t x, unsigned n) { return x >> n | x << (32 - n); }

static uint32_t load_big(const unsigned char *at) {
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

static void add_block(uint32_t state[8], const unsigned char *block) {
    uint32_t w[64];
    for (size_t t = 0; t < 16; t++) w[t] = load_big(block + 4 * t);
    for (size_t t = 16; t < 64; t++) {
        const uint32_t s0 = rotate(w[t - 15], 7) ^ rotate(w[t - 15], 18) ^ w[t - 15] >> 3;
        const uint32_t s1 = rotate(w[t - 2], 17) ^ rotate(w[t - 2], 19) ^ w[t - 2] >> 10;
        w[t] = s1 + w[t - 7] + s0 + w[t - 16];
    }
    uint32_t a = state[0], b = state[1], c = state[2], d = state[3];
    uint32_t e = state[4], f = state[5], g = state[6], h = state[7];
    for (size_t t = 0; t < 64; t++) {
        const uint32_t sum1 = rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25);
        const uint32_t t1 = h + sum1 + ((e & f) ^ (~e & g)) + K[t] + w[t];
        const uint32_t sum0 = rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22);
        const uint32_t t2 = sum0 + ((a & b) ^ (a & c) ^ (b & c));
        h = g, g = f, f = e, e = d + t1;
        d = c, c = b, b = a, a = t1 + t2;
    }
    const uint32_t sums[8] = {a, b, c, d, e, f, g, h};
    for (size_t i = 0; i < 8; i++) state[i] += sums[i];
}

void cli_sha256_start(cli_sha256 *sha) {
    *sha = (cli_sha256){.state = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f,
                                  0x9b05688c, 0x1f83d9ab, 0x5be0cd19}};
}

void cli_sha256_add(cli_sha256 *sha, const void *bytes, size_t size) {
    const unsigned char *at = bytes;
    const size_t held = (size_t)(sha->size % 64);
    sha->size += size;
    if (held > 0) {
        const size_t n = size < 64 - held ? size : 64 - held;
        memcpy(sha->block + held, at, n);
        if (held + n < 64) return;
        add_block(sha->state, sha->block);
        at += n;
        size -= n;
    }
    for (; size >= 64; size -= 64, at += 64) add_block(sha->state, at);
    memcpy(sha->block, at, size);
}

cli_digest cli_sha256_finish(cli_sha256 *sha) {
    static const unsigned char padding[64] = {0x80};
    static const char digits[] = "0123456789abcdef";
    const uint64_t bits = 8 * sha->size;
    unsigned char length[8];
    for (unsigned i = 0; i < 8; i++) length[i] = (unsigned char)(bits >> (56 - 8 * i));
    /* At least one byte, so that the length ends a block. */
    cli_sha256_add(sha, padding, (size_t)(1 + (119 - sha->size % 64) % 64));
    cli_sha256_add(sha, length, sizeof length);
    cli_digest digest = {""};
    for (size_t i = 0; i < 64; i++)
        digest.text[i] = digits[sha->state[i / 8] >> (28 - 4 * (i % 8)) & 15];
    return digest;
}

bool cli_digest_parse(const char *text, size_t size, cli_digest *digest) {
    *digest = (cli_digest){""};
    if (size != 64) return false;
    cli_digest parsed = {""};
    for (size_t i = 0; i < size; i++) {
        const char c = text[i];
        const bool is_upper = c >= 'A' && c <= 'F';
        if (!is_upper && !(c >= '0' && c <= '9') && !(c >= 'a' && c <= 'f')) return false;
        parsed.text[i] = is_upper ? (char)(c - 'A' + 'a') : c;
    }
    *digest = parsed;
    return true;
}
