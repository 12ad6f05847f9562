/* text/tokenize/token_table.c: decodes a vocabulary once, so that later every token is a pointer
 * and a size.
 */
#include "text/tokenize/token_table.h"

#include "text/unicode/unicode.h"

#include <assert.h>
#include <string.h>

/* Control tokens that end a text or a turn in every model that has them, regardless of the
 * metadata: instruction-tuned files often name only one of theirs. */
static const char *const ending_names[] = {
    "<|im_end|>",
    "<|eot_id|>",
    "<|eom_id|>",
    "<|endoftext|>",
    "<|end_of_text|>",
    "<|end|>",
    "<end_of_turn>",
    "<|return|>",
    "<|call|>",
    "<EOT>",
    "_<EOT>",
    "<|end_of_turn|>",
    "</s>",
    "<eos>",
    "[EOS]",
    "[EOT]",
    "<|eot|>",
    "<|endofturn|>",
    "<end_of_utterance>",
    "<turn|>",
    /* Of completions in the middle of a text. */
    "<|fim_pad|>",
    "<|repo_name|>",
    "<|file_sep|>",
};

static bool has_ending_name(wk_str name) {
    for (size_t i = 0; i < WK_COUNT(ending_names); i++)
        if (wk_str_is(name, ending_names[i])) return true;
    return false;
}

/* Many files have these as text, though nothing but the model may write them. Names that could be
 * of a text ("</s>" is HTML, too) stay what the file says. */
static bool is_control_by_name(wk_str name, int32_t kind) {
    const bool is_spelt_so =
        wk_str_matches(wk_str_of("<|*|>"), name) || wk_str_matches(wk_str_of("<end_of_*>"), name);
    return is_spelt_so && (kind == WK_TOKEN_NORMAL || kind == WK_TOKEN_USER_DEFINED) &&
           has_ending_name(name);
}

static bool ends_by_id(const wk_vocab_desc *desc, uint32_t id) {
    bool is_other = false;
    for (uint32_t i = 0; i < desc->n_other_ends; i++) is_other |= desc->other_ends[i] == id;
    return is_other || id == desc->end || id == desc->end_of_turn || id == desc->end_of_message;
}

static bool ends_by_name(wk_str name, int32_t kind) {
    /* Gemma 4 waits here for what the tool says. */
    if (kind == WK_TOKEN_USER_DEFINED) return wk_str_is(name, "<|tool_response>");
    return kind == WK_TOKEN_CONTROL && has_ending_name(name);
}

/* Where a turn ends by <|return|> (Harmony, gpt-oss), <|end|> ends one of its messages alone. */
static void go_on_after_messages(const wk_vocab_desc *desc, wk_token_table *table) {
    uint32_t end = WICK_NO_TOKEN;
    bool has_return = false;
    for (uint32_t id = 0; id < table->n_tokens; id++) {
        if (!table->ends[id]) continue;
        if (wk_str_is(desc->tokens[id], "<|end|>")) end = id;
        has_return = has_return || wk_str_is(desc->tokens[id], "<|return|>");
    }
    if (has_return && end != WICK_NO_TOKEN && end != desc->end) table->ends[end] = false;
}

static int hex_value(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    return -1;
}

int wk_byte_token_value(wk_str token) {
    if (token.size != 6 || memcmp(token.text, "<0x", 3) != 0 || token.text[5] != '>') return -1;
    const int high = hex_value(token.text[3]), low = hex_value(token.text[4]);
    return high < 0 || low < 0 ? -1 : high * 16 + low;
}

/* The kinds in files without kinds, from the ids and the spelling. */
static wk_token_kind guess_kind(const wk_vocab_desc *desc, wk_token_spelling spelling,
                                uint32_t id) {
    if (id == desc->begin || ends_by_id(desc, id)) return WK_TOKEN_CONTROL;
    if (id == desc->unknown) return WK_TOKEN_UNKNOWN;
    const bool is_byte =
        spelling == WK_SPELLING_SENTENCEPIECE && wk_byte_token_value(desc->tokens[id]) >= 0;
    return is_byte ? WK_TOKEN_BYTE : WK_TOKEN_NORMAL;
}

static wick_status read_kinds(const wk_vocab_desc *desc, wk_token_spelling spelling,
                              wk_token_table *table, wick_error *err) {
    for (uint32_t id = 0; id < table->n_tokens; id++) {
        /* 0 is the format's "undefined". */
        int32_t kind = desc->kinds ? desc->kinds[id] : (int32_t)guess_kind(desc, spelling, id);
        if (kind == 0) kind = WK_TOKEN_NORMAL;
        if (is_control_by_name(desc->tokens[id], kind)) kind = WK_TOKEN_CONTROL;
        if (kind < WK_TOKEN_NORMAL || kind > WK_TOKEN_BYTE) {
            return wk_fail(err, WICK_ERR_FORMAT, "token %u has the unknown type %d", (unsigned)id,
                           (int)kind);
        }
        if (kind == WK_TOKEN_BYTE && wk_byte_token_value(desc->tokens[id]) < 0) {
            return wk_fail(err, WICK_ERR_FORMAT, "byte token %u is not of the form <0xXX>",
                           (unsigned)id);
        }
        table->kinds[id] = (uint8_t)kind;
        table->ends[id] = ends_by_id(desc, id) || ends_by_name(desc->tokens[id], kind);
    }
    go_on_after_messages(desc, table);
    return WICK_OK;
}

/* U+2581 becomes a space. */
static size_t decode_sentencepiece(wk_str token, char *out) {
    size_t n = 0;
    for (size_t at = 0; at < token.size;) {
        if (token.size - at >= 3 && memcmp(token.text + at, WK_SPACE_SIGN, 3) == 0) {
            out[n++] = ' ';
            at += 3;
        } else {
            out[n++] = token.text[at++];
        }
    }
    return n;
}

size_t wk_token_decode(const wk_token_table *table, wk_str text, char *out) {
    return table->spelling == WK_SPELLING_BYTE_LEVEL
               ? wk_byte_level_decode(&table->alphabet, text, out)
               : decode_sentencepiece(text, out);
}

/* Bytes written to out, at most the token's size. */
static size_t decode(const wk_token_table *table, wk_str token, uint8_t kind, char *out) {
    switch (kind) {
    case WK_TOKEN_CONTROL:
    case WK_TOKEN_UNKNOWN: return 0;
    case WK_TOKEN_BYTE: *out = (char)wk_byte_token_value(token); return 1;
    case WK_TOKEN_USER_DEFINED: /* written as it is in byte-level vocabularies */
        if (table->spelling == WK_SPELLING_SENTENCEPIECE) return decode_sentencepiece(token, out);
        if (token.size > 0) memcpy(out, token.text, token.size);
        return token.size;
    default: return wk_token_decode(table, token, out);
    }
}

static void decode_all(const wk_vocab_desc *desc, wk_token_table *table) {
    uint32_t at = 0;
    for (uint32_t id = 0; id < table->n_tokens; id++) {
        table->offsets[id] = at;
        at += (uint32_t)decode(table, desc->tokens[id], table->kinds[id], table->bytes + at);
    }
    assert(at < table->bytes_size);
    table->offsets[table->n_tokens] = at;
}

wick_status wk_token_table_make(wk_heap *heap, const wk_vocab_desc *desc,
                                wk_token_spelling spelling, wk_token_table *out, wick_error *err) {
    wk_token_table table = {.n_tokens = desc->n_tokens, .spelling = spelling, .bytes_size = 1};
    wk_byte_alphabet_init(&table.alphabet);
    for (uint32_t id = 0; id < desc->n_tokens; id++) {
        const size_t size = desc->tokens[id].size;
        if (size > UINT32_MAX - table.bytes_size) {
            return wk_fail(err, WICK_ERR_FORMAT, "the vocabulary's text is larger than 4 GiB");
        }
        table.bytes_size += size;
        if (size > table.longest) table.longest = size;
    }
    table.bytes = wk_alloc(heap, table.bytes_size);
    table.offsets = wk_alloc_array(heap, (size_t)desc->n_tokens + 1, sizeof *table.offsets);
    table.kinds = wk_alloc_array(heap, desc->n_tokens, sizeof *table.kinds);
    table.ends = wk_alloc_array(heap, desc->n_tokens, sizeof *table.ends);
    wick_status status = WICK_OK;
    if (!table.bytes || !table.offsets || !table.kinds || !table.ends) {
        status =
            wk_fail_memory(err, table.bytes_size + 6 * (uint64_t)desc->n_tokens, "the vocabulary");
    } else {
        status = read_kinds(desc, spelling, &table, err);
    }
    if (status != WICK_OK) {
        wk_token_table_release(heap, &table);
        return status;
    }
    decode_all(desc, &table);
    *out = table;
    return WICK_OK;
}

void wk_token_table_release(wk_heap *heap, wk_token_table *table) {
    wk_free(heap, table->bytes, table->bytes_size);
    wk_free(heap, table->offsets, ((size_t)table->n_tokens + 1) * sizeof *table->offsets);
    wk_free(heap, table->kinds, table->n_tokens * sizeof *table->kinds);
    wk_free(heap, table->ends, table->n_tokens * sizeof *table->ends);
    *table = (wk_token_table){0};
}
