/* text/tokenize/cut.c: the whole patterns: words, numbers, symbols and white space at once. */
#include "text/tokenize/cut.h"

#include "text/tokenize/cut_scan.h"

enum {
    LETTER = WK_CHARS_LETTER,
    NUMBER = WK_CHARS_NUMBER,
    SPACE = WK_CHARS_SPACE,
    SYMBOL = WK_CHARS_ALL & ~(LETTER | NUMBER | SPACE), /* [^\s\p{L}\p{N}] */
    UPPER = 1 << WK_CHAR_UPPER,
    LOWER = 1 << WK_CHAR_LOWER,
    EITHER = 1 << WK_CHAR_LETTER | WK_CHARS_MARK, /* in U and in W of the patterns */
};

static unsigned char fold_ascii(char c, bool fold) {
    return (unsigned char)(fold && c >= 'A' && c <= 'Z' ? c | 0x20 : c);
}

/* 's 't 'm 'd 're 've 'll: their size, or 0. */
static size_t scan_contraction(wk_str text, size_t at, bool fold) {
    if (text.size - at < 2 || text.text[at] != '\'') return 0;
    const unsigned char first = fold_ascii(text.text[at + 1], fold);
    if (first == 's' || first == 't' || first == 'm' || first == 'd') return 2;
    if (text.size - at < 3) return 0;
    const unsigned char second = fold_ascii(text.text[at + 2], fold);
    if (fold && first == 0xC5 && second == 0xBF) return 3; /* U+017F, the long s, folds to s */
    if ((first == 'r' || first == 'v') && second == 'e') return 3;
    return first == 'l' && second == 'l' ? 3 : 0;
}

/* \s+(?!\S)|\s+ at white space: a run leaves its last character to the text that follows it, unless
 * that is all it has. */
static size_t scan_space(wk_str text) {
    size_t at = 0, last = 0;
    for (;;) {
        const wk_scanned c = wk_scan(text, at);
        if (!(c.classes & SPACE)) return c.size > 0 && last > 0 ? last : at;
        last = at;
        at += c.size;
    }
}

/* \s*[\r\n]+|\s+(?!\S)|\s+ at white space: through the last line end of the run, if it has one. */
static size_t scan_lines_or_space(wk_str text) {
    size_t at = 0, end = 0;
    for (;;) {
        const wk_scanned c = wk_scan(text, at);
        if (!(c.classes & SPACE)) break;
        at += c.size;
        if (wk_is_line_end(c.code)) end = at;
    }
    return end > 0 ? end : scan_space(text);
}

size_t wk_cut_gpt2(wk_str text) {
    const size_t contraction = scan_contraction(text, 0, false);
    if (contraction > 0) return contraction;
    const wk_scanned first = wk_scan(text, 0);
    const size_t space = first.code == ' ' ? 1 : 0;
    const wk_scanned head = space ? wk_scan(text, 1) : first;
    if (head.classes & LETTER) return wk_skip(text, space, LETTER);
    if (head.classes & NUMBER) return wk_skip(text, space, NUMBER);
    if (head.classes & SYMBOL) return wk_skip(text, space, SYMBOL);
    return scan_space(text);
}

/* --- The family of Llama 3 --- */

/* Where its members differ. */
typedef struct word_rules {
    int max_numbers;          /* of one piece */
    uint32_t marks;           /* those that belong to words */
    bool contraction_first;   /* as pieces of their own */
    bool contraction_last;    /* as parts of the word before */
    bool han_apart;           /* in pieces of its own */
    const char *after_symbol; /* [...]* after symbols */
} word_rules;

static size_t scan_numbers(wk_str text, int limit) {
    size_t at = 0;
    for (int i = 0; i < limit; i++) {
        const wk_scanned c = wk_scan(text, at);
        if (!(c.classes & NUMBER)) break;
        at += c.size;
    }
    return at;
}

static bool is_one_of(char c, const char *set) {
    while (*set != '\0' && *set != c) set++;
    return *set != '\0';
}

/* ' '?[symbols]+[after]*, or 0 */
static size_t scan_symbols(wk_str text, uint32_t symbols, const char *after) {
    const size_t space = text.text[0] == ' ' ? 1 : 0;
    size_t at = wk_skip(text, space, symbols);
    if (at == space) return 0;
    while (at < text.size && is_one_of(text.text[at], after)) at++;
    return at;
}

/* Numbers, symbols and white space, where text begins with no word. */
static size_t scan_no_word(wk_str text, const word_rules *rules) {
    const size_t numbers = scan_numbers(text, rules->max_numbers);
    if (numbers > 0) return numbers;
    const uint32_t symbols = SYMBOL & ~rules->marks;
    const size_t end = scan_symbols(text, symbols, rules->after_symbol);
    return end > 0 ? end : scan_lines_or_space(text);
}

/* Bytes of [^\r\n\p{L}\p{N}]? */
static size_t prefix_size(wk_scanned first) {
    return first.classes & (LETTER | NUMBER) || wk_is_line_end(first.code) ? 0 : first.size;
}

static inline size_t cut_words(wk_str text, const word_rules *rules) {
    const size_t contraction = rules->contraction_first ? scan_contraction(text, 0, true) : 0;
    if (contraction > 0) return contraction;
    const uint32_t word = LETTER | rules->marks;
    const wk_scanned first = wk_scan(text, 0);
    if (first.classes & word) return wk_skip(text, first.size, word);
    const size_t prefix = prefix_size(first);
    const size_t end = prefix > 0 ? wk_skip(text, prefix, word) : 0;
    return end > prefix ? end : scan_no_word(text, rules);
}

size_t wk_cut_llama3(wk_str text) {
    static const word_rules rules = {
        .max_numbers = 3, .contraction_first = true, .after_symbol = "\r\n"};
    return cut_words(text, &rules);
}

size_t wk_cut_qwen2(wk_str text) {
    static const word_rules rules = {
        .max_numbers = 1, .contraction_first = true, .after_symbol = "\r\n"};
    return cut_words(text, &rules);
}

size_t wk_cut_ufakzeka(wk_str text) {
    static const word_rules rules = {.max_numbers = 1, .after_symbol = "\r\n"};
    return cut_words(text, &rules);
}

/* Words of which each but the first follows a single space are one. */
size_t wk_cut_exaone_moe(wk_str text) {
    const size_t contraction = scan_contraction(text, 0, true);
    if (contraction > 0) return contraction;
    size_t at = prefix_size(wk_scan(text, 0));
    for (bool goes_on = wk_scan(text, at).classes & LETTER; goes_on;) {
        at = wk_skip(text, at, LETTER | WK_CHARS_MARK);
        goes_on = wk_scan(text, at).code == ' ' && wk_scan(text, at + 1).classes & LETTER;
        if (!goes_on) return at;
        at++;
    }
    const size_t numbers = scan_numbers(text, 1);
    if (numbers > 0) return numbers;
    const size_t end = scan_symbols(text, SYMBOL, "");
    if (end == 0) return scan_lines_or_space(text);
    return end + (end < text.size && is_one_of(text.text[end], "\r\n/"));
}

size_t wk_cut_qwen35(wk_str text) {
    static const word_rules rules = {.max_numbers = 1,
                                     .marks = WK_CHARS_MARK,
                                     .contraction_first = true,
                                     .after_symbol = "\r\n"};
    return cut_words(text, &rules);
}

size_t wk_cut_seed_coder(wk_str text) {
    static const word_rules rules = {
        .max_numbers = 1, .contraction_first = true, .after_symbol = ""};
    return cut_words(text, &rules);
}

/* --- Words cut where lower case ends --- */

/* As wk_scan; Han that is apart is in no class. */
static wk_scanned scan_cased(wk_str text, size_t at, const word_rules *rules) {
    wk_scanned c = wk_scan(text, at);
    if (rules->han_apart && c.classes & EITHER && wk_is_han(c.code)) c.classes = 0;
    return c;
}

static size_t skip_cased(wk_str text, size_t at, uint32_t classes, const word_rules *rules) {
    for (;;) {
        const wk_scanned c = scan_cased(text, at, rules);
        if (!(c.classes & classes)) return at;
        at += c.size;
    }
}

/* U*W+ from at, or 0. U* takes all it can and gives back only what W+ must have: where no lower
 * case follows, that is the last character that is in both. */
static size_t scan_lower_word(wk_str text, size_t at, const word_rules *rules) {
    size_t end = 0;
    for (;;) {
        const wk_scanned c = scan_cased(text, at, rules);
        if (c.classes & LOWER) return skip_cased(text, at, LOWER | EITHER, rules);
        if (!(c.classes & (UPPER | EITHER))) return end;
        at += c.size;
        if (c.classes & EITHER) end = at;
    }
}

/* U+W* from at, or 0, where U*W+ does not match: then nothing of W follows U+. */
static size_t scan_upper_word(wk_str text, size_t at, const word_rules *rules) {
    const size_t end = skip_cased(text, at, UPPER | EITHER, rules);
    return end > at ? end : 0;
}

static size_t scan_cased_word(wk_str text, const word_rules *rules) {
    const size_t prefix = prefix_size(wk_scan(text, 0));
    size_t end = prefix > 0 ? scan_lower_word(text, prefix, rules) : 0;
    if (end == 0) end = scan_lower_word(text, 0, rules);
    if (end == 0 && prefix > 0) end = scan_upper_word(text, prefix, rules);
    return end > 0 ? end : scan_upper_word(text, 0, rules);
}

static inline size_t cut_cased_words(wk_str text, const word_rules *rules) {
    const size_t end = scan_cased_word(text, rules);
    if (end == 0) return scan_no_word(text, rules);
    return rules->contraction_last ? end + scan_contraction(text, end, true) : end;
}

size_t wk_cut_gpt4o(wk_str text) {
    static const word_rules rules = {
        .max_numbers = 3, .contraction_last = true, .after_symbol = "\r\n/"};
    return cut_cased_words(text, &rules);
}

size_t wk_cut_tekken(wk_str text) {
    static const word_rules rules = {.max_numbers = 1, .after_symbol = "\r\n/"};
    return cut_cased_words(text, &rules);
}

size_t wk_cut_youtu(wk_str text) {
    static const word_rules rules = {
        .max_numbers = 1, .contraction_last = true, .after_symbol = "\r\n/"};
    return cut_cased_words(text, &rules);
}

size_t wk_cut_kimi_k2(wk_str text) {
    static const word_rules rules = {
        .max_numbers = 3, .contraction_last = true, .han_apart = true, .after_symbol = "\r\n"};
    size_t han = 0;
    for (wk_scanned c; (c = wk_scan(text, han)).size > 0 && wk_is_han(c.code);) han += c.size;
    return han > 0 ? han : cut_cased_words(text, &rules);
}

/* --- Others --- */

static bool is_ascii_letter(uint32_t code) {
    return (code | 0x20) >= 'a' && (code | 0x20) <= 'z' && code < 0x80;
}

static size_t match_deepseek_v3(wk_str text) {
    enum {
        WORD = LETTER | WK_CHARS_MARK,
        SIGN = WK_CHARS_PUNCTUATION | WK_CHARS_SYMBOL,
    };
    const wk_scanned first = wk_scan(text, 0), second = wk_scan(text, first.size);
    if (first.code < 0x80 && first.classes & SIGN && is_ascii_letter(second.code)) {
        size_t at = 2;
        while (at < text.size && is_ascii_letter((unsigned char)text.text[at])) at++;
        return at;
    }
    if (first.classes & WORD) return wk_skip(text, first.size, WORD);
    const bool is_prefix = !(first.classes & SIGN) && !wk_is_line_end(first.code);
    if (is_prefix && second.classes & WORD) return wk_skip(text, first.size, WORD);
    const size_t signs = scan_symbols(text, SIGN, "\r\n");
    if (signs > 0) return signs;
    return first.classes & SPACE ? scan_lines_or_space(text) : 0;
}

size_t wk_cut_deepseek_v3(wk_str text) { return wk_cut_by(text, match_deepseek_v3); }

static bool ends_bloom_word(wk_scanned c) {
    static const uint32_t signs[] = {'(',    ')',    '|',    '.',    ',',   '!',   '?',
                                     0x2026, 0x3002, 0xFF0C, 0x3001, 0x964, 0x6D4, 0x60C};
    if (c.size == 0 || c.classes & SPACE) return true;
    for (size_t i = 0; i < WK_COUNT(signs); i++) {
        if (c.code == signs[i]) return true;
    }
    return false;
}

static size_t match_bloom(wk_str text) {
    const size_t space = text.text[0] == ' ' ? 1 : 0;
    size_t at = space;
    for (;;) {
        const wk_scanned c = wk_scan(text, at);
        if (ends_bloom_word(c)) return at > space ? at : 0;
        at += c.size;
    }
}

size_t wk_cut_bloom(wk_str text) { return wk_cut_by(text, match_bloom); }
