/* SI quantities as short text: three significant digits, no trailing zeros, one prefix. */
#include "scalemodel/units.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* printf writes the decimal point of the locale; output must not depend on it. */
static void force_point(char *text) {
    for (char *c = text; *c != '\0'; c++)
        if (strchr("0123456789+-eE.infa", *c) == NULL) *c = '.';
}

/* The power of ten of the leading digit after rounding to three significant digits. */
static int leading_power(double value) {
    char text[40];
    snprintf(text, sizeof text, "%.2e", fabs(value));
    return atoi(strchr(text, 'e') + 1);
}

#define NUMBER_SIZE 48

/* value to three significant digits, whole from 100 on, with an exponent when it would be long. */
static void short_number(char text[NUMBER_SIZE], double value) {
    int power = isfinite(value) && value != 0 ? leading_power(value) : 0;
    if (!isfinite(value)) snprintf(text, NUMBER_SIZE, "%s", isnan(value) ? "nan" : "inf");
    else if (value != 0 && (power < -6 || power > 6)) snprintf(text, NUMBER_SIZE, "%.2e", value);
    else snprintf(text, NUMBER_SIZE, "%.*f", power < 2 ? 2 - power : 0, value + 0.0);
    force_point(text);
    char *point = strchr(text, '.');
    if (point == NULL || strpbrk(text, "eE") != NULL) return;
    char *end = text + strlen(text);
    while (end[-1] == '0') *--end = '\0';
    if (end[-1] == '.') end[-1] = '\0';
}

typedef struct prefix {
    const char *text;
    int power;
} prefix;

/* The largest prefix not above the value, the first (smallest) when none is. */
static const prefix *choose(const prefix *list, size_t n, double value) {
    static const prefix none = {"", 0};
    if (value == 0 || !isfinite(value)) return &none;
    int power = leading_power(value);
    size_t i = n - 1;
    while (i > 0 && list[i].power > power) i--;
    return &list[i];
}

static char *with_prefix(char *out, size_t size, double value, const prefix *list, size_t n,
                         const char *space, const char *unit) {
    char number[NUMBER_SIZE];
    const prefix *chosen = choose(list, n, value);
    short_number(number, value / pow(10, chosen->power));
    snprintf(out, size, "%s%s%s%s", number, space, chosen->text, unit);
    return out;
}

#define LIST(a) a, sizeof a / sizeof *a
static const prefix si[] = {{"", 0}, {"k", 3}, {"M", 6}, {"G", 9}, {"T", 12}, {"P", 15}, {"E", 18}};
static const prefix count[] = {{"", 0},   {"k", 3},  {"M", 6}, {"B", 9},
                               {"T", 12}, {"P", 15}, {"E", 18}};
static const prefix money[] = {{"", 0}, {"k", 3}, {"M", 6}, {"B", 9}, {"T", 12}};
static const prefix below_second[] = {{"ns", -9}, {"us", -6}, {"ms", -3}, {"s", 0}};

char *sm_format_count(char *out, size_t size, double value) {
    return with_prefix(out, size, value, LIST(count), "", "");
}

char *sm_format_bytes(char *out, size_t size, double bytes) {
    return with_prefix(out, size, bytes, LIST(si), " ", "B");
}

char *sm_format_rate(char *out, size_t size, double per_s, const char *unit) {
    return with_prefix(out, size, per_s, LIST(si), " ", unit);
}

static char *in_unit(char *out, size_t size, double value, const char *unit) {
    char number[NUMBER_SIZE];
    short_number(number, value);
    snprintf(out, size, "%s %s", number, unit);
    return out;
}

char *sm_format_seconds(char *out, size_t size, double seconds) {
    double length = fabs(seconds);
    if (seconds == 0 || !isfinite(seconds)) return in_unit(out, size, seconds, "s");
    if (length < 99.5) return with_prefix(out, size, seconds, LIST(below_second), " ", "");
    if (length < 99.5 * 60) return in_unit(out, size, seconds / 60, "min");
    if (length < 48 * 3600) return in_unit(out, size, seconds / 3600, "h");
    return in_unit(out, size, seconds / 86400, "d");
}

char *sm_format_usd(char *out, size_t size, double usd) {
    char number[NUMBER_SIZE];
    double amount = fabs(usd);
    const char *sign = usd < 0 ? "-$" : "$";
    if (amount >= 0.995 && amount < 99.995) {
        snprintf(number, sizeof number, "%.2f", amount);
        force_point(number);
        snprintf(out, size, "%s%s", sign, number);
        return out;
    }
    const prefix *chosen = choose(LIST(money), amount);
    short_number(number, amount / pow(10, chosen->power));
    snprintf(out, size, "%s%s%s", sign, number, chosen->text);
    return out;
}

char *sm_format_percent(char *out, size_t size, double fraction) {
    return in_unit(out, size, fraction * 100, "%");
}

char *sm_format_value(char *out, size_t size, double value, const char *unit) {
    static const char *const rates[] = {"FLOP", "FLOP/s", "B/s", "OP/s", "bit/s"};
    char number[64];
    if (strcmp(unit, "s") == 0) return sm_format_seconds(out, size, value);
    if (strcmp(unit, "B") == 0) return sm_format_bytes(out, size, value);
    if (strcmp(unit, "USD") == 0 || strcmp(unit, "$") == 0) return sm_format_usd(out, size, value);
    for (size_t i = 0; i < sizeof rates / sizeof *rates; i++)
        if (strcmp(unit, rates[i]) == 0) return sm_format_rate(out, size, value, unit);
    sm_format_count(number, sizeof number, value);
    snprintf(out, size, "%s%s%s", number, unit[0] != '\0' ? " " : "", unit);
    return out;
}

char *sm_format_exact(char *out, size_t size, double value) {
    char text[40];
    if (fabs(value) < 1e15 && value == floor(value)) {
        snprintf(out, size, "%.0f", value + 0.0);
        return out;
    }
    /* What has a form of up to 15 digits has it as %.15g; a subnormal number has less precision. */
    for (int digits = fabs(value) < DBL_MIN ? 1 : 15; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, value);
        if (strtod(text, NULL) == value) break;
    }
    force_point(text);
    snprintf(out, size, "%s", text);
    return out;
}
