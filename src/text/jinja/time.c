/* text/jinja/time.c: strftime in the C locale, by hand: the C library's depends on the process. */
#include "text/jinja/format.h"

#include <stdio.h>
#include <string.h>

static const char *const days[] = {"Sunday",   "Monday", "Tuesday", "Wednesday",
                                   "Thursday", "Friday", "Saturday"};
static const char *const months[] = {"January",   "February", "March",    "April",
                                     "May",       "June",     "July",     "August",
                                     "September", "October",  "November", "December"};

static bool is_leap(int year) { return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0; }

/* From 0. */
static int day_of_year(const wk_jinja_time *t) {
    static const int before[] = {0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334};
    return before[t->month - 1] + t->day - 1 + (t->month > 2 && is_leap(t->year));
}

/* Of January 1st, Sunday 0. */
static int first_weekday(int year) {
    const int y = year - 1;
    return (1 + y + y / 4 - y / 100 + y / 400) % 7;
}

static int weekday(const wk_jinja_time *t) { return (first_weekday(t->year) + day_of_year(t)) % 7; }

/* Week and year of ISO 8601: weeks begin on Monday, the first one holds January 4th. */
static int iso_week(const wk_jinja_time *t, int *year) {
    const int monday_based = (weekday(t) + 6) % 7;
    int week = (day_of_year(t) - monday_based + 10) / 7;
    *year = t->year;
    if (week < 1) {
        const wk_jinja_time last = {.year = t->year - 1, .month = 12, .day = 31};
        return iso_week(&last, year);
    }
    const int length = is_leap(t->year) ? 366 : 365;
    if (week == 53 && length - day_of_year(t) - 1 < 3 - monday_based) {
        week = 1;
        ++*year;
    }
    return week;
}

/* What a conversion stands for, as a number with a width and what fills it; false: it is none. */
static bool number_of(char letter, const wk_jinja_time *t, int *value, int *width, char *fill) {
    const int twelve = t->hour % 12 == 0 ? 12 : t->hour % 12;
    int iso_year;
    const int week = iso_week(t, &iso_year);
    *width = 2;
    *fill = strchr("ekl", letter) != NULL ? ' ' : '0';
    switch (letter) {
    case 'd':
    case 'e': *value = t->day; return true;
    case 'm': *value = t->month; return true;
    case 'y': *value = t->year % 100; return true;
    case 'C': *value = t->year / 100; return true;
    case 'g': *value = iso_year % 100; return true;
    case 'H':
    case 'k': *value = t->hour; return true;
    case 'I':
    case 'l': *value = twelve; return true;
    case 'M': *value = t->minute; return true;
    case 'S': *value = t->second; return true;
    case 'U': *value = (day_of_year(t) + 7 - weekday(t)) / 7; return true;
    case 'W': *value = (day_of_year(t) + 7 - (weekday(t) + 6) % 7) / 7; return true;
    case 'V': *value = week; return true;
    default: break;
    }
    *width = 1;
    switch (letter) {
    case 'j':
        *value = day_of_year(t) + 1;
        *width = 3;
        return true;
    case 'f':
        *value = 0;
        *width = 6;
        return true;
    case 'u': *value = weekday(t) == 0 ? 7 : weekday(t); return true;
    case 'w': *value = weekday(t); return true;
    case 'Y': *value = t->year; return true;
    case 'G': *value = iso_year; return true;
    default: return false;
    }
}

/* What a conversion is short for, or its name; NULL: it is neither. */
static const char *text_of(char letter, const wk_jinja_time *t) {
    switch (letter) {
    case 'A': return days[weekday(t)];
    case 'B': return months[t->month - 1];
    case 'p': return t->hour < 12 ? "AM" : "PM";
    case 'P': return t->hour < 12 ? "am" : "pm";
    case 'n': return "\n";
    case 't': return "\t";
    case '%': return "%";
    case 'Z':
    case 'z': return ""; /* no time zone */
    case 'c': return "%a %b %e %H:%M:%S %Y";
    case 'D':
    case 'x': return "%m/%d/%y";
    case 'F': return "%Y-%m-%d";
    case 'R': return "%H:%M";
    case 'r': return "%I:%M:%S %p";
    case 'T':
    case 'X': return "%H:%M:%S";
    default: return NULL;
    }
}

static void put_number(wk_jbuilder *to, int value, int width, char fill) {
    char text[16];
    snprintf(text, sizeof text, "%d", value);
    for (int n = (int)strlen(text); n < width && fill != '-'; n++)
        wk_jput_char(to, (unsigned char)fill, false);
    wk_jput_word(to, text);
}

/* One conversion; flag: - (no fill), _ (blanks), 0, ^ (upper case, left out) or 0 for none. */
static bool put_conversion(wk_jbuilder *to, char letter, char flag, const wk_jinja_time *t) {
    int value, width;
    char fill;
    if (number_of(letter, t, &value, &width, &fill)) {
        put_number(to, value, width, flag == '_' ? ' ' : flag == '-' || flag == '0' ? flag : fill);
        return true;
    }
    const bool is_short = letter == 'a' || letter == 'b' || letter == 'h';
    if (is_short) {
        const char *const name = text_of(letter == 'a' ? 'A' : 'B', t);
        wk_jput(to, (wk_jtext){name, 3, NULL});
        return true;
    }
    const char *const text = text_of(letter, t);
    if (text == NULL) return false;
    if (text[0] == '%' && text[1] != '\0')
        wk_jput_time(to, wk_jtext_of(text), t);
    else
        wk_jput_word(to, text);
    return true;
}

void wk_jput_time(wk_jbuilder *to, wk_jtext format, const wk_jinja_time *time) {
    size_t from = 0;
    for (size_t i = 0; i + 1 < format.size; i++) {
        if (format.text[i] != '%') continue;
        const size_t start = i++;
        char flag = '\0';
        if (strchr("-_0^", format.text[i]) != NULL && i + 1 < format.size) flag = format.text[i++];
        if (strchr("EO", format.text[i]) != NULL && i + 1 < format.size) i++;
        const char letter = format.text[i];
        wk_jput(to, wk_jtext_part(format, from, start));
        from = i + 1;
        if (!put_conversion(to, letter, flag, time)) from = start; /* it stands for itself */
    }
    wk_jput(to, wk_jtext_part(format, from, format.size));
}
