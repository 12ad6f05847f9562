/* api/logprobs.c: log probabilities: kept as they come, written as an API has them. See api.h. */
#include "api/api.h"

#include <math.h>
#include <string.h>

/* What waits is, for each token, how many entries there are (uint32_t), and the entries. */

void wk_logprobs_keep(wk_api_choice *choice, const wick_logprob *logprobs, size_t n) {
    const uint32_t most = choice->exchange->n_top + 1, count = n < most ? (uint32_t)n : most;
    wk_strbuf_append(&choice->logprobs, &count, sizeof count);
    wk_strbuf_append(&choice->logprobs, logprobs, count * sizeof *logprobs);
}

/* The entry at *at of the buffer, which it moves. */
static bool next_bytes(const wk_strbuf *from, size_t *at, void *to, size_t size) {
    if (from->size - *at < size) return false;
    memcpy(to, from->data + *at, size);
    *at += size;
    return true;
}

static wk_str bytes_of(const wk_api_choice *choice, uint32_t id) {
    wk_str text;
    text.text = wick_token_bytes(choice->exchange->api->model->tokenizer, id, true, &text.size);
    return text;
}

static double finite(float logprob) { return logprob > -9999 ? logprob : -9999; }

void wk_write_bytes(wk_strbuf *to, wk_str bytes) {
    wk_write_open(to, '[');
    for (size_t i = 0; i < bytes.size; i++) wk_write_whole(to, (unsigned char)bytes.text[i]);
    wk_write_close(to, ']');
}

/* ---- As a chat has them ---- */

/* Of what the sampler draws from, probabilities in place of their logarithms, as llama-server. */
static void write_token(wk_api_choice *choice, const wick_logprob *logprob, bool has_id) {
    const bool is_drawn = choice->exchange->desc.drawn_logprobs;
    wk_strbuf *const to = &choice->exchange->part;
    const wk_str text = bytes_of(choice, logprob->id);
    if (has_id) wk_write_put_whole(to, "id", logprob->id);
    wk_write_put_string(to, "token", text);
    wk_write_key(to, is_drawn ? "prob" : "logprob");
    wk_write_number(to, is_drawn ? exp(logprob->logprob) : finite(logprob->logprob));
    wk_write_key(to, "bytes");
    wk_write_bytes(to, text);
}

void wk_write_logprob_items(wk_api_choice *choice, bool has_ids) {
    wk_strbuf *const to = &choice->exchange->part;
    wick_logprob entry;
    uint32_t n;
    for (size_t at = 0; next_bytes(&choice->logprobs, &at, &n, sizeof n);) {
        wk_write_open(to, '{');
        for (uint32_t i = 0; i < n && next_bytes(&choice->logprobs, &at, &entry, sizeof entry);
             i++) {
            if (i > 0) wk_write_open(to, '{');
            write_token(choice, &entry, has_ids);
            if (i > 0) wk_write_close(to, '}');
            if (i > 0) continue;
            wk_write_key(to, choice->exchange->desc.drawn_logprobs ? "top_probs" : "top_logprobs");
            wk_write_open(to, '[');
        }
        wk_write_close(to, ']');
        wk_write_close(to, '}');
    }
    wk_strbuf_clear(&choice->logprobs);
}

void wk_write_logprobs(wk_api_choice *choice, bool is_there, const char *end) {
    wk_strbuf *const to = &choice->exchange->part;
    wk_write_key(to, "logprobs");
    if (!is_there) {
        wk_write_null(to);
        return;
    }
    wk_write_raw(to, "{\"content\":[");
    wk_write_logprob_items(choice, false);
    wk_write_close(to, ']');
    wk_strbuf_text(to, end);
}

/* ---- As a text completion has them ---- */

/* The first token of a prompt follows nothing: its logarithm is no number. */
static void write_logarithm(wk_strbuf *to, const wick_logprob *entry) {
    if (entry->logprob != entry->logprob)
        wk_write_null(to);
    else
        wk_write_number(to, finite(entry->logprob));
}

static void write_likeliest(wk_api_choice *choice, uint32_t n, const char *entries) {
    wk_strbuf *const to = &choice->exchange->part;
    if (n < 2) {
        wk_write_null(to);
        return;
    }
    wk_write_open(to, '{');
    for (uint32_t i = 1; i < n; i++) {
        wick_logprob entry;
        memcpy(&entry, entries + i * sizeof entry, sizeof entry);
        wk_write_key_of(to, bytes_of(choice, entry.id));
        wk_write_number(to, finite(entry.logprob));
    }
    wk_write_close(to, '}');
}

static bool begins(wk_str text, wk_str with) {
    return text.size >= with.size && memcmp(text.text, with.text, with.size) == 0;
}

/* How many characters of a token the answer's text has. Of the first one of a prompt that is
 * repeated: a token that begins texts is not in it, nor is a space that a tokenizer adds. */
static uint64_t count_characters(const wk_api_choice *choice, uint32_t id) {
    const wk_str prompt = choice->prompt->text;
    wk_str text = bytes_of(choice, id);
    uint64_t n = 0;
    if (choice->exchange->echoes && choice->n_written == 0 && prompt.text) {
        if (!begins(prompt, text) && text.size > 0 && text.text[0] == ' ') {
            text.text++;
            text.size--;
        }
        if (!begins(prompt, text)) return 0;
    }
    for (size_t i = 0; i < text.size; i++) n += (text.text[i] & 0xC0) != 0x80;
    return n;
}

typedef enum list { TOKENS, LOGARITHMS, LIKELIEST, OFFSETS } list;

static void write_list(wk_api_choice *choice, const char *key, list which) {
    const wk_strbuf *const from = &choice->logprobs;
    wk_strbuf *const to = &choice->exchange->part;
    uint32_t n;
    wk_write_key(to, key);
    wk_write_open(to, '[');
    for (size_t at = 0; next_bytes(from, &at, &n, sizeof n); at += n * sizeof(wick_logprob)) {
        wick_logprob entry;
        memcpy(&entry, from->data + at, sizeof entry);
        const wk_str text = bytes_of(choice, entry.id);
        switch (which) {
        case TOKENS: wk_write_string(to, text); break;
        case LOGARITHMS: write_logarithm(to, &entry); break;
        case LIKELIEST: write_likeliest(choice, n, from->data + at); break;
        case OFFSETS:
            wk_write_whole(to, choice->n_written);
            choice->n_written += count_characters(choice, entry.id);
            break;
        }
    }
    wk_write_close(to, ']');
}

void wk_write_text_logprobs(wk_api_choice *choice) {
    wk_strbuf *const to = &choice->exchange->part;
    wk_write_key(to, "logprobs");
    if (choice->logprobs.failed || choice->logprobs.size == 0) {
        wk_write_null(to);
        return;
    }
    wk_write_open(to, '{');
    write_list(choice, "tokens", TOKENS);
    write_list(choice, "token_logprobs", LOGARITHMS);
    if (choice->exchange->n_top > 0)
        write_list(choice, "top_logprobs", LIKELIEST);
    else
        wk_write_put(to, "top_logprobs", NULL);
    write_list(choice, "text_offset", OFFSETS);
    wk_write_close(to, '}');
    wk_strbuf_clear(&choice->logprobs);
}
