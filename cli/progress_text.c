/* progress_text.c: the text of a progress line, and the rate in it. */
#include "progress.h"

#include "bar.h"
#include "text_out.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* The rate is that of all the time at first, then of the last seconds: an average that forgets.
 * Work that comes in parts, such as 512 tokens every 3 seconds, is measured from part to part; only
 * when none came for much longer than before there is no rate. */
void cli_progress_measure(cli_progress *line, uint64_t done, double now) {
    static const double interval = 0.5, memory = 8;      /* seconds */
    if (line->marked == 0 || done < line->done_marked) { /* the first time, or it began again */
        line->marked = now;
        line->done_first = line->done_marked = done;
        line->rate = 0;
        return;
    }
    const double seconds = now - line->marked;
    if (seconds < interval) return;
    const bool is_same = done == line->done_marked;
    const double patience = 2 * line->part_seconds > memory ? 2 * line->part_seconds : memory;
    if (is_same && (line->rate == 0 || seconds < patience)) return;
    if (!is_same) line->part_seconds = seconds;
    const double rate = (double)(done - line->done_marked) / seconds;
    const double weight = line->rate > 0 && seconds < memory ? seconds / memory : 1;
    line->rate += weight * (rate - line->rate);
    line->marked = now;
    line->done_marked = done;
}

/* ---- Text ---- */

typedef struct writer {
    char *text;
    size_t size, length, room; /* bytes, and columns that are left: all of it is ASCII */
} writer;

/* Whole, or not at all. */
static bool add(writer *w, const char *part) {
    const size_t n = strlen(part);
    if (n > w->room || w->length + n >= w->size) return false;
    memcpy(w->text + w->length, part, n + 1);
    w->length += n;
    w->room -= n;
    return true;
}

static void add_share(writer *w, double share) {
    char text[16];
    snprintf(text, sizeof text, "  %3.0f %%", 100 * share);
    (void)add(w, text);
}

/* "1.2 of 2.9 GiB": the unit once where both have the same. */
static void put_amount(const char *unit, uint64_t done, uint64_t total, char *text, size_t size) {
    if (unit == NULL && total == 0) {
        snprintf(text, size, "%s", cli_bytes_text(done).text);
    } else if (unit == NULL) {
        cli_size_text a = cli_bytes_text(done);
        const cli_size_text b = cli_bytes_text(total);
        const char *const unit_b = strchr(b.text, ' ');
        char *const unit_a = strchr(a.text, ' ');
        if (strcmp(unit_a, unit_b) == 0) *unit_a = '\0';
        snprintf(text, size, "%s of %s", a.text, b.text);
    } else if (total == 0) {
        snprintf(text, size, "%" PRIu64 " %s", done, unit);
    } else {
        snprintf(text, size, "%" PRIu64 " of %" PRIu64 " %s", done, total, unit);
    }
}

static void put_rate(const char *unit, double rate, char *text, size_t size) {
    if (unit == NULL)
        snprintf(text, size, "%s/s", cli_bytes_text((uint64_t)rate).text);
    else
        snprintf(text, size, rate < 10 ? "%.1f/s" : "%.0f/s", rate);
}

/* "0:05 left", "1:02:03 left". */
static void put_left(double seconds, char *text, size_t size) {
    const unsigned s = (unsigned)(seconds + 0.5);
    if (s < 3600)
        snprintf(text, size, "%u:%02u left", s / 60, s % 60);
    else
        snprintf(text, size, "%u:%02u:%02u left", s / 3600, s / 60 % 60, s % 60);
}

static void add_part(writer *w, const char *part) {
    char text[96];
    snprintf(text, sizeof text, "%s%s", w->length > 0 ? ", " : "", part);
    (void)add(w, text);
}

/* The figures after the share. */
static void add_figures(writer *w, const cli_progress *line, uint64_t done, uint64_t total) {
    static const double longest = 100.0 * 3600; /* seconds that are worth a word */
    char text[80];
    put_amount(line->unit, done, total, text, sizeof text);
    add_part(w, text);
    if (line->rate > 0) {
        put_rate(line->unit, line->rate, text, sizeof text);
        add_part(w, text);
        const double left = total >= done ? (double)(total - done) / line->rate : longest;
        put_left(left < longest ? left : longest, text, sizeof text);
        if (total > 0 && left < longest) add_part(w, text);
    }
    if (line->note[0] != '\0') add_part(w, line->note);
}

void cli_progress_text(const cli_progress *line, uint64_t done, uint64_t total, size_t columns,
                       char *text, size_t size) {
    enum { BAR = 16 };
    writer w = {.text = text, .size = size, .room = columns > 1 ? columns - 1 : 0};
    text[0] = '\0';
    if (total == UINT64_MAX) total = 0;
    char figures[128] = "";
    writer f = {.text = figures, .size = sizeof figures, .room = w.room};
    (void)add(&w, line->what);
    if (total > 0) {
        const double share = done < total ? (double)done / (double)total : 1;
        const size_t other = strlen("  100 %  ");
        f.room = w.room > other ? w.room - other : 0;
        add_figures(&f, line, done, total);
        if (w.room >= BAR + 2 + other + f.length) {
            const cli_bar bar = cli_bar_of(share, BAR);
            w.length += (size_t)snprintf(text + w.length, size - w.length, "  %s", bar.text);
            w.room -= BAR + 2;
        }
        add_share(&w, share);
    } else if (done > 0) {
        f.room = w.room > 2 ? w.room - 2 : 0;
        add_figures(&f, line, done, 0);
    }
    if (f.length > 0 && f.length + 2 <= w.room && add(&w, "  ")) (void)add(&w, figures);
}
