/* backend/webgpu/tuning.c: a device's choices as lines of text, out and in again:
 *
 *   version 1                              lines after another version are not read
 *   device DESCRIPTION                     nor lines after another device's
 *   rates F32 INTEGER                      millions of operations a second that were measured
 *   disable GLOB                           kernels that are not taken, by name
 *   enable GLOB
 *   tune KERNEL ROWS WEIGHT NUMBER         which tuning, for ops by their rows (one, few, many) and
 *                                          weight (a block type, f32 ...; raw: no weight)
 *
 * Empty lines and those that begin with # are ignored. */
#include "backend/webgpu/table.h"

#include "backend/webgpu/choice.h"
#include "backend/webgpu/webgpu_state.h"

#include <stdio.h>
#include <string.h>

enum { VERSION = 1, MAX_WORDS = 5 };

static const char *const rows_names[WK_ROWS_COUNT_] = {
    [WK_ROWS_ONE] = "one", [WK_ROWS_FEW] = "few", [WK_ROWS_MANY] = "many"};

static const char *const layout_names[WK_LAYOUT_COUNT_] = {[WK_LAYOUT_RAW] = "raw",
                                                           [WK_LAYOUT_PANEL_F32] = "f32",
                                                           [WK_LAYOUT_PANEL_F16] = "f16",
                                                           [WK_LAYOUT_PANEL_BF16] = "bf16",
#define NAME(dtype, name) [WK_LAYOUT_PANEL_##dtype] = #name,
                                                           WK_PANEL_FORMATS(NAME)
#undef NAME
};

/* On one line. */
static void describe_device(const wk_backend_device *dev, char *out, size_t size) {
    const wick_adapter_info *const a = &dev->adapter;
    snprintf(out, size, "%04x:%04x %s, %s, %s, %s", (unsigned)a->vendor_id, (unsigned)a->device_id,
             a->name, a->driver, a->api, a->implementation);
    for (char *c = out; *c != '\0'; c++)
        if ((unsigned char)*c < ' ') *c = ' ';
}

/* --- In --- */

/* The words of a line; the rest: from its second word on. */
typedef struct line {
    wk_str words[MAX_WORDS];
    size_t n_words; /* MAX_WORDS + 1: there are more */
    wk_str rest;
} line;

static bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

static line split(wk_str text) {
    line l = {.n_words = 0};
    size_t at = 0;
    while (text.size > 0 && is_blank(text.text[text.size - 1])) text.size--;
    while (l.n_words <= MAX_WORDS) {
        while (at < text.size && is_blank(text.text[at])) at++;
        if (at == text.size) break;
        const size_t begin = at;
        while (at < text.size && !is_blank(text.text[at])) at++;
        if (l.n_words == 1) l.rest = (wk_str){text.text + begin, text.size - begin};
        if (l.n_words < MAX_WORDS) l.words[l.n_words] = (wk_str){text.text + begin, at - begin};
        l.n_words++;
    }
    return l;
}

/* -1: none of them. */
static int index_of(wk_str word, const char *const *names, int n) {
    for (int i = 0; i < n; i++)
        if (wk_str_is(word, names[i])) return i;
    return -1;
}

/* Of at most that many digits; -1: it is none. */
static int64_t digits_of(wk_str word, size_t most) {
    int64_t value = 0;
    if (word.size == 0 || word.size > most) return -1;
    for (size_t i = 0; i < word.size; i++) {
        if (word.text[i] < '0' || word.text[i] > '9') return -1;
        value = 10 * value + (word.text[i] - '0');
    }
    return value;
}

static int number_of(wk_str word) { return (int)digits_of(word, 3); }

/* The functions for lines return why it cannot be used, NULL: it was. */

static const char *set_disabled(wk_backend_device *dev, const line *l, bool is_disabled) {
    bool is_met = false;
    if (l->n_words != 2) return "it needs one name";
    for (size_t i = 0; i < dev->n_choices; i++) {
        wk_choice *const choice = &dev->choices[i];
        if (!wk_str_matches(l->words[1], wk_str_of(choice->kernel->base.name))) continue;
        choice->is_disabled = is_disabled;
        is_met = true;
    }
    return is_met ? NULL : "there is no such kernel";
}

static const char *set_tuning(wk_backend_device *dev, const line *l) {
    if (l->n_words != MAX_WORDS) return "it needs a kernel, rows, a weight and a number";
    wk_choice *choice = NULL;
    for (size_t i = 0; i < dev->n_choices && !choice; i++)
        if (wk_str_is(l->words[1], dev->choices[i].kernel->base.name)) choice = &dev->choices[i];
    if (!choice) return "there is no such kernel";
    const int rows = index_of(l->words[2], rows_names, WK_ROWS_COUNT_);
    const int layout = index_of(l->words[3], layout_names, WK_LAYOUT_COUNT_);
    const int tuning = number_of(l->words[4]);
    if (rows < 0) return "rows are one, few or many";
    if (layout < 0) return "weights do not lie so";
    if (tuning < 0 || (uint32_t)tuning >= wk_choice_tunings(choice->kernel))
        return "the kernel has no such tuning";
    choice->tuning[rows][layout] = (uint8_t)tuning;
    return NULL;
}

static const char *set_rates(wk_backend_device *dev, const line *l) {
    enum { DIGITS = 9 };
    const bool is_whole = l->n_words == 3;
    const int64_t f32 = is_whole ? digits_of(l->words[1], DIGITS) : 0;
    const int64_t integer = is_whole ? digits_of(l->words[2], DIGITS) : 0;
    if (f32 <= 0 || integer <= 0) return "it needs two numbers of millions";
    dev->f32_rate = (uint32_t)f32;
    dev->integer_rate = (uint32_t)integer;
    wk_webgpu_choose_features(dev);
    return NULL;
}

static const char *read_line(wk_backend_device *dev, const line *l, bool *ends) {
    char device[512];
    if (wk_str_is(l->words[0], "version")) {
        *ends = l->n_words != 2 || number_of(l->words[1]) != VERSION;
        return *ends ? "it is of another version" : NULL;
    }
    if (wk_str_is(l->words[0], "device")) {
        describe_device(dev, device, sizeof device);
        *ends = !wk_str_is(l->rest, device);
        return *ends ? "it is about another device" : NULL;
    }
    if (wk_str_is(l->words[0], "rates")) return set_rates(dev, l);
    if (wk_str_is(l->words[0], "disable")) return set_disabled(dev, l, true);
    if (wk_str_is(l->words[0], "enable")) return set_disabled(dev, l, false);
    if (wk_str_is(l->words[0], "tune")) return set_tuning(dev, l);
    return "it begins with an unknown word";
}

void wk_tuning_read(wk_backend_device *dev, wk_str text, wick_log_fn log, void *log_user,
                    size_t *n_ignored) {
    bool ends = false;
    *n_ignored = 0;
    for (size_t at = 0, number = 1; at < text.size && !ends; number++) {
        const char *const begin = text.text + at;
        const char *const end = memchr(begin, '\n', text.size - at);
        const size_t size = end ? (size_t)(end - begin) : text.size - at;
        const line l = split((wk_str){begin, size});
        at += size + 1;
        if (l.n_words == 0 || l.words[0].text[0] == '#') continue;
        const char *const reason = read_line(dev, &l, &ends);
        if (!reason) continue;
        ++*n_ignored;
        char sentence[256];
        snprintf(sentence, sizeof sentence, "line %zu of the tuning is ignored%s, %s: %s", number,
                 ends ? " with all that follow" : "", reason,
                 wk_str_show((wk_str){begin, size}).text);
        if (log) log(log_user, WICK_LOG_WARNING, sentence);
    }
}

/* --- Out --- */

static void write_tunings(const wk_choice *choice, wk_strbuf *out) {
    for (int rows = 0; rows < WK_ROWS_COUNT_; rows++)
        for (int layout = 0; layout < WK_LAYOUT_COUNT_; layout++)
            if (choice->tuning[rows][layout] != choice->usual_tuning)
                wk_strbuf_format(out, "tune %s %s %s %u\n", choice->kernel->base.name,
                                 rows_names[rows], layout_names[layout],
                                 (unsigned)choice->tuning[rows][layout]);
}

void wk_tuning_write(const wk_backend_device *dev, wk_strbuf *out) {
    char device[512];
    describe_device(dev, device, sizeof device);
    wk_strbuf_format(out, "version %d\ndevice %s\n", VERSION, device);
    if (dev->integer_rate > 0)
        wk_strbuf_format(out, "rates %u %u\n", (unsigned)dev->f32_rate,
                         (unsigned)dev->integer_rate);
    for (size_t i = 0; i < dev->n_choices; i++) {
        if (dev->choices[i].is_disabled)
            wk_strbuf_format(out, "disable %s\n", dev->choices[i].kernel->base.name);
        write_tunings(&dev->choices[i], out);
    }
}
