/* text/pretokenize.c: the pre-tokenizers' patterns as scanners over code points. */
#include "text/pretokenize.h"

#include "text/unicode.h"

#include <assert.h>

/* The names that mean exactly one of our patterns. "default" stands in files whose converter knew
 * no better than the pattern of GPT-2. */
static const struct {
    const char *name;
    wk_pretokenizer kind;
} names[] = {
    {"default", WK_PRETOKENIZER_GPT2},     {"gpt-2", WK_PRETOKENIZER_GPT2},
    {"phi-2", WK_PRETOKENIZER_GPT2},       {"jina-es", WK_PRETOKENIZER_GPT2},
    {"jina-de", WK_PRETOKENIZER_GPT2},     {"jina-v2-es", WK_PRETOKENIZER_GPT2},
    {"jina-v2-de", WK_PRETOKENIZER_GPT2},  {"gigachat", WK_PRETOKENIZER_GPT2},
    {"a.x-4.0", WK_PRETOKENIZER_GPT2},     {"mellum", WK_PRETOKENIZER_GPT2},
    {"mpt", WK_PRETOKENIZER_GPT2},         {"olmo", WK_PRETOKENIZER_GPT2},
    {"jais", WK_PRETOKENIZER_GPT2},        {"llama-bpe", WK_PRETOKENIZER_LLAMA3},
    {"llama3", WK_PRETOKENIZER_LLAMA3},    {"llama-v3", WK_PRETOKENIZER_LLAMA3},
    {"falcon3", WK_PRETOKENIZER_LLAMA3},   {"falcon-h1", WK_PRETOKENIZER_LLAMA3},
    {"pixtral", WK_PRETOKENIZER_LLAMA3},   {"midm-2.0", WK_PRETOKENIZER_LLAMA3},
    {"lfm2", WK_PRETOKENIZER_LLAMA3},      {"smollm", WK_PRETOKENIZER_SMOLLM},
    {"starcoder", WK_PRETOKENIZER_SMOLLM}, {"refact", WK_PRETOKENIZER_SMOLLM},
    {"codeshell", WK_PRETOKENIZER_SMOLLM}, {"command-r", WK_PRETOKENIZER_SMOLLM},
    {"exaone", WK_PRETOKENIZER_SMOLLM},    {"minerva-7b", WK_PRETOKENIZER_SMOLLM},
    {"qwen2", WK_PRETOKENIZER_QWEN2},      {"deepseek-r1-qwen", WK_PRETOKENIZER_QWEN2},
    {"megrez", WK_PRETOKENIZER_QWEN2},     {"stablelm2", WK_PRETOKENIZER_QWEN2},
    {"hunyuan", WK_PRETOKENIZER_QWEN2},    {"solar-open", WK_PRETOKENIZER_QWEN2},
    {"kormo", WK_PRETOKENIZER_QWEN2},
};

bool wk_pretokenizer_find(wk_str name, wk_pretokenizer *out) {
    for (size_t i = 0; i < WK_COUNT(names); i++) {
        if (!wk_str_is(name, names[i].name)) continue;
        *out = names[i].kind;
        return true;
    }
    return false;
}

/* One more class than wk_char_class: there is no character. */
enum { CLASS_END = WK_CHAR_SPACE + 1 };

typedef struct character {
    uint32_t code;
    unsigned char_class; /* wk_char_class or CLASS_END */
    size_t size;
} character;

static inline character char_at(wk_str text, size_t at) {
    if (at >= text.size) return (character){.char_class = CLASS_END};
    character c;
    c.size = wk_utf8_decode(text.text + at, text.size - at, &c.code);
    c.char_class = wk_char_class_of(c.code);
    return c;
}

static size_t skip_class(wk_str text, size_t at, unsigned char_class) {
    for (;;) {
        const character c = char_at(text, at);
        if (c.char_class != char_class) return at;
        at += c.size;
    }
}

static bool is_line_end(uint32_t code) { return code == '\r' || code == '\n'; }

static unsigned char fold_ascii(char c, bool fold) {
    return (unsigned char)(fold && c >= 'A' && c <= 'Z' ? c | 0x20 : c);
}

/* 's 't 'm 'd 're 've 'll: their size, or 0. */
static size_t scan_contraction(wk_str text, bool fold) {
    if (text.size < 2 || text.text[0] != '\'') return 0;
    const unsigned char first = fold_ascii(text.text[1], fold);
    if (first == 's' || first == 't' || first == 'm' || first == 'd') return 2;
    if (text.size < 3) return 0;
    const unsigned char second = fold_ascii(text.text[2], fold);
    if ((first == 'r' || first == 'v') && second == 'e') return 3;
    return first == 'l' && second == 'l' ? 3 : 0;
}

/* \s+(?!\S)|\s+ at white space: a run leaves its last character to the text that follows it, unless
 * that is all it has. A digit that stands alone does not count as text. */
static size_t scan_space(wk_str text, bool digits_alone) {
    size_t at = 0, last = 0;
    for (;;) {
        const character c = char_at(text, at);
        if (c.char_class != WK_CHAR_SPACE) {
            if (c.char_class == CLASS_END) return at;
            if (digits_alone && c.char_class == WK_CHAR_NUMBER) return at;
            return last > 0 ? last : at;
        }
        last = at;
        at += c.size;
    }
}

/* digits_alone: a digit is a piece of its own, and a boundary that the pattern does not see across.
 */
static size_t scan_gpt2(wk_str text, bool digits_alone) {
    const size_t contraction = scan_contraction(text, false);
    if (contraction > 0) return contraction;
    const character first = char_at(text, 0);
    const bool spaced = first.code == ' ';
    const character head = spaced ? char_at(text, 1) : first;
    if (digits_alone && head.char_class == WK_CHAR_NUMBER) return first.size;
    if (head.char_class == WK_CHAR_SPACE || head.char_class == CLASS_END) {
        return scan_space(text, digits_alone);
    }
    return skip_class(text, spaced ? 1 : 0, head.char_class);
}

static size_t scan_digits(wk_str text, int limit) {
    size_t at = 0;
    for (int i = 0; i < limit; i++) {
        const character c = char_at(text, at);
        if (c.char_class != WK_CHAR_NUMBER) break;
        at += c.size;
    }
    return at;
}

/* \s*[\r\n]+: through the last line end of the run of white space; 0 when it has none. */
static size_t scan_lines(wk_str text) {
    size_t at = 0, end = 0;
    for (;;) {
        const character c = char_at(text, at);
        if (c.char_class != WK_CHAR_SPACE) return end;
        at += c.size;
        if (is_line_end(c.code)) end = at;
    }
}

/* max_digits: of one piece. */
static size_t scan_llama3(wk_str text, int max_digits) {
    const size_t contraction = scan_contraction(text, true);
    if (contraction > 0) return contraction;
    const character first = char_at(text, 0);
    if (first.char_class == WK_CHAR_LETTER) return skip_class(text, 0, WK_CHAR_LETTER);
    if (first.char_class == WK_CHAR_NUMBER) return scan_digits(text, max_digits);
    const character second = char_at(text, first.size);
    if (second.char_class == WK_CHAR_LETTER && !is_line_end(first.code)) {
        return skip_class(text, first.size, WK_CHAR_LETTER);
    }
    if (first.char_class == WK_CHAR_OTHER ||
        (first.code == ' ' && second.char_class == WK_CHAR_OTHER)) {
        size_t at = skip_class(text, first.size, WK_CHAR_OTHER);
        while (at < text.size && is_line_end((unsigned char)text.text[at])) at++;
        return at;
    }
    const size_t lines = scan_lines(text);
    return lines > 0 ? lines : scan_space(text, false);
}

size_t wk_pretokenize(wk_pretokenizer kind, const char *text, size_t size) {
    assert(size > 0);
    const wk_str rest = {text, size};
    switch (kind) {
    case WK_PRETOKENIZER_GPT2: return scan_gpt2(rest, false);
    case WK_PRETOKENIZER_LLAMA3: return scan_llama3(rest, 3);
    case WK_PRETOKENIZER_QWEN2: return scan_llama3(rest, 1);
    case WK_PRETOKENIZER_SMOLLM: return scan_gpt2(rest, true);
    }
    assert(false);
    return size;
}
