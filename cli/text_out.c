/* text_out.c: escapes and sizes. What comes from a file must not steer the terminal. */
#include "text_out.h"

#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

/* The first byte of a sequence: its length, and the code points that length is for. */
static size_t lead_size(unsigned char byte, uint32_t *bits, uint32_t *least) {
    if (byte >= 0xC2 && byte < 0xE0) {
        *bits = byte & 0x1FU;
        *least = 0x80;
        return 2;
    }
    if (byte >= 0xE0 && byte < 0xF0) {
        *bits = byte & 0x0FU;
        *least = 0x800;
        return 3;
    }
    if (byte >= 0xF0 && byte < 0xF5) {
        *bits = byte & 0x07U;
        *least = 0x10000;
        return 4;
    }
    return 0;
}

size_t cli_utf8_size(const char *text, size_t size) {
    if (size == 0) return 0;
    if ((unsigned char)text[0] < 0x80) return 1;
    uint32_t code = 0, least = 0;
    const size_t n = lead_size((unsigned char)text[0], &code, &least);
    if (n == 0 || n > size) return 0;
    for (size_t i = 1; i < n; i++) {
        const unsigned char byte = (unsigned char)text[i];
        if ((byte & 0xC0U) != 0x80) return 0;
        code = code << 6 | (byte & 0x3FU);
    }
    const bool is_surrogate = code >= 0xD800 && code < 0xE000;
    return code >= least && code < 0x110000 && !is_surrogate ? n : 0;
}

bool cli_is_control(const char *text, size_t n) {
    const unsigned char first = (unsigned char)text[0];
    if (n == 1) return first < 0x20 || first == 0x7F;
    return n == 2 && first == 0xC2 && (unsigned char)text[1] < 0xA0;
}

static void put_byte(FILE *out, unsigned char byte) {
    switch (byte) {
    case '\n': fputs("\\n", out); break;
    case '\r': fputs("\\r", out); break;
    case '\t': fputs("\\t", out); break;
    default: fprintf(out, "\\x%02X", byte); break;
    }
}

/* backslash: what stands for one. */
static void put_text(FILE *out, const char *text, size_t size, const char *backslash) {
    for (size_t i = 0; i < size;) {
        const size_t n = cli_utf8_size(text + i, size - i);
        const size_t taken = n > 0 ? n : 1;
        if (n == 1 && text[i] == '\\')
            fputs(backslash, out);
        else if (n > 0 && !cli_is_control(text + i, n))
            fwrite(text + i, 1, n, out);
        else
            for (size_t k = 0; k < taken; k++) put_byte(out, (unsigned char)text[i + k]);
        i += taken;
    }
}

void cli_put_escaped(FILE *out, const char *text, size_t size) {
    put_text(out, text, size, "\\\\");
}

void cli_put_sentence(FILE *out, const char *text) { put_text(out, text, strlen(text), "\\"); }

void cli_put_padded(FILE *out, const char *text, size_t width) {
    const size_t size = strlen(text);
    cli_put_escaped(out, text, size);
    fprintf(out, "%*s", size < width ? (int)(width - size) : 0, "");
}

cli_size_text cli_bytes_text(uint64_t bytes) {
    static const char *const units[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    cli_size_text result;
    if (bytes < 1024) {
        snprintf(result.text, sizeof result.text, "%" PRIu64 " bytes", bytes);
        return result;
    }
    size_t unit = 0;
    double value = (double)bytes / 1024.0;
    for (; value >= 1023.95; value /= 1024.0) unit++; /* what "%.1f" would round to 1024.0 */
    snprintf(result.text, sizeof result.text, "%.1f %s", value, units[unit]);
    return result;
}
