/* chat/literal.c: see literal.h. */
#include "chat/literal.h"

#include "chat/scan.h"
#include "core/json_write.h"

#include <stdio.h>
#include <string.h>

#define TEXT_EDGE "<|\"|>"

static bool write_value(wk_strbuf *to, wk_str *text, int depth);

/* Takes a character that a backslash of Python stands before, and writes it for JSON. */
static void write_escape(wk_strbuf *to, wk_str *text) {
    const char c = text->text[0];
    const bool is_kept = c != '\0' && strchr("\"\\/bfnrtu", c);
    *text = wk_scan_after(*text, 1);
    if (c == 'x') {
        wk_strbuf_text(to, "\\u00"); /* and two digits, which JSON checks */
        return;
    }
    if (c == '\n') return; /* the line goes on */
    if (c != '\'') wk_strbuf_text(to, is_kept ? "\\" : "\\\\");
    wk_strbuf_append(to, &c, 1);
}

/* 'a' or "a" */
static bool write_quoted(wk_strbuf *to, wk_str *text) {
    const char quote = text->text[0];
    wk_write_raw(to, "\"");
    *text = wk_scan_after(*text, 1);
    while (text->size > 0) {
        const char c = text->text[0];
        *text = wk_scan_after(*text, 1);
        if (c == quote) {
            wk_strbuf_text(to, "\"");
            return true;
        }
        char code[8];
        if (c == '\\' && text->size > 0) {
            write_escape(to, text);
        } else if ((unsigned char)c < ' ') {
            (void)snprintf(code, sizeof code, "\\u%04x", (unsigned)c);
            wk_strbuf_text(to, code);
        } else {
            if (c == '"') wk_strbuf_text(to, "\\");
            wk_strbuf_append(to, &c, 1);
        }
    }
    return false;
}

/* A key without quotes, as Gemma has them, and its colon. */
static bool write_bare_key(wk_strbuf *to, wk_str *text) {
    wk_str key;
    const char c = text->size > 0 ? text->text[0] : '\0';
    const bool is_bare = c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    if (!is_bare || !wk_scan_take_until(text, ":", &key)) return false;
    wk_write_key_of(to, wk_scan_trim(key));
    return true;
}

/* Items between brackets; of a dict with keys. */
static bool write_items(wk_strbuf *to, wk_str *text, int depth) {
    const bool is_dict = text->text[0] == '{';
    const char *const close = is_dict ? "}" : text->text[0] == '[' ? "]" : ")";
    wk_write_open(to, is_dict ? '{' : '[');
    *text = wk_scan_trim(wk_scan_after(*text, 1));
    while (!wk_scan_take(text, close)) {
        const bool has_key = is_dict && write_bare_key(to, text);
        if (!write_value(to, text, depth + 1)) return false;
        if (is_dict && !has_key) {
            if (!wk_scan_take(text, ":")) return false;
            wk_strbuf_text(to, ":");
            if (!write_value(to, text, depth + 1)) return false;
        }
        if (wk_scan_take(text, ",")) *text = wk_scan_trim(*text);
    }
    *text = wk_scan_trim(*text);
    wk_write_close(to, is_dict ? '}' : ']');
    return true;
}

static bool write_value(wk_strbuf *to, wk_str *text, int depth) {
    enum { DEEPEST = 64 };
    *text = wk_scan_trim(*text);
    if (text->size == 0 || depth > DEEPEST) return false;
    const char c = text->text[0];
    bool is_good = true;
    if (wk_scan_take(text, TEXT_EDGE)) {
        wk_str inside = {"", 0};
        is_good = wk_scan_take_until(text, TEXT_EDGE, &inside);
        wk_write_string(to, inside);
    } else if (c == '\'' || c == '"') {
        is_good = write_quoted(to, text);
    } else if (c == '[' || c == '{' || c == '(') {
        is_good = write_items(to, text, depth);
    } else if (wk_scan_take(text, "True") || wk_scan_take(text, "true")) {
        wk_write_bool(to, true);
    } else if (wk_scan_take(text, "False") || wk_scan_take(text, "false")) {
        wk_write_bool(to, false);
    } else if (wk_scan_take(text, "None") || wk_scan_take(text, "null")) {
        wk_write_null(to);
    } else {
        size_t n = 0;
        static const char digits[] = "+-.0123456789eE";
        while (n < text->size && memchr(digits, text->text[n], sizeof digits - 1)) n++;
        is_good = n > 0;
        wk_write_raw(to, "");
        wk_strbuf_append(to, text->text, n);
        *text = wk_scan_after(*text, n);
    }
    *text = wk_scan_trim(*text);
    return is_good;
}

bool wk_literal_write_keywords(wk_strbuf *to, wk_str *text) {
    wk_str key;
    wk_write_open(to, '{');
    *text = wk_scan_trim(*text);
    while (!wk_scan_take(text, ")")) {
        if (!wk_scan_take_until(text, "=", &key)) return false;
        wk_write_key_of(to, wk_scan_trim(key));
        if (!write_value(to, text, 0)) return false;
        if (wk_scan_take(text, ",")) *text = wk_scan_trim(*text);
    }
    wk_write_close(to, '}');
    return true;
}

bool wk_literal_write(wk_strbuf *to, wk_str *text) { return write_value(to, text, 0); }
