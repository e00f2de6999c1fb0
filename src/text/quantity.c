/* Quantities: a decimal number, then a unit with a prefix. Decimal prefixes are added to the
 * exponent before the one conversion to binary, so that "4.35k" is 4350 exactly. */
#include "scalemodel/text.h"

#include <ctype.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MOST_DIGITS 400 /* of a number; longer ones are refused */
#define SHOWN 40        /* bytes of a bad word quoted in an error */

typedef struct unit {
    const char *text; /* "" is the bare number */
    bool decimal;     /* takes k M G T P E */
    bool binary;      /* takes Ki Mi Gi Ti Pi Ei */
    double factor;    /* to the SI unit */
    int exponent;     /* and this power of ten */
} unit;

/* Counts write B for 1e9, as in "70B parameters". */
static const unit counts[] = {{"", true, true, 1, 0}, {"B", false, false, 1, 9}};
static const unit sizes[] = {{"", false, false, 1, 0}, {"B", true, true, 1, 0}};
static const unit seconds[] = {{"", false, false, 1, 0},           {"s", false, false, 1, 0},
                               {"ms", false, false, 1, -3},        {"us", false, false, 1, -6},
                               {"\xC2\xB5s", false, false, 1, -6}, {"ns", false, false, 1, -9},
                               {"min", false, false, 60, 0},       {"h", false, false, 3600, 0},
                               {"d", false, false, 86400, 0}};
static const unit byte_rates[] = {
    {"", false, false, 1, 0}, {"B/s", true, true, 1, 0}, {"bit/s", true, false, 0.125, 0}};
static const unit flop_rates[] = {{"", false, false, 1, 0},       {"FLOP/s", true, false, 1, 0},
                                  {"FLOPs/s", true, false, 1, 0}, {"FLOPS", true, false, 1, 0},
                                  {"OP/s", true, false, 1, 0},    {"OPS", true, false, 1, 0}};
static const unit rates[] = {{"", true, true, 1, 0},
                             {"/s", true, true, 1, 0},
                             {"/min", true, true, 1.0 / 60, 0},
                             {"/h", true, true, 1.0 / 3600, 0}};
static const unit dollars[] = {{"", true, false, 1, 0}, {"B", false, false, 1, 9}};

typedef struct grammar {
    const char *what;  /* completes "expected ..." */
    const char *units; /* completes "expected one of ..." */
    const unit *list;
    size_t n;
} grammar;
#define LIST(a) a, sizeof a / sizeof *a
static const grammar grammars[] = {
    [SM_Q_COUNT] = {"a number such as 4096, 8k or 4M", "k, M, B (or G), T, P, E, Ki, Mi",
                    LIST(counts)},
    [SM_Q_BYTES] = {"a size such as 80GB or 16GiB", "B, kB, MB, GB, TB, PB, KiB, MiB, GiB, TiB",
                    LIST(sizes)},
    [SM_Q_SECONDS] = {"a time such as 15ms or 2h", "s, ms, us, ns, min, h, d", LIST(seconds)},
    [SM_Q_BYTES_PER_S] = {"a bandwidth such as 450GB/s", "B/s, GB/s, TB/s, GiB/s, Gbit/s",
                          LIST(byte_rates)},
    [SM_Q_FLOPS_PER_S] = {"a speed such as 989TFLOP/s", "FLOP/s, GFLOP/s, TFLOP/s, PFLOP/s",
                          LIST(flop_rates)},
    [SM_Q_PER_S] = {"a rate such as 50/s, 3000/min or 10/h", "/s, k/s, /min, /h", LIST(rates)},
    [SM_Q_USD] = {"an amount in dollars such as 4.20 or 1.5M", "k, M, B, T", LIST(dollars)}};

typedef struct decimal {
    char digits[MOST_DIGITS + 1]; /* the number is 0.digits times 10^point */
    size_t n;
    long point;
} decimal;

/* Longest number at the start of text; its length, or 0 when there is none or it is too long. */
static size_t read_mantissa(const char *text, size_t length, decimal *number) {
    size_t at = 0, seen = 0;
    bool dot = false;
    memset(number, 0, sizeof *number);
    for (; at < length && (isdigit((unsigned char)text[at]) || (text[at] == '.' && !dot)); at++) {
        if (text[at] == '.') {
            dot = true;
            continue;
        }
        if (++seen > MOST_DIGITS) return 0;
        if (!dot) number->point++;
        number->digits[number->n++] = text[at];
    }
    return seen > 0 ? at : 0;
}

/* "e6", "E+6"; a lone "E" is the prefix exa. */
static size_t read_exponent(const char *text, size_t length, decimal *number) {
    if (length < 2 || (text[0] != 'e' && text[0] != 'E')) return 0;
    size_t at = text[1] == '+' || text[1] == '-' ? 2 : 1, first = at;
    long exponent = 0;
    for (; at < length && isdigit((unsigned char)text[at]); at++)
        if (exponent < 100000) exponent = exponent * 10 + (text[at] - '0');
    if (at == first) return 0;
    number->point += text[1] == '-' ? -exponent : exponent;
    return at;
}

/* The correctly rounded double. No decimal point is handed to strtod, so no locale can matter. */
static double to_double(const decimal *number, int exponent) {
    char text[MOST_DIGITS + 32];
    long power = number->point - (long)number->n + exponent;
    snprintf(text, sizeof text, "%se%ld", number->digits, power);
    return strtod(text, NULL);
}

/* Power of ten (or of 1024 when *binary) of a prefix; -1 when it is none. */
static int prefix_exponent(const char *text, size_t length, bool *binary) {
    static const char letters[] = "kMGTPE";
    *binary = length == 2 && text[1] == 'i';
    if (length == 0) return 0;
    if (length > 2 || (length == 2 && !*binary)) return -1;
    const char *found = text[0] == 'K' ? letters : memchr(letters, text[0], strlen(letters));
    return found != NULL ? 3 * (int)(found - letters + 1) : -1;
}

/* Does text name this unit, with a prefix it takes? Then factor and exponent convert to SI. */
static bool match_unit(const unit *u, const char *text, size_t length, double *factor,
                       int *exponent) {
    size_t n = strlen(u->text);
    if (n > length || memcmp(text + length - n, u->text, n) != 0) return false;
    bool binary = false;
    int power = prefix_exponent(text, length - n, &binary);
    if (power < 0 || (power > 0 && !(binary ? u->binary : u->decimal))) return false;
    *factor = binary ? ldexp(u->factor, 10 * (power / 3)) : u->factor;
    *exponent = u->exponent + (binary ? 0 : power);
    return true;
}

static bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

static sm_span trim(const sm_source *source, sm_span span) {
    if (span.offset > source->length) span.offset = source->length;
    if (span.length > source->length - span.offset) span.length = source->length - span.offset;
    while (span.length > 0 && is_blank(source->text[span.offset])) span.offset++, span.length--;
    while (span.length > 0 && is_blank(source->text[span.offset + span.length - 1])) span.length--;
    return span;
}

static int quoted_length(sm_span span) { return span.length < SHOWN ? (int)span.length : SHOWN; }

static sm_span after(sm_span span, size_t bytes) {
    return (sm_span){span.offset + bytes, span.length - bytes};
}

sm_status sm_quantity_parse(const sm_source *source, sm_span span, sm_quantity_kind kind,
                            double *value, sm_error *err) {
    const grammar *k = &grammars[kind];
    decimal number;
    sm_span whole = trim(source, span), rest = whole;
    if (kind == SM_Q_USD && rest.length > 0 && source->text[rest.offset] == '$')
        rest = after(rest, 1);
    size_t used = read_mantissa(source->text + rest.offset, rest.length, &number);
    if (used == 0) {
        const char *text = source->text + rest.offset;
        if (rest.length == 0) return sm_fail_at(err, source, rest, "expected %s", k->what);
        if (text[0] == '-' && rest.length > 1 &&
            (isdigit((unsigned char)text[1]) || text[1] == '.'))
            return sm_fail_at(err, source, rest, "%.*s is negative: expected %s",
                              quoted_length(rest), text, k->what);
        if (isdigit((unsigned char)text[0]) || text[0] == '.')
            return sm_fail_at(err, source, rest,
                              "this number has no digits, or more than %d of them", MOST_DIGITS);
        return sm_fail_at(err, source, rest, "expected %s, found '%.*s'", k->what,
                          quoted_length(rest), text);
    }
    rest = after(rest, used);
    rest = after(rest, read_exponent(source->text + rest.offset, rest.length, &number));
    rest = trim(source, rest);
    double factor = 1;
    int exponent = 0;
    bool known = false;
    for (size_t i = 0; i < k->n && !known; i++)
        known =
            match_unit(&k->list[i], source->text + rest.offset, rest.length, &factor, &exponent);
    if (!known) {
        return sm_fail_at(err, source, rest, "unknown unit '%.*s': expected one of %s",
                          quoted_length(rest), source->text + rest.offset, k->units);
    }
    double result = to_double(&number, exponent) * factor;
    if (!isfinite(result))
        return sm_fail_at(err, source, whole, "this number is too large: the most is %.2g",
                          DBL_MAX);
    *value = result;
    return SM_OK;
}

/* Digits alone are read as an integer, exactly; false when they are not or do not fit. */
static bool read_digits(const char *text, size_t length, int64_t *value) {
    bool negative = length > 1 && text[0] == '-';
    int64_t result = 0;
    for (size_t i = negative ? 1 : 0; i < length; i++) {
        if (!isdigit((unsigned char)text[i])) return false;
        int digit = text[i] - '0';
        if (result < (INT64_MIN + digit) / 10) return false;
        result = result * 10 - digit; /* below zero, where INT64_MIN fits too */
    }
    if (length == 0 || (!negative && result == INT64_MIN)) return false;
    *value = negative ? result : -result;
    return true;
}

static sm_status fail_range(const sm_source *source, sm_span span, int64_t lowest, int64_t highest,
                            sm_error *err) {
    const char *text = source->text + span.offset;
    int n = quoted_length(span);
    if (highest == INT64_MAX)
        return sm_fail_at(err, source, span, "expected a whole number of at least %lld, found %.*s",
                          (long long)lowest, n, text);
    return sm_fail_at(err, source, span, "expected a whole number from %lld to %lld, found %.*s",
                      (long long)lowest, (long long)highest, n, text);
}

sm_status sm_integer_parse(const sm_source *source, sm_span span, int64_t lowest, int64_t highest,
                           int64_t *value, sm_error *err) {
    sm_span whole = trim(source, span);
    int64_t result = 0;
    if (!read_digits(source->text + whole.offset, whole.length, &result)) {
        double real = 0;
        sm_status status = sm_quantity_parse(source, whole, SM_Q_COUNT, &real, err);
        if (status != SM_OK) return status;
        if (real != floor(real) || real >= 0x1p63)
            return fail_range(source, whole, lowest, highest, err);
        result = (int64_t)real;
    }
    if (result < lowest || result > highest) return fail_range(source, whole, lowest, highest, err);
    *value = result;
    return SM_OK;
}
