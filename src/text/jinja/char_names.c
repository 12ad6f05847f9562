/* text/jinja/char_names.c: the names in '\\N{BULLET}'.
 *
 * Unicode names 34,000 characters, in more than this library's page build has room for. Here are
 * those that a prompt is written with: ASCII, Latin-1's letters, Greek's, and common signs. */
#include "text/jinja/lexer.h"

#include <string.h>

enum { LONGEST = 48 };

/* Lines of a code and a name, some of which are aliases. */
static const char names[] =
    "9 CHARACTER TABULATION\n9 TAB\nA LINE FEED\nA LF\nA NEW LINE\n"
    "D CARRIAGE RETURN\nD CR\n1B ESCAPE\n1B ESC\n20 SPACE\n21 EXCLAMATION MARK\n"
    "22 QUOTATION MARK\n23 NUMBER SIGN\n24 DOLLAR SIGN\n25 PERCENT SIGN\n26 AMPERSAND\n"
    "27 APOSTROPHE\n28 LEFT PARENTHESIS\n29 RIGHT PARENTHESIS\n2A ASTERISK\n2B PLUS SIGN\n"
    "2C COMMA\n2D HYPHEN-MINUS\n2E FULL STOP\n2F SOLIDUS\n30 DIGIT ZERO\n31 DIGIT ONE\n"
    "32 DIGIT TWO\n33 DIGIT THREE\n34 DIGIT FOUR\n35 DIGIT FIVE\n36 DIGIT SIX\n"
    "37 DIGIT SEVEN\n38 DIGIT EIGHT\n39 DIGIT NINE\n3A COLON\n3B SEMICOLON\n"
    "3C LESS-THAN SIGN\n3D EQUALS SIGN\n3E GREATER-THAN SIGN\n3F QUESTION MARK\n"
    "40 COMMERCIAL AT\n5B LEFT SQUARE BRACKET\n5C REVERSE SOLIDUS\n5D RIGHT SQUARE BRACKET\n"
    "5E CIRCUMFLEX ACCENT\n5F LOW LINE\n60 GRAVE ACCENT\n7B LEFT CURLY BRACKET\n"
    "7C VERTICAL LINE\n7D RIGHT CURLY BRACKET\n7E TILDE\n7F DELETE\nA0 NO-BREAK SPACE\n"
    "A0 NBSP\nA1 INVERTED EXCLAMATION MARK\nA2 CENT SIGN\nA3 POUND SIGN\nA4 CURRENCY SIGN\n"
    "A5 YEN SIGN\nA7 SECTION SIGN\nA9 COPYRIGHT SIGN\n"
    "AB LEFT-POINTING DOUBLE ANGLE QUOTATION MARK\nAD SOFT HYPHEN\nAE REGISTERED SIGN\n"
    "B0 DEGREE SIGN\nB1 PLUS-MINUS SIGN\nB5 MICRO SIGN\nB6 PILCROW SIGN\nB7 MIDDLE DOT\n"
    "BB RIGHT-POINTING DOUBLE ANGLE QUOTATION MARK\nBF INVERTED QUESTION MARK\n"
    "C6 LATIN CAPITAL LETTER AE\nD7 MULTIPLICATION SIGN\nDF LATIN SMALL LETTER SHARP S\n"
    "E6 LATIN SMALL LETTER AE\nF7 DIVISION SIGN\n2002 EN SPACE\n2003 EM SPACE\n"
    "2009 THIN SPACE\n200B ZERO WIDTH SPACE\n200B ZWSP\n200C ZERO WIDTH NON-JOINER\n"
    "200C ZWNJ\n200D ZERO WIDTH JOINER\n200D ZWJ\n2010 HYPHEN\n2011 NON-BREAKING HYPHEN\n"
    "2013 EN DASH\n2014 EM DASH\n2018 LEFT SINGLE QUOTATION MARK\n"
    "2019 RIGHT SINGLE QUOTATION MARK\n201C LEFT DOUBLE QUOTATION MARK\n"
    "201D RIGHT DOUBLE QUOTATION MARK\n2020 DAGGER\n2021 DOUBLE DAGGER\n2022 BULLET\n"
    "2026 HORIZONTAL ELLIPSIS\n2028 LINE SEPARATOR\n2029 PARAGRAPH SEPARATOR\n"
    "202F NARROW NO-BREAK SPACE\n2030 PER MILLE SIGN\n"
    "2039 SINGLE LEFT-POINTING ANGLE QUOTATION MARK\n"
    "203A SINGLE RIGHT-POINTING ANGLE QUOTATION MARK\n20AC EURO SIGN\n2122 TRADE MARK SIGN\n"
    "2190 LEFTWARDS ARROW\n2191 UPWARDS ARROW\n2192 RIGHTWARDS ARROW\n2193 DOWNWARDS ARROW\n"
    "2194 LEFT RIGHT ARROW\n21D2 RIGHTWARDS DOUBLE ARROW\n2212 MINUS SIGN\n221E INFINITY\n"
    "2248 ALMOST EQUAL TO\n2260 NOT EQUAL TO\n2264 LESS-THAN OR EQUAL TO\n"
    "2265 GREATER-THAN OR EQUAL TO\n2581 LOWER ONE EIGHTH BLOCK\n2588 FULL BLOCK\n"
    "25A0 BLACK SQUARE\n25CF BLACK CIRCLE\n2605 BLACK STAR\n2606 WHITE STAR\n"
    "26A0 WARNING SIGN\n2705 WHITE HEAVY CHECK MARK\n2713 CHECK MARK\n2717 BALLOT X\n"
    "274C CROSS MARK\n3000 IDEOGRAPHIC SPACE\nFEFF ZERO WIDTH NO-BREAK SPACE\nFEFF BOM\n"
    "FEFF ZWNBSP\nFEFF BYTE ORDER MARK\nFFFD REPLACEMENT CHARACTER\n1F527 WRENCH\n"
    "1F916 ROBOT FACE\n";

/* Capital letters of Latin-1 with a mark, each after the letter without it; the small ones are 32
 * further on. */
static const struct {
    const char *mark;
    const char *letters;
} marks[] = {
    {"GRAVE", "A\xC0"
              "E\xC8"
              "I\xCC"
              "O\xD2"
              "U\xD9"},
    {"ACUTE", "A\xC1"
              "E\xC9"
              "I\xCD"
              "O\xD3"
              "U\xDAY\xDD"},
    {"CIRCUMFLEX", "A\xC2"
                   "E\xCA"
                   "I\xCE"
                   "O\xD4"
                   "U\xDB"},
    {"TILDE", "A\xC3N\xD1O\xD5"},
    {"DIAERESIS", "A\xC4"
                  "E\xCBI\xCFO\xD6U\xDC"},
    {"RING ABOVE", "A\xC5"},
    {"CEDILLA", "C\xC7"},
    {"STROKE", "O\xD8"},
};

/* From U+0391 on; at 17 there is the small final sigma. */
static const char greek[] =
    "ALPHA BETA GAMMA DELTA EPSILON ZETA ETA THETA IOTA KAPPA LAMDA MU NU XI "
    "OMICRON PI RHO . SIGMA TAU UPSILON PHI CHI PSI OMEGA ";

/* The rest of text after prefix; NULL: it does not begin with prefix. */
static const char *after(const char *text, const char *prefix) {
    const size_t size = strlen(prefix);
    return strncmp(text, prefix, size) == 0 ? text + size : NULL;
}

static uint32_t find_listed(const char *name) {
    const size_t size = strlen(name);
    for (const char *at = names; *at != '\0'; at = strchr(at, '\n') + 1) {
        uint32_t code = 0;
        for (; *at != ' '; at++)
            code = code * 16 + (uint32_t)(*at <= '9' ? *at - '0' : *at - 'A' + 10);
        if (strncmp(at + 1, name, size) == 0 && at[1 + size] == '\n') return code;
    }
    return 0;
}

/* "E" or "E WITH ACUTE": the capital. */
static uint32_t find_latin(const char *name) {
    if (name[0] < 'A' || name[0] > 'Z') return 0;
    if (name[1] == '\0') return (unsigned char)name[0];
    const char *const mark = after(name + 1, " WITH ");
    for (size_t i = 0; mark != NULL && i < WK_COUNT(marks); i++) {
        const char *const letter =
            strcmp(mark, marks[i].mark) == 0 ? strchr(marks[i].letters, name[0]) : NULL;
        if (letter != NULL) return (unsigned char)letter[1];
    }
    return 0;
}

static uint32_t find_greek(const char *name) {
    const size_t size = strlen(name);
    uint32_t code = 0x391;
    if (size < 2 || strchr(name, ' ') != NULL) return 0; /* not '.', nor two of the list */
    for (const char *at = greek; *at != '\0'; at = strchr(at, ' ') + 1, code++) {
        if (strncmp(at, name, size) == 0 && at[size] == ' ') return code;
    }
    return 0;
}

uint32_t wk_jchar_named(wk_str name) {
    static const struct {
        const char *prefix;
        uint32_t (*find)(const char *name);
        uint32_t offset;
    } alphabets[] = {
        {"LATIN CAPITAL LETTER ", find_latin, 0},
        {"LATIN SMALL LETTER ", find_latin, 32},
        {"GREEK CAPITAL LETTER ", find_greek, 0},
        {"GREEK SMALL LETTER ", find_greek, 32},
    };
    char upper[LONGEST];
    if (name.size == 0 || name.size >= sizeof upper) return 0;
    for (size_t i = 0; i < name.size; i++) {
        const char c = name.text[i];
        if (c == '\n') return 0; /* the names stand on lines */
        upper[i] = (char)(c >= 'a' && c <= 'z' ? c - 32 : c);
    }
    upper[name.size] = '\0';
    for (size_t i = 0; i < WK_COUNT(alphabets); i++) {
        const char *const letter = after(upper, alphabets[i].prefix);
        const uint32_t code = letter != NULL ? alphabets[i].find(letter) : 0;
        if (code != 0) return code + alphabets[i].offset;
    }
    return find_listed(upper);
}
