/* text/tokenize/cut_kind.c: the cuts that look for one kind of characters. */
#include "text/tokenize/cut.h"

#include "text/tokenize/cut_scan.h"
#include "text/unicode/unicode_case.h"

/* --- Numbers --- */

static size_t match_number(wk_str text) {
    const wk_scanned c = wk_scan(text, 0);
    return c.classes & WK_CHARS_NUMBER ? c.size : 0;
}

static size_t match_numbers(wk_str text) { return wk_skip(text, 0, WK_CHARS_NUMBER); }

static size_t match_three_numbers(wk_str text) {
    size_t at = 0;
    for (int i = 0; i < 3; i++) {
        const wk_scanned c = wk_scan(text, at);
        if (!(c.classes & WK_CHARS_NUMBER)) break;
        at += c.size;
    }
    return at;
}

static size_t match_three_digits(wk_str text) {
    if (text.size < 3) return 0;
    for (int i = 0; i < 3; i++) {
        if (text.text[i] < '0' || text.text[i] > '9') return 0;
    }
    return 3;
}

size_t wk_cut_number(wk_str text) { return wk_cut_by(text, match_number); }
size_t wk_cut_numbers(wk_str text) { return wk_cut_by(text, match_numbers); }
size_t wk_cut_three_numbers(wk_str text) { return wk_cut_by(text, match_three_numbers); }
size_t wk_cut_three_digits(wk_str text) { return wk_cut_by(text, match_three_digits); }

static bool is_digit(uint32_t code) {
    return code < 0x80 ? code >= '0' && code <= '9' : wk_unicode_is(code, WK_UNICODE_DECIMAL);
}

size_t wk_cut_last_digits(wk_str text) {
    for (size_t at = 0; at < text.size;) {
        const size_t begin = at;
        wk_scanned c;
        while (is_digit((c = wk_scan(text, at)).code) && c.size > 0) at += c.size;
        const bool is_word = c.classes & (WK_CHARS_LETTER | WK_CHARS_MARK) || c.code == '_';
        if (at > begin && !(c.size > 0 && is_word)) return begin > 0 ? begin : at;
        at += c.size;
    }
    return text.size;
}

/* The first number's size in bytes counts for all of them: no text mixes sizes. */
size_t wk_cut_thousands(wk_str text) {
    const size_t width = wk_scan(text, 0).size;
    size_t n = text.size / width % 3, at = 0;
    if (!(wk_scan(text, 0).classes & WK_CHARS_NUMBER)) return text.size;
    if (!(wk_scan(text, text.size - width).classes & WK_CHARS_NUMBER)) return text.size;
    for (n = n > 0 ? n : 3; n > 0; n--) at += wk_scan(text, at).size;
    return at;
}

/* --- White space --- */

static size_t match_line_end(wk_str text) { return wk_is_line_end((unsigned char)*text.text); }

size_t wk_cut_line_end(wk_str text) { return wk_cut_by(text, match_line_end); }

size_t wk_cut_lines(wk_str text) {
    const bool is_end = *text.text == '\n';
    size_t at = 1;
    while (at < text.size && (text.text[at] == '\n') == is_end) at++;
    return at;
}

size_t wk_cut_last_space(wk_str text) {
    size_t last = 0; /* where the white space begins that may be the last */
    for (size_t at = 0; at < text.size;) {
        const wk_scanned c = wk_scan(text, at);
        at += c.size;
        if (!(c.classes & WK_CHARS_SPACE)) last = at;
    }
    return last > 0 ? last : text.size;
}

/* Tabs, line ends, four spaces and two. */
static size_t match_tab_or_spaces(wk_str text) {
    size_t n = 0;
    if (*text.text == '\t' || *text.text == '\n') return 1;
    while (n < text.size && n < 4 && text.text[n] == ' ') n++;
    return n == 4 ? 4 : n >= 2 ? 2 : 0;
}

size_t wk_cut_tab_or_spaces(wk_str text) { return wk_cut_by(text, match_tab_or_spaces); }

/* A piece that begins with two of them has nothing else. */
size_t wk_cut_halved_space(wk_str text) {
    size_t at = 0, end = text.size;
    if (wk_is_line_end((unsigned char)text.text[text.size - 1])) return end;
    for (int n = 1; n <= 512; n++) {
        const wk_scanned c = wk_scan(text, at);
        if (!(c.classes & WK_CHARS_SPACE)) return c.size > 0 ? text.size : end;
        at += c.size;
        if ((n & (n - 1)) == 0) end = at; /* a power of two */
    }
    return end;
}

/* --- Ranges --- */

typedef struct code_range {
    uint32_t first, last;
} code_range;

/* ranges rise */
static bool is_within(const code_range *ranges, size_t n, uint32_t code) {
    size_t low = 0, high = n;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (ranges[middle].last < code) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < n && ranges[low].first <= code;
}

/* The end of the run that begins at, of characters within the ranges. */
static size_t skip_ranges(wk_str text, size_t at, const code_range *ranges, size_t n) {
    while (at < text.size) {
        const wk_scanned c = wk_scan(text, at);
        if (!is_within(ranges, n, c.code)) break;
        at += c.size;
    }
    return at;
}

/* Bytes of the white space that text begins with: \s? */
static size_t space_size(wk_str text) {
    const wk_scanned c = wk_scan(text, 0);
    return c.classes & WK_CHARS_SPACE ? c.size : 0;
}

/* \s?[...]+ where end is the end of a run that began after the space. */
static size_t after_space(size_t space, size_t end) { return end > space ? end : 0; }

static size_t match_cjk_hangul(wk_str text) {
    static const code_range ranges[] = {{0x800, 0x9FA5}, {0xAC00, 0xD7FF}};
    return skip_ranges(text, 0, ranges, WK_COUNT(ranges));
}

static size_t match_cjk_kana(wk_str text) {
    static const code_range ranges[] = {{0x3040, 0x30FF}, {0x4E00, 0x9FA5}};
    return skip_ranges(text, 0, ranges, WK_COUNT(ranges));
}

static size_t match_youtu_scripts(wk_str text) {
    static const code_range hangul[] = {{0x3131, 0x318E}, {0xAC00, 0xD7A3}};
    static const code_range signs[] = {{0x2014, 0x2014}, {0x2018, 0x2019}, {0x201C, 0x201D},
                                       {0x2026, 0x2026}, {0x3001, 0x303F}, {0xFE30, 0xFE4F},
                                       {0xFF01, 0xFF01}, {0xFF0C, 0xFF0C}, {0xFF1A, 0xFF1B}};
    static const code_range bopomofo[] = {{0x3105, 0x312F}};
    size_t end = skip_ranges(text, 0, hangul, WK_COUNT(hangul));
    if (end == 0) end = skip_ranges(text, 0, signs, WK_COUNT(signs));
    if (end == 0) end = skip_ranges(text, 0, bopomofo, WK_COUNT(bopomofo));
    return end > 0 ? end : match_cjk_kana(text);
}

static size_t match_asian(wk_str text) {
    static const code_range ranges[] = {
        {0xE40, 0xEFF},   {0x1000, 0x109F}, {0x1100, 0x11FF}, {0x1780, 0x17FF}, {0x2F00, 0x2FDF},
        {0x3040, 0x30FF}, {0x3400, 0x4DBF}, {0x4E00, 0x9FFF}, {0xA9E0, 0xA9FF}, {0xAA60, 0xAA7F},
        {0xAC00, 0xD7AF}, {0xF900, 0xFAFF}, {0xFF65, 0xFF9F}};
    return skip_ranges(text, 0, ranges, WK_COUNT(ranges));
}

bool wk_is_han(uint32_t code) {
    static const code_range ranges[] = {
        {0x2E80, 0x2E99},   {0x2E9B, 0x2EF3},   {0x2F00, 0x2FD5},   {0x3005, 0x3005},
        {0x3007, 0x3007},   {0x3021, 0x3029},   {0x3038, 0x303B},   {0x3400, 0x4DBF},
        {0x4E00, 0x9FFF},   {0xF900, 0xFA6D},   {0xFA70, 0xFAD9},   {0x16FE2, 0x16FE3},
        {0x16FF0, 0x16FF1}, {0x20000, 0x2A6DF}, {0x2A700, 0x2B739}, {0x2B740, 0x2B81D},
        {0x2B820, 0x2CEA1}, {0x2CEB0, 0x2EBE0}, {0x2EBF0, 0x2EE5D}, {0x2F800, 0x2FA1D},
        {0x30000, 0x3134A}, {0x31350, 0x323AF}};
    return is_within(ranges, WK_COUNT(ranges), code);
}

static size_t match_cased_word(wk_str text) {
    static const code_range ranges[] = {
        {'A', 'Z'},         {'a', 'z'},         {0xB5, 0xB5},       {0xC0, 0xD6},
        {0xD8, 0xF6},       {0xF8, 0x1BA},      {0x1BC, 0x1BF},     {0x1C4, 0x293},
        {0x295, 0x2AF},     {0x370, 0x373},     {0x376, 0x377},     {0x37B, 0x37D},
        {0x37F, 0x37F},     {0x386, 0x386},     {0x388, 0x38A},     {0x38C, 0x38C},
        {0x38E, 0x3A1},     {0x3A3, 0x3F5},     {0x3F7, 0x481},     {0x48A, 0x52F},
        {0x531, 0x556},     {0x10A0, 0x10C5},   {0x13A0, 0x13F5},   {0x13F8, 0x13FD},
        {0x1C90, 0x1CBA},   {0x1CBD, 0x1CBF},   {0x1D00, 0x1D2B},   {0x1D6B, 0x1D77},
        {0x1D79, 0x1D9A},   {0x1E00, 0x1F15},   {0x1F18, 0x1F1D},   {0x1F20, 0x1F45},
        {0x1F48, 0x1F4D},   {0x1F50, 0x1F57},   {0x1F59, 0x1F59},   {0x1F5B, 0x1F5B},
        {0x1F5D, 0x1F5D},   {0x1F5F, 0x1F7D},   {0x1F80, 0x1FB4},   {0x1FB6, 0x1FBC},
        {0x1FBE, 0x1FBE},   {0x1FC2, 0x1FC4},   {0x1FC6, 0x1FCC},   {0x1FD0, 0x1FD3},
        {0x1FD6, 0x1FDB},   {0x1FE0, 0x1FEC},   {0x1FF2, 0x1FF4},   {0x1FF6, 0x1FFC},
        {0x2102, 0x2102},   {0x2107, 0x2107},   {0x210A, 0x2113},   {0x2115, 0x2115},
        {0x2119, 0x211D},   {0x2124, 0x2124},   {0x2126, 0x2126},   {0x2128, 0x2128},
        {0x212A, 0x212D},   {0x212F, 0x2134},   {0x2139, 0x2139},   {0x213C, 0x213F},
        {0x2145, 0x2149},   {0x214E, 0x214E},   {0x2183, 0x2184},   {0x2C00, 0x2C7B},
        {0x2C7E, 0x2CE4},   {0x2CEB, 0x2CEE},   {0x2CF2, 0x2CF3},   {0xA640, 0xA66D},
        {0xA680, 0xA69B},   {0xA722, 0xA76F},   {0xA771, 0xA787},   {0xA78B, 0xA78E},
        {0xAB70, 0xABBF},   {0xFB00, 0xFB06},   {0xFB13, 0xFB17},   {0xFF21, 0xFF3A},
        {0xFF41, 0xFF5A},   {0x10400, 0x1044F}, {0x104B0, 0x104D3}, {0x104D8, 0x104FB},
        {0x10C80, 0x10CB2}, {0x10CC0, 0x10CF2}, {0x118A0, 0x118DF}, {0x1E900, 0x1E943},
    };
    const size_t space = space_size(text);
    return after_space(space, skip_ranges(text, space, ranges, WK_COUNT(ranges)));
}

static size_t match_ascii_punctuation(wk_str text) {
    static const code_range ranges[] = {{'!', '/'},       {':', '~'},       {0x2018, 0x201F},
                                        {0x3000, 0x3002}, {0xFF01, 0xFF0F}, {0xFF1A, 0xFF5E}};
    const size_t space = space_size(text);
    const size_t end = after_space(space, skip_ranges(text, space, ranges, WK_COUNT(ranges)));
    /* U+3000 is white space and punctuation: alone it is the latter. */
    return end > 0 ? end : skip_ranges(text, 0, ranges, WK_COUNT(ranges));
}

size_t wk_cut_cjk_hangul(wk_str text) { return wk_cut_by(text, match_cjk_hangul); }
size_t wk_cut_cjk_kana(wk_str text) { return wk_cut_by(text, match_cjk_kana); }
size_t wk_cut_youtu_scripts(wk_str text) { return wk_cut_by(text, match_youtu_scripts); }
size_t wk_cut_asian(wk_str text) { return wk_cut_by(text, match_asian); }
size_t wk_cut_cased_word(wk_str text) { return wk_cut_by(text, match_cased_word); }
size_t wk_cut_ascii_punctuation(wk_str text) { return wk_cut_by(text, match_ascii_punctuation); }

/* --- Categories --- */

static size_t match_spaced_word(wk_str text) {
    const size_t space = space_size(text);
    return after_space(space, wk_skip(text, space, WK_CHARS_LETTER));
}

static size_t match_spaced_punctuation(wk_str text) {
    const size_t space = space_size(text);
    return after_space(space, wk_skip(text, space, WK_CHARS_PUNCTUATION));
}

static size_t match_sign(wk_str text) {
    const wk_scanned c = wk_scan(text, 0);
    const bool is_symbol = c.classes & WK_CHARS_SYMBOL && c.code < 0x80;
    return is_symbol || c.classes & WK_CHARS_PUNCTUATION ? c.size : 0;
}

/* [\p{P}$+<=>^~|]+, and the backtick where it counts: the ASCII signs that Unicode calls symbols */
static size_t skip_punctuation(wk_str text, bool with_backtick) {
    for (size_t at = 0;;) {
        const wk_scanned c = wk_scan(text, at);
        const bool is_symbol = c.classes & WK_CHARS_SYMBOL && c.code < 0x80;
        const bool counts = is_symbol && (with_backtick || c.code != '`');
        if (!counts && !(c.classes & WK_CHARS_PUNCTUATION)) return at;
        at += c.size;
    }
}

static size_t match_punctuation(wk_str text) { return skip_punctuation(text, false); }
static size_t match_punctuation_falcon(wk_str text) { return skip_punctuation(text, true); }

size_t wk_cut_spaced_word(wk_str text) { return wk_cut_by(text, match_spaced_word); }
size_t wk_cut_spaced_punctuation(wk_str text) { return wk_cut_by(text, match_spaced_punctuation); }
size_t wk_cut_punctuation(wk_str text) { return wk_cut_by(text, match_punctuation); }
size_t wk_cut_punctuation_falcon(wk_str text) { return wk_cut_by(text, match_punctuation_falcon); }
size_t wk_cut_sign(wk_str text) { return wk_cut_by(text, match_sign); }
