/* format/inflate.c: see inflate.h.
 *
 * Reference: RFC 1951. Codes are looked up whole: a table of 2^(longest code) entries, made again
 * for each block, gives the symbol and the length of the code that the next bits begin with. */
#include "format/inflate.h"

#include <string.h>

enum { MAX_BITS = 15, N_LITERALS = 288, N_DISTANCES = 32, N_LENGTH_CODES = 19, END_OF_BLOCK = 256 };

typedef struct code_table {
    unsigned bits;                  /* of the longest code */
    uint16_t entry[1U << MAX_BITS]; /* symbol * 16 + length; 0: no code begins so */
} code_table;

typedef struct inflater {
    const uint8_t *src;
    size_t size, at;
    uint8_t *dst;
    size_t room, done;
    bool is_prefix;
    uint64_t held; /* n_held bits that were read ahead, the next one lowest */
    unsigned n_held;
    bool is_full; /* a prefix is complete */
    wick_error *err;
    code_table literals, distances;
} inflater;

static wick_status refuse(const inflater *f, const char *reason) {
    return wk_fail(f->err, WICK_ERR_FORMAT, "byte %zu of the deflate stream: %s", f->at, reason);
}

/* ---- Bits ---- */

/* At least n bits where the stream has them; beyond its end come zeros, which n_held leaves out. */
static void fill(inflater *f) {
    while (f->n_held <= 56 && f->at < f->size) {
        f->held |= (uint64_t)f->src[f->at++] << f->n_held;
        f->n_held += 8;
    }
}

static wick_status take_bits(inflater *f, unsigned n, unsigned *bits) {
    *bits = 0;
    if (f->n_held < n) fill(f);
    if (f->n_held < n) return refuse(f, "it ends too early");
    *bits = (unsigned)(f->held & ((UINT64_C(1) << n) - 1));
    f->held >>= n;
    f->n_held -= n;
    return WICK_OK;
}

static wick_status take_symbol(inflater *f, const code_table *table, unsigned *symbol) {
    *symbol = 0;
    if (f->n_held < MAX_BITS) fill(f);
    const unsigned entry = table->entry[f->held & ((UINT64_C(1) << table->bits) - 1)];
    const unsigned length = entry & 15;
    if (length > f->n_held) return refuse(f, "it ends too early");
    if (length == 0) return refuse(f, "a code that its table does not have");
    f->held >>= length;
    f->n_held -= length;
    *symbol = entry >> 4;
    return WICK_OK;
}

/* ---- Tables ---- */

static unsigned reversed(unsigned code, unsigned n) {
    unsigned result = 0;
    for (unsigned i = 0; i < n; i++) result |= (code >> i & 1) << (n - 1 - i);
    return result;
}

/* The canonical code of these lengths (RFC 1951, 3.2.2). A table of one code, or of none, may leave
 * bits without a meaning, no other one. */
static wick_status make_table(inflater *f, code_table *table, const uint8_t *lengths, unsigned n) {
    unsigned counts[MAX_BITS + 1] = {0}, next[MAX_BITS + 1] = {0}, n_codes = 0;
    for (unsigned i = 0; i < n; i++) counts[lengths[i]]++;
    counts[0] = 0;
    table->bits = 1;
    int left = 1;
    for (unsigned bits = 1; bits <= MAX_BITS; bits++) {
        left = 2 * left - (int)counts[bits];
        if (left < 0) return refuse(f, "more codes of a length than there can be");
        next[bits] = (next[bits - 1] + counts[bits - 1]) << 1;
        if (counts[bits] > 0) table->bits = bits;
        n_codes += counts[bits];
    }
    if (left > 0 && n_codes > 1) return refuse(f, "a table of codes that has gaps");
    memset(table->entry, 0, (sizeof *table->entry) << table->bits);
    for (unsigned i = 0; i < n; i++) {
        if (lengths[i] == 0) continue;
        const uint16_t entry = (uint16_t)(i << 4 | lengths[i]);
        for (unsigned k = reversed(next[lengths[i]]++, lengths[i]); k < 1U << table->bits;
             k += 1U << lengths[i])
            table->entry[k] = entry;
    }
    return WICK_OK;
}

static wick_status make_fixed_tables(inflater *f) {
    uint8_t lengths[N_LITERALS];
    for (unsigned i = 0; i < N_LITERALS; i++)
        lengths[i] = i < 144 ? 8 : i < 256 ? 9 : i < 280 ? 7 : 8;
    WK_TRY(make_table(f, &f->literals, lengths, N_LITERALS));
    memset(lengths, 5, N_DISTANCES);
    return make_table(f, &f->distances, lengths, N_DISTANCES);
}

/* The lengths of n codes, themselves coded, with runs. */
static wick_status take_lengths(inflater *f, uint8_t *lengths, unsigned n) {
    for (unsigned i = 0; i < n;) {
        unsigned symbol, more;
        WK_TRY(take_symbol(f, &f->distances, &symbol));
        if (symbol < 16) {
            lengths[i++] = (uint8_t)symbol;
            continue;
        }
        if (symbol == 16 && i == 0) return refuse(f, "a length is repeated before there is one");
        const uint8_t repeated = symbol == 16 ? lengths[i - 1] : 0;
        WK_TRY(take_bits(f, symbol == 16 ? 2 : symbol == 17 ? 3 : 7, &more));
        const unsigned run = more + (symbol == 18 ? 11 : 3);
        if (run > n - i) return refuse(f, "more lengths of codes than were announced");
        memset(&lengths[i], repeated, run);
        i += run;
    }
    return WICK_OK;
}

static wick_status take_tables(inflater *f) {
    static const uint8_t order[N_LENGTH_CODES] = {16, 17, 18, 0, 8,  7, 9,  6, 10, 5,
                                                  11, 4,  12, 3, 13, 2, 14, 1, 15};
    unsigned n_literals, n_distances, n_codes, length;
    WK_TRY(take_bits(f, 5, &n_literals));
    WK_TRY(take_bits(f, 5, &n_distances));
    WK_TRY(take_bits(f, 4, &n_codes));
    n_literals += 257, n_distances += 1, n_codes += 4;
    if (n_literals > 286 || n_distances > 30) return refuse(f, "more codes than there are symbols");
    uint8_t lengths[N_LITERALS + N_DISTANCES] = {0};
    for (unsigned i = 0; i < n_codes; i++) {
        WK_TRY(take_bits(f, 3, &length));
        lengths[order[i]] = (uint8_t)length;
    }
    WK_TRY(make_table(f, &f->distances, lengths, N_LENGTH_CODES)); /* of lengths, for now */
    memset(lengths, 0, sizeof lengths);
    WK_TRY(take_lengths(f, lengths, n_literals + n_distances));
    if (lengths[END_OF_BLOCK] == 0) return refuse(f, "a block without a code for its end");
    WK_TRY(make_table(f, &f->literals, lengths, n_literals));
    return make_table(f, &f->distances, lengths + n_literals, n_distances);
}

/* ---- Blocks ---- */

/* How many of n bytes there is room for: all, or of a prefix those that it still needs. */
static wick_status make_room(inflater *f, size_t *n) {
    if (*n <= f->room - f->done) return WICK_OK;
    if (!f->is_prefix) return refuse(f, "it unpacks to more bytes than were announced");
    *n = f->room - f->done;
    return WICK_OK;
}

static wick_status copy_stored(inflater *f) {
    unsigned length, check;
    f->held >>= f->n_held % 8;
    f->n_held -= f->n_held % 8;
    WK_TRY(take_bits(f, 16, &length));
    WK_TRY(take_bits(f, 16, &check));
    if ((length ^ check) != 0xFFFF) return refuse(f, "a stored block with a wrong length");
    f->at -= f->n_held / 8; /* whole bytes that were read ahead */
    f->held = f->n_held = 0;
    if (length > f->size - f->at) return refuse(f, "it ends too early");
    size_t n = length;
    WK_TRY(make_room(f, &n));
    if (n > 0) memcpy(f->dst + f->done, f->src + f->at, n);
    f->done += n;
    f->at += n;
    f->is_full = n < length;
    return WICK_OK;
}

/* A match of RFC 1951, 3.2.5: symbols come in groups whose number of extra bits rises. */
static wick_status copy_match(inflater *f, unsigned symbol) {
    unsigned extra, length, code, distance;
    if (symbol > 285) return refuse(f, "a length that does not exist");
    const unsigned s = symbol - 257, n_bits = s < 8 || s == 28 ? 0 : (s - 4) / 4;
    WK_TRY(take_bits(f, n_bits, &extra));
    length = s == 28 ? 258 : s < 8 ? s + 3 : ((4 + s % 4) << n_bits) + 3 + extra;
    WK_TRY(take_symbol(f, &f->distances, &code));
    if (code > 29) return refuse(f, "a distance that does not exist");
    const unsigned n_more = code < 4 ? 0 : code / 2 - 1;
    WK_TRY(take_bits(f, n_more, &extra));
    distance = code < 4 ? code + 1 : ((2 + code % 2) << n_more) + 1 + extra;
    if (distance > f->done) return refuse(f, "a match that begins before the data");
    size_t n = length;
    WK_TRY(make_room(f, &n));
    /* Byte by byte: a match may overlap what it makes. */
    for (uint8_t *to = f->dst + f->done, *const end = to + n; to < end; to++)
        *to = to[-(ptrdiff_t)distance];
    f->done += n;
    f->is_full = n < length;
    return WICK_OK;
}

static wick_status take_codes(inflater *f) {
    for (;;) {
        unsigned symbol;
        if (f->is_full || (f->is_prefix && f->done == f->room)) return WICK_OK;
        WK_TRY(take_symbol(f, &f->literals, &symbol));
        if (symbol == END_OF_BLOCK) return WICK_OK;
        if (symbol > END_OF_BLOCK) {
            WK_TRY(copy_match(f, symbol));
            continue;
        }
        if (f->done == f->room) return refuse(f, "it unpacks to more bytes than were announced");
        f->dst[f->done++] = (uint8_t)symbol;
    }
}

static wick_status take_blocks(inflater *f) {
    for (unsigned is_last = 0; !is_last;) {
        unsigned kind;
        if (f->is_prefix && f->done == f->room) return WICK_OK;
        WK_TRY(take_bits(f, 1, &is_last));
        WK_TRY(take_bits(f, 2, &kind));
        if (kind == 3) return refuse(f, "a block of a kind that does not exist");
        if (kind == 0) {
            WK_TRY(copy_stored(f));
            continue;
        }
        WK_TRY(kind == 1 ? make_fixed_tables(f) : take_tables(f));
        WK_TRY(take_codes(f));
    }
    if (f->done < f->room) return refuse(f, "it unpacks to fewer bytes than were announced");
    if (!f->is_prefix && f->at - f->n_held / 8 < f->size) return refuse(f, "bytes follow its end");
    return WICK_OK;
}

wick_status wk_inflate(wk_heap *heap, const uint8_t *src, size_t src_size, uint8_t *dst,
                       size_t dst_size, bool is_prefix, wick_error *err) {
    inflater *const f = wk_alloc(heap, sizeof *f);
    if (f == NULL) return wk_fail_memory(err, sizeof *f, "the tables of a deflate stream");
    f->src = src, f->size = src_size, f->at = 0;
    f->dst = dst, f->room = dst_size, f->done = 0;
    f->is_prefix = is_prefix, f->is_full = false;
    f->held = f->n_held = 0;
    f->err = err;
    const wick_status status = take_blocks(f);
    wk_free(heap, f, sizeof *f);
    return status;
}
