/* Numbers and dates of request traces. Millions are read, so the usual forms take one pass. */
#include "request_row.h"

#include <ctype.h>
#include <stdlib.h>

/* The rare forms: exponents, and more digits than a double holds. */
static bool read_slowly(const char *text, size_t length, double *value) {
    char copy[64], *end = NULL;
    if (length == 0 || length >= sizeof copy) return false;
    memcpy(copy, text, length);
    copy[length] = 0;
    if (strspn(copy, "0123456789+-.eE") != length) return false; /* no nan, inf, hexadecimal */
    *value = strtod(copy, &end);
    return end == copy + length;
}

bool request_number(const char *text, size_t length, double *value) {
    static const double powers[] = {1,   1e1, 1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                    1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15};
    uint64_t digits = 0;
    size_t at = 0, point = length;
    if (length > 16) return read_slowly(text, length, value);
    for (; at < length; at++) {
        if (isdigit((unsigned char)text[at])) digits = 10 * digits + (uint64_t)(text[at] - '0');
        else if (text[at] == '.' && point == length && length > 1) point = at;
        else return read_slowly(text, length, value);
    }
    size_t decimals = point < length ? length - point - 1 : 0;
    *value = (double)digits / powers[decimals]; /* both exact: correctly rounded */
    return length > 0;
}

/* ---- dates ---- */

typedef struct reader {
    const char *text;
    size_t length, at;
} reader;

static bool take_digits(reader *r, int n, int64_t least, int64_t most, int64_t *value) {
    *value = 0;
    for (int i = 0; i < n; i++, r->at++) {
        if (r->at >= r->length || !isdigit((unsigned char)r->text[r->at])) return false;
        *value = 10 * *value + (r->text[r->at] - '0');
    }
    return *value >= least && *value <= most;
}

static bool take_byte(reader *r, const char *any) {
    if (r->at >= r->length || r->text[r->at] == 0 || !strchr(any, r->text[r->at])) return false;
    r->at++;
    return true;
}

/* Days since 1970-01-01 of the Gregorian calendar: years begin in March, so that the leap day is
 * the last of its year. */
static int64_t days_of(int64_t year, int64_t month, int64_t day) {
    int64_t y = month <= 2 ? year - 1 : year, m = month <= 2 ? month + 9 : month - 3;
    int64_t of_year = (153 * m + 2) / 5 + day - 1;
    return 365 * y + y / 4 - y / 100 + y / 400 + of_year - 719468;
}

bool request_date(const char *text, size_t length, int64_t *seconds, double *rest) {
    reader r = {text, length, 0};
    int64_t year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0;
    if (!take_digits(&r, 4, 1600, 9999, &year) || !take_byte(&r, "-") ||
        !take_digits(&r, 2, 1, 12, &month) || !take_byte(&r, "-") ||
        !take_digits(&r, 2, 1, 31, &day) || !take_byte(&r, " T") ||
        !take_digits(&r, 2, 0, 23, &hour) || !take_byte(&r, ":") ||
        !take_digits(&r, 2, 0, 59, &minute) || !take_byte(&r, ":") ||
        !take_digits(&r, 2, 0, 60, &second))
        return false;
    *rest = 0.0;
    if (take_byte(&r, ".")) {
        double unit = 0.1;
        for (; r.at < length && isdigit((unsigned char)text[r.at]); r.at++, unit *= 0.1)
            *rest += unit * (text[r.at] - '0');
    }
    *seconds = 86400 * days_of(year, month, day) + 3600 * hour + 60 * minute + second;
    int64_t hours = 0, minutes = 0;
    if (r.at == r.length || take_byte(&r, "Z")) return r.at == r.length;
    bool west = r.text[r.at] == '-';
    if (!take_byte(&r, "+-") || !take_digits(&r, 2, 0, 23, &hours)) return false;
    take_byte(&r, ":");
    if (r.at < r.length && !take_digits(&r, 2, 0, 59, &minutes)) return false;
    int64_t ahead = 3600 * hours + 60 * minutes;
    *seconds -= west ? -ahead : ahead;
    return r.at == r.length;
}
